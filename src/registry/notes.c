// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Writing and reading notes: see notes.h. */

#include "registry/notes.h"

#include <stdatomic.h>

#include "registry/registry.h"

void tdt__note_write(void *place, const void *from, size_t size)
{
	tdt__record_word *words = place;
	struct tdt__note *to = place;
	/* Acquire: what the last writer wrote comes before.  Pairs with the release below. */
	uint32_t seq = TDT__PEEK(to->seq);

	if (seq % 2 != 0 || !__atomic_compare_exchange_n(&to->seq, &seq, seq + 1, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	/*
	 * A reader that sees a word of this note then sees the odd `seq`.  Pairs with
	 * tdt__note_read().
	 */
	atomic_thread_fence(memory_order_release);
	TDT__POKE(to->with, ((const struct tdt__note *)from)->with);
	for (size_t i = 1; i < size / sizeof *words; i++)
		TDT__POKE(words[i], ((const tdt__record_word *)from)[i]);
	/* Release the note.  Pairs with tdt__note_read(). */
	__atomic_store_n(&to->seq, seq + 2, __ATOMIC_RELEASE);
}

bool tdt__note_read(void *copy, const void *place, size_t size, uint64_t number)
{
	const struct tdt__note *from = place;
	/* Acquire the note.  Pairs with tdt__note_write(). */
	uint32_t seq = __atomic_load_n(&from->seq, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < size / sizeof(tdt__record_word); i++)
		((tdt__record_word *)copy)[i] = TDT__PEEK(((const tdt__record_word *)place)[i]);
	/* Read all of it before `seq` again.  Pairs with the fence in tdt__note_write(). */
	atomic_thread_fence(memory_order_acquire);
	return seq % 2 == 0 && TDT__PEEK(from->seq) == seq &&
	       ((struct tdt__note *)copy)->number == number;
}

void tdt__notes_forget_half(void *notes, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++) {
		struct tdt__note *note = (void *)((char *)notes + i * size);

		if (note->seq % 2 == 0)
			continue;
		TDT__POKE(note->number, 0);
		/* Release the number.  Pairs with tdt__note_read(). */
		__atomic_store_n(&note->seq, note->seq + 1, __ATOMIC_RELEASE);
	}
}
