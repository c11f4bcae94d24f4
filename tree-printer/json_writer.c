// SPDX-License-Identifier: Apache-2.0 OR MIT
/* JSON, written member by member. */

#include "json_writer.h"

#include <string.h>

#define EXACT ((UINT64_C(1) << 53) - 1) /* the largest integer that readers keep in a double */

static void put_json(struct tdt__json *json, const char *text)
{
	tdt__out_add(json->out, text, strlen(text));
}

static void before_value(struct tdt__json *json, const char *key)
{
	const char *before = key == NULL ? "," : ",\"";

	put_json(json, json->comma ? before : before + 1);
	json->comma = true;
	if (key == NULL)
		return;
	put_json(json, key);
	put_json(json, "\":");
}

void tdt__json_begin(struct tdt__json *json, const char *key, char bracket)
{
	before_value(json, key);
	tdt__out_add(json->out, &bracket, 1);
	json->comma = false;
}

void tdt__json_end(struct tdt__json *json, char bracket)
{
	tdt__out_add(json->out, &bracket, 1);
	json->comma = true;
}

void tdt__json_raw(struct tdt__json *json, const char *key, const char *text)
{
	before_value(json, key);
	put_json(json, text);
}

/* Digits, which no locale groups. */
static void put_digits(struct tdt__json *json, uint64_t value, unsigned base)
{
	char digits[24], *const end = digits + sizeof digits, *at = end;

	do
		*--at = "0123456789abcdef"[value % base];
	while ((value /= base) != 0);
	tdt__out_add(json->out, at, (size_t)(end - at));
}

void tdt__json_u64(struct tdt__json *json, const char *key, uint64_t value)
{
	const char *quote = value <= EXACT ? "" : "\"";

	tdt__json_raw(json, key, quote);
	put_digits(json, value, 10);
	put_json(json, quote);
}

void tdt__json_address(struct tdt__json *json, const char *key, uint64_t value)
{
	tdt__json_raw(json, key, "\"0x");
	put_digits(json, value, 16);
	put_json(json, "\"");
}

void tdt__json_bool(struct tdt__json *json, const char *key, bool value)
{
	tdt__json_raw(json, key, value ? "true" : "false");
}

static void put_unit(struct tdt__json *json, uint32_t unit)
{
	char text[] = "\\u0000";

	for (int i = 5; i > 1; i--, unit >>= 4)
		text[i] = "0123456789ABCDEF"[unit & 15];
	put_json(json, text);
}

static void put_escaped(struct tdt__json *json, uint32_t code)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = code < 0x80 ? strchr(plain, (int)code) : NULL;

	if (found != NULL) {
		tdt__out_add(json->out, "\\", 1);
		tdt__out_add(json->out, &letters[found - plain], 1);
	} else if (code < 0x10000) {
		put_unit(json, code);
	} else { /* a pair of surrogates */
		put_unit(json, 0xd7c0 + (code >> 10));
		put_unit(json, 0xdc00 + (code & 0x3ff));
	}
}

/* How many characters at `text` are ASCII and need no escape: in most texts, all. */
static size_t unescaped(const char *text)
{
	size_t n = 0;

	while ((signed char)text[n] >= ' ' && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

void tdt__json_string(struct tdt__json *json, const char *key, const char *text)
{
	uint32_t code;
	size_t n;

	if (text == NULL)
		return;
	tdt__json_raw(json, key, "\"");
	while (*text != '\0') {
		n = unescaped(text);
		tdt__out_add(json->out, text, n);
		text += n;
		if (*text == '\0')
			break;
		n = tdt__utf8_decode(text, &code);
		put_escaped(json, n != 0 ? code : 0xfffd);
		text += n != 0 ? n : 1;
	}
	put_json(json, "\"");
}

void tdt__json_known_u64(struct tdt__json *json, const char *key, uint64_t value)
{
	if (value != 0)
		tdt__json_u64(json, key, value);
}

void tdt__json_known_string(struct tdt__json *json, const char *key, const char *text)
{
	if (text[0] != '\0')
		tdt__json_string(json, key, text);
}

void tdt__json_true(struct tdt__json *json, const char *key, bool value)
{
	if (value)
		tdt__json_bool(json, key, true);
}
