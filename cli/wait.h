/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A time that a command waits for something, and that the user may end early. */

#include <stdbool.h>
#include <stdint.h>

/*
 * From now on Ctrl-C and its like end wait_until(), in this process and in children that it starts:
 * it does not matter to which of them a signal is sent.  Returns 0 or a negative errno.
 */
int wait_begin(void);

/* From now on they end the process again. */
void wait_end(void);

/* A descriptor from which there is something to be read when the user wants an end. */
int wait_descriptor(void);

/* Wait until `time` (tdt__clock()).  False: the user wants an end. */
bool wait_until(uint64_t time);

/* On a terminal: how much of the time has passed, "recording: 3 s of 10 s"; and nothing again. */
void show_progress(const char *what, uint64_t passed, uint64_t all);
void clear_progress(void);
