/*
 * Compares the string at a key with a value, and deletes it, replaces it, or gives
 * it a new time to live if they are equal. All three reply 1 if they were, 0 if
 * not, -1 if there is no such key, an error if it is not a string.
 *
 *   CAD.WASM key value                      compare and delete
 *   CAS.WASM key old new [PX milliseconds]  compare and set
 *   CAE.WASM key value milliseconds         compare and expire
 *
 * CAD is how a lock is released by whoever took it with SET key value NX PX ms, and
 * by nobody else; CAE is how it is extended.
 */
#include "latchkey.h"
#include "latchkey_args.h"

LK_MANIFEST("manifest.json");
LK_MODULE();

int32_t LK_EXPORT(lk_init)(void)
{
	return LK_OK;
}

/* Replies a host function's result, unless that is an error. */
static int32_t answer(int32_t result)
{
	if (result <= LK_ERROR)
		return result;
	lk_reply_int(result);
	return LK_OK;
}

/* Whether a key can live for so long from now on; Redis refuses times that overflow, too. */
static int lasts(int64_t ms)
{
	return ms > 0 && ms <= INT64_MAX - lk_now_ms();
}

static int32_t compare_and_set(uint32_t argc, const struct lk_arg *args)
{
	int64_t ms = 0;

	if (argc == 6 && lk_arg_is(&args[4], "px")) {
		if (!lk_arg_int(&args[5], &ms))
			return LK_FAIL(LK_NOT_INT);
		if (!lasts(ms))
			return LK_FAIL("ERR invalid expire time in 'cas.wasm' command");
	} else if (argc != 4) {
		return LK_FAIL("ERR syntax error");
	}
	return answer(lk_cas(args[1].ptr, args[1].len, args[2].ptr, args[2].len, args[3].ptr, args[3].len, ms));
}

static int32_t compare_and_expire(const struct lk_arg *args)
{
	/* A value that is longer than this is not copied but compared by replacing it with itself. */
	uint8_t held[256];
	int64_t ms;
	int32_t n, r;

	if (!lk_arg_int(&args[3], &ms))
		return LK_FAIL(LK_NOT_INT);
	if (!lasts(ms))
		return LK_FAIL("ERR invalid expire time in 'cae.wasm' command");
	n = lk_get(args[1].ptr, args[1].len, held, sizeof held);
	if (n <= LK_ERROR)
		return n;
	if (n == LK_NIL)
		return answer(-1);
	if (n > (int32_t)sizeof held)
		return answer(lk_cas(args[1].ptr, args[1].len, args[2].ptr, args[2].len, args[2].ptr, args[2].len, ms));
	if (!lk_equal(held, (uint32_t)n, args[2].ptr, args[2].len))
		return answer(0);
	r = lk_pexpire(args[1].ptr, args[1].len, ms);
	return r <= LK_ERROR ? r : answer(1);
}

int32_t LK_EXPORT(lk_command)(int32_t id, uint32_t argc, const struct lk_frame *frame)
{
	switch (id) {
	case 1:
		return answer(lk_cad_args(1, 2));
	case 2:
		return compare_and_set(argc, frame->args);
	case 3:
		return compare_and_expire(frame->args);
	}
	return LK_EINVALID; /* the manifest has no other */
}
