/*
 * latchkey_args.h - reading arguments and comparing bytes, for plugins in C that
 * have no C library. To be included after latchkey.h.
 */
#ifndef LATCHKEY_ARGS_H
#define LATCHKEY_ARGS_H

#include "latchkey.h"

/* Reads a 64-bit integer in the one way Redis writes it: no plus, no blanks, no
 * leading zeros. 1, or 0 if it is none. */
static inline int lk_arg_int(const struct lk_arg *a, int64_t *out)
{
	uint64_t n = 0;
	uint32_t i = a->len > 0 && a->ptr[0] == '-';
	uint32_t digits = a->len - i;
	int negative = i == 1;

	if (digits == 0 || digits > 19 || (a->ptr[i] == '0' && (digits > 1 || negative)))
		return 0;
	for (; i < a->len; i++) {
		if (a->ptr[i] < '0' || a->ptr[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(a->ptr[i] - '0');
	}
	if (n > (uint64_t)INT64_MAX + (uint64_t)negative)
		return 0;
	*out = negative ? (int64_t)(0 - n) : (int64_t)n;
	return 1;
}

/* Whether an argument is word, which is in lower case, in whatever case. */
static inline int lk_arg_is(const struct lk_arg *a, const char *word)
{
	uint32_t i;

	for (i = 0; i < a->len; i++) {
		uint8_t c = a->ptr[i];

		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c + ('a' - 'A'));
		if (word[i] == 0 || c != (uint8_t)word[i])
			return 0;
	}
	return word[i] == 0;
}

static inline int lk_equal(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	uint32_t i;

	if (a_len != b_len)
		return 0;
	for (i = 0; i < a_len; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/* Writes n in decimal and returns how many bytes that took; buf has room for 20. */
static inline uint32_t lk_format_int(int64_t n, char *buf)
{
	char reversed[20];
	uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	uint32_t len = 0, at = 0;

	do
		reversed[len++] = (char)('0' + u % 10);
	while ((u /= 10) != 0);
	if (n < 0)
		buf[at++] = '-';
	while (len > 0)
		buf[at++] = reversed[--len];
	return at;
}

/* Replies an error that is a literal, and returns what lk_command then returns. */
#define LK_FAIL(literal) (lk_reply_error(LK_STR(literal)), LK_OK)

#define LK_NOT_INT "ERR value is not an integer or out of range"

#endif
