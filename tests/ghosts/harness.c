// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Drives a task of each shape by a runtime of one thread, and compares its tree with the leaves
 * that wait.
 *
 * A tree is got in several ways.  By a request: in the task's first poll ("first"), in a later one
 * ("asked"), and in one after another that was asked for, too ("again").  By the watch ("watched").
 * By the watch with counted clones ("watched+"), and by a request without them ("off"): the two for
 * which tdt_leaf_wakers() is called.
 *
 * A line of output each: shape, slots, way, leaves that wait, leaves in the tree, the mark, and
 * what is wrong.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shapes.h"

#define TRIES 90000 /* for a poll that is watched, at 2 ms each: minutes */
#define MARK "may be over"

enum way { FIRST, ASKED, AGAIN, WATCHED, WATCHED_CLONES, OFF, WAYS };

static const char *const way_name[WAYS] = {
	"first", "asked", "again", "watched", "watched+", "off"
};

/* --- The truth ------------------------------------------------------------- */

static unsigned items[GHOSTS_LEAVES], waiting[GHOSTS_LEAVES];
static bool empties;
static const char *wrong; /* with what is being tried; NULL: nothing */

static void fault(const char *what)
{
	if (wrong == NULL)
		wrong = what;
}

bool ghosts_empties(void)
{
	return empties;
}

void ghosts_gone(unsigned n, bool *waits)
{
	if (*waits)
		waiting[n]--;
	*waits = false;
}

bool ghosts_take(unsigned n, bool *waits)
{
	if (items[n] > 0) {
		items[n]--;
		ghosts_gone(n, waits);
		return true;
	}
	if (!*waits)
		waiting[n]++;
	*waits = true;
	return false;
}

/* --- Slots and leaves of C and C++ ------------------------------------------ */

struct ghosts_slot {
	unsigned n;
	const struct tdt_waker *waker;
	struct ghosts_slot *next;
};

static struct ghosts_slot *all_slots;

struct ghosts_leaf *ghosts_leaf_new(unsigned n)
{
	struct ghosts_leaf *leaf = calloc(1, sizeof(*leaf));

	if (leaf == NULL)
		abort();
	leaf->n = n;
	return leaf;
}

void ghosts_keep(struct ghosts_leaf *leaf, int slot, const struct tdt_waker *clone)
{
	struct ghosts_slot *it = leaf->slot[slot];

	if (it == NULL) {
		it = calloc(1, sizeof(*it));
		if (it == NULL)
			abort();
		it->n = leaf->n;
		it->next = all_slots;
		leaf->slot[slot] = all_slots = it;
	}
	tdt_waker_drop(it->waker);
	it->waker = clone;
}

static void empty(struct ghosts_slot *slot)
{
	if (slot == NULL)
		return;
	tdt_waker_drop(slot->waker);
	slot->waker = NULL;
}

static void ended(struct ghosts_leaf *leaf)
{
	if (empties) {
		empty(leaf->slot[0]);
		empty(leaf->slot[1]);
	}
}

bool ghosts_look(struct ghosts_leaf *leaf, unsigned n)
{
	bool taken = ghosts_take(n, &leaf->waits);

	if (taken)
		ended(leaf);
	return taken;
}

void ghosts_leaf_drop(void *state)
{
	struct ghosts_leaf *leaf = state;

	ended(leaf);
	ghosts_gone(leaf->n, &leaf->waits);
	free(leaf);
}

static unsigned wake_slots(unsigned n)
{
	unsigned woken = 0;

	for (struct ghosts_slot *slot = all_slots; slot != NULL; slot = slot->next) {
		const struct tdt_waker *waker = slot->waker;

		if (slot->n != n || waker == NULL)
			continue;
		slot->waker = NULL;
		tdt_waker_wake(waker);
		woken++;
	}
	return woken;
}

static void clear_slots(void)
{
	while (all_slots != NULL) {
		struct ghosts_slot *slot = all_slots;

		all_slots = slot->next;
		empty(slot);
		free(slot);
	}
}

static const struct slots slots_of_c = { wake_slots, clear_slots }, *slots = &slots_of_c;

void ghosts_own_slots(const struct slots *own)
{
	slots = own;
}

/* --- The runtime ------------------------------------------------------------ */

/* Its clones are itself; or, as with many runtimes, objects of their own. */
struct task_waker {
	struct tdt_waker waker;
	struct task *task;
};

struct task {
	struct task_waker own;
	bool boxes;
	unsigned clones; /* that are held */
	unsigned wakes;
	struct tdt_traced traced;
};

static struct task *task_of(const struct tdt_waker *waker)
{
	return ((const struct task_waker *)(const void *)waker)->task;
}

static const struct tdt_waker *task_clone(const struct tdt_waker *waker)
{
	struct task *task = task_of(waker);
	struct task_waker *boxed;

	task->clones++;
	if (!task->boxes)
		return waker;
	boxed = malloc(sizeof(*boxed));
	if (boxed == NULL)
		abort();
	*boxed = task->own;
	return &boxed->waker;
}

static void task_drop(const struct tdt_waker *waker)
{
	struct task *task = task_of(waker);

	if (task->clones-- == 0)
		fault("a waker is dropped twice");
	if (waker != &task->own.waker)
		free((void *)(uintptr_t)waker);
}

static void task_wake_by_ref(const struct tdt_waker *waker)
{
	task_of(waker)->wakes++;
}

static void task_wake(const struct tdt_waker *waker)
{
	task_wake_by_ref(waker);
	task_drop(waker);
}

static const struct tdt_waker_vtable task_vtable = { task_clone, task_wake, task_wake_by_ref,
						     task_drop };

static tdt_poll_t poll_task(struct task *task)
{
	struct tdt_context cx = { &task->own.waker };

	return task->traced.future.poll(task->traced.future.state, &cx);
}

/* Give leaf `n` items, and wake whoever has registered for them.  Each wake-up comes through. */
static void give(struct task *task, unsigned n, unsigned count)
{
	unsigned wakes = task->wakes;

	items[n] += count;
	if (count > 0 && slots->wake(n) != task->wakes - wakes)
		fault("a wake-up is lost");
}

/* --- Trees ------------------------------------------------------------------ */

static const struct tdt_waker *no_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void no_wake(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable no_vtable = { no_clone, no_wake, no_wake, no_wake };

/* Poll the task once, with a request for its tree before. */
static struct tdt_trace *poll_asked(struct task *task)
{
	static const struct tdt_waker no_waker = { &no_vtable };
	struct tdt_context cx = { &no_waker };
	struct tdt_trace *trace = NULL;
	struct tdt_future requester = tdt_backtrace_async(task->traced.handle, NULL, &trace, NULL);

	tdt_future_poll(&requester, &cx);
	poll_task(task);
	tdt_future_poll(&requester, &cx);
	tdt_future_drop(&requester);
	return trace;
}

/* The number of the leaf that a node with leaves stands for: the innermost function of that name
 * says it.  0: of none. */
static unsigned leaf_of(const struct tdt_node *node)
{
	for (; node != NULL; node = tdt_node_parent(node)) {
		const char *name = tdt_node_frame(node)->function;

		name = name != NULL ? strstr(name, "leaf_") : NULL;
		if (name != NULL && name[5] >= '1' && name[5] <= '9')
			return (unsigned)(name[5] - '0');
	}
	return 0;
}

struct seen {
	unsigned leaves;
	bool marked;
	char *text;
};

/* Compare the tree with the leaves that wait. */
static struct seen look(const struct tdt_trace *trace)
{
	unsigned in_tree[GHOSTS_LEAVES] = { 0 };
	struct seen seen = { 0 };
	size_t size;
	FILE *text = open_memstream(&seen.text, &size);

	if (text == NULL)
		abort();
	tdt_trace_print(trace, text);
	fclose(text);
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		if (tdt_node_leaves(node) > 0)
			in_tree[leaf_of(node)] += tdt_node_leaves(node);
	for (unsigned n = 1; n < GHOSTS_LEAVES; n++)
		if (in_tree[n] < waiting[n])
			fault("a leaf that waits is LOST");
	seen.leaves = tdt_trace_info(trace)->leaves;
	seen.marked = strstr(seen.text, MARK) != NULL;
	if (seen.marked != (tdt_trace_info(trace)->leaves_unsure > 0))
		fault("the text and the numbers do not agree on the mark");
	return seen;
}

static unsigned all_waiting(void)
{
	unsigned all = 0;

	for (unsigned n = 1; n < GHOSTS_LEAVES; n++)
		all += waiting[n];
	return all;
}

/* --- A shape, in one way ---------------------------------------------------- */

/* Up to the poll that is looked at, and its trace.  NULL: it was not captured. */
static struct tdt_trace *capture(const struct shape *shape, enum way way, struct task *task)
{
	struct tdt_trace *trace;

	memset(items, 0, sizeof(items));
	*task = (struct task){ .own = { { &task_vtable }, task }, .boxes = way == AGAIN };
	task->traced = tdt_traced(shape->make());
	if (task->traced.handle == NULL)
		abort();
	if (way == AGAIN)
		tdt_trace_free(poll_asked(task));
	else if (way != FIRST)
		poll_task(task);
	for (unsigned n = 0; n < GHOSTS_LEAVES; n++)
		give(task, n, shape->given[n]);
	if (way != WATCHED && way != WATCHED_CLONES)
		return poll_asked(task);
	usleep(2000);
	poll_task(task);
	trace = tdt_backtrace_last(task->traced.handle);
	if (trace != NULL && tdt_trace_info(trace)->polls_since > 0) {
		tdt_trace_free(trace);
		trace = NULL;
	}
	return trace;
}

/* All leaves get what they wait for: each is woken, and the task ends. */
static void finish(struct task *task)
{
	tdt_poll_t result = TDT_PENDING;

	for (int polls = 0; polls < 10 && result == TDT_PENDING; polls++) {
		unsigned wakes = task->wakes;

		for (unsigned n = 0; n < GHOSTS_LEAVES; n++)
			give(task, n, 100);
		if (task->wakes == wakes)
			fault("nobody wakes the task");
		result = poll_task(task);
	}
	if (result != TDT_READY)
		fault("the task does not end");
}

static void end(struct task *task)
{
	task->traced.future.drop(task->traced.future.state);
	if (all_waiting() != 0)
		fault("the test's leaves live on");
	slots->clear();
	tdt_handle_unref(task->traced.handle);
	if (task->clones != 0)
		fault("a waker was not given back");
}

static bool run(const char *language, const struct shape *shape, enum way way)
{
	bool clones = way != OFF && way != WATCHED, watch = way == WATCHED || way == WATCHED_CLONES;
	struct tdt_trace *trace = NULL;
	struct task task;
	struct seen seen = { 0 };
	bool good;

	wrong = NULL;
	if (way == WATCHED_CLONES || way == OFF)
		tdt_leaf_wakers(clones);
	if (watch && tdt_watch(TDT_WATCH_MIN_NS, NULL) != 0)
		abort();
	for (int tries = 0; trace == NULL && wrong == NULL && tries < (watch ? TRIES : 1);
	     tries++) {
		if (tries > 0)
			end(&task);
		trace = capture(shape, way, &task);
	}
	tdt_watch(0, NULL);
	if (all_waiting() != shape->want)
		fault("the test is wrong about what waits");
	if (trace == NULL) {
		fault("there is no tree");
	} else {
		seen = look(trace);
		if (clones && empties && shape->limit != HELPER && seen.leaves != shape->want)
			fault("a GHOST that counted clones should have found");
		if (seen.leaves > shape->want && !seen.marked && shape->limit == KNOWN)
			fault("an unmarked GHOST");
	}
	finish(&task);
	end(&task);
	tdt_trace_free(trace);
	good = wrong == NULL;
	printf("%-4s %-30s %-8s %-8s want %u got %u%s%s%s\n", language, shape->name,
	       empties ? "emptied" : "outlive", way_name[way], shape->want, seen.leaves,
	       seen.marked ? " marked" : "", good ? "" : "  WRONG: ", good ? "" : wrong);
	if (!good && seen.text != NULL)
		printf("%s", seen.text);
	fflush(stdout);
	free(seen.text);
	return good;
}

static bool is_named(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

int ghosts_main(int argc, char **argv, const char *language, const struct shape *shapes, size_t n)
{
	unsigned tried = 0, bad = 0;

	/* The ways outside: what tdt_leaf_wakers() says lasts. */
	for (unsigned try = 0; try < 2u * WAYS; try++) {
		for (size_t i = 0; i < n; i++) {
			if (!is_named(argc, argv, shapes[i].name))
				continue;
			empties = try % 2 == 0;
			tried++;
			bad += !run(language, &shapes[i], (enum way)(try / 2));
		}
	}
	printf("%s: %u trees, %u wrong\n", language, tried, bad);
	return tried == 0 || bad > 0;
}
