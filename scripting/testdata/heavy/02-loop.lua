local sum = 0
for i = 1, 10000 do
  sum = sum + i % 7 * 2
end
return sum
