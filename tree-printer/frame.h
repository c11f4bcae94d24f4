/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The text of one frame: its name and its place. */

#include <tdt/tree.h>

#include "strings.h"

/*
 * Add the frame's name, escaped: its function or its address, as the options of the string say, or
 * why the stack was truncated there.  It must have options, as for the two below.
 */
void tdt__frame_name(struct tdt__string *string, const struct tdt_frame *frame);

/* Add what the text form prints behind the name: the frame's place.  May add nothing. */
void tdt__frame_place(struct tdt__string *string, const struct tdt_frame *frame);

/* Add ":12:3"; what is 0 is left out. */
void tdt__line_column(struct tdt__string *string, uint32_t line, uint32_t column);

/* Add the frame's name and place, each in its colour. */
void tdt__frame_line(struct tdt__string *string, const struct tdt_frame *frame);
