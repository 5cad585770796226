/*
 * The command of redis-cell: a limit on how often something may happen, by the
 * generic cell rate algorithm.
 *
 *   CL.THROTTLE key max_burst count period [quantity]
 *
 * It allows count actions in period seconds, and max_burst at once beyond. The
 * reply has five integers: 0 if the action is allowed and 1 if not; the limit,
 * which is max_burst+1; how much of it remains; in how many seconds to try again,
 * -1 if the action is allowed; in how many seconds the whole limit is there again.
 */
#include "latchkey.h"
#include "latchkey_args.h"

LK_MANIFEST("manifest.json");
LK_MODULE();

/* Times are in nanoseconds. */
#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

/* What the arguments and times may be at most, so that no sum overflows. */
#define MAX_ARG INT64_C(1000000000)
#define MAX_TIME (INT64_MAX / 4)

int32_t LK_EXPORT(lk_init)(void)
{
	return LK_OK;
}

/* A product of what is not negative, or more than MAX_TIME. */
static int64_t times(int64_t a, int64_t b)
{
	return b != 0 && a > MAX_TIME / b ? MAX_TIME + 1 : a * b;
}

/* Rounds up, so that nobody tries again too early, what has a millisecond or
 * more beyond a whole second. */
static int64_t seconds(int64_t t)
{
	return t / SECOND + (t % SECOND >= MILLISECOND);
}

int32_t LK_EXPORT(lk_command)(int32_t id, uint32_t argc, const struct lk_frame *frame)
{
	const struct lk_arg *args = frame->args;
	const struct lk_arg *key = &args[1];
	int64_t n[4] = {0, 0, 0, 1}; /* max_burst, count, period, quantity */
	int64_t interval, tolerance, increment, now, arrival, next, early, left, left_over;
	int64_t limited = 0, retry = -1, remaining = 0;
	char text[32];
	struct lk_arg stored = {(const uint8_t *)text, 0};
	int32_t r;
	uint32_t i;

	(void)id; /* the manifest has one command */
	if (argc > 6)
		return LK_FAIL("ERR wrong number of arguments for 'cl.throttle' command");
	for (i = 2; i < argc; i++) {
		if (!lk_arg_int(&args[i], &n[i - 2]))
			return LK_FAIL(LK_NOT_INT);
		if (n[i - 2] < 0 || n[i - 2] > MAX_ARG)
			return LK_FAIL("ERR max_burst, count, period and quantity must be 0 to 1000000000");
	}
	if (n[1] == 0 || n[2] == 0)
		return LK_FAIL("ERR zero rates are not supported");
	/* The time between two actions at the allowed rate, and how far ahead of that
	 * rate somebody may get. */
	interval = (int64_t)((double)(n[2] * SECOND) / (double)n[1]);
	tolerance = times(interval, n[0] + 1);
	if (interval == 0 || tolerance > MAX_TIME)
		return LK_FAIL("ERR the rate is out of range");
	increment = times(interval, n[3]);
	if (increment > MAX_TIME)
		return LK_FAIL("ERR the quantity is out of range");

	now = lk_now_ms() * MILLISECOND;
	arrival = now; /* when the next action would be due at the allowed rate */
	r = lk_get(key->ptr, key->len, text, sizeof text);
	if (r <= LK_ERROR)
		return r;
	if (r != LK_NIL) {
		stored.len = (uint32_t)r;
		if (r > (int32_t)sizeof text || !lk_arg_int(&stored, &arrival) || arrival < 0 || arrival > MAX_TIME * 3)
			return LK_FAIL("ERR the key does not hold a limit");
	}
	next = (now > arrival ? now : arrival) + increment;
	early = next - tolerance - now; /* by how much this action comes too early */
	left = next - now;
	if (early > 0) {
		limited = 1;
		left = arrival - now;
		if (increment <= tolerance)
			retry = seconds(early);
	} else if (n[3] > 0 || r == LK_NIL) {
		/* Below a millisecond there is nothing to remember. */
		int64_t ms = left / MILLISECOND;

		r = lk_set(key->ptr, key->len, text, lk_format_int(next, text), 0, ms > 0 ? ms : 1);
		if (r <= LK_ERROR)
			return r;
	}
	left_over = tolerance - left;
	if (left_over > -interval)
		remaining = left_over / interval;
	lk_reply_array(5);
	lk_reply_int(limited);
	lk_reply_int(n[0] + 1);
	lk_reply_int(remaining);
	lk_reply_int(retry);
	lk_reply_int(seconds(left));
	return LK_OK;
}
