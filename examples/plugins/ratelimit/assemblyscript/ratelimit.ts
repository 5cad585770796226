/**
 * The command of redis-cell: a limit on how often something may happen, by the generic cell rate algorithm.
 *
 *     CL.THROTTLE key max_burst count period [quantity]
 *
 * It allows count actions in period seconds, and max_burst at once beyond. The reply has five integers: 0 if the
 * action is allowed and 1 if not; the limit, which is max_burst+1; how much of it remains; in how many seconds to try
 * again, -1 if the action is allowed; in how many seconds the whole limit is there again.
 */
import { Buffer, Call, Code, Integer, NOT_INT } from "latchkey";

export { lk_abi, lk_arena } from "latchkey";

export function lk_init(): i32 {
  return Code.OK;
}

export function lk_command(id: i32, argc: i32, c: Call): i32 {
  return throttle(c); // the manifest has one command
}

// Times are in nanoseconds.
const SECOND: i64 = 1000000000;
const MILLISECOND: i64 = 1000000;

// What the arguments and times may be at most, so that no sum overflows.
const MAX_ARG: i64 = 1000000000;
const MAX_TIME: i64 = i64.MAX_VALUE / 4;

// A product of what is not negative, or more than MAX_TIME.
function times(a: i64, b: i64): i64 {
  return b != 0 && a > MAX_TIME / b ? MAX_TIME + 1 : a * b;
}

// Rounds up, so that nobody tries again too early, what has a millisecond or more beyond a whole second.
function seconds(t: i64): i64 {
  return t / SECOND + i64(t % SECOND >= MILLISECOND);
}

const burst = new Integer();
const count = new Integer();
const period = new Integer();
const quantity = new Integer();
const stored = new Integer();
const text = new Buffer(32);

function throttle(c: Call): i32 {
  if (c.argc > 6) return c.fail("ERR wrong number of arguments for 'cl.throttle' command");
  quantity.value = 1;
  for (let i: u32 = 2; i < c.argc; i++) {
    const n = i == 2 ? burst : i == 3 ? count : i == 4 ? period : quantity;
    if (!n.parse(c.arg(i))) return c.fail(NOT_INT);
    if (n.value < 0 || n.value > MAX_ARG) return c.fail("ERR max_burst, count, period and quantity must be 0 to 1000000000");
  }
  if (count.value == 0 || period.value == 0) return c.fail("ERR zero rates are not supported");
  // The time between two actions at the allowed rate, and how far ahead of that rate somebody may get.
  const interval = <i64>(<f64>(period.value * SECOND) / <f64>count.value);
  const tolerance = times(interval, burst.value + 1);
  if (interval == 0 || tolerance > MAX_TIME) return c.fail("ERR the rate is out of range");
  const increment = times(interval, quantity.value);
  if (increment > MAX_TIME) return c.fail("ERR the quantity is out of range");

  const key = c.arg(1);
  const now = c.nowMS() * MILLISECOND;
  let arrival = now; // when the next action would be due at the allowed rate
  let r = c.get(key, text);
  if (r <= Code.Error) return r;
  const first = r == Code.Nil;
  if (!first) {
    if (!stored.parse(text) || stored.value < 0 || stored.value > MAX_TIME * 3) return c.fail("ERR the key does not hold a limit");
    arrival = stored.value;
  }
  const next = max(now, arrival) + increment;
  const early = next - tolerance - now; // by how much this action comes too early
  let left = next - now;
  let retry: i64 = -1;
  if (early > 0) {
    left = arrival - now;
    if (increment <= tolerance) retry = seconds(early);
  } else if (quantity.value > 0 || first) {
    // Below a millisecond there is nothing to remember.
    r = c.set(key, text.setInt(next), max(left / MILLISECOND, 1));
    if (r <= Code.Error) return r;
  }
  const free = tolerance - left;
  c.replyArray(5);
  c.replyInt(i64(early > 0));
  c.replyInt(burst.value + 1);
  c.replyInt(free > -interval ? free / interval : 0);
  c.replyInt(retry);
  c.replyInt(seconds(left));
  return Code.OK;
}
