local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
local function counter()
  local n = 0
  return function() n = n + 1 return n end
end
local c = counter()
for i = 1, 500 do c() end
return fib(16) + c()
