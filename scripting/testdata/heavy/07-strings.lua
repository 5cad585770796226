local parts = {}
for i = 1, 500 do
  parts[#parts + 1] = string.format("%05d:%s", i, string.upper("item"))
end
local s = table.concat(parts, ",")
local n = 0
for word in string.gmatch(s, "%d+:(%a+)") do
  n = n + #word
end
return n + #string.gsub(s, "ITEM", "thing")
