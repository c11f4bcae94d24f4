/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What tdt top shows: a round as lines of text, and what keys do.  The colours in the text are the
 * sequences of tree-printer/terminal.h; no other control character gets into a line.  Only
 * top_terminal.c knows of a terminal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "cli/top_round.h"
#include "tree-printer/strings.h"

/* Marks the selected line; TDT__PLAIN ends it. */
#define TOP_REVERSE "\033[7m"

#define TOP_OPENED 16 /* so many open tasks are remembered */

/* What the user has chosen. */
struct top_choice {
	struct top_question question;
	uint64_t interval; /* ns */
	size_t at;         /* the selected row of the list, or the first line of the tree */
	uint64_t selected; /* the selected task, which is followed when it moves; 0: none */
	uint64_t before[TOP_OPENED]; /* the tasks that were open before, the last one last */
	unsigned n_before;
	bool paused, help, quit;
	bool watch;  /* the tasks are to be watched while the program runs */
	bool typing; /* keys are added to the filter */
	bool anew;   /* the question is another one, so a round is due */
	/* What happened to the last look; "": it went well. */
	char trouble[TOP_TEXT];
	bool ended; /* the process has */
};

struct top_size {
	unsigned width;  /* columns; 0: lines are not cut */
	unsigned height; /* lines */
	bool screen;     /* with a selected line, and a line about keys */
};

/* Do what the key means: a character, or a KEY_ of curses. */
void top_press(struct top_choice *choice, int key, const struct top_round *round);

/* Keep the selected task selected in the new round. */
void top_follow(struct top_choice *choice, const struct top_round *round);

/*
 * Add the lines of the screen, `size->height` at most, each with its end.  `round` is NULL before
 * the first one.  In `print`, `utf8` and `color` are YES or NO.
 */
void top_draw(struct tdt__string *to, const struct top_choice *choice,
	      const struct top_round *round, const struct top_size *size,
	      const struct tdt_print_options *print);

/* Write the round as a JSON object.  Errors are kept in `out`. */
void top_json(struct tdt__out *out, const struct top_round *round);

/*
 * Take over the terminal on standard input and output.  False: there is none that curses knows;
 * then nothing has changed.
 */
bool top_terminal_begin(bool color);

/* Restore the terminal.  May be called twice. */
void top_terminal_end(void);

void top_terminal_size(struct top_size *size);

/* Show the lines in `text` of `n` bytes (top_draw()).  Only what has changed is sent. */
void top_terminal_show(const char *text, size_t n);

/* The next key that was pressed, as top_press() takes it; -1: there is none. */
int top_terminal_key(void);
