// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/run_queue.  A worker's queue is in order and bounded, and each task is taken out
 * once, whichever workers steal at the same time.
 */

#include "lib/test.h"
#include "runtime/run_queue.h"
#include "runtime/task.h"

static struct tdt__task tasks[TDT__RUN_QUEUE_SIZE + 1];

/* Where the counters are when a test begins: not everywhere far from their wrapping. */
static const uint32_t starts[] = { 0, 77, UINT32_MAX - 100 };

static void ring_init(struct tdt__run_queue *queue, uint32_t start)
{
	atomic_init(&queue->head, start);
	atomic_init(&queue->tail, start);
}

static void fill(struct tdt__run_queue *queue, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ck_assert(tdt__run_queue_push(queue, &tasks[i]));
}

CASE(queue)

TEST(first_in_first_out, .to = sizeof starts / sizeof *starts)
{
	struct tdt__run_queue queue;

	ring_init(&queue, starts[_i]);
	ck_assert(tdt__run_queue_is_empty(&queue));
	ck_assert_ptr_null(tdt__run_queue_pop(&queue));
	fill(&queue, TDT__RUN_QUEUE_SIZE);
	ck_assert(!tdt__run_queue_is_empty(&queue));
	ck_assert(!tdt__run_queue_push(&queue, &tasks[TDT__RUN_QUEUE_SIZE]));
	for (unsigned i = 0; i < TDT__RUN_QUEUE_SIZE; i++)
		ck_assert_ptr_eq(tdt__run_queue_pop(&queue), &tasks[i]);
	ck_assert_ptr_null(tdt__run_queue_pop(&queue));
	ck_assert(tdt__run_queue_is_empty(&queue));
}

TEST(tasks_are_left_if_none_was_taken_since_the_last_look, .to = sizeof starts / sizeof *starts)
{
	struct tdt__run_queue queue;
	uint32_t seen = starts[_i] - 1;

	ring_init(&queue, starts[_i]);
	for (int i = 0; i < 2; i++)
		ck_assert(!tdt__run_queue_is_left(&queue, &seen)); /* there are none */
	fill(&queue, 2);
	ck_assert(tdt__run_queue_is_left(&queue, &seen));
	tdt__run_queue_pop(&queue);
	ck_assert(!tdt__run_queue_is_left(&queue, &seen));
	ck_assert(tdt__run_queue_is_left(&queue, &seen));
}

TEST(a_thief_takes_the_older_half, .to = sizeof starts / sizeof *starts)
{
	static const unsigned sizes[] = { 1, 2, 3, 10, TDT__RUN_QUEUE_SIZE };

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned n = sizes[i], stolen = n - n / 2;
		struct tdt__run_queue from, queue;

		ring_init(&from, starts[_i]);
		ring_init(&queue,
			  starts[(unsigned)_i + 1 < sizeof starts / sizeof *starts ? _i + 1 : 0]);
		ck_assert_ptr_null(tdt__run_queue_steal(&queue, &from));
		fill(&from, n);
		ck_assert_ptr_eq(tdt__run_queue_steal(&queue, &from), &tasks[0]);
		for (unsigned j = 1; j < stolen; j++)
			ck_assert_ptr_eq(tdt__run_queue_pop(&queue), &tasks[j]);
		ck_assert_ptr_null(tdt__run_queue_pop(&queue));
		for (unsigned j = stolen; j < n; j++)
			ck_assert_ptr_eq(tdt__run_queue_pop(&from), &tasks[j]);
		ck_assert_ptr_null(tdt__run_queue_pop(&from));
	}
}

TEST(the_older_half_of_a_full_queue_gives_way, .to = sizeof starts / sizeof *starts)
{
	struct tdt__run_queue queue;
	struct tdt__task *task, *last = NULL;

	ring_init(&queue, starts[_i]);
	fill(&queue, TDT__RUN_QUEUE_SIZE - 1);
	ck_assert_ptr_null(tdt__run_queue_halve(&queue, &last));
	tdt__run_queue_push(&queue, &tasks[TDT__RUN_QUEUE_SIZE - 1]);
	task = tdt__run_queue_halve(&queue, &last);
	for (unsigned i = 0; i < TDT__RUN_QUEUE_HALF; i++, task = task->next)
		ck_assert_ptr_eq(task, &tasks[i]);
	ck_assert_ptr_eq(last, &tasks[TDT__RUN_QUEUE_HALF - 1]);
	for (unsigned i = TDT__RUN_QUEUE_HALF; i < TDT__RUN_QUEUE_SIZE; i++)
		ck_assert_ptr_eq(tdt__run_queue_pop(&queue), &tasks[i]);
	ck_assert_ptr_null(tdt__run_queue_pop(&queue));
}

#define THIEVES 3
#define MANY 300000

static struct tdt__run_queue shared;
static struct tdt__task many[MANY];
static atomic_bool over;

/* `state` counts how often a task was taken, `sleeper` is what its maker wrote. */
static void take(struct tdt__task *task)
{
	MUST(atomic_fetch_add_explicit(&task->state, 1, memory_order_relaxed) == 0);
	MUST(task->sleeper == (sem_t *)task);
}

/* Make room by half in a queue that was full just now.  False: thieves have made room. */
static bool halve(struct tdt__run_queue *queue)
{
	struct tdt__task *last = NULL, *task = tdt__run_queue_halve(queue, &last);

	if (task == NULL)
		return false;
	last->next = NULL;
	for (; task != NULL; task = task->next)
		take(task);
	return true;
}

static void *steal(void *unused)
{
	struct tdt__run_queue queue;
	struct tdt__task *task;
	bool last = false;

	ring_init(&queue, 0);
	while (!last) {
		last = atomic_load(&over); /* once more after that */
		while ((task = tdt__run_queue_steal(&queue, &shared)) != NULL) {
			do
				take(task);
			while ((task = tdt__run_queue_pop(&queue)) != NULL);
		}
	}
	return NULL;
}

TEST(each_task_is_taken_once, .to = sizeof starts / sizeof *starts)
{
	struct tdt__task *task;
	pthread_t threads[THIEVES];
	int n = (int)times_here(MANY);

	ring_init(&shared, starts[_i]);
	threads_start(threads, THIEVES, steal, NULL);
	for (int i = 0; i < n; i++) {
		bool full;

		many[i].sleeper = (sem_t *)&many[i];
		full = !tdt__run_queue_push(&shared, &many[i]);
		if (full)
			take(&many[i]);
		if (full && i % 2 == 0 && halve(&shared))
			continue;
		if ((full || i % 7 == 0) && (task = tdt__run_queue_pop(&shared)) != NULL)
			take(task);
	}
	atomic_store(&over, true);
	threads_join(threads, THIEVES);
	for (int i = 0; i < n; i++)
		ck_assert_uint_eq(many[i].state, 1);
}
