/*
 * CAD.WASM key value
 *
 * Deletes key if it holds value: 1 if it did, 0 if it holds something else, -1 if
 * there is no such key, an error if it is not a string. This is how a lock is
 * released by whoever took it with SET key value NX PX ms, and by nobody else.
 */
#include "latchkey.h"

LK_MANIFEST("manifest.json");
LK_MODULE();

int32_t LK_EXPORT(lk_init)(void)
{
	return LK_OK;
}

int32_t LK_EXPORT(lk_command)(int32_t id, uint32_t argc, const struct lk_frame *frame)
{
	/* The manifest has one command, of three arguments exactly. */
	(void)id;
	(void)argc;
	const struct lk_arg *key = &frame->args[1];
	const struct lk_arg *value = &frame->args[2];

	int32_t r = lk_cad(key->ptr, key->len, value->ptr, value->len);
	if (r <= LK_ERROR)
		return r;
	lk_reply_int(r);
	return LK_OK;
}
