-- Releases a lock, if it is still ours: a lock that expired and was taken by
-- somebody else must not be deleted.
--
--   redis-cli --eval unlock.lua lock:a , token
--
-- KEYS[1]  the lock
-- ARGV[1]  the token that it was taken with: SET lock:a token NX PX 30000
-- Returns 1, or 0 if the lock is not ours any more: then what it guarded may have
-- been done by two.
--
-- For its author: GET and DEL without the comparison between them in one
-- transaction is the mistake that this script exists for.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0
