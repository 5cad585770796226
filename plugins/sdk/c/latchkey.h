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
#define LK_EDENIED (-101)    /* the key was not declared by the command's key spec, or not granted */
#define LK_EOOM (-102)       /* the server's maxmemory is reached */
#define LK_EINVALID (-103)   /* an argument is out of range */

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
	uint32_t reserved;  /* zero */
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
LK_IMPORT("set")
int32_t lk_set(const void *key, uint32_t key_len, const void *value, uint32_t value_len, uint32_t flags,
	       int64_t px);

/* Deletes a key of any type: 1, or 0 if it does not exist. */
LK_IMPORT("del")
int32_t lk_del(const void *key, uint32_t key_len);

/* 1 if the key exists, 0 if not. */
LK_IMPORT("exists")
int32_t lk_exists(const void *key, uint32_t key_len);

/* The type of the value, one of LK_TYPE_; other numbers are types to come. */
#define LK_TYPE_NONE 0 /* the key does not exist */
#define LK_TYPE_STRING 1
#define LK_TYPE_LIST 2
#define LK_TYPE_SET 3
LK_IMPORT("type")
int32_t lk_type(const void *key, uint32_t key_len);

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

/* The time to live in milliseconds, -1 if the key never expires, -2 if it does
 * not exist. */
LK_IMPORT("pttl")
int64_t lk_pttl(const void *key, uint32_t key_len);

/* The key expires ms milliseconds after commit, with 0 never: 1, or 0 if it does
 * not exist. */
LK_IMPORT("pexpire")
int32_t lk_pexpire(const void *key, uint32_t key_len, int64_t ms);

/* The reply, one of these. Bytes are copied. */
LK_IMPORT("reply_null") void lk_reply_null(void);
LK_IMPORT("reply_int") void lk_reply_int(int64_t n);
LK_IMPORT("reply_double") void lk_reply_double(double f); /* RESP2: a bulk string */
LK_IMPORT("reply_bool") void lk_reply_bool(int32_t b);    /* RESP2: 1 or 0 */
LK_IMPORT("reply_simple") void lk_reply_simple(const void *text, uint32_t len); /* a status such as OK */
LK_IMPORT("reply_bulk") void lk_reply_bulk(const void *bytes, uint32_t len);
LK_IMPORT("reply_error") void lk_reply_error(const void *text, uint32_t len); /* "CODE what is wrong"; undoes */

/* Aggregates; their elements are the replies that follow, and may be aggregates. */
LK_IMPORT("reply_array") void lk_reply_array(uint32_t n); /* of n replies */
LK_IMPORT("reply_map") void lk_reply_map(uint32_t n);     /* of n keys and n values, 2n replies by turns */
LK_IMPORT("reply_set") void lk_reply_set(uint32_t n);     /* of n replies */

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
