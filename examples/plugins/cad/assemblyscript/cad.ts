/**
 * Compares the string at a key with a value, and deletes it, replaces it, or gives it a new time to live if they are
 * equal. All three reply 1 if they were, 0 if not, -1 if there is no such key.
 *
 *     CAD.WASM key value                      compare and delete
 *     CAS.WASM key old new [PX milliseconds]  compare and set
 *     CAE.WASM key value milliseconds         compare and expire
 */
import { Buffer, Call, Code, Integer, NOT_INT } from "latchkey";

export { lk_abi, lk_arena } from "latchkey";

export function lk_init(): i32 {
  return Code.OK;
}

export function lk_command(id: i32, argc: i32, c: Call): i32 {
  switch (id) {
    case 1: return compareAndDelete(c);
    case 2: return compareAndSet(c);
    case 3: return compareAndExpire(c);
  }
  return Code.Invalid; // the manifest has no other
}

// Replies a host function's result, unless that is an error.
@inline
function answer(c: Call, result: i32): i32 {
  if (result <= Code.Error) return result;
  c.replyInt(result);
  return Code.OK;
}

function compareAndDelete(c: Call): i32 {
  return answer(c, c.compareAndDeleteArgs(1, 2));
}

const ms = new Integer();

// Whether a key can live for ms from now on; Redis refuses times that overflow, too.
function lasts(c: Call): bool {
  return ms.value > 0 && ms.value <= i64.MAX_VALUE - c.nowMS();
}

function compareAndSet(c: Call): i32 {
  ms.value = 0;
  if (c.argc == 6 && c.arg(4).is("px")) {
    if (!ms.parse(c.arg(5))) return c.fail(NOT_INT);
    if (!lasts(c)) return c.fail("ERR invalid expire time in 'cas.wasm' command");
  } else if (c.argc != 4) {
    return c.fail("ERR syntax error");
  }
  return answer(c, c.compareAndSet(c.arg(1), c.arg(2), c.arg(3), ms.value));
}

// Room for what compareAndExpire compares; a large value's is given back.
const held = new Buffer(256);

function compareAndExpire(c: Call): i32 {
  if (!ms.parse(c.arg(3))) return c.fail(NOT_INT);
  if (!lasts(c)) return c.fail("ERR invalid expire time in 'cae.wasm' command");
  const n = c.get(c.arg(1), held);
  if (n < 0) return answer(c, n);
  const equal = held.equals(c.arg(2));
  if (held.capacity > 4096) held.free();
  if (!equal) return answer(c, 0);
  const r = c.pexpire(c.arg(1), ms.value);
  return r <= Code.Error ? r : answer(c, 1);
}
