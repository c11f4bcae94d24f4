// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers door/trees.  What a reader gets that requests fresh trees, of tasks that answer and of
 * tasks that do not.  The trees are sent on the thread of the test: there is no door.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "base/clock.h"
#include "door/trees.h"
#include "lib/fibered.h"
#include "lib/listed.h"
#include "lib/poll_now.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "lib/visitor.h"

#define MS INT64_C(1000000)
#define HOUR (3600000 * MS)

/* --- Tasks --------------------------------------------------------------- */

/* What a task of these tests does; all zero: it waits in one leaf. */
struct job {
	struct poll_now task;
	int leaves; /* 0: one */
	int reports; /* waits that it reports */
	bool ready; /* its next poll ends it */
	void (*act)(void);
	int polls;
};

static uintptr_t called_from; /* the return address of the last call of the leaf */

static __attribute__((noinline)) void wait_here(struct tdt_context *cx)
{
	called_from = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

/* The same from another place of the stack, for another frame in the tree. */
static __attribute__((noinline)) void wait_lower(struct tdt_context *cx, int i)
{
	char *room = __builtin_alloca(64 * (size_t)i);

	__asm__ volatile("" : : "r"(room) : "memory");
	wait_here(cx);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static tdt_poll_t poll_job(void *state, struct tdt_context *cx)
{
	struct job *job = state;

	job->polls++;
	if (job->act != NULL)
		job->act();
	if (job->ready)
		return TDT_READY;
	for (int i = 0; i < job->reports; i++)
		tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, &job->leaves + i, 40 + (uint64_t)i, "gate");
	for (int i = 0; i == 0 || i < job->leaves; i++)
		wait_lower(cx, i);
	return TDT_PENDING;
}

static void start(struct job *job)
{
	poll_now_start(&job->task, future_of(poll_job, job));
}

static uint64_t id_of(const struct job *job)
{
	return tdt_handle_id(job->task.traced.handle);
}

static void end(struct job *job)
{
	ck_assert_int_eq(listed(job->task.traced.handle), 0);
	poll_now_end(&job->task);
}

/* --- Requests ------------------------------------------------------------ */

/* A message with a tree, as it comes. */
union arrived {
	struct tdt_outside_tree tree;
	struct {
		struct tdt_outside_tree tree;
		struct tdt_registry_entry entry[(TDT_OUTSIDE_MESSAGE_MAX -
						 sizeof(struct tdt_outside_tree)) /
						sizeof(struct tdt_registry_entry)];
	} whole;
};

/* The library's end and the reader's; and the rest of the last answer. */
static struct tdt__door_socket ends[2];
static struct tdt_outside_done done;

static void open_ends(void)
{
	ck_assert_int_eq(tdt__door_socket_pair(ends), 0);
}

static void close_ends(void)
{
	tdt__door_socket_close(&ends[0]);
	tdt__door_socket_close(&ends[1]);
}

static struct tdt_outside_trees all_within(int64_t timeout_ns)
{
	return (struct tdt_outside_trees){ VISITOR_HEADER(tdt_outside_trees, TREES),
					   .timeout_ns = (uint64_t)timeout_ns };
}

static int request(const struct tdt_outside_trees *wanted)
{
	done = (struct tdt_outside_done){ .tasks = 0 };
	return tdt__trees_send(&ends[0], wanted, &done);
}

/* Of all tasks, by when each has answered however slow the machine is. */
static void request_all(void)
{
	const struct tdt_outside_trees wanted = all_within(HOUR);

	ck_assert_int_eq(request(&wanted), 0);
}

/* Check what holds for all trees. */
static void check_tree(const union arrived *message, ssize_t n)
{
	const struct tdt_outside_tree *tree = &message->tree;
	uint32_t leaves = 0;

	ck_assert_uint_eq(tree->header.size, (size_t)n);
	ck_assert_uint_eq((size_t)n, sizeof *tree + tree->tree.n * sizeof message->whole.entry[0] +
					 tree->n_waits * sizeof(struct tdt_outside_wait));
	ck_assert_uint_eq(tree->header.version, TDT_OUTSIDE_VERSION);
	ck_assert_uint_eq(tree->header.kind, TDT_OUTSIDE_TREE);
	ck_assert_uint_eq(tree->header.number, 7);
	ck_assert_uint_eq(tree->astray, 0);
	ck_assert_uint_eq(tree->entries, sizeof *tree);
	ck_assert_uint_eq(tree->wait_size, sizeof(struct tdt_outside_wait));
	ck_assert(tree->answer == TDT_OUTSIDE_FRESH || tree->tree.n == 0);
	for (uint32_t i = 0; i < tree->tree.n; i++) {
		const struct tdt_registry_entry *entry = &message->whole.entry[i];

		ck_assert(entry->parent < tree->tree.n || entry->parent >= TDT_REGISTRY_TOP);
		leaves += entry->leaves & ~TDT_REGISTRY_GUESSED;
	}
	ck_assert_uint_eq(leaves, tree->tree.leaves);
}

/* Receive the next tree, which is valid until the next call. */
static const union arrived *next(void)
{
	static union arrived message;

	check_tree(&message, visitor_receive(ends[1].fd, &message, sizeof message));
	return &message;
}

static bool has_entry(const union arrived *message, uintptr_t pc)
{
	for (uint32_t i = 0; i < message->tree.tree.n; i++)
		if (message->whole.entry[i].pc == pc)
			return true;
	return false;
}

static const union arrived *expect_next(const struct job *job, enum tdt_outside_answer answer)
{
	const union arrived *message = next();

	ck_assert_uint_eq(message->tree.id, id_of(job));
	ck_assert_uint_eq(message->tree.record, (uintptr_t)job->task.traced.handle);
	ck_assert_uint_eq(message->tree.answer, answer);
	return message;
}

CASE(fresh, .setup = open_ends, .teardown = close_ends)

TEST(without_tasks_there_are_no_trees)
{
	request_all();
	ck_assert(done.tasks == 0 && done.fresh == 0 && done.left_out == 0);
}

TEST(a_waiting_task_is_woken_once_and_gives_its_tree)
{
	struct job job = { .leaves = 1 };
	const union arrived *message;

	start(&job);
	request_all();
	ck_assert_int_eq(job.polls, 2);
	message = expect_next(&job, TDT_OUTSIDE_FRESH);
	ck_assert_uint_eq(message->tree.outcome, TDT_PENDING);
	ck_assert_uint_eq(message->tree.tree.polls, 2);
	ck_assert_uint_eq(message->tree.tree.leaves, 1);
	ck_assert_uint_eq(message->tree.tree.lost, 0);
	ck_assert(has_entry(message, called_from));
	ck_assert(done.tasks == 1 && done.fresh == 1 && done.left_out == 0);
	end(&job);
}

TEST(each_of_many_tasks_gives_its_tree)
{
	static struct job jobs[100];
	uint64_t sum = 0;

	for (int i = 0; i < 100; i++)
		start(&jobs[i]);
	request_all();
	ck_assert(done.tasks == 100 && done.fresh == 100 && done.left_out == 0);
	for (int i = 0; i < 100; i++)
		sum += next()->tree.id;
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(jobs[i].polls, 2);
		sum -= id_of(&jobs[i]);
		end(&jobs[i]);
	}
	ck_assert_uint_eq(sum, 0);
}

TEST(a_poll_may_end_the_task_instead)
{
	struct job job = { .leaves = 1 };
	const union arrived *message;

	start(&job);
	job.ready = true;
	request_all();
	message = expect_next(&job, TDT_OUTSIDE_FRESH);
	ck_assert_uint_eq(message->tree.outcome, TDT_READY);
	ck_assert_uint_eq(message->tree.tree.leaves, 0);
	end(&job);
}

static const struct tdt_outside_wait *waits_of(const union arrived *message)
{
	return (const void *)&message->whole.entry[message->tree.tree.n];
}

TEST(all_waits_of_the_poll_come_with_the_tree)
{
	struct job job = { .leaves = 2, .reports = 2 };
	const struct tdt_outside_wait *waits;
	const union arrived *message;

	start(&job);
	request_all();
	message = expect_next(&job, TDT_OUTSIDE_FRESH);
	ck_assert_uint_eq(message->tree.n_waits, 2);
	waits = waits_of(message);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(waits[i].kind, TDT_WAIT_MUTEX);
		ck_assert_uint_eq(waits[i].object, (uintptr_t)(&job.leaves + i));
		ck_assert_uint_eq(waits[i].owner, 40 + (uint64_t)i);
		ck_assert_str_eq(waits[i].name, "gate");
	}
	end(&job);
}

TEST(of_many_waits_those_come_that_fit)
{
	struct job job = { .reports = 1000 };
	const union arrived *message;

	start(&job);
	request_all();
	message = expect_next(&job, TDT_OUTSIDE_FRESH);
	ck_assert_uint_gt(message->tree.header.size,
			  TDT_OUTSIDE_MESSAGE_MAX - sizeof(struct tdt_outside_wait));
	ck_assert_uint_eq(waits_of(message)[message->tree.n_waits - 1].owner,
			  40 + message->tree.n_waits - 1U);
	end(&job);
}

TEST(a_tree_that_is_too_large_is_cut_off)
{
	struct job job = { .leaves = 6000 };
	const union arrived *message;

	start(&job);
	request_all();
	message = expect_next(&job, TDT_OUTSIDE_FRESH);
	ck_assert_uint_gt(message->tree.header.size, TDT_OUTSIDE_MESSAGE_MAX - 32);
	ck_assert_uint_le(message->tree.header.size, TDT_OUTSIDE_MESSAGE_MAX);
	ck_assert_uint_gt(message->tree.tree.lost, 0);
	ck_assert_uint_eq(message->tree.tree.leaves + message->tree.tree.lost, 6000);
	end(&job);
}

CASE(which, .setup = open_ends, .teardown = close_ends)

TEST(only_the_listed_tasks_are_woken)
{
	struct job jobs[4] = { { .leaves = 1 } };
	struct tdt_outside_trees wanted = all_within(HOUR);

	for (int i = 0; i < 4; i++)
		start(&jobs[i]);
	wanted.n_ids = 3;
	wanted.ids[0] = id_of(&jobs[2]);
	wanted.ids[1] = UINT64_MAX; /* there is no such task */
	wanted.ids[2] = id_of(&jobs[0]);
	ck_assert_int_eq(request(&wanted), 0);
	ck_assert(done.tasks == 2 && done.fresh == 2 && done.left_out == 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(jobs[i].polls, i % 2 == 0 ? 2 : 1);
		end(&jobs[i]);
	}
}

TEST(no_more_tasks_are_woken_than_the_reader_wants)
{
	struct job jobs[7] = { { .leaves = 1 } };
	struct tdt_outside_trees wanted = all_within(HOUR);
	int polls = 0;

	for (int i = 0; i < 7; i++)
		start(&jobs[i]);
	wanted.most = 3;
	ck_assert_int_eq(request(&wanted), 0);
	ck_assert(done.tasks == 3 && done.fresh == 3 && done.left_out == 4);
	for (int i = 0; i < 7; i++) {
		polls += jobs[i].polls;
		end(&jobs[i]);
	}
	ck_assert_int_eq(polls, 7 + 3);
}

static void yields(struct fibered *it)
{
	fibered_yield(it);
}

TEST(tasks_that_need_no_request_take_no_place_from_those_that_do, .to = 2)
{
	struct tdt_outside_trees wanted = all_within(HOUR);
	FUTURELESS(callbacks, tdt_task_new(NULL));
	struct fibered fiber = { .run = yields };
	struct job jobs[2] = { { .leaves = 1 } };

	fibered_init(&fiber, NULL);
	fibered_resume(&fiber);
	for (int i = 0; i < 2; i++)
		start(&jobs[i]);
	wanted.most = 2 + (unsigned)_i;
	ck_assert_int_eq(request(&wanted), 0);
	ck_assert_uint_eq(done.tasks, wanted.most);
	ck_assert_uint_eq(done.left_out, 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(jobs[i].polls, 2);
		end(&jobs[i]);
	}
	fibered_fini(&fiber);
}

TEST(without_a_number_at_most_a_thousand_are_woken)
{
	static struct job jobs[1003];
	const struct tdt_outside_trees wanted = all_within(1); /* so few are sent */

	for (int i = 0; i < 1003; i++)
		start(&jobs[i]);
	close_ends(); /* and to nobody */
	ck_assert_int_eq(request(&wanted), -EBADF);
	ck_assert_uint_eq(done.left_out, 3);
	for (int i = 0; i < 1003; i++)
		end(&jobs[i]);
}

CASE(none, .setup = open_ends, .teardown = close_ends)

TEST(a_task_that_is_not_polled_gives_no_tree)
{
	struct job job = { .leaves = 1 };
	const struct tdt_outside_trees wanted = all_within(20 * MS);

	start(&job);
	job.task.held = true;
	ck_assert_int_eq(request(&wanted), 0);
	expect_next(&job, TDT_OUTSIDE_NONE);
	ck_assert(done.tasks == 1 && done.fresh == 0);
	end(&job);
}

static struct job dropped;

static void drop_the_other(void)
{
	if (dropped.task.traced.future.state == NULL)
		return;
	tdt_future_drop(&dropped.task.traced.future);
	dropped.task.traced.future.state = NULL;
}

TEST(a_task_that_ends_before_its_poll_gives_no_tree)
{
	struct job dropper = { .leaves = 1 };
	struct tdt_outside_trees wanted = all_within(HOUR);

	start(&dropper);
	start(&dropped);
	dropper.act = drop_the_other;
	wanted.n_ids = 2;
	wanted.ids[0] = id_of(&dropper);
	wanted.ids[1] = id_of(&dropped);
	ck_assert_int_eq(request(&wanted), 0);
	ck_assert(done.tasks == 2 && done.fresh == 1);
	for (int i = 0; i < 2; i++) {
		const union arrived *message = next();

		ck_assert_uint_eq(message->tree.answer, message->tree.id == id_of(&dropped)
								? TDT_OUTSIDE_ENDED
								: TDT_OUTSIDE_FRESH);
	}
	end(&dropper);
	tdt_handle_unref(dropped.task.traced.handle);
}

static sem_t go_on;

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	while (sem_wait(&go_on) != 0)
		;
	return TDT_READY;
}

/* With so much time, the test would last for as long if the request did not see that. */
TEST(a_poll_that_lasts_is_reported_at_once_and_gets_no_signal)
{
	const struct tdt_outside_trees wanted = all_within(HOUR);
	struct stuck_task task = { .before = NULL };

	sem_init(&go_on, 0, 0);
	stuck_task_start(&task, stuck_poll, NULL);
	while (__atomic_load_n(&((struct tdt_task_record *)task.traced.handle)->state,
			       __ATOMIC_RELAXED) != TDT_TASK_RECORD_POLLING)
		usleep(1000);
	ck_assert_int_eq(request(&wanted), 0);
	ck_assert_uint_eq(next()->tree.answer, TDT_OUTSIDE_RUNNING);
	ck_assert(done.tasks == 1 && done.fresh == 0);
	ck_assert(stuck_signal() == 0 || in_valgrind()); /* which has one of its own */
	sem_post(&go_on);
	stuck_task_end(&task);
}

CASE(trouble, .setup = open_ends, .teardown = close_ends)

TEST(a_reader_that_does_not_receive_is_given_up)
{
	static struct job jobs[100];
	const struct tdt_outside_trees wanted = all_within(1 * MS);
	int error;

	for (int i = 0; i < 100; i++)
		start(&jobs[i]);
	do
		error = request(&wanted);
	while (error == 0);
	ck_assert_int_eq(error, -ETIMEDOUT);
	for (int i = 0; i < 100; i++)
		end(&jobs[i]);
}

TEST(for_a_reader_that_is_gone_no_task_is_waited_for)
{
	const struct tdt_outside_trees wanted = all_within(HOUR);
	struct job jobs[2] = { { .leaves = 1 } };

	for (int i = 0; i < 2; i++)
		start(&jobs[i]);
	jobs[0].task.held = true; /* it does not answer */
	tdt__door_socket_close(&ends[1]);
	ck_assert_int_eq(request(&wanted), -EPIPE);
	for (int i = 0; i < 2; i++)
		end(&jobs[i]);
}

TEST(without_memory_there_are_fewer_trees)
{
	static struct job jobs[3];
	const struct tdt_outside_trees wanted = all_within(HOUR);
	int failed;

	NEEDS_FAILING_MEMORY();
	for (int i = 0; i < 3; i++)
		start(&jobs[i]);
	request_all(); /* what is allocated once is there */
	for (int i = 0; i < 3; i++)
		next();
	for (int first = 0;; first++) {
		int error;

		no_memory_begin(first);
		error = request(&wanted);
		failed = no_memory_end() - first;
		ck_assert_int_eq(no_memory_kept(), 0);
		if (failed <= 0)
			break;
		ck_assert(error == 0 || error == -ENOMEM);
		ck_assert_uint_eq(done.tasks + done.left_out, error == 0 ? 3 : 0);
		for (uint32_t i = 0; i < done.tasks; i++)
			next();
	}
	ck_assert_uint_eq(done.fresh, 3);
	for (int i = 0; i < 3; i++)
		end(&jobs[i]);
}
