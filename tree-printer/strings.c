// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Text that grows, text that is made harmless, and the way out to a stream. */

#include "strings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/print.h>

/* Make room for `n` more bytes, and return where they go.  NULL: no memory. */
static char *reserve(struct tdt__string *string, size_t n)
{
	size_t room = string->room == 0 ? 128 : string->room;
	char *bytes;

	if (string->failed)
		return NULL;
	while (room - string->n < n)
		room *= 2;
	if (room > string->room) {
		bytes = realloc(string->bytes, room);
		string->failed = bytes == NULL;
		if (string->failed)
			return NULL;
		string->bytes = bytes;
		string->room = room;
	}
	return string->bytes + string->n;
}

void tdt__string_add(struct tdt__string *string, const void *bytes, size_t n)
{
	char *at = reserve(string, n);

	if (at == NULL || n == 0) /* `bytes` may be NULL then */
		return;
	memcpy(at, bytes, n);
	string->n += n;
}

void tdt__string_puts(struct tdt__string *string, const char *text)
{
	tdt__string_add(string, text, strlen(text));
}

void tdt__string_printf(struct tdt__string *string, const char *format, ...)
{
	size_t room = 128;
	va_list arguments;
	char *at;
	int n;

	while ((at = reserve(string, room)) != NULL) {
		va_start(arguments, format);
		n = vsnprintf(at, room, format, arguments);
		va_end(arguments);
		if (n < (int)room) {
			string->n += n > 0 ? (size_t)n : 0;
			return;
		}
		room = (size_t)n + 1;
	}
}

void tdt__string_free(struct tdt__string *string)
{
	free(string->bytes);
	*string = (struct tdt__string){ .options = string->options };
}

void tdt__string_protect(struct tdt__string *string, size_t at)
{
	for (; at < string->n; at++)
		if (string->bytes[at] == ';' || string->bytes[at] == '\n')
			string->bytes[at] = ':';
}

size_t tdt__utf8_decode(const char *text, uint32_t *code)
{
	/* For each length: codes below would need fewer bytes, so they are invalid. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *bytes = (const unsigned char *)text;
	size_t n = bytes[0] < 0x80   ? 1
		   : bytes[0] < 0xc0 ? 0 /* not the first byte of a character */
		   : bytes[0] < 0xe0 ? 2
		   : bytes[0] < 0xf0 ? 3
				     : 4;

	if (n == 0 || bytes[0] >= 0xf8)
		return 0;
	*code = n == 1 ? bytes[0] : bytes[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((bytes[i] & 0xc0) != 0x80) /* also at the end of the string */
			return 0;
		*code = *code << 6 | (bytes[i] & 0x3fu);
	}
	return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

unsigned tdt__columns(const char *text, size_t n)
{
	unsigned columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

bool tdt__is_harmful(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0, 0x1f },
		{ 0x7f, 0x9f },
		{ 0xad, 0xad },	      /* the soft hyphen */
		{ 0x34f, 0x34f },     /* the grapheme joiner */
		{ 0x61c, 0x61c },     /* direction of letters */
		{ 0x115f, 0x1160 },   /* fillers of Hangul */
		{ 0x17b4, 0x17b5 },   /* vowels of Khmer */
		{ 0x180b, 0x180f },   /* selectors of Mongolian */
		{ 0x200b, 0x200f },   /* joiners, the space without width, direction */
		{ 0x2028, 0x202e },   /* ends of lines, direction */
		{ 0x2060, 0x206f },   /* joiners, operators, direction */
		{ 0x3164, 0x3164 },   /* a filler of Hangul */
		{ 0xfeff, 0xfeff },   /* the byte order mark */
		{ 0xffa0, 0xffa0 },   /* a filler of Hangul */
		{ 0xfff0, 0xfffb },   /* annotations */
		{ 0x1bca0, 0x1bca3 }, /* formats of shorthand */
		{ 0x1d173, 0x1d17a }, /* formats of music */
		{ 0xe0000, 0xe0fff }, /* tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code <= ranges[i].last)
			return code >= ranges[i].first;
	return false;
}

static void escape_code(struct tdt__string *string, uint32_t code)
{
	static const char letters[] = "abtnvfr"; /* of the codes from 7 to 13 */

	if (code >= 7 && code < 14)
		tdt__string_printf(string, "\\%c", letters[code - 7]);
	else
		tdt__string_printf(string,
				   code < 0x80	    ? "\\x%02x"
				   : code < 0x10000 ? "\\u%04x"
						    : "\\U%08x",
				   code);
}

/* How many characters at `text` are ASCII and need no escape: in most texts, all. */
static size_t plain(const char *text, char quote)
{
	size_t n = 0;

	while (text[n] >= 0x20 && text[n] < 0x7f && text[n] != '\\' && text[n] != quote)
		n++;
	return n;
}

void tdt__string_escape(struct tdt__string *string, const char *text, bool utf8, char quote)
{
	size_t n;

	for (; *text != '\0'; text += n) {
		uint32_t code;

		n = plain(text, quote);
		if (n != 0) {
			tdt__string_add(string, text, n);
			continue;
		}
		n = tdt__utf8_decode(text, &code);
		if (n == 0) {
			tdt__string_printf(string, "\\x%02x", (unsigned char)*text);
			n = 1;
		} else if (tdt__is_harmful(code) || (code >= 0x80 && !utf8)) {
			escape_code(string, code);
		} else {
			if (code == '\\' || (quote != '\0' && code == (unsigned char)quote))
				tdt__string_add(string, "\\", 1);
			tdt__string_add(string, text, n);
		}
	}
}

static bool is_utf8(const struct tdt__string *string)
{
	return string->options != NULL && string->options->utf8 == TDT_PRINT_YES;
}

void tdt__string_text(struct tdt__string *string, const char *text)
{
	tdt__string_escape(string, text, is_utf8(string), '\0');
}

void tdt__string_quoted(struct tdt__string *string, const char *text)
{
	tdt__string_puts(string, "\"");
	tdt__string_escape(string, text, is_utf8(string), '"');
	tdt__string_puts(string, "\"");
}

static void write_out(struct tdt__out *out, const void *bytes, size_t n)
{
	if (out->error != 0 || n == 0)
		return;
	errno = 0;
	if (out->file == NULL)
		out->error = out->write(out->arg, bytes, n);
	else if (fwrite(bytes, 1, n, out->file) != n)
		out->error = errno == 0 ? -EIO : -errno;
}

void tdt__out_fail(struct tdt__out *out, int error)
{
	if (out->error == 0)
		out->error = error;
}

static void flush_out(struct tdt__out *out)
{
	write_out(out, out->buffer, out->used);
	out->used = 0;
}

static void add_bytes(struct tdt__out *out, const void *bytes, size_t n)
{
	if (n > sizeof(out->buffer) - out->used)
		flush_out(out);
	if (n > sizeof(out->buffer)) {
		write_out(out, bytes, n);
		return;
	}
	memcpy(out->buffer + out->used, bytes, n);
	out->used += n;
}

static void add_indented(struct tdt__out *out, const char *bytes, size_t n)
{
	for (unsigned i = 0; i < out->indent && !out->in_line && bytes[0] != '\n'; i++)
		add_bytes(out, " ", 1);
	add_bytes(out, bytes, n);
	out->in_line = bytes[n - 1] != '\n';
}

void tdt__out_add(struct tdt__out *out, const void *bytes, size_t n)
{
	const char *at = bytes;

	if (n == 0)
		return; /* `bytes` may be NULL then */
	if (out->indent == 0) {
		add_bytes(out, bytes, n);
		return;
	}
	while (n > 0) {
		const char *end = memchr(at, '\n', n);
		size_t line = end != NULL ? (size_t)(end - at) + 1 : n;

		add_indented(out, at, line);
		at += line;
		n -= line;
	}
}

void tdt__out_take(struct tdt__out *out, struct tdt__string *string)
{
	out->no_memory |= string->failed;
	if (!string->failed)
		tdt__out_add(out, string->bytes, string->n);
	tdt__string_free(string);
}

int tdt__out_end(struct tdt__out *out)
{
	flush_out(out);
	errno = 0;
	if (out->file != NULL && fflush(out->file) != 0)
		tdt__out_fail(out, errno == 0 ? -EIO : -errno);
	return out->error == 0 && out->no_memory ? -ENOMEM : out->error;
}
