-- What a script can see of the world: one line for each thing, the same after
-- every other script. It runs after each script of this folder.
local seen = {}
local function note(name, v) seen[#seen + 1] = name .. '=' .. tostring(v) end
local function kind(v)
  local t = type(v)
  if t == 'number' or t == 'string' or t == 'boolean' then return t .. ':' .. tostring(v) end
  return t
end
local function names(t)
  local list = {}
  for k in pairs(t) do list[#list + 1] = tostring(k) end
  table.sort(list)
  return list
end
local tables = {'_G', 'string', 'table', 'math', 'coroutine', 'redis', 'cjson', 'cmsgpack', 'struct', 'bit', 'os'}
for _, lib in ipairs(tables) do
  local t = _G[lib]
  for _, k in ipairs(names(t)) do note(lib .. '.' .. k, kind(t[k])) end
  note(lib .. ' raw', type(next(t)))
  note(lib .. ' metatable', type(getmetatable(t)))
  note(lib .. ' length', #t)
  note(lib .. ' is itself', rawequal(t, _G[lib]))
  local ok, e = pcall(function() t.poison = 1 end)
  note(lib .. ' takes fields', tostring(ok) .. ' ' .. tostring(e))
  ok, e = pcall(rawset, t, 'poison', 1)
  note(lib .. ' takes raw fields', tostring(ok) .. ' ' .. tostring(e))
  note(lib .. ' is poisoned', rawget(t, 'poison'))
end
-- No function stands under the name of another.
local known = {}
for _, lib in ipairs(tables) do
  for _, k in ipairs(names(_G[lib])) do
    local v = _G[lib][k]
    if type(v) == 'function' then
      if known[v] then note(lib .. '.' .. k .. ' is also', known[v]) else known[v] = lib .. '.' .. k end
    end
  end
end
local mt = getmetatable('')
for _, k in ipairs(names(mt)) do note('string metatable ' .. k, kind(mt[k])) end
note('string methods', rawequal(mt.__index, string))
note('methods', ('abc'):len() .. ('x'):rep(3) .. ('a b'):upper() .. ('%d'):format(5) .. ('abc'):sub(2, 2) .. (('x'):gsub('x', 'y')))
note('arithmetic', '10' + 5 .. ',' .. 7 % 3 .. ',' .. 2 ^ 3 .. ',' .. -'4')
note('tables', table.concat({3, 1, 2}, ',') .. #{1, 2, 3} .. tostring(next({})) .. select('#', unpack({1, 2})))
note('numbers', math.floor(1.5) .. tostring(math.pi) .. tostring(math.huge) .. tonumber('0x10') .. math.max(1, 2))
for _, name in ipairs({'KEYS', 'ARGV'}) do
  local t = _G[name]
  note(name, #t .. table.concat(t, ','))
  note(name .. ' metatable', getmetatable(t))
  local n = 0
  for k, v in pairs(t) do n = n + 1 end
  note(name .. ' entries', n)
end
note('null', type(redis.call('GET', 'no such key')))
note('an error', select(2, pcall(redis.call, 'nosuch')))
note('a missing global', select(2, pcall(function() return no_such_global end)))
note('a new global', select(2, pcall(function() no_such_global = 1 end)))
note('cjson', cjson.encode({1, 1.23456789012345, {}, 'x'}) .. tostring(cjson.decode('[null]')[1] == cjson.null))
note('cjson sparse', select(2, pcall(cjson.encode, {[1000] = 1})))
note('cjson depth', pcall(cjson.decode, string.rep('[', 900) .. string.rep(']', 900)))
note('cjson NaN', pcall(cjson.encode, {0 / 0}))
note('cmsgpack', #cmsgpack.pack({1, 2}) .. cmsgpack.unpack(cmsgpack.pack('x')))
note('struct', struct.unpack('>I4', struct.pack('>I4', 5)) .. bit.bxor(5, 3))
note('coroutine', coroutine.wrap(function(a) return a + coroutine.yield(a) end)(4))
note('running', coroutine.running())
return seen
