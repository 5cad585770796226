local t = {}
local x = 42
for i = 1, 1000 do
  x = (x * 1103515245 + 12345) % 2147483648
  t[i] = x
end
table.sort(t, function(a, b) return a > b end)
return t[1]
