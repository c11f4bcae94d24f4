// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the lists that say where a task waits. */

#include "capture/leaf_list.h"

#include <stddef.h>
#include <string.h>

#include <tdt/integrate/leaf.h>

#include "base/name.h"
#include "capture/capture.h"
#include "facts/wait.h"
#include "host/barrier.h"
#include "host/peek.h"
#include "registry/registry.h"
#include "tree/named.h"

_Static_assert(offsetof(struct tdt_leaf, n) == 4 && offsetof(struct tdt_leaf, frames) == 8 &&
		       offsetof(struct tdt_leaf, task) == 16 &&
		       offsetof(struct tdt_leaf, polls) == 24 &&
		       offsetof(struct tdt_leaf, waits) == 32 &&
		       offsetof(struct tdt_leaf, n_waits) == 40 && sizeof(struct tdt_leaf) == 48 &&
		       sizeof(struct tdt_leaf_wait) == 32,
	       "readers outside rely on the layout");

#define LIST_MOST 1024u  /* frames that are shown: tdt/integrate/leaf.h */
#define LIST_SLICE 16u   /* frames that are read at a time */
#define TEXTS_SIZE 1024u /* bytes that are read at a time; half of it is more than a string */

/*
 * A piece of the host's memory.  Strings lie next to each other, so that one piece often has the
 * next string, too.
 */
struct texts {
	uintptr_t at;
	size_t n;
	char bytes[TEXTS_SIZE];
	char text[TDT_LEAF_TEXT_MAX + 1]; /* the string that was read last */
};

/* A slice of the array, and what its strings are read by. */
struct slice {
	union {
		uintptr_t pcs[LIST_SLICE];
		struct tdt_leaf_frame named[LIST_SLICE];
	};
	struct texts functions, files;
};

/* Returns the beginning of a string, or NULL if there is nothing to be read at `address`. */
static const char *read_text(struct texts *texts, const char *address)
{
	uintptr_t at = (uintptr_t)address & ~(uintptr_t)(TEXTS_SIZE / 2 - 1);
	size_t from = (uintptr_t)address - at, n;

	if (address == NULL)
		return NULL;
	if (at != texts->at)
		texts->n = tdt__peek(texts->bytes, at, TEXTS_SIZE);
	texts->at = at;
	if (from >= texts->n)
		return NULL;
	n = texts->n - from < TDT_LEAF_TEXT_MAX ? texts->n - from : TDT_LEAF_TEXT_MAX;
	memcpy(texts->text, texts->bytes + from, n);
	texts->text[n] = '\0';
	return texts->text;
}

/* The PC, or number, of a frame of the slice.  0: no memory. */
static uintptr_t pc_of(struct slice *slice, uint32_t kind, uint32_t i,
		       struct tdt__capture *capture)
{
	const struct tdt_leaf_frame *named = &slice->named[i];

	if (kind == TDT_LEAF_PCS) {
		tdt__walk_meet(&capture->walk, slice->pcs[i] - 1);
		return slice->pcs[i];
	}
	return capture->fixed
		   ? 0
		   : tdt__named_add(&capture->stacks.named,
				    read_text(&slice->functions, named->function),
				    read_text(&slice->files, named->file), named->line,
				    named->column);
}

/* Read `n` frames from number `first` on.  False: they cannot be read. */
static bool read_slice(struct slice *slice, const struct tdt_leaf *leaf, uint32_t first, uint32_t n)
{
	size_t each = leaf->kind == TDT_LEAF_PCS ? sizeof slice->pcs[0] : sizeof slice->named[0];

	return tdt__peek(slice->pcs, (uintptr_t)leaf->frames + first * each, n * each) == n * each;
}

/* Add the `n` frames of the slice, the innermost one first.  False: the stack has ended. */
static bool add_slice(struct tdt__capture *capture, uint32_t kind, struct slice *slice, uint32_t n)
{
	while (n-- > 0) {
		struct tdt__frame frame = { .pc = pc_of(slice, kind, n, capture) };

		if (frame.pc == 0 && kind == TDT_LEAF_NAMED) {
			capture->stacks.lost += capture->stacks.n == capture->own;
			tdt__capture_end(capture, TDT_CUT_MEMORY);
			return false;
		}
		if (!tdt__capture_add(capture, &frame))
			return false;
	}
	return true;
}

/* Add the frames of the list from the innermost one on, and end the stack. */
static void add_listed(struct tdt__capture *capture, const struct tdt_leaf *leaf)
{
	uint32_t last = leaf->n > LIST_MOST ? leaf->n - LIST_MOST : 0, first = leaf->n;
	struct slice slice;

	slice.functions.at = slice.files.at = 1; /* nothing was read from there */
	while (first > last) {
		uint32_t n = first - last < LIST_SLICE ? first - last : LIST_SLICE;

		first -= n;
		if (!read_slice(&slice, leaf, first, n)) {
			tdt__capture_end(capture, TDT_CUT_CORRUPT);
			return;
		}
		if (!add_slice(capture, leaf->kind, &slice, n))
			return;
	}
	tdt__capture_end(capture, last > 0 ? TDT_CUT_LIMIT : TDT_CUT_NOT);
}

/* Record that the task waits, and that it is not known where. */
static void record_unknown(struct tdt__capture *capture, const char *frame)
{
	const struct tdt_leaf_frame unknown = { frame, NULL, 0, 0 };
	const struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 1, .frames = &unknown };

	tdt__capture_begin(capture);
	add_listed(capture, &leaf);
}

/*
 * Record the list beside the leaves that were walked.  Its frames have no CFAs, so no leaf shares
 * them.
 */
static void record_leaf(struct tdt__capture *capture, const struct tdt_leaf *leaf)
{
	uint32_t before = capture->stacks.leaves + capture->stacks.lost;

	if (leaf->kind == TDT_LEAF_PCS || leaf->kind == TDT_LEAF_NAMED) {
		tdt__capture_begin(capture);
		add_listed(capture, leaf);
	}
	if (capture->stacks.leaves + capture->stacks.lost == before)
		record_unknown(capture, "(unknown)");
}

/* Add all that the list waits for.  The record, if the facts are from there, has only one wait. */
static void record_waits(struct tdt__capture *capture, const struct tdt_leaf *leaf)
{
	if (capture->facts.recorded && leaf->n_waits != 0)
		capture->facts.n_waits = 0;
	for (uint32_t i = 0; i < leaf->n_waits && i < TDT_LEAF_WAITS_MAX; i++) {
		struct tdt_leaf_wait theirs;
		struct tdt_wait wait;
		char name[TDT__NAME_MAX + 2];

		if (tdt__peek(&theirs, (uintptr_t)(leaf->waits + i), sizeof theirs) !=
		    sizeof theirs)
			return;
		name[tdt__peek(name, (uintptr_t)theirs.name, sizeof name - 1)] = '\0';
		wait = (struct tdt_wait){ .size = sizeof wait,
					  .kind = tdt__wait_kind(theirs.kind),
					  .object = (uintptr_t)theirs.object,
					  .owner = theirs.owner };
		tdt__name_copy(wait.name, name);
		tdt__capture_wait(capture, &wait);
	}
}

/*
 * Read a list.  One that cannot be read has no frames.  False: it was not set for that task and
 * number of polls.
 */
static bool read_leaf(struct tdt_leaf *leaf, uintptr_t address, uint64_t id, uint64_t polls)
{
	if (tdt__peek(leaf, address, sizeof *leaf) == sizeof *leaf)
		return leaf->task == id && leaf->polls == polls;
	*leaf = (struct tdt_leaf){ .n = 0 };
	return true;
}

bool tdt__leaf_list_record(struct tdt__capture *capture, uintptr_t address, uint64_t id,
			   uint64_t polls)
{
	struct tdt_leaf leaf;

	if (!read_leaf(&leaf, address, id, polls))
		return false;
	record_leaf(capture, &leaf);
	record_waits(capture, &leaf);
	return true;
}

uint32_t tdt__leaf_list_changes(const struct tdt_handle *task)
{
	struct tdt_leaf leaf;

	return tdt__peek(&leaf, TDT__PEEK(task->record.leaf), sizeof leaf) == sizeof leaf
		       ? leaf.changes
		       : 0;
}

void tdt__leaf_list_append(struct tdt__capture *capture, const struct tdt_handle *task,
			   uint64_t polls, uint32_t changes)
{
	uintptr_t address = TDT__PEEK(task->record.leaf);
	uint64_t id = TDT__PEEK(task->record.id);
	uint32_t n = capture->stacks.n;
	struct tdt_leaf leaf, again;

	if (address == 0 || !tdt__is_callback_task(task) ||
	    tdt__peek(&leaf, address, sizeof leaf) != sizeof leaf || leaf.task != id ||
	    leaf.polls != polls || leaf.changes != changes || leaf.n == 0 ||
	    (leaf.kind != TDT_LEAF_PCS && leaf.kind != TDT_LEAF_NAMED) ||
	    !tdt__capture_resume(capture))
		return;
	add_listed(capture, &leaf);
	/* The list may have been set anew meanwhile, after it was changed. */
	tdt__barrier_copied();
	if (TDT__PEEK(task->record.leaf) != address ||
	    !read_leaf(&again, address, id, polls) || again.changes != changes) {
		capture->stacks.n = n;
		capture->stacks.frames[n - 1].parent = TDT__PARENT_TOP;
	}
}

bool tdt__waits_at_list(const struct tdt_handle *task)
{
	uint64_t polls = TDT__PEEK(task->record.polls);
	uintptr_t address = TDT__PEEK(task->record.leaf);
	struct tdt_leaf leaf;

	return TDT__PEEK(task->record.state) == TDT_TASK_RECORD_IDLE &&
	       (tdt__is_callback_task(task) ||
		(address != 0 &&
		 atomic_load_explicit(&task->leaf_answers, memory_order_relaxed) &&
		 read_leaf(&leaf, address, TDT__PEEK(task->record.id), polls)));
}

/* Whether the task has not gone on since its record was copied, nor its list been replaced. */
static bool is_in_force(const struct tdt_handle *task, const struct tdt_task_record *record,
			uintptr_t address)
{
	/* What was copied before is not of later than what is loaded from here on: see above. */
	tdt__barrier_copied();
	return TDT__PEEK(task->record.seq) == record->seq &&
	       TDT__PEEK(task->record.state) == TDT_TASK_RECORD_IDLE &&
	       TDT__PEEK(task->record.polls) == record->polls &&
	       TDT__PEEK(task->record.leaf) == address;
}

bool tdt__leaf_list_capture(struct tdt__capture *capture, const struct tdt_handle *task)
{
	struct tdt_task_record record;
	bool alone = tdt__is_callback_task(task), listed;
	uintptr_t address;

	/* Acquire what is in the list.  Pairs with the release in task/leaf.c. */
	address = __atomic_load_n(&task->record.leaf, __ATOMIC_ACQUIRE);
	if ((address == 0 && !alone) || !tdt__registry_read(task, &record) ||
	    record.state != TDT_TASK_RECORD_IDLE)
		return false;
	tdt__capture_recorded(capture, task, &record);
	listed = address != 0 && tdt__leaf_list_record(capture, address, record.id, record.polls);
	if (!listed && alone) /* it was left without one */
		record_unknown(capture, tdt__unknown_frame(&record));
	if ((listed || alone) && is_in_force(task, &record, address)) {
		tdt__capture_complete(capture);
		/* A list that a poll gave is one leaf beside others. */
		if (tdt__is_reported_task(task) ||
		    (!alone &&
		     !atomic_load_explicit(&task->leaf_answers, memory_order_relaxed)))
			capture->stacks.known = TDT_LEAVES_UNKNOWN;
		return true;
	}
	tdt__capture_clear(capture);
	return false;
}
