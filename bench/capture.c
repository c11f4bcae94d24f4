// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What a capture costs: at 24 nested async functions, against other ways to walk the same stack, from the same leaf, in
 * the same run.  Rounds of all are interleaved, so that what disturbs one disturbs all; what is compared is the median.
 *
 * What happens once a process is measured in processes of its own.
 */

#include <config.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <tdt/async.h>
#include <tdt/combine.h>
#include <tdt/tree.h>

#include "../src/poll.h"
#include "../src/registers.h"
#include "../src/thread.h"
#include "../src/walk.h"
#include "measure.h"

#define LEVELS 26
#define LEAVES 64
#define ROUNDS 2001
#define PROCESSES 15
#define POLLS 100000
#define AGAIN 100

/* --- Figures ------------------------------------------------------------------ */

static void add(struct figure *figure, double value)
{
	if (figure->n < ROUNDS)
		figure->value[figure->n++] = value;
}

static void print(struct figure *figure)
{
	double middle = median(figure);

	printf("%-44s %12.1f %12.1f %12.1f", figure->name, figure->value[0], middle, figure->value[figure->n - 1]);
}

static void print_line(struct figure *figure)
{
	print(figure);
	putchar('\n');
}

/* --- The stack -------------------------------------------------------------------- */

static struct figure timer = { .name = "(reading the clock, taken off all below)" };
static struct figure first_leaf = { .name = "capture of one leaf" };
static struct figure next_leaf = { .name = "capture of a further leaf of 64" };
static struct figure by_unw_backtrace = { .name = "unw_backtrace()" };
static struct figure walk_again = { .name = "the walk alone, again and again" };
static struct figure unw_backtrace_again = { .name = "unw_backtrace(), again and again" };
static struct figure by_unw_step = { .name = "unw_step(), to the top of the thread" };
static struct figure by_gcc = { .name = "_Unwind_Backtrace()" };

static int measured; /* whether leaves take the time */
static int64_t leaf_ns;
static int n_leaves;

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *data)
{
	int *n = data;

	*n += _Unwind_GetIP(context) != 0;
	return _URC_NO_REASON;
}

static struct tdt__walk walk;

static __attribute__((noinline)) void walk_repeatedly(void)
{
	static void *pcs[256];
	struct tdt__registers from = TDT__CALLER_REGISTERS();
	struct tdt__frame frame;
	int64_t start = now();

	for (int i = 0; i < AGAIN; i++) {
		tdt__walk_start(&walk, from, tdt__thread.poll->top);
		while (tdt__walk_next(&walk, &frame) == TDT__WALK_FRAME)
			;
	}
	add(&walk_again, (double)(now() - start) / AGAIN);
	start = now();
	for (int i = 0; i < AGAIN; i++)
		unw_backtrace(pcs, 256);
	add(&unw_backtrace_again, (double)(now() - start) / AGAIN);
}

static __attribute__((noinline)) void walk_otherwise(void)
{
	static void *pcs[256];
	unw_context_t context;
	unw_cursor_t cursor;
	int64_t start;
	int n = 0;

	start = now();
	unw_backtrace(pcs, 256);
	add(&by_unw_backtrace, (double)(now() - start));
	start = now();
	_Unwind_Backtrace(count_frame, &n);
	add(&by_gcc, (double)(now() - start));
	start = now();
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	while (unw_step(&cursor) > 0)
		;
	add(&by_unw_step, (double)(now() - start));
	start = now();
	add(&timer, (double)(now() - start));
}

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	int64_t start = now();

	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	start = now() - start;
	if (n_leaves++ == 0) {
		leaf_ns = start;
		if (measured) {
			add(&first_leaf, (double)start);
			walk_otherwise();
			walk_repeatedly();
		}
	} else if (measured) {
		add(&next_leaf, (double)start);
	}
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

struct level {
	struct tdt_async async;
	int depth;
	int leaves;
};

static struct tdt_future level(int depth, int leaves);

static struct tdt_future wait_for(int leaves)
{
	static struct tdt_future all[LEAVES];

	for (int i = 0; i < leaves; i++)
		all[i] = (struct tdt_future){ NULL, leaf_poll, nothing };
	return leaves == 1 ? all[0] : tdt_join_all(all, (size_t)leaves);
}

static tdt_poll_t level_poll(void *state, struct tdt_context *cx)
{
	struct level *it = state;

	TDT_BEGIN(&it->async, cx);
	if (it->depth > 1)
		TDT_AWAIT(level(it->depth - 1, it->leaves));
	else
		TDT_AWAIT(wait_for(it->leaves));
	TDT_END();
}

static struct tdt_future level(int depth, int leaves)
{
	return TDT_ASYNC_NEW(level_poll, (struct level){ .depth = depth, .leaves = leaves });
}

/* --- A task that is polled when it is woken --------------------------------------------- */

static struct tdt_future polled;
static int polling;

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	struct tdt_context cx = { waker };

	if (polling)
		return;
	polling = 1;
	n_leaves = 0;
	tdt_future_poll(&polled, &cx);
	polling = 0;
}

static void waker_drop(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, waker_drop };
static const struct tdt_waker waker = { &vtable };

static struct tdt_handle *start(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);

	polled = traced.future;
	waker_wake(&waker);
	return traced.handle;
}

static void end(struct tdt_handle *handle)
{
	tdt_future_drop(&polled);
	tdt_handle_unref(handle);
}

/* --- Benchmarks ----------------------------------------------------------------------------- */

/* Returns how many frames the one leaf has. */
static size_t bench_warm(struct figure *tree)
{
	struct tdt_handle *handle = start(level(LEVELS, 1));
	size_t frames = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct tdt_trace *trace;
		int64_t from;

		measured = i > 0;
		trace = tdt_backtrace(handle);
		measured = 0;
		from = now();
		tdt_trace_root(trace);
		if (i > 0)
			add(tree, (double)(now() - from));
		frames = tdt_trace_stack(trace, 0, NULL, 0, NULL);
		tdt_trace_free(trace);
	}
	end(handle);
	return frames;
}

static void bench_many(void)
{
	struct tdt_handle *handle = start(level(LEVELS, LEAVES));

	for (int i = 0; i < ROUNDS / LEAVES; i++) {
		int n = first_leaf.n;

		measured = i > 0;
		tdt_trace_free(tdt_backtrace(handle));
		measured = 0;
		first_leaf.n = n;
	}
	end(handle);
}

/* In a process of its own: the first capture, the first tree. */
static void bench_cold(struct figure *capture, struct figure *tree)
{
	for (int i = 0; i < PROCESSES; i++) {
		int64_t ns[2] = { 0, 0 };
		int pipe_ends[2];
		pid_t child;

		if (pipe(pipe_ends) != 0)
			return;
		child = fork();
		if (child == 0) {
			struct tdt_handle *handle = start(level(LEVELS, 1));
			struct tdt_trace *trace = tdt_backtrace(handle);

			ns[0] = leaf_ns;
			ns[1] = now();
			tdt_trace_root(trace);
			ns[1] = now() - ns[1];
			_exit(write(pipe_ends[1], ns, sizeof ns) != sizeof ns);
		}
		close(pipe_ends[1]); /* lest a child that dies is waited for for ever */
		if (child > 0 && read(pipe_ends[0], ns, sizeof ns) == sizeof ns) {
			add(capture, (double)ns[0]);
			add(tree, (double)ns[1]);
		}
		close(pipe_ends[0]);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

static tdt_poll_t bare_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static double poll_often(struct tdt_future *future)
{
	struct tdt_context cx = { &waker };
	int64_t from = now();

	for (int i = 0; i < POLLS; i++)
		tdt_future_poll(future, &cx);
	return (double)(now() - from) / (POLLS);
}

static void bench_unasked(struct figure *bare, struct figure *traced)
{
	struct tdt_future future = { NULL, bare_poll, nothing };
	struct tdt_handle *handle = start(future);

	for (int i = 0; i < 20; i++) {
		add(bare, poll_often(&future));
		add(traced, poll_often(&polled));
	}
	end(handle);
}

static void take_off_timer(struct figure *figure)
{
	double middle = median(&timer);

	for (int i = 0; i < figure->n; i++)
		figure->value[i] -= middle;
}

int main(void)
{
	static struct figure cold = { .name = "first capture of a process" },
			     warm_tree = { .name = "merge, names known" };
	static struct figure cold_tree = { .name = "merge and names, first of a process" };
	static struct figure bare = { .name = "poll that does nothing" },
			     traced = { .name = "the same, traced, unasked" };
	struct figure *walks[] = { &first_leaf, &next_leaf, &by_unw_backtrace, &by_gcc, &by_unw_step };
	struct figure *repeated[] = { &walk_again, &unw_backtrace_again };
	size_t frames;

	bench_cold(&cold, &cold_tree);
	if (!tdt__walk_init(&walk))
		return EXIT_FAILURE;
	frames = bench_warm(&warm_tree);
	bench_many();
	bench_unasked(&bare, &traced);

	printf("%zu frames (%d async functions); ns\n", frames, LEVELS);
	printf("%-44s %12s %12s %12s %9s %9s\n", "", "min", "median", "max", "a frame", "ratio");
	print_line(&timer);
	for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
		take_off_timer(walks[i]);
		print(walks[i]);
		printf(" %9.1f %8.2fx\n", median(walks[i]) / (double)frames, median(walks[i]) / median(&first_leaf));
	}
	for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++) {
		print(repeated[i]);
		printf(" %9.1f %8.2fx\n", median(repeated[i]) / (double)frames,
		       median(repeated[i]) / median(&walk_again));
	}
	print_line(&cold);
	print_line(&warm_tree);
	print_line(&cold_tree);
	print_line(&bare);
	print_line(&traced);
	tdt__walk_fini(&walk);
	return EXIT_SUCCESS;
}
