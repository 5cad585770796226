import { Args, Buffer, Bytes, Integer, utf8 } from "./bytes";
import { ClientField, Code, Type } from "./codes";
import * as host from "./host";
import { Reply } from "./reply";

function noArgument(): void {
  assert(false, "the command has fewer arguments");
}

/**
 * One call of a command, or of a timer, event or wake-up: its arguments, the keys it reaches, and its reply. It is
 * the frame itself that latchkey has written, and ends when the function that got it returns.
 *
 * Functions that return an i32 return a Code if it is Code.Error or below.
 */
@unmanaged
export class Call {
  /** The number of arguments, the command's name included. */
  argc: u32 = 0;
  /** How many of them are keys. */
  nkeys: u32 = 0;
  /** Which of them is the first key, 0 if none is. */
  firstKey: u32 = 0;
  /** The database that the call is in. */
  db: u32 = 0;

  /** The i-th argument, 0 being the name. */
  @inline
  arg(i: u32): Bytes {
    if (i >= this.argc) noArgument();
    return changetype<Bytes>(changetype<usize>(this) + offsetof<Call>() + (<usize>i << 3));
  }

  // Keys.

  /** Copies the string at key into a buffer: its length, Code.Nil for no key. */
  get(key: Bytes, into: Buffer): i32 {
    let n: i32;
    do n = host.get(key.ptr, key.length, into.ptr, into.capacity);
    while (!into.took(n));
    return n;
  }

  /** Writes a string, whatever was there: 1, or 0 if a flag forbids it. px above 0: the key expires px milliseconds
   *  after commit; 0: never. */
  set(key: Bytes, value: Bytes, px: i64 = 0, flags: u32 = 0): i32 {
    return host.set(key.ptr, key.length, value.ptr, value.length, flags, px);
  }

  /** Deletes a key of any type: 1, or 0 if there is none. */
  del(key: Bytes): i32 {
    return host.del(key.ptr, key.length);
  }

  /** 1 if the key exists, 0 if not. */
  exists(key: Bytes): i32 {
    return host.exists(key.ptr, key.length);
  }

  /** The Type of the value at key. */
  type(key: Bytes): i32 {
    return host.type(key.ptr, key.length);
  }

  /** Adds delta to the integer at key, 0 if there is none, and keeps its time to live: 1, and the sum is in sum. */
  incrBy(key: Bytes, delta: i64, sum: Integer): i32 {
    return host.incrby(key.ptr, key.length, delta, changetype<usize>(sum));
  }

  /** Writes value if the string at key is old: 1, 0 if it is another, Code.Nil for no key. px 0 keeps the time to
   *  live; above 0 the key expires px milliseconds after commit. */
  compareAndSet(key: Bytes, old: Bytes, value: Bytes, px: i64 = 0): i32 {
    return host.cas(key.ptr, key.length, old.ptr, old.length, value.ptr, value.length, px);
  }

  /** Deletes the key if the string at it is value: 1, 0 if it is another, Code.Nil for no key. */
  compareAndDelete(key: Bytes, value: Bytes): i32 {
    return host.cad(key.ptr, key.length, value.ptr, value.length);
  }

  /** compareAndDelete of two arguments by their indexes, as the client has sent them. As the first thing that a
   *  command does it is the quickest: the host mostly knows the answer before the command begins. An index that no
   *  argument has ends the call. */
  compareAndDeleteArgs(key: i32, value: i32): i32 {
    return host.cad_args(key, value);
  }

  /** The time to live in milliseconds, NO_TTL or NO_KEY. */
  pttl(key: Bytes): i64 {
    return host.pttl(key.ptr, key.length);
  }

  /** The key expires ms milliseconds after commit, with 0 never: 1, or 0 if there is none. */
  pexpire(key: Bytes, ms: i64): i32 {
    return host.pexpire(key.ptr, key.length, ms);
  }

  /** Sends a keyspace event of the module class about the key at commit. */
  notify(event: string, key: Bytes): i32 {
    const b = utf8(event);
    return host.notify(b.ptr, b.length, key.ptr, key.length);
  }

  // State of keys and of the module.

  /** Copies the state that this module keeps at key into a buffer, which gets its version, too: its length, Code.Nil
   *  for no key, Code.WrongType for any other value. */
  keyState(key: Bytes, into: Buffer): i32 {
    let n: i32;
    do n = host.key_state_get(key.ptr, key.length, into.ptr, into.capacity, changetype<usize>(into) + offsetof<Buffer>("version"));
    while (!into.took(n));
    return n;
  }

  /** Writes a state at key, as set writes a string; version says how it is encoded. */
  setKeyState(key: Bytes, state: Bytes, version: u32, px: i64 = 0, flags: u32 = 0): i32 {
    return host.key_state_set(key.ptr, key.length, state.ptr, state.length, version, flags, px);
  }

  /** Copies a part of the state at key, from offset on, over what a buffer holds: how many bytes of it there were,
   *  Code.Nil for no key. */
  readKeyState(key: Bytes, offset: u32, into: Buffer): i32 {
    return host.key_state_read(key.ptr, key.length, offset, into.ptr, into.length);
  }

  /** Overwrites a part of the state at key, in place: 1, Code.Nil for no key. */
  writeKeyState(key: Bytes, offset: u32, part: Bytes): i32 {
    return host.key_state_write(key.ptr, key.length, offset, part.ptr, part.length);
  }

  /** Copies the state of the module into a buffer, which gets its version, too: its length, Code.Nil if there is
   *  none yet. */
  state(into: Buffer): i32 {
    let n: i32;
    do n = host.state_get(into.ptr, into.capacity, changetype<usize>(into) + offsetof<Buffer>("version"));
    while (!into.took(n));
    return n;
  }

  /** Writes the state of the module: 1. */
  setState(state: Bytes, version: u32): i32 {
    return host.state_set(state.ptr, state.length, version);
  }

  // Other commands.

  /** Runs a command that the module may call, on keys that its own command declares. An error reply is a reply; see
   *  Reply.code for a command that was not run. */
  call(args: Args): Reply {
    return changetype<Reply>(host.call(args.frame, args.length));
  }

  // The reply: one of these, or the next element of an aggregate that was begun. Bytes are copied. What RESP2 has no
  // kind for it gets as Redis would send it.

  /** Replies an error, a code word and what is wrong, which undoes all that was written; the result is what the
   *  command returns then. */
  fail(text: string): i32 {
    const b = utf8(text);
    host.reply_error(b.ptr, b.length);
    return Code.OK;
  }

  replyNull(): void {
    host.reply_null();
  }

  replyInt(n: i64): void {
    host.reply_int(n);
  }

  replyDouble(f: f64): void {
    host.reply_double(f);
  }

  replyBool(b: bool): void {
    host.reply_bool(i32(b));
  }

  /** Replies a status, such as OK. It must have no line breaks. */
  replySimple(text: string): void {
    const b = utf8(text);
    host.reply_simple(b.ptr, b.length);
  }

  replyBulk(b: Bytes): void {
    host.reply_bulk(b.ptr, b.length);
  }

  /** Replies text, as a bulk string in UTF-8. */
  replyString(text: string): void {
    const b = utf8(text);
    host.reply_bulk(b.ptr, b.length);
  }

  /** Replies an integer of any size, in decimal digits. */
  replyBigNumber(digits: Bytes): void {
    host.reply_bignum(digits.ptr, digits.length);
  }

  /** Replies text with a format of three bytes, such as "txt" or "mkd". */
  replyVerbatim(format: string, text: Bytes): void {
    const f = utf8(format);
    assert(f.length == 3, "the format of a verbatim string has three bytes");
    host.reply_verbatim(f.ptr, text.ptr, text.length);
  }

  /** Begins an array of n replies, or of LATER. */
  replyArray(n: i32): void {
    host.reply_array(n);
  }

  /** Begins a map of n pairs: a key and a value, 2n replies by turns. */
  replyMap(n: i32): void {
    host.reply_map(n);
  }

  /** Begins a set of n replies. */
  replySet(n: i32): void {
    host.reply_set(n);
  }

  /** Ends an aggregate that was begun with LATER, which has n elements, of a map n pairs. */
  replyLen(n: i32): void {
    host.reply_len(n);
  }

  // Waiting, clients that go, timers.

  /** Has the client wait for a key that the command declares, for at most timeout milliseconds, 0 for ever. Return
   *  the result; what the call has changed is undone. lk_wake is called, with the token, when the key is changed,
   *  deleted or expires, and it is this client's turn. */
  block(key: Bytes, timeout: i64, token: i64 = 0): i32 {
    return host.block(changetype<usize>(key), 1, timeout, token);
  }

  /** As block, for any of several keys. */
  blockAny(keys: Args, timeout: i64, token: i64 = 0): i32 {
    return host.block(keys.frame, keys.length, timeout, token);
  }

  /** Wakes at commit those who wait for the key, though it does not change. */
  wakeKey(key: Bytes): i32 {
    return host.wake(key.ptr, key.length);
  }

  /** Has lk_closed called, with the key and the token, when the connection of the call's client ends. Of one client
   *  and key the last token counts. */
  bindClient(key: Bytes, token: i64): i32 {
    return host.bind_client(key.ptr, key.length, token);
  }

  /** Takes back what bindClient has bound to the key, for whatever client. */
  unbindClient(key: Bytes): i32 {
    return host.unbind_client(key.ptr, key.length);
  }

  /** Has lk_timer called with the token, ms milliseconds after commit: the timer's number. */
  setTimer(ms: i64, token: i64): i64 {
    return host.timer_set(ms, token);
  }

  /** Takes a timer back: 1, or 0 if there is none of that number. */
  cancelTimer(timer: i64): i32 {
    return host.timer_cancel(timer);
  }

  // The call itself.

  /** Unix time in milliseconds, the same throughout a call. */
  nowMS(): i64 {
    return host.now_ms();
  }

  /** A fencing number: greater than every one given before, and the same throughout a call. */
  fence(): i64 {
    return host.fence();
  }

  /** Fills what a buffer holds with random bytes. */
  random(into: Buffer): void {
    host.random(into.ptr, into.length);
  }

  /** Copies what is known of the client into a buffer, as text: its length, Code.Nil if the call has no client. */
  client(field: ClientField, into: Buffer): i32 {
    let n: i32;
    do n = host.client(field, into.ptr, into.capacity);
    while (!into.took(n));
    return n;
  }

  /** Copies the present value of a parameter that the manifest declares into a buffer, as text; a bool is "yes" or
   *  "no": its length, Code.Nil if none of that name is declared. */
  config(name: string, into: Buffer): i32 {
    const b = utf8(name);
    let n: i32;
    do n = host.config_get(b.ptr, b.length, into.ptr, into.capacity);
    while (!into.took(n));
    return n;
  }
}

/** The call that lk_timer is in, which has no frame. */
export const noFrame = changetype<Call>(memory.data(16, 8));
