// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers future/coroutine, future/sanitizers.  The life of coroutines: they await, end and are
 * dropped, on whatever thread.
 */

#include <tdt/integrate/stack.h>

#include "lib/futures.h"
#include "lib/rt.h"
#include "lib/test.h"

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };
static struct test_future a, b;

/* What a coroutine is given, and leaves behind. */
static struct {
	struct tdt_future first, second;
	int errors[2];
	int ended;
	int result;
} told;

static void setup(void)
{
	test_events_clear();
	test_waker_init(&waker);
	a = (struct test_future){ .name = 'a' };
	b = (struct test_future){ .name = 'b' };
	memset(&told, 0, sizeof(told));
	told.errors[0] = told.errors[1] = 99;
}

static int awaits_two(void *arg)
{
	char variable[2000];

	memset(variable, 42, sizeof(variable));
	told.errors[0] = tdt_co_await(told.first);
	told.errors[1] = tdt_co_await(told.second);
	for (size_t i = 0; i < sizeof(variable); i++)
		MUST(variable[i] == 42);
	told.ended++;
	return told.result;
}

static struct tdt_future two(void)
{
	struct tdt_future future = tdt_coroutine(awaits_two, NULL, NULL);

	told.first = test_future(&a);
	told.second = test_future(&b);
	ck_assert(!tdt_future_is_none(&future));
	return future;
}

static void expect(const struct tdt_future *future, tdt_poll_t result, const char *events)
{
	test_events_clear();
	ck_assert_uint_eq(tdt_future_poll(future, &cx), result);
	ck_assert_str_eq(test_events, events);
}

static void expect_drop(struct tdt_future *future, const char *events)
{
	test_events_clear();
	tdt_future_drop(future);
	ck_assert_str_eq(test_events, events);
	ck_assert_int_eq(waker.alive, 0);
}

CASE(awaiting, .setup = setup)

TEST(a_coroutine_goes_on_where_it_waited)
{
	struct tdt_future co;

	a.pending = 2;
	b.pending = 1;
	co = two();
	expect(&co, TDT_PENDING, "a. ");
	expect(&co, TDT_PENDING, "a. ");
	ck_assert_int_eq(told.errors[0], 99);
	expect(&co, TDT_PENDING, "a! a~ b. ");
	ck_assert_int_eq(told.errors[0], 0);
	expect(&co, TDT_READY, "b! b~ ");
	ck_assert_int_eq(told.errors[1], 0);
	ck_assert_int_eq(told.ended, 1);
	expect(&co, TDT_PANICKED, "");
	expect_drop(&co, "");
}

TEST(a_panic_is_told_to_who_awaits)
{
	struct tdt_future co;

	a.result = TDT_PANICKED;
	co = two();
	expect(&co, TDT_READY, "a# a~ b! b~ ");
	ck_assert_int_eq(told.errors[0], -ENOTRECOVERABLE);
	ck_assert_int_eq(told.errors[1], 0);
	expect_drop(&co, "");
}

TEST(a_function_that_returns_no_zero_has_panicked)
{
	struct tdt_future co = two();

	told.result = -EIO;
	expect(&co, TDT_PANICKED, "a! a~ b! b~ ");
	expect(&co, TDT_PANICKED, "");
	expect_drop(&co, "");
}

static int awaits_none(void *arg)
{
	told.errors[0] = tdt_co_await(TDT_FUTURE_NONE);
	told.errors[1] = errno;
	return 0;
}

TEST(none_is_no_future_to_await)
{
	struct tdt_future co = tdt_coroutine(awaits_none, NULL, NULL);

	expect(&co, TDT_READY, "");
	ck_assert_int_eq(told.errors[0], -EINVAL);
	ck_assert_int_eq(told.errors[1], EINVAL);
	expect_drop(&co, "");
}

TEST(who_is_no_coroutine_can_not_await)
{
	ck_assert_fails(tdt_co_await(test_future(&a)), EDEADLK);
	ck_assert_str_eq(test_events, "a~ ");
}

static tdt_poll_t awaits_in_its_poll(void *state, struct tdt_context *context)
{
	told.errors[1] = tdt_co_await(test_future(&b));
	return TDT_READY;
}

static int awaits_one(void *arg)
{
	told.errors[0] = tdt_co_await(*(struct tdt_future *)arg);
	return 0;
}

TEST(what_is_awaited_can_not_await)
{
	struct tdt_future inside = { NULL, awaits_in_its_poll, drop_nothing };
	struct tdt_future co = tdt_coroutine(awaits_one, &inside, NULL);

	expect(&co, TDT_READY, "b~ ");
	ck_assert_int_eq(told.errors[0], 0);
	ck_assert_int_eq(told.errors[1], -EDEADLK);
	expect_drop(&co, "");
}

/* An adapter's stack, here no stack at all: it is told of, and that will do. */
static int awaits_on_another_stack(void *arg)
{
	char memory[16];
	struct tdt_stack stack = { .low = memory, .size = sizeof(memory) };

	tdt_stack_enter(&stack);
	told.errors[0] = tdt_co_await(test_future(&a));
	tdt_stack_leave(&stack);
	told.errors[1] = tdt_co_await(test_future(&b));
	return 0;
}

TEST(who_is_on_a_stack_of_others_can_not_await)
{
	struct tdt_future co = tdt_coroutine(awaits_on_another_stack, NULL, NULL);

	expect(&co, TDT_READY, "a~ b! b~ ");
	ck_assert_int_eq(told.errors[0], -EDEADLK);
	ck_assert_int_eq(told.errors[1], 0);
	expect_drop(&co, "");
}

CASE(dropping, .setup = setup)

TEST(one_that_was_never_polled_never_runs)
{
	struct tdt_future co = two();

	expect_drop(&co, "");
	ck_assert_int_eq(told.ended, 0);
	tdt_future_drop(&told.first);
	tdt_future_drop(&told.second);
}

TEST(one_that_waits_when_it_is_dropped_runs_to_its_end_and_awaits_nothing)
{
	struct tdt_future co;

	a.pending = 5;
	co = two();
	expect(&co, TDT_PENDING, "a. ");
	expect_drop(&co, "a~ b~ ");
	ck_assert_int_eq(b.polls, 0);
	ck_assert_int_eq(told.errors[0], -ECANCELED);
	ck_assert_int_eq(told.errors[1], -ECANCELED);
	ck_assert_int_eq(told.ended, 1);
}

TEST(a_coroutine_that_awaits_another_drops_it)
{
	struct tdt_future inner, outer;

	a.pending = 5;
	inner = two();
	outer = tdt_coroutine(awaits_one, &inner, NULL);
	expect(&outer, TDT_PENDING, "a. ");
	expect_drop(&outer, "a~ b~ ");
	ck_assert_int_eq(told.ended, 1);
}

/* --- Threads ---------------------------------------------------------------------------------- */

struct polled {
	struct tdt_future *future;
	tdt_poll_t result;
};

static void *poll_on_thread(void *arg)
{
	struct polled *polled = arg;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	polled->result = tdt_future_poll(polled->future, &cx);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	MUST(sigismember(&mask, SIGUSR2) == 1);
	return NULL;
}

/*
 * It is called again each time: to a compiler that could see that it does nothing else, once would
 * do.
 */
static NOINLINE pthread_t on_thread(void)
{
	__asm__ volatile("");
	return pthread_self();
}

static NOINLINE bool blocks_usr2(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, SIGUSR2) == 1;
}

static pthread_t threads_seen[3];
static bool blocked_seen[3];

static int notes_threads(void *arg)
{
	for (int i = 0; i < 3; i++) {
		threads_seen[i] = on_thread();
		blocked_seen[i] = blocks_usr2();
		tdt_co_await(i == 0 ? told.first : told.second);
	}
	return 0;
}

CASE(threads, .setup = setup)

/* The thread's mask is the thread's: it neither comes along with a coroutine nor stays behind. */
TEST(successive_polls_come_from_any_thread)
{
	FUTURE(co, tdt_coroutine(notes_threads, NULL, NULL));
	struct polled polled = { &co, 99 };

	a.pending = 1;
	b.pending = 1;
	told.first = test_future(&a);
	told.second = test_future(&b);
	ck_assert_uint_eq(tdt_future_poll(&co, &cx), TDT_PENDING);
	run_on_thread(poll_on_thread, &polled);
	ck_assert_uint_eq(polled.result, TDT_PENDING);
	told.second = TDT_FUTURE_NONE;
	ck_assert_uint_eq(tdt_future_poll(&co, &cx), TDT_READY);
	ck_assert(pthread_equal(threads_seen[0], pthread_self()));
	ck_assert(!pthread_equal(threads_seen[1], threads_seen[0]));
	ck_assert(pthread_equal(threads_seen[2], threads_seen[0]));
	ck_assert(!blocked_seen[0]);
	ck_assert(blocked_seen[1]);
	ck_assert(!blocked_seen[2]);
}

/*
 * A cancelled thread ends when the poll is over: what the coroutine has called it is not unwound.
 */
static int cancels_itself(void *arg)
{
	pthread_cancel(on_thread());
	pthread_testcancel();
	told.ended++;
	return 0;
}

static void *poll_and_note(void *arg)
{
	struct polled *polled = arg;

	polled->result = tdt_future_poll(polled->future, &cx);
	pthread_testcancel();
	told.ended = 99; /* not reached */
	return NULL;
}

TEST(a_cancellation_waits_until_the_poll_is_over)
{
	pthread_t thread;
	void *result;
	FUTURE(co, tdt_coroutine(cancels_itself, NULL, NULL));
	struct polled polled = { &co, 99 };

	ck_assert_int_eq(pthread_create(&thread, NULL, poll_and_note, &polled), 0);
	pthread_join(thread, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(told.ended, 1);
	ck_assert_uint_eq(polled.result, TDT_READY);
}

#define MANY 200
#define TURNS 30

static _Atomic int turns;

static NOINLINE int turn(void)
{
	int err = tdt_co_await(tdt_yield_now());

	turns++;
	return err;
}

static int yields(void *arg)
{
	int err = 0;

	for (int i = 0; i < TURNS && err == 0; i++)
		err = i % 10 == 3 ? tdt_co_await(tdt_sleep_ms(1)) : turn();
	return err;
}

static int awaits_many(void *arg)
{
	struct tdt_future all[MANY], joined;

	for (int i = 0; i < MANY; i++) {
		all[i] = tdt_coroutine(yields, NULL, NULL);
		MUST(!tdt_future_is_none(&all[i]));
	}
	joined = tdt_join_all(all, MANY);
	MUST(tdt_co_await(joined) == 0);
	return 0;
}

TEST(many_run_on_a_runtime)
{
	struct tdt_rt *rt = rt_of(3);

	for (int i = 0; i < MANY; i++) {
		struct tdt_handle *handle =
		    tdt_rt_spawn(rt, tdt_coroutine(yields, NULL, NULL), NULL);

		ck_assert_ptr_nonnull(handle);
		tdt_handle_unref(handle);
	}
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_coroutine(awaits_many, NULL, NULL)), 0);
	tdt_rt_free(rt);
	ck_assert_int_ge(turns, MANY * (TURNS - 3));
}

CASE(stack, .setup = setup)

TEST(a_child_of_fork_goes_on_in_the_coroutine)
{
	struct tdt_future co;
	pid_t child;
	int status;

	a.pending = 1;
	co = two();
	expect(&co, TDT_PENDING, "a. ");
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(tdt_future_poll(&co, &cx) == TDT_READY && told.ended == 1 ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect(&co, TDT_READY, "a! a~ b! b~ ");
	expect_drop(&co, "");
}

static NOINLINE int recurse(int depth)
{
	volatile char used[512];

	used[0] = (char)depth;
	return depth > 0 ? recurse(depth - 1) + used[0] : used[0];
}

static int recurses(void *arg)
{
	told.result = recurse(*(int *)arg);
	return 0;
}

/*
 * Which address a child has died of, as the handler of its signal sees it: below the stack, or
 * elsewhere.
 */
static void in_handler(int number, siginfo_t *info, void *context)
{
	_exit(info->si_code == SEGV_ACCERR ? 42 : 43);
}

static void overflow(void)
{
	static char handlers[64 << 10];
	stack_t other = { .ss_sp = handlers, .ss_size = sizeof(handlers) };
	struct sigaction action = { .sa_sigaction = in_handler,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct rlimit no_core = { 0, 0 };
	struct tdt_future co;
	int depth = 1 << 20;

	setrlimit(RLIMIT_CORE, &no_core);
	MUST(sigaltstack(&other, NULL) == 0);
	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	co = tdt_coroutine(recurses, &depth, NULL);
	tdt_future_poll(&co, &cx);
	_exit(0);
}

TEST(an_overflow_ends_at_a_page_that_can_not_be_touched)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0)
		overflow();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 42);
}

TEST(a_stack_is_as_large_as_it_was_asked_for)
{
	struct tdt_coroutine_attr attr = { .size = sizeof(attr), .stack_size = 64 << 20 };
	int depth = 40000;
	struct tdt_future co = tdt_coroutine(recurses, &depth, &attr);

	expect(&co, TDT_READY, "");
	expect_drop(&co, "");
}

TEST(bad_arguments_are_refused)
{
	struct {
		struct tdt_coroutine_attr attr;
		char newer;
	} attr = { .attr = { .size = sizeof(attr.attr) } };
	struct tdt_future co = tdt_coroutine(NULL, NULL, NULL);

	ck_assert(tdt_future_is_none(&co) && errno == EINVAL);
	attr.attr.stack_size = TDT_COROUTINE_MIN_STACK - 1;
	co = tdt_coroutine(yields, NULL, &attr.attr);
	ck_assert(tdt_future_is_none(&co) && errno == EINVAL);
	attr.attr.stack_size = SIZE_MAX;
	co = tdt_coroutine(yields, NULL, &attr.attr);
	ck_assert(tdt_future_is_none(&co) && errno == ENOMEM);
	attr.attr.stack_size = SIZE_MAX / 2;
	co = tdt_coroutine(yields, NULL, &attr.attr);
	ck_assert(tdt_future_is_none(&co) && errno == ENOMEM);
	attr.attr.stack_size = 0;
	attr.attr.size = 0;
	co = tdt_coroutine(yields, NULL, &attr.attr);
	ck_assert(tdt_future_is_none(&co) && errno == EINVAL);
	attr.attr.size = sizeof(attr);
	attr.newer = 1;
	co = tdt_coroutine(yields, NULL, &attr.attr);
	ck_assert(tdt_future_is_none(&co) && errno == E2BIG);
}

static const char *memory_is_taken(void)
{
	return SANITIZED       ? "the sanitizers need the memory"
	       : is_emulated() ? "emulated: limits are those of the emulator"
			       : NULL;
}

/* The limit leaves enough for all else: valgrind ends a process if it lacks memory for itself. */
TEST(without_memory_for_a_stack_there_is_no_coroutine, .skip = memory_is_taken)
{
	struct tdt_coroutine_attr attr = { .size = sizeof(attr), .stack_size = (size_t)1 << 35 };
	struct rlimit limit, old;
	struct tdt_future co;
	int error;

	ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
	limit = (struct rlimit){ (rlim_t)1 << 35, old.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	errno = 0;
	co = tdt_coroutine(awaits_two, NULL, &attr);
	error = errno;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
	ck_assert(tdt_future_is_none(&co));
	ck_assert_int_eq(error, ENOMEM);
	co = two();
	expect(&co, TDT_READY, "a! a~ b! b~ ");
	expect_drop(&co, "");
}
