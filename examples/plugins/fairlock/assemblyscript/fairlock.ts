/**
 * A lock whose waiters are served first come, first served, without polling. Who gets it gets a fencing number with
 * it, greater than every one before. The lock ends with its lease, and when the connection of its holder ends.
 *
 *     FAIRLOCK.ACQUIRE key lease-ms [timeout-ms]   the fence, or nil; waits if a timeout is given, for ever if it is 0
 *     FAIRLOCK.RELEASE key fence                   1, 0 if another holds it, -1 if nobody does
 *     FAIRLOCK.EXTEND key fence lease-ms           likewise; the lease counts from now
 *     FAIRLOCK.STATUS key                          fence, client and lease in ms; nil if nobody holds it
 */
import { Buffer, Bytes, Call, ClientField, Code, Integer, NOT_INT, Reason } from "latchkey";

export { lk_abi, lk_arena } from "latchkey";

export function lk_init(): i32 {
  return Code.OK;
}

export function lk_command(id: i32, argc: i32, c: Call): i32 {
  switch (id) {
    case 1: return acquire(c);
    case 2: return release(c);
    case 3: return extend(c);
    case 4: return status(c);
  }
  return Code.Invalid; // the manifest has no other
}

// A lock is the state of its key: the fence and the holder's client id, eight bytes each, little endian. The lease is
// the key's time to live.
const ENCODING: u32 = 1;
const SIZE: u32 = 16;
const lock = new Buffer(SIZE).resize(SIZE);

function lockFence(): i64 {
  return load<i64>(lock.ptr);
}

function lockClient(): i64 {
  return load<i64>(lock.ptr, 8);
}

const FREE: i32 = Code.Nil; // nobody holds it

// Reads the lock at key: Code.OK, FREE, or an error.
function readLock(c: Call, key: Bytes): i32 {
  const n = c.readKeyState(key, 0, lock);
  if (n == SIZE) return Code.OK;
  return n < 0 ? n : Code.Invalid;
}

const idText = new Buffer(20);
const clientID = new Integer();

// The client's id, 0 in a call that has no client.
function me(c: Call): i64 {
  c.client(ClientField.ID, idText);
  return clientID.parse(idText) ? clientID.value : 0;
}

const lease = new Integer();
const MAX_LEASE: i64 = 10 * 365 * 24 * 3600 * 1000; // ten years

// Reads the lease: "", or what is wrong with it.
function leaseOf(arg: Bytes): string {
  if (!lease.parse(arg)) return NOT_INT;
  if (lease.value <= 0 || lease.value > MAX_LEASE) return "ERR the lease must be 1 to 315360000000 milliseconds";
  return "";
}

const timeout = new Integer();

function acquire(c: Call): i32 {
  if (c.argc > 4) return c.fail("ERR syntax error");
  const wrong = leaseOf(c.arg(2));
  if (wrong.length) return c.fail(wrong);
  timeout.value = -1;
  if (c.argc == 4) {
    if (!timeout.parse(c.arg(3))) return c.fail("ERR timeout is not an integer or out of range");
    if (timeout.value < 0) return c.fail("ERR timeout is negative");
  }
  const key = c.arg(1);
  const r = readLock(c, key);
  if (r == FREE) return take(c, key);
  if (r <= Code.Error) return r;
  if (timeout.value < 0) {
    c.replyNull();
    return Code.OK;
  }
  if (lockClient() == me(c)) return c.fail("ERR this client holds the lock, and would wait for itself");
  return c.block(key, timeout.value);
}

// Called in turn for those who wait, when the lock may be free.
export function lk_wake(token: i64, reason: Reason, argc: i32, c: Call): i32 {
  const key = c.arg(1);
  const r = readLock(c, key);
  if (r == FREE) {
    const wrong = leaseOf(c.arg(2));
    return wrong.length ? c.fail(wrong) : take(c, key);
  }
  if (r <= Code.Error) return r;
  if (reason != Reason.Timeout) return Code.Again;
  c.replyNull();
  return Code.OK;
}

// Gives the lock to the client, for the lease that was read.
function take(c: Call, key: Bytes): i32 {
  const fence = c.fence();
  store<i64>(lock.ptr, fence);
  store<i64>(lock.ptr, me(c), 8);
  let r = c.setKeyState(key, lock, ENCODING, lease.value);
  if (r <= Code.Error) return r;
  r = c.bindClient(key, fence);
  if (r <= Code.Error && r != Code.Context) return r;
  c.replyInt(fence);
  return Code.OK;
}

const fence = new Integer();
const REPLIED: i32 = 1;

// Whether the lock is held with the fence that was read: Code.OK; else REPLIED, or an error.
function heldWith(c: Call, key: Bytes): i32 {
  const r = readLock(c, key);
  if (r <= Code.Error || (r == Code.OK && lockFence() == fence.value)) return r;
  c.replyInt(r == FREE ? -1 : 0);
  return REPLIED;
}

function release(c: Call): i32 {
  if (!fence.parse(c.arg(2))) return c.fail(NOT_INT);
  const key = c.arg(1);
  let r = heldWith(c, key);
  if (r != Code.OK) return r == REPLIED ? Code.OK : r;
  r = c.del(key);
  if (r <= Code.Error) return r;
  r = c.unbindClient(key);
  if (r <= Code.Error) return r;
  c.replyInt(1);
  return Code.OK;
}

function extend(c: Call): i32 {
  if (!fence.parse(c.arg(2))) return c.fail(NOT_INT);
  const wrong = leaseOf(c.arg(3));
  if (wrong.length) return c.fail(wrong);
  const key = c.arg(1);
  let r = heldWith(c, key);
  if (r != Code.OK) return r == REPLIED ? Code.OK : r;
  r = c.pexpire(key, lease.value);
  if (r <= Code.Error) return r;
  c.replyInt(1);
  return Code.OK;
}

function status(c: Call): i32 {
  const key = c.arg(1);
  const r = readLock(c, key);
  if (r <= Code.Error) return r;
  if (r == FREE) {
    c.replyNull();
    return Code.OK;
  }
  const left = c.pttl(key);
  if (left <= Code.Error) return <i32>left;
  c.replyMap(3);
  c.replyString("fence");
  c.replyInt(lockFence());
  c.replyString("client");
  c.replyInt(lockClient());
  c.replyString("lease");
  c.replyInt(left);
  return Code.OK;
}

// Called when a client is gone to whom a lock was given with the fence in the token.
export function lk_closed(token: i64, argc: i32, c: Call): i32 {
  const key = c.arg(0);
  if (readLock(c, key) != Code.OK || lockFence() != token) return Code.OK;
  return c.del(key) <= Code.Error ? Code.Invalid : Code.OK;
}
