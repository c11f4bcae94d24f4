// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The text of one frame: its name and its place. */

#include "frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "origin.h"
#include "terminal.h"

static const char *cut_text(enum tdt_cut cut)
{
	static const char *const texts[] = {
		[TDT_CUT_LIMIT] = "... cut: more frames than the limit",
		[TDT_CUT_NO_INFO] = "... cut: a frame without unwind information",
		[TDT_CUT_CORRUPT] = "... cut: the stack or its unwind information is corrupt",
		[TDT_CUT_STACK] = "... cut: the leaf was polled on another stack",
		[TDT_CUT_MEMORY] = "... cut: no memory for more frames",
		[TDT_CUT_UNSUPPORTED] =
			"... cut: a frame whose unwind information can't be followed",
	};
	bool known = (unsigned)cut < sizeof texts / sizeof texts[0] && texts[cut] != NULL;

	return known ? texts[cut] : "... cut";
}

static void module_offset(struct tdt__string *string, const struct tdt_frame *frame)
{
	tdt__string_text(string, tdt__file_name(frame->module));
	if (frame->module_offset != 0)
		tdt__string_printf(string, "+0x%" PRIx64, frame->module_offset);
}

static bool has_address(const struct tdt_frame *frame)
{
	return frame->symbol != NULL ||
	       (!frame->inlined && (frame->module != NULL || frame->pc != 0));
}

static void address(struct tdt__string *string, const struct tdt_frame *frame)
{
	if (frame->symbol != NULL) {
		tdt__string_text(string, frame->symbol);
		tdt__string_printf(string, "+0x%" PRIx64, frame->symbol_offset);
	} else if (frame->module != NULL) {
		module_offset(string, frame);
	} else {
		tdt__string_printf(string, "0x%" PRIx64, frame->pc);
	}
}

void tdt__frame_name(struct tdt__string *string, const struct tdt_frame *frame)
{
	size_t start = string->n;

	if (frame->kind == TDT_NODE_CUT) {
		tdt__string_puts(string, cut_text(frame->cut));
	} else if (frame->function == NULL || (string->options->addresses && has_address(frame))) {
		address(string, frame);
	} else {
		tdt__string_text(string, frame->function);
		if (string->options->addresses &&
		    frame->inlined) /* a tracer shows the outer function */
			tdt__string_puts(string, " (inlined)");
	}
	if (string->n == start) /* the name of the function or module is "", as JSON may have it */
		tdt__string_printf(string, "0x%" PRIx64, frame->pc);
}

/* The part of `file` that short paths show: a package's path begins with the package. */
static const char *shown_part(const char *file, const char *directory)
{
	const char *in_package = tdt__in_package(file);
	size_t n = strlen(directory);

	if (in_package != NULL)
		return in_package;
	return tdt__is_below(file, directory, n) ? file + n + 1 : file;
}

static void source_path(struct tdt__string *string, const struct tdt_frame *frame)
{
	char *file = strdup(frame->file);
	char *directory = strdup(frame->directory == NULL ? "" : frame->directory);

	if (file != NULL && directory != NULL) {
		tdt__normalize(file);
		tdt__normalize(directory);
		tdt__string_text(string,
				 string->options->full_paths ? file : shown_part(file, directory));
	} else {
		string->failed = true;
	}
	free(file);
	free(directory);
}

void tdt__line_column(struct tdt__string *string, uint32_t line, uint32_t column)
{
	if (line != 0)
		tdt__string_printf(string, ":%" PRIu32, line);
	if (line != 0 && column != 0)
		tdt__string_printf(string, ":%" PRIu32, column);
}

static void also(struct tdt__string *string, const struct tdt_frame *frame)
{
	const char *before = " (also ";

	if (frame->also == NULL || frame->also[0] == NULL)
		return;
	for (const char *const *name = frame->also; *name != NULL; name++) {
		tdt__string_puts(string, before);
		tdt__string_text(string, *name);
		before = ", ";
	}
	tdt__string_puts(string, ")");
}

void tdt__frame_place(struct tdt__string *string, const struct tdt_frame *frame)
{
	if (string->options->addresses)
		return;
	if (frame->unnamed)
		tdt__string_puts(string, " (not named in time)");
	if (frame->file != NULL) {
		tdt__string_puts(string, " at ");
		source_path(string, frame);
		tdt__line_column(string, frame->line, frame->column);
	} else if (frame->function != NULL && frame->module != NULL) {
		tdt__string_puts(string, " (");
		module_offset(string, frame);
		if (frame->missing != NULL) {
			tdt__string_puts(string, ", no ");
			tdt__string_text(string, frame->missing);
		}
		tdt__string_puts(string, ")");
	}
	also(string, frame);
}

static void colored_place(struct tdt__string *string, const struct tdt_frame *frame)
{
	size_t before = string->n, start;

	tdt__color(string, TDT__DIM);
	start = string->n;
	tdt__frame_place(string, frame);
	if (string->n == start)
		string->n = before;
	else
		tdt__color(string, TDT__PLAIN);
}

void tdt__frame_line(struct tdt__string *string, const struct tdt_frame *frame)
{
	tdt__color(string, frame->kind == TDT_NODE_CUT ? TDT__RED : TDT__BOLD);
	tdt__frame_name(string, frame);
	tdt__color(string, TDT__PLAIN);
	colored_place(string, frame);
}
