-- Gives a lock more time, if it is still ours.
--
--   redis-cli --eval extend.lua lock:a , token 30000
--
-- KEYS[1]  the lock
-- ARGV[1]  the token that it was taken with
-- ARGV[2]  how long it lasts from now on, in milliseconds
-- Returns 1, or 0 if the lock is not ours any more: stop working at once.
--
-- For its author: call it at a third of the lock's time, so that two attempts may
-- fail. In latchkey the time begins when the script ends, not when it began.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0
