// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading last trees.  One call reads, in this order: the head of the two trees; both trees; the
 * head again; the task's record.  If the head and the record are the same as before, the tree is
 * whole, and is the task's.
 *
 * How long the trees are is in the head, so the first call for a task assumes the length of the
 * last task's trees.
 */

#include "reader/trees.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts/registry_tree.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define TREE_TRIES 10

_Static_assert(TDT_REGISTRY_TOP == TDT__PARENT_TOP, "parents are as in stacks");

static size_t tree_size(uint32_t room)
{
	return sizeof(struct tdt_registry_tree) + room * sizeof(struct tdt_registry_entry);
}

/* Make room for two trees with so many entries each. */
static int make_tree_room(struct tdt__tree_reader *reader, uint32_t room)
{
	char *grown;

	if (room > TDT__TREE_FRAMES_MAX)
		return -ENODATA;
	if (reader->buffer != NULL && room == reader->room)
		return 0;
	grown = realloc(reader->buffer, 2 * tree_size(room));
	if (grown == NULL)
		return -ENOMEM;
	reader->buffer = grown;
	reader->room = room;
	return 0;
}

/*
 * Read the trees to the buffer.  Returns 0; -EAGAIN: the trees have changed meanwhile, or another
 * room is needed, which is in `head`; -ENODATA: they cannot be read, or the task is gone.
 */
static int read_trees(const struct tdt__tree_reader *reader, const struct tdt__seen_task *task,
		      struct tdt_registry_watched *head, struct tdt_task_record *record)
{
	const struct tdt__seen *seen = task->seen;
	struct tdt_registry_watched again;
	struct tdt__memory_range range[] = {
		{ seen->record.tree, head, sizeof *head, false },
		{ seen->record.tree + sizeof *head, reader->buffer, 2 * tree_size(reader->room),
		  false },
		{ seen->record.tree, &again, sizeof again, false },
		{ seen->address, record, sizeof *record, false },
	};

	tdt__target_read_ranges(reader->tasks->target, range, 4);
	if (!range[0].read || !range[3].read || record->seq != seen->record.seq ||
	    record->id != seen->record.id || record->tree != seen->record.tree)
		return -ENODATA;
	if (head->room != reader->room)
		return -EAGAIN;
	if (!range[1].read || !range[2].read)
		return -ENODATA;
	return again.published == head->published && again.room == head->room ? 0 : -EAGAIN;
}

/* Whether the parents lead from each entry to the top: they could form a ring. */
static bool leads_to_top(const struct tdt_registry_entry *entry, uint32_t n)
{
	bool *leads = calloc(n + 1, sizeof *leads); /* this entry is known to lead to the top */
	bool sound = leads != NULL;

	for (uint32_t i = 0; i < n && sound; i++) {
		uint32_t steps = 0, at = i;

		for (; tdt__is_frame(at) && !leads[at] && steps <= n; steps++)
			at = entry[at].parent;
		sound = steps <= n;
		for (at = i; sound && tdt__is_frame(at) && !leads[at]; at = entry[at].parent)
			leads[at] = true;
	}
	free(leads);
	return sound;
}

/* Whether all numbers of the tree are as a sound tree has them. */
static bool is_sound(const struct tdt_registry_tree *tree, const struct tdt_registry_entry *entry)
{
	uint64_t leaves = 0;

	for (uint32_t i = 0; i < tree->n; i++) {
		uint32_t parent = entry[i].parent;

		if (tdt__is_frame(parent) ? parent >= tree->n
					  : parent - TDT_REGISTRY_TOP > TDT_CUT_UNSUPPORTED)
			return false;
		leaves += entry[i].leaves & ~TDT_REGISTRY_GUESSED;
	}
	return leaves == tree->leaves && leaves <= TDT__TREE_LEAVES_MAX &&
	       leads_to_top(entry, tree->n);
}

/* How many modules the target has unloaded; the last number that the library knew. */
static uint64_t unloads_now(struct tdt__tree_reader *reader)
{
	const struct tdt__tasks *tasks = reader->tasks;

	if (!reader->unloads_known &&
	    !tdt__target_read(tasks->target, tasks->registry.unloads, &reader->unloads,
			      sizeof reader->unloads))
		reader->unloads = 0;
	reader->unloads_known = true;
	return reader->unloads;
}

static struct tdt__stacks *make_stacks(struct tdt__tree_reader *reader,
				       const struct tdt_registry_tree *tree,
				       const struct tdt_registry_entry *entry)
{
	struct tdt__stacks *stacks = tdt__stacks_new(tree->n);

	if (stacks == NULL)
		return NULL;
	tdt__registry_tree_read(stacks, tree, entry);
	stacks->modules = tdt__modules_ref(reader->tasks->images->table);
	if (unloads_now(reader) > tree->unloads)
		atomic_store_explicit(&stacks->astray, true, memory_order_relaxed);
	return stacks;
}

int tdt__tree_take(struct tdt__tree_reader *reader, const struct tdt_registry_tree *tree,
		   const struct tdt_registry_entry *entry, uint32_t room,
		   struct tdt__read_tree *to)
{
	if (tree->n > room || !is_sound(tree, entry))
		return -ENODATA;
	to->stacks = make_stacks(reader, tree, entry);
	to->head = *tree;
	return to->stacks != NULL ? 0 : -ENOMEM;
}

/* Use the tree in the buffer that was published last. */
static int take_published(struct tdt__tree_reader *reader, uint32_t published,
			  struct tdt__read_tree *to)
{
	const char *at = reader->buffer + (published % 2) * tree_size(reader->room);
	struct tdt_registry_tree tree;

	if (published == 0)
		return -ENODATA;
	memcpy(&tree, at, sizeof tree);
	return tdt__tree_take(reader, &tree, (const void *)(at + sizeof tree), reader->room, to);
}

int tdt__tree_read(struct tdt__tree_reader *reader, const struct tdt__seen_task *task,
		   struct tdt__read_tree *tree)
{
	struct tdt_registry_watched head;
	int error = -EAGAIN;

	if (task->seen->record.tree == 0)
		return -ENODATA;
	head.room = reader->room;
	for (int i = 0; i < TREE_TRIES && error == -EAGAIN; i++) {
		error = make_tree_room(reader, head.room);
		if (error == 0)
			error = read_trees(reader, task, &head, &tree->record);
	}
	if (error == -EAGAIN)
		return -ENODATA;
	tree->published = head.published;
	return error == 0 ? take_published(reader, head.published, tree) : error;
}

void tdt__tree_reader_fini(struct tdt__tree_reader *reader)
{
	free(reader->buffer);
	*reader = (struct tdt__tree_reader){ 0 };
}

void tdt__trace_open_images(const struct tdt_trace *trace, struct tdt__images *images)
{
	for (uint32_t i = 0; trace != NULL && i < trace->stacks->n; i++)
		tdt__images_open(images, trace->stacks->frames[i].frame.pc - 1);
}
