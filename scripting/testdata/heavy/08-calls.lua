for i = 1, 100 do
  redis.call("set", KEYS[1], i)
  redis.call("incrby", KEYS[1], 5)
end
return redis.call("get", KEYS[1])
