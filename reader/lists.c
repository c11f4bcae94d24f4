// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading lists of frames.  A list belongs to the host, which may change or free it when the task
 * goes on.  So it counts only if the record is the same afterwards.
 */

#include "reader/lists.h"

#include <stdlib.h>
#include <string.h>

#include <tdt/integrate/leaf.h>

#include "facts/record.h"
#include "facts/wait.h"
#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"

#define MOST_LISTED 1024 /* frames; the outer ones are left out */

struct list_reading {
	struct tdt__images *images;
	struct tdt__stacks *stacks;
};

/* Read a string of the host.  NULL: there is none. */
static const char *read_listed_text(struct tdt__images *images, const char *address, char *text,
				    size_t size)
{
	if (address == NULL || !tdt__images_string(images, (uintptr_t)address, text, size))
		return NULL;
	return text;
}

/* The number that stands for a named frame; 0: no memory. */
static uintptr_t name_listed(struct list_reading *reading, const struct tdt_leaf_frame *frame)
{
	char function[TDT_LEAF_TEXT_MAX + 1], file[TDT_LEAF_TEXT_MAX + 1];

	return tdt__named_add(&reading->stacks->named,
			      read_listed_text(reading->images, frame->function, function,
					       sizeof function),
			      read_listed_text(reading->images, frame->file, file, sizeof file),
			      frame->line, frame->column);
}

static void append_listed(struct tdt__stacks *stacks, uintptr_t pc)
{
	uint32_t n = stacks->n++;

	stacks->frames[n] = (struct tdt__recorded){ .frame = { .pc = pc },
						    .parent = TDT__PARENT_TOP,
						    .leaves = n == 0 };
	if (n > 0)
		stacks->frames[n - 1].parent = n;
}

/* The list has the outermost frame first.  False: no memory. */
static bool add_list(struct list_reading *reading, const struct tdt_leaf *leaf, const char *frames,
		     uint32_t n)
{
	while (n-- > 0) {
		struct tdt_leaf_frame named;
		uint64_t pc;

		if (leaf->kind == TDT_LEAF_PCS) {
			memcpy(&pc, frames + n * sizeof pc, sizeof pc);
		} else {
			memcpy(&named, frames + n * sizeof named, sizeof named);
			pc = name_listed(reading, &named);
			if (pc == 0)
				return false;
		}
		append_listed(reading->stacks, pc);
	}
	return true;
}

/* A list without frames says that the task waits, but not where. */
static bool add_unknown(struct tdt__stacks *stacks, const struct tdt_task_record *record)
{
	uintptr_t pc = tdt__named_add(&stacks->named, tdt__unknown_frame(record), NULL, 0, 0);

	if (pc != 0)
		append_listed(stacks, pc);
	return pc != 0;
}

static bool read_listed(struct list_reading *reading, const struct tdt_task_record *record,
			const struct tdt_leaf *leaf, uint32_t n)
{
	size_t each = leaf->kind == TDT_LEAF_PCS ? sizeof(uint64_t) : sizeof(struct tdt_leaf_frame);
	/* The inner frames are the last ones. */
	uint64_t at = (uintptr_t)leaf->frames + (uint64_t)(leaf->n - n) * each;
	char *frames = malloc(n * each + 1);
	bool read = frames != NULL &&
		    tdt__target_read(reading->images->target, at, frames, n * each) &&
		    (n > 0 ? add_list(reading, leaf, frames, n)
			   : add_unknown(reading->stacks, record));

	free(frames);
	if (read && n < leaf->n)
		reading->stacks->frames[reading->stacks->n - 1].parent =
			TDT__PARENT_CUT(TDT_CUT_LIMIT);
	return read;
}

static bool is_in_force_still(const struct tdt__target *target, const struct tdt__seen *seen)
{
	struct tdt_task_record now;

	return tdt__seen_stands(target, seen, &now) && now.leaf == seen->record.leaf;
}

/*
 * Whether the list says where the task waits, or, if it runs, where it came from.  The list of a
 * coroutine that has not awaited yet has no frames.
 */
static bool is_of_task(const struct tdt_leaf *leaf, const struct tdt_task_record *record)
{
	bool runs = record->state == TDT_TASK_RECORD_POLLING;

	return leaf->task == record->id && leaf->polls == record->polls - runs &&
	       (leaf->n != 0 || !runs) &&
	       (leaf->kind == TDT_LEAF_PCS || leaf->kind == TDT_LEAF_NAMED);
}

/*
 * Read the list of the task.  One without frames is that of a task of tdt_task_new() that was left
 * without a list.
 */
static bool find_leaf(const struct tdt__tasks *tasks, const struct tdt__seen *seen,
		      struct tdt_leaf *leaf)
{
	const struct tdt_task_record *record = &seen->record;
	bool waits = record->state == TDT_TASK_RECORD_IDLE,
	     alone = tdt__is_seen_callback(tasks, record);

	if (!seen->still || !(waits || alone))
		return false;
	if (record->leaf != 0 &&
	    tdt__target_read(tasks->target, record->leaf, leaf, sizeof *leaf) &&
	    is_of_task(leaf, record))
		return true;
	*leaf = (struct tdt_leaf){ .n = 0 };
	return waits && alone;
}

/* Set all waits of the list.  Its names count only if the task has not gone on. */
static void read_listed_waits(struct tdt__tasks *tasks, struct tdt__seen_task *task,
			      const struct tdt_leaf *leaf)
{
	struct tdt_leaf_wait theirs[TDT_LEAF_WAITS_MAX];
	struct tdt_wait waits[TDT_LEAF_WAITS_MAX];
	uint32_t listed = leaf->n_waits < TDT_LEAF_WAITS_MAX ? leaf->n_waits : TDT_LEAF_WAITS_MAX;
	uint32_t n = 0;

	if (listed < 2 || task->member.info.n_waits == 0 ||
	    !tdt__target_read(tasks->target, (uintptr_t)leaf->waits, theirs,
			      listed * sizeof theirs[0]))
		return;
	while (n < listed) {
		const struct tdt_leaf_wait *from = &theirs[n];
		struct tdt_wait wait = { .size = sizeof wait,
					 .kind = tdt__wait_kind((unsigned)from->kind),
					 .object = (uintptr_t)from->object,
					 .owner = from->owner };

		read_listed_text(tasks->images, from->name, wait.name, sizeof wait.name);
		tdt__add_wait(waits, &n, &wait);
	}
	if (is_in_force_still(tasks->target, task->seen))
		tdt__task_set_waits(tasks, task, waits, n);
}

struct tdt__stacks *tdt__list_read(struct tdt__tasks *tasks, struct tdt__seen_task *task)
{
	const struct tdt_task_record *record = &task->seen->record;
	struct list_reading reading = { .images = tasks->images };
	struct tdt_leaf leaf, again;
	uint32_t n;

	if (!find_leaf(tasks, task->seen, &leaf))
		return NULL;
	n = leaf.n < MOST_LISTED ? leaf.n : MOST_LISTED;
	reading.stacks = tdt__stacks_new(n + 1);
	if (reading.stacks == NULL)
		return NULL;
	reading.stacks->modules = tdt__modules_ref(tasks->images->table);
	reading.stacks->leaves = 1;
	/* Only a task of tdt_task_new() is known to wait at nothing else. */
	reading.stacks->known = record->poll != TDT_TASK_RECORD_REPORTED &&
						(record->stack_top == 0 ||
						 tdt__is_seen_callback(tasks, record))
				    ? TDT_LEAVES_ALL
				    : TDT_LEAVES_UNKNOWN;
	/* In a run, the same list may be set anew after it was changed: then its `polls` differ. */
	if (read_listed(&reading, record, &leaf, n) &&
	    is_in_force_still(tasks->target, task->seen) &&
	    find_leaf(tasks, task->seen, &again) && again.polls == leaf.polls &&
	    again.changes == leaf.changes) {
		read_listed_waits(tasks, task, &leaf);
		return reading.stacks;
	}
	tdt__stacks_free(reading.stacks);
	return NULL;
}
