/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a terminal can show: colours, and the characters of the tree's lines. */

#include <stdio.h>

#include <tdt/dump.h>

#include "strings.h"

/*
 * Replace TDT_PRINT_AUTO in `utf8` and `color` by YES or NO.  Characters outside ASCII are shown if
 * the locale's encoding is UTF-8.  Colours are shown if `out` is a terminal, TERM says that it is
 * not a dumb one, and NO_COLOR does not forbid colours.  May change errno.
 */
void tdt__terminal_choose(struct tdt_print_options *options, FILE *out);

/* Sequences that change the colour of the text that follows. */
#define TDT__BOLD "\033[1m"
#define TDT__DIM "\033[2m"
#define TDT__RED "\033[31m"
#define TDT__GREEN "\033[32m"
#define TDT__YELLOW "\033[33m"
#define TDT__PLAIN "\033[0m"

/* Add `sequence`, unless the options of the string want no colours; and a text in that colour;
 * NULL: in none.  */
void tdt__color(struct tdt__string *string, const char *sequence);
void tdt__colored(struct tdt__string *string, const char *sequence, const char *text);

enum {
	/* How many levels of a tree are indented; on deeper ones a number says the level. */
	TDT__LEVELS_MAX = 100
};

/* What draws the lines of a tree.  No glyph takes more bytes than "│  ". */
struct tdt__glyphs {
	const char *root, *child, *last_child, *line, *blank, *times;
};

/* The glyphs for `options`, whose `utf8` was chosen. */
const struct tdt__glyphs *tdt__glyphs(const struct tdt_print_options *options);

/* While a tree is drawn: the text that begins the lines of each level. */
struct tdt__indentation {
	char bytes[TDT__LEVELS_MAX * sizeof("│  ")];
	size_t size[TDT__LEVELS_MAX + 2];
};

/* Begin the line of a node.  `last`: of the last child of its parent. */
void tdt__indent(struct tdt__string *line, struct tdt__indentation *indentation, uint32_t depth,
		 bool last);
