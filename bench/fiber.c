// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what reporting a fiber adds to a switch to it and back, and how long it
 * takes to read suspended fibers: one, and ten thousand.
 */

#include <config.h>

#include <stdlib.h>
#include <sys/mman.h>

#include <tdt/dump.h>
#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/tree.h>

#include "future/switch.h"
#include "report.h"

#define SWITCHES 100000
#define FIBERS 10000
#define DEEP 10
#define STACK ((size_t)16384)
#define TRACES 2000

struct bench_fiber {
	struct tdt__context inside, outside;
	struct tdt_fiber *fiber; /* NULL: nothing is reported */
};

static struct bench_fiber *entering;
static struct bench_fiber bare, reported, many[FIBERS];
static char *stacks;
static volatile bool over; /* never */

static __attribute__((noinline)) void stand(struct bench_fiber *it)
{
	while (!over) {
		tdt_fiber_suspend(it->fiber);
		tdt__context_switch(&it->inside, &it->outside);
		tdt_fiber_resume(it->fiber);
	}
}

/* The same without a word of fibers. */
static __attribute__((noinline)) void stand_bare(struct bench_fiber *it)
{
	while (!over)
		tdt__context_switch(&it->inside, &it->outside);
}

static __attribute__((noinline)) void go_deep(struct bench_fiber *it, int n)
{
	if (n > 0)
		go_deep(it, n - 1);
	else
		stand(it);
	__asm__ volatile("" : : "r"(it) : "memory");
}

static void entry(void)
{
	struct bench_fiber *it = entering;

	if (it == &bare)
		stand_bare(it);
	TDT_FIBER_BASE(it->fiber);
	tdt_fiber_resume(it->fiber);
	go_deep(it, DEEP - 3);
	__builtin_unreachable();
}

static void resume(struct bench_fiber *it)
{
	tdt__context_switch(&it->outside, &it->inside);
}

static void begin(struct bench_fiber *it, char *stack)
{
	if (it != &bare) {
		it->fiber = tdt_fiber_new(stack, STACK, NULL);
		if (it->fiber == NULL)
			die("tdt_fiber_new");
	}
	tdt__context_make(&it->inside, stack, STACK, entry);
	entering = it;
	resume(it);
}

static double switch_often(struct bench_fiber *it)
{
	int64_t start = now();

	for (int i = 0; i < SWITCHES; i++)
		resume(it);
	return (double)(now() - start) / SWITCHES;
}

static double trace_often(void)
{
	struct tdt_handle *handle = tdt_fiber_handle(reported.fiber);
	int64_t start = now();

	for (int i = 0; i < TRACES; i++) {
		struct tdt_trace *trace = tdt_backtrace(handle);

		if (trace == NULL)
			die("tdt_backtrace");
		tdt_trace_free(trace);
	}
	return (double)(now() - start) / TRACES;
}

static double dump_all(FILE *out)
{
	int64_t start = now();

	if (tdt_dump(out) != 0)
		die("tdt_dump");
	return (double)(now() - start);
}

static void make_stacks(void)
{
	stacks = mmap(NULL, (FIBERS + 2) * STACK, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		die("mmap");
}

int main(int argc, char **argv)
{
	struct figure *plain, *clock, *timed, *added, *added_timed, *one, *all;
	FILE *out = fopen("/dev/null", "we");
	int n = FIBERS;

	report_start(argc, argv, "What does a fiber cost?", "ns", 21);
	plain = figure("a switch to a coroutine and back", NULL);
	clock = figure("the same, reported as a fiber", plain);
	added = figure_added("  added", clock, plain);
	at_most(added, 12);
	timed = figure("the same where the runtime reports the time", plain);
	added_timed = figure_added("  added", timed, plain);
	at_most(added_timed, 12);
	one = figure("tdt_backtrace() of a suspended fiber, 10 deep", NULL);
	at_most(one, 2500);
	all = figure("a dump of 10,000 suspended fibers, 10 deep", NULL);
	in_unit(all, "ms");
	at_most(all, 15);
	if (out == NULL)
		die("/dev/null");
	if (quick)
		n /= 10;
	make_stacks();
	begin(&bare, stacks);
	begin(&reported, stacks + STACK);
	trace_often();
	for (int i = 0; i < rounds; i++) {
		add(plain, switch_often(&bare));
		add(clock, switch_often(&reported));
		tdt_worker_now((uint64_t)now());
		add(timed, switch_often(&reported));
		tdt_worker_now(0);
		add(one, trace_often());
	}
	for (int i = 0; i < n; i++)
		begin(&many[i], stacks + (size_t)(i + 2) * STACK);
	dump_all(out);
	for (int i = 0; i < rounds; i++)
		add(all, dump_all(out) / 1e6 * FIBERS / n);
	return report_end();
}
