/*
 * A lock whose waiters are served first come, first served, without polling. Who
 * gets it gets a fencing number with it, greater than every one before. The lock
 * ends with its lease, and when the connection of its holder ends.
 *
 *   FAIRLOCK.ACQUIRE key lease-ms [timeout-ms]   the fence, or nil; waits if a timeout is given, for ever if it is 0
 *   FAIRLOCK.RELEASE key fence                   1, 0 if another holds it, -1 if nobody does
 *   FAIRLOCK.EXTEND key fence lease-ms           likewise; the lease counts from now
 *   FAIRLOCK.STATUS key                          fence, client and lease in ms; nil if nobody holds it
 */
#include "latchkey.h"
#include "latchkey_args.h"

LK_MANIFEST("manifest.json");
LK_MODULE();

/* A lock is the state of its key; the lease is the key's time to live. */
#define ENCODING 1
struct lock {
	int64_t fence;
	int64_t client;
};

#define FREE LK_NIL /* nobody holds it */

int32_t LK_EXPORT(lk_init)(void)
{
	return LK_OK;
}

/* Reads a lock: LK_OK, FREE, or an error. */
static int32_t holder(const struct lk_arg *key, struct lock *l)
{
	int32_t n = lk_key_state_read(key->ptr, key->len, 0, l, sizeof *l);

	if (n == (int32_t)sizeof *l)
		return LK_OK;
	return n < 0 ? n : LK_EINVALID;
}

/* The client's id, 0 in a call that has no client. */
static int64_t me(void)
{
	uint8_t text[20];
	struct lk_arg a = {text, 0};
	int64_t id = 0;
	int32_t n = lk_client(LK_CLIENT_ID, text, sizeof text);

	if (n > 0 && n <= (int32_t)sizeof text) {
		a.len = (uint32_t)n;
		lk_arg_int(&a, &id);
	}
	return id;
}

static int32_t take(const struct lk_arg *key, int64_t lease)
{
	struct lock l = {lk_fence(), me()};
	int32_t r = lk_key_state_set(key->ptr, key->len, &l, sizeof l, ENCODING, 0, lease);

	if (r <= LK_ERROR)
		return r;
	r = lk_bind_client(key->ptr, key->len, l.fence);
	if (r <= LK_ERROR && r != LK_ECONTEXT)
		return r;
	lk_reply_int(l.fence);
	return LK_OK;
}

/* Reads a lease: 1, or 0 after the error was replied. */
static int lease_of(const struct lk_arg *a, int64_t *lease)
{
	if (!lk_arg_int(a, lease)) {
		LK_FAIL(LK_NOT_INT);
		return 0;
	}
	if (*lease <= 0 || *lease > INT64_C(315360000000)) { /* ten years */
		LK_FAIL("ERR the lease must be 1 to 315360000000 milliseconds");
		return 0;
	}
	return 1;
}

static int32_t acquire(uint32_t argc, const struct lk_arg *args)
{
	int64_t lease, timeout = -1;
	struct lock l;
	int32_t r;

	if (argc > 4)
		return LK_FAIL("ERR syntax error");
	if (!lease_of(&args[2], &lease))
		return LK_OK;
	if (argc == 4) {
		if (!lk_arg_int(&args[3], &timeout))
			return LK_FAIL("ERR timeout is not an integer or out of range");
		if (timeout < 0)
			return LK_FAIL("ERR timeout is negative");
	}
	r = holder(&args[1], &l);
	if (r == FREE)
		return take(&args[1], lease);
	if (r <= LK_ERROR)
		return r;
	if (timeout < 0) {
		lk_reply_null();
		return LK_OK;
	}
	if (l.client == me())
		return LK_FAIL("ERR this client holds the lock, and would wait for itself");
	return lk_block(&args[1], 1, timeout, 0);
}

/* Called in turn for those who wait, when the lock may be free. */
int32_t LK_EXPORT(lk_wake)(int64_t token, int32_t reason, uint32_t argc, const struct lk_frame *frame)
{
	int64_t lease;
	struct lock l;
	int32_t r = holder(&frame->args[1], &l);

	(void)token;
	(void)argc;
	if (r == FREE)
		return lease_of(&frame->args[2], &lease) ? take(&frame->args[1], lease) : LK_OK;
	if (r <= LK_ERROR)
		return r;
	if (reason != LK_TIMEOUT)
		return LK_AGAIN;
	lk_reply_null();
	return LK_OK;
}

/* Whether the lock is held with the fence: LK_OK; else the reply has been given, or an error is
 * returned. */
#define REPLIED 1
static int32_t held_with(const struct lk_arg *key, int64_t fence)
{
	struct lock l;
	int32_t r = holder(key, &l);

	if (r <= LK_ERROR)
		return r;
	if (r == LK_OK && l.fence == fence)
		return LK_OK;
	lk_reply_int(r == FREE ? -1 : 0);
	return REPLIED;
}

static int32_t release(const struct lk_arg *args)
{
	int64_t fence;
	int32_t r;

	if (!lk_arg_int(&args[2], &fence))
		return LK_FAIL(LK_NOT_INT);
	r = held_with(&args[1], fence);
	if (r != LK_OK)
		return r == REPLIED ? LK_OK : r;
	r = lk_del(args[1].ptr, args[1].len);
	if (r <= LK_ERROR)
		return r;
	r = lk_unbind_client(args[1].ptr, args[1].len);
	if (r <= LK_ERROR)
		return r;
	lk_reply_int(1);
	return LK_OK;
}

static int32_t extend(const struct lk_arg *args)
{
	int64_t fence, lease;
	int32_t r;

	if (!lk_arg_int(&args[2], &fence))
		return LK_FAIL(LK_NOT_INT);
	if (!lease_of(&args[3], &lease))
		return LK_OK;
	r = held_with(&args[1], fence);
	if (r != LK_OK)
		return r == REPLIED ? LK_OK : r;
	r = lk_pexpire(args[1].ptr, args[1].len, lease);
	if (r <= LK_ERROR)
		return r;
	lk_reply_int(1);
	return LK_OK;
}

static int32_t status(const struct lk_arg *key)
{
	struct lock l;
	int64_t left;
	int32_t r = holder(key, &l);

	if (r <= LK_ERROR)
		return r;
	if (r == FREE) {
		lk_reply_null();
		return LK_OK;
	}
	left = lk_pttl(key->ptr, key->len);
	if (left <= LK_ERROR)
		return (int32_t)left;
	lk_reply_map(3);
	lk_reply_bulk(LK_STR("fence"));
	lk_reply_int(l.fence);
	lk_reply_bulk(LK_STR("client"));
	lk_reply_int(l.client);
	lk_reply_bulk(LK_STR("lease"));
	lk_reply_int(left);
	return LK_OK;
}

/* Called when a client is gone to whom a lock was given with this fence. */
int32_t LK_EXPORT(lk_closed)(int64_t fence, uint32_t argc, const struct lk_frame *frame)
{
	const struct lk_arg *key = &frame->args[0];
	struct lock l;

	(void)argc;
	if (holder(key, &l) != LK_OK || l.fence != fence)
		return LK_OK;
	return lk_del(key->ptr, key->len) <= LK_ERROR ? LK_EINVALID : LK_OK;
}

int32_t LK_EXPORT(lk_command)(int32_t id, uint32_t argc, const struct lk_frame *frame)
{
	switch (id) {
	case 1:
		return acquire(argc, frame->args);
	case 2:
		return release(frame->args);
	case 3:
		return extend(frame->args);
	case 4:
		return status(&frame->args[1]);
	}
	return LK_EINVALID; /* the manifest has no other */
}
