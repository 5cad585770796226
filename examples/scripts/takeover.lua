-- Takes a lock whose value says when it ends, as programs do that were written
-- with SETNX and GETSET. Those need three round trips and a second look; here it
-- is one step, and two can never both believe that they took over.
--
--   redis-cli --eval takeover.lua lock:a , token 30000
--
-- KEYS[1]  the lock; its value is "<Unix milliseconds of its end> <token>"
-- ARGV[1]  our token
-- ARGV[2]  how long we want it, in milliseconds
-- Returns {1, what it held before} if it is ours now, where "" is nothing, or
-- {0, milliseconds until it ends}.
--
-- For its author: the old value is returned as GETSET would, so that who takes
-- over can clean up after a holder that died. Use SET NX PX and unlock.lua for
-- a new program: the server then forgets dead locks by itself.
local t = redis.call('time')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local held = redis.call('get', KEYS[1])
if held then
  local ends = tonumber(string.match(held, '^(%d+)')) or 0
  if ends > now then
    return {0, ends - now}
  end
end
redis.call('set', KEYS[1], string.format('%.0f %s', now + tonumber(ARGV[2]), ARGV[1]))
return {1, held or ''}
