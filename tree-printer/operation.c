// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Names of operations.  A name is read once, from the front: the text that is kept is copied, part
 * by part, where a part is what stands between two `::` outside of all brackets.
 */

#include "operation.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

/* A text that is part of another one. */
struct piece {
	const char *at;
	size_t n;
};

static bool piece_is(struct piece piece, const char *text)
{
	return piece.n == strlen(text) && memcmp(piece.at, text, piece.n) == 0;
}

/* Whether `c` opens (1) or closes (-1) a bracket.  The `>` of an arrow is none. */
static int bracket(const char *start, const char *at)
{
	if (strchr("<([{", *at) != NULL)
		return 1;
	if (*at == '>' && at > start && at[-1] == '-')
		return 0;
	return strchr(">)]}", *at) != NULL ? -1 : 0;
}

/* The first place in `piece` outside of all brackets that has `text`; NULL: there is none. */
static const char *find_outside(struct piece piece, const char *text)
{
	size_t n = strlen(text);
	int depth = 0;

	for (const char *at = piece.at; at + n <= piece.at + piece.n; at++) {
		if (depth == 0 && memcmp(at, text, n) == 0)
			return at;
		depth += bracket(piece.at, at);
	}
	return NULL;
}

/* Take the first part of a path off.  The path must not be empty. */
static struct piece take_part(struct piece *path)
{
	const char *end = find_outside(*path, "::");
	struct piece part = { path->at, end != NULL ? (size_t)(end - path->at) : path->n };
	size_t taken = part.n + (end != NULL ? 2 : 0);

	path->at += taken;
	path->n -= taken;
	return part;
}

static bool is_balanced(const char *name)
{
	int depth = 0;

	for (const char *at = name; *at != '\0' && depth >= 0; at++)
		depth += bracket(name, at);
	return depth == 0;
}

/* Whether the part is a type, as Rust writes it: `Sleep`. */
static bool is_type(struct piece part)
{
	return part.n > 0 && isupper((unsigned char)part.at[0]);
}

/* The next letter of the part, in lower case, without underscores; 0: there is none. */
static int next_letter(struct piece *part)
{
	while (part->n > 0 && *part->at == '_') {
		part->at++;
		part->n--;
	}
	if (part->n == 0)
		return 0;
	part->n--;
	return tolower((unsigned char)*part->at++);
}

static bool begins_with(struct piece type, struct piece module)
{
	int letter;

	while ((letter = next_letter(&module)) != 0)
		if (next_letter(&type) != letter)
			return false;
	return true;
}

/* Whether the name of the type has that of the module in it: once_cell, OnceCell. */
static bool repeats(struct piece type, struct piece module)
{
	for (; type.n > 0; type.at++, type.n--)
		if (begins_with(type, module))
			return true;
	return false;
}

/* The first type that follows in `path`; nothing if there is none. */
static struct piece next_type(struct piece path)
{
	while (path.n > 0) {
		struct piece part = take_part(&path);

		if (is_type(part))
			return (struct piece){ part.at, strcspn(part.at, "<:") };
	}
	return (struct piece){ NULL, 0 };
}

static void add_name_part(struct tdt__string *string, struct piece part, size_t start)
{
	const char *open = find_outside(part, "<");

	if (string->n > start)
		tdt__string_puts(string, "::");
	tdt__string_add(string, part.at, open != NULL ? (size_t)(open - part.at) : part.n);
}

/* Whether the part is nothing of its own: a closure, or the arguments of a template. */
static bool is_bare(struct piece part)
{
	return part.n == 0 || part.at[0] == '{' || part.at[0] == '<';
}

/* Whether `part`, behind `i` others, is a module that says no more than the type that follows. */
static bool is_inner_module(struct piece part, int i, struct piece path)
{
	struct piece type = next_type(path);

	return i >= 2 && !is_type(part) && type.n > 0 && (i > 2 || repeats(type, part));
}

static bool same_piece(struct piece a, struct piece b)
{
	return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

/* Whether a function only polls what is named already: poll_notified() of Notified. */
static bool only_polls(struct piece type, struct piece function)
{
	struct piece rest = { function.at + 5, function.n - 5 };

	return function.n > 5 && memcmp(function.at, "poll_", 5) == 0 && is_type(type) &&
	       begins_with(type, rest);
}

/* Add the parts of a path.  The first two, a crate and what it offers, say most. */
static void add_path(struct tdt__string *string, struct piece path, size_t start)
{
	struct piece last = { "", 0 };

	for (int i = 0; path.n > 0; i++) {
		struct piece part = take_part(&path);

		if (is_bare(part) || is_inner_module(part, i, path) ||
		    (i >= 2 && (same_piece(part, last) || only_polls(last, part))))
			continue;
		add_name_part(string, part, start);
		last = part;
	}
}

static void add_of_trait(struct tdt__string *string, struct piece inner, struct piece rest,
			 size_t start)
{
	const char *as = find_outside(inner, " as ");
	struct piece type = { inner.at, as != NULL ? (size_t)(as - inner.at) : inner.n };

	if (as != NULL && find_outside(type, "::") == NULL) /* a parameter, such as T */
		type = (struct piece){ as + 4, inner.n - type.n - 4 };
	add_path(string, type, start);
	if (as == NULL || !piece_is(rest, "poll"))
		add_path(string, rest, start);
}

void tdt__operation_name(struct tdt__string *string, const char *function)
{
	struct piece path = { function, strlen(function) };
	size_t start = string->n;

	if (is_balanced(function) && strstr(function, "operator") == NULL) {
		if (function[0] == '<') {
			struct piece first = take_part(&path);

			add_of_trait(string, (struct piece){ first.at + 1, first.n - 2 }, path,
				     start);
		} else {
			add_path(string, path, start);
		}
	}
	if (string->n == start)
		tdt__string_puts(string, function);
	tdt__string_add(string, "", 1);
}

/* The type in `<type as trait>`, and what follows; nothing if the function is not of a trait. */
static struct piece trait_type(const char *function, struct piece *rest)
{
	struct piece path = { function, strlen(function) }, inner;
	const char *as;

	if (function[0] != '<' || !is_balanced(function))
		return (struct piece){ NULL, 0 };
	inner = take_part(&path);
	inner = (struct piece){ inner.at + 1, inner.n - 2 };
	as = find_outside(inner, " as ");
	*rest = path;
	return (struct piece){ inner.at, as != NULL ? (size_t)(as - inner.at) : 0 };
}

/* Types of the language, such as Pin<P>, only pass on what they are asked. */
static bool is_of_language(struct piece type)
{
	static const char *const crates[] = { "core::", "alloc::", "std::" };

	for (size_t i = 0; i < sizeof(crates) / sizeof(crates[0]); i++)
		if (tdt__starts_with(type.at, crates[i]))
			return true;
	return false;
}

enum tdt__polled tdt__polled(const char *function)
{
	struct piece rest, type = trait_type(function, &rest);

	if (type.n == 0 || type.at[0] == '&' || find_outside(type, "::") == NULL ||
	    is_of_language(type) || !tdt__starts_with(rest.at, "poll_"))
		return TDT__POLLED_NOTHING;
	return find_outside(type, "<") != NULL ? TDT__POLLED_ADAPTER : TDT__POLLED_OBJECT;
}

void tdt__polled_name(struct tdt__string *string, const char *function)
{
	struct piece rest, type = trait_type(function, &rest);

	add_path(string, type, string->n);
	tdt__string_add(string, "", 1);
}

static const char future_poll[] = " as core::future::future::Future>::poll";

bool tdt__polls_future(const char *function)
{
	return tdt__ends_with(function, future_poll) || tdt__ends_with(function, "::{async}");
}

bool tdt__wraps_future(const char *function)
{
	struct piece rest, type = trait_type(function, &rest);

	return tdt__ends_with(function, future_poll) && type.n > 0 &&
	       find_outside(type, "<") != NULL;
}

bool tdt__keeps_wakers(const char *function)
{
	struct piece path = { function, strlen(function) };

	if (!is_balanced(function))
		return false;
	while (path.n > 0) {
		struct piece part = take_part(&path);

		if (is_type(part) && part.n >= 5 &&
		    memcmp(part.at + part.n - 5, "Waker", 5) == 0)
			return true;
	}
	return false;
}

bool tdt__hides_futures(const char *function)
{
	static const char *const types[] = {
		"futures_util::stream::futures_unordered::FuturesUnordered<",
		"futures_util::future::future::shared::Shared<",
	};

	function += function[0] == '<';
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (tdt__starts_with(function, types[i]))
			return true;
	return false;
}
