/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The texts of the frames of many trees, each made once. */

#include <stdint.h>

#include "base/texts.h"
#include "operation.h"
#include "origin.h"
#include "strings.h"

/* As what a frame is printed. */
enum tdt__role {
	TDT__ROLE_OWN,     /* the program's own code: with the path below its directory */
	TDT__ROLE_LIBRARY, /* with a path that also names the library */
	TDT__ROLE_OPERATION, /* the same, with the name of the operation (operation.h) */
	TDT__ROLE_OBJECT,    /* the object of an operation: its name only, as a remark */
	TDT__ROLES
};

/* A frame, and what its function tells: whose code it is, what it polls (operation.h). */
struct tdt__frame_seen {
	const struct tdt_frame *frame;
	enum tdt__origin origin;
	enum tdt__polled polled;
	bool hides_futures;
	uint32_t text[TDT__ROLES]; /* the number + 1; 0: it was not made */
};

/*
 * The texts of frames: name and place.  Each text is stored once and has a number; frames that read
 * the same share the number.  The frames must not change as long as they are looked up here.  A new
 * object has `string.options`, and zeros in all other fields.
 */
struct tdt__frames {
	struct tdt__string string; /* the text that is made */
	struct tdt__texts texts;
	TDT__TABLE(struct tdt__frame_seen, seen, n_seen); /* by their numbers */
};

/* Returns the number of a frame.  UINT32_MAX: no memory. */
uint32_t tdt__frames_note(struct tdt__frames *frames, const struct tdt_frame *frame);

/* The number of the text of the frame with this number.  UINT32_MAX: no memory. */
uint32_t tdt__frames_text(struct tdt__frames *frames, uint32_t frame, enum tdt__role role);
void tdt__frames_add(struct tdt__string *to, const struct tdt__frames *frames, uint32_t number);
void tdt__frames_fini(struct tdt__frames *frames);
