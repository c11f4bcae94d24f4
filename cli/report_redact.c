// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Replacing names, paths and addresses in the documents of a page.
 *
 * What stays tells nothing of the program: names of tdt's functions, and those without parameters
 * of the C library and of the languages' libraries; and of paths, whether they are of a package or
 * of the system, so that trees are folded as before.
 */

#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

#include <tdt/tree.h>

#include "base/text.h"
#include "tree-printer/origin.h"

enum class { NAME, FUNCTION, FILE_NAME, DIRECTORY, ADDRESS, MODULE, PACKAGE, CLASSES };

struct redaction {
	json_t *known; /* the class and the text → the number of the replacement */
	unsigned n[CLASSES];
	bool failed;
};

struct redaction *redaction_new(void)
{
	struct redaction *redaction = calloc(1, sizeof *redaction);

	if (redaction != NULL)
		redaction->known = json_object();
	return redaction;
}

void redaction_free(struct redaction *redaction)
{
	if (redaction == NULL)
		return;
	json_decref(redaction->known);
	free(redaction);
}

/* The number, from 1, of a text of `n` bytes. */
static unsigned replacement_number(struct redaction *redaction, enum class class,
				   const char *text, size_t n)
{
	char *key;
	json_t *number;

	if (asprintf(&key, "%d%.*s", (int)class, (int)n, text) < 0) {
		redaction->failed = true;
		return 0;
	}
	number = json_object_get(redaction->known, key);
	if (number == NULL) {
		number = json_integer(++redaction->n[class]);
		redaction->failed |= json_object_set_new(redaction->known, key, number) != 0;
	}
	free(key);
	return redaction->failed ? 0 : (unsigned)json_integer_value(number);
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

static void set(struct redaction *redaction, json_t *object, const char *key, json_t *value)
{
	redaction->failed |= json_object_set_new(object, key, value) != 0;
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

	if (function[strspn(function, plain)] != '\0')
		return false;
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

	if (tdt__starts_with(file, "/rustc/") ||
	    (origin == TDT__ORIGIN_LANGUAGE && tdt__starts_with(file, "/usr/include/c++/")))
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
	for (size_t i = 0; i < json_array_size(also); i++)
		redaction->failed |=
			json_array_set_new(also, i,
					   function_for(redaction,
							json_string_value(json_array_get(also, i)),
							origin)) != 0;
}

static void redact_frame(struct redaction *redaction, json_t *object)
{
	const struct tdt_frame frame = { .kind = TDT_NODE_FRAME,
					 .function = text_of(object, "function"),
					 .file = text_of(object, "file"),
					 .directory = text_of(object, "directory"),
					 .module = text_of(object, "module") };
	enum tdt__origin origin = tdt__origin(&frame);
	const char *symbol = text_of(object, "symbol");

	redact_also(redaction, json_object_get(object, "also"), origin);
	if (symbol != NULL)
		set(redaction, object, "symbol", function_for(redaction, symbol, origin));
	if (frame.function != NULL)
		set(redaction, object, "function",
		    function_for(redaction, frame.function, origin));
	if (frame.file != NULL)
		set(redaction, object, "file", file_for(redaction, frame.file, origin));
}

/* Whether redact_frame() replaces the member. */
static bool is_of_frame(const char *key)
{
	return strcmp(key, "symbol") == 0 || strcmp(key, "function") == 0 ||
	       strcmp(key, "file") == 0;
}

/* --- All members -------------------------------------------------------------------- */

static const struct {
	const char *key;
	enum class class;
} keys[] = {
	{ "name", NAME },
	{ "owner_name", NAME },
	{ "program", NAME },
	{ "file", FILE_NAME },
	{ "missing", FILE_NAME },
	{ "directory", DIRECTORY },
	{ "function", FUNCTION },
	{ "symbol", FUNCTION },
};

static void redact_text(struct redaction *redaction, json_t *object, const char *key,
			const char *text)
{
	size_t i = 0;

	if (tdt__starts_with(text, "0x")) {
		set(redaction, object, key, replaced(redaction, ADDRESS, text));
		return;
	}
	if (strcmp(key, "module") == 0 || strcmp(key, "path") == 0) {
		set(redaction, object, key, module_for(redaction, text));
		return;
	}
	while (i < sizeof keys / sizeof keys[0] && strcmp(keys[i].key, key) != 0)
		i++;
	if (i < sizeof keys / sizeof keys[0])
		set(redaction, object, key, replaced(redaction, keys[i].class, text));
}

static void redact_value(struct redaction *redaction, json_t *value);

static void redact_object(struct redaction *redaction, json_t *object)
{
	const char *key, *kind = text_of(object, "kind");
	bool frame = kind != NULL && strcmp(kind, "frame") == 0;
	json_t *value;

	if (frame)
		redact_frame(redaction, object);
	json_object_foreach(object, key, value) {
		if (!json_is_string(value))
			redact_value(redaction, value);
		else if (!frame || !is_of_frame(key))
			redact_text(redaction, object, key, json_string_value(value));
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

bool redact_document(struct redaction *redaction, json_t *document)
{
	redact_value(redaction, document);
	return !redaction->failed;
}
