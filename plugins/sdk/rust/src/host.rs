//! The host functions, as docs/PLUGIN-ABI.md has them. Lengths are `usize`, which is 32 bits wide
//! where they are called. None keeps a pointer.

/// Declares the imports; on other targets, where a plugin's own tests may run, they panic.
macro_rules! host {
    ($(fn $name:ident($($param:ident: $type:ty),*) $(-> $result:ty)? = $import:literal;)*) => {
        #[cfg(target_arch = "wasm32")]
        #[link(wasm_import_module = "latchkey_v1")]
        extern "C" {
            $(#[link_name = $import] pub(crate) fn $name($($param: $type),*) $(-> $result)?;)*
        }
        $(
            #[cfg(not(target_arch = "wasm32"))]
            pub(crate) unsafe fn $name($(_: $type),*) $(-> $result)? {
                panic!(concat!($import, " can be called in latchkey only"))
            }
        )*
    };
}

host! {
    fn get(key: *const u8, key_len: usize, buf: *mut u8, cap: usize) -> i32 = "get";
    fn set(key: *const u8, key_len: usize, value: *const u8, value_len: usize, flags: u32, px: i64) -> i32 = "set";
    fn del(key: *const u8, key_len: usize) -> i32 = "del";
    fn exists(key: *const u8, key_len: usize) -> i32 = "exists";
    fn key_type(key: *const u8, key_len: usize) -> i32 = "type";
    fn incrby(key: *const u8, key_len: usize, delta: i64, out: *mut i64) -> i32 = "incrby";
    fn cas(key: *const u8, key_len: usize, old: *const u8, old_len: usize, new: *const u8, new_len: usize, px: i64) -> i32 = "cas";
    fn cad(key: *const u8, key_len: usize, value: *const u8, value_len: usize) -> i32 = "cad";
    fn cad_args(key: usize, value: usize) -> i32 = "cad_args";
    fn pttl(key: *const u8, key_len: usize) -> i64 = "pttl";
    fn pexpire(key: *const u8, key_len: usize, ms: i64) -> i32 = "pexpire";

    fn key_state_get(key: *const u8, key_len: usize, buf: *mut u8, cap: usize, version: *mut u32) -> i32 = "key_state_get";
    fn key_state_set(key: *const u8, key_len: usize, state: *const u8, state_len: usize, version: u32, flags: u32, px: i64) -> i32 = "key_state_set";
    fn key_state_read(key: *const u8, key_len: usize, offset: u32, buf: *mut u8, cap: usize) -> i32 = "key_state_read";
    fn key_state_write(key: *const u8, key_len: usize, offset: u32, part: *const u8, part_len: usize) -> i32 = "key_state_write";
    fn state_get(buf: *mut u8, cap: usize, version: *mut u32) -> i32 = "state_get";
    fn state_set(state: *const u8, len: usize, version: u32) -> i32 = "state_set";

    fn call(argv: *const crate::Arg<'_>, argc: usize) -> i32 = "call";
    fn call_type(handle: i32) -> i32 = "call_type";
    fn call_int(handle: i32) -> i64 = "call_int";
    fn call_double(handle: i32) -> f64 = "call_double";
    fn call_len(handle: i32) -> i32 = "call_len";
    fn call_elem(handle: i32, index: usize) -> i32 = "call_elem";
    fn call_bytes(handle: i32, buf: *mut u8, cap: usize) -> i32 = "call_bytes";
    fn call_free(handle: i32) = "call_free";

    fn reply_null() = "reply_null";
    fn reply_int(n: i64) = "reply_int";
    fn reply_double(f: f64) = "reply_double";
    fn reply_bool(b: i32) = "reply_bool";
    fn reply_simple(text: *const u8, len: usize) = "reply_simple";
    fn reply_bulk(bytes: *const u8, len: usize) = "reply_bulk";
    fn reply_error(text: *const u8, len: usize) = "reply_error";
    fn reply_bignum(digits: *const u8, len: usize) = "reply_bignum";
    fn reply_verbatim(format: *const u8, text: *const u8, len: usize) = "reply_verbatim";
    fn reply_array(n: u32) = "reply_array";
    fn reply_map(n: u32) = "reply_map";
    fn reply_set(n: u32) = "reply_set";
    fn reply_len(n: u32) = "reply_len";

    fn block(keys: *const crate::Arg<'_>, nkeys: usize, timeout: i64, token: i64) -> i32 = "block";
    fn wake(key: *const u8, key_len: usize) -> i32 = "wake";
    fn bind_client(key: *const u8, key_len: usize, token: i64) -> i32 = "bind_client";
    fn unbind_client(key: *const u8, key_len: usize) -> i32 = "unbind_client";
    fn timer_set(ms: i64, token: i64) -> i64 = "timer_set";
    fn timer_cancel(timer: i64) -> i32 = "timer_cancel";
    fn notify(event: *const u8, event_len: usize, key: *const u8, key_len: usize) -> i32 = "notify";

    fn config_get(name: *const u8, name_len: usize, buf: *mut u8, cap: usize) -> i32 = "config_get";
    fn random(buf: *mut u8, len: usize) = "random";
    fn client(field: i32, buf: *mut u8, cap: usize) -> i32 = "client";
    fn now_ms() -> i64 = "now_ms";
    fn fence() -> i64 = "fence";
    fn log(level: i32, text: *const u8, len: usize) = "log";
}
