local job = cjson.decode('{"id":7,"queue":"mail","args":["a","b",{"x":1.5,"y":[1,2,3]}],"retry":true,"at":1700000000}')
local out
for i = 1, 50 do
  job.id = i
  out = cjson.encode(cjson.decode(cjson.encode(job)))
end
return #out
