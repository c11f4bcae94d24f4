/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Messages of protocol buffers.  A message is a sequence of fields; a field is a tag, which is the
 * field's number and its type, and a value.  Numbers are varints: 7 bits a byte, the lowest first,
 * and the top bit says that more follow.
 *
 * The first functions write where there is room, and return the end of what they wrote; the others
 * append to a string.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "strings.h"

/* The most bytes of a field that is a number, with its tag. */
#define TDT__PROTO_MAX 13

static inline unsigned char *tdt__proto_varint(unsigned char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (unsigned char)value;
	return at;
}

static inline unsigned char *tdt__proto_uint(unsigned char *at, unsigned field, uint64_t value)
{
	return tdt__proto_varint(tdt__proto_varint(at, field << 3), value);
}

static inline unsigned char *tdt__proto_fixed64(unsigned char *at, unsigned field, uint64_t value)
{
	at = tdt__proto_varint(at, field << 3 | 1);
	for (int i = 0; i < 8; i++)
		*at++ = (unsigned char)(value >> 8 * i);
	return at;
}

/* The head of a field of `n` bytes: a text, or a message. */
static inline unsigned char *tdt__proto_head(unsigned char *at, unsigned field, size_t n)
{
	return tdt__proto_varint(tdt__proto_varint(at, field << 3 | 2), n);
}

static inline void tdt__proto_add_uint(struct tdt__string *to, unsigned field, uint64_t value)
{
	unsigned char bytes[2 * TDT__PROTO_MAX];

	tdt__string_add(to, bytes, (size_t)(tdt__proto_uint(bytes, field, value) - bytes));
}

static inline void tdt__proto_add_fixed64(struct tdt__string *to, unsigned field, uint64_t value)
{
	unsigned char bytes[2 * TDT__PROTO_MAX];

	tdt__string_add(to, bytes, (size_t)(tdt__proto_fixed64(bytes, field, value) - bytes));
}

static inline void tdt__proto_add_fixed32(struct tdt__string *to, unsigned field, uint32_t value)
{
	unsigned char bytes[2 * TDT__PROTO_MAX], *at = tdt__proto_varint(bytes, field << 3 | 5);

	for (int i = 0; i < 4; i++)
		*at++ = (unsigned char)(value >> 8 * i);
	tdt__string_add(to, bytes, (size_t)(at - bytes));
}

static inline void tdt__proto_add_double(struct tdt__string *to, unsigned field, double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	tdt__proto_add_fixed64(to, field, word);
}

static inline void tdt__proto_add_bytes(struct tdt__string *to, unsigned field, const void *bytes,
					size_t n)
{
	unsigned char head[2 * TDT__PROTO_MAX];

	tdt__string_add(to, head, (size_t)(tdt__proto_head(head, field, n) - head));
	if (n != 0) /* the bytes of an empty string may be NULL */
		tdt__string_add(to, bytes, n);
}

static inline void tdt__proto_add_text(struct tdt__string *to, unsigned field, const char *text)
{
	tdt__proto_add_bytes(to, field, text, strlen(text));
}

/* Make what was added from `start` on a message, which is field `field` of what stands before. */
static inline void tdt__proto_wrap(struct tdt__string *to, size_t start, unsigned field)
{
	unsigned char head[2 * TDT__PROTO_MAX];
	size_t n = to->n - start, more = (size_t)(tdt__proto_head(head, field, n) - head);

	tdt__string_add(to, head, more);
	if (to->failed)
		return;
	memmove(to->bytes + start + more, to->bytes + start, n);
	memcpy(to->bytes + start, head, more);
}

/* Append a text that may have any bytes: a field of the type `string` must be UTF-8. */
static inline void tdt__proto_add_escaped(struct tdt__string *to, unsigned field, const char *text)
{
	size_t start = to->n;

	tdt__string_escape(to, text, true, '\0');
	tdt__proto_wrap(to, start, field);
}

/* Append a message, and empty it, so that its memory can be used for the next one. */
static inline void tdt__proto_add_message(struct tdt__string *to, unsigned field,
					  struct tdt__string *message)
{
	tdt__proto_add_bytes(to, field, message->bytes, message->n);
	to->failed |= message->failed;
	message->n = 0;
}
