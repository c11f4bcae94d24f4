// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what a capture costs.  The leaf lies 27 frames below the traced
 * future.  The same stack is walked in other ways from the same leaf.  The benchmark also
 * measures what a request adds to the poll that answers it, and what each further leaf of that
 * poll takes.
 *
 * A single shot is one call, as in production: other work comes before it, and takes the caches
 * and the branch predictor for itself.  "In a loop" means that the walk has both.  The rounds of
 * all ways are interleaved.
 *
 * A process of its own measures what happens only once in a process.
 */

#include <config.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <tdt/async.h>
#include <tdt/combine.h>
#include <tdt/tree.h>

#include "../src/capture/capture.h"
#include "../src/capture/chain.h"
#include "../src/host/thread.h"
#include "../src/registry/handle.h"
#include "../src/task/request.h"
#include "../src/unwind/registers.h"
#include "../src/unwind/walk.h"
#include "report.h"

#define FRAMES 27 /* of each leaf */
#define OWN 4     /* of these, a leaf's own where there are many */
#define LEAVES 64
#define OUTSIDE 10 /* frames of the host outside of the traced future, where it isn't said */
#define ROUNDS 301
#define COLD_ROUNDS 15
#define AGAIN 100
#define MOST_PCS 256

/* --- Time ------------------------------------------------------------------------- */

static double clock_ns; /* what reading it adds to what is measured */

static double since(int64_t start)
{
	return (double)(now() - start) - clock_ns;
}

static void measure_clock(void)
{
	double least = 1e9;

	for (int i = 0; i < 10000; i++) {
		int64_t start = now();
		double ns = (double)(now() - start);

		if (ns < least)
			least = ns;
	}
	clock_ns = least;
}

static int by_value(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * This stands for the work of a worker between two polls of a task: it reads 64 KiB of other data,
 * and takes branches that cannot be foreseen.
 */
static void other_work(void)
{
	static unsigned data[(64 << 10) / sizeof(unsigned)], seed;
	unsigned some[128], sum = 0;

	for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
		sum += data[i]++;
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
		some[i] = seed = seed * 1664525 + 1013904223 + sum;
	qsort(some, sizeof some / sizeof some[0], sizeof some[0], by_value);
	seed += some[0];
}

/* --- The stack ---------------------------------------------------------------------- */

static void (*at_leaf)(void); /* what is done in a leaf, instead of waiting */

static __attribute__((noinline)) tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (at_leaf != NULL)
		at_leaf();
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Leaves whose inner frames are their own: functions of their own, and frames of other sizes. */
#define FUNCTION(name, inner, size)                                                                \
	static __attribute__((noinline)) tdt_poll_t name(void *state, struct tdt_context *cx)      \
	{                                                                                          \
		char variables[size];                                                              \
		tdt_poll_t result;                                                                 \
                                                                                                   \
		__asm__ volatile("" : : "r"(variables) : "memory");                                \
		result = inner(state, cx);                                                         \
		__asm__ volatile("" : : "r"(variables) : "memory");                                \
		return result;                                                                     \
	}
#define OWN_LEAF(n)                                                                                \
	FUNCTION(leaf_##n##_c, leaf_poll, 16 * (n))                                                \
	FUNCTION(leaf_##n##_b, leaf_##n##_c, 16)                                                   \
	FUNCTION(leaf_##n##_a, leaf_##n##_b, 32)

OWN_LEAF(1)
OWN_LEAF(2)
OWN_LEAF(3)
OWN_LEAF(4)
OWN_LEAF(5)
OWN_LEAF(6)
OWN_LEAF(7)
OWN_LEAF(8)

static tdt_poll_t (*const own_leaf[])(void *state, struct tdt_context *cx) = {
	leaf_1_a, leaf_2_a, leaf_3_a, leaf_4_a, leaf_5_a, leaf_6_a, leaf_7_a, leaf_8_a
};

#define KINDS (sizeof own_leaf / sizeof own_leaf[0])

static void nothing(void *state)
{
	(void)state;
}

struct level {
	struct tdt_async async;
	int depth;
	struct tdt_future (*inner)(void);
};

static struct tdt_future level(int depth, struct tdt_future (*inner)(void));

static tdt_poll_t level_poll(void *state, struct tdt_context *cx)
{
	struct level *it = state;

	TDT_BEGIN(&it->async, cx);
	if (it->depth > 1)
		TDT_AWAIT(level(it->depth - 1, it->inner));
	else
		TDT_AWAIT(it->inner());
	TDT_END();
}

static struct tdt_future level(int depth, struct tdt_future (*inner)(void))
{
	return TDT_ASYNC_NEW(level_poll, (struct level){ .depth = depth, .inner = inner });
}

static struct tdt_future one_leaf(void)
{
	return (struct tdt_future){ NULL, leaf_poll, nothing };
}

static struct tdt_future alike(void)
{
	struct tdt_future all[LEAVES];

	for (int i = 0; i < LEAVES; i++)
		all[i] = one_leaf();
	return tdt_join_all(all, LEAVES);
}

static struct tdt_future each_its_own(void)
{
	struct tdt_future all[LEAVES];

	for (size_t i = 0; i < LEAVES; i++)
		all[i] = (struct tdt_future){ NULL, own_leaf[i % KINDS], nothing };
	return tdt_join_all(all, LEAVES);
}

/* --- A task that is polled when the benchmark says so ---------------------------------- */

struct task {
	struct tdt_future future;
	struct tdt_handle *handle;
};

static sem_t woken;

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	(void)waker;
	sem_post(&woken);
}

static void waker_drop(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, waker_drop };
static const struct tdt_waker waker = { &vtable };

static void poll_task(struct task *task)
{
	struct tdt_context cx = { &waker };

	tdt_future_poll(&task->future, &cx);
}

static struct task start(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);
	struct task task = { traced.future, traced.handle };

	if (task.handle == NULL)
		die("tdt_traced");
	poll_task(&task);
	return task;
}

static void end(struct task *task)
{
	tdt_future_drop(&task->future);
	tdt_handle_unref(task->handle);
}

/* With so many frames of the host outside. */
static __attribute__((noinline)) void poll_within(int outside, struct task *task)
{
	if (outside > 0)
		poll_within(outside - 1, task);
	else
		poll_task(task);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) double timed_poll(int outside, struct task *task)
{
	int64_t start;
	double ns;

	if (outside > 0) {
		ns = timed_poll(outside - 1, task);
	} else {
		other_work();
		start = now();
		poll_task(task);
		ns = since(start);
	}
	TDT_KEEP_FRAME();
	return ns;
}

/* --- Requests ----------------------------------------------------------------------------- */

/* As a requester of many tasks: the answer comes into an inbox, for which no thread sleeps. */
static double asked_by_inbox(struct task *task, uint32_t leaves)
{
	static struct tdt__inbox inbox;
	struct tdt__request *request = tdt__request_new(task->handle, TDT_MAX_FRAMES);
	struct tdt__capture *capture;
	double ns;
	int error;

	if (request == NULL)
		die("tdt__request_new");
	tdt__inbox_init(&inbox);
	request->inbox = &inbox;
	tdt__request_send(task->handle, request);
	sem_wait(&woken);
	ns = timed_poll(OUTSIDE, task);
	if (tdt__inbox_take(&inbox) != request)
		die("the answer");
	capture = tdt__request_result(request, &error);
	if (capture == NULL || capture->stacks.leaves != leaves || capture->stacks.lost != 0)
		die("the capture");
	tdt__capture_unref(capture);
	tdt__inbox_fini(&inbox);
	return ns;
}

/* As tdt_backtrace() does in another thread, which sleeps until it is answered. */
static void *ask(void *handle)
{
	struct tdt_trace *trace = tdt_backtrace_with(handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = INT64_C(60000000000) });

	if (trace == NULL)
		die("tdt_backtrace_with");
	tdt_trace_free(trace);
	return NULL;
}

static double asked_by_thread(struct task *task)
{
	pthread_t thread;
	double ns;

	if (pthread_create(&thread, NULL, ask, task->handle) != 0)
		die("pthread_create");
	sem_wait(&woken);
	usleep(200); /* it has woken the task, and goes to sleep */
	ns = timed_poll(OUTSIDE, task);
	pthread_join(thread, NULL);
	return ns;
}

static void check_frames(struct task *task)
{
	struct tdt__request *request = tdt__request_new(task->handle, TDT_MAX_FRAMES);
	struct tdt__capture *capture;
	int error;

	if (request == NULL)
		die("tdt__request_new");
	tdt__request_send(task->handle, request);
	sem_wait(&woken);
	poll_task(task);
	capture = tdt__request_result(request, &error);
	if (capture == NULL)
		die("the capture");
	for (uint32_t i = 0; i < capture->stacks.n; i++) {
		uint32_t n = 0;

		for (uint32_t at = i; tdt__is_frame(at); at = capture->stacks.frames[at].parent)
			n++;
		if (capture->stacks.frames[i].leaves > 0 && n != FRAMES) {
			fprintf(stderr, "a leaf has %u frames, not %u\n", n, FRAMES);
			exit(EXIT_FAILURE);
		}
	}
	tdt__capture_unref(capture);
}

/* --- Walks of the leaf's stack --------------------------------------------------------------- */

static struct tdt__walk walk;
static struct figure *to; /* what the walk in the leaf is added to */
static int per = 1;       /* frames */
static void *pcs[MOST_PCS];

/* Where the traced future's own frame is. */
static uintptr_t top(void)
{
	return tdt__thread.poll->task->record.stack_top;
}

static void check_walk(int frames)
{
	if (frames == FRAMES)
		return;
	fprintf(stderr, "walked %d frames, not %d\n", frames, FRAMES);
	exit(EXIT_FAILURE);
}

static __attribute__((noinline)) void walk_again(void)
{
	struct tdt__registers from = TDT__CALLER_REGISTERS();
	struct tdt__frame frame;
	int64_t start = now();
	int frames = 0;

	for (int i = 0; i < AGAIN; i++) {
		struct tdt__registers at = from;

		tdt__walk_start(&walk, at, top());
		for (frames = 0; tdt__walk_next(&walk, &at, &frame) == TDT__WALK_FRAME; frames++)
			;
	}
	add(to, since(start) / AGAIN / per);
	check_walk(frames);
}

static __attribute__((noinline)) void walk_once(void)
{
	struct tdt__registers from;
	struct tdt__frame frame;
	int64_t start;
	int frames = 0;

	other_work();
	start = now();
	from = TDT__CALLER_REGISTERS();
	tdt__walk_start(&walk, from, top());
	while (tdt__walk_next(&walk, &from, &frame) == TDT__WALK_FRAME)
		frames++;
	add(to, since(start));
	check_walk(frames);
}

static void by_unw_backtrace(void)
{
	int64_t start;

	other_work();
	start = now();
	unw_backtrace(pcs, MOST_PCS);
	add(to, since(start));
}

static void unw_backtrace_again(void)
{
	int64_t start = now();

	for (int i = 0; i < AGAIN; i++)
		unw_backtrace(pcs, MOST_PCS);
	add(to, since(start) / AGAIN);
}

static int (*glibc_backtrace)(void **array, int size);

static void by_glibc(void)
{
	int64_t start;

	other_work();
	start = now();
	glibc_backtrace(pcs, MOST_PCS);
	add(to, since(start));
}

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *data)
{
	int *n = data;

	if (*n < MOST_PCS)
		pcs[(*n)++] = (void *)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void by_libgcc(void)
{
	int64_t start;
	int n = 0;

	other_work();
	start = now();
	_Unwind_Backtrace(take_frame, &n);
	add(to, since(start));
}

static void by_unw_step(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;
	int64_t start;
	int n = 0;

	other_work();
	start = now();
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	while (unw_step(&cursor) > 0 && n < MOST_PCS) {
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		pcs[n++] = (void *)pc;
	}
	add(to, since(start));
}

static void by_frame_pointers(void)
{
	uintptr_t *frame, end = top();
	int64_t start;
	int n = 0;

	other_work();
	start = now();
	for (frame = __builtin_frame_address(0); (uintptr_t)frame < end && n < MOST_PCS;
	     frame = (uintptr_t *)frame[0])
		pcs[n++] = (void *)frame[1];
	add(to, since(start));
}

static void in_leaf(struct figure *figure, int outside, struct task *task, void (*what)(void))
{
	to = figure;
	at_leaf = what;
	poll_within(outside, task);
	at_leaf = NULL;
}

static void walk_a_frame(struct figure *figure, int outside, struct task *task)
{
	per = FRAMES;
	in_leaf(figure, outside, task, walk_again);
	per = 1;
}

/* libunwind has functions of both names, too. */
static void find_others(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD),
	     *function = dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
	Dl_info info;

	glibc_backtrace =
	    libc != NULL ? (int (*)(void **, int))(uintptr_t)dlsym(libc, "backtrace") : NULL;
	if (glibc_backtrace == NULL)
		die("backtrace");
	if (function == NULL || dladdr(function, &info) == 0 ||
	    strstr(info.dli_fname, "libgcc_s") == NULL) {
		fprintf(stderr, "_Unwind_Backtrace() is not libgcc's: link that first\n");
		exit(EXIT_FAILURE);
	}
}

/* --- What happens once a process ------------------------------------------------------------- */

static void cold(struct figure *capture, struct figure *tree)
{
	double ns[2];
	int pipe_ends[2];
	pid_t child;

	if (pipe(pipe_ends) != 0)
		die("pipe");
	child = fork();
	if (child == 0) {
		struct task task = start(level(FRAMES - 1, one_leaf));
		struct tdt_trace *trace;
		struct tdt_future requester = tdt_backtrace_async(task.handle, NULL, &trace, NULL);
		struct tdt_context cx = { &waker };
		int64_t from;

		tdt_future_poll(&requester, &cx);
		from = now();
		poll_task(&task);
		ns[0] = since(from);
		tdt_future_poll(&requester, &cx);
		from = now();
		tdt_trace_root(trace);
		ns[1] = since(from);
		_exit(write(pipe_ends[1], ns, sizeof ns) != sizeof ns);
	}
	close(pipe_ends[1]); /* lest a child that dies is waited for for ever */
	if (child < 0 || read(pipe_ends[0], ns, sizeof ns) != sizeof ns)
		die("a process");
	close(pipe_ends[0]);
	waitpid(child, NULL, 0);
	add(capture, ns[0] / 1000);
	add(tree, ns[1] / 1000);
}

/* The tree of a trace whose names are known. */
static void merge(struct figure *figure, struct task *task)
{
	struct tdt_context cx = { &waker };
	struct tdt_trace *trace;
	struct tdt_future requester = tdt_backtrace_async(task->handle, NULL, &trace, NULL);
	int64_t from;

	tdt_future_poll(&requester, &cx);
	poll_task(task);
	tdt_future_poll(&requester, &cx);
	tdt_future_drop(&requester);
	from = now();
	tdt_trace_root(trace);
	add(figure, since(from) / 1000);
	tdt_trace_free(trace);
	while (sem_trywait(&woken) == 0)
		;
}

int main(int argc, char **argv)
{
	static const int outside[] = { 0, OUTSIDE, 60 };
	struct figure *a_frame[3], *loop, *loop_unw, *unasked, *inbox, *blocking, *once, *fp, *unw,
	    *libgcc, *glibc, *step;
	struct figure *first, *all_alike, *all_own, *a_further, *all_to_walk, *all_to_leaf,
	    *cold_poll, *cold_tree, *tree;
	struct task one, many_alike, many_own;
	char name[64];

	report_start(argc, argv, "What does a capture cost, of leaves with 27 frames each?", "ns",
		     ROUNDS);
	find_others();
	measure_clock();
	sem_init(&woken, 0, 0);

	remark("The walk alone, a frame:");
	for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
		snprintf(name, sizeof name, "in a loop, %d host frames outside", outside[i]);
		a_frame[i] = figure(name, NULL);
		at_most(a_frame[i], 8);
	}
	remark("With %d host frames outside, in a loop:", OUTSIDE);
	loop = figure("the walk alone", NULL);
	loop_unw = figure("unw_backtrace()", loop);
	remark("Single shots, with %d host frames outside:", OUTSIDE);
	unasked = figure("a poll that nobody asked for", NULL);
	inbox = figure("  added by a request, answered to an inbox", NULL);
	blocking = figure("  added by one whose requester sleeps and is woken", inbox);
	once = figure("the walk alone", inbox);
	fp = figure("frame pointers, not to the top of the thread", inbox);
	unw = figure("unw_backtrace()", inbox);
	ratio_at_least(unw, 1);
	libgcc = figure("_Unwind_Backtrace() of libgcc_s", inbox);
	ratio_at_least(libgcc, 10);
	glibc = figure("backtrace() of glibc", inbox);
	step = figure("unw_step()", inbox);
	remark("%d leaves of one poll under a join, what a request adds:", LEAVES);
	first = figure("one leaf alone, as above, in the same rounds", NULL);
	all_alike = figure("all alike", first);
	all_own = figure("each with 4 frames of its own", first);
	ratio_at_most(all_own, 16);
	all_to_walk = figure("  the same to the walk alone of one, in a loop", loop);
	ratio_at_most(all_to_walk, 16);
	all_to_leaf = figure("  the same to the walk alone of one, single shots", once);
	ratio_at_most(all_to_leaf, 16);
	a_further = figure("  each after the first", NULL);
	remark("Once a process; and the tree:");
	cold_poll = figure("the poll that is captured first", NULL);
	in_unit(cold_poll, "us");
	cold_tree = figure("the tree, its names unknown", NULL);
	in_unit(cold_tree, "us");
	tree = figure("the tree, its names known", NULL);
	in_unit(tree, "us");

	for (int i = 0; i < (quick ? 3 : COLD_ROUNDS); i++)
		cold(cold_poll, cold_tree);
	if (!tdt__walk_init(&walk))
		die("tdt__walk_init");
	one = start(level(FRAMES - 1, one_leaf));
	many_alike = start(level(FRAMES - 2, alike));
	many_own = start(level(FRAMES - 1 - OWN, each_its_own));
	check_frames(&one);
	check_frames(&many_alike);
	check_frames(&many_own);
	for (int i = 0; i < rounds; i++) {
		double bare, ns, leaf;

		for (size_t j = 0; j < sizeof outside / sizeof outside[0]; j++)
			walk_a_frame(a_frame[j], outside[j], &one);
		in_leaf(loop, OUTSIDE, &one, walk_again);
		in_leaf(loop_unw, OUTSIDE, &one, unw_backtrace_again);

		bare = timed_poll(OUTSIDE, &one);
		add(unasked, bare);
		leaf = asked_by_inbox(&one, 1) - bare;
		add(inbox, leaf);
		in_leaf(once, OUTSIDE, &one, walk_once);
		in_leaf(fp, OUTSIDE, &one, by_frame_pointers);
		in_leaf(unw, OUTSIDE, &one, by_unw_backtrace);
		in_leaf(libgcc, OUTSIDE, &one, by_libgcc);
		in_leaf(glibc, OUTSIDE, &one, by_glibc);
		in_leaf(step, OUTSIDE, &one, by_unw_step);

		add(first, leaf);
		bare = timed_poll(OUTSIDE, &many_alike);
		add(all_alike, asked_by_inbox(&many_alike, LEAVES) - bare);
		bare = timed_poll(OUTSIDE, &many_own);
		ns = asked_by_inbox(&many_own, LEAVES) - bare;
		add(all_own, ns);
		add(all_to_walk, ns);
		add(all_to_leaf, ns);
		add(a_further, (ns - leaf) / (LEAVES - 1));
		add(blocking, asked_by_thread(&one) - timed_poll(OUTSIDE, &one));
		merge(tree, &one);
	}
	end(&one);
	end(&many_alike);
	end(&many_own);
	tdt__walk_fini(&walk);
	return report_end();
}
