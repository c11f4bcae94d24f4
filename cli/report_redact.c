// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Replacing names, paths and addresses in the documents of a page.
 *
 * What stays tells nothing of the program: names of tdt's functions, and those without parameters
 * of the C library and of the languages' libraries; and of paths, whether they are of a package or
 * of the system, so that trees are folded as before.
 */

#include "cli/report.h"

#include <string.h>

#include <tdt/tree.h>

#include "base/text.h"
#include "base/texts.h"
#include "tree-printer/origin.h"

enum class { NAME, FUNCTION, FILE_NAME, DIRECTORY, ADDRESS, MODULE, PACKAGE, KEPT, CLASSES };

struct redaction {
	struct tdt__texts known[CLASSES]; /* each is replaced by its number */
	bool failed;
};

/* The number, from 1, of a text of `n` bytes. */
static unsigned replacement_number(struct redaction *redaction, enum class class,
				   const char *text, size_t n)
{
	uint32_t number = tdt__texts_number(&redaction->known[class], text, n);

	redaction->failed |= number == TDT__INDEX_NONE;
	return number + 1;
}

static json_t *replaced(struct redaction *redaction, enum class class, const char *text)
{
	static const char *const words[] = {
		[NAME] = "name",	[FUNCTION] = "function", [FILE_NAME] = "file",
		[DIRECTORY] = "/dir", [ADDRESS] = "0x"
	};
	size_t n = strlen(text);

	return n == 0 ? json_string("")
		      : json_sprintf("%s%u", words[class],
				     replacement_number(redaction, class, text, n));
}

/* The member as a text; NULL: it is none. */
static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* --- Frames ------------------------------------------------------------------------- */

static bool is_public_function(const char *function, enum tdt__origin origin)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_:";

	if (function[strspn(function, plain)] != '\0' || tdt__starts_with(function, "_Z") ||
	    tdt__starts_with(function, "_R"))
		return false; /* it may have parameters, which mangled names have, too */
	return origin == TDT__ORIGIN_LANGUAGE ||
	       (origin == TDT__ORIGIN_TDT && tdt__starts_with(function, "tdt_"));
}

static json_t *function_for(struct redaction *redaction, const char *function,
			    enum tdt__origin origin)
{
	return is_public_function(function, origin) ? json_string(function)
						    : replaced(redaction, FUNCTION, function);
}

static json_t *file_for(struct redaction *redaction, const char *file, enum tdt__origin origin)
{
	const char *package = tdt__in_package(file);
	unsigned number = replacement_number(redaction, FILE_NAME, file, strlen(file));

	if (origin == TDT__ORIGIN_LANGUAGE && (tdt__starts_with(file, "/rustc/") ||
					       tdt__starts_with(file, "/usr/include/c++/")))
		return json_string(file);
	if (package != NULL)
		return json_sprintf("/vendor/package%u/src/file%u",
				    replacement_number(redaction, PACKAGE, package,
						       strcspn(package, "/")),
				    number);
	return json_sprintf(tdt__starts_with(file, "/usr/") ? "/usr/file%u" : "file%u", number);
}

static json_t *module_for(struct redaction *redaction, const char *module)
{
	const struct tdt_frame frame = { .kind = TDT_NODE_FRAME, .module = module };
	const char *name = tdt__file_name(module);
	enum tdt__origin origin = tdt__origin(&frame);

	if (origin == TDT__ORIGIN_LANGUAGE || origin == TDT__ORIGIN_TDT)
		return json_string(name);
	return json_sprintf(strstr(name, ".so") != NULL ? "module%u.so" : "module%u",
			    replacement_number(redaction, MODULE, module, strlen(module)));
}

static void redact_also(struct redaction *redaction, json_t *also, enum tdt__origin origin)
{
	const json_t *name;
	size_t i;

	json_array_foreach(also, i, name)
		redaction->failed |=
			json_array_set_new(also, i, function_for(redaction, json_string_value(name),
								 origin)) != 0;
}

/* Of what is no frame, nothing is public. */
static enum tdt__origin origin_if_frame(const json_t *object)
{
	const char *kind = text_of(object, "kind");
	const struct tdt_frame frame = { .kind = TDT_NODE_FRAME,
					 .function = text_of(object, "function"),
					 .file = text_of(object, "file"),
					 .directory = text_of(object, "directory"),
					 .module = text_of(object, "module") };

	return kind != NULL && strcmp(kind, "frame") == 0 ? tdt__origin(&frame)
							  : TDT__ORIGIN_UNKNOWN;
}

/* --- All members -------------------------------------------------------------------- */

/* Members whose texts tell nothing of the program. */
static const char *const kept[] = {
	"answer", "build_id", "cut",	"ended", "kernel", "kind",   "leaves_known", "library",
	"limits", "machine",  "of",	"phase", "reason", "result", "state",	     "syscall",
	"version",
};
static const char *const names[] = { "name", "owner_name", "program" };

static const struct {
	const char *key;
	enum class class;
} keys[] = {
	{ "file", FILE_NAME },	  { "missing", FILE_NAME }, { "directory", DIRECTORY },
	{ "function", FUNCTION }, { "symbol", FUNCTION },   { "module", MODULE },
	{ "path", MODULE },
};

static bool is_among(const char *key, const char *const *list, size_t n)
{
	while (n > 0 && strcmp(key, list[n - 1]) != 0)
		n--;
	return n > 0;
}

/* Every text that no list has is a name, unless it is a number: large ones are texts. */
static enum class class_for(const char *key, const char *text)
{
	if (tdt__starts_with(text, "0x"))
		return ADDRESS;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (strcmp(keys[i].key, key) == 0)
			return keys[i].class;
	if (is_among(key, kept, sizeof kept / sizeof kept[0]))
		return KEPT;
	return is_among(key, names, sizeof names / sizeof names[0]) ||
			       text[strspn(text, "0123456789")] != '\0'
		       ? NAME
		       : KEPT;
}

static json_t *text_for(struct redaction *redaction, enum class class, const char *text,
			enum tdt__origin origin)
{
	switch (class) {
	case FUNCTION:
		return function_for(redaction, text, origin);
	case FILE_NAME:
		return file_for(redaction, text, origin);
	case MODULE:
		return module_for(redaction, text);
	default:
		return replaced(redaction, class, text);
	}
}

static void redact_value(struct redaction *redaction, json_t *value);

static void redact_object(struct redaction *redaction, json_t *object)
{
	enum tdt__origin origin = origin_if_frame(object);
	const char *key, *text;
	json_t *value;

	json_object_del(object, "traceparent"); /* other systems know it by this name */
	json_object_foreach(object, key, value) {
		text = json_string_value(value);
		if (strcmp(key, "also") == 0)
			redact_also(redaction, value, origin);
		else if (text == NULL)
			redact_value(redaction, value);
		else if (class_for(key, text) != KEPT)
			redaction->failed |= json_object_set_new(
				object, key,
				text_for(redaction, class_for(key, text), text, origin)) != 0;
	}
}

/* The documents are our own, so they are a few levels deep. */
static void redact_value(struct redaction *redaction, json_t *value)
{
	if (json_is_object(value))
		redact_object(redaction, value);
	for (size_t i = 0; i < json_array_size(value); i++)
		redact_value(redaction, json_array_get(value, i));
}

bool redact_documents(json_t *documents)
{
	struct redaction redaction = { .failed = false };

	redact_value(&redaction, documents);
	for (int class = 0; class < CLASSES; class++)
		tdt__texts_fini(&redaction.known[class]);
	return !redaction.failed;
}
