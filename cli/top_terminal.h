/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The terminal of tdt top, by curses: its size, its keys, and lines of text with colours. */

#include <stdbool.h>
#include <stddef.h>

#include "cli/top_screen.h"

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

/* The next key that was pressed, a character or enum top_key; -1: there is none. */
int top_terminal_key(void);
