/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_ODD_FRAMES_H
#define TESTS_ODD_FRAMES_H

/*
 * Functions with frames of unusual shapes, each of which calls `inner` once.  ODD_FRAMES names the
 * table.
 */

struct odd_frame {
	const char *name; /* NULL: the end */
	void (*call)(void (*inner)(void));
	const char
	    *wrong; /* why its unwind information is not true at every instruction; NULL: it is */
};

extern const struct odd_frame odd_frames_o1[], odd_frames_o2[];

#endif
