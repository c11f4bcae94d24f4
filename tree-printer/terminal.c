// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What a terminal can show.  Used by the library's printer and by tdt-join-ustack. */

#include "terminal.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_color(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_color != NULL && no_color[0] != '\0')
		return false;
	return out != NULL && term != NULL && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

static enum tdt_print_choice resolve(enum tdt_print_choice choice, bool automatic)
{
	if (choice == TDT_PRINT_AUTO)
		return automatic ? TDT_PRINT_YES : TDT_PRINT_NO;
	return choice;
}

void tdt__terminal_choose(struct tdt_print_options *options, FILE *out)
{
	options->utf8 = resolve(options->utf8, strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
	options->color = resolve(options->color, wants_color(out));
}

void tdt__color(struct tdt__string *string, const char *sequence)
{
	if (string->options != NULL && string->options->color == TDT_PRINT_YES)
		tdt__string_puts(string, sequence);
}

void tdt__colored(struct tdt__string *string, const char *sequence, const char *text)
{
	if (sequence != NULL)
		tdt__color(string, sequence);
	tdt__string_puts(string, text);
	if (sequence != NULL)
		tdt__color(string, TDT__PLAIN);
}

const struct tdt__glyphs *tdt__glyphs(const struct tdt_print_options *options)
{
	static const struct tdt__glyphs utf8 = { "╼ ", "├╼ ", "└╼ ", "│  ", "   ", " ×" };
	static const struct tdt__glyphs ascii = { "- ", "|- ", "`- ", "|  ", "   ", " x" };

	return options->utf8 == TDT_PRINT_YES ? &utf8 : &ascii;
}

void tdt__indent(struct tdt__string *line, struct tdt__indentation *indentation, uint32_t depth,
		 bool last)
{
	const struct tdt__glyphs *glyphs = tdt__glyphs(line->options);
	const char *more = depth == 1 ? " " : last ? glyphs->blank : glyphs->line;

	if (depth > TDT__LEVELS_MAX) {
		tdt__string_add(line, indentation->bytes, indentation->size[TDT__LEVELS_MAX + 1]);
		tdt__string_printf(line, "[%" PRIu32 "] ", depth);
		return;
	}
	indentation->size[1] = 0;
	tdt__string_add(line, indentation->bytes, indentation->size[depth]);
	tdt__string_puts(line, depth == 1 ? glyphs->root
			       : last	  ? glyphs->last_child
					  : glyphs->child);
	memcpy(indentation->bytes + indentation->size[depth], more, strlen(more));
	indentation->size[depth + 1] = indentation->size[depth] + strlen(more);
}
