/** The whole SDK in use: sdk.transcript says what it comes to. examples/plugins/build.sh builds and tries it. */
import { Args, Buffer, Bytes, Call, ClientField, Code, EventClass, Integer, Kind, LATER, Level, NOT_INT, NO_KEY, NO_TTL, SetFlag, Type, log, noFrame } from "latchkey";

export { lk_abi, lk_arena } from "latchkey";

export function lk_init(): i32 {
  return Code.OK;
}

const buf = new Buffer(4);
const number = new Integer();
const words = new Args();
const EVENTS = Bytes.of("sdk:events");
const TIMER = Bytes.of("sdk:timer");
const LRANGE = Bytes.of("LRANGE");
const ZERO = Bytes.of("0");
const END = Bytes.of("-1");

export function lk_command(id: i32, argc: i32, c: Call): i32 {
  switch (id) {
    case 1: return replies(c);
    case 2: return keys(c);
    case 3: return state(c);
    case 4: return called(c);
    case 5: return surroundings(c);
    case 6: return timers(c);
    case 7: return c.blockAny(words.clear().add(c.arg(1)).add(c.arg(2)), 20); // without lk_wake the reply is a null
    case 8: return word(c);
    case 9: return strings(c);
    case 10: return garbage(c);
    case 11: return c.arg(1).length; // there is none
  }
  return Code.Invalid;
}

// SDK.REPLIES
function replies(c: Call): i32 {
  c.replyArray(LATER);
  c.replyNull();
  c.replyInt(-5);
  c.replyDouble(1.5);
  c.replyBool(true);
  c.replySimple("OK");
  c.replyBulk(buf.setInt(i64.MIN_VALUE));
  c.replyString("é€😀");
  c.replyBigNumber(buf.setText("12345678901234567890123"));
  c.replyVerbatim("txt", buf.setText("some"));
  c.replyMap(1);
  c.replyString("k");
  c.replyInt(1);
  c.replySet(1);
  c.replyInt(2);
  c.replyLen(11);
  return Code.OK;
}

// SDK.KEYS key
function keys(c: Call): i32 {
  const key = c.arg(1);
  c.replyArray(LATER);
  c.replyInt(c.type(key));
  c.replyInt(c.exists(key));
  c.replyBool(c.pttl(key) == NO_KEY);
  c.replyInt(c.set(key, buf.setInt(41)));
  c.replyInt(c.set(key, buf.setInt(42), 0, SetFlag.NX));
  c.replyBool(c.pttl(key) == NO_TTL);
  c.replyInt(c.incrBy(key, 1, number));
  c.replyInt(number.value);
  c.replyInt(c.pexpire(key, 100000));
  c.replyInt(c.pttl(key));
  c.replyInt(c.compareAndSet(key, buf.setInt(42), LRANGE));
  c.replyInt(c.get(key, buf));
  c.replyBulk(buf);
  c.replyInt(c.notify("myevent", key));
  c.replyInt(c.compareAndDeleteArgs(1, 0));
  c.replyInt(c.compareAndDelete(key, LRANGE));
  c.replyInt(c.get(key, buf));
  c.replyInt(c.setKeyState(key, buf.setText("a state"), 7));
  c.replyInt(c.keyState(key, buf));
  c.replyInt(buf.version);
  c.replyBulk(buf);
  c.replyInt(c.readKeyState(key, 2, buf.resize(3)));
  c.replyBulk(buf);
  c.replyInt(c.writeKeyState(key, 2, buf.setText("STA")));
  buf.free(); // the next call makes room
  c.replyInt(c.keyState(key, buf));
  c.replyBulk(buf);
  c.replyInt(c.wakeKey(key));
  c.replyBool(c.type(key) == Type.Own);
  c.replyInt(c.del(key));
  c.replyLen(29);
  return Code.OK;
}

// SDK.STATE adds a byte to the state of the module.
function state(c: Call): i32 {
  const n = c.state(buf);
  if (n == Code.Nil) buf.setText("1");
  else buf.resize(buf.length + 1)[buf.length - 1] = 0x31;
  const r = c.setState(buf, 3);
  if (r <= Code.Error) return r;
  c.replyBulk(buf);
  return Code.OK;
}

// SDK.CALL key
function called(c: Call): i32 {
  const r = c.call(words.clear().add(LRANGE).add(c.arg(1)).add(ZERO).add(END));
  if (r.code <= Code.Error) return r.code;
  if (r.kind == Kind.Error) {
    r.bytes(buf);
    return c.fail(buf.toString());
  }
  c.replyArray(r.length);
  for (let i = 0; r.elem(i).code != Code.Nil; i++) {
    r.elem(i).bytes(buf);
    c.replyBulk(buf);
  }
  r.free();
  return Code.OK;
}

// SDK.SURROUNDINGS
function surroundings(c: Call): i32 {
  c.replyArray(6);
  c.client(ClientField.User, buf);
  c.replyBulk(buf);
  c.config("greeting", buf);
  c.replyBulk(buf);
  c.replyInt(c.config("none", buf));
  c.random(buf.resize(8));
  c.replyInt(buf.length);
  c.replyBool(c.nowMS() > 1600000000000 && c.fence() > 0);
  c.replyInt(c.argc + c.nkeys + c.firstKey + c.db);
  log(Level.Debug, "a line é");
  return Code.OK;
}

// SDK.TIMERS ms
function timers(c: Call): i32 {
  if (!number.parse(c.arg(1))) return c.fail(NOT_INT);
  const timer = c.setTimer(number.value, 77);
  if (timer <= Code.Error) return <i32>timer;
  c.replyInt(c.cancelTimer(timer + 1));
  return Code.OK;
}

// SDK.WORD word
function word(c: Call): i32 {
  const w = c.arg(1);
  c.replyBool(w.is("px") && !w.is("pxx") && !w.is("py") && w[0] != 0 && w.from(1).length == 1 && !w.equals(EVENTS));
  return Code.OK;
}

// SDK.STRINGS word... is of strings and an array, which are collected.
function strings(c: Call): i32 {
  const parts: string[] = [];
  for (let i: u32 = 1; i < c.argc; i++) parts.push(c.arg(i).toString().toUpperCase());
  c.replyString(parts.join("-"));
  return Code.OK;
}

// SDK.GARBAGE n makes more strings in one call than there is memory for.
function garbage(c: Call): i32 {
  if (!number.parse(c.arg(1))) return c.fail(NOT_INT);
  let length = 0;
  for (let i: i64 = 0; i < number.value; i++) length += ("a" + i.toString()).length;
  c.replyInt(length);
  return Code.OK;
}

export function lk_timer(token: i64): i32 {
  const r = noFrame.set(TIMER, buf.setInt(token));
  return r < 0 ? r : Code.OK;
}
export function lk_event(eventClass: EventClass, argc: i32, c: Call): i32 {
  if (eventClass != EventClass.Set || !c.arg(0).is("sadd")) return Code.OK;
  const r = c.set(EVENTS, c.arg(1));
  return r < 0 ? r : Code.OK;
}
