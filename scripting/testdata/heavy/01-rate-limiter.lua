-- Allows so many requests in any window of time, to the millisecond.
--
--   redis-cli --eval ratelimit.lua rate:alice , 10 60000
--
-- KEYS[1]  the list of the moments of the requests that were allowed
-- ARGV[1]  how many requests
-- ARGV[2]  in how many milliseconds
-- Returns {1, how many more are allowed now}, or {0, milliseconds until the next
-- one is}.
--
-- For its author: a counter per minute would allow twice as many around the turn
-- of the minute. The list costs as many entries as the limit has requests, and
-- goes when nobody asks for a whole window. The time is the server's: clients'
-- clocks differ.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('time')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local oldest = redis.call('lindex', KEYS[1], 0)
while oldest and tonumber(oldest) <= now - window do
  redis.call('lpop', KEYS[1])
  oldest = redis.call('lindex', KEYS[1], 0)
end
local used = redis.call('llen', KEYS[1])
if used >= limit then
  return {0, (oldest and tonumber(oldest) or now) + window - now}
end
redis.call('rpush', KEYS[1], string.format('%.0f', now))
redis.call('pexpire', KEYS[1], window)
return {1, limit - used - 1}
