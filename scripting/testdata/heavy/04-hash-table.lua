local seen = {}
for i = 1, 2000 do
  local key = "k" .. i % 100
  seen[key] = (seen[key] or 0) + 1
end
local n = 0
for _, v in pairs(seen) do
  n = n + v
end
return n
