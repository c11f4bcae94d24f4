// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Does one thing so many times: `count WHAT N`.  bench/count.sh runs it under callgrind with two
 * numbers; what the larger one takes more, divided by the difference, is what one of them takes,
 * whatever else the machine does.
 */

#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/recorder.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "future/switch.h"
#include "reader/tasks.h"
#include "report.h"

#define TASKS 10000 /* that a dump or a reader finds */
#define DEPTH 10
#define LEAVES 64
#define LEAF_DEPTH 4
#define BATCH 1000

static struct tdt_rt *rt;
static sem_t over;

static void make_runtime(void)
{
	const struct tdt_rt_config config = { .size = sizeof config, .workers = 1 };

	rt = tdt_rt_new(&config);
	if (rt == NULL)
		die("tdt_rt_new");
}

static void nothing(void *state)
{
	(void)state;
}

static void go(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state)
{
	if (tdt_rt_go(rt, (struct tdt_future){ state, poll, nothing }, NULL) != 0)
		die("tdt_rt_go");
}

/* --- A task's life: a task spawns a thousand at a time -------------------------------------- */

static int left, lives;
static const struct tdt_waker *spawner;

static tdt_poll_t child_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	if (--left == 0)
		tdt_waker_wake(spawner);
	return TDT_READY;
}

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (lives == 0) {
		sem_post(&over);
		return TDT_READY;
	}
	spawner = tdt_waker_clone(cx->waker);
	left = BATCH;
	lives -= BATCH;
	for (int i = 0; i < BATCH; i++)
		go(child_poll, NULL);
	return TDT_PENDING;
}

static void do_spawn(int n)
{
	lives = n;
	make_runtime();
	go(spawner_poll, NULL);
	sem_wait(&over);
}

/* --- Tasks that wait, and dumps -------------------------------------------------------------- */

static const struct tdt_waker *wakers[TASKS];
static int polled;

static __attribute__((noinline)) tdt_poll_t wait_below(int depth, const struct tdt_waker **waker,
						       struct tdt_context *cx)
{
	tdt_poll_t result = TDT_PENDING;

	if (depth > 0) {
		result = wait_below(depth - 1, waker, cx);
	} else if (*waker == NULL || !tdt_waker_will_wake(*waker, cx->waker)) {
		tdt_waker_drop(*waker);
		*waker = tdt_waker_clone(cx->waker);
		if (++polled == TASKS)
			sem_post(&over);
	}
	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_below(DEPTH - 2, state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void make_tasks(void)
{
	make_runtime();
	for (int i = 0; i < TASKS; i++)
		go(wait_poll, &wakers[i]);
	sem_wait(&over);
}

/* Under valgrind a second is short. */
static const struct tdt_dump_options patient = { .size = sizeof patient,
						 .timeout_ns = INT64_C(600000000000) };

static void take_snapshots(int n, const struct tdt_dump_options *options)
{
	make_tasks();
	for (int i = 0; i < n; i += TASKS) {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(options);

		if (snapshot == NULL)
			die("tdt_snapshot_take");
		tdt_snapshot_free(snapshot);
	}
}

static void do_dump(int n)
{
	take_snapshots(n, &patient);
}

/* No task has time to answer. */
static void do_dump_late(int n)
{
	const struct tdt_dump_options late = { .size = sizeof late, .timeout_ns = 1 };

	take_snapshots(n, &late);
}

static void do_dump_text(int n)
{
	FILE *out = fopen("/dev/null", "we");

	make_tasks();
	for (int i = 0; i < n; i += TASKS)
		if (out == NULL || tdt_dump_with(out, &patient) != 0)
			die("tdt_dump");
}

/* --- Reading records from outside ---------------------------------------------------------- */

static void read_outside(pid_t pid)
{
	const struct tdt__places places = { 0 };
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__trouble trouble;
	struct tdt__target target;
	struct tdt__images images;
	struct tdt__tasks tasks;

	if (tdt__target_open_process(&target, pid, &trouble) != 0 ||
	    tdt__images_init(&images, &target, &places) != 0 || tdt__find(&target, found) != 1 ||
	    tdt__tasks_read(&tasks, &target, &images, &found[0]) != 0 || tasks.n != TASKS)
		die("reading");
	tdt__tasks_fini(&tasks);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

static void do_read(int n)
{
	pid_t child;

	for (int i = 0; i < TASKS; i++)
		if (tdt_traced((struct tdt_future){ &wakers[i], wait_poll, nothing }).handle ==
		    NULL)
			die("tdt_traced");
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	for (int i = 0; i < n; i += TASKS)
		read_outside(child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* --- Requests, and polls by hand ------------------------------------------------------------- */

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };
static const struct tdt_waker by_hand = { &vtable };

static __attribute__((noinline)) tdt_poll_t leaf_below(int depth, struct tdt_context *cx)
{
	if (depth > 0)
		leaf_below(depth - 1, cx);
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = leaf_below(LEAF_DEPTH - 2, cx);

	(void)state;
	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t forever_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static struct tdt_traced traced(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);

	if (traced.handle == NULL)
		die("tdt_traced");
	return traced;
}

/* A request, the poll that answers it, and the trace. */
static void request(struct tdt_future future, int n)
{
	struct tdt_context cx = { &by_hand };
	struct tdt_traced task = traced(future);

	tdt_future_poll(&task.future, &cx);
	tdt_leaf_wakers(false); /* these leaves keep no clone */
	for (int i = 0; i < n; i++) {
		struct tdt_trace *trace = NULL;
		struct tdt_future asked = tdt_backtrace_async(task.handle, NULL, &trace, NULL);

		tdt_future_poll(&asked, &cx);
		tdt_future_poll(&task.future, &cx);
		if (tdt_future_poll(&asked, &cx) != TDT_READY || trace == NULL)
			die("tdt_backtrace_async");
		tdt_future_drop(&asked);
		tdt_trace_free(trace);
	}
}

static void do_request(int n)
{
	request((struct tdt_future){ NULL, leaf_poll, nothing }, n);
}

static void do_request_leaves(int n)
{
	struct tdt_future all[LEAVES];

	for (int i = 0; i < LEAVES; i++)
		all[i] = (struct tdt_future){ NULL, leaf_poll, nothing };
	request(tdt_join_all(all, LEAVES), n);
}

static const struct tdt_trace_context context = { .trace_id = { 1 }, .span_id = { 1 } };

static void do_poll(int n)
{
	struct tdt_context cx = { &by_hand };
	struct tdt_traced task = traced((struct tdt_future){ NULL, forever_poll, nothing });

	if (tdt_task_context(task.handle, &context) != 0)
		die("tdt_task_context");
	tdt_worker_now(1);
	for (int i = 0; i < n; i++)
		tdt_future_poll(&task.future, &cx);
}

static void do_poll_labelled(int n)
{
	if (tdt_context_labels(true) != 0)
		die("tdt_context_labels");
	do_poll(n);
}

static void record(void)
{
	if (tdt_recorder_start(NULL) != 0)
		die("tdt_recorder_start");
}

static void do_poll_recorded(int n)
{
	record();
	do_poll(n);
}

/* --- Switches -------------------------------------------------------------------------------- */

#define STACK ((size_t)65536)

static struct tdt__context inside, outside;
static struct tdt_fiber *fiber;

static void stand(void)
{
	TDT_FIBER_BASE(fiber);
	tdt_fiber_resume(fiber);
	for (;;) {
		tdt_fiber_suspend(fiber);
		tdt__context_switch(&inside, &outside);
		tdt_fiber_resume(fiber);
	}
}

static void do_switch(int n)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (stack == MAP_FAILED)
		die("mmap");
	tdt__context_make(&inside, stack, STACK, stand);
	for (int i = 0; i < n; i++)
		tdt__context_switch(&outside, &inside);
}

static void do_switch_fiber(int n)
{
	static char low[STACK];

	fiber = tdt_fiber_new(low, STACK, NULL);
	if (fiber == NULL)
		die("tdt_fiber_new");
	tdt__context_make(&inside, low, STACK, stand);
	for (int i = 0; i < n; i++)
		tdt__context_switch(&outside, &inside);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int n);
	} all[] = {
		{ "spawn", do_spawn },
		{ "dump", do_dump },
		{ "dump-late", do_dump_late },
		{ "dump-text", do_dump_text },
		{ "read", do_read },
		{ "request", do_request },
		{ "request-leaves", do_request_leaves },
		{ "poll", do_poll },
		{ "poll-labelled", do_poll_labelled },
		{ "poll-recorded", do_poll_recorded },
		{ "switch", do_switch },
		{ "switch-fiber", do_switch_fiber },
	};

	sem_init(&over, 0, 0);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (argc == 3 && strcmp(argv[1], all[i].name) == 0) {
			all[i].run(atoi(argv[2]));
			return 0;
		}
	fprintf(stderr, "Usage: %s WHAT N\n", argv[0]);
	return 2;
}
