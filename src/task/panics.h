/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The last tasks that panicked: <tdt/panics.h>, and struct tdt_registry_panic. */

#include <stdint.h>

#include "facts/past.h"

struct tdt__capture;
struct tdt_handle;
struct tdt_trace;

/*
 * Note that the task panics, on the thread of its last poll.  `capture` is the capture of that
 * poll; NULL: it was not captured.  Takes no lock and allocates nothing.
 */
void tdt__panic_note(const struct tdt_handle *task, const struct tdt__capture *capture);

/* Notes of this process, as of `now` (tdt__clock()). */
struct tdt__past_view tdt__past_here(uint64_t now);

/* How many tasks have panicked since the start. */
uint64_t tdt__panic_count(void);

/*
 * The trace of the panic number `back` from the last one (0), as of `now` (tdt__clock()).  The
 * caller frees it.  Returns 0; or -ESRCH, if there were not so many panics, or the panic was
 * overwritten meanwhile; or -ENOMEM.
 */
int tdt__panic_trace(uint64_t back, uint64_t now, struct tdt_trace **trace);
