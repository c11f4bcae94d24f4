// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading lists of frames.  A list belongs to the host, which may change or free it when the task
 * goes on.  So it counts only if the record is the same afterwards.
 */

#include <config.h>

#include "reader/lists.h"

#include <stdlib.h>
#include <string.h>

#include <tdt/integrate/leaf.h>

#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"

#define MOST_LISTED 1024 /* frames; the outer ones are left out */

struct list_reading {
	struct tdt__images *images;
	struct tdt__stacks *stacks;
};

/* Read a string of the host.  NULL: there is none. */
static const char *read_listed_text(struct tdt__images *images, const char *address,
				    char text[TDT_LEAF_TEXT_MAX + 1])
{
	if (address == NULL || !tdt__images_string(images, (uintptr_t)address, text,
						   TDT_LEAF_TEXT_MAX + 1))
		return NULL;
	return text;
}

/* The number that stands for a named frame; 0: no memory. */
static uintptr_t name_listed(struct list_reading *reading, const struct tdt_leaf_frame *frame)
{
	char function[TDT_LEAF_TEXT_MAX + 1], file[TDT_LEAF_TEXT_MAX + 1];

	return tdt__named_add(&reading->stacks->named,
			      read_listed_text(reading->images, frame->function, function),
			      read_listed_text(reading->images, frame->file, file), frame->line,
			      frame->column);
}

/* Add the next outer frame. */
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
static bool add_unknown(struct tdt__stacks *stacks)
{
	uintptr_t pc = tdt__named_add(&stacks->named, "(unknown)", NULL, 0, 0);

	if (pc != 0)
		append_listed(stacks, pc);
	return pc != 0;
}

static bool read_listed(struct list_reading *reading, const struct tdt_leaf *leaf, uint32_t n)
{
	size_t each = leaf->kind == TDT_LEAF_PCS ? sizeof(uint64_t) : sizeof(struct tdt_leaf_frame);
	/* The inner frames are the last ones. */
	uint64_t at = (uintptr_t)leaf->frames + (uint64_t)(leaf->n - n) * each;
	char *frames = malloc(n * each + 1);
	bool read = frames != NULL &&
		    tdt__target_read(reading->images->target, at, frames, n * each) &&
		    (n > 0 ? add_list(reading, leaf, frames, n) : add_unknown(reading->stacks));

	free(frames);
	if (read && n < leaf->n)
		reading->stacks->frames[reading->stacks->n - 1].parent =
			TDT__PARENT_CUT(TDT_CUT_LIMIT);
	return read;
}

/* Whether the task has not gone on since its record was copied. */
static bool is_in_force_still(const struct tdt__target *target, const struct tdt__seen *seen)
{
	struct tdt_task_record now;

	return tdt__target_read(target, seen->address, &now, sizeof now) &&
	       now.seq == seen->record.seq && now.state == seen->record.state &&
	       now.polls == seen->record.polls && now.leaf == seen->record.leaf;
}

struct tdt__stacks *tdt__list_read(struct tdt__images *images, const struct tdt__seen *seen)
{
	const struct tdt_task_record *record = &seen->record;
	struct list_reading reading = { .images = images };
	struct tdt_leaf leaf;
	uint32_t n;

	if (record->leaf == 0 || !seen->still || record->state != TDT_TASK_RECORD_IDLE ||
	    !tdt__target_read(images->target, record->leaf, &leaf, sizeof leaf) ||
	    leaf.task != record->id || leaf.polls != record->polls ||
	    (leaf.kind != TDT_LEAF_PCS && leaf.kind != TDT_LEAF_NAMED))
		return NULL;
	n = leaf.n < MOST_LISTED ? leaf.n : MOST_LISTED;
	reading.stacks = tdt__stacks_new(n + 1);
	if (reading.stacks == NULL)
		return NULL;
	reading.stacks->modules = tdt__modules_ref(images->table);
	reading.stacks->leaves = 1;
	/* Only a task of tdt_task_new() is known to wait at nothing else. */
	reading.stacks->known = record->stack_top == 0 ? TDT_LEAVES_ALL : TDT_LEAVES_UNKNOWN;
	if (read_listed(&reading, &leaf, n) && is_in_force_still(images->target, seen))
		return reading.stacks;
	tdt__stacks_free(reading.stacks);
	return NULL;
}
