// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/capture, capture/capture_trace.  Captures are exact trees of real stacks, however
 * deep and big the stacks are.  At a limit, or without memory, a part of the tree is left and is
 * marked so.
 */

#include "lib/expected.h"
#include "lib/poll_now.h"
#include "lib/test.h"

static void expect_text(const struct tdt_trace *trace, const char *wanted)
{
	TEXT(got, tree_text(trace));

	ck_assert_str_eq(got, wanted);
}

/*
 * Trace `future`, ask, compare with what its leaves noted: twice, since the second time all is
 * known.
 */
static void check_exact_future(struct tdt_future future, uint32_t leaves)
{
	POLL_NOW(task, future);

	for (int i = 0; i < 2; i++) {
		expect_begin();
		TRACE(trace, poll_now_ask(&task, 0));
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, leaves);
		ck_assert_uint_eq(tdt_trace_stacks(trace), leaves);
		expect_same(trace);
	}
}

static void check_exact(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), uint32_t leaves)
{
	check_exact_future(future_of(poll, NULL), leaves);
}

CASE(capture)

TEST(a_chain_of_functions_is_exact)
{
	check_exact(chain, 1);
}

TEST(leaves_side_by_side_share_their_callers)
{
	check_exact(branches, 5);
}

static NOINLINE tdt_poll_t a_b_a_c(void *state, struct tdt_context *cx)
{
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

TEST(children_come_in_the_order_they_were_first_seen)
{
	check_exact(a_b_a_c, 4);
}

static NOINLINE tdt_poll_t clones_thrice(void *state, struct tdt_context *cx)
{
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

TEST(below_a_function_that_may_be_a_combinator_each_clone_is_counted)
{
	check_exact(calls_clones_thrice, 6);
}

static NOINLINE tdt_poll_t yields(void *state, struct tdt_context *cx)
{
	HERE(expect_leaf(); tdt_waker_wake_by_ref(cx->waker));
	return TDT_PENDING;
}

TEST(a_leaf_that_wakes_its_task_is_a_leaf)
{
	check_exact(yields, 1);
}

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
	for (unsigned depth = 1; depth <= 6; depth++)
		HERE(recurse(depth, cx));
	for (unsigned depth = 6; depth > 0; depth--)
		HERE(recurse(depth, cx));
	return TDT_PENDING;
}

TEST(recursion_is_exact)
{
	check_exact(recursion, 12);
}

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

TEST(sixty_four_leaves_under_one_join)
{
	check_join(64);
}

TEST(five_thousand_leaves_under_one_join)
{
	check_join(5000);
}

static tdt_poll_t clones_nothing(void *state, struct tdt_context *cx)
{
	return state != NULL ? TDT_READY : TDT_PENDING;
}

TEST(a_poll_that_clones_nothing_gives_a_tree_of_nothing)
{
	POLL_NOW(task, future_of(clones_nothing, NULL));
	TRACE(trace, poll_now_ask(&task, 0));

	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 0);
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_WAITING);
	expect_text(trace, "");
}

/* --- Shared callers that only look shared ------------------------------------- */

/*
 * Two functions with frames of equal size call the same inner ones: those have the same PCs at the
 * same addresses then, and only the outermost return address tells the two stacks apart.
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
	HERE(twin_a(cx));
	HERE(twin_b(cx));
	HERE(twin_b(cx));
	HERE(twin_a(cx));
	return TDT_PENDING;
}

TEST(equal_inner_frames_under_other_callers_are_others)
{
	check_exact(twins, 4);
}

/*
 * The same at every depth: as many calls as `mask` has bits, each of one function or its twin.
 * From one mask to the next one of them is the other, and all inside of it, and all outside, are as
 * they were.  Some leaves are alike before that, which has their frames sealed.
 */
#define BITS 6
#define ALIKE 4

static tdt_poll_t (*const bits[2])(unsigned depth, unsigned mask, struct tdt_context *cx);

static NOINLINE tdt_poll_t bit_0(unsigned depth, unsigned mask, struct tdt_context *cx)
{
	if (depth == 0)
		HERE(chain_middle(cx));
	else
		HERE(bits[mask >> (depth - 1) & 1](depth - 1, mask, cx));
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t bit_1(unsigned depth, unsigned mask, struct tdt_context *cx)
{
	if (depth == 0)
		HERE(chain_middle(cx));
	else
		HERE(bits[mask >> (depth - 1) & 1](depth - 1, mask, cx));
	return TDT_PENDING;
}

static tdt_poll_t (*const bits[2])(unsigned depth, unsigned mask,
				   struct tdt_context *cx) = { bit_0, bit_1 };

static NOINLINE tdt_poll_t all_masks(void *state, struct tdt_context *cx)
{
	for (unsigned i = 0; i < 1u << BITS; i++)
		for (int j = 0; j < ALIKE; j++)
			HERE(bits[0](BITS, i ^ i >> 1, cx)); /* a Gray code */
	return TDT_PENDING;
}

TEST(a_caller_that_is_another_is_found_at_every_depth)
{
	check_exact(all_masks, ALIKE << BITS);
}

/*
 * Frames that are gone, whose return addresses and saved registers lie untouched in a hole of the
 * frame that came after them: only the frame pointer that the frame inside of it has saved is
 * another.
 */
static NOINLINE tdt_poll_t in_hole(struct tdt_context *cx, size_t size)
{
	char *more = __builtin_alloca(size); /* has it save the frame pointer, and keep its own */

	__asm__ volatile("" : : "r"(more) : "memory");
	HERE(chain_middle(cx));
	__asm__ volatile("" : : "r"(more) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t with_hole(struct tdt_context *cx, size_t size)
{
	char *hole = __builtin_alloca(size);

	__asm__ volatile("" : : "r"(hole) : "memory");
	HERE(in_hole(cx, 16));
	__asm__ volatile("" : : "r"(hole) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t large(struct tdt_context *cx, size_t size)
{
	char buffer[512];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	HERE(with_hole(cx, size));
	__asm__ volatile("" : : "r"(buffer) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t small(struct tdt_context *cx, size_t size)
{
	char buffer[16];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	HERE(with_hole(cx, size));
	__asm__ volatile("" : : "r"(buffer) : "memory");
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t holes(void *state, struct tdt_context *cx)
{
	tdt_poll_t (*volatile sizes[2])(struct tdt_context *cx, size_t size) = { large, small };

	/* One call for both; one of the holes is as much larger as the frame is smaller. */
	for (size_t i = 0; i < 128; i++)
		HERE(sizes[i % 2](cx, i % 2 == 0 ? 16 : 8 * (i + 1)));
	return TDT_PENDING;
}

TEST(callers_that_are_gone_but_lie_there_still_are_not_taken_for_callers)
{
	check_exact(holes, 128);
}

/*
 * A function that realigns its frame finds its CFA in memory: called with stacks that differ by
 * less than it aligns to, its registers are the same, and so may be what is left over where its
 * return address was.
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
	for (size_t size = 0; size < 128; size += 16) {
		HERE(calls_aligned(cx, size));
		HERE(also_calls_aligned(cx, size + 16));
		HERE(also_calls_aligned(cx, size + 32));
	}
	return TDT_PENDING;
}

TEST(realigned_frames_are_exact)
{
	check_exact(realigns, 24);
}

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
	deep(DEEP, cx);
	return TDT_PENDING;
}

TEST(ten_thousand_frames_are_all_there)
{
	struct tdt_trace *trace;
	enum tdt_cut cut;
	POLL_NOW(task, future_of(deep_poll, NULL));

	/* Then the names are known, and are not looked up ten thousand times, in limited time. */
	trace = poll_now_ask(&task, 100);
	ck_assert_uint_ge(nodes_of(trace, "deep"), 50);
	tdt_trace_free(trace);
	trace = poll_now_ask(&task, 2 * DEEP);
	ck_assert_uint_ge(tdt_trace_stack(trace, 0, NULL, 0, &cut), DEEP + 3);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	ck_assert_uint_eq(nodes_of(trace, "deep"), DEEP + 1);
	ck_assert_uint_eq(nodes_of(trace, "deep_poll"), 1);
	tdt_trace_free(trace);
}

TEST(a_stack_beyond_the_limit_is_cut_and_says_so)
{
	static const uint32_t limits[] = { 0, 1, 2, 77, DEEP };
	POLL_NOW(task, future_of(deep_poll, NULL));

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		TRACE(trace, poll_now_ask(&task, limits[i]));
		const struct tdt_node *top = tdt_node_first_child(tdt_trace_root(trace));
		enum tdt_cut cut;

		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut),
				  limits[i] ? limits[i] : TDT_MAX_FRAMES);
		ck_assert_int_eq(cut, TDT_CUT_LIMIT);
		ck_assert_int_eq(tdt_node_frame(top)->kind, TDT_NODE_CUT);
		ck_assert_int_eq(tdt_node_frame(top)->cut, TDT_CUT_LIMIT);
		ck_assert_ptr_null(tdt_node_next_sibling(top));
	}
}

/* --- Traced futures inside traced futures --------------------------------------- */

TEST(nested_futures_answer_each_with_its_own)
{
	struct tdt_traced inner = tdt_traced(future_of(chain, NULL));
	struct nested nested = { inner.future, NULL };
	struct tdt_trace *traces[2];
	char *inner_text, *outer_text;
	POLL_NOW(task, future_of(outer, &nested));

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
}

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
	for (unsigned depth = 30; depth < 33; depth++)
		deep(20 * depth, cx);
	return TDT_PENDING;
}

TEST(without_memory_a_capture_is_cut_and_the_future_goes_on)
{
	struct scarce scarce = { .poll = five_hundred_deep };
	struct poll_now task;
	struct tdt_trace *trace;
	bool all = false;

	NEEDS_FAILING_MEMORY();
	for (int i = 0; !all; i++) {
		enum tdt_cut cut;

		scarce.first = -1;
		poll_now_start(&task, future_of(scarce_poll, &scarce));
		scarce.first = i;
		trace = poll_now_ask(&task, DEEP);
		ck_assert_int_eq(task.result, TDT_PENDING);
		ck_assert_int_eq(scarce.error, EDOM);
		ck_assert_uint_eq(
		    tdt_trace_info(trace)->leaves + tdt_trace_info(trace)->leaves_lost, 3);
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

TEST(a_warm_capture_allocates_nothing)
{
	struct scarce scarce = { .poll = five_hundred_deep, .first = -1 };
	POLL_NOW(task, future_of(scarce_poll, &scarce));

	for (int i = 0; i < 3; i++)
		tdt_trace_free(poll_now_ask(&task, DEEP));
	ck_assert_int_eq(scarce.allocations, 0);
	ck_assert_int_eq(scarce.error, EDOM);
}

CASE(warm)

/* For warm.sh, which looks at the system calls between the last two sched_yield(). */
TEST(a_warm_capture_between_marks)
{
	struct poll_now requester;
	struct tdt_trace *trace;
	POLL_NOW(task, future_of(five_hundred_deep, NULL));

	for (int i = 0; i < 3; i++) {
		tdt_trace_free(poll_now_ask(&task, DEEP));
		task.held = true;
		poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace,
							       NULL));
		requester.held = true;
		sched_yield();
		poll_now(&task);
		sched_yield();
		poll_now(&requester);
		ck_assert_int_eq(requester.result, TDT_READY);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 3);
		tdt_trace_free(trace);
		poll_now_end(&requester);
		task.held = false;
	}
}

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
	check_exact(sixteen_mebibytes, 25);
	return NULL;
}

CASE(capture)

TEST(frames_of_mebibytes_are_exact)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, 64 << 20), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, check_big, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}
