// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sealing frames: see seal.h. */

#include "capture/seal.h"

static void add_pair(struct tdt__seal *seal, uint32_t frame, uintptr_t at, tdt__pair were,
		     uintptr_t first_mask)
{
	seal->pair[seal->n++] =
		(struct tdt__sealed){ .were = were,
				      .mask = { first_mask, ~(uintptr_t)0 },
				      .at = at,
				      .frame = frame };
}

/*
 * Add a single word.  The pair also contains the word below it, which can be read: it is on the
 * stack, because `at` lies outside the innermost frame.
 */
static void add_word(struct tdt__seal *seal, uint32_t frame, uintptr_t at, uintptr_t was)
{
	add_pair(seal, frame, at - sizeof was, (tdt__pair){ 0, was }, 0);
}

static void seal_frame(struct tdt__seal *seal, uint32_t index, struct tdt__frame *frame,
		       const struct tdt__frame *caller)
{
	uintptr_t at = tdt__return_slot(frame);
	bool beside = frame->fp_slot == at - 8;

	frame->sealed = (uint8_t)seal->n;
	add_pair(seal, index, at - 8, (tdt__pair){ caller->fp, tdt__return_word(at, caller) },
		 beside ? ~(uintptr_t)0 : 0);
	if (frame->fp_slot != 0 && !beside)
		add_word(seal, index, frame->fp_slot, caller->fp);
	if (tdt__cfa_slot(frame) != 0)
		add_word(seal, index, tdt__cfa_slot(frame), frame->cfa);
}

void tdt__seal_set(struct tdt__seal *seal, struct tdt__capture *capture, uint32_t index)
{
	/* If one leaf has shared the frame, the next leaf need not share it too. */
	if (seal->first != index) {
		seal->first = index;
		return;
	}
	seal->n = 0;
	while (tdt__is_frame(index) && seal->n + 3 <= TDT__SEAL_PAIRS) {
		struct tdt__recorded *captured = &capture->stacks.frames[index];
		const struct tdt__frame *caller = &capture->top;

		if (tdt__is_frame(captured->parent))
			caller = &capture->stacks.frames[captured->parent].frame;
		else if (captured->parent != TDT__PARENT_TOP)
			break;
		if (caller->level != captured->frame.level && captured->parent != TDT__PARENT_TOP)
			break;
		seal_frame(seal, index, &captured->frame, caller);
		index = captured->parent;
	}
	seal->beyond = index;
}
