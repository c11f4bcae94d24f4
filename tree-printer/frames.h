/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_FRAMES_H
#define TDT_TREE_PRINTER_FRAMES_H

/* The texts of the frames of many trees, each made once. */

#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

#include "base/index.h"
#include "strings.h"

/*
 * The texts of frames: name and place.  Each text is stored once and has a number; frames that read
 * the same share the number.  The frames must not change as long as they are looked up here.  A new
 * object has `options`, and zeros in all other fields.
 */
struct tdt__frames {
	const struct tdt_print_options *options;
	struct tdt__string string; /* the texts */
	struct tdt__frame_text *text;
	struct tdt__frame_seen *seen;
	uint32_t texts;
	uint32_t n_seen;
	size_t room; /* of each of the two arrays, and of its index */
	struct tdt__index by_text;
	struct tdt__index by_frame;
};

/* The number of a frame's text.  UINT32_MAX: no memory. */
uint32_t tdt__frames_find(struct tdt__frames *frames, const struct tdt_frame *frame);
void tdt__frames_write(struct tdt__out *out, const struct tdt__frames *frames, uint32_t number);
void tdt__frames_fini(struct tdt__frames *frames);

#endif
