// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Captures: exact trees of real stacks.  Functions note where they are as they call on (HERE), and a leaf makes of the
 * notes the stack it expects to be captured with.
 */

#include <config.h>

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <tdt/combine.h>
#include <tdt/tree.h>

#include "no_memory.h"
#include "poll_now.h"

#define NOINLINE __attribute__((noinline))

/* --- What is expected --------------------------------------------------------- */

static struct {
	struct tdt_frame at[16];
	unsigned depth;
	struct tdt_trace *trace; /* NULL: nobody is asking */
} expected;

/* Do `call` on this very line, noted. */
#define HERE(call)                                                                                                     \
	do {                                                                                                           \
		expected.at[expected.depth++] =                                                                        \
			(struct tdt_frame){ .size = sizeof(struct tdt_frame), .kind = TDT_NODE_FRAME,               \
					    .function = __func__, .line = __LINE__ };                          \
		call;                                                                                                  \
		TDT_KEEP_FRAME();                                                                                      \
		expected.depth--;                                                                                      \
	} while (0)

static void expect_leaf(void)
{
	const struct tdt_node *node = NULL;

	for (unsigned i = 0; expected.trace != NULL && i < expected.depth; i++)
		node = tdt_trace_add(expected.trace, node, &expected.at[i], i == expected.depth - 1);
}

static NOINLINE void clone_here(struct tdt_context *cx)
{
	expect_leaf();
	tdt_waker_drop(tdt_waker_clone(cx->waker));
}

/* Clone the waker in the caller's frame. */
#define CLONE(cx) HERE(expect_leaf(); tdt_waker_drop(tdt_waker_clone((cx)->waker)))

static void expect_begin(void)
{
	struct tdt_trace_info info = { .size = sizeof info };

	expected.trace = tdt_trace_new(&info);
	ck_assert_ptr_nonnull(expected.trace);
}

static void expect_same(const struct tdt_trace *trace)
{
	char *got = tree_text(trace), *wanted = tree_text(expected.trace);

	ck_assert_str_eq(got, wanted);
	ck_assert_str_ne(got, "");
	free(got);
	free(wanted);
	tdt_trace_free(expected.trace);
	expected.trace = NULL;
}

static void expect_text(const struct tdt_trace *trace, const char *wanted)
{
	char *got = tree_text(trace);

	ck_assert_str_eq(got, wanted);
	free(got);
}

/* Trace `future`, ask, compare with what its leaves noted: twice, since the second time all is known. */
static void check_exact_future(struct tdt_future future, uint32_t leaves)
{
	struct poll_now task;

	poll_now_start(&task, future);
	for (int i = 0; i < 2; i++) {
		struct tdt_trace *trace;

		expect_begin();
		trace = poll_now_ask(&task, 0);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, leaves);
		ck_assert_uint_eq(tdt_trace_stacks(trace), leaves);
		expect_same(trace);
		tdt_trace_free(trace);
	}
	poll_now_end(&task);
}

static void check_exact(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), uint32_t leaves)
{
	check_exact_future(future_of(poll, NULL), leaves);
}

/* --- Trees -------------------------------------------------------------------- */

static NOINLINE tdt_poll_t leaf(void *state, struct tdt_context *cx)
{
	(void)state;
	CLONE(cx);
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t other_leaf(void *state, struct tdt_context *cx)
{
	(void)state;
	CLONE(cx);
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t chain_inner(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = leaf(NULL, cx));
	return result;
}

static NOINLINE tdt_poll_t chain_middle(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = chain_inner(cx));
	return result;
}

static NOINLINE tdt_poll_t chain(void *state, struct tdt_context *cx)
{
	tdt_poll_t result;

	(void)state;
	HERE(result = chain_middle(cx));
	return result;
}

START_TEST(a_chain_of_functions_is_exact)
{
	check_exact(chain, 1);
}
END_TEST

static NOINLINE tdt_poll_t branches(void *state, struct tdt_context *cx)
{
	(void)state;
	HERE(leaf(NULL, cx));
	HERE(chain_middle(cx));
	HERE(other_leaf(NULL, cx));
	HERE(leaf(NULL, cx));
	HERE(chain_inner(cx));
	return TDT_PENDING;
}

START_TEST(leaves_side_by_side_share_their_callers)
{
	check_exact(branches, 5);
}
END_TEST

static NOINLINE tdt_poll_t a_b_a_c(void *state, struct tdt_context *cx)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		if (i % 2 == 0)
			HERE(leaf(NULL, cx));
		else if (i == 1)
			HERE(other_leaf(NULL, cx));
		else
			HERE(chain_inner(cx));
	}
	return TDT_PENDING;
}

START_TEST(children_come_in_the_order_they_were_first_seen)
{
	check_exact(a_b_a_c, 4);
}
END_TEST

static NOINLINE tdt_poll_t clones_thrice(void *state, struct tdt_context *cx)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		CLONE(cx);
	CLONE(cx);
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t calls_clones_thrice(void *state, struct tdt_context *cx)
{
	HERE(clones_thrice(state, cx));
	HERE(clones_thrice(state, cx));
	return TDT_PENDING;
}

START_TEST(a_leaf_that_clones_again_is_counted_again)
{
	check_exact(clones_thrice, 3);
	check_exact(calls_clones_thrice, 6);
}
END_TEST

static NOINLINE tdt_poll_t yields(void *state, struct tdt_context *cx)
{
	(void)state;
	HERE(expect_leaf(); tdt_waker_wake_by_ref(cx->waker));
	return TDT_PENDING;
}

START_TEST(a_leaf_that_wakes_its_task_is_a_leaf)
{
	check_exact(yields, 1);
}
END_TEST

static NOINLINE tdt_poll_t recurse(unsigned depth, struct tdt_context *cx)
{
	if (depth == 0)
		HERE(leaf(NULL, cx));
	else if (depth % 2 == 0)
		HERE(recurse(depth - 1, cx));
	else
		HERE(recurse(depth - 1, cx));
	return TDT_PENDING;
}

static tdt_poll_t recursion(void *state, struct tdt_context *cx)
{
	(void)state;
	for (unsigned depth = 1; depth <= 6; depth++)
		HERE(recurse(depth, cx));
	for (unsigned depth = 6; depth > 0; depth--)
		HERE(recurse(depth, cx));
	return TDT_PENDING;
}

START_TEST(recursion_is_exact)
{
	check_exact(recursion, 12);
}
END_TEST

/* A join of `n`, of which every third is another leaf, and what a join of them looks like. */
static void check_join(size_t n)
{
	struct tdt_future *futures = calloc(n, sizeof futures[0]);
	struct tdt_future join;

	for (size_t i = 0; i < n; i++)
		futures[i] = future_of(i % 3 == 0 ? leaf : other_leaf, NULL);
	join = tdt_join_all(futures, n);
	ck_assert(!tdt_future_is_none(&join));
	free(futures);
	check_exact_future(join, (uint32_t)n);
}

START_TEST(sixty_four_leaves_under_one_join)
{
	check_join(64);
}
END_TEST

START_TEST(five_thousand_leaves_under_one_join)
{
	check_join(5000);
}
END_TEST

static tdt_poll_t clones_nothing(void *state, struct tdt_context *cx)
{
	(void)cx;
	return state != NULL ? TDT_READY : TDT_PENDING;
}

START_TEST(a_poll_that_clones_nothing_gives_a_tree_of_nothing)
{
	struct poll_now task;
	struct tdt_trace *trace;

	poll_now_start(&task, future_of(clones_nothing, NULL));
	trace = poll_now_ask(&task, 0);
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 0);
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_WAITING);
	expect_text(trace, "");
	tdt_trace_free(trace);
	poll_now_end(&task);
}
END_TEST

/* --- Shared callers that only look shared ------------------------------------- */

/*
 * Two functions with frames of equal size call the same inner ones: those have the same PCs at the same addresses then,
 * and only the outermost return address tells the two stacks apart.
 */
static NOINLINE tdt_poll_t twin_a(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = chain_middle(cx));
	return result;
}

static NOINLINE tdt_poll_t twin_b(struct tdt_context *cx)
{
	tdt_poll_t result;

	HERE(result = chain_middle(cx));
	return result;
}

static NOINLINE tdt_poll_t twins(void *state, struct tdt_context *cx)
{
	(void)state;
	HERE(twin_a(cx));
	HERE(twin_b(cx));
	HERE(twin_b(cx));
	HERE(twin_a(cx));
	return TDT_PENDING;
}

START_TEST(equal_inner_frames_under_other_callers_are_others)
{
	check_exact(twins, 4);
}
END_TEST

/*
 * A function that realigns its frame finds its CFA in memory: called with stacks that differ by less than it aligns to,
 * its registers are the same, and so may be what is left over where its return address was.
 */
static NOINLINE tdt_poll_t aligned(struct tdt_context *cx, size_t size)
{
	char buffer[64] __attribute__((aligned(64)));
	char *more = __builtin_alloca(size);

	__asm__ volatile("" : : "r"(buffer), "r"(more) : "memory");
	HERE(leaf(NULL, cx));
	__asm__ volatile("" : : "r"(buffer), "r"(more) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t calls_aligned(struct tdt_context *cx, size_t size)
{
	char *more = __builtin_alloca(size);

	__asm__ volatile("" : : "r"(more) : "memory");
	HERE(aligned(cx, 100));
	__asm__ volatile("" : : "r"(more) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t also_calls_aligned(struct tdt_context *cx, size_t size)
{
	char *more = __builtin_alloca(size);

	__asm__ volatile("" : : "r"(more) : "memory");
	HERE(aligned(cx, 100));
	__asm__ volatile("" : : "r"(more) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t realigns(void *state, struct tdt_context *cx)
{
	(void)state;
	for (size_t size = 0; size < 128; size += 16) {
		HERE(calls_aligned(cx, size));
		HERE(also_calls_aligned(cx, size + 16));
		HERE(also_calls_aligned(cx, size + 32));
	}
	return TDT_PENDING;
}

START_TEST(realigned_frames_are_exact)
{
	check_exact(realigns, 24);
}
END_TEST

/* --- Depth ---------------------------------------------------------------------- */

#define DEEP 10000

static NOINLINE void deep(unsigned depth, struct tdt_context *cx)
{
	if (depth == 0)
		clone_here(cx);
	else
		deep(depth - 1, cx);
	TDT_KEEP_FRAME();
}

static tdt_poll_t deep_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	deep(DEEP, cx);
	return TDT_PENDING;
}

static size_t nodes_of(const struct tdt_trace *trace, const char *function)
{
	size_t n = 0;

	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL; node = tdt_node_next(node))
		n += tdt_node_frame(node)->function != NULL && strcmp(tdt_node_frame(node)->function, function) == 0;
	return n;
}

START_TEST(ten_thousand_frames_are_all_there)
{
	struct poll_now task;
	struct tdt_trace *trace;
	enum tdt_cut cut;

	poll_now_start(&task, future_of(deep_poll, NULL));
	trace = poll_now_ask(&task, 2 * DEEP);
	ck_assert_uint_ge(tdt_trace_stack(trace, 0, NULL, 0, &cut), DEEP + 3);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	ck_assert_uint_eq(nodes_of(trace, "deep"), DEEP + 1);
	ck_assert_uint_eq(nodes_of(trace, "deep_poll"), 1);
	tdt_trace_free(trace);
	poll_now_end(&task);
}
END_TEST

START_TEST(a_stack_beyond_the_limit_is_cut_and_says_so)
{
	static const uint32_t limits[] = { 0, 1, 2, 77, DEEP };
	struct poll_now task;

	poll_now_start(&task, future_of(deep_poll, NULL));
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		struct tdt_trace *trace = poll_now_ask(&task, limits[i]);
		const struct tdt_node *top = tdt_node_first_child(tdt_trace_root(trace));
		enum tdt_cut cut;

		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), limits[i] ? limits[i] : TDT_MAX_FRAMES);
		ck_assert_int_eq(cut, TDT_CUT_LIMIT);
		ck_assert_int_eq(tdt_node_frame(top)->kind, TDT_NODE_CUT);
		ck_assert_int_eq(tdt_node_frame(top)->cut, TDT_CUT_LIMIT);
		ck_assert_ptr_null(tdt_node_next_sibling(top));
		tdt_trace_free(trace);
	}
	poll_now_end(&task);
}
END_TEST

/* --- Traced futures inside traced futures --------------------------------------- */

struct nested {
	struct tdt_future inner;
	void (*before)(void); /* the inner one is polled; may be NULL */
};

static NOINLINE tdt_poll_t outer(void *state, struct tdt_context *cx)
{
	struct nested *nested = state;

	leaf(NULL, cx);
	if (nested->before != NULL)
		nested->before();
	tdt_future_poll(&nested->inner, cx);
	return TDT_PENDING;
}

/* Have both asked before the one poll that answers them.  The one named first asks first. */
static void ask_both(struct poll_now *task, struct tdt_handle *first, struct tdt_handle *second,
		     struct tdt_trace *traces[2])
{
	struct poll_now asker = { 0 };
	struct tdt_future asks[2] = { tdt_backtrace_async(first, &traces[0], NULL),
				      tdt_backtrace_async(second, &traces[1], NULL) };

	traces[0] = traces[1] = NULL;
	task->held = true;
	poll_now_start(&asker, tdt_join_all(asks, 2));
	ck_assert_int_eq(asker.result, TDT_PENDING);
	poll_now(task);
	ck_assert_int_eq(asker.result, TDT_READY);
	ck_assert(traces[0] != NULL && traces[1] != NULL);
	poll_now_end(&asker);
	task->held = false;
}

START_TEST(nested_futures_answer_each_with_its_own)
{
	struct tdt_traced inner = tdt_traced(future_of(chain, NULL));
	struct nested nested = { inner.future, NULL };
	struct poll_now task;
	struct tdt_trace *traces[2];
	char *inner_text, *outer_text;

	poll_now_start(&task, future_of(outer, &nested));
	ask_both(&task, task.traced.handle, inner.handle, traces);
	ck_assert_uint_eq(tdt_trace_info(traces[0])->leaves, 2);
	ck_assert_uint_eq(tdt_trace_info(traces[1])->leaves, 1);
	ck_assert_uint_eq(nodes_of(traces[0], "outer"), 2); /* two calls on two lines */
	ck_assert_uint_eq(nodes_of(traces[0], "chain_inner"), 1);
	ck_assert_uint_eq(nodes_of(traces[1], "outer"), 0);
	inner_text = tree_text(traces[1]);
	outer_text = tree_text(traces[0]);
	ck_assert(strncmp(inner_text, "chain:", 6) == 0);
	ck_assert_ptr_null(strstr(outer_text, "cut"));
	ck_assert_ptr_null(strstr(inner_text, "cut"));
	free(inner_text);
	free(outer_text);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	tdt_future_drop(&nested.inner);
	tdt_handle_unref(inner.handle);
	poll_now_end(&task);
}
END_TEST

/* --- Lack of memory ---------------------------------------------------------------- */

/* The poll that answers, with all allocations from the nth on failing. */
struct scarce {
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	int first;
	int allocations;
	int error; /* errno after a clone was called with EDOM in it */
};

static tdt_poll_t scarce_poll(void *state, struct tdt_context *cx)
{
	struct scarce *scarce = state;
	tdt_poll_t result;

	no_memory_begin(scarce->first);
	errno = EDOM;
	result = scarce->poll(NULL, cx);
	scarce->error = errno;
	scarce->allocations = no_memory_end();
	return result;
}

static tdt_poll_t five_hundred_deep(void *state, struct tdt_context *cx)
{
	(void)state;
	for (unsigned depth = 30; depth < 33; depth++)
		deep(20 * depth, cx);
	return TDT_PENDING;
}

START_TEST(without_memory_a_capture_is_cut_and_the_future_goes_on)
{
	struct scarce scarce = { .poll = five_hundred_deep };
	struct poll_now task;
	struct tdt_trace *trace;
	bool all = false;

	if (!no_memory_possible())
		return;
	for (int i = 0; !all; i++) {
		enum tdt_cut cut;

		scarce.first = -1;
		poll_now_start(&task, future_of(scarce_poll, &scarce));
		scarce.first = i;
		trace = poll_now_ask(&task, DEEP);
		ck_assert_int_eq(task.result, TDT_PENDING);
		ck_assert_int_eq(scarce.error, EDOM);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves + tdt_trace_info(trace)->leaves_lost, 3);
		all = scarce.allocations <= i;
		for (uint32_t stack = 0; stack < tdt_trace_stacks(trace); stack++) {
			size_t n = tdt_trace_stack(trace, stack, NULL, 0, &cut);

			if (cut == TDT_CUT_NOT)
				ck_assert_uint_ge(n, 20 * (30 + stack));
			else
				ck_assert_int_eq(cut, TDT_CUT_MEMORY);
			all = all && cut == TDT_CUT_NOT;
		}
		tdt_trace_free(trace);
		poll_now_end(&task);
		ck_assert_int_lt(i, 20);
	}
}
END_TEST

START_TEST(a_warm_capture_allocates_nothing)
{
	struct scarce scarce = { .poll = five_hundred_deep, .first = -1 };
	struct poll_now task;

	poll_now_start(&task, future_of(scarce_poll, &scarce));
	for (int i = 0; i < 3; i++)
		tdt_trace_free(poll_now_ask(&task, DEEP));
	ck_assert_int_eq(scarce.allocations, 0);
	ck_assert_int_eq(scarce.error, EDOM);
	poll_now_end(&task);
}
END_TEST

/* For warm.sh, which looks at the system calls between the last two sched_yield(). */
START_TEST(a_warm_capture_between_marks)
{
	struct poll_now task, asker;
	struct tdt_trace *trace;

	poll_now_start(&task, future_of(five_hundred_deep, NULL));
	for (int i = 0; i < 3; i++) {
		tdt_trace_free(poll_now_ask(&task, DEEP));
		task.held = true;
		poll_now_start(&asker, tdt_backtrace_async(task.traced.handle, &trace, NULL));
		asker.held = true;
		sched_yield();
		poll_now(&task);
		sched_yield();
		poll_now(&asker);
		ck_assert_int_eq(asker.result, TDT_READY);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 3);
		tdt_trace_free(trace);
		poll_now_end(&asker);
		task.held = false;
	}
	poll_now_end(&task);
}
END_TEST

/* --- Other stacks -------------------------------------------------------------------- */

static ucontext_t host, coroutine;
static struct {
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	struct tdt_future *future;
	struct tdt_context *cx;
	tdt_poll_t result;
	void (*callback)(void); /* what the coroutine wants done on the host's stack; NULL: it has ended */
} switched;

static void on_coroutine(void)
{
	if (switched.future != NULL)
		switched.result = tdt_future_poll(switched.future, switched.cx);
	else
		switched.result = switched.poll(NULL, switched.cx);
}

#define COROUTINE_BYTES (256 << 10)

/* Run on_coroutine() on a stack with unreadable memory on both sides. */
static void switch_to(void)
{
	static char *stack;
	size_t guard = 64 << 10;

	if (stack == NULL) {
		stack = mmap(NULL, COROUTINE_BYTES + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne(stack, MAP_FAILED);
		ck_assert_int_eq(mprotect(stack + guard, COROUTINE_BYTES, PROT_READ | PROT_WRITE), 0);
	}
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack + guard;
	coroutine.uc_stack.ss_size = COROUTINE_BYTES;
	coroutine.uc_link = &host;
	makecontext(&coroutine, on_coroutine, 0);
	swapcontext(&host, &coroutine);
	while (switched.callback != NULL) {
		switched.callback();
		switched.callback = NULL;
		swapcontext(&host, &coroutine);
	}
}

static tdt_poll_t polls_leaf_on_coroutine(void *state, struct tdt_context *cx)
{
	(void)state;
	switched.poll = chain;
	switched.future = NULL;
	switched.cx = cx;
	switch_to();
	return switched.result;
}

START_TEST(a_leaf_on_another_stack_is_cut_there)
{
	struct poll_now task;
	struct tdt_trace *trace;
	char *text;
	enum tdt_cut cut;

	poll_now_start(&task, future_of(polls_leaf_on_coroutine, NULL));
	trace = poll_now_ask(&task, 0);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 1);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	text = tree_text(trace);
	ck_assert(strncmp(text, "cut 4\n leaf:", 12) == 0);
	free(text);
	tdt_trace_free(trace);
	poll_now_end(&task);
}
END_TEST

/* A task that lives on a coroutine's stack altogether. */
static tdt_poll_t poll_on_coroutine(void *state, struct tdt_context *cx)
{
	switched.future = state;
	switched.cx = cx;
	switch_to();
	return switched.result;
}

START_TEST(a_task_polled_on_a_coroutine_is_exact)
{
	struct tdt_traced traced = tdt_traced(future_of(branches, NULL));
	struct poll_now task;
	struct tdt_trace *traces[2];
	enum tdt_cut cut;
	char *text;

	poll_now_start(&task, future_of(poll_on_coroutine, &traced.future));
	expect_begin();
	ask_both(&task, traced.handle, task.traced.handle, traces);
	expect_same(traces[0]);
	/* And the one whose own frame is on another stack gets it up to there. */
	ck_assert_uint_eq(tdt_trace_info(traces[1])->leaves, 5);
	tdt_trace_stack(traces[1], 4, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	text = tree_text(traces[1]);
	ck_assert(strncmp(text, "cut 4\n branches:", 16) == 0);
	free(text);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	poll_now_end(&task);
}
END_TEST

/* Both ways at once: a task on a coroutine has its leaf called on the thread's stack. */
static NOINLINE void leaf_for_coroutine(void)
{
	leaf(NULL, switched.cx);
}

static tdt_poll_t goes_back(void *state, struct tdt_context *cx)
{
	(void)state;
	switched.cx = cx;
	switched.callback = leaf_for_coroutine;
	swapcontext(&coroutine, &host);
	return TDT_PENDING;
}

START_TEST(a_leaf_back_on_the_first_stack_is_cut_in_the_task_on_the_other)
{
	struct tdt_traced traced = tdt_traced(future_of(goes_back, NULL));
	struct poll_now task;
	struct tdt_trace *traces[2];
	enum tdt_cut cut;

	poll_now_start(&task, future_of(poll_on_coroutine, &traced.future));
	ask_both(&task, traced.handle, task.traced.handle, traces);
	ck_assert_uint_eq(tdt_trace_info(traces[0])->leaves_lost, 0);
	ck_assert_uint_gt(tdt_trace_stack(traces[0], 0, NULL, 0, &cut), 0);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	ck_assert_uint_eq(nodes_of(traces[1], "poll_on_coroutine"), 1);
	tdt_trace_stack(traces[1], 0, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	poll_now_end(&task);
}
END_TEST

/* --- A task on a signal stack ---------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* which allows no allocation in a signal handler */
static struct poll_now *signalled;

static void poll_in_handler(int number)
{
	(void)number;
	poll_now(signalled);
}

START_TEST(a_task_polled_on_a_signal_stack_is_exact)
{
	stack_t stack = { .ss_size = 256 << 10 };
	struct sigaction action = { .sa_handler = poll_in_handler, .sa_flags = SA_ONSTACK };
	struct tdt_trace *trace = NULL;
	struct poll_now task, asker;

	stack.ss_sp = malloc(stack.ss_size);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	poll_now_start(&task, future_of(branches, NULL));
	task.held = true;
	signalled = &task;
	poll_now_start(&asker, tdt_backtrace_async(task.traced.handle, &trace, NULL));
	expect_begin();
	raise(SIGUSR1);
	ck_assert_int_eq(asker.result, TDT_READY);
	expect_same(trace);
	tdt_trace_free(trace);
	poll_now_end(&asker);
	poll_now_end(&task);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
}
END_TEST
#endif

/* --- Big frames ------------------------------------------------------------------------------ */

static NOINLINE tdt_poll_t three_mebibytes(void *state, struct tdt_context *cx)
{
	char buffer[3 << 20];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	HERE(realigns(state, cx));
	__asm__ volatile("" : : "r"(buffer) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t four_mebibytes(void *state, struct tdt_context *cx)
{
	char buffer[4 << 20];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	HERE(chain(state, cx));
	__asm__ volatile("" : : "r"(buffer) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t sixteen_mebibytes(void *state, struct tdt_context *cx)
{
	char buffer[16 << 20];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	HERE(four_mebibytes(state, cx));
	HERE(three_mebibytes(state, cx));
	__asm__ volatile("" : : "r"(buffer) : "memory");
	return TDT_PENDING;
}

static void *check_big(void *data)
{
	(void)data;
	check_exact(sixteen_mebibytes, 25);
	return NULL;
}

START_TEST(frames_of_mebibytes_are_exact)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 64 << 20), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, check_big, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}
END_TEST

/* --- Modules ----------------------------------------------------------------------------------- */

/* A future whose poll lies in a plugin. */
struct plugin {
	void *library;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
};

static void plugin_open(struct plugin *plugin, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/plugin_%s.so", PLUGINS, name);
	plugin->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(plugin->library != NULL, "%s", dlerror());
	*(void **)&plugin->poll = dlsym(plugin->library, "plugin_poll");
	ck_assert(plugin->poll != NULL);
}

/* Put b in the place of a; false: it came to lie elsewhere. */
static bool plugin_replace(struct plugin *plugin)
{
	tdt_poll_t (*old)(void *state, struct tdt_context *cx) = plugin->poll;

	ck_assert_int_eq(dlclose(plugin->library), 0);
	plugin_open(plugin, "b");
	if (plugin->poll != old)
		printf("# the other plugin is not at the same address: not tried\n");
	return plugin->poll == old;
}

static NOINLINE tdt_poll_t calls_plugin(void *state, struct tdt_context *cx)
{
	struct plugin *plugin = state;

	if (plugin->poll != NULL)
		plugin->poll(NULL, cx);
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t also_calls_plugin(void *state, struct tdt_context *cx)
{
	struct plugin *plugin = state;

	plugin->poll(NULL, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Whether the tree is the caller's and the plugin's functions, and nothing else. */
static void check_plugin_tree(const struct tdt_trace *trace, const char *caller, const char *name)
{
	char *text = tree_text(trace), *words = strdup(text), wanted[256];

	for (char *from = text, *to = words; (*to = *from) != '\0'; from++)
		if (*from == ':')
			from += strspn(from, ":0123456789") - 1;
		else
			to++;
	snprintf(wanted, sizeof wanted, "%s\n plugin_poll\n  plugin_%s_middle\n   plugin_%s_leaf x1\n", caller, name,
		 name);
	ck_assert_str_eq(words, wanted);
	free(words);
	free(text);
}

START_TEST(a_plugin_that_was_closed_has_its_names)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *trace;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	trace = poll_now_ask(&task, 0);
	ck_assert_int_eq(dlclose(plugin.library), 0);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&task);
}
END_TEST

START_TEST(a_plugin_in_the_place_of_another_is_exact)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *traces[2];

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	traces[0] = poll_now_ask(&task, 0);
	if (plugin_replace(&plugin)) {
		traces[1] = poll_now_ask(&task, 0);
		check_plugin_tree(traces[1], "calls_plugin", "b");
		check_plugin_tree(traces[0], "calls_plugin", "a");
		tdt_trace_free(traces[1]);
	}
	tdt_trace_free(traces[0]);
	poll_now_end(&task);
	dlclose(plugin.library);
}
END_TEST

START_TEST(a_plugin_opened_after_the_question_has_its_names)
{
	struct plugin plugin = { NULL, NULL };
	struct poll_now task, asker;
	struct tdt_trace *trace = NULL;

	poll_now_start(&task, future_of(calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&asker, tdt_backtrace_async(task.traced.handle, &trace, NULL));
	plugin_open(&plugin, "a");
	poll_now(&task);
	ck_assert_int_eq(asker.result, TDT_READY);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&asker);
	poll_now_end(&task);
	dlclose(plugin.library);
}
END_TEST

/*
 * The plugin is replaced between question and answer: so the rules the asker got are wrong, and must not be believed
 * because newer ones were learned for a frame further out.
 */
START_TEST(a_plugin_replaced_after_the_question_is_exact)
{
	struct plugin plugin;
	struct poll_now task, asker;
	struct tdt_trace *trace = NULL;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	tdt_trace_free(poll_now_ask(&task, 0));
	poll_now_end(&task);

	poll_now_start(&task, future_of(also_calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&asker, tdt_backtrace_async(task.traced.handle, &trace, NULL));
	if (plugin_replace(&plugin)) {
		for (int i = 0; i < 3 && asker.result == TDT_PENDING; i++)
			poll_now(&task);
		ck_assert_int_eq(asker.result, TDT_READY);
		check_plugin_tree(trace, "also_calls_plugin", "b");
	}
	poll_now_end(&asker);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}
END_TEST

/* A trace that was never right, however often it was asked for, is given all the same; and says so. */
START_TEST(plugins_replaced_at_every_question_are_marked)
{
	struct plugin plugin;
	struct poll_now task, asker;
	struct tdt_trace *trace = NULL;
	const struct tdt_node *node;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(also_calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&asker, tdt_backtrace_async(task.traced.handle, &trace, NULL));
	for (int i = 0; i < 10 && asker.result == TDT_PENDING; i++) {
		dlclose(plugin.library);
		plugin_open(&plugin, i % 2 == 0 ? "b" : "a");
		poll_now(&task);
	}
	ck_assert_int_eq(asker.result, TDT_READY);
	ck_assert_ptr_nonnull(trace);
	node = tdt_trace_root(trace);
	while ((node = tdt_node_next(node)) != NULL)
		ck_assert(tdt_node_frame(node)->kind == TDT_NODE_CUT || tdt_node_frame(node)->inlined ||
			  tdt_node_frame(node)->guessed);
	poll_now_end(&asker);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}
END_TEST

/* Asks the task outside and the one inside, the plugin being replaced in between. */
START_TEST(nested_futures_are_walked_by_the_newest_rules)
{
	struct plugin plugin;
	struct tdt_traced inner = tdt_traced(future_of(calls_plugin, &plugin));
	struct nested nested = { inner.future, NULL };
	struct poll_now task, askers[2];
	struct tdt_trace *traces[2] = { NULL, NULL };

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(outer, &nested));
	tdt_trace_free(poll_now_ask(&task, 0));
	task.held = true;
	poll_now_start(&askers[0], tdt_backtrace_async(inner.handle, &traces[0], NULL));
	if (plugin_replace(&plugin)) {
		char *text;

		poll_now_start(&askers[1], tdt_backtrace_async(task.traced.handle, &traces[1], NULL));
		for (int i = 0; i < 3 && (askers[0].result == TDT_PENDING || askers[1].result == TDT_PENDING); i++)
			poll_now(&task);
		ck_assert_int_eq(askers[0].result, TDT_READY);
		ck_assert_int_eq(askers[1].result, TDT_READY);
		check_plugin_tree(traces[0], "calls_plugin", "b");
		text = tree_text(traces[1]);
		ck_assert_ptr_nonnull(strstr(text, "  plugin_b_middle"));
		ck_assert_ptr_nonnull(strstr(text, "   plugin_b_leaf"));
		ck_assert_ptr_null(strstr(text, "cut"));
		free(text);
		poll_now_end(&askers[1]);
	}
	poll_now_end(&askers[0]);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	poll_now_end(&task);
	tdt_future_drop(&nested.inner);
	tdt_handle_unref(inner.handle);
	dlclose(plugin.library);
}
END_TEST

static struct plugin opened_late;

static void open_late(void)
{
	plugin_open(&opened_late, "a");
}

/* The walk is the inner one's, and so is what it learns on its way; the outer one's frames need names as well. */
START_TEST(nested_futures_all_know_a_plugin_opened_meanwhile)
{
	struct tdt_traced inner = tdt_traced(future_of(calls_plugin, &opened_late));
	struct nested nested = { inner.future, NULL };
	struct poll_now task;
	struct tdt_trace *traces[2];
	char *text;

	poll_now_start(&task, future_of(outer, &nested));
	nested.before = open_late;
	ask_both(&task, task.traced.handle, inner.handle, traces);
	check_plugin_tree(traces[1], "calls_plugin", "a");
	text = tree_text(traces[0]);
	ck_assert_ptr_nonnull(strstr(text, "  plugin_a_middle"));
	free(text);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	poll_now_end(&task);
	tdt_future_drop(&nested.inner);
	tdt_handle_unref(inner.handle);
	dlclose(opened_late.library);
}
END_TEST

static tdt_poll_t calls_late_without_memory(void *state, struct tdt_context *cx)
{
	const bool *scarce = state;

	if (*scarce) {
		open_late();
		no_memory_begin(0);
		opened_late.poll(NULL, cx);
		no_memory_end();
	}
	return TDT_PENDING;
}

START_TEST(rules_that_there_is_no_memory_for_are_not_guessed)
{
	bool scarce = false;
	struct poll_now task;
	struct tdt_trace *trace;
	enum tdt_cut cut;

	if (!no_memory_possible())
		return;
	poll_now_start(&task, future_of(calls_late_without_memory, &scarce));
	scarce = true;
	trace = poll_now_ask(&task, 0);
	ck_assert_uint_eq(tdt_trace_stacks(trace), 1);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 1);
	ck_assert_int_eq(cut, TDT_CUT_MEMORY);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(opened_late.library);
}
END_TEST

START_TEST(a_plugin_opened_by_a_relative_path_has_its_names)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *trace;

	ck_assert_int_eq(chdir(PLUGINS), 0);
	plugin.library = dlopen("./plugin_a.so", RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(plugin.library);
	*(void **)&plugin.poll = dlsym(plugin.library, "plugin_poll");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	ck_assert_int_eq(chdir("/"), 0);
	trace = poll_now_ask(&task, 0);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}
END_TEST

/* --- Code without unwind information (x86-64) -------------------------------------------------- */

#if defined(__x86_64__)
void (*bare_calls)(struct tdt_context *cx);
void bare_with_fp(struct tdt_context *cx);
void bare_without_fp(struct tdt_context *cx);
void bare_with_data_in_fp(struct tdt_context *cx);

__asm__(".text\n"
	".type bare_with_fp, @function\n"
	"bare_with_fp:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $48, %rsp\n"
	"	mov bare_calls@GOTPCREL(%rip), %rax\n"
	"	call *(%rax)\n"
	"	leave\n"
	"	ret\n"
	".size bare_with_fp, . - bare_with_fp\n"
	".type bare_without_fp, @function\n"
	"bare_without_fp:\n"
	"	push %rbp\n"
	"	xor %ebp, %ebp\n"
	"	mov bare_calls@GOTPCREL(%rip), %rax\n"
	"	call *(%rax)\n"
	"	pop %rbp\n"
	"	ret\n"
	".size bare_without_fp, . - bare_without_fp\n"
	".type bare_with_data_in_fp, @function\n"
	"bare_with_data_in_fp:\n"
	"	push %rbp\n"
	"	push $4321\n"
	"	push $1234\n"
	"	mov %rsp, %rbp\n"
	"	sub $16, %rsp\n"
	"	mov bare_calls@GOTPCREL(%rip), %rax\n"
	"	call *(%rax)\n"
	"	add $32, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size bare_with_data_in_fp, . - bare_with_data_in_fp\n");

static NOINLINE tdt_poll_t calls_bare(void *state, struct tdt_context *cx)
{
	void (**function)(struct tdt_context * cx) = state;

	bare_calls = clone_here;
	(*function)(cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* The lines of the tree's text that begin with `start` after blanks. */
static unsigned lines_with(const struct tdt_trace *trace, const char *start)
{
	char *text = tree_text(trace), *rest = text;
	unsigned n = 0;

	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		n += strncmp(line + strspn(line, " "), start, strlen(start)) == 0;
	free(text);
	return n;
}

static struct tdt_trace *ask_bare(void (*function)(struct tdt_context *cx))
{
	struct tdt_trace *trace;
	struct poll_now task;

	poll_now_start(&task, future_of(calls_bare, &function));
	tdt_trace_free(poll_now_ask(&task, 0));
	trace = poll_now_ask(&task, 0);
	poll_now_end(&task);
	ck_assert_uint_eq(tdt_trace_stacks(trace), 1);
	ck_assert_uint_eq(lines_with(trace, "clone_here:"), 1);
	return trace;
}

START_TEST(assembly_with_a_frame_pointer_is_guessed_through)
{
	struct tdt_trace *trace = ask_bare(bare_with_fp);
	enum tdt_cut cut;

#if TDT_WALK_RULES
	ck_assert_uint_eq(lines_with(trace, "calls_bare:"), 1);
	ck_assert_uint_eq(lines_with(trace, "~bare_with_fp:"), 1);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 3);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
#else
	ck_assert_uint_eq(lines_with(trace, "cut 2"), 1);
	ck_assert_uint_eq(lines_with(trace, "bare_with_fp:"), 1);
	tdt_trace_stack(trace, 0, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NO_INFO);
#endif
	tdt_trace_free(trace);
}
END_TEST

START_TEST(assembly_without_a_frame_pointer_is_cut)
{
	static void (*const functions[])(struct tdt_context * cx) = { bare_without_fp, bare_with_data_in_fp };

	for (int i = 0; i < 2; i++) {
		struct tdt_trace *trace = ask_bare(functions[i]);
		enum tdt_cut cut;

		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 2);
		ck_assert_int_eq(cut, TDT_CUT_NO_INFO);
		ck_assert_uint_eq(lines_with(trace, "cut 2"), 1);
		ck_assert_uint_eq(lines_with(trace, "~"), 0);
		tdt_trace_free(trace);
	}
}
END_TEST

/* push %rbp; mov %rsp, %rbp; sub $size, %rsp; mov $function, %rax; call *%rax; leave; ret */
static void make_thunk(unsigned char *code, uint8_t size, void (*function)(struct tdt_context *cx))
{
	static const unsigned char template[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0,	  0x48, 0xb8, 0,
						  0,	0,    0,    0,	  0,	0,    0,    0xff, 0xd0, 0xc9, 0xc3 };

	memcpy(code, template, sizeof template);
	code[7] = size;
	memcpy(code + 10, &function, sizeof function);
}

START_TEST(code_made_at_run_time_is_guessed_and_never_remembered)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*thunk)(struct tdt_context * cx);

	if (code == MAP_FAILED) {
		printf("# no memory may be written and executed: not tried\n");
		return;
	}
	memcpy(&thunk, &code, sizeof thunk);
	for (int i = 0; i < 8; i++) {
		struct tdt_trace *trace;

		make_thunk(code, (uint8_t)(16 * i), clone_here);
		trace = ask_bare(thunk);
#if TDT_WALK_RULES
		ck_assert_uint_eq(lines_with(trace, "calls_bare:"), 1);
		ck_assert_uint_eq(lines_with(trace, "~0x"), 1);
#else
		ck_assert_uint_eq(lines_with(trace, "cut 2"), 1);
#endif
		tdt_trace_free(trace);
	}
	munmap(code, 4096);
}
END_TEST
#endif

/* --- Damaged stacks --------------------------------------------------------------------------- */

#define ACTIVATIONS 6

static struct {
	void (*damage)(void);
	uintptr_t *record[ACTIVATIONS]; /* the caller's frame pointer and the return address, of activations */
	uint64_t random;
	unsigned round;
} damaged;

static uint64_t next_random(void)
{
	damaged.random ^= damaged.random << 13;
	damaged.random ^= damaged.random >> 7;
	damaged.random ^= damaged.random << 17;
	return damaged.random;
}

static NOINLINE void activation(unsigned depth, struct tdt_context *cx)
{
	damaged.record[depth] = __builtin_frame_address(0);
	if (depth == 0) {
		uintptr_t saved[ACTIVATIONS][2];

		for (unsigned i = 0; i < ACTIVATIONS; i++)
			memcpy(saved[i], damaged.record[i], sizeof saved[i]);
		if (damaged.damage != NULL)
			damaged.damage();
		clone_here(cx);
		for (unsigned i = 0; i < ACTIVATIONS; i++)
			memcpy(damaged.record[i], saved[i], sizeof saved[i]);
		clone_here(cx); /* and once more with all in order */
	} else {
		activation(depth - 1, cx);
	}
	TDT_KEEP_FRAME();
}

static tdt_poll_t damaged_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	activation(ACTIVATIONS - 1, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* The second leaf's stack, whatever the first one's looks like, is whole. */
static void check_second(const struct tdt_trace *trace)
{
	enum tdt_cut cut;

	ck_assert_uint_eq(tdt_trace_stacks(trace), 2);
	ck_assert_uint_eq(tdt_trace_stack(trace, 1, NULL, 0, &cut), ACTIVATIONS + 2);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
}

static void clear_frame_pointer(void)
{
	damaged.record[2][0] = 0x5555;
}

static void jump_out_of_stack(void)
{
	damaged.record[2][0] = (uintptr_t)&damaged;
}

static void jump_back(void)
{
	damaged.record[2][0] = (uintptr_t)damaged.record[0];
}

START_TEST(a_frame_that_leads_out_of_the_stack_is_cut)
{
	static void (*const damages[])(void) = { clear_frame_pointer, jump_out_of_stack, jump_back };
	struct poll_now task;

	damaged.damage = NULL;
	poll_now_start(&task, future_of(damaged_poll, NULL));
	for (int i = 0; i < 3; i++) {
		struct tdt_trace *trace;
		enum tdt_cut cut;

		damaged.damage = damages[i];
		trace = poll_now_ask(&task, 0);
		check_second(trace);
		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 5);
		ck_assert_int_eq(cut, TDT_CUT_CORRUPT);
		tdt_trace_free(trace);
	}
	poll_now_end(&task);
}
END_TEST

static uintptr_t garbage(void)
{
	uintptr_t near = (uintptr_t)damaged.record[next_random() % ACTIVATIONS];

	switch (next_random() % 6) {
	case 0:
		return next_random();
	case 1:
		return next_random() % 65536;
	case 2:
		return near + next_random() % 4096 - 2048;
	case 3:
		return near + (next_random() % 512 - 256) * 8;
	case 4:
		return (uintptr_t)damaged_poll + next_random() % 65536;
	default:
		return (uintptr_t)qsort + next_random() % 1000000;
	}
}

static void spread_garbage(void)
{
	for (unsigned n = 1 + next_random() % 3; n > 0; n--)
		damaged.record[next_random() % ACTIVATIONS][next_random() % 2] = garbage();
}

START_TEST(no_garbage_on_the_stack_does_harm)
{
	struct poll_now task;

	damaged.random = 0x74647421;
	damaged.damage = NULL;
	poll_now_start(&task, future_of(damaged_poll, NULL));
	damaged.damage = spread_garbage;
	for (damaged.round = 0; damaged.round < 10000; damaged.round++) {
		struct tdt_trace *trace = poll_now_ask(&task, 0);

		check_second(trace);
		tdt_trace_free(trace);
	}
	poll_now_end(&task);
}
END_TEST

static void add(TCase *tests, const TTest *test)
{
	tcase_add_test(tests, test);
}

int main(void)
{
	Suite *suite = suite_create("capture");
	TCase *tests = tcase_create("capture"), *warm = tcase_create("warm");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	suite_add_tcase(suite, warm);
	add(warm, a_warm_capture_between_marks);
	add(tests, a_chain_of_functions_is_exact);
	add(tests, leaves_side_by_side_share_their_callers);
	add(tests, children_come_in_the_order_they_were_first_seen);
	add(tests, a_leaf_that_clones_again_is_counted_again);
	add(tests, a_leaf_that_wakes_its_task_is_a_leaf);
	add(tests, recursion_is_exact);
	add(tests, sixty_four_leaves_under_one_join);
	add(tests, five_thousand_leaves_under_one_join);
	add(tests, a_poll_that_clones_nothing_gives_a_tree_of_nothing);
	add(tests, equal_inner_frames_under_other_callers_are_others);
	add(tests, realigned_frames_are_exact);
	add(tests, ten_thousand_frames_are_all_there);
	add(tests, a_stack_beyond_the_limit_is_cut_and_says_so);
	add(tests, nested_futures_answer_each_with_its_own);
	add(tests, without_memory_a_capture_is_cut_and_the_future_goes_on);
	add(tests, a_warm_capture_allocates_nothing);
	add(tests, a_leaf_on_another_stack_is_cut_there);
	add(tests, a_task_polled_on_a_coroutine_is_exact);
	add(tests, a_leaf_back_on_the_first_stack_is_cut_in_the_task_on_the_other);
#ifndef __SANITIZE_THREAD__
	add(tests, a_task_polled_on_a_signal_stack_is_exact);
#else
	printf("# no task is polled on a signal stack: the thread sanitizer doesn't allow it\n");
#endif
	add(tests, frames_of_mebibytes_are_exact);
	add(tests, a_plugin_that_was_closed_has_its_names);
	add(tests, a_plugin_in_the_place_of_another_is_exact);
	add(tests, a_plugin_opened_after_the_question_has_its_names);
	add(tests, a_plugin_replaced_after_the_question_is_exact);
	add(tests, plugins_replaced_at_every_question_are_marked);
	add(tests, nested_futures_are_walked_by_the_newest_rules);
	add(tests, nested_futures_all_know_a_plugin_opened_meanwhile);
	add(tests, rules_that_there_is_no_memory_for_are_not_guessed);
	add(tests, a_plugin_opened_by_a_relative_path_has_its_names);
#if defined(__x86_64__)
	add(tests, assembly_with_a_frame_pointer_is_guessed_through);
	add(tests, assembly_without_a_frame_pointer_is_cut);
	add(tests, code_made_at_run_time_is_guessed_and_never_remembered);
#endif
	add(tests, a_frame_that_leads_out_of_the_stack_is_cut);
	add(tests, no_garbage_on_the_stack_does_harm);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
