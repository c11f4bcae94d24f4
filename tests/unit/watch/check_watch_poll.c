// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers watch/watch, watch/spare_captures.  What a watched poll must not do (allocate, lock, enter
 * the kernel), what the ticker does without memory, and what is reported of a tree whose code may
 * be gone.
 */

#include <config.h>

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <tdt/integrate/hooks.h>

#include "lib/no_threads.h"
#include "lib/test.h"
#include "watch/watch.h"

/* --- A task that needs nothing of the heap ---------------------------------------------------- */

static __attribute__((noinline)) void clone_deep(int depth, struct tdt_context *cx)
{
	if (depth > 1)
		clone_deep(depth - 1, cx);
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

/*
 * Each time elsewhere on the stack: leaves at one place, with the same callers, would share them.
 */
static __attribute__((noinline)) void clone_apart(int i, int depth, struct tdt_context *cx)
{
	char *volatile apart = __builtin_alloca(64 * (size_t)(i + 1));

	*apart = 0;
	clone_deep(depth, cx);
	TDT_KEEP_FRAME();
}

static tdt_poll_t deep_poll(void *state, struct tdt_context *cx)
{
	const int *depth = state;

	tdt_leaf_waits_on(TDT_WAIT_OTHER, state, 0);
	for (int i = 0; i < 3; i++)
		clone_apart(i, *depth, cx);
	return TDT_PENDING;
}

static tdt_poll_t poll_once(struct tdt_traced *task)
{
	return poll_idly(&task->future);
}

static uint64_t polls_since(struct tdt_traced *task)
{
	struct tdt_trace *trace = tdt_backtrace_last(task->handle);
	uint64_t polls = UINT64_MAX;

	if (trace != NULL)
		polls = tdt_trace_info(trace)->polls_since;
	tdt_trace_free(trace);
	return polls;
}

/* --- The path of a poll ----------------------------------------------------------------------- */

static __thread volatile int locks; /* taken by this thread */

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	return __real_pthread_mutex_lock(mutex);
}

/* One inside the other; with stacks of several depths, all PCs learned. */
struct family {
	int depth;
	struct tdt_traced inner;
	struct tdt_traced task;
};

static void family_init(struct family *family)
{
	family->depth = 3;
	family->inner =
	    tdt_traced(((struct tdt_future){ &family->depth, deep_poll, drop_nothing }));
	family->task = tdt_traced(family->inner.future);
	ck_assert_ptr_nonnull(family->task.handle);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	for (int i = 0; i < 5; i++) {
		poll_once(&family->task);
		tdt__watch_pass(TDT__WATCH_LONGEST);
	}
}

static void family_end(struct family *family)
{
	tdt_handle_unref(family->inner.handle);
	end_traced(&family->task);
}

CASE(path)

TEST(a_watched_poll_takes_no_lock_and_no_memory)
{
	const int depths[] = {
		1, 3, 20, 60, 240, 100
	}; /* for three leaves there is room for 512 frames */
	struct family family;

	family_init(&family);
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		int allocations, locked;

		family.depth = depths[i];
		locks = 0;
		no_memory_begin(-1);
		poll_once(&family.task);
		allocations = no_memory_end();
		locked = locks; /* Check has some of its own */
		ck_assert_int_eq(allocations, 0);
#if TDT_WALK_RULES
		ck_assert_int_eq(locked, 0);
#endif
		ck_assert_uint_eq(polls_since(&family.task), 0);
		ck_assert_uint_eq(polls_since(&family.inner), 0);
		locks = 0;
		tdt__watch_pass(TDT__WATCH_LONGEST);
		locked = locks;
		ck_assert_int_gt(locked, 0);
	}
	family_end(&family);
}

/* The kernel kills a thread that enters it for anything but to write or to end. */
static void poll_outside_the_kernel(struct family *family)
{
	tdt_worker_now(1);
	poll_once(&family->task);
	/* With a ticker there would be another thread, that goes on. */
	atomic_store(&tdt__epoch.now, 7777);
	MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	poll_once(&family->task);
	syscall(SYS_exit, family->task.handle->record.own_epoch == 7777 ? 0 : 1);
}

TEST(a_watched_poll_makes_no_system_call)
{
	struct family family;
	int status;
	pid_t child;

	NOT_TRIED_IF(!no_memory_possible(),
		     "sanitizers and valgrind make system calls of their own");
	NOT_TRIED_IF(!TDT_WALK_RULES,
		     "libunwind, by which the slow walk goes, blocks signals by a system call");
	NOT_TRIED_IF(prctl(PR_GET_SECCOMP) != 0, "a filter of system calls is in force already");
	family_init(&family);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		poll_outside_the_kernel(&family);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x",
		      (unsigned)status);
	family_end(&family);
}

CASE(memory)

TEST(without_memory_watching_does_not_begin_and_can_later)
{
	int depth = 3, error, first = 0;
	struct tdt_traced task;

	NEEDS_FAILING_MEMORY();
	task = tdt_traced(((struct tdt_future){ &depth, deep_poll, drop_nothing }));
	do {
		errno = 0;
		no_memory_begin(first);
		error = tdt_watch(INT64_MAX, NULL);
		no_memory_end();
		if (error != 0) {
			ck_assert_msg(error == -ENOMEM || error == -EAGAIN, "%d", error);
			ck_assert_int_eq(errno, -error);
			ck_assert_uint_eq(tdt__registry.watch_ns, 0);
			poll_once(&task);
			ck_assert_uint_eq(polls_since(&task), UINT64_MAX);
		}
		first++;
	} while (error != 0);
	ck_assert_int_gt(first, 10);
	poll_once(&task);
	ck_assert_uint_eq(polls_since(&task), 0);
	end_traced(&task);
}

/* --- No thread -------------------------------------------------------------------------------- */

TEST(without_a_thread_watching_does_not_begin_and_can_later)
{
	threads_left = 0;
	for (int i = 0; i < 3; i++) {
		ck_assert_fails(tdt_watch(INT64_MAX, NULL), EAGAIN);
		ck_assert_uint_eq(tdt__registry.watch_ns, 0);
		ck_assert_uint_eq(tdt__epoch_now(), 0);
	}
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	threads_left = -1;
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	ck_assert_uint_eq(tdt__registry.watch_ns, INT64_MAX);
}

/* --- Little memory ---------------------------------------------------------------------------- */

#define TASKS 300

TEST(a_ticker_without_memory_has_tasks_left_out_and_goes_on_later)
{
	static struct tdt_traced task[TASKS];
	int depth = 3, there = 0;

	NEEDS_FAILING_MEMORY();
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	for (int i = 0; i < TASKS; i++)
		task[i] = tdt_traced(((struct tdt_future){ &depth, deep_poll, drop_nothing }));
	for (int epoch = 0; epoch < 20; epoch++) {
		/* With stacks of another depth each time, so that other sizes are wanted. */
		depth = 3 + 5 * epoch;
		for (int i = 0; i < TASKS; i++)
			poll_once(&task[i]);
		no_memory_begin(epoch % 4);
		tdt__watch_pass(TDT__WATCH_LONGEST);
		no_memory_end();
	}
	for (int epoch = 0; epoch < 2; epoch++) {
		there = 0;
		tdt__watch_pass(TDT__WATCH_LONGEST);
		for (int i = 0; i < TASKS; i++) {
			poll_once(&task[i]);
			there += polls_since(&task[i]) == 0;
		}
	}
	ck_assert_int_eq(there, TASKS);
	for (int i = 0; i < TASKS; i++)
		end_traced(&task[i]);
}

static int read_last(void *argument)
{
	struct tdt_traced *task = argument;
	struct tdt_trace *trace;

	errno = 0;
	trace = tdt_backtrace_last(task->handle);
	if (trace == NULL)
		return -errno;
	tdt_trace_free(trace);
	return 0;
}

TEST(reading_reports_every_lack_of_memory)
{
	int depth = 3;
	TRACED(task, tdt_traced(((struct tdt_future){ &depth, deep_poll, drop_nothing })));

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_once(&task);
	no_memory_each(read_last, &task, 3);
}

static int guessed_nodes(struct tdt_traced *task)
{
	TRACE(trace, tdt_backtrace_last(task->handle));
	int guessed = 0;

	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		guessed += tdt_node_frame(node)->guessed;
	return guessed;
}

static void *plugin_open(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	ck_assert_ptr_nonnull(plugin);
	return plugin;
}

/* A task whose leaf lies in a plugin. */
static struct tdt_traced task_in(void *plugin)
{
	tdt_poll_t (*poll)(void *, struct tdt_context *);

	*(void **)&poll = dlsym(plugin, "plugin_poll");
	ck_assert_ptr_nonnull(poll);
	return tdt_traced(((struct tdt_future){ NULL, poll, drop_nothing }));
}

/*
 * The ticker does not wait long for the number of unloads, nor does a reader of the tree: they may
 * have it only the next time.
 */
static void poll_until_sure(struct tdt_traced *task)
{
	do {
		tdt__watch_pass(TDT__WATCH_LONGEST);
		poll_once(task);
	} while (guessed_nodes(task) != 0);
}

CASE(modules)

TEST(a_tree_from_before_a_module_went_is_marked_if_it_lies_in_one_that_may_go)
{
	void *plugin = plugin_open(PLUGINS "/plugin_a.so"),
	     *stays = plugin_open(PLUGINS "/plugin_b.so");
	TRACED(task, task_in(stays));

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_until_sure(&task);
	ck_assert_int_eq(dlclose(plugin), 0);
	ck_assert_int_gt(guessed_nodes(&task), 0);
	/* A capture that was made ready before is no better; one of after is. */
	poll_once(&task);
	ck_assert_int_gt(guessed_nodes(&task), 0);
	poll_until_sure(&task);
	ck_assert_uint_eq(polls_since(&task), 0);
}

TEST(a_tree_in_modules_that_the_process_began_with_is_never_marked)
{
	int depth = 3;
	TRACED(task, tdt_traced(((struct tdt_future){ &depth, deep_poll, drop_nothing })));
	void *plugin = plugin_open(PLUGINS "/plugin_a.so");

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_once(&task);
	ck_assert_int_eq(dlclose(plugin), 0);
	ck_assert_int_eq(guessed_nodes(&task), 0);
}

TEST(a_capture_that_is_in_use_while_a_module_goes_is_told_later)
{
	void *plugin = plugin_open(PLUGINS "/plugin_a.so"),
	     *stays = plugin_open(PLUGINS "/plugin_b.so");
	struct tdt__capture *used;
	TRACED(task, task_in(stays));

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_once(&task);
	used = tdt__spare_take();
	ck_assert_int_eq(dlclose(plugin), 0);
	tdt__watch_pass(TDT__WATCH_LONGEST);
	tdt__spare_give(used);
	poll_until_sure(&task); /* takes the one that was given back: it is the first */
}

/* A task that is polled in the middle of the next renewal of a capture, when it is made empty. */
static struct tdt_traced *polled_meanwhile;

void __real_tdt__capture_clear(struct tdt__capture *capture);
void __wrap_tdt__capture_clear(struct tdt__capture *capture);

void __wrap_tdt__capture_clear(struct tdt__capture *capture)
{
	struct tdt_traced *task = polled_meanwhile;

	polled_meanwhile = NULL;
	if (task != NULL)
		poll_once(task);
	__real_tdt__capture_clear(capture);
}

TEST(a_task_that_is_polled_while_captures_are_renewed_has_its_tree)
{
	void *plugin = plugin_open(PLUGINS "/plugin_a.so");
	TRACED(task, task_in(plugin));

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_once(&task);
	tdt__watch_pass(TDT__WATCH_LONGEST);
	ck_assert_uint_eq(polls_since(&task), 0);
	dlclose(plugin_open(PLUGINS "/plugin_b.so"));
	do
		polled_meanwhile = &task;
	while (tdt__watch_pass(TDT__WATCH_LONGEST), polled_meanwhile != NULL);
	ck_assert_uint_eq(polls_since(&task), 0);
}
