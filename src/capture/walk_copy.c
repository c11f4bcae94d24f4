// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Walking the copy of a stack. */

#include "capture/walk_copy.h"

#include "capture/capture.h"
#include "capture/find_fp.h"
#include "capture/follow.h"
#include "capture/stack_copy.h"

/*
 * Why the walk ended.  TDT_CUT_NOT: it has reached the outermost frame.  A walk that leaves the
 * copy looks the same as a walk of a damaged stack.  If the copy is not whole, the reason for that
 * is reported.
 */
static enum tdt_cut end_of_walk(const struct tdt__stack_copy *copy, const struct tdt__walk *walk,
				enum tdt__walked walked)
{
	if (walked == TDT__WALK_TOP || (copy->of_fiber && walk->cut == TDT_CUT_STACK))
		return TDT_CUT_NOT;
	return walk->cut == TDT_CUT_CORRUPT && copy->end != TDT_CUT_NOT ? copy->end : walk->cut;
}

/*
 * To step from frame `at`, the walk needs a frame pointer that is not known: try again with one
 * that is found.
 */
static enum tdt__walked find_and_go_on(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
				       struct tdt__registers at, struct tdt__frame *frame)
{
	enum tdt_cut cut = walk->cut;
	enum tdt__walked walked;
	bool sure;

	at.fp = tdt__find_fp(copy, walk, at, &sure);
	if (at.fp == TDT__NO_FP || (copy->doubtful && !sure)) {
		walk->cut = cut == TDT_CUT_CORRUPT ? TDT_CUT_NO_INFO : cut;
		return TDT__WALK_CUT;
	}
	tdt__stack_copy_walk(copy, walk, at);
	walked = tdt__stack_copy_next(copy, walk, frame);
	frame->guessed = frame->guessed || (!sure && walked != TDT__WALK_TOP);
	return walked;
}

/*
 * Step out of the frame that the walk is at.  If no rule describes the frame, it is followed by its
 * full unwind information; if that fails too, a best guess is accepted.
 */
static enum tdt__walked next_frame(const struct tdt__stack_copy *copy, const uintptr_t *registers,
				   struct tdt__walk *walk, struct tdt__frame *frame)
{
	struct tdt__registers at = walk->at;
	enum tdt__walked walked = tdt__stack_copy_next(copy, walk, frame);

	if ((frame->guessed ||
	     (walked == TDT__WALK_CUT && walk->cut == TDT_CUT_UNSUPPORTED)) &&
	    tdt__follow(copy, registers, walk, at, frame, &walked))
		return walked;
	if (walked == TDT__WALK_CUT && at.fp == TDT__NO_FP)
		walked = find_and_go_on(copy, walk, at, frame);
	return walked;
}

bool tdt__walk_copy(const struct tdt__stack_copy *copy, struct tdt__registers at,
			     const uintptr_t *registers, bool last, struct tdt__capture *capture)
{
	struct tdt__walk *walk = &capture->walk;
	enum tdt__walked walked;
	struct tdt__frame frame;
	bool more;

	tdt__stack_copy_walk(copy, walk, at);
	do {
		walked = next_frame(copy, registers, walk, &frame);
		frame.level = copy->level;
		/* The traced future's own frame is not shown. */
		more = (last && walked == TDT__WALK_TOP && !frame.guessed) ||
		       tdt__capture_add(capture, &frame);
	} while (more && walked == TDT__WALK_FRAME);
	if (!more || (walked == TDT__WALK_TOP && !last))
		return more;
	tdt__capture_end(capture, end_of_walk(copy, walk, walked));
	return false;
}
