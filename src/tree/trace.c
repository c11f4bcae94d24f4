// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Traces.  Those with recorded stacks get a tree when a reader first needs it.  Those that are
 * built by hand (read from a file, or joined from others) have a tree from the start.
 */

#include "tree/trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "symbolize/namer.h"
#include "tree/call_tree.h"
#include "tree/named.h"
#include "tree/stacks.h"
#include "tree/waits.h"

/*
 * A tree, and what the trace says of its task from then on: how many leaves wait is known only with
 * their names.  The info that was lent before is not changed, since other threads may be reading
 * it.
 */
struct named {
	struct tdt__tree tree;
	struct tdt_task_info info; /* of a trace with stacks */
};

static struct tdt__tree *tree_new(void)
{
	struct named *named = malloc(sizeof *named);

	if (named == NULL)
		return NULL;
	tdt__tree_init(&named->tree);
	return &named->tree;
}

static struct named *named_of(struct tdt__tree *tree)
{
	return (struct named *)(void *)tree;
}

static void tree_free(struct tdt__tree *tree)
{
	if (tree == NULL)
		return;
	tdt__tree_fini(tree);
	free(named_of(tree));
}

struct tdt_trace *tdt__trace_bare(struct tdt__stacks *stacks)
{
	struct tdt_trace *trace = stacks != NULL ? calloc(1, sizeof *trace) : NULL;

	if (trace == NULL) {
		tdt__stacks_free(stacks);
		return tdt__nothing(-ENOMEM);
	}
	trace->stacks = stacks;
	return trace;
}

static bool has_owner(const struct tdt_task_info *info)
{
	for (uint32_t i = 0; i < info->n_waits; i++)
		if (info->waits[i]->owner != 0)
			return true;
	return false;
}

/*
 * Give the trace a copy of its waits.  A trace with stacks gets room for the names of owners, which
 * follow the waits.  Returns 0 or a negative errno.
 */
static int copy_waits(struct tdt_trace *trace)
{
	struct tdt_task_info *info = &trace->info;
	const struct tdt_wait *const *waits = info->waits;
	size_t names, n = waits != NULL ? info->n_waits : 0;
	int error = 0;

	info->n_waits = (uint32_t)n;
	info->waits = NULL;
	if (n == 0)
		return 0;
	info->waits = waits;
	names = trace->stacks != NULL && has_owner(info) ? TDT__OWNERS_NAMED * sizeof trace->name
							  : 0;
	trace->listed_waits = calloc(1, n * TDT__LISTED_WAIT + names);
	if (trace->listed_waits == NULL)
		return -ENOMEM;
	info->waits = tdt__waits_in(trace->listed_waits, n, &trace->waits);
	for (size_t i = 0; i < n && error == 0; i++)
		error = tdt__options_read(&trace->waits[i], sizeof trace->waits[i], waits[i]);
	return error;
}

uint32_t tdt__trace_owners(const struct tdt_trace *trace, uint64_t owners[TDT__OWNERS_NAMED])
{
	uint32_t n = 0, known;

	for (uint32_t i = 0; i < trace->info.n_waits && n < TDT__OWNERS_NAMED; i++) {
		uint64_t owner = trace->info.waits[i]->owner;

		for (known = 0; known < n && owners[known] != owner;)
			known++;
		if (owner != 0 && known == n)
			owners[n++] = owner;
	}
	return n;
}

void tdt__trace_name_owner(struct tdt_trace *trace, uint32_t index, uint64_t owner,
			   const char *name)
{
	char *names = (char *)(trace->waits + trace->info.n_waits);
	char *copy = names + index * sizeof trace->name;

	strncpy(copy, name, sizeof trace->name - 1);
	for (uint32_t i = 0; i < trace->info.n_waits; i++)
		if (trace->waits[i].owner == owner)
			trace->waits[i].owner_name = copy;
}

static void copy_name(struct tdt_trace *trace)
{
	if (trace->info.name == NULL)
		return;
	strncpy(trace->name, trace->info.name, sizeof trace->name - 1);
	trace->info.name = trace->name;
}

struct tdt_trace *tdt__trace_of(const struct tdt_task_info *info, struct tdt__stacks *stacks)
{
	struct tdt_trace *trace = tdt__trace_bare(stacks);

	if (trace == NULL)
		return NULL;
	trace->info = *info;
	if (copy_waits(trace) != 0) {
		tdt_trace_free(trace);
		return tdt__nothing(-ENOMEM);
	}
	copy_name(trace);
	tdt__stacks_count(stacks, &trace->info);
	return trace;
}

/*
 * Make the tree of a trace with stacks.  Several threads may do so at once: the first to finish
 * wins.
 */
static const struct tdt__tree *make_tree(struct tdt_trace *trace, uint64_t deadline)
{
	struct tdt__tree *tree = tree_new(), *others = NULL;
	struct tdt_task_info *info;
	struct tdt__over over;
	int error;

	if (tree == NULL)
		return NULL;
	error = tdt__call_tree(tree, trace->stacks, &over, deadline);
	if (error != 0) {
		tree_free(tree);
		return tdt__nothing(error);
	}
	info = &named_of(tree)->info;
	*info = trace->info;
	info->leaves = over.left;
	info->leaves_unsure = over.unsure;
	/*
	 * Release this tree to the threads that find it; acquire the tree of another thread if
	 * there is one.  Pairs with tdt__trace_root_by().
	 */
	if (atomic_compare_exchange_strong_explicit(&trace->tree, &others, tree,
						    memory_order_acq_rel, memory_order_acquire))
		return tree;
	tree_free(tree);
	return others;
}

/* Whether the caller gave a trace; if not, errno says so. */
static bool is_trace(const struct tdt_trace *trace)
{
	if (__builtin_expect(trace == NULL, 0))
		errno = EINVAL;
	return trace != NULL;
}

const struct tdt_node *tdt__trace_root_by(const struct tdt_trace *trace, uint64_t deadline)
{
	const struct tdt__tree *tree;

	if (!is_trace(trace))
		return NULL;
	/*
	 * Acquire the nodes, which another thread may have made.  Pairs with the exchange in
	 * make_tree().
	 */
	tree = atomic_load_explicit(&trace->tree, memory_order_acquire);
	/* To its readers the trace stays constant: it only remembers its names. */
	if (tree == NULL)
		tree = make_tree((struct tdt_trace *)(uintptr_t)trace, deadline);
	return tree != NULL ? &tree->root : NULL;
}

const struct tdt_node *tdt_trace_root(const struct tdt_trace *trace)
{
	return tdt__trace_root_by(trace, tdt__clock() + TDT__NAMER_TIME);
}

uint32_t tdt_trace_stacks(const struct tdt_trace *trace)
{
	return is_trace(trace) && trace->stacks != NULL ? trace->stacks->leaves : 0;
}

/* The innermost frame of stack `index`; TDT__NO_FRAME: there is no such stack. */
static uint32_t innermost(const struct tdt__stacks *stacks, uint32_t index)
{
	for (uint32_t i = 0; i < stacks->n; i++) {
		if (index < stacks->frames[i].leaves)
			return i;
		index -= stacks->frames[i].leaves;
	}
	return TDT__NO_FRAME;
}

/*
 * Returns how many PCs stack `index` has; `pcs` gets `max` of them at most, and `*cut` why the
 * stack ends.
 */
static size_t stack_of(const struct tdt__stacks *stacks, uint32_t index, uint64_t *pcs, size_t max,
		       enum tdt_cut *cut)
{
	uint32_t frame = innermost(stacks, index);
	size_t n = 0;

	if (frame == TDT__NO_FRAME)
		return 0;
	for (; tdt__is_frame(frame); frame = stacks->frames[frame].parent, n++) {
		uintptr_t pc = stacks->frames[frame].frame.pc;

		if (n < max)
			pcs[n] = tdt__is_named(pc) ? 0 : pc;
	}
	if (cut != NULL)
		*cut = (enum tdt_cut)(frame - TDT__PARENT_TOP);
	return n;
}

size_t tdt_trace_stack(const struct tdt_trace *trace, uint32_t index, uint64_t *pcs, size_t max,
		       enum tdt_cut *cut)
{
	if (cut != NULL)
		*cut = TDT_CUT_NOT;
	if (!is_trace(trace))
		return 0;
	if (pcs == NULL && max != 0) {
		errno = EINVAL;
		return 0;
	}
	return trace->stacks != NULL ? stack_of(trace->stacks, index, pcs, max, cut) : 0;
}

static int read_info(struct tdt_task_info *ours, const struct tdt_task_info *info)
{
	int err = info == NULL ? -EINVAL : tdt__options_read(ours, sizeof(*ours), info);

	if (err == 0 && (unsigned int)ours->state > TDT_TASK_UNKNOWN)
		err = -EINVAL;
	return err;
}

/* Copy the names of owners to the tree of a built trace. */
static int copy_owner_names(struct tdt_trace *trace, struct tdt__tree *tree)
{
	for (uint32_t i = 0; i < trace->info.n_waits; i++)
		if (tdt__tree_string(tree, trace->waits[i].owner_name,
				     &trace->waits[i].owner_name) != 0)
			return -ENOMEM;
	return 0;
}

struct tdt_trace *tdt_trace_new(const struct tdt_task_info *info)
{
	struct tdt_task_info ours;
	struct tdt_trace *trace;
	struct tdt__tree *tree;
	int err = read_info(&ours, info);

	if (err != 0)
		return tdt__nothing(err);
	trace = calloc(1, sizeof(*trace));
	tree = tree_new();
	err = ENOMEM;
	if (trace == NULL || tree == NULL)
		goto failed;
	trace->info = ours;
	err = -copy_waits(trace);
	if (err != 0)
		goto failed;
	err = ENOMEM;
	if (copy_owner_names(trace, tree) != 0 ||
	    tdt__tree_string(tree, ours.name, &trace->info.name) != 0 ||
	    tdt__tree_string(tree, ours.file, &trace->info.file) != 0 ||
	    tdt__tree_string(tree, ours.syscall, &trace->info.syscall) != 0)
		goto failed;
	atomic_init(&trace->tree, tree);
	return trace;

failed:
	tree_free(tree);
	if (trace != NULL)
		free(trace->listed_waits);
	free(trace);
	return tdt__nothing(-err);
}

static bool is_frame(const struct tdt_frame *frame)
{
	if (frame->kind == TDT_NODE_CUT)
		return frame->cut >= TDT_CUT_LIMIT && frame->cut <= TDT_CUT_UNSUPPORTED;
	return frame->kind == TDT_NODE_FRAME && frame->cut == TDT_CUT_NOT;
}

const struct tdt_node *tdt_trace_add(struct tdt_trace *trace, const struct tdt_node *parent,
				     const struct tdt_frame *frame, uint32_t leaves)
{
	/* Relaxed: a trace that is being built belongs to one thread. */
	struct tdt__tree *tree =
	    trace != NULL ? atomic_load_explicit(&trace->tree, memory_order_relaxed) : NULL;
	struct tdt_frame ours = { .size = sizeof ours };
	int error = frame != NULL ? tdt__options_read(&ours, sizeof ours, frame) : -EINVAL;

	if (error == 0 && (tree == NULL || trace->stacks != NULL || !is_frame(&ours) ||
			   (parent != NULL && parent->tree != tree)))
		error = -EINVAL;
	if (error != 0)
		return tdt__nothing(error);
	/*
	 * The caller may only read the node, but the node lies in the trace, which the caller may
	 * change.
	 */
	return tdt__tree_add(tree, (struct tdt_node *)(uintptr_t)parent, &ours, leaves, true);
}

/* The task's info with names; NULL: no names were looked up yet, or the trace was built. */
static const struct tdt_task_info *named_info(const struct tdt_trace *trace)
{
	/* Acquire what another thread may have made.  Pairs with the exchange in make_tree(). */
	struct tdt__tree *tree = atomic_load_explicit(&trace->tree, memory_order_acquire);

	return trace->stacks != NULL && tree != NULL ? &named_of(tree)->info : NULL;
}

const struct tdt_task_info *tdt_trace_info(const struct tdt_trace *trace)
{
	const struct tdt_task_info *info;

	if (!is_trace(trace))
		return NULL;
	info = named_info(trace);
	return info != NULL ? info : &trace->info;
}

void tdt__trace_count(const struct tdt_trace *trace, struct tdt_task_info *info)
{
	const struct tdt_task_info *named = named_info(trace);

	if (named == NULL)
		return;
	info->leaves = named->leaves;
	info->leaves_unsure = named->leaves_unsure;
}

void tdt_trace_free(struct tdt_trace *trace)
{
	if (trace == NULL)
		return;
	/*
	 * Acquire: another thread may have made the tree.  Pairs with the exchange in make_tree().
	 */
	tree_free(atomic_load_explicit(&trace->tree, memory_order_acquire));
	tdt__stacks_free(trace->stacks);
	free(trace->listed_waits);
	free(trace);
}
