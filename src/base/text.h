/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Questions about strings. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool tdt__starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static inline bool tdt__ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* Either of them may be NULL. */
static inline bool tdt__same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* What follows the last slash of a path. */
static inline const char *tdt__file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Write the bytes in hexadecimal, and a NUL.  Returns where that is. */
static inline char *tdt__put_hex(char *to, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++, to += 2)
		snprintf(to, 3, "%02x", ((const unsigned char *)bytes)[i]);
	*to = '\0';
	return to;
}

static inline bool tdt__is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* getaddrinfo(3) takes larger numbers, too, and cuts them. */
static inline bool tdt__is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && digits <= 5 && text[digits] == '\0' && atoi(text) <= 65535;
}

/* Copy a text, as far as there is room, with `instead` in the place of each number. */
static inline void tdt__text_without_numbers(char *to, size_t room, const char *text, char instead)
{
	size_t n = 0;

	while (*text != '\0' && n + 1 < room) {
		to[n++] = tdt__is_digit(*text) ? instead : *text;
		for (text++; tdt__is_digit(text[-1]) && tdt__is_digit(*text); text++)
			;
	}
	to[n] = '\0';
}

struct tdt__text_unit {
	const char *name; /* NULL: the end of an array of units */
	uint64_t worth;
};

/* Read digits and the name of a unit behind them.  False: they are not that, or too many. */
static inline bool tdt__text_number(const char *text, const struct tdt__text_unit *unit,
				    uint64_t *value)
{
	bool good = tdt__is_digit(*text);

	for (*value = 0; tdt__is_digit(*text); text++)
		good = good && !__builtin_mul_overflow(*value, 10, value) &&
		       !__builtin_add_overflow(*value, *text - '0', value);
	while (unit->name != NULL && strcmp(text, unit->name) != 0)
		unit++;
	return good && unit->name != NULL && !__builtin_mul_overflow(*value, unit->worth, value);
}

/* Read a number of bytes, such as 16M.  False: it is none. */
static inline bool tdt__text_bytes(const char *text, uint64_t *bytes)
{
	static const struct tdt__text_unit units[] = {
		{ "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { NULL, 0 }
	};

	return tdt__text_number(text, units, bytes);
}
