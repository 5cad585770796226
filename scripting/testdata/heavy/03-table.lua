local t = {}
for i = 1, 10000 do
  t[#t + 1] = i
end
local sum = 0
for i, v in ipairs(t) do
  sum = sum + v
end
return sum
