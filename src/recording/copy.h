/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Copy a recording from where it is written to, by the rule of tdt/layout/recording.h, so that it
 * can be read (read.h) and kept.  The threads that write are not held up.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Copy `n` bytes from `address` to `to`.  Returns 0 or a negative errno.  Addresses and lengths are
 * multiples of 8, and each field of 8 bytes must be read at once.  What the call reads must not be
 * read before what an earlier call has read: see <stdatomic.h>, acquire.
 */
typedef int tdt__recording_read_fn(void *data, uint64_t address, void *to, size_t n);

struct tdt__recording_source {
	tdt__recording_read_fn *read;
	void *data;
	uint64_t address; /* of the header in memory; 0: all lies at its offset */
	/*
	 * The bytes that can be read in all: a recording whose rings have more is damaged.  0:
	 * unknown, and the recording is trusted.
	 */
	uint64_t bytes;
	/*
	 * The time now, in ticks of the recording, which becomes the copy's `taken`.  0, if the
	 * process is stopped or gone: then that is the time of the newest event.
	 */
	uint64_t now;
	/* Leave out what was written before, in ticks; 0: leave out nothing. */
	uint64_t since;
};

/*
 * Make a copy, which is a whole recording of the events that were whole.  It has no room for more
 * of them, so it may be smaller than the block.  The caller frees it.  Returns 0, -EINVAL (there is
 * no recording, or it is damaged), -ENOTSUP (of another version), -ENOMEM, or what `read` returned.
 */
int tdt__recording_copy(const struct tdt__recording_source *source, void **copy, size_t *size);
