// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/namer, symbolize/symbolize.  The namer looks names up for the requesters; a
 * thread that polls never does, whatever is requested meanwhile.  All look-ups go through
 * tdt__symbolize(), or, if they are cached, through tdt__symbol_known(), which is under a lock.
 */

#include <config.h>

#include "lib/options.h"
#include "lib/test.h"
#include "probes/probes.h"
#include "symbolize/symbolize.h"

static _Thread_local bool polls; /* this thread */
static atomic_int by_pollers, by_requesters;

const struct tdt__symbol *__real_tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
						bool return_address);
const struct tdt__symbol *__wrap_tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
						bool return_address)
{
	atomic_fetch_add(polls ? &by_pollers : &by_requesters, 1);
	return __real_tdt__symbolize(module, pc, return_address);
}

const struct tdt__symbol *__real_tdt__symbol_known(const struct tdt__module *module, uintptr_t pc,
						   bool ret);
const struct tdt__symbol *__wrap_tdt__symbol_known(const struct tdt__module *module, uintptr_t pc,
						   bool ret);
const struct tdt__symbol *__wrap_tdt__symbol_known(const struct tdt__module *module, uintptr_t pc,
						   bool ret)
{
	atomic_fetch_add(polls ? &by_pollers : &by_requesters, 1);
	return __real_tdt__symbol_known(module, pc, ret);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (polls && mutex == &tdt__symbol_lock)
		atomic_fetch_add(&by_pollers, 1);
	return __real_pthread_mutex_lock(mutex);
}

/* --- A thread that polls ---------------------------------------------------------- */

static tdt_poll_t poll_leaf(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

/* A poll that goes on: it is blocked, or runs, until it is let go. */
static sem_t entered, block;
static atomic_bool spin;

static tdt_poll_t poll_long(void *state, struct tdt_context *cx)
{
	bool blocks = *(bool *)state;

	sem_post(&entered);
	while (blocks && sem_wait(&block) != 0)
		; /* EINTR */
	while (!blocks && atomic_load(&spin))
		;
	return poll_leaf(NULL, cx);
}

static bool blocks = true, runs = false;
static struct tdt_traced waiting, blocked, running;
static atomic_bool enter_blocked, enter_running, over;
static atomic_int turns;
static pthread_t poller;

static void *poll_all(void *unused)
{
	polls = true;
	while (!atomic_load(&over)) {
		poll_idly(&waiting.future);
		if (atomic_exchange(&enter_blocked, false))
			poll_idly(&blocked.future);
		if (atomic_exchange(&enter_running, false))
			poll_idly(&running.future);
		atomic_fetch_add(&turns, 1);
		sched_yield();
	}
	return unused;
}

static void set_up(void)
{
	waiting = tdt_traced((struct tdt_future){ NULL, poll_leaf, drop_nothing });
	blocked = tdt_traced((struct tdt_future){ &blocks, poll_long, drop_nothing });
	running = tdt_traced((struct tdt_future){ &runs, poll_long, drop_nothing });
	sem_init(&entered, 0, 0);
	sem_init(&block, 0, 0);
	atomic_store(&over, false);
	MUST(pthread_create(&poller, NULL, poll_all, NULL) == 0);
}

static void tear_down(void)
{
	atomic_store(&over, true);
	pthread_join(poller, NULL);
	end_traced(&waiting);
	end_traced(&blocked);
	end_traced(&running);
}

/* --- Requests ------------------------------------------------------------------ */

#define SECOND INT64_C(1000000000)

static void ask(struct tdt_handle *handle)
{
	/* Under valgrind, and with signals delayed, a poll that goes on may not be read. */
	bool may_fail = handle != waiting.handle && (TSAN || in_valgrind());
	struct tdt_trace *trace = backtrace_timed(handle, may_fail ? SECOND : 30 * SECOND);

	if (trace == NULL && may_fail)
		return;
	ck_assert_ptr_nonnull(trace);
	ck_assert_ptr_nonnull(tdt_trace_root(trace));
	tdt_trace_free(trace);
}

static void dump(void)
{
	STREAM(out, fopen("/dev/null", "we"));

	ck_assert_int_eq(tdt_dump(out), 0);
}

/* It has nothing to name if no task answers in time. */
static void dump_names(void)
{
	do
		dump();
	while (atomic_load(&by_requesters) == 0);
}

static void let_it_poll(void)
{
	int until = atomic_load(&turns) + 100;

	while (atomic_load(&turns) < until)
		sched_yield();
}

/* Names were looked up since the last call, and not by a thread that polls. */
static void check_requesters(void)
{
	ck_assert_int_gt(atomic_exchange(&by_requesters, 0), 0);
	ck_assert_int_eq(atomic_load(&by_pollers), 0);
}

CASE(naming, .setup = set_up, .teardown = tear_down, .timeout = 120)

TEST(requests_and_dumps_are_named_by_who_asks)
{
	ask(waiting.handle);
	check_requesters();
	dump_names();
	check_requesters();
}

TEST(watched_polls_name_nothing)
{
	ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	let_it_poll();
	ck_assert_int_eq(atomic_load(&by_requesters), 0); /* the ticker names nothing, too */
	ck_assert_int_eq(atomic_load(&by_pollers), 0);
	dump_names();
	check_requesters();
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
}

#if TDT_PROBES
/* Not seen by ThreadSanitizer, as the kernel's writes are not. */
static __attribute__((no_sanitize("thread"))) void add_to(volatile unsigned short *semaphore, int n)
{
	*semaphore = (unsigned short)(*semaphore + n);
}

#define ADD(name) add_to(&TDT__SEMAPHORE(name), n);

static void listeners(int n)
{
	TDT__TASK_PROBES(ADD)
}
#else
static void listeners(int n)
{
	(void)n; /* without probes nothing can be attached */
}
#endif

TEST(polls_with_probes_attached_name_nothing)
{
	listeners(+1);
	let_it_poll();
	ask(waiting.handle);
	check_requesters();
	listeners(-1);
}

TEST(a_poll_that_is_blocked_is_named_by_who_asks)
{
	atomic_store(&enter_blocked, true);
	sem_wait(&entered);
	ask(blocked.handle);
	dump();
	sem_post(&block);
	ask(waiting.handle);
	check_requesters();
}

TEST(a_poll_that_runs_is_named_by_who_asks)
{
	atomic_store(&spin, true);
	atomic_store(&enter_running, true);
	sem_wait(&entered);
	ask(running.handle);
	atomic_store(&spin, false);
	ask(waiting.handle);
	check_requesters();
}
