/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Notes: structs in the registry that each say one thing that happened, such as the last panics.
 * They can also be read from outside.
 *
 *   thread that notes                 reader
 *     seq: even to odd                  seq, must be even
 *     fence (release)                   copy the note
 *     write the note                    fence (acquire)
 *     seq: to the next even one         seq again: the same?
 *
 * A thread that finds `seq` odd, because another thread writes there, leaves its note out: as many
 * things happened at once as there is room for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each note begins with.  Its size is a multiple of 8. */
struct tdt__note {
	uint32_t seq;    /* odd while the note is written */
	uint32_t with;   /* the note's own */
	uint64_t number; /* 0: it was never used */
};

/* Write the note `from`, all but its `seq`, to its place.  Takes no lock and allocates nothing. */
void tdt__note_write(void *to, const void *from, size_t size);

/* Copy the note, if it is that `number`.  False: it is not there any more, or not yet. */
bool tdt__note_read(void *copy, const void *from, size_t size, uint64_t number);

/* In a child of fork(): give up those of `n` notes that threads of the parent were writing. */
void tdt__notes_forget_half(void *notes, size_t n, size_t size);
