// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers watch/last_tree, base/pool.  Readers, on threads, of the last trees of tasks that are
 * polled, end, and begin again on others, while epochs pass: each tree is whole, and belongs to the
 * task that it is reported of.
 */

#include "base/pool.h"
#include "capture/capture.h"
#include "lib/test.h"
#include "watch/watch.h"

#define POLLERS 2
#define TASKS 8 /* of each poller, at a time */
#define POLLS 20000 /* at least */
#define TREES 20000 /* are read at least */
#define KINDS 3
#define SPREAD 60

static atomic_int at_work;
static atomic_long trees_read;
static long trees_wanted;

/* --- Tasks whose stack tells which they are, and in which poll -------------------------------- */

/* Where a function of each kind calls itself. */
static _Atomic uintptr_t calls[KINDS];

static unsigned depth_in(uint64_t polls)
{
	return 2 + (unsigned)(polls * 7 % SPREAD);
}

#define KIND(kind)                                                                                 \
	static __attribute__((noinline)) void clone_##kind(unsigned depth, struct tdt_context *cx) \
	{                                                                                          \
		if (depth > 1) {                                                                   \
			clone_##kind(depth - 1, cx);                                               \
		} else {                                                                           \
			atomic_store(&calls[kind], (uintptr_t)__builtin_return_address(0));        \
			tdt_waker_drop(tdt_waker_clone(cx->waker));                                \
		}                                                                                  \
		TDT_KEEP_FRAME();                                                                  \
	}

KIND(0)
KIND(1)
KIND(2)

struct child {
	uint64_t id; /* its rest tells the kind */
	uint64_t polls;
	uint64_t last; /* the poll that is ready */
};

static tdt_poll_t child_poll(void *state, struct tdt_context *cx)
{
	static void (*const clone[])(unsigned, struct tdt_context *) = { clone_0, clone_1,
									 clone_2 };
	struct child *child = state;

	child->polls++;
	clone[child->id % KINDS](depth_in(child->polls), cx);
	return child->polls < child->last ? TDT_PENDING : TDT_READY;
}

static void child_drop(void *state)
{
	free(state);
}

static struct tdt_traced spawn(uint64_t id, unsigned *random)
{
	struct child *child = calloc(1, sizeof *child);
	struct tdt_traced task;

	MUST(child != NULL);
	*child = (struct child){ id, 0, 1 + random_below(random, 300) };
	task = tdt_traced_with((struct tdt_future){ child, child_poll, child_drop },
			       TDT_TASK_ATTR(.id = id));
	MUST(task.handle != NULL);
	return task;
}

/* --- Polling ---------------------------------------------------------------------------------- */

struct poller {
	unsigned random;
	uint64_t first; /* id */
};

static void *poll_them(void *argument)
{
	struct poller *poller = argument;
	struct tdt_traced task[TASKS];
	uint64_t id = poller->first;

	for (int i = 0; i < TASKS; i++)
		task[i] = spawn(id++, &poller->random);
	for (int n = 0; n < POLLS || atomic_load(&trees_read) < trees_wanted; n++) {
		unsigned i = random_below(&poller->random, TASKS);

		if (poll_idly(&task[i].future) == TDT_PENDING &&
		    random_below(&poller->random, 200) != 0)
			continue;
		end_traced(&task[i]);
		task[i] = spawn(id++, &poller->random);
	}
	for (int i = 0; i < TASKS; i++)
		end_traced(&task[i]);
	atomic_fetch_sub(&at_work, 1);
	return NULL;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static int check_tree(struct tdt_handle *handle, const struct tdt_task_info *info, void *argument)
{
	struct tdt_trace *trace = tdt_backtrace_last(handle);
	uint64_t pcs[2 * SPREAD], polls;
	uintptr_t call = atomic_load(&calls[info->id % KINDS]);
	unsigned depth = 0;
	enum tdt_cut cut;
	size_t n;

	if (trace == NULL) {
		MUST(errno == ENODATA);
		return 0;
	}
	MUST(tdt_trace_info(trace)->id == info->id);
	MUST(tdt_trace_info(trace)->leaves == 1);
	polls = tdt_trace_info(trace)->polls - tdt_trace_info(trace)->polls_since;
	n = tdt_trace_stack(trace, 0, pcs, 2 * SPREAD, &cut);
	MUST(n <= 2 * SPREAD);
	for (size_t i = 0; i < n; i++) {
		depth += pcs[i] == call;
		for (unsigned kind = 0; kind < KINDS; kind++)
			MUST(pcs[i] != atomic_load(&calls[kind]) || kind == info->id % KINDS);
	}
	if (cut == TDT_CUT_NOT)
		MUST(depth == depth_in(polls) - 1);
	else
		MUST(cut == TDT_CUT_LIMIT && depth < depth_in(polls));
	atomic_fetch_add(&trees_read, 1);
	tdt_trace_free(trace);
	return 0;
}

static void *read_them(void *argument)
{
	while (atomic_load(&at_work) > 0)
		MUST(tdt_tasks(NULL, check_tree, argument) == 0);
	return NULL;
}

static void *tick(void *argument)
{
	while (atomic_load(&at_work) > 0)
		tdt__watch_pass(TDT__WATCH_LONGEST);
	return argument;
}

CASE(races)

TEST(readers_see_whole_trees_of_the_right_task)
{
	unsigned seed = seed_of_run();
	struct poller poller[POLLERS];
	pthread_t thread[POLLERS + 3];
	int n = 0;

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	trees_wanted = TREES;
	atomic_store(&at_work, POLLERS);
	for (unsigned i = 0; i < POLLERS; i++) {
		/* Ids that no two have. */
		poller[i] = (struct poller){ seed + i, (uint64_t)(i + 1) << 32 };
		ck_assert_int_eq(pthread_create(&thread[n++], NULL, poll_them, &poller[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[n++], NULL, read_them, NULL), 0);
	ck_assert_int_eq(pthread_create(&thread[n++], NULL, tick, NULL), 0);
	while (n > 0)
		pthread_join(thread[--n], NULL);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
}

/* --- The trees alone, as fast as it goes ------------------------------------------------------ */

#define OWNERS 4
#define KEPT 400000

static struct tdt_traced owner[OWNERS];

static uint32_t frames_in(uint64_t polls)
{
	return 1 + (uint32_t)(polls * 11 % 70);
}

/* Each task's frames say whose they are, and when. */
static void *keep_them(void *argument)
{
	struct tdt__capture *capture = tdt__capture_new(128, 128);
	unsigned random = *(const unsigned *)argument, i = 0;

	MUST(capture != NULL);
	for (uint64_t polls = 1; polls <= KEPT; polls++) {
		/*
		 * What it had is then another's.  In between the same is written over, again and
		 * again.
		 */
		if (random_below(&random, 30) == 0) {
			tdt__last_tree_drop(owner[i].handle);
			i = random_below(&random, OWNERS);
		}
		capture->facts.polls = polls;
		capture->stacks.n = frames_in(polls);
		for (uint32_t j = 0; j < capture->stacks.n; j++)
			capture->stacks.frames[j] =
			    (struct tdt__recorded){ { .pc = polls * OWNERS + i }, j + 1, 0 };
		tdt__last_tree_record(owner[i].handle, capture);
	}
	tdt__capture_unref(capture);
	atomic_fetch_sub(&at_work, 1);
	return NULL;
}

static void *read_alone(void *argument)
{
	unsigned random = *(const unsigned *)argument;

	while (atomic_load(&at_work) > 0) {
		unsigned i = random_below(&random, OWNERS);
		struct tdt__last_tree tree;
		int error = tdt__last_tree_read(owner[i].handle, &tree);

		MUST(error == 0 || error == -ENODATA);
		if (error != 0)
			continue;
		MUST(tree.stacks->n == frames_in(tree.polls));
		for (uint32_t j = 0; j < tree.stacks->n; j++)
			MUST(tree.stacks->frames[j].frame.pc == tree.polls * OWNERS + i);
		tdt__stacks_free(tree.stacks);
	}
	return NULL;
}

TEST(a_tree_that_is_written_over_or_given_to_another_is_read_again)
{
	unsigned seed = seed_of_run();
	unsigned seeds[] = { seed, seed + 1, seed + 2 };
	pthread_t thread[3];

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	for (int i = 0; i < OWNERS; i++)
		owner[i] = spawn((uint64_t)i + 1, &seed);
	atomic_store(&at_work, 1);
	ck_assert_int_eq(pthread_create(&thread[0], NULL, keep_them, &seeds[0]), 0);
	for (int i = 1; i < 3; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, read_alone, &seeds[i]), 0);
	threads_join(thread, 3);
	for (int i = 0; i < OWNERS; i++)
		end_traced(&owner[i]);
}

/* --- Starting and stopping -------------------------------------------------------------------- */

static void *turn_on_and_off(void *argument)
{
	unsigned random = *(const unsigned *)argument;

	for (int i = 0; i < 300; i++)
		MUST(tdt_watch(random_below(&random, 3) * (int64_t)TDT_WATCH_MIN_NS, NULL) == 0);
	return NULL;
}

TEST(it_is_started_and_stopped_by_several_threads_at_once)
{
	unsigned seed = seed_of_run();
	struct poller poller = { seed, 1 };
	unsigned seeds[] = { seed + 1, seed + 2 };
	pthread_t thread[3];

	atomic_store(&at_work, 1);
	ck_assert_int_eq(pthread_create(&thread[0], NULL, poll_them, &poller), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[1 + i], NULL, turn_on_and_off, &seeds[i]),
				 0);
	threads_join(thread, 3);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	ck_assert_uint_eq(tdt__epoch_now(), 0);
}

/* --- The pool --------------------------------------------------------------------------------- */

#define ITEMS 6

struct thing {
	struct tdt__pool_item item;
	_Atomic uint64_t owner;
};

static struct tdt__pool pool = { .size = sizeof(struct thing) };

static void *take_and_give(void *argument)
{
	uint64_t self = (uintptr_t)argument;
	unsigned random = *(const unsigned *)argument;

	for (int i = 0; i < 100000; i++) {
		struct thing *things[3] = { NULL };
		unsigned n = 1 + random_below(&random, 3);

		for (unsigned j = 0; j < n; j++) {
			things[j] = (void *)tdt__pool_take(&pool);
			MUST(things[j] == NULL || atomic_exchange(&things[j]->owner, self) == 0);
		}
		for (unsigned j = 0; j < n; j++) {
			if (things[j] == NULL)
				continue;
			MUST(atomic_exchange(&things[j]->owner, 0) == self);
			tdt__pool_give(&pool, &things[j]->item);
		}
	}
	return NULL;
}

TEST(what_is_in_a_pool_is_given_to_one_at_a_time_and_never_lost)
{
	unsigned seed = seed_of_run();
	unsigned seeds[4];
	pthread_t thread[4];
	int left = 0;

	ck_assert_ptr_null(tdt__pool_take(&pool));
	for (int i = 0; i < ITEMS; i++) {
		struct thing *thing = (void *)tdt__pool_make(&pool);

		ck_assert_ptr_nonnull(thing);
		atomic_init(&thing->owner, 0);
		tdt__pool_give(&pool, &thing->item);
	}
	for (unsigned i = 0; i < 4; i++) {
		seeds[i] = seed + i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_and_give, &seeds[i]), 0);
	}
	threads_join(thread, 4);
	ck_assert_uint_eq(atomic_load(&pool.stock), ITEMS);
	while (tdt__pool_take(&pool) != NULL)
		left++;
	ck_assert_int_eq(left, ITEMS);
}

/* --- The spare captures ----------------------------------------------------------------------- */

static void *take_captures(void *argument)
{
	uint64_t self = (uintptr_t)argument;

	for (int i = 0; i < 20000; i++) {
		struct tdt__capture *outer = tdt__spare_take(), *inner = tdt__spare_take();

		MUST(outer != NULL && inner != NULL && outer != inner);
		outer->began = inner->began = self;
		tdt__spare_give(inner);
		MUST(outer->began == self);
		tdt__spare_give(outer);
	}
	return NULL;
}

TEST(a_spare_capture_is_in_use_by_one_thread_at_a_time_and_never_lost)
{
	struct tdt__capture *taken[1024];
	pthread_t thread[4];
	int n = 0;

	MUST(tdt__watch_stock_spares());
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_captures, &taken[i]), 0);
	threads_join(thread, 4);
	while ((taken[n] = tdt__spare_take()) != NULL)
		n++;
	ck_assert_int_eq(n, 64);
	while (n > 0)
		tdt__spare_give(taken[--n]);
}
