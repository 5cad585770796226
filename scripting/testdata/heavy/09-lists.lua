redis.call("del", KEYS[1])
for i = 1, 100 do
  redis.call("rpush", KEYS[1], "job:" .. i)
end
local moved = 0
for _, job in ipairs(redis.call("lrange", KEYS[1], 0, -1)) do
  if tonumber(string.match(job, "%d+")) % 2 == 0 then
    moved = moved + redis.call("lrem", KEYS[1], 1, job)
  end
end
return moved
