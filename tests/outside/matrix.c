// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tasks of all shapes, and what is true of each: matrix.sh asks for them in every way, and
 *matrix.py compares the answers with what this program says.
 *
 *	matrix WORKERS [busy] [fork]
 *
 * Each shape comes to its place, and rests there for ever.  The program begins the next one when
 * the one before rests, so a task has come to its state between the two times that are printed for
 * it.  When all rest, the program prints a line for each shape,
 *
 *	NAME ID EXISTS STATE AFTER BEFORE WAITS HOLDER LEAVES STACKS VERDICT
 *
 * and then "ready".  WAITS are kinds with + between them, STACKS have their functions of this file
 * with > between them, the outermost first, and | between stacks; - is nothing, and ? is not
 * compared.  "busy" adds a poll that computes for ever, and "fork" a child that has been forked
 * when all rest; its id is printed.  The program then obeys lines of its input, which have the
 * library leave its own answers in a folder:
 *
 *	tasks FOLDER    tasks.json: tdt_tasks(); then prints "tasks are there"
 *	trees FOLDER    backtrace.json and dump.json; then prints "trees are there"
 *
 * Those have objects with an answer, and the times before and after it was given.
 */

#include <config.h>

#include <alloca.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/integrate/stack.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "lib/at_rest.h"
#include "lib/must.h"
#include "lib/options.h"

#define LONG 60000000 /* milliseconds */
#define REQUEST_NS INT64_C(100000000000) /* for a task that answers, on a machine of any speed */
#define DUMP_NS INT64_C(4000000000) /* it waits so long, as some tasks give no answer */
#define N(array) (sizeof(array) / sizeof(*(array)))
#define REUSED UINT64_C(4242)
#define HOOKED UINT64_C(9000001)
#if defined(__clang__)
#define UNOPTIMIZED __attribute__((noinline, optnone))
#else
#define UNOPTIMIZED __attribute__((noinline, optimize("O0")))
#endif

struct truth {
	const char *name, *exists, *state, *waits, *holder;
	unsigned leaves;
	const char *stacks, *verdict;
};

/* What is true, with all tasks at rest. */
static const struct truth truths[] = {
	{ "holder", "live", "waiting", "timer", "-", 1, "steps_poll", "-" },
	/* It came here while the recorder was stopped. */
	{ "unrecorded", "live", "waiting", "mutex", "holder", 1, "steps_poll", "-" },
	{ "sleeper", "live", "waiting", "timer", "-", 1, "steps_poll", "-" },
	{ "lock", "live", "waiting", "mutex", "holder", 1, "steps_poll", "-" },
	{ "channel", "live", "waiting", "channel", "-", 1, "steps_poll", "-" },
	{ "timer_lock", "live", "waiting", "timer+mutex", "holder", 2, "steps_poll|steps_poll",
	  "-" },
	{ "lock_timer", "live", "waiting", "mutex+timer", "holder", 2, "steps_poll|steps_poll",
	  "-" },
	{ "silent", "live", "waiting", "-", "-", 1, "steps_poll>gate_poll", "-" },
	{ "silent_lock", "live", "waiting", "mutex", "holder", 2, "steps_poll>gate_poll|steps_poll",
	  "-" },
	{ "join_three", "live", "waiting", "timer+mutex", "holder", 3,
	  "steps_poll|steps_poll|steps_poll>gate_poll", "-" },
	{ "join_many", "live", "waiting", "15*timer", "-", 15, "15*steps_poll", "-" },
	{ "joiner", "live", "waiting", "task", "holder", 1, "steps_poll", "-" },
	{ "lock_of_none", "live", "waiting", "mutex", "-", 1, "steps_poll", "-" },
	/* A lock that was passed on while somebody waited for it. */
	{ "pass_giver", "live", "waiting", "timer", "-", 1, "steps_poll", "-" },
	{ "pass_taker", "live", "waiting", "timer", "-", 1, "steps_poll", "-" },
	{ "pass_waiter", "live", "waiting", "mutex", "pass_taker", 1, "steps_poll", "-" },
	/* A deadlock; and a ring that a silent leaf may break. */
	{ "dead_one", "live", "waiting", "mutex", "dead_other", 1, "steps_poll", "deadlock" },
	{ "dead_other", "live", "waiting", "mutex", "dead_one", 1, "steps_poll", "deadlock" },
	{ "ring_loose", "live", "waiting", "mutex", "ring_tight", 2,
	  "steps_poll|steps_poll>gate_poll", "ring" },
	{ "ring_tight", "live", "waiting", "mutex", "ring_loose", 1, "steps_poll", "ring" },
	/* A lock that was handed to a future which its task does not poll any more. */
	{ "forgetful", "live", "waiting", "timer", "-", 1, "forget_poll", "futurelock" },
	/* A request has found that its wake-up was lost. */
	{ "lost", "live", "waiting", "timer", "-", 1, "losing_poll", "lost" },
	{ "futurelocked", "live", "waiting", "mutex", "forgetful", 1, "steps_poll", "-" },
	/* Locks of tasks that have ended, and that were dropped. */
	{ "orphaner", "ended", "ready", "-", "-", 0, "?", "-" },
	{ "orphaned", "live", "waiting", "mutex", "orphaner", 1, "steps_poll", "orphaned" },
	{ "dropped", "ended", "panicked", "-", "-", 0, "?", "-" },
	{ "of_dropped", "live", "waiting", "mutex", "dropped", 1, "steps_poll", "orphaned" },
	/* Polls that go on. */
	{ "busy", "live", "polling", "-", "-", 1, "steps_poll>busy", "-" },
	{ "blocked", "live", "polling", "-", "-", 1, "steps_poll>blocked>block", "-" },
	{ "blocked_alloca", "live", "polling", "-", "-", 1, "steps_poll>blocked_alloca>block",
	  "-" },
	{ "blocked_plain", "live", "polling", "-", "-", 1,
	  "steps_poll>blocked_plain>blocked_plain_inner", "-" },
	{ "entered", "live", "polling", "-", "-", 1, "steps_poll>entered>entry>block", "-" },
	{ "hog", "live", "polling", "-", "-", 1, "steps_poll>hogging>block", "-" },
	/* The worker is held up by the one before. */
	{ "late", "live", "runnable", "-", "-", 1, "steps_poll", "-" },
	{ "never", "live", "waiting", "-", "-", 0, "?", "-" },
	/* On stacks of their own, and on none. */
	{ "co", "live", "waiting", "timer", "-", 1, "steps_poll>co_sleeps", "-" },
	{ "co_select", "live", "waiting", "mutex+timer", "holder", 2,
	  "steps_poll>co_selects|steps_poll>co_selects", "-" },
	{ "co_join", "live", "waiting", "timer+timer", "-", 3,
	  "steps_poll>co_sleeps|steps_poll>co_sleeps|steps_poll>gate_poll", "-" },
	{ "fiber", "live", "waiting", "-", "-", 1, "session>switch_away", "-" },
	{ "fiber_moved", "live", "waiting", "-", "-", 1, "session>switch_away", "-" },
	{ "callback", "live", "waiting", "timer", "-", 1, "serve>read_request", "-" },
	{ "callback_two", "live", "waiting", "mutex+timer", "holder", 1, "serve>read_request",
	  "-" },
	{ "callback_blocked", "live", "polling", "-", "-", 1,
	  "serve>read_request>call_back_blocked>block", "-" },
	{ "callback_runs", "live", "polling", "-", "-", 1, "main>call_back>obey", "-" },
	{ "hooked", "live", "waiting", "-", "-", 1, "?", "-" },
	{ "unloaded", "live", "waiting", "-", "-", 1, "through_plugin>gate_poll", "-" },
	{ "reused", "live", "waiting", "timer", "-", 1, "steps_poll", "-" },
	{ "ended", "ended", "ready", "-", "-", 0, "?", "-" },
	{ "gone", "gone", "ready", "-", "-", 0, "?", "-" },
	{ "panicked", "ended", "panicked", "-", "-", 0, "?", "-" },
	{ "woken_late", "ended", "ready", "-", "-", 0, "?", "-" },
};

struct shape {
	struct tdt_handle *handle;
	uint64_t id, after, before; /* it has come to its state between the two times */
	bool is_polled;		    /* by a runtime, to its place */
	atomic_int at;		    /* the thread that has come to the place; 0: none yet */
};

static struct shape shapes[N(truths)];

static struct tdt_rt *rt;
static int never_written[2];
static uint64_t last_rest; /* when the shape before has come to rest */

static struct shape *find(const char *name)
{
	for (size_t i = 0; i < N(truths); i++)
		if (strcmp(truths[i].name, name) == 0)
			return &shapes[i];
	MUST(false);
	return NULL;
}

static const struct truth *truth_of(const struct shape *shape)
{
	return &truths[shape - shapes];
}

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	MUST(clock_gettime(clock, &time) == 0);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* --- Leaves and tasks --- */

/* A leaf that reports nothing, and waits until it is opened: most are not. */
struct gate {
	pthread_mutex_t mutex; /* protects what follows */
	const struct tdt_waker *waker;
	bool open;
};

#define GATE                                                                                       \
	{                                                                                          \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                 \
	}

static tdt_poll_t gate_poll(void *state, struct tdt_context *cx)
{
	struct gate *gate = state;
	bool open;

	pthread_mutex_lock(&gate->mutex);
	open = gate->open;
	if (!open && (gate->waker == NULL || !tdt_waker_will_wake(gate->waker, cx->waker))) {
		if (gate->waker != NULL)
			tdt_waker_drop(gate->waker);
		gate->waker = tdt_waker_clone(cx->waker);
	}
	pthread_mutex_unlock(&gate->mutex);
	return open ? TDT_READY : TDT_PENDING;
}

static void gate_drop(void *state)
{
	(void)state;
}

static struct tdt_future wait_for(struct gate *gate)
{
	return (struct tdt_future){ gate, gate_poll, gate_drop };
}

static struct tdt_future shut(void)
{
	struct gate *gate = malloc(sizeof *gate);

	MUST(gate != NULL);
	*gate = (struct gate)GATE;
	return wait_for(gate);
}

static void open_gate(struct gate *gate)
{
	const struct tdt_waker *waker;

	pthread_mutex_lock(&gate->mutex);
	gate->open = true;
	waker = gate->waker;
	gate->waker = NULL;
	pthread_mutex_unlock(&gate->mutex);
	MUST(waker != NULL);
	tdt_waker_wake(waker);
}

static struct tdt_future sleeps(void)
{
	return tdt_sleep_ms(LONG);
}

static struct tdt_future either(struct tdt_future a, struct tdt_future b)
{
	return tdt_select((struct tdt_future[]){ a, b }, 2, NULL);
}

/* In a poll: this is the place. */
static void arrive(struct shape *shape)
{
	shape->is_polled = true;
	atomic_store(&shape->at, gettid());
}

/* What most tasks do; each step may be missing. */
struct steps {
	struct tdt_async async;
	struct shape *shape;
	struct tdt_mutex *takes;
	struct gate *waits;
	struct tdt_mutex *gives;
	void (*blocks)(struct shape *shape);
	struct tdt_future last;
	tdt_poll_t result;
};

static tdt_poll_t steps_poll(void *state, struct tdt_context *cx)
{
	struct steps *steps = state;

	TDT_BEGIN(&steps->async, cx);
	if (steps->takes != NULL)
		TDT_AWAIT(tdt_mutex_lock(steps->takes));
	if (steps->waits != NULL)
		TDT_AWAIT(wait_for(steps->waits));
	if (steps->gives != NULL)
		MUST(tdt_mutex_unlock(steps->gives) == 0);
	if (steps->blocks != NULL) {
		steps->blocks(steps->shape);
		TDT_KEEP_FRAME();
	}
	arrive(steps->shape);
	if (!tdt_future_is_none(&steps->last))
		TDT_AWAIT(steps->last);
	if (steps->result != TDT_READY)
		return steps->result;
	TDT_END();
}

static void spawn_on(struct tdt_rt *on, const char *name, uint64_t id, struct steps steps)
{
	struct shape *shape = find(name);

	steps.shape = shape;
	shape->after = last_rest;
	shape->handle = tdt_rt_spawn(on, TDT_ASYNC_NEW(steps_poll, steps),
				     TDT_TASK_ATTR(.name = name, .id = id));
	MUST(shape->handle != NULL);
	shape->id = tdt_handle_id(shape->handle);
}

#define SPAWN(name, ...) spawn_on(rt, name, 0, (struct steps){ __VA_ARGS__ })

/* --- Rest --- */

static int get_state(struct tdt_handle *handle, const struct tdt_task_info *info, void *state)
{
	(void)handle;
	*(enum tdt_task_state *)state = info->state;
	return 0;
}

static bool has_state(struct shape *shape)
{
	static const char *const names[] = { "waiting", "polling", "ready", "panicked",
					     "runnable" };
	enum tdt_task_state state;

	MUST(tdt_task_inspect(shape->handle, get_state, &state) == 0);
	return state < N(names) && strcmp(names[state], truth_of(shape)->state) == 0;
}

/* The state of a thread, as the kernel has it: S is asleep. */
static char thread_state(int tid)
{
	char path[64], line[512], *name_end;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	MUST(file != NULL && fgets(line, sizeof line, file) != NULL);
	fclose(file);
	name_end = strrchr(line, ')');
	MUST(name_end != NULL);
	return name_end[2];
}

static bool stands(struct shape *shape)
{
	int at = atomic_load(&shape->at);

	if (at == 0 || !has_state(shape))
		return false;
	if (strcmp(truth_of(shape)->state, "polling") == 0 &&
	    strcmp(truth_of(shape)->name, "busy") != 0)
		return thread_state(at) == 'S';
	/* If the watch was late, a request brings the tree of the last poll. */
	if (shape->is_polled && strcmp(truth_of(shape)->state, "waiting") == 0 &&
	    !has_last_tree(shape->handle)) {
		tdt_trace_free(backtrace_timed(shape->handle, INT64_C(1000000000)));
		return false;
	}
	return true;
}

/* What comes from now on has a later time, also by the coarse clock, which polls may use. */
static uint64_t end_moment(void)
{
	uint64_t end = now(CLOCK_MONOTONIC);

	while ((last_rest = now(CLOCK_MONOTONIC_COARSE)) <= end)
		usleep(500);
	return end;
}

static void rests(const char *name)
{
	struct shape *shape = find(name);

	while (!stands(shape))
		usleep(500);
	shape->before = end_moment();
}

static int count_polls(struct tdt_handle *handle, const struct tdt_task_info *info, void *polls)
{
	(void)handle;
	*(uint64_t *)polls = info->state == TDT_TASK_WAITING ? info->polls : 0;
	return 0;
}

/* The task has come to an earlier place, and waits there: it has been polled so often. */
static void waits(const char *name, uint64_t polls)
{
	uint64_t seen;

	do {
		usleep(500);
		MUST(tdt_task_inspect(find(name)->handle, count_polls, &seen) == 0);
	} while (seen < polls);
	end_moment();
}

/* The task goes on from now. */
static void go_on(const char *name, struct gate *gate)
{
	find(name)->after = last_rest;
	open_gate(gate);
}

#define REST(name, ...)                                                                            \
	do {                                                                                       \
		SPAWN(name, __VA_ARGS__);                                                          \
		rests(name);                                                                       \
	} while (0)

/* --- Tasks that wait --- */

static struct tdt_mutex *m;

static void leaves_of_all_kinds(void)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	struct tdt_mutex *of_none = tdt_mutex_new();
	struct tdt_future many[15];
	static void *value;

	MUST(tdt_oneshot(&sender, &receiver, NULL) == 0);
	MUST(tdt_mutex_try_lock(of_none));
	for (size_t i = 0; i < N(many); i++)
		many[i] = sleeps();
	REST("sleeper", .last = sleeps());
	REST("lock", .last = tdt_mutex_lock(m));
	REST("channel", .last = tdt_oneshot_receive(receiver, &value, NULL));
	REST("timer_lock", .last = either(sleeps(), tdt_mutex_lock(m)));
	REST("lock_timer", .last = either(tdt_mutex_lock(m), sleeps()));
	REST("silent", .last = shut());
	REST("silent_lock", .last = either(shut(), tdt_mutex_lock(m)));
	REST("join_three",
	     .last = tdt_join_all((struct tdt_future[]){ sleeps(), tdt_mutex_lock(m), shut() }, 3));
	REST("join_many", .last = tdt_join_all(many, N(many)));
	REST("joiner", .last = tdt_join(find("holder")->handle, NULL));
	REST("lock_of_none", .last = tdt_mutex_lock(of_none));
}

static void locks_that_pass(void)
{
	static struct gate gate = GATE;
	struct tdt_mutex *passed = tdt_mutex_new();

	SPAWN("pass_giver", .takes = passed, .waits = &gate, .gives = passed, .last = sleeps());
	waits("pass_giver", 1);
	SPAWN("pass_taker", .takes = passed, .last = sleeps());
	waits("pass_taker", 1);
	REST("pass_waiter", .last = tdt_mutex_lock(passed));
	find("pass_taker")->after = last_rest;
	go_on("pass_giver", &gate);
	rests("pass_giver");
	rests("pass_taker");
}

static void rings(void)
{
	static struct gate gates[4] = { GATE, GATE, GATE, GATE };
	struct tdt_mutex *locks[4];

	for (size_t i = 0; i < N(locks); i++)
		locks[i] = tdt_mutex_new();
	SPAWN("dead_one", .takes = locks[0], .waits = &gates[0], .last = tdt_mutex_lock(locks[1]));
	SPAWN("dead_other", .takes = locks[1], .waits = &gates[1],
	      .last = tdt_mutex_lock(locks[0]));
	SPAWN("ring_loose", .takes = locks[2], .waits = &gates[2],
	      .last = either(tdt_mutex_lock(locks[3]), shut()));
	SPAWN("ring_tight", .takes = locks[3], .waits = &gates[3],
	      .last = tdt_mutex_lock(locks[2]));
	waits("dead_one", 1);
	waits("dead_other", 1);
	waits("ring_loose", 1);
	waits("ring_tight", 1);
	go_on("dead_one", &gates[0]);
	rests("dead_one");
	go_on("dead_other", &gates[1]);
	rests("dead_other");
	go_on("ring_loose", &gates[2]);
	rests("ring_loose");
	go_on("ring_tight", &gates[3]);
	rests("ring_tight");
}

struct forgetting {
	struct tdt_async async;
	struct shape *shape;
	struct tdt_future first;
};

static tdt_poll_t forget_poll(void *state, struct tdt_context *cx)
{
	struct forgetting *forgetting = state;

	TDT_BEGIN(&forgetting->async, cx);
	MUST(tdt_future_poll(&forgetting->first, cx) == TDT_PENDING);
	arrive(forgetting->shape);
	TDT_AWAIT(sleeps());
	TDT_END();
}

/* It is a futurelock if the task is polled a tenth of a second after the lock was handed to it. */
static void futurelock(void)
{
	struct tdt_mutex *mutex = tdt_mutex_new();
	struct shape *shape = find("forgetful");
	uint64_t handed;

	MUST(tdt_mutex_try_lock(mutex));
	shape->after = last_rest;
	shape->handle = tdt_rt_spawn(
	    rt,
	    TDT_ASYNC_NEW(forget_poll,
			  (struct forgetting){ .shape = shape, .first = tdt_mutex_lock(mutex) }),
	    TDT_TASK_ATTR(.name = "forgetful"));
	MUST(shape->handle != NULL);
	shape->id = tdt_handle_id(shape->handle);
	waits("forgetful", 1);
	REST("futurelocked", .last = tdt_mutex_lock(mutex));
	shape->after = last_rest;
	MUST(tdt_mutex_unlock(mutex) == 0);
	waits("forgetful", 2);
	rests("forgetful");
	handed = now(CLOCK_MONOTONIC);
	while (now(CLOCK_MONOTONIC) - handed < 150000000)
		usleep(10000);
}

/* --- A wake-up that was lost --- */

struct losing {
	struct tdt_async async;
	struct shape *shape;
	struct gate *gate;
};

static tdt_poll_t channel_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = gate_poll(state, cx);

	if (result == TDT_PENDING)
		tdt_leaf_waits_on(TDT_WAIT_CHANNEL, state, 0);
	return result;
}

static tdt_poll_t losing_poll(void *state, struct tdt_context *cx)
{
	struct losing *losing = state;

	TDT_BEGIN(&losing->async, cx);
	TDT_AWAIT(((struct tdt_future){ losing->gate, channel_poll, gate_drop }));
	arrive(losing->shape);
	TDT_AWAIT(sleeps());
	TDT_END();
}

/* It counts a second after the request. */
static void lost_wakeup(void)
{
	static struct gate gate = GATE;
	struct tdt_counts counts = { .size = sizeof counts };
	struct shape *shape = find("lost");

	shape->after = last_rest;
	shape->handle = tdt_rt_spawn(
	    rt, TDT_ASYNC_NEW(losing_poll, (struct losing){ .shape = shape, .gate = &gate }),
	    TDT_TASK_ATTR(.name = "lost"));
	MUST(shape->handle != NULL);
	shape->id = tdt_handle_id(shape->handle);
	waits("lost", 1);
	pthread_mutex_lock(&gate.mutex);
	gate.open = true;
	pthread_mutex_unlock(&gate.mutex);
	shape->after = last_rest;
	tdt_trace_free(backtrace_timed(shape->handle, REQUEST_NS));
	rests("lost");
	do {
		usleep(10000);
		MUST(tdt_counters(&counts) == 0);
	} while (counts.lost_wakeups == 0);
}

static void orphans(void)
{
	struct tdt_rt *other =
	    tdt_rt_new(&(struct tdt_rt_config){
			.size = sizeof(struct tdt_rt_config), .workers = 1 });
	struct tdt_mutex *orphan = tdt_mutex_new(), *dropped = tdt_mutex_new();
	static struct gate gate = GATE;

	SPAWN("orphaner", .takes = orphan, .waits = &gate);
	waits("orphaner", 1);
	REST("orphaned", .last = tdt_mutex_lock(orphan));
	go_on("orphaner", &gate);
	rests("orphaner");
	spawn_on(other, "dropped", 0, (struct steps){ .takes = dropped, .last = sleeps() });
	waits("dropped", 1);
	REST("of_dropped", .last = tdt_mutex_lock(dropped));
	find("dropped")->after = last_rest;
	tdt_rt_free(other);
	rests("dropped");
}

/* --- Polls that go on --- */

static volatile bool computes = true;

static __attribute__((noinline)) void busy(struct shape *shape)
{
	atomic_store(&shape->at, gettid());
	while (computes)
		;
}

static __attribute__((noinline)) void block(struct shape *shape)
{
	char byte;

	atomic_store(&shape->at, gettid());
	MUST(read(never_written[0], &byte, 1) == 1);
}

static __attribute__((noinline)) void blocked(struct shape *shape)
{
	block(shape);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void hogging(struct shape *shape)
{
	block(shape);
	TDT_KEEP_FRAME();
}

/* The compiler needs a frame pointer here. */
static __attribute__((noinline)) void blocked_alloca(struct shape *shape)
{
	volatile char *room = alloca(strlen(truth_of(shape)->name) * 8);

	room[0] = 0;
	block(shape);
	room[1] = 0;
}

/* As it is with -O0. */
static UNOPTIMIZED void blocked_plain_inner(struct shape *shape)
{
	char byte;

	atomic_store(&shape->at, gettid());
	MUST(read(never_written[0], &byte, 1) == 1);
}

static UNOPTIMIZED void blocked_plain(struct shape *shape)
{
	blocked_plain_inner(shape);
}

static ucontext_t to_enter, entered_from;
static struct tdt_stack stack;

static __attribute__((noinline)) void entry(void)
{
	TDT_STACK_BASE(&stack);
	block(find("entered"));
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void entered(struct shape *shape)
{
	static char memory[256 << 10] __attribute__((aligned(4096)));

	(void)shape;
	stack = (struct tdt_stack){ .low = memory, .size = sizeof memory };
	MUST(getcontext(&to_enter) == 0);
	to_enter.uc_stack.ss_sp = memory;
	to_enter.uc_stack.ss_size = sizeof memory;
	makecontext(&to_enter, entry, 0);
	tdt_stack_enter(&stack);
	swapcontext(&entered_from, &to_enter);
	tdt_stack_leave(&stack);
}

/* Each has a worker of its own; returns the runtime. */
static struct tdt_rt *poll_that_lasts(const char *name, void (*blocks)(struct shape *shape))
{
	struct tdt_rt *own = tdt_rt_new(&(struct tdt_rt_config){
			.size = sizeof(struct tdt_rt_config), .workers = 1 });

	MUST(own != NULL);
	spawn_on(own, name, 0, (struct steps){ .blocks = blocks });
	rests(name);
	return own;
}

static void polls_that_last(bool with_busy)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	static void *value;
	struct tdt_rt *own;
	static struct gate gate = GATE;

	if (with_busy)
		poll_that_lasts("busy", busy);
	poll_that_lasts("blocked", blocked);
	poll_that_lasts("blocked_alloca", blocked_alloca);
	poll_that_lasts("blocked_plain", blocked_plain);
	poll_that_lasts("entered", entered);

	own = tdt_rt_new(&(struct tdt_rt_config){
			.size = sizeof(struct tdt_rt_config), .workers = 1 });
	MUST(own != NULL);
	MUST(tdt_oneshot(&sender, &receiver, NULL) == 0);
	spawn_on(own, "late", 0,
		 (struct steps){ .last = tdt_oneshot_receive(receiver, &value, NULL) });
	waits("late", 1);
	spawn_on(own, "hog", 0, (struct steps){ .waits = &gate, .blocks = hogging });
	waits("hog", 1);
	go_on("hog", &gate);
	rests("hog");
	find("late")->after = last_rest;
	MUST(tdt_oneshot_send(sender, NULL) == 0);
	rests("late");
	find("never")->at = gettid();
	spawn_on(own, "never", 0, (struct steps){ .last = sleeps() });
	rests("never");
}

/* --- Other stacks, and none --- */

static int co_sleeps(void *arg)
{
	(void)arg;
	return tdt_co_await(sleeps()) != 0;
}

static int co_selects(void *arg)
{
	(void)arg;
	return tdt_co_await(either(tdt_mutex_lock(m), sleeps())) != 0;
}

static void coroutines(void)
{
	REST("co", .last = tdt_coroutine(co_sleeps, NULL, NULL));
	REST("co_select", .last = tdt_coroutine(co_selects, NULL, NULL));
	REST("co_join", .last = tdt_join_all(
			    (struct tdt_future[]){ tdt_coroutine(co_sleeps, NULL, NULL),
						   tdt_coroutine(co_sleeps, NULL, NULL), shut() },
			    3));
}

static ucontext_t scheduler, session_context;
static struct tdt_fiber *fiber; /* that is switched to */

static __attribute__((noinline)) void switch_away(void)
{
	struct tdt_fiber *it = fiber;

	tdt_fiber_suspend(it);
	swapcontext(&session_context, &scheduler);
	tdt_fiber_resume(it);
}

static void session(void)
{
	TDT_FIBER_BASE(fiber);
	tdt_fiber_resume(fiber);
	switch_away();
	TDT_KEEP_FRAME();
}

/* Its memory has to be of its own, since nothing may overwrite it. */
static void start_fiber(const char *name, char *memory, size_t size)
{
	struct shape *shape = find(name);

	shape->after = last_rest;
	fiber = tdt_fiber_new(memory, size, TDT_TASK_ATTR(.name = name));
	MUST(fiber != NULL && getcontext(&session_context) == 0);
	session_context.uc_stack.ss_sp = memory;
	session_context.uc_stack.ss_size = size;
	makecontext(&session_context, session, 0);
	swapcontext(&scheduler, &session_context);
	shape->handle = tdt_fiber_handle(fiber);
	shape->id = tdt_handle_id(shape->handle);
}

static void fibers(void)
{
	static char own[64 << 10] __attribute__((aligned(64)));
	static char shared[64 << 10] __attribute__((aligned(64)));
	static char copy[sizeof shared] __attribute__((aligned(64)));

	start_fiber("fiber", own, sizeof own);
	atomic_store(&find("fiber")->at, gettid());
	rests("fiber");
	start_fiber("fiber_moved", shared, sizeof shared);
	memcpy(copy, shared, sizeof copy);
	tdt_fiber_moved(fiber, shared, copy, sizeof copy);
	memset(shared, 0xa5, sizeof shared);
	atomic_store(&find("fiber_moved")->at, gettid());
	rests("fiber_moved");
}

/* The frames that the list names are "of this file". */
static const struct tdt_leaf_frame frames[] = {
	{ .function = "serve", .file = __FILE__, .line = __LINE__ },
	{ .function = "read_request", .file = __FILE__, .line = __LINE__ },
};
static struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = N(frames), .frames = frames };
static struct tdt_leaf other_leaf = { .kind = TDT_LEAF_NAMED, .n = N(frames), .frames = frames };
static struct tdt_leaf blocked_leaf = { .kind = TDT_LEAF_NAMED, .n = N(frames), .frames = frames };
static struct tdt_leaf_wait waits_of_two[] = { { .kind = TDT_WAIT_MUTEX },
					       { .kind = TDT_WAIT_TIMER } };
static struct tdt_leaf two_leaf = { .kind = TDT_LEAF_NAMED,
				    .n = N(frames),
				    .frames = frames,
				    .waits = waits_of_two,
				    .n_waits = N(waits_of_two) };

static void new_task(const char *name)
{
	struct shape *shape = find(name);

	shape->after = last_rest;
	shape->handle = tdt_task_new(TDT_TASK_ATTR(.name = name));
	MUST(shape->handle != NULL);
	shape->id = tdt_handle_id(shape->handle);
}

static __attribute__((noinline)) void call_back_blocked(struct shape *shape)
{
	tdt_task_enter(shape->handle);
	block(shape);
	TDT_KEEP_FRAME();
	tdt_task_leave(shape->handle);
}

static void *run_callback(void *nothing)
{
	(void)nothing;
	call_back_blocked(find("callback_blocked"));
	return NULL;
}

static void callbacks(void)
{
	struct shape *shape = find("callback");
	pthread_t thread;

	waits_of_two[0].object = m;
	waits_of_two[0].owner = find("holder")->id;

	new_task("callback");
	tdt_leaf_at(shape->handle, &leaf);
	tdt_task_waits_on(shape->handle, TDT_WAIT_TIMER, &leaf, 0, NULL);
	atomic_store(&shape->at, gettid());
	rests("callback");

	new_task("callback_two");
	tdt_task_enter(find("callback_two")->handle);
	tdt_leaf_at(NULL, &two_leaf);
	tdt_task_leave(find("callback_two")->handle);
	atomic_store(&find("callback_two")->at, gettid());
	rests("callback_two");

	new_task("callback_blocked");
	tdt_leaf_at(find("callback_blocked")->handle, &blocked_leaf);
	MUST(pthread_create(&thread, NULL, run_callback, NULL) == 0);
	rests("callback_blocked");

	find("hooked")->after = last_rest;
	find("hooked")->id = HOOKED;
	tdt_hook_spawn(TDT_TASK_ATTR(.id = HOOKED, .name = "hooked"));
	tdt_hook_poll_start(TDT_TASK_ATTR(.id = HOOKED, .name = "hooked"));
	tdt_hook_poll_end(TDT_TASK_ATTR(.id = HOOKED, .name = "hooked"));
	find("hooked")->before = now(CLOCK_MONOTONIC);
}

/* It is in this function that the program rests: the callback goes on for ever. */
static void call_back(void (*obey)(void))
{
	obey();
	TDT_KEEP_FRAME();
}

/* --- What has changed since --- */

typedef tdt_poll_t poll_fn(void *state, struct tdt_context *cx);

static poll_fn *_Atomic plugin;

static tdt_poll_t through_plugin(void *state, struct tdt_context *cx)
{
	poll_fn *poll = atomic_load(&plugin);
	tdt_poll_t result;

	result = poll != NULL ? poll(NULL, cx) : gate_poll(state, cx);
	TDT_KEEP_FRAME();
	arrive(find("unloaded"));
	return result;
}

static void unload(void)
{
	static struct gate gate = GATE;
	struct shape *shape = find("unloaded");
	const char *build = getenv("top_builddir");
	char path[4096];
	void *module;

	MUST(build != NULL);
	snprintf(path, sizeof path, "%s/tests/lib/.libs/plugin_a.so", build);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	MUST(module != NULL);
	atomic_store(&plugin, (poll_fn *)dlsym(module, "plugin_poll"));
	MUST(atomic_load(&plugin) != NULL);
	shape->after = last_rest;
	shape->handle = tdt_rt_spawn(rt, (struct tdt_future){ &gate, through_plugin, gate_drop },
				     TDT_TASK_ATTR(.name = "unloaded"));
	MUST(shape->handle != NULL);
	shape->id = tdt_handle_id(shape->handle);
	rests("unloaded");
	atomic_store(&plugin, NULL);
	MUST(dlclose(module) == 0);
}

static void while_the_recorder_is_stopped(void)
{
	struct tdt_recorder_options options = { .size = sizeof options, .ring_size = 4 << 20 };
	static struct gate gate = GATE;

	SPAWN("unrecorded", .waits = &gate, .last = tdt_mutex_lock(m));
	waits("unrecorded", 1);
	MUST(tdt_recorder_stop() == 0);
	go_on("unrecorded", &gate);
	rests("unrecorded");
	options.dir = getenv("MATRIX_DIR");
	MUST(tdt_recorder_start(&options) == 0);
}

/* Give the last handle up, and wait until the task is gone. */
static void let_go(const char *name)
{
	struct shape *shape = find(name);
	struct tdt_handle *still;

	tdt_handle_unref(shape->handle);
	shape->handle = NULL;
	while ((still = tdt_task_find(shape->id)) != NULL) {
		tdt_handle_unref(still);
		usleep(500);
	}
}

static void ends(void)
{
	static struct gate gate = GATE;
	const struct tdt_waker *waker;

	REST("ended", .result = TDT_READY);
	REST("gone", .result = TDT_READY);
	let_go("gone");
	REST("panicked", .result = TDT_PANICKED);

	SPAWN("woken_late", .waits = &gate);
	waits("woken_late", 1);
	waker = tdt_waker_clone(gate.waker);
	go_on("woken_late", &gate);
	rests("woken_late");
	tdt_waker_wake(waker);

	/* The id of a task that has ended, whose shape it is until then. */
	spawn_on(rt, "reused", REUSED, (struct steps){ .result = TDT_READY });
	MUST(find("reused")->id == REUSED);
	while (atomic_load(&find("reused")->at) == 0)
		usleep(500);
	let_go("reused");
	atomic_store(&find("reused")->at, 0);
	end_moment();
	spawn_on(rt, "reused", REUSED, (struct steps){ .last = sleeps() });
	rests("reused");
}

/* --- Answers from inside --- */

static const struct tdt_print_options json = { .size = sizeof json, .format = TDT_PRINT_JSON };
static uint64_t asked; /* before the first request: a worker may use the time of its turn */

static void end_answer(FILE *out)
{
	fprintf(out, ",\"asked\":%" PRIu64 ",\"answered\":%" PRIu64 "}\n", asked,
		now(CLOCK_MONOTONIC));
}

static int print_task(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	static const char *const states[] = { "waiting",  "running",  "ready",
					      "panicked", "runnable", "unknown" };
	static const char *const kinds[] = {
		[TDT_WAIT_UNKNOWN] = "unknown", [TDT_WAIT_TASK] = "task",
		[TDT_WAIT_MUTEX] = "mutex",	[TDT_WAIT_CHANNEL] = "channel",
		[TDT_WAIT_TIMER] = "timer",	[TDT_WAIT_IO] = "io",
		[TDT_WAIT_OTHER] = "other",	[TDT_WAIT_SEMAPHORE] = "semaphore",
		[TDT_WAIT_NOTIFICATION] = "notification"
	};
	FILE *out = arg;

	(void)handle;
	fprintf(out, "{\"answer\":{\"id\":%" PRIu64 ",\"state\":\"%s\",\"state_ns\":%" PRIu64,
		info->id, states[info->state], info->state_ns);
	fputs(",\"waits\":[", out);
	for (size_t i = 0; i < info->n_waits; i++)
		fprintf(out, "%s{\"kind\":\"%s\",\"owner\":%" PRIu64 "}", i > 0 ? "," : "",
			kinds[info->waits[i]->kind], info->waits[i]->owner);
	fputs("]}", out);
	end_answer(out);
	return 0;
}

static FILE *open_in(const char *folder, const char *name)
{
	char path[5000];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s.json", folder, name);
	file = fopen(path, "w");
	MUST(file != NULL);
	return file;
}

static bool can_answer(const char *name)
{
	return strcmp(name, "late") != 0 && strcmp(name, "never") != 0 &&
	       strcmp(name, "callback_runs") != 0;
}

/* Some give no answer, however long one waits for it. */
static void print_backtrace(FILE *out, struct shape *shape)
{
	int64_t ns = can_answer(truth_of(shape)->name) ? REQUEST_NS : 1000000;
	struct tdt_trace *trace = backtrace_timed(shape->handle, ns);

	if (trace == NULL)
		return;
	fputs("{\"answer\":", out);
	MUST(tdt_trace_print_with(trace, out, &json) == 0);
	end_answer(out);
	tdt_trace_free(trace);
}

static void ask_for_tasks(const char *folder)
{
	FILE *out = open_in(folder, "tasks");

	asked = now(CLOCK_MONOTONIC_COARSE);
	MUST(tdt_tasks(NULL, print_task, out) == 0);
	fclose(out);
}

static void ask_for_trees(const char *folder)
{
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = DUMP_NS,
					    .print = &json };
	FILE *out = open_in(folder, "backtrace");

	asked = now(CLOCK_MONOTONIC_COARSE);
	for (size_t i = 0; i < N(truths); i++)
		if (shapes[i].handle != NULL && strcmp(truths[i].exists, "live") == 0)
			print_backtrace(out, &shapes[i]);
	fclose(out);
	out = open_in(folder, "dump"); /* when the names are known: it has little time for them */
	fputs("{\"answer\":", out);
	MUST(tdt_dump_with(out, &options) == 0);
	end_answer(out);
	fclose(out);
}

/* --- */

static void print_truth(bool with_busy)
{
	for (size_t i = 0; i < N(shapes); i++) {
		const struct truth *it = &truths[i];
		const struct shape *shape = &shapes[i];

		if (!with_busy && strcmp(it->name, "busy") == 0)
			continue;
		MUST(shape->id != 0);
		printf("%s %" PRIu64 " %s %s %" PRIu64 " %" PRIu64 " %s %s %u %s %s\n", it->name,
		       shape->id, it->exists, it->state, shape->after, shape->before, it->waits,
		       it->holder, it->leaves, it->stacks, it->verdict);
	}
}

static void obey(void)
{
	char line[4096];

	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "tasks ", 6) == 0)
			ask_for_tasks(line + 6);
		else if (strncmp(line, "trees ", 6) == 0)
			ask_for_trees(line + 6);
		printf("%.5s are there\n", line);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	bool with_busy = false, with_fork = false;
	pid_t child = 0;

	for (int i = 2; i < argc; i++) {
		with_busy |= strcmp(argv[i], "busy") == 0;
		with_fork |= strcmp(argv[i], "fork") == 0;
	}
	MUST(pipe(never_written) == 0);
	rt = tdt_rt_new(&(struct tdt_rt_config){
			.size = sizeof(struct tdt_rt_config), .workers = workers });
	MUST(rt != NULL);
	end_moment();
	m = tdt_mutex_new();
	REST("holder", .takes = m, .last = sleeps());
	while_the_recorder_is_stopped(); /* what rests already is not recorded from its beginning */
	leaves_of_all_kinds();
	locks_that_pass();
	rings();
	futurelock();
	lost_wakeup();
	orphans();
	coroutines();
	fibers();
	callbacks();
	unload();
	ends();
	polls_that_last(with_busy);
	new_task("callback_runs");
	tdt_leaf_at(find("callback_runs")->handle, &other_leaf);
	tdt_leaf_at(find("callback_runs")->handle, NULL);
	find("callback_runs")->before = now(CLOCK_MONOTONIC);
	if (with_fork) {
		child = fork();
		MUST(child >= 0);
		while (child == 0)
			pause();
		printf("child %d\n", (int)child);
	}
	print_truth(with_busy);
	puts("ready");
	fflush(stdout);
	call_back(obey);
	fflush(stdout);
	_exit(0); /* nothing is given back: some polls never end */
}
