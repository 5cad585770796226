// Puts the clients of package.json in front of a server, as their users would:
//
//	node smoke.mjs HOST:PORT [HOST:PORT HOST:PORT ...]
//
// Redlock uses all of the servers, the others the first. One line per flow; exit 1 when one of them failed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { createClient, defineScript, WatchError } from 'redis'
import Redlock4 from 'redlock4'
import Redlock5 from 'redlock5'

const { positionals } = parseArgs({ allowPositionals: true })
const servers = (positionals.length ? positionals : ['127.0.0.1:6380']).map((address) => {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) }
})

const unlock = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'
const run = `${process.pid}:${Date.now()}` // in every key, so that runs do not meet

const withIoredis = (options, flow) => async () => {
  const client = new Redis({ ...servers[0], maxRetriesPerRequest: 2, ...options })
  try {
    await flow(client)
  } finally {
    await client.quit()
  }
}

const withNodeRedis = (options, flow) => async () => {
  const client = createClient({ socket: servers[0], ...options })
  client.on('error', () => {}) // each command rejects by itself
  await client.connect()
  try {
    await flow(client)
  } finally {
    await client.close()
  }
}

/** A lock taken, refused, extended and released; and again to show that it was free. */
async function ioredisFlow(client, name) {
  assert.equal(await client.set(name, 'mine', 'PX', 60_000, 'NX'), 'OK')
  assert.equal(await client.set(name, 'another', 'PX', 60_000, 'NX'), null)
  const left = await client.pttl(name)
  assert.ok(left > 0 && left <= 60_000, `PTTL is ${left}`)

  // defineCommand sends EVALSHA, and EVAL when the server does not know the script.
  client.defineCommand('unlock', { numberOfKeys: 1, lua: `-- ${name}\n${unlock}` })
  assert.equal(await client.unlock(name, 'another'), 0)
  assert.equal(await client.unlock(name, 'mine'), 1)
  assert.equal(await client.eval(unlock, 1, name, 'mine'), 0)
  assert.equal(await client.setnx(name, '1'), 1)
  assert.equal(await client.getset(name, '2'), '1')
  await assert.rejects(client.call('GET'), { name: 'ReplyError', message: "ERR wrong number of arguments for 'get' command" })

  const multi = await client.multi().incr(name).get(name).exec()
  assert.deepEqual(multi, [[null, 3], [null, '3']])
  const pipeline = client.pipeline()
  for (let i = 0; i < 1000; i++) pipeline.incr(name)
  const replies = await pipeline.incrby(name, 'one').get(name).exec()
  assert.match(replies[1000][0].message, /^ERR value is not an integer/)
  assert.deepEqual(replies[1001], [null, '1003'])

  await client.watch(name)
  const meddler = client.duplicate()
  await meddler.set(name, 'meddled')
  assert.equal(await client.multi().set(name, 'mine').exec(), null)

  const subscriber = client.duplicate()
  assert.equal(await subscriber.subscribe(name), 1)
  const message = once(subscriber, 'message')
  assert.equal(await meddler.publish(name, 'free'), 1)
  assert.deepEqual(await message, [name, 'free'])
  await Promise.all([subscriber.quit(), meddler.quit()])

  const seen = new Set()
  await client.mset(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${name}:${i}`, i])))
  for await (const keys of client.scanStream({ match: `${name}:*`, count: 50 })) keys.forEach((key) => seen.add(key))
  assert.equal(seen.size, 500)
}

async function nodeRedisFlow(client, name) {
  assert.equal(await client.set(name, 'mine', { condition: 'NX', expiration: { type: 'PX', value: 60_000 } }), 'OK')
  assert.equal(await client.set(name, 'another', { condition: 'NX', expiration: { type: 'PX', value: 60_000 } }), null)
  assert.equal(await client.unlock(name, 'another'), 0)
  assert.equal(await client.unlock(name, 'mine'), 1)
  assert.equal(await client.setNX(name, '1'), 1)
  assert.equal(await client.getSet(name, '2'), '1')
  assert.deepEqual(await client.multi().incr(name).get(name).exec(), [3, '3'])
  const many = await Promise.all(Array.from({ length: 1000 }, () => client.incr(name))) // one write, one pipeline
  assert.equal(many.at(-1), 1003)

  const other = await client.duplicate().connect()
  await client.watch(name)
  await other.set(name, 'meddled')
  await assert.rejects(client.multi().set(name, 'mine').exec(), WatchError)

  let heard
  const message = new Promise((resolve) => { heard = resolve })
  await other.subscribe(name, heard)
  assert.equal(await client.publish(name, 'free'), 1)
  assert.equal(await message, 'free')
  await other.unsubscribe(name)
  await other.close()

  const info = await client.clientInfo()
  assert.equal(info.db, 5)
}

const scripts = {
  unlock: defineScript({
    SCRIPT: `-- node-redis\n${unlock}`,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, key, token) {
      parser.pushKey(key)
      parser.push(token)
    },
    transformReply: undefined,
  }),
}

const withRedlock = (flow) => async () => {
  const clients = servers.map((server) => new Redis(server))
  try {
    await flow(clients)
  } finally {
    await Promise.all(clients.map((client) => client.quit()))
  }
}

/** Redlock answers when most servers have: the last may be behind. */
async function onMost(clients, holds) {
  const votes = await Promise.all(clients.map(holds))
  assert.ok(votes.filter(Boolean).length > clients.length / 2, `${holds} is ${votes}`)
}

const flows = {
  'ioredis, RESP2': withIoredis({ protocol: 2 }, (c) => ioredisFlow(c, `ioredis:2:${run}`)),
  'ioredis, as it comes': withIoredis({ connectionName: 'smoke', db: 2 }, (c) => ioredisFlow(c, `ioredis:3:${run}`)),
  'ioredis, auto-pipelining': withIoredis({ enableAutoPipelining: true }, async (client) => {
    const name = `ioredis:auto:${run}`
    const replies = await Promise.all(Array.from({ length: 1000 }, () => client.incr(name)))
    assert.equal(replies.at(-1), 1000)
  }),
  'ioredis, connection killed': withIoredis({}, async (client) => {
    const [killer, id] = [client.duplicate(), await client.client('ID')]
    const closed = once(client, 'close')
    assert.equal(await killer.client('KILL', 'ID', id), 1)
    await closed
    assert.equal(await client.ping(), 'PONG')
    await killer.quit()
  }),
  'node-redis, RESP2': withNodeRedis({ RESP: 2, database: 5, scripts }, (c) => nodeRedisFlow(c, `redis:2:${run}`)),
  'node-redis, RESP3': withNodeRedis({ RESP: 3, name: 'smoke', database: 5, scripts }, (c) => nodeRedisFlow(c, `redis:3:${run}`)),
  'redlock 4': withRedlock(async (clients) => {
    const name = `redlock:4:${run}`
    const redlock = new Redlock4(clients, { retryCount: 0 })
    const lock = await redlock.lock(name, 60_000)
    await assert.rejects(redlock.lock(name, 60_000), { name: 'LockError' })
    const longer = await lock.extend(120_000)
    await onMost(clients, async (client) => await client.pttl(name) > 60_000)
    await longer.unlock()
    await (await redlock.lock([name, `${name}:more`], 60_000)).unlock()
  }),
  'redlock 5': withRedlock(async (clients) => {
    const name = `redlock:5:${run}`
    const redlock = new Redlock5(clients, { retryCount: 0 })
    const lock = await redlock.acquire([name, `${name}:more`], 60_000)
    await assert.rejects(redlock.acquire([`${name}:more`], 60_000), { name: 'ExecutionError' })
    const longer = await lock.extend(120_000)
    await onMost(clients, async (client) => await client.pttl(name) > 60_000)
    await longer.release()
    assert.equal(await redlock.using([name], 60_000, async (signal) => signal.aborted), false)
    await onMost(clients, async (client) => await client.exists(name) === 0)
  }),
}

for (const [name, flow] of Object.entries(flows)) {
  try {
    await flow()
    console.log(`ok      ${name}`)
  } catch (error) {
    process.exitCode = 1
    console.log(`FAILED  ${name}\n${error.stack}`)
    for (const attempt of error.attempts ?? []) console.log(await attempt)
  }
}
