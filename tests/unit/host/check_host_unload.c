// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers host/pages, capture/running.  A task's poll unloads a plugin while the poll's stack is
 * being read, and loads another one in its place.  That happens at each moment at which the
 * requester calls the loader or reads memory, one moment a try, so the tests know nothing of the
 * way in which the library works.  Of these moments the tests try a sample, or all (lib/seeded.h).
 *
 * Without a cure, all tests of a process that has not shown the poll before fail: with SIGSEGV
 * where nothing comes in the plugin's place, because a rule is learned from `.eh_frame` that is
 * gone; and with frames named as functions of the plugin that came where another one does.
 */

#include "lib/apart.h"
#include "lib/calls.h"
#include "lib/host_plugins.h"
#include "lib/options.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

#define SECOND INT64_C(1000000000)
#define TRIES 400 /* at most: there are fewer moments than that */

/* --- The task ---------------------------------------------------------------------- */

/* What a try does. */
struct plan {
	char other;	 /* the plugin that comes in the place of plugin a; '\0': none does */
	bool spin;	 /* the poll computes; else it is blocked in read() */
	bool warm;	 /* the poll was shown once before */
	bool quiet;	 /* what went wrong was printed before */
	unsigned moment; /* the number of the call at which it happens; 0: it never does */
};

static const struct plan *plan;
static int ends[2];
static atomic_int stays; /* how often the poll has come to where it stays */
static atomic_int let;	 /* how often it may go on */
static atomic_bool same_place;

/* Stay here until the test lets the poll go on, once more. */
static __attribute__((noinline)) void stay(void *arg)
{
	int number = atomic_fetch_add(&stays, 1);
	char byte;

	if (plan->spin)
		while (atomic_load_explicit(&let, memory_order_relaxed) == number)
			;
	else
		MUST(read(ends[0], &byte, 1) == 1);
	__asm__ volatile("" : : "r"(&byte) : "memory");
}

static void let_go_on(void)
{
	atomic_fetch_add(&let, 1);
	MUST(plan->spin || write(ends[1], "", 1) == 1);
}

static tdt_poll_t replaces_plugin(void *state, struct tdt_context *cx)
{
	struct host_loaded first, second;

	calls_are_mine(true);
	host_load(&first, 'a');
	host_run(&first, stay, NULL);
	host_unload(&first);
	if (plan->other != '\0') {
		const struct host_plugin *was = first.plugin;

		host_load(&second, plan->other);
		atomic_store(&same_place, second.plugin == was);
		host_run(&second, stay, NULL);
		host_unload(&second);
	} else {
		atomic_store(&same_place, true);
		stay(NULL);
	}
	TDT_KEEP_FRAME();
	return TDT_READY;
}

/* --- The moment ---------------------------------------------------------------------- */

static atomic_uint moments;

/* How long the requester waits for it: at some moments it can't happen, since the loader is locked.
 */
#define PATIENCE_US 100000

static void let_it_happen(void)
{
	apart_doing("the poll goes on, at the moment in question");
	let_go_on();
	for (int us = 0; us < PATIENCE_US && atomic_load(&stays) < 2; us += 100)
		usleep(100);
	if (!plan->spin)
		usleep(2000); /* it is about to be blocked; if it is not yet, the test is no less
				 right */
	apart_doing("the request goes on, after that moment");
}

static void see(enum call call, const char *path, bool done)
{
	if (call != CALL_ITERATE && call != CALL_READV)
		return;
	if (atomic_fetch_add(&moments, 1) + 1 == plan->moment)
		let_it_happen();
}

/* --- The tries ------------------------------------------------------------------------ */

static void check_trace(const struct tdt_trace *trace)
{
	struct host_said said = host_said(trace);

	if (said.wrong == NULL)
		return;
	if (!plan->quiet) {
		printf("# %s%s:\n", said.guessed ? "marked as guessed, " : "", said.wrong);
		tdt_trace_print(trace, stdout);
	}
	MUST(said.wrong == NULL);
}

static struct tdt_trace *ask_and_name(const struct stuck_task *task)
{
	struct tdt_trace *trace;

	apart_doing("the request");
	trace = backtrace_timed(task->traced.handle, 15 * SECOND);
	MUST(trace != NULL && tdt_trace_info(trace)->state == TDT_TASK_RUNNING);
	MUST(tdt_trace_root(trace) != NULL);
	return trace;
}

static void try(void *arg)
{
	struct stuck_task task = { 0 };
	struct tdt_trace *trace;
	bool happened;

	plan = arg;
	MUST(pipe(ends) == 0);
	stuck_task_start(&task, replaces_plugin, NULL);
	while (atomic_load(&stays) == 0)
		usleep(100);
	stuck_task_settle(&task, plan->spin);
	if (plan->warm)
		tdt_trace_free(ask_and_name(&task));
	calls_seen_by(see);
	trace = ask_and_name(&task);
	calls_seen_by(NULL);
	happened = atomic_load(&let) != 0;
	check_trace(trace);
	if (!happened)
		_exit(APART_OVER);
	tdt_trace_free(trace);
	apart_doing("ending");
	while (atomic_load(&stays) < 2)
		usleep(100);
	let_go_on();
	stuck_task_end(&task);
	if (!atomic_load(&same_place))
		printf("# the other plugin is at another address\n");
}

#define SAMPLE 4 /* one moment of so many is tried, unless all are */

/* How many moments after this one the next try is: each of the first ones is tried, then fewer. */
static unsigned step_from(unsigned moment, unsigned *random)
{
	unsigned step = (ASAN || TSAN ? 7 : 1) + moment / 64;

	return test_in_full() ? step : 1 + random_below(random, 2 * SAMPLE * step - 1);
}

/* At one moment after the other, until there are no more. */
static void try_all(char other, bool spin, bool warm)
{
	struct plan next = { .other = other, .spin = spin, .warm = warm, .moment = 1 };
	unsigned random = seed_of_run(), failed = 0;

	for (; next.moment <= TRIES; next.moment += step_from(next.moment, &random)) {
		char wrong[256] = "";
		int status = apart(try, &next, wrong);

		if (status == APART_OVER)
			break;
		if (status == 0)
			continue;
		printf("# moment %u: %s\n", next.moment, wrong);
		failed++;
		next.quiet = true;
		if (strstr(wrong, "hangs") != NULL)
			break;
	}
	printf("# %u moments\n", next.moment - 1);
	ck_assert_uint_gt(next.moment, 1);
	ck_assert_uint_eq(failed, 0);
}

/* A poll that is blocked or that spins, of a process that knows nothing yet or has shown the poll
 * before. */
static void try_both(char other, unsigned kind)
{
	bool spin = (kind & 1) != 0, warm = (kind & 2) != 0;

	printf("# a poll that %s, %s\n", spin ? "spins" : "is blocked",
	       warm ? "shown before" : "not shown before");
	if (SIGNALS_ARE_LATE && spin)
		printf("# not tried: ThreadSanitizer delays signals\n");
	else
		try_all(other, spin, warm);
}

SUITE_SKIP(stuck_impossible())

CASE(host_unload, .timeout = APART_TEST_SECONDS)

TEST(a_plugin_may_be_unmapped_at_any_moment_while_a_poll_in_it_is_read, .to = 4)
{
	try_both('\0', (unsigned)_i);
}

TEST(a_plugin_with_larger_frames_may_come_in_its_place_at_any_moment, .to = 4)
{
	try_both('b', (unsigned)_i);
}

TEST(a_plugin_with_the_same_frames_may_come_in_its_place_at_any_moment, .to = 4)
{
	try_both('c', (unsigned)_i);
}
