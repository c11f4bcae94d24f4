// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Fibers switch at full speed, on several threads and from thread to thread, at changing depths.
 * They end and are replaced, and their stacks are copied away and back.  Meanwhile threads dump
 * them and request them.  Each tree must be one that a fiber can have had, and must go with what
 * the fiber said that it waits for.
 *
 *	fibers [SECONDS [FIBERS [SCHEDULERS]]]		TDT_TEST_SEED
 *
 * It speaks TAP.
 */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "lib/fibered.h"
#include "lib/must.h"
#include "lib/options.h"
#include "lib/sanitized.h"
#include "lib/seeded.h"

#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

#define DEPTHS 8
#define PATHS (2 * DEPTHS)
#define FRAMES 32
#define FIBERS_MOST 4096
#define SCHEDULERS_MOST 64

/* --- What the fibers do -------------------------------------------------------------------- */

/* The coroutine, under `lock`: one scheduler at a time runs it. */
struct stressed {
	struct fibered co; /* first */
	pthread_mutex_t lock;
	unsigned seed;
	int path; /* the only one that it goes; -1: it chooses */
};

/* Along path `2 * depth`: over `n` frames of this function.  Wait for its number plus 1. */
static NOINLINE void even(struct fibered *co, uintptr_t path, int n)
{
	char room[48];

	USE(room);
	if (n > 0) {
		even(co, path, n - 1);
	} else {
		tdt_leaf_waits_on(TDT_WAIT_OTHER, (void *)(path + 1), 0);
		fibered_yield(co);
	}
	USE(room);
}

/* Along path `2 * depth + 1`. */
static NOINLINE void odd(struct fibered *co, uintptr_t path, int n)
{
	char room[200];

	USE(room);
	if (n > 0) {
		odd(co, path, n - 1);
	} else {
		tdt_leaf_waits_on(TDT_WAIT_OTHER, (void *)(path + 1), 0);
		fibered_yield(co);
	}
	USE(room);
}

static NOINLINE void go(struct fibered *co, int path)
{
	if (path % 2 == 0)
		even(co, (uintptr_t)path, path / 2);
	else
		odd(co, (uintptr_t)path, path / 2);
	USE(co);
}

static int choose_path(struct stressed *it)
{
	return it->path >= 0 ? it->path : (int)random_below(&it->seed, PATHS);
}

static void goes(struct fibered *co)
{
	struct stressed *it = (struct stressed *)(void *)co;

	do
		go(co, choose_path(it));
	while (it->path >= 0 || random_below(&it->seed, 500) != 0);
	USE(co);
}

/* --- The stacks that they can have ---------------------------------------------------------- */

static struct {
	uint64_t pc[FRAMES];
	size_t n;
} stacks[PATHS];

/* Learn each stack from a fiber that stands still. */
static void learn_stacks(void)
{
	for (int path = 0; path < PATHS; path++) {
		struct stressed it = { .co = { .run = goes }, .path = path };
		struct tdt_trace *trace;

		fibered_init(&it.co, NULL);
		fibered_resume(&it.co);
		trace = tdt_backtrace(tdt_fiber_handle(it.co.fiber));
		MUST(trace != NULL);
		stacks[path].n = tdt_trace_stack(trace, 0, stacks[path].pc, FRAMES, NULL);
		MUST(stacks[path].n > (size_t)path / 2 && stacks[path].n <= FRAMES);
		tdt_trace_free(trace);
		fibered_fini(&it.co);
	}
}

/*
 * Whether the trace is that path.  The return address in goes(), the last but one, may be another:
 * a compiler may write the first round of the loop apart.
 */
static bool is_path(const struct tdt_trace *trace, uint64_t path)
{
	uint64_t pcs[FRAMES];
	size_t n = tdt_trace_stack(trace, 0, pcs, FRAMES, NULL);

	return path < PATHS && n == stacks[path].n &&
	       memcmp(pcs, stacks[path].pc, (n - 2) * sizeof pcs[0]) == 0 &&
	       pcs[n - 1] == stacks[path].pc[n - 1];
}

/* --- Checking -------------------------------------------------------------------------------- */

static atomic_bool stopping;
static atomic_ulong switches, ended, moves, right, wrong, fresh, running, without, requested;

static void check_tree(const struct tdt_trace *trace, const struct tdt_task_info *info)
{
	if (info->state == TDT_TASK_RUNNING) {
		atomic_fetch_add(&running, 1);
	} else if (info->polls == 0) {
		atomic_fetch_add(&fresh, 1);
	} else if (info->n_waits == 1 && is_path(trace, info->waits[0]->object - 1)) {
		atomic_fetch_add(&right, 1);
	} else if (atomic_fetch_add(&wrong, 1) < 5) {
		printf("# wrong: task %" PRIu64 ", run %" PRIu64 ", waits for %" PRIu64 "\n",
		       info->id, info->polls, info->n_waits == 1 ? info->waits[0]->object : 0);
		tdt_trace_print(trace, stdout);
	}
}

static void *dumps(void *arg)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 500000000 };

	while (!atomic_load(&stopping)) {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(&options);

		MUST(snapshot != NULL);
		for (size_t i = 0; i < snapshot->n_groups; i++) {
			const struct tdt_snapshot_group *group = snapshot->groups[i];

			for (size_t j = 0; j < group->n; j++)
				if (group->answer != TDT_ANSWER_NONE)
					check_tree(group->trace, group->tasks[j]);
				else
					atomic_fetch_add(&without, 1);
		}
		tdt_snapshot_free(snapshot);
	}
	return arg;
}

static struct stressed *fibers;
static unsigned n_fibers = 40;

static void *requests(void *arg)
{
	unsigned seed = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		struct stressed *it = &fibers[random_below(&seed, n_fibers)];
		struct tdt_handle *handle;
		struct tdt_trace *trace;

		pthread_mutex_lock(&it->lock);
		handle = tdt_handle_ref(tdt_fiber_handle(it->co.fiber));
		pthread_mutex_unlock(&it->lock);
		trace = handle != NULL ? backtrace_timed(handle, 200000000) : NULL;
		if (trace != NULL)
			check_tree(trace, tdt_trace_info(trace));
		atomic_fetch_add(&requested, trace != NULL);
		tdt_trace_free(trace);
		tdt_handle_unref(handle);
	}
	return NULL;
}

/* --- Scheduling ----------------------------------------------------------------------------- */

/* Where the coroutine was left: what is to be saved begins there. */
static char *left_at(const struct stressed *it)
{
	return it->co.inside.sp;
}

/* Bytes that AddressSanitizer may take for those around a variable. */
static __attribute__((no_sanitize("address", "thread"), noinline)) void
copy_bytes(volatile char *to, const volatile char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from != NULL ? from[i] : (char)0xa5;
}

/* Move the stack of a suspended fiber to the heap and back. */
static void move_away(struct stressed *it)
{
	char *from = left_at(it), *to;
	size_t size;

	if (from == NULL)
		return;
	size = (size_t)(it->co.stack + FIBERED_STACK - from);
	to = malloc(size);
	MUST(to != NULL);
	copy_bytes(to, from, size);
	tdt_fiber_moved(it->co.fiber, from, to, size);
	copy_bytes(from, NULL, size);
	copy_bytes(from, to, size);
	tdt_fiber_moved(it->co.fiber, from, NULL, size);
	copy_bytes(to, NULL, size);
	free(to);
	atomic_fetch_add(&moves, 1);
}

static void begin(struct stressed *it, unsigned seed)
{
	it->co = (struct fibered){ .run = goes };
	it->seed = seed;
	it->path = -1;
	fibered_init(&it->co, NULL);
}

static void run(struct stressed *it, unsigned *seed)
{
	fibered_resume(&it->co);
	if (it->co.ended) {
		fibered_fini(&it->co);
		begin(it, random_below(seed, 65536));
		atomic_fetch_add(&ended, 1);
	} else if (random_below(seed, 16) == 0) {
		move_away(it);
	} else if (random_below(seed, 1000) == 0) { /* destroyed while suspended */
		fibered_fini(&it->co);
		begin(it, random_below(seed, 65536));
		atomic_fetch_add(&ended, 1);
	}
}

static void *schedules(void *arg)
{
	unsigned seed = *(unsigned *)arg, n = 0;

	while (!atomic_load(&stopping)) {
		struct stressed *it = &fibers[random_below(&seed, n_fibers)];

		if (pthread_mutex_trylock(&it->lock) != 0)
			continue;
		/* Several times, as a scheduler with little to do would. */
		for (unsigned times = random_below(&seed, 8); times > 0; times--, n++)
			run(it, &seed);
		pthread_mutex_unlock(&it->lock);
	}
	atomic_fetch_add(&switches, n);
	return NULL;
}

/* --- All of it ------------------------------------------------------------------------------ */

static unsigned argument(int argc, char **argv, int i, unsigned otherwise, unsigned most)
{
	unsigned value = i < argc ? (unsigned)atoi(argv[i]) : otherwise;

	return value > most ? most : value;
}

int main(int argc, char **argv)
{
	unsigned seconds = argument(argc, argv, 1, 3, 1000000), seed = seed_of_run();
	unsigned n_threads = argument(argc, argv, 3, 2, SCHEDULERS_MOST) + 2;
	pthread_t threads[SCHEDULERS_MOST + 2];
	unsigned seeds[SCHEDULERS_MOST + 2];
	bool good;

	n_fibers = argument(argc, argv, 2, n_fibers, FIBERS_MOST);
	learn_stacks();
	fibers = calloc(n_fibers, sizeof *fibers);
	MUST(fibers != NULL);
	for (unsigned i = 0; i < n_fibers; i++) {
		pthread_mutex_init(&fibers[i].lock, NULL);
		begin(&fibers[i], random_below(&seed, 65536));
	}
	for (unsigned i = 0; i < n_threads; i++) {
		seeds[i] = random_below(&seed, 65536);
		MUST(pthread_create(&threads[i], NULL,
				    i == 0   ? dumps
				    : i == 1 ? requests
					     : schedules,
				    &seeds[i]) == 0);
	}
	sleep(seconds);
	for (int i = 0; i < 300 && atomic_load(&right) == 0 && atomic_load(&wrong) == 0; i++)
		sleep(1); /* longer, if no tree came meanwhile */
	atomic_store(&stopping, true);
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < n_fibers; i++) {
		fibered_fini(&fibers[i].co);
		pthread_mutex_destroy(&fibers[i].lock);
	}
	free(fibers);
	printf("# %lu switches, %lu moves, %lu ended; trees: %lu right, %lu wrong, %lu not begun, "
	       "%lu running, %lu without; %lu of them by tdt_backtrace()\n",
	       atomic_load(&switches), atomic_load(&moves), atomic_load(&ended),
	       atomic_load(&right), atomic_load(&wrong), atomic_load(&fresh), atomic_load(&running),
	       atomic_load(&without), atomic_load(&requested));
	good = atomic_load(&wrong) == 0 && atomic_load(&right) > 0;
	printf("%s 1 - every tree is one that its fiber had\n1..1\n", good ? "ok" : "not ok");
	return good ? 0 : 1;
}
