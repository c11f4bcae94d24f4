// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers fork, host/start.  Children of fork() trace and request as usual, though they are forked
 * while other threads capture and symbolize: in the child all our locks, libunwind's and libdw's
 * are free, and the barrier works.
 */

#include "host/loaded.h"
#include "lib/futures.h"
#include "lib/options.h"
#include "lib/test.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "unwind/unwinder.h"

#define CHILDREN (test_in_full() ? 200 : 40)
#define CAPTURERS 2

/* --- A task of one thread -------------------------------------------------------- */

struct task {
	struct tdt_waker waker;
	atomic_int wakes;
	struct tdt_traced traced;
};

static void wake(const struct tdt_waker *waker)
{
	atomic_fetch_add(&((struct task *)(uintptr_t)waker)->wakes, 1);
}

static tdt_poll_t wait_on(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static void task_init(struct task *task, tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
		      void *state)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, wake, wake, ignore_waker };

	task->waker.vtable = &vtable;
	atomic_init(&task->wakes, 0);
	task->traced = tdt_traced(((struct tdt_future){ state, poll, drop_nothing }));
	MUST(task->traced.handle != NULL);
}

/* Drop it, and await that. */
static void task_fini(struct task *task)
{
	struct task joiner = { .waker = task->waker };
	struct tdt_context cx = { &joiner.waker };
	int outcome = 0;
	struct tdt_future joining = tdt_join(task->traced.handle, &outcome);

	MUST(tdt_future_poll(&joining, &cx) == TDT_PENDING);
	tdt_future_drop(&task->traced.future);
	MUST(atomic_load(&joiner.wakes) == 1);
	MUST(tdt_future_poll(&joining, &cx) == TDT_READY && outcome == -ECANCELED);
	tdt_future_drop(&joining);
	tdt_handle_unref(task->traced.handle);
}

static void poll_task(struct task *task)
{
	struct tdt_context cx = { &task->waker };

	tdt_future_poll(&task->traced.future, &cx);
}

/* Whether the trace names its leaf. */
static bool names_leaf(const struct tdt_trace *trace)
{
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node)) {
		const char *name = tdt_node_frame(node)->function;

		if (name != NULL && strcmp(name, "wait_on") == 0)
			return true;
	}
	return false;
}

/* Ask and poll by turns.  Returns the trace, for the caller to free. */
static struct tdt_trace *capture(struct task *task)
{
	struct task requester = { .waker = task->waker };
	struct tdt_context cx = { &requester.waker };
	struct tdt_trace *trace = NULL;
	struct tdt_future request = tdt_backtrace_async(task->traced.handle, NULL, &trace, NULL);

	MUST(tdt_future_poll(&request, &cx) == TDT_PENDING);
	poll_task(task);
	MUST(atomic_load(&requester.wakes) == 1);
	MUST(tdt_future_poll(&request, &cx) == TDT_READY);
	MUST(trace != NULL);
	tdt_future_drop(&request);
	return trace;
}

static void capture_and_name(struct task *task)
{
	TRACE(trace, capture(task));

	MUST(names_leaf(trace));
}

static atomic_bool over;

static void *capture_on(void *argument)
{
	while (!atomic_load(&over)) {
		struct task task;

		task_init(&task, wait_on, NULL);
		capture_and_name(&task);
		task_fini(&task);
	}
	return argument;
}

/* A thread that requests the task until it learns where the task waits. */
struct requester {
	struct tdt_handle *handle;
	struct tdt_trace *trace;
	atomic_bool answered;
};

static void *ask_blocking(void *argument)
{
	struct requester *requester = argument;

	/* A poll that takes its time is shown where it is just now. */
	do {
		tdt_trace_free(requester->trace);
		requester->trace = backtrace_timed(requester->handle, INT64_C(30000000000));
	} while (requester->trace != NULL &&
		 tdt_trace_info(requester->trace)->state == TDT_TASK_RUNNING);
	atomic_store(&requester->answered, true);
	return NULL;
}

/*
 * Have names looked up that are not cached, so that the namer is rarely idle: one PC after another
 * of this test's.
 */
static void *name_on(void *argument)
{
	struct tdt__modules *modules = tdt__modules_new(0);
	uintptr_t pc = (uintptr_t)wait_on;

	pthread_mutex_lock(&tdt__unwind_lock);
	MUST(modules != NULL && tdt__loaded_meet(&modules, pc) == 0);
	pthread_mutex_unlock(&tdt__unwind_lock);
	while (!atomic_load(&over)) {
		const struct tdt__module *self = &modules->module[0];
		struct tdt__name name = { self, pc, NULL };

		MUST(tdt__namer_find(modules, &name, 1, UINT64_MAX / 2) == 0);
		pc = pc + 1 < self->end ? pc + 1 : self->start;
		sched_yield();
	}
	tdt__modules_unref(modules);
	return argument;
}

/* In the child its only thread is the requester, or a second thread as well. */
static void trace_in_child(bool thread_too)
{
	struct requester requester = { 0 };
	struct task task;
	pthread_t thread;

	task_init(&task, wait_on, NULL);
	capture_and_name(&task);
	if (thread_too) {
		requester.handle = task.traced.handle;
		MUST(pthread_create(&thread, NULL, ask_blocking, &requester) == 0);
		while (!atomic_load(&requester.answered)) {
			if (atomic_exchange(&task.wakes, 0) > 0)
				poll_task(&task);
			sched_yield();
		}
		pthread_join(thread, NULL);
		MUST(requester.trace != NULL && names_leaf(requester.trace));
		tdt_trace_free(requester.trace);
	}
	task_fini(&task);
}

/*
 * With ThreadSanitizer a child ends at once: a thread that the child does not have may hold a lock
 * of the sanitizer's allocator, the namer above all, and the child's own namer would then wait for
 * that lock for ever.
 */
static __attribute__((unused)) void fork_children(bool thread_too) /* not under AddressSanitizer */
{
	pthread_t thread[CAPTURERS], naming;
	struct task first;

	/* ThreadSanitizer does not let a child into a pthread_once() that another thread was in. */
	task_init(&first, wait_on, NULL);
	task_fini(&first);
	threads_start(thread, CAPTURERS, capture_on, NULL);
	ck_assert_int_eq(pthread_create(&naming, NULL, name_on, NULL), 0);
	for (int i = 0, n = CHILDREN; i < n; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			if (!TSAN)
				trace_in_child(thread_too);
			_exit(0);
		}
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_msg(status == 0, "child %d ended with %s %d", i,
			      WIFSIGNALED(status) ? "signal" : "status",
			      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	atomic_store(&over, true);
	threads_join(thread, CAPTURERS);
	pthread_join(naming, NULL);
}

CASE(fork)

TEST(children_forked_while_others_capture_can_ask_themselves)
{
#if ASAN
	printf("# not tried: AddressSanitizer's allocator may be locked in a child\n");
#else
	if (TSAN)
		printf("# not tried: ThreadSanitizer's allocator may be locked in a child, which "
		       "ends at once\n");
	fork_children(false);
#endif
}

TEST(children_forked_while_others_capture_can_ask_from_a_thread)
{
#if ASAN || TSAN
	printf("# not tried: AddressSanitizer's allocator may be locked in a child, "
	       "ThreadSanitizer wants no threads\n");
#else
	fork_children(true);
#endif
}

/* A poll that forks, and goes on in both. */
static tdt_poll_t fork_in_poll(void *state, struct tdt_context *cx)
{
	*(pid_t *)state = fork();
	return wait_on(NULL, cx);
}

TEST(a_poll_that_forks_answers_on_both_sides)
{
	pid_t child;
	struct task task;

	task_init(&task, fork_in_poll, &child);
	capture_and_name(&task);
	ck_assert_int_ge(child, 0);
	task_fini(&task);
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(child_status(child), 0);
}

/* A task, its runtime's waker, and whether it was polled. */
struct polled {
	struct test_future leaf;
	struct test_waker waker;
	struct tdt_traced traced;
};

static void *poll_once(void *arg)
{
	struct polled *polled = arg;
	struct tdt_context cx = { &polled->waker.waker };

	tdt_future_poll(&polled->traced.future, &cx);
	return NULL;
}

static void polled_init(struct polled *polled)
{
	*polled = (struct polled){ .leaf = { .name = 'p', .pending = 100 } };
	test_waker_init(&polled->waker);
	polled->traced = tdt_traced(test_future(&polled->leaf));
}

static int wakes_when_asked(struct polled *polled)
{
	int before = atomic_load(&polled->waker.wakes);

	MUST(backtrace_timed(polled->traced.handle, 0) == NULL && errno == ETIMEDOUT);
	return atomic_load(&polled->waker.wakes) - before;
}

static void polled_fini(struct polled *polled)
{
	end_traced(&polled->traced);
}

/*
 * The runtime of a task that another thread polls is not there, and its locks may be held for ever.
 */
TEST(a_child_wakes_only_tasks_of_the_thread_that_forked)
{
	struct polled mine, theirs;
	pthread_t thread;

	polled_init(&mine);
	polled_init(&theirs);
	poll_once(&mine);
	pthread_create(&thread, NULL, poll_once, &theirs);
	pthread_join(thread, NULL);
	IN_A_CHILD {
		MUST(wakes_when_asked(&mine) == 1);
		MUST(wakes_when_asked(&theirs) == 0);
	}
	ck_assert_int_eq(wakes_when_asked(&mine), 1);
	ck_assert_int_eq(wakes_when_asked(&theirs), 1);
	polled_fini(&mine);
	polled_fini(&theirs);
}
