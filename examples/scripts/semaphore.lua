-- Takes one of several places: at most so many at once as there are keys.
--
--   redis-cli --eval semaphore.lua sem:1 sem:2 sem:3 , token 30000
--
-- KEYS     the places, each a key of its own; name them all, in any order
-- ARGV[1]  our token
-- ARGV[2]  how long we want the place, in milliseconds
-- Returns the number of our place among KEYS, or 0 if all are taken. Give it back
-- with unlock.lua on its key, keep it with extend.lua.
--
-- For its author: one key per place, so that each expires by itself when its
-- holder dies, and no list of holders can be wrong. Who has a place and asks
-- again is given the same one, so a request that is sent twice takes one.
for i, place in ipairs(KEYS) do
  if redis.call('get', place) == ARGV[1] then
    redis.call('pexpire', place, ARGV[2])
    return i
  end
end
for i, place in ipairs(KEYS) do
  if redis.call('set', place, ARGV[1], 'NX', 'PX', ARGV[2]) then
    return i
  end
end
return 0
