/*
 * Filters that say of an item "perhaps" or "certainly not". A filter is the private
 * state of its key; only the bytes that a command needs are read and written.
 *
 *   BF.RESERVE key error_rate capacity   OK
 *   BF.ADD key item                      1 if the item is new, 0 if it may have been there
 *   BF.EXISTS key item                   1 if the item may be there, 0 if it is not
 */
#include "latchkey.h"
#include "latchkey_args.h"

LK_MANIFEST("manifest.json");
LK_MODULE();

#define ENCODING 1
#define MAX_BITS (UINT64_C(8) << 20) /* a filter takes 1 MiB at most */
#define MAX_HASHES 64
#define DAMAGED "ERR the state of the filter is damaged"
#define DEFAULT_RATE 0.01
#define DEFAULT_CAPACITY 100
#define LN2 0.69314718055994530942

/* The state begins with this; the bits follow. */
struct header {
	uint64_t bits, hashes, capacity, items;
};

/* The largest filter, empty. Its header is written anew for each that is made. */
static struct {
	struct header head;
	uint8_t bits[MAX_BITS / 8];
} empty;

int32_t LK_EXPORT(lk_init)(void)
{
	return LK_OK;
}

/* Sizes a filter: as many hashes as the rate can be halved, and the bits that
 * these need. 1, or 0 if they are too many. */
static int plan(double rate, int64_t capacity, struct header *h)
{
	double p = 1, bits;
	uint64_t whole;

	h->hashes = 0;
	for (; p > rate && h->hashes < MAX_HASHES; p /= 2)
		h->hashes++;
	bits = (double)capacity * (double)h->hashes / LN2;
	if (bits > (double)MAX_BITS)
		return 0;
	whole = (uint64_t)bits;
	if ((double)whole < bits)
		whole++;
	if (whole > MAX_BITS)
		return 0;
	h->bits = (whole + 7) / 8 * 8;
	h->capacity = (uint64_t)capacity;
	h->items = 0;
	return 1;
}

/* Reads the header of the filter at key: LK_OK, LK_NIL if there is none, or an error, which may have been
 * replied. */
#define REPLIED 1
static int32_t read_filter(const struct lk_arg *key, struct header *h)
{
	int32_t n = lk_key_state_read(key->ptr, key->len, 0, h, sizeof *h);

	if (n < 0)
		return n;
	if (n == (int32_t)sizeof *h && h->bits > 0 && h->bits <= MAX_BITS && h->hashes <= MAX_HASHES)
		return LK_OK;
	LK_FAIL(DAMAGED);
	return REPLIED;
}

static int32_t create(const struct lk_arg *key, const struct header *h)
{
	int32_t r;

	empty.head = *h;
	r = lk_key_state_set(key->ptr, key->len, &empty, (uint32_t)(sizeof *h + h->bits / 8), ENCODING, 0, 0);
	return r <= LK_ERROR ? r : LK_OK;
}

/* Reads a decimal number such as 0.01, .5, +1e-3 or -0. The first 15 digits count, without zeros
 * in front; the others only say where the point is. 0 if it is none, or one that is too large for a
 * double or too near to zero. */
static int parse_rate(const struct lk_arg *a, double *rate)
{
	const uint8_t *p = a->ptr, *end = p + a->len;
	uint64_t digits = 0;
	int64_t scale = 0, exponent = 0; /* rate is digits / 10^scale */
	int read = 0, point = 0, negative = 0, down = 0;
	double r;

	if (p < end && (*p == '+' || *p == '-'))
		negative = *p++ == '-';
	for (; p < end && ((*p == '.' && !point) || (*p >= '0' && *p <= '9')); p++) {
		if (*p == '.') {
			point = 1;
			continue;
		}
		read = 1;
		if (digits < UINT64_C(100000000000000)) {
			digits = digits * 10 + (uint64_t)(*p - '0');
			scale += point;
		} else {
			scale -= !point;
		}
	}
	if (!read)
		return 0;
	if (p < end) {
		if (*p != 'e' && *p != 'E')
			return 0;
		if (++p < end && (*p == '+' || *p == '-'))
			down = *p++ == '-';
		if (p == end)
			return 0;
		for (; p < end; p++) {
			if (*p < '0' || *p > '9')
				return 0;
			if (exponent < INT64_C(1000000000000))
				exponent = exponent * 10 + (*p - '0');
		}
		scale += down ? exponent : -exponent;
	}
	*rate = 0;
	if (digits == 0)
		return 1;
	if (scale < -400 || scale > 400)
		return 0;
	r = (double)digits;
	for (; scale > 0; scale--)
		r /= 10;
	for (; scale < 0; scale++)
		r *= 10;
	if (r == 0 || r > 1.7976931348623157e308)
		return 0;
	*rate = negative ? -r : r;
	return 1;
}

static int32_t reserve(const struct lk_arg *args)
{
	const struct lk_arg *key = &args[1];
	struct header h;
	int64_t capacity;
	double rate;
	int32_t r;

	if (!parse_rate(&args[2], &rate))
		return LK_FAIL("ERR bad error rate");
	if (!(rate > 0 && rate < 1))
		return LK_FAIL("ERR (0 < error rate range < 1)");
	if (!lk_arg_int(&args[3], &capacity))
		return LK_FAIL("ERR bad capacity");
	if (capacity <= 0)
		return LK_FAIL("ERR (capacity should be larger than 0)");
	r = lk_type(key->ptr, key->len);
	if (r <= LK_ERROR)
		return r;
	if (r == LK_TYPE_OWN)
		return LK_FAIL("ERR item exists");
	if (r != LK_TYPE_NONE)
		return LK_EWRONGTYPE;
	if (!plan(rate, capacity, &h))
		return LK_FAIL("ERR the filter would take more than 1 MiB");
	r = create(key, &h);
	if (r != LK_OK)
		return r;
	lk_reply_simple(LK_STR("OK"));
	return LK_OK;
}

/* The two hashes that all bits of an item are made of. */
struct hashes {
	uint64_t a, b;
};

static struct hashes hash(const struct lk_arg *item)
{
	uint64_t a = UINT64_C(14695981039346656037), b; /* FNV-1a */
	uint32_t i;

	for (i = 0; i < item->len; i++)
		a = (a ^ item->ptr[i]) * UINT64_C(1099511628211);
	b = a; /* splitmix64's finalizer makes a second hash of the first */
	b = (b ^ (b >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	b = (b ^ (b >> 27)) * UINT64_C(0x94d049bb133111eb);
	b = (b ^ (b >> 31)) | 1;
	return (struct hashes){a, b};
}

static int32_t add(const struct lk_arg *args)
{
	const struct lk_arg *key = &args[1];
	struct hashes x = hash(&args[2]);
	struct header h;
	int fresh = 0;
	uint64_t i;
	int32_t r = read_filter(key, &h);

	if (r == LK_NIL) {
		plan(DEFAULT_RATE, DEFAULT_CAPACITY, &h);
		r = create(key, &h);
	}
	if (r != LK_OK)
		return r == REPLIED ? LK_OK : r;
	for (i = 0; i < h.hashes; i++) {
		uint64_t n = (x.a + i * x.b) % h.bits;
		uint32_t at = (uint32_t)(sizeof h + n / 8);
		uint8_t byte, bit = (uint8_t)(1u << (n % 8));

		r = lk_key_state_read(key->ptr, key->len, at, &byte, 1);
		if (r != 1)
			return r <= LK_ERROR ? r : LK_FAIL(DAMAGED);
		if (byte & bit)
			continue;
		if (!fresh && h.items >= h.capacity)
			return LK_FAIL("ERR the filter is full");
		fresh = 1;
		byte |= bit;
		r = lk_key_state_write(key->ptr, key->len, at, &byte, 1);
		if (r <= LK_ERROR)
			return r;
	}
	if (fresh) {
		h.items++;
		r = lk_key_state_write(key->ptr, key->len, 0, &h, sizeof h);
		if (r <= LK_ERROR)
			return r;
	}
	lk_reply_bool(fresh);
	return LK_OK;
}

static int32_t exists(const struct lk_arg *args)
{
	const struct lk_arg *key = &args[1];
	struct hashes x = hash(&args[2]);
	struct header h;
	uint64_t i;
	int32_t r = read_filter(key, &h);

	if (r != LK_OK && r != LK_NIL)
		return r == REPLIED ? LK_OK : r;
	for (i = 0; r == LK_OK && i < h.hashes; i++) {
		uint64_t n = (x.a + i * x.b) % h.bits;
		uint8_t byte;
		int32_t read = lk_key_state_read(key->ptr, key->len, (uint32_t)(sizeof h + n / 8), &byte, 1);

		if (read != 1)
			return read <= LK_ERROR ? read : LK_FAIL(DAMAGED);
		if (!(byte & 1u << (n % 8)))
			r = LK_NIL;
	}
	lk_reply_bool(r == LK_OK);
	return LK_OK;
}

int32_t LK_EXPORT(lk_command)(int32_t id, uint32_t argc, const struct lk_frame *frame)
{
	(void)argc;
	switch (id) {
	case 1:
		return reserve(frame->args);
	case 2:
		return add(frame->args);
	case 3:
		return exists(frame->args);
	}
	return LK_EINVALID; /* the manifest has no other */
}
