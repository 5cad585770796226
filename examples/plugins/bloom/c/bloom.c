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
	for (; p > rate && h->hashes < 64; p /= 2)
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

/* Reads the header of the filter at key: LK_OK, LK_NIL if there is none, or an error. */
static int32_t read_filter(const struct lk_arg *key, struct header *h)
{
	int32_t n = lk_key_state_read(key->ptr, key->len, 0, h, sizeof *h);

	if (n < 0)
		return n;
	if (n != (int32_t)sizeof *h || h->bits == 0 || h->bits > MAX_BITS)
		return LK_EINVALID;
	return LK_OK;
}

static int32_t create(const struct lk_arg *key, const struct header *h)
{
	int32_t r;

	empty.head = *h;
	r = lk_key_state_set(key->ptr, key->len, &empty, (uint32_t)(sizeof *h + h->bits / 8), ENCODING, 0, 0);
	return r <= LK_ERROR ? r : LK_OK;
}

/* Reads decimal digits with a point among them or not, and an exponent or not:
 * 0.01, .5, 1e-3. It has 17 digits at most. */
static int parse_rate(const struct lk_arg *a, double *rate)
{
	uint64_t digits = 0;
	int64_t scale = 0, exponent;
	uint32_t i = 0;
	int read = 0, point = 0;

	for (; i < a->len; i++) {
		uint8_t c = a->ptr[i];

		if (c == '.' && !point) {
			point = 1;
			continue;
		}
		if (c < '0' || c > '9' || read == 17)
			break;
		digits = digits * 10 + (uint64_t)(c - '0');
		read++;
		scale += point;
	}
	if (read == 0)
		return 0;
	if (i < a->len) {
		struct lk_arg rest = {a->ptr + i + 1, a->len - i - 1};

		if ((a->ptr[i] != 'e' && a->ptr[i] != 'E') || !lk_arg_int(&rest, &exponent) || exponent < -400 || exponent > 400)
			return 0;
		scale -= exponent;
	}
	*rate = (double)digits;
	for (; scale > 0; scale--)
		*rate /= 10;
	for (; scale < 0; scale++)
		*rate *= 10;
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
		return r;
	for (i = 0; i < h.hashes; i++) {
		uint64_t n = (x.a + i * x.b) % h.bits;
		uint32_t at = (uint32_t)(sizeof h + n / 8);
		uint8_t byte, bit = (uint8_t)(1u << (n % 8));

		r = lk_key_state_read(key->ptr, key->len, at, &byte, 1);
		if (r <= LK_ERROR)
			return r;
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
		return r;
	for (i = 0; r == LK_OK && i < h.hashes; i++) {
		uint64_t n = (x.a + i * x.b) % h.bits;
		uint8_t byte;
		int32_t read = lk_key_state_read(key->ptr, key->len, (uint32_t)(sizeof h + n / 8), &byte, 1);

		if (read <= LK_ERROR)
			return read;
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
