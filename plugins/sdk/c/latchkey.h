/*
 * latchkey.h - write latchkey plugins in C.
 *
 * A plugin is a WebAssembly module. latchkey calls what it exports (the guest
 * side, below), and it calls what latchkey provides as import module
 * "latchkey_v1" (the host side). All of it is declared here; there is nothing to
 * link. Build with:
 *
 *   clang --target=wasm32 -O2 -ffreestanding -nostdlib -mcpu=mvp -mbulk-memory \
 *     -Wl,--no-entry -Wl,-z,stack-size=16384 -Wl,--initial-memory=131072 \
 *     -Wl,--strip-all -I plugins/sdk/c plugin.c -o plugin.wasm
 *
 * What to keep in mind:
 *   - A command is a transaction. If it fails or traps, all it wrote is undone.
 *   - Any call may reach any instance of the plugin: a global variable is a
 *     cache, never a place for what must last.
 *   - A frame, and what its arguments point to, is valid until lk_command returns.
 *   - A pointer or length that reaches outside of memory traps.
 */
#ifndef LATCHKEY_H
#define LATCHKEY_H

#include <stdint.h>

#define LK_ABI 1

/* Errors are this and below in every function, so that none is taken for a
 * length, a number of keys or a time to live. */
#define LK_ERROR (-100)
#define LK_EWRONGTYPE (-100) /* the key holds a value of another type */
#define LK_EDENIED (-101)    /* not declared by the command's key spec, or not granted to the plugin */
#define LK_EOOM (-102)       /* the server's maxmemory is reached */
#define LK_EINVALID (-103)   /* an argument is out of range */
#define LK_ENOTINT (-104)    /* the value is no integer, or the result would be none */
#define LK_ELIMIT (-105)     /* there are as many as there may be */
#define LK_ECONTEXT (-106)   /* not possible where the command is called from */

#define LK_OK 0
#define LK_NIL (-1) /* the key does not exist */

/* ---- guest side: what a plugin exports ---- */

#define LK_EXPORT(name) __attribute__((export_name(#name))) name

struct lk_arg {
	const uint8_t *ptr;
	uint32_t len;
};

/* The arguments of a command, in memory that lk_arena returned, aligned to 8. */
struct lk_frame {
	uint32_t argc;      /* arguments, the command's name included */
	uint32_t nkeys;     /* keys among them */
	uint32_t first_key; /* index of the first key, 0 if there is none */
	uint32_t db;        /* the database that the call is in */
	struct lk_arg args[];
};

/* Called once for each instance, before any command: 0, or an error, which
 * refuses the plugin. */
int32_t lk_init(void);

/* Called for each command with the id its manifest gives it. The number of
 * arguments is right by its arity. Give exactly one reply and return LK_OK; or
 * return an error (one of a host function's, or LK_EINVALID) to have everything
 * undone and the client told, in Redis's words where there are some. */
int32_t lk_command(int32_t id, uint32_t argc, const struct lk_frame *frame);

/* The functions below may be missing. Each is a transaction as a command is.
 *
 * lk_wake is called for a client that waits since lk_block, with the token given
 * there and the frame of its command: because one of the keys has changed, was
 * deleted or has expired (LK_WOKEN), or for the last time (LK_TIMEOUT). Give the
 * reply and return LK_OK, or give none and return LK_AGAIN to go on waiting
 * without losing the place. Without it lk_command is called again. */
#define LK_WOKEN 0
#define LK_TIMEOUT 1
#define LK_AGAIN 1
int32_t lk_wake(int64_t token, int32_t reason, uint32_t argc, const struct lk_frame *frame);

/* The rest run without a client and give no reply. They reach every key that is
 * granted. Return LK_OK, or anything else to have everything undone.
 *
 * For a timer that is due. The manifest asks for "timers". */
int32_t lk_timer(int64_t token);

/* For a keyspace event of a class that the manifest names in "events"; frame has
 * the event's name and the key. */
#define LK_EVENT_GENERIC 0
#define LK_EVENT_STRING 1
#define LK_EVENT_LIST 2
#define LK_EVENT_SET 3
#define LK_EVENT_HASH 4
#define LK_EVENT_ZSET 5
#define LK_EVENT_STREAM 6
#define LK_EVENT_EXPIRED 7
#define LK_EVENT_EVICTED 8
#define LK_EVENT_NEW 9
#define LK_EVENT_MODULE 10
int32_t lk_event(int32_t event_class, uint32_t argc, const struct lk_frame *frame);

/* For a key that lk_bind_client has bound, when the connection of its client has
 * ended; frame has the key. The manifest asks for "clients". */
int32_t lk_closed(int64_t token, uint32_t argc, const struct lk_frame *frame);

/* LK_MODULE(), once in a plugin, defines the two exports that are alike in all.
 *
 * lk_arena returns room for a frame of size bytes, aligned to 8, or 0 if there
 * is none. latchkey calls it once, and again when a frame outgrows the room. */
#define LK_MODULE()                                                                        \
	int32_t LK_EXPORT(lk_abi)(void) { return LK_ABI; }                                 \
	extern uint8_t __heap_base;                                                        \
	uint8_t *LK_EXPORT(lk_arena)(uint32_t size)                                        \
	{                                                                                  \
		uint32_t base = ((uint32_t)&__heap_base + 7) & ~7u;                        \
		uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;             \
		uint64_t want = (uint64_t)base + size;                                     \
		if (want > have) {                                                         \
			uint32_t pages = (uint32_t)((want - have + 65535) >> 16);          \
			if (__builtin_wasm_memory_grow(0, pages) == (__SIZE_TYPE__)-1)     \
				return 0;                                                  \
		}                                                                          \
		return (uint8_t *)base;                                                    \
	}                                                                                  \
	extern uint8_t __heap_base

/* LK_MANIFEST("manifest.json"), once in a plugin, puts that file into the module.
 * The path is relative to where the compiler runs. */
#define LK_MANIFEST(file)                                                                  \
	__asm__(".section .custom_section.latchkey.manifest,\"\",@\n"                      \
		".incbin \"" file "\"\n")

/* ---- host side: what latchkey provides ---- */

#define LK_IMPORT(name) __attribute__((import_module("latchkey_v1"), import_name(name)))

/* A command reaches the keys that its manifest declares and grants; for any other
 * key these return LK_EDENIED. What a call has written it also reads. */

/* Copies the string at key into buf and returns its length. If that is larger
 * than cap nothing is copied: call again with more room. LK_NIL for no key. */
LK_IMPORT("get")
int32_t lk_get(const void *key, uint32_t key_len, void *buf, uint32_t cap);

/* Writes a string, whatever was there: 1, or 0 if a flag forbids it. px above 0:
 * the key expires px milliseconds after commit; 0: never, but for LK_KEEPTTL. */
#define LK_NX 1      /* only if the key does not exist */
#define LK_XX 2      /* only if it does */
#define LK_KEEPTTL 4 /* keep the time to live; px must be 0 */
#define LK_AT 8      /* px is a Unix time in milliseconds */
LK_IMPORT("set")
int32_t lk_set(const void *key, uint32_t key_len, const void *value, uint32_t value_len, uint32_t flags,
	       int64_t px);

/* Deletes a key of any type: 1, or 0 if it does not exist. */
LK_IMPORT("del")
int32_t lk_del(const void *key, uint32_t key_len);

/* 1 if the key exists, 0 if not. */
LK_IMPORT("exists")
int32_t lk_exists(const void *key, uint32_t key_len);

/* The type of the value, one of LK_TYPE_. */
#define LK_TYPE_NONE 0 /* the key does not exist */
#define LK_TYPE_STRING 1
#define LK_TYPE_LIST 2
#define LK_TYPE_SET 3
#define LK_TYPE_HASH 4
#define LK_TYPE_ZSET 5
#define LK_TYPE_STREAM 6
#define LK_TYPE_OWN 7   /* a state that this plugin keeps at the key */
#define LK_TYPE_OTHER 8 /* that of another plugin */
LK_IMPORT("type")
int32_t lk_type(const void *key, uint32_t key_len);

/* Adds delta to the integer at key, 0 if there is none, and keeps its time to
 * live: 1, and the sum is in *out. LK_ENOTINT if it is or would be no integer. */
LK_IMPORT("incrby")
int32_t lk_incrby(const void *key, uint32_t key_len, int64_t delta, int64_t *out);

/* Compare and set: 1 if the string at key was equal to old and is new_value now,
 * 0 if it differs, LK_NIL if there is none. px 0 keeps the time to live; above 0
 * the key expires px milliseconds after commit. */
LK_IMPORT("cas")
int32_t lk_cas(const void *key, uint32_t key_len, const void *old, uint32_t old_len, const void *new_value,
	       uint32_t new_len, int64_t px);

/* Compare and delete: 1 if the string at key was equal to value and is gone, 0 if
 * it differs, LK_NIL if there is none. */
LK_IMPORT("cad")
int32_t lk_cad(const void *key, uint32_t key_len, const void *value, uint32_t value_len);

/* lk_cad of two arguments of the command by their indexes, as the client has sent them.
 * As the first thing that a command asks for it is the quickest: the host mostly knows
 * the answer before the command begins. An index that no argument has traps. */
LK_IMPORT("cad_args")
int32_t lk_cad_args(uint32_t key, uint32_t value);

/* The time to live in milliseconds, -1 if the key never expires, -2 if it does
 * not exist. */
LK_IMPORT("pttl")
int64_t lk_pttl(const void *key, uint32_t key_len);

/* The key expires ms milliseconds after commit, with 0 never: 1, or 0 if it does
 * not exist. */
LK_IMPORT("pexpire")
int32_t lk_pexpire(const void *key, uint32_t key_len, int64_t ms);

/* The state of a key: bytes that only this plugin can read, with a number that
 * says how they are encoded. Clients see a key of the plugin's own type.
 *
 * lk_key_state_get is as lk_get, and sets *version. LK_EWRONGTYPE for any other
 * value. */
LK_IMPORT("key_state_get")
int32_t lk_key_state_get(const void *key, uint32_t key_len, void *buf, uint32_t cap, uint32_t *version);

/* As lk_set, with its flags: 1, or 0 if a flag forbids it. */
LK_IMPORT("key_state_set")
int32_t lk_key_state_set(const void *key, uint32_t key_len, const void *state, uint32_t state_len, uint32_t version,
			 uint32_t flags, int64_t px);

/* Copies bytes from offset on, as many as there are and cap allows, and returns
 * their number. LK_NIL for no key, LK_EINVALID for an offset beyond the end. */
LK_IMPORT("key_state_read")
int32_t lk_key_state_read(const void *key, uint32_t key_len, uint32_t offset, void *buf, uint32_t cap);

/* Overwrites bytes in place: 1, LK_NIL for no key, LK_EINVALID for a part that
 * reaches beyond the end. */
LK_IMPORT("key_state_write")
int32_t lk_key_state_write(const void *key, uint32_t key_len, uint32_t offset, const void *part, uint32_t part_len);

/* The state of the plugin. The manifest asks for it with "state": "read" or
 * "write". lk_state_get is as lk_get, and sets *version; lk_state_set returns 1. */
LK_IMPORT("state_get")
int32_t lk_state_get(void *buf, uint32_t cap, uint32_t *version);
LK_IMPORT("state_set")
int32_t lk_state_set(const void *state, uint32_t len, uint32_t version);

/* Runs a command that the manifest names in "commands", on declared keys: a
 * handle of its reply, above 0, also if that is an error. */
LK_IMPORT("call")
int32_t lk_call(const struct lk_arg *argv, uint32_t argc);

/* What a reply is, one of LK_REPLY_. A handle that is none traps. */
#define LK_REPLY_NULL 0
#define LK_REPLY_INT 1
#define LK_REPLY_BULK 2
#define LK_REPLY_SIMPLE 3
#define LK_REPLY_ERROR 4
#define LK_REPLY_ARRAY 5
#define LK_REPLY_MAP 6
#define LK_REPLY_SET 7
#define LK_REPLY_DOUBLE 8
#define LK_REPLY_BOOL 9
#define LK_REPLY_BIGNUM 10
#define LK_REPLY_VERBATIM 11
LK_IMPORT("call_type") int32_t lk_call_type(int32_t handle);
LK_IMPORT("call_int") int64_t lk_call_int(int32_t handle);      /* of an integer or a boolean; else it traps */
LK_IMPORT("call_double") double lk_call_double(int32_t handle); /* of a double; else it traps */
LK_IMPORT("call_len") int32_t lk_call_len(int32_t handle);      /* bytes, elements or pairs; LK_EINVALID */

/* The handle of an element, of a map the keys at even and the values at odd
 * indexes: LK_NIL beyond the last. */
LK_IMPORT("call_elem")
int32_t lk_call_elem(int32_t handle, uint32_t index);

/* Copies the bytes of a string, status, error, big number or verbatim string, as
 * lk_get does. */
LK_IMPORT("call_bytes")
int32_t lk_call_bytes(int32_t handle, void *buf, uint32_t cap);

/* Frees a reply and its elements. What is left is freed when the call ends. */
LK_IMPORT("call_free")
void lk_call_free(int32_t handle);

/* The reply, one of these. Bytes are copied. */
LK_IMPORT("reply_null") void lk_reply_null(void);
LK_IMPORT("reply_int") void lk_reply_int(int64_t n);
LK_IMPORT("reply_double") void lk_reply_double(double f); /* RESP2: a bulk string */
LK_IMPORT("reply_bool") void lk_reply_bool(int32_t b);    /* RESP2: 1 or 0 */
LK_IMPORT("reply_simple") void lk_reply_simple(const void *text, uint32_t len); /* a status such as OK */
LK_IMPORT("reply_bulk") void lk_reply_bulk(const void *bytes, uint32_t len);
LK_IMPORT("reply_error") void lk_reply_error(const void *text, uint32_t len); /* "CODE what is wrong"; undoes */

LK_IMPORT("reply_bignum") void lk_reply_bignum(const void *digits, uint32_t len); /* RESP2: a bulk string */
/* Text with a format of three bytes such as "txt" or "mkd"; RESP2: a bulk string. */
LK_IMPORT("reply_verbatim") void lk_reply_verbatim(const char *format, const void *text, uint32_t len);

/* Aggregates; their elements are the replies that follow, and may be aggregates. */
LK_IMPORT("reply_array") void lk_reply_array(uint32_t n); /* of n replies */
LK_IMPORT("reply_map") void lk_reply_map(uint32_t n);     /* of n keys and n values, 2n replies by turns */
LK_IMPORT("reply_set") void lk_reply_set(uint32_t n);     /* of n replies */

/* An aggregate that was opened with LK_LATER is ended by its number of elements. */
#define LK_LATER 4294967295u
LK_IMPORT("reply_len") void lk_reply_len(uint32_t n);

/* Has the client wait for declared keys, at most timeout milliseconds (0: for
 * ever): LK_OK. Return LK_OK from lk_command then, without a reply; what it has
 * changed is undone, and lk_wake is called. The manifest asks for "block".
 * LK_ECONTEXT in MULTI, in a script, or when another plugin has called. */
LK_IMPORT("block")
int32_t lk_block(const struct lk_arg *keys, uint32_t nkeys, int64_t timeout, int64_t token);

/* Wakes those who wait for the key at commit, though it does not change. */
LK_IMPORT("wake")
int32_t lk_wake_key(const void *key, uint32_t key_len);

/* lk_closed is called with the token and the key when the client's connection
 * ends; lk_unbind_client takes that back, for whatever client. Both at commit. */
LK_IMPORT("bind_client")
int32_t lk_bind_client(const void *key, uint32_t key_len, int64_t token);
LK_IMPORT("unbind_client")
int32_t lk_unbind_client(const void *key, uint32_t key_len);

/* lk_timer is called with the token, ms milliseconds after commit: the number of
 * the timer. lk_timer_cancel returns 1, or 0 if there is none of that number. */
LK_IMPORT("timer_set")
int64_t lk_timer_set(int64_t ms, int64_t token);
LK_IMPORT("timer_cancel")
int32_t lk_timer_cancel(int64_t timer);

/* Sends a keyspace event of the module class about the key at commit. */
LK_IMPORT("notify")
int32_t lk_notify(const void *event, uint32_t event_len, const void *key, uint32_t key_len);

/* The present value of a parameter that the manifest declares, as lk_get; LK_NIL
 * if it declares none of that name. */
LK_IMPORT("config_get")
int32_t lk_config_get(const void *name, uint32_t name_len, void *buf, uint32_t cap);

/* Fills buf with random bytes. */
LK_IMPORT("random")
void lk_random(void *buf, uint32_t len);

/* What is known of the client, as text, as lk_get; LK_NIL if there is none. */
#define LK_CLIENT_ID 0
#define LK_CLIENT_NAME 1
#define LK_CLIENT_USER 2
#define LK_CLIENT_ADDR 3
LK_IMPORT("client")
int32_t lk_client(int32_t field, void *buf, uint32_t cap);

/* Unix time in milliseconds, the same throughout a call. */
LK_IMPORT("now_ms")
int64_t lk_now_ms(void);

/* A fencing number, greater than every one given before. */
LK_IMPORT("fence")
int64_t lk_fence(void);

/* Writes a line to the server's log. */
#define LK_DEBUG 0
#define LK_INFO 1
#define LK_WARNING 2
LK_IMPORT("log")
void lk_log(int32_t level, const void *text, uint32_t len);

/* LK_STR("text") is a literal as the two arguments pointer and length. */
#define LK_STR(literal) (literal), (uint32_t)(sizeof(literal) - 1)

#endif
