/**
 * Filters that say of an item "perhaps" or "certainly not". A filter is the private state of its key; only the bytes
 * that a command needs are read and written.
 *
 *     BF.RESERVE key error_rate capacity   OK
 *     BF.ADD key item                      1 if the item is new, 0 if it may have been there
 *     BF.EXISTS key item                   1 if the item may be there, 0 if it is not
 */
import { Buffer, Bytes, Call, Code, Integer, Type } from "latchkey";

export { lk_abi, lk_arena } from "latchkey";

export function lk_init(): i32 {
  return Code.OK;
}

export function lk_command(id: i32, argc: i32, c: Call): i32 {
  switch (id) {
    case 1: return reserve(c);
    case 2: return add(c);
    case 3: return exists(c);
  }
  return Code.Invalid; // the manifest has no other
}

const ENCODING: u32 = 1;
const MAX_BITS: u64 = 8 << 20; // a filter takes 1 MiB at most
const MAX_HASHES: u64 = 64;
const DAMAGED = "ERR the state of the filter is damaged";
const DEFAULT_RATE: f64 = 0.01;
const DEFAULT_CAPACITY: i64 = 100;

// The state begins with the header, of which each field takes eight bytes, little endian. The bits follow.
@unmanaged
class Header {
  bits: u64 = 0;
  hashes: u64 = 0;
  capacity: u64 = 0;
  items: u64 = 0;
}

const HEADER: u32 = offsetof<Header>();
const head = new Buffer(HEADER).resize(HEADER);
const filter = changetype<Header>(head.ptr);

// Sizes a filter: as many hashes as the rate can be halved, and the bits that these need. False if they are too many.
function plan(rate: f64, capacity: i64): bool {
  let hashes: u64 = 0;
  for (let p = 1.0; p > rate && hashes < MAX_HASHES; p /= 2) hashes++;
  const bits = Math.ceil(<f64>capacity * <f64>hashes / Math.LN2);
  if (bits > <f64>MAX_BITS) return false;
  filter.bits = (<u64>bits + 7) / 8 * 8;
  filter.hashes = hashes;
  filter.capacity = capacity;
  filter.items = 0;
  return true;
}

// What read returns when the error has been replied.
const REPLIED = 1;

// Reads the filter at key: Code.OK, Code.Nil if there is none, or an error, which may have been replied.
function read(c: Call, key: Bytes): i32 {
  const n = c.readKeyState(key, 0, head);
  if (n < 0) return n;
  if (n == HEADER && filter.bits != 0 && filter.bits <= MAX_BITS && filter.hashes <= MAX_HASHES) return Code.OK;
  c.fail(DAMAGED);
  return REPLIED;
}

// Room for a new filter, which is given back.
const empty = new Buffer(0);

function create(c: Call, key: Bytes): i32 {
  empty.resize(HEADER + <u32>(filter.bits / 8));
  memory.copy(empty.ptr, head.ptr, HEADER);
  memory.fill(empty.ptr + HEADER, 0, empty.length - HEADER);
  const r = c.setKeyState(key, empty, ENCODING);
  empty.free();
  return r <= Code.Error ? r : Code.OK;
}

const number = new Integer();

// Reads a decimal number such as 0.01, .5, +1e-3 or -0. The first 15 digits count, without zeros in front; the others
// only say where the point is. NaN if it is none, or one that is too large for an f64 or too near to zero.
function parseRate(b: Bytes): f64 {
  let digits: u64 = 0;
  let scale: i64 = 0; // the rate is digits / 10^scale
  let read = false;
  let point = false;
  let i: u32 = 0;
  const negative = b.length > 0 && b[0] == 0x2d;
  if (negative || (b.length > 0 && b[0] == 0x2b)) i++;
  for (; i < b.length; i++) {
    const ch = b[i];
    if (ch == 0x2e && !point) {
      point = true;
      continue;
    }
    if (ch < 0x30 || ch > 0x39) break;
    read = true;
    if (digits < 100_000_000_000_000) {
      digits = digits * 10 + (ch - 0x30);
      if (point) scale++;
    } else if (!point) {
      scale--;
    }
  }
  if (!read) return NaN;
  if (i < b.length) {
    if ((b[i++] | 0x20) != 0x65 || i == b.length) return NaN;
    const down = b[i] == 0x2d;
    if ((down || b[i] == 0x2b) && ++i == b.length) return NaN;
    let exponent: i64 = 0;
    for (; i < b.length; i++) {
      const ch = b[i];
      if (ch < 0x30 || ch > 0x39) return NaN;
      if (exponent < 1_000_000_000_000) exponent = exponent * 10 + (ch - 0x30);
    }
    scale += down ? exponent : -exponent;
  }
  if (digits == 0) return 0;
  if (scale < -400 || scale > 400) return NaN;
  let rate = <f64>digits;
  for (; scale > 0; scale--) rate /= 10;
  for (; scale < 0; scale++) rate *= 10;
  if (rate == 0 || rate > f64.MAX_VALUE) return NaN;
  return negative ? -rate : rate;
}

function reserve(c: Call): i32 {
  const rate = parseRate(c.arg(2));
  if (isNaN(rate)) return c.fail("ERR bad error rate");
  if (!(rate > 0 && rate < 1)) return c.fail("ERR (0 < error rate range < 1)");
  if (!number.parse(c.arg(3))) return c.fail("ERR bad capacity");
  const capacity = number.value;
  if (capacity <= 0) return c.fail("ERR (capacity should be larger than 0)");
  const key = c.arg(1);
  const type = c.type(key);
  if (type <= Code.Error) return type;
  if (type == Type.Own) return c.fail("ERR item exists");
  if (type != Type.None) return Code.WrongType;
  if (!plan(rate, capacity)) return c.fail("ERR the filter would take more than 1 MiB");
  const r = create(c, key);
  if (r != Code.OK) return r;
  c.replySimple("OK");
  return Code.OK;
}

// The two hashes that all bits of an item are made of.
let hashA: u64 = 0;
let hashB: u64 = 0;

function hash(item: Bytes): void {
  let a: u64 = 14695981039346656037; // FNV-1a
  for (let i: u32 = 0; i < item.length; i++) a = (a ^ item[i]) * 1099511628211;
  let b = a; // splitmix64's finalizer makes a second hash of the first
  b = (b ^ (b >> 30)) * 0xbf58476d1ce4e5b9;
  b = (b ^ (b >> 27)) * 0x94d049bb133111eb;
  hashA = a;
  hashB = (b ^ (b >> 31)) | 1;
}

const byte = new Buffer(1).resize(1);

function add(c: Call): i32 {
  const key = c.arg(1);
  let r = read(c, key);
  if (r == Code.Nil) {
    plan(DEFAULT_RATE, DEFAULT_CAPACITY);
    r = create(c, key);
  }
  if (r == REPLIED) return Code.OK;
  if (r != Code.OK) return r;
  hash(c.arg(2));
  let fresh = false;
  for (let i: u64 = 0; i < filter.hashes; i++) {
    const n = (hashA + i * hashB) % filter.bits;
    const at = HEADER + <u32>(n / 8);
    const bit = <u8>1 << <u8>(n % 8);
    r = c.readKeyState(key, at, byte);
    if (r != 1) return r <= Code.Error ? r : c.fail(DAMAGED);
    if (byte[0] & bit) continue;
    if (!fresh && filter.items >= filter.capacity) return c.fail("ERR the filter is full");
    fresh = true;
    byte[0] = byte[0] | bit;
    r = c.writeKeyState(key, at, byte);
    if (r <= Code.Error) return r;
  }
  if (fresh) {
    filter.items++;
    r = c.writeKeyState(key, 0, head);
    if (r <= Code.Error) return r;
  }
  c.replyBool(fresh);
  return Code.OK;
}

function exists(c: Call): i32 {
  const key = c.arg(1);
  let r = read(c, key);
  if (r == REPLIED) return Code.OK;
  if (r <= Code.Error) return r;
  let there = r == Code.OK;
  if (there) hash(c.arg(2));
  for (let i: u64 = 0; there && i < filter.hashes; i++) {
    const n = (hashA + i * hashB) % filter.bits;
    r = c.readKeyState(key, HEADER + <u32>(n / 8), byte);
    if (r != 1) return r <= Code.Error ? r : c.fail(DAMAGED);
    there = (byte[0] & (<u8>1 << <u8>(n % 8))) != 0;
  }
  c.replyBool(there);
  return Code.OK;
}
