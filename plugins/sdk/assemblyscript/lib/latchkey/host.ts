// The host functions as they are: docs/PLUGIN-ABI.md says what each does. Pointers and lengths are those of bytes in
// this module's memory.

@external("latchkey_v1", "get")
export declare function get(key: usize, keyLen: u32, buf: usize, cap: u32): i32;
@external("latchkey_v1", "set")
export declare function set(key: usize, keyLen: u32, value: usize, valueLen: u32, flags: u32, px: i64): i32;
@external("latchkey_v1", "del")
export declare function del(key: usize, keyLen: u32): i32;
@external("latchkey_v1", "exists")
export declare function exists(key: usize, keyLen: u32): i32;
@external("latchkey_v1", "type")
export declare function type(key: usize, keyLen: u32): i32;
@external("latchkey_v1", "incrby")
export declare function incrby(key: usize, keyLen: u32, delta: i64, out: usize): i32;
@external("latchkey_v1", "cas")
export declare function cas(key: usize, keyLen: u32, old: usize, oldLen: u32, value: usize, valueLen: u32, px: i64): i32;
@external("latchkey_v1", "cad")
export declare function cad(key: usize, keyLen: u32, value: usize, valueLen: u32): i32;
@external("latchkey_v1", "cad_args")
export declare function cad_args(key: u32, value: u32): i32;
@external("latchkey_v1", "pttl")
export declare function pttl(key: usize, keyLen: u32): i64;
@external("latchkey_v1", "pexpire")
export declare function pexpire(key: usize, keyLen: u32, ms: i64): i32;

@external("latchkey_v1", "key_state_get")
export declare function key_state_get(key: usize, keyLen: u32, buf: usize, cap: u32, version: usize): i32;
@external("latchkey_v1", "key_state_set")
export declare function key_state_set(key: usize, keyLen: u32, state: usize, stateLen: u32, version: u32, flags: u32, px: i64): i32;
@external("latchkey_v1", "key_state_read")
export declare function key_state_read(key: usize, keyLen: u32, offset: u32, buf: usize, cap: u32): i32;
@external("latchkey_v1", "key_state_write")
export declare function key_state_write(key: usize, keyLen: u32, offset: u32, part: usize, partLen: u32): i32;
@external("latchkey_v1", "state_get")
export declare function state_get(buf: usize, cap: u32, version: usize): i32;
@external("latchkey_v1", "state_set")
export declare function state_set(state: usize, stateLen: u32, version: u32): i32;

@external("latchkey_v1", "call")
export declare function call(frame: usize, argc: u32): i32;
@external("latchkey_v1", "call_type")
export declare function call_type(handle: i32): i32;
@external("latchkey_v1", "call_int")
export declare function call_int(handle: i32): i64;
@external("latchkey_v1", "call_double")
export declare function call_double(handle: i32): f64;
@external("latchkey_v1", "call_len")
export declare function call_len(handle: i32): i32;
@external("latchkey_v1", "call_elem")
export declare function call_elem(handle: i32, index: u32): i32;
@external("latchkey_v1", "call_bytes")
export declare function call_bytes(handle: i32, buf: usize, cap: u32): i32;
@external("latchkey_v1", "call_free")
export declare function call_free(handle: i32): void;

@external("latchkey_v1", "reply_null")
export declare function reply_null(): void;
@external("latchkey_v1", "reply_int")
export declare function reply_int(n: i64): void;
@external("latchkey_v1", "reply_double")
export declare function reply_double(f: f64): void;
@external("latchkey_v1", "reply_bool")
export declare function reply_bool(b: i32): void;
@external("latchkey_v1", "reply_simple")
export declare function reply_simple(text: usize, len: u32): void;
@external("latchkey_v1", "reply_bulk")
export declare function reply_bulk(bytes: usize, len: u32): void;
@external("latchkey_v1", "reply_error")
export declare function reply_error(text: usize, len: u32): void;
@external("latchkey_v1", "reply_bignum")
export declare function reply_bignum(digits: usize, len: u32): void;
@external("latchkey_v1", "reply_verbatim")
export declare function reply_verbatim(format: usize, text: usize, len: u32): void;
@external("latchkey_v1", "reply_array")
export declare function reply_array(n: u32): void;
@external("latchkey_v1", "reply_map")
export declare function reply_map(n: u32): void;
@external("latchkey_v1", "reply_set")
export declare function reply_set(n: u32): void;
@external("latchkey_v1", "reply_len")
export declare function reply_len(n: u32): void;

@external("latchkey_v1", "block")
export declare function block(frame: usize, nkeys: u32, timeout: i64, token: i64): i32;
@external("latchkey_v1", "wake")
export declare function wake(key: usize, keyLen: u32): i32;
@external("latchkey_v1", "bind_client")
export declare function bind_client(key: usize, keyLen: u32, token: i64): i32;
@external("latchkey_v1", "unbind_client")
export declare function unbind_client(key: usize, keyLen: u32): i32;
@external("latchkey_v1", "timer_set")
export declare function timer_set(ms: i64, token: i64): i64;
@external("latchkey_v1", "timer_cancel")
export declare function timer_cancel(timer: i64): i32;
@external("latchkey_v1", "notify")
export declare function notify(event: usize, eventLen: u32, key: usize, keyLen: u32): i32;

@external("latchkey_v1", "config_get")
export declare function config_get(name: usize, nameLen: u32, buf: usize, cap: u32): i32;
@external("latchkey_v1", "random")
export declare function random(buf: usize, len: u32): void;
@external("latchkey_v1", "client")
export declare function client(field: i32, buf: usize, cap: u32): i32;
@external("latchkey_v1", "now_ms")
export declare function now_ms(): i64;
@external("latchkey_v1", "fence")
export declare function fence(): i64;
@external("latchkey_v1", "log")
export declare function log(level: i32, text: usize, len: u32): void;
