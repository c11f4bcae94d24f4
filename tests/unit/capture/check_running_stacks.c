// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/running, capture/stack_pieces.  Polls that get stuck on other stacks than they
 * began on: in coroutines, ours and others', one in the other.  Each is requested while it is
 * blocked, and read from outside; and while it spins, and read by the signal.
 */

#include <ucontext.h>

#include <tdt/integrate/stack.h>

#include "future/sanitizers.h"
#include "lib/gate.h"
#include "lib/options.h"
#include "lib/stuck_task.h"
#include "lib/switched.h"
#include "lib/test.h"

#define DEEPEST 20 /* more stacks than are looked at */

/*
 * The path of the trace without functions of ours, up to the gate: what is inside of that is the C
 * library's.
 */
static void expect_path(struct tdt_trace *trace, bool spin, const char *expected)
{
	char *path = stuck_path(trace), *all = strdup(path), shown[2000] = "", *saved;

	for (char *name = strtok_r(path, " ", &saved); name != NULL;
	     name = strtok_r(NULL, " ", &saved)) {
		if (strncmp(name + (*name == '+'), "tdt_", 4) == 0)
			continue;
		if (*shown != '\0')
			strcat(shown, " ");
		strcat(shown, name);
		if (strcmp(name, "gate_stay") == 0)
			break;
	}
	if (SANITIZED && !spin)
		ck_assert_msg(strstr(all, "read") != NULL, "%s", all);
	else if (SIGNALS_ARE_LATE)
		printf("# not tried: ThreadSanitizer delays signals: whether %s is there\n",
		       expected);
	else
		ck_assert_msg(strcmp(shown, expected) == 0, "%s (%s)", shown, all);
	free(all);
	free(path);
	tdt_trace_free(trace);
}

static NOINLINE int stay_inside(const void *arg)
{
	gate_stay();
	USE(arg);
	return 0;
}

static NOINLINE int stays(void *arg)
{
	int result = stay_inside(arg);

	USE(arg);
	return result;
}

static tdt_poll_t polls(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(state, cx);

	USE(state);
	return result;
}

static struct tdt_future coroutine(tdt_coroutine_fn *fn, void *arg)
{
	struct tdt_future future = tdt_coroutine(fn, arg, NULL);

	ck_assert(!tdt_future_is_none(&future));
	return future;
}

/* Ask the task that is `future`. */
static struct tdt_trace *ask(struct tdt_future future, bool spin)
{
	struct tdt_trace *trace = gate_ask(polls, &future, spin, NULL);

	tdt_future_drop(&future);
	return trace;
}

/* --- Coroutines of ours --------------------------------------------------------------- */

SUITE_SKIP(stuck_impossible())

CASE(running_stacks)

TEST(a_poll_stuck_in_a_coroutine_is_seen_with_all_its_callers, .to = 2)
{
	struct tdt_trace *trace = ask(coroutine(stays, NULL), _i);

	if (!SANITIZED)
		ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
	expect_path(trace, _i, "polls stays stay_inside gate_stay");
}

static tdt_poll_t awaited_poll(void *state, struct tdt_context *cx)
{
	stays(state);
	USE(cx);
	return TDT_READY;
}

static NOINLINE int awaits(void *arg)
{
	int error = tdt_co_await((struct tdt_future){ arg, awaited_poll, drop_nothing });

	USE(arg);
	return error;
}

TEST(what_a_coroutine_awaits_is_seen_with_it, .to = 2)
{
	expect_path(ask(coroutine(awaits, NULL), _i), _i,
		    "polls awaits awaited_poll stays stay_inside gate_stay");
}

/* So many coroutines inside of another. */
static NOINLINE int nests(void *arg)
{
	unsigned *depth = arg;
	int error = --*depth == 0 ? stays(arg) : tdt_co_await(coroutine(nests, arg));

	USE(arg);
	return error;
}

TEST(coroutines_in_coroutines_are_seen_through, .to = 2)
{
	unsigned depth = 4;

	expect_path(ask(coroutine(nests, &depth), _i), _i,
		    "polls nests nests nests nests stays stay_inside gate_stay");
}

TEST(more_stacks_than_are_looked_at_are_cut_at_the_limit, .to = 2)
{
	unsigned depth = DEEPEST;
	struct tdt_trace *trace = ask(coroutine(nests, &depth), _i);

	if (!SANITIZED || (_i && !SIGNALS_ARE_LATE))
		ck_assert_int_eq(gate_cut(trace), TDT_CUT_LIMIT);
	expect_path(trace, _i,
		    "cut:1 nests nests nests nests nests nests nests nests nests nests nests nests "
		    "nests nests nests "
		    "nests stays stay_inside gate_stay");
}

/*
 * A traced task of its own inside of a coroutine, or inside of one in that: its stack begins there.
 */
static struct tdt_traced own;

static tdt_poll_t own_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = state != NULL ? tdt_future_poll(state, cx) : TDT_READY;

	if (state == NULL)
		stays(state);
	USE(cx);
	return result;
}

static int awaits_own(void *arg)
{
	int error = tdt_co_await(own.future);

	USE(arg);
	return error;
}

static void expect_own_path(struct tdt_future *child, bool spin, const char *expected)
{
	struct tdt_future outer = coroutine(awaits_own, NULL);
	struct stuck_task task = { 0 };
	struct tdt_trace *trace;

	own = tdt_traced(((struct tdt_future){ child, own_poll, drop_nothing }));
	gate_close(spin);
	stuck_task_start(&task, polls, &outer);
	gate_await();
	stuck_task_settle(&task, spin);
	trace = backtrace_timed(own.handle, INT64_C(30000000000));
	ck_assert_ptr_nonnull(trace);
	if (!SANITIZED)
		ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
	expect_path(trace, spin, expected);
	gate_open();
	stuck_task_end(&task);
	tdt_future_drop(&outer);
	tdt_handle_unref(own.handle);
}

TEST(a_task_in_a_coroutine_is_seen_from_its_own_poll_on, .to = 2)
{
	expect_own_path(NULL, _i, "own_poll stays stay_inside gate_stay");
}

TEST(a_task_in_a_coroutine_is_seen_with_the_coroutines_in_it, .to = 2)
{
	FUTURE(child, coroutine(stays, NULL));

	expect_own_path(&child, _i, "own_poll stays stay_inside gate_stay");
}

/* --- Of others -------------------------------------------------------------------------- */

#define FOREIGN_SIZE ((size_t)256 << 10)

static struct foreign {
	struct tdt_stack stack;
	struct tdt__san san, poller;
	ucontext_t inside, outside;
	bool tells_base;
	bool told;
} foreign;

static void foreign_entry(void)
{
	tdt__san_entered(&foreign.poller, &foreign.san);
	if (foreign.tells_base)
		TDT_STACK_BASE(&foreign.stack);
	stays(&foreign);
	USE(&foreign);
	tdt__san_leave(&foreign.poller, &foreign.san, 1);
	swapcontext(&foreign.inside, &foreign.outside);
}

static tdt_poll_t foreign_poll(void *state, struct tdt_context *cx)
{
	getcontext(&foreign.inside);
	foreign.inside.uc_stack.ss_sp = foreign.stack.low;
	foreign.inside.uc_stack.ss_size = foreign.stack.size;
	makecontext(&foreign.inside, foreign_entry, 0);
	tdt_stack_enter(&foreign.stack);
	tdt__san_enter(&foreign.poller, &foreign.san);
	swapcontext(&foreign.outside, &foreign.inside);
	tdt__san_left(&foreign.poller);
	tdt_stack_leave(&foreign.stack);
	USE(cx);
	return TDT_READY;
}

static struct tdt_trace *ask_foreign(bool tells_base, bool spin)
{
	void *memory =
	    mmap(NULL, FOREIGN_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tdt_trace *trace;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	foreign = (struct foreign){ .stack = { .low = memory, .size = FOREIGN_SIZE },
				    .tells_base = tells_base };
	tdt__san_init(&foreign.san, memory, FOREIGN_SIZE);
	trace = gate_ask(foreign_poll, NULL, spin, NULL);
	tdt__san_fini(&foreign.san);
	munmap(memory, FOREIGN_SIZE);
	return trace;
}

TEST(a_stack_that_was_told_of_is_seen_through, .to = 2)
{
	expect_path(ask_foreign(true, _i), _i,
		    "foreign_poll foreign_entry stays stay_inside gate_stay");
}

TEST(a_stack_whose_base_nobody_told_is_cut_at_its_end, .to = 2)
{
	TRACE(trace, ask_foreign(false, _i));
	TEXT(path, stuck_path(trace));

	ck_assert_int_ne(gate_cut(trace), TDT_CUT_NOT);
	ck_assert_msg(strstr(path, gate_seen(_i, "foreign_entry stays stay_inside gate_stay")) !=
			  NULL,
		      "%s", path);
	ck_assert_msg(strstr(path, "foreign_poll") == NULL, "%s", path);
}

/* Entered, and not gone to yet: the poll is where it was. */
static tdt_poll_t entering_poll(void *state, struct tdt_context *cx)
{
	tdt_stack_enter(&foreign.stack);
	stays(state);
	tdt_stack_leave(&foreign.stack);
	USE(cx);
	return TDT_READY;
}

TEST(a_stack_that_was_entered_but_not_gone_to_hides_nothing, .to = 2)
{
	static _Alignas(16) char memory[64 << 10];

	foreign.stack = (struct tdt_stack){ .low = memory, .size = sizeof memory };
	expect_path(gate_ask(entering_poll, NULL, _i, NULL), _i,
		    "entering_poll stays stay_inside gate_stay");
}

/* What was entered is memory that is gone, or leads in a circle: a host's fault. */
static tdt_poll_t astray_poll(void *state, struct tdt_context *cx)
{
	struct tdt_stack *stack = state;

	tdt_stack_enter(stack);
	stack->outer = stack;
	stays(state);
	stack->outer = NULL;
	tdt_stack_leave(stack);
	USE(cx);
	return TDT_READY;
}

TEST(stacks_that_lead_in_a_circle_do_no_harm, .to = 2)
{
	static _Alignas(16) char memory[64 << 10];
	struct tdt_stack stack = { .low = memory, .size = sizeof memory };

	expect_path(gate_ask(astray_poll, &stack, _i, NULL), _i,
		    "astray_poll stays stay_inside gate_stay");
}

/* A handler on a stack that nobody tells of, in a coroutine. */
static void stay_in_handler(int signal)
{
	gate_stay();
	USE(&signal);
}

static int raises(void *arg)
{
	raise(SIGUSR1);
	USE(arg);
	return 0;
}

static tdt_poll_t raising_poll(void *state, struct tdt_context *cx)
{
	static _Alignas(16) char memory[256 << 10];
	stack_t other = { .ss_sp = memory, .ss_size = sizeof memory };
	tdt_poll_t result;

	MUST(sigaltstack(&other, NULL) == 0);
	result = tdt_future_poll(state, cx);
	other.ss_flags = SS_DISABLE;
	sigaltstack(&other, NULL);
	return result;
}

TEST(a_handler_on_a_signal_stack_in_a_coroutine_is_not_read, .to = 2)
{
	struct sigaction action = { .sa_handler = stay_in_handler, .sa_flags = SA_ONSTACK };

	NOT_TRIED_IF(TSAN, "ThreadSanitizer delays signals");
	FUTURE(co, coroutine(raises, NULL));
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(gate_ask_in_vain(raising_poll, &co, _i), -ENOTSUP);
}

/* --- That were switched away from in the middle of a poll ---------------------------------- */

/*
 * Two coroutines with a scheduler, whose stack lies between theirs: the thread's own, or one that
 * is as unknown as theirs are.  `on_own`: the scheduler is on the thread's own.
 */
static struct {
	struct switched low, high, scheduler;
	char *stacks;
	pthread_t thread;
	atomic_uint tid;
	bool on_own;
} two;

static void goes_away(struct switched *co, struct tdt_context *cx)
{
	switched_away(co);
	USE(cx);
}

static NOINLINE void schedule(struct switched *scheduler, struct tdt_context *cx)
{
	switched_resume(&two.low);
	switched_resume(&two.high);
	stay_inside(scheduler);
	switched_resume(&two.low);
	switched_resume(&two.high);
	USE(cx);
}

static void *run_two(void *nothing)
{
	atomic_store(&two.tid, (unsigned)gettid());
	if (two.on_own)
		schedule(NULL, NULL);
	else
		switched_resume(&two.scheduler);
	return nothing;
}

static void start_two(bool on_own)
{
	pthread_attr_t attr;

	two.on_own = on_own;
	two.stacks = switched_stacks(3);
	two.low = two.high = (struct switched){ .act = goes_away, .result = TDT_READY };
	two.scheduler = (struct switched){ .act = schedule, .result = TDT_READY };
	switched_init(&two.low, two.stacks);
	switched_init(&two.high, two.stacks + 2 * SWITCHED_STACK);
	MUST(pthread_attr_init(&attr) == 0);
	if (on_own)
		MUST(!pthread_attr_setstack(&attr, two.stacks + SWITCHED_STACK, SWITCHED_STACK));
	else
		switched_init(&two.scheduler, two.stacks + SWITCHED_STACK);
	MUST(pthread_create(&two.thread, &attr, run_two, NULL) == 0);
	pthread_attr_destroy(&attr);
	gate_await();
}

static void end_two(void)
{
	MUST(pthread_join(two.thread, NULL) == 0);
	switched_fini(&two.low);
	switched_fini(&two.high);
	if (!two.on_own)
		switched_fini(&two.scheduler);
	munmap(two.stacks, 3 * SWITCHED_STACK);
}

/* What a dump says: for the caller to free. */
static char *dump(void)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 300000000 };

	return TEXT_WRITTEN(out, MUST(tdt_dump_with(out, &options) >= 0));
}

/* Blocked and spinning, and with either stack of the scheduler. */
TEST(a_poll_switched_away_from_is_not_read, .to = 4)
{
	struct stuck_task settles = { 0 };
	char *text;

	gate_close(_i % 2);
	start_two(_i / 2);
	atomic_store(&settles.tid, atomic_load(&two.tid));
	stuck_task_settle(&settles, _i % 2);
	ck_assert_int_eq(gate_error(two.low.traced.handle), -ENOTSUP);
	ck_assert_int_eq(gate_error(two.high.traced.handle), -ENOTSUP);
	if (two.on_own) { /* otherwise it is a task itself, and is shown */
		text = dump();
		ck_assert_msg(strstr(text, "stay_inside") == NULL, "%s", text);
		ck_assert_msg(strstr(text, "schedule") == NULL, "%s", text);
		free(text);
	} else if (!SANITIZED) {
		ck_assert_int_eq(gate_error(two.scheduler.traced.handle), 0);
	}
	gate_open();
	end_two();
}

/* A task that lives on a coroutine nobody tells of, and is where it was polled. */
static void stays_there(struct switched *co, struct tdt_context *cx)
{
	stays(co);
	USE(cx);
}

static void *run_alone(void *co)
{
	atomic_store(&two.tid, (unsigned)gettid());
	switched_resume(co);
	return NULL;
}

TEST(a_poll_stuck_on_a_stack_nobody_tells_of_is_seen, .to = 2)
{
	struct switched co = { .act = stays_there, .result = TDT_READY };
	struct stuck_task settles = { 0 };
	char *memory = switched_stacks(1);
	struct tdt_trace *trace;

	NOT_TRIED_IF(SANITIZED, "a sanitizer's read() can't be left without a guess");
	gate_close(_i);
	switched_init(&co, memory);
	MUST(pthread_create(&two.thread, NULL, run_alone, &co) == 0);
	gate_await();
	atomic_store(&settles.tid, atomic_load(&two.tid));
	stuck_task_settle(&settles, _i);
	trace = backtrace_timed(co.traced.handle, INT64_C(30000000000));
	ck_assert_ptr_nonnull(trace);
	ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
	expect_path(trace, _i, "switched_poll stays_there stays stay_inside gate_stay");
	gate_open();
	MUST(pthread_join(two.thread, NULL) == 0);
	switched_fini(&co);
	munmap(memory, SWITCHED_STACK);
}
