// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers future/coroutine, future/switch.  Backtraces through coroutines, ours and others', are one
 * unbroken tree, whatever stacks it is made of.  The trees are random, from a seed that is printed
 * (TDT_TEST_SEED sets it).
 */

#include <config.h>

#include <ucontext.h>

#include <tdt/integrate/stack.h>

#include "future/sanitizers.h"
#include "lib/poll_now.h"
#include "lib/test.h"
#include "registry/handle.h"

/* --- What is compared ------------------------------------------------------------------ */

/* The tree of names: without lines, which are not what may go wrong here. */
static char *names_of(const struct tdt_trace *trace)
{
	char *text = tree_text(trace), *to = text;

	for (const char *from = text; *from != '\0';) {
		if (*from == ':')
			from += 1 + strspn(from + 1, "0123456789");
		else
			*to++ = *from++;
	}
	*to = '\0';
	return text;
}

static void expect_names(const struct tdt_trace *trace, const char *expected)
{
	TEXT(names, names_of(trace));

	ck_assert_str_eq(names, expected);
}

/* The tree of a task that is `future`, requested as often as polls are needed. */
static void expect_tree_of(struct tdt_future future, const char *expected)
{
	POLL_NOW(task, future);

	for (int i = 0; i < 3; i++) {
		TRACE(trace, poll_now_ask(&task, 0));

		expect_names(trace, expected);
	}
}

/* --- What waits ----------------------------------------------------------------------------- */

static NOINLINE tdt_poll_t leaf(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t two_leaves(void *state, struct tdt_context *cx)
{
	for (int i = 0; i < 2; i++)
		leaf(state, cx);
	return TDT_PENDING;
}

/* The context of a poll that is made by a function on a coroutine's stack. */
static struct tdt_context *given;

static tdt_poll_t keep_context(void *state, struct tdt_context *cx)
{
	given = cx;
	return TDT_READY;
}

static struct tdt_future coroutine(tdt_coroutine_fn *fn, void *arg)
{
	struct tdt_future future = tdt_coroutine(fn, arg, NULL);

	ck_assert(!tdt_future_is_none(&future));
	return future;
}

static struct tdt_future join(struct tdt_future a, struct tdt_future b)
{
	struct tdt_future both[2] = { a, b }, joined = tdt_join_all(both, 2);

	ck_assert(!tdt_future_is_none(&joined));
	return joined;
}

/*
 * A coroutine that awaits what its argument points to, some calls down; and a poll that polls what
 * its state does.
 */
static NOINLINE int inner(struct tdt_future *future)
{
	int err = tdt_co_await(*future);

	TDT_KEEP_FRAME();
	return err;
}

static NOINLINE int middle(struct tdt_future *future)
{
	int err = inner(future);

	TDT_KEEP_FRAME();
	return err;
}

static int waits(void *arg)
{
	int err = middle(arg);

	TDT_KEEP_FRAME();
	return err;
}

static int waits_too(void *arg)
{
	return tdt_co_await(*(struct tdt_future *)arg);
}

static tdt_poll_t polls(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(state, cx);
}

static void drop_what_it_polls(void *state)
{
	tdt_future_drop(state);
}

static struct tdt_future polling(struct tdt_future *future)
{
	return (struct tdt_future){ future, polls, drop_what_it_polls };
}

CASE(one)

TEST(frames_of_a_coroutine_stand_between_its_poller_and_its_leaf)
{
	struct tdt_future awaited = future_of(leaf, NULL), co = coroutine(waits, &awaited);

	expect_tree_of(polling(&co), "polls\n"
				     " waits\n"
				     "  middle\n"
				     "   inner\n"
				     "    leaf x1\n");
}

TEST(nothing_of_the_switch_is_on_the_stack)
{
	struct tdt_future awaited = future_of(leaf, NULL);
	const struct tdt_node *node;
	enum tdt_cut cut;
	unsigned ours = 0;
	POLL_NOW(task, coroutine(waits_too, &awaited));
	TRACE(trace, poll_now_ask(&task, 0));

	for (node = tdt_trace_root(trace); (node = tdt_node_next(node)) != NULL;) {
		const char *function = tdt_node_frame(node)->function;

		ck_assert_ptr_nonnull(function);
		ck_assert_int_eq(tdt_node_frame(node)->guessed, 0);
		ours += strncmp(function, "tdt_", 4) == 0;
		ck_assert(strncmp(function, "tdt_", 4) == 0 || strcmp(function, "waits_too") == 0 ||
			  strcmp(function, "leaf") == 0);
	}
	ck_assert_uint_ge(ours, 3);
	ck_assert_uint_gt(tdt_trace_stack(trace, 0, NULL, 0, &cut), 4);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
}

TEST(several_leaves_share_the_frames_of_their_coroutine)
{
	struct tdt_future awaited = join(future_of(two_leaves, NULL), future_of(leaf, NULL));
	struct tdt_future co = coroutine(waits, &awaited);

	expect_tree_of(polling(&co), "polls\n"
				     " waits\n"
				     "  middle\n"
				     "   inner\n"
				     "    two_leaves\n"
				     "     leaf x2\n"
				     "    leaf x1\n");
}

TEST(the_smallest_stack_has_room_for_the_first_backtrace)
{
	struct tdt_coroutine_attr attr = { .size = sizeof(attr),
					   .stack_size = TDT_COROUTINE_MIN_STACK };
	struct tdt_future awaited = future_of(leaf, NULL);

	expect_tree_of(tdt_coroutine(waits, &awaited, &attr), "waits\n"
							      " middle\n"
							      "  inner\n"
							      "   leaf x1\n");
}

/* A coroutine whose place on its stack changes from poll to poll. */
static NOINLINE int deeper(int depth)
{
	int err = depth > 0 ? deeper(depth - 1) : tdt_co_await(future_of(keep_context, NULL));

	TDT_KEEP_FRAME();
	return err;
}

static NOINLINE int step_1(struct tdt_future *future)
{
	int err = tdt_co_await(*future);

	TDT_KEEP_FRAME();
	return err;
}

static tdt_poll_t leaf_once(void *state, struct tdt_context *cx)
{
	int *polled = state;

	leaf(NULL, cx);
	return ++*polled > 2 ? TDT_READY : TDT_PENDING;
}

static int moves(void *arg)
{
	int polled = 0;
	struct tdt_future once = future_of(leaf_once, &polled), for_ever = future_of(leaf, NULL);

	step_1(&once);
	deeper(20);
	inner(&for_ever);
	TDT_KEEP_FRAME();
	return 0;
}

TEST(a_coroutine_that_goes_on_is_seen_where_it_has_got_to)
{
	POLL_NOW(task, coroutine(moves, NULL));
	struct tdt_trace *trace = poll_now_ask(&task, 0);

	expect_names(trace, "moves\n"
			    " step_1\n"
			    "  leaf_once\n"
			    "   leaf x1\n");
	tdt_trace_free(trace);
	poll_now(&task);
	trace = poll_now_ask(&task, 0);
	expect_names(trace, "moves\n"
			    " inner\n"
			    "  leaf x1\n");
	tdt_trace_free(trace);
}

CASE(several)

TEST(coroutines_that_are_joined_are_branches)
{
	struct tdt_future awaited[3] = { join(future_of(leaf, NULL), future_of(two_leaves, NULL)),
					 future_of(leaf, NULL), future_of(two_leaves, NULL) };
	struct tdt_future all =
	    join(join(coroutine(waits, &awaited[0]), coroutine(waits_too, &awaited[1])),
		 coroutine(waits, &awaited[2]));

	expect_tree_of(polling(&all), "polls\n"
				      " waits\n"
				      "  middle\n"
				      "   inner\n"
				      "    leaf x1\n"
				      "    two_leaves\n"
				      "     leaf x2\n"
				      " waits_too\n"
				      "  leaf x1\n"
				      " waits\n"
				      "  middle\n"
				      "   inner\n"
				      "    two_leaves\n"
				      "     leaf x2\n");
}

TEST(coroutines_nest)
{
	struct tdt_future innermost = join(future_of(leaf, NULL), future_of(leaf, NULL));
	struct tdt_future between = join(coroutine(waits_too, &innermost), future_of(leaf, NULL));
	struct tdt_future outermost = coroutine(waits, &between), co = polling(&outermost);

	expect_tree_of(coroutine(waits_too, &co), "waits_too\n"
						  " polls\n"
						  "  waits\n"
						  "   middle\n"
						  "    inner\n"
						  "     waits_too\n"
						  "      leaf x2\n"
						  "     leaf x1\n");
}

TEST(a_task_in_a_coroutine_ends_at_its_own_frame_and_the_one_around_it_goes_on)
{
	struct tdt_future beneath = future_of(two_leaves, NULL), awaited;
	struct tdt_traced traced = tdt_traced(coroutine(waits_too, &beneath));
	struct poll_now task, requester = { 0 };
	struct tdt_trace *traces[2] = { NULL, NULL };
	struct tdt_future asks[2];

	awaited = polling(&traced.future);
	poll_now_start(&task, coroutine(waits, &awaited));
	asks[0] = tdt_backtrace_async(traced.handle, NULL, &traces[0], NULL);
	asks[1] = tdt_backtrace_async(task.traced.handle, NULL, &traces[1], NULL);
	task.held = true;
	poll_now_start(&requester, tdt_join_all(asks, 2));
	poll_now(&task);
	ck_assert_int_eq(requester.result, TDT_READY);
	expect_names(traces[0], "waits_too\n"
				" two_leaves\n"
				"  leaf x2\n");
	expect_names(traces[1], "waits\n"
				" middle\n"
				"  inner\n"
				"   polls\n"
				"    waits_too\n"
				"     two_leaves\n"
				"      leaf x2\n");
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	poll_now_end(&requester);
	poll_now_end(&task);
	tdt_handle_unref(traced.handle);
}

/*
 * A poll in which one coroutine after the other waits, and is gone: their stacks lie at the same
 * place.
 */
static tdt_poll_t one_after_the_other(void *state, struct tdt_context *cx)
{
	static const size_t sizes[] = { 256 << 10, 64 << 10, 128 << 10, 256 << 10 };
	tdt_coroutine_fn *fns[] = { waits, waits_too, waits, waits };

	for (int i = 0; i < 4; i++) {
		struct tdt_coroutine_attr attr = { .size = sizeof(attr), .stack_size = sizes[i] };
		struct tdt_future awaited = future_of(two_leaves, NULL);
		FUTURE(co, tdt_coroutine(fns[i], &awaited, &attr));

		tdt_future_poll(&co, cx);
	}
	return TDT_PENDING;
}

TEST(stacks_that_are_gone_are_not_looked_at)
{
	enum tdt_cut cut;
	POLL_NOW(task, future_of(one_after_the_other, NULL));
	TRACE(trace, poll_now_ask(&task, 0));

	ck_assert_uint_eq(tdt_trace_stacks(trace), 8);
	for (uint32_t i = 0; i < 8; i++) {
		tdt_trace_stack(trace, i, NULL, 0, &cut);
		ck_assert_int_eq(cut, TDT_CUT_NOT);
	}
	expect_names(trace, "one_after_the_other\n"
			    " waits\n"
			    "  middle\n"
			    "   inner\n"
			    "    two_leaves\n"
			    "     leaf x6\n"
			    " waits_too\n"
			    "  two_leaves\n"
			    "   leaf x2\n");
}

/* The same coroutine twice in a poll, from two places. */
static NOINLINE void once_more(struct tdt_future *future, struct tdt_context *cx)
{
	tdt_future_poll(future, cx);
}

static tdt_poll_t polls_twice(void *state, struct tdt_context *cx)
{
	tdt_future_poll(state, cx);
	once_more(state, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

TEST(a_coroutine_that_is_polled_from_two_places_is_seen_at_both)
{
	struct tdt_future awaited = future_of(two_leaves, NULL),
			  co = coroutine(waits_too, &awaited);

	expect_tree_of((struct tdt_future){ &co, polls_twice, drop_what_it_polls },
		       "polls_twice\n"
		       " waits_too\n"
		       "  two_leaves\n"
		       "   leaf x2\n"
		       "polls_twice\n"
		       " once_more\n"
		       "  waits_too\n"
		       "   two_leaves\n"
		       "    leaf x2\n");
}

TEST(a_limit_of_frames_counts_those_of_all_stacks)
{
	struct tdt_future awaited = future_of(two_leaves, NULL), co = coroutine(waits, &awaited);
	uint32_t whole = 0;
	POLL_NOW(task, polling(&co));

	for (uint32_t max = 0; max == 0 || max <= whole; max++) {
		TRACE(trace, poll_now_ask(&task, max));
		enum tdt_cut cut;

		for (uint32_t i = 0; i < 2; i++) {
			uint32_t n = (uint32_t)tdt_trace_stack(trace, i, NULL, 0, &cut);

			if (max == 0)
				whole = n;
			/* The second is its own frames and what it shares. */
			if (i == 0)
				ck_assert_uint_eq(n, max != 0 && max < whole ? max : whole);
			if (i == 0)
				ck_assert_int_eq(cut, n < whole ? TDT_CUT_LIMIT : TDT_CUT_NOT);
		}
	}
	ck_assert_uint_gt(whole, 8);
}

/* --- What leaves have in common is recorded once ---------------------------------------------- */

#if TDT_WALK_RULES
#define ROUNDS 30

/* Leaves by turns on the stack of this poll and on those of coroutines. */
static tdt_poll_t by_turns(void *state, struct tdt_context *cx)
{
	struct tdt_future *coroutines = state;

	for (int i = 0; i < ROUNDS; i++) {
		tdt_future_poll(&coroutines[i], cx);
		two_leaves(NULL, cx);
	}
	return TDT_PENDING;
}

static void drop_all(void *state)
{
	for (int i = 0; i < ROUNDS; i++)
		tdt_future_drop((struct tdt_future *)state + i);
}

TEST(leaves_on_different_stacks_share_the_frames_outside)
{
	struct tdt_future awaited[ROUNDS], coroutines[ROUNDS];
	struct tdt_future turns = { coroutines, by_turns, drop_all }, outer;
	size_t longest, own;

	for (int i = 0; i < ROUNDS; i++) {
		awaited[i] = future_of(two_leaves, NULL);
		coroutines[i] = coroutine(waits_too, &awaited[i]);
	}
	outer = coroutine(waits, &turns);
	POLL_NOW(task, polling(&outer));
	TRACE(trace, poll_now_ask(&task, 0));
	longest = tdt_trace_stack(trace, 0, NULL, 0, NULL);
	own = longest - tdt_trace_stack(trace, 2, NULL, 0, NULL);
	/*
	 * Once what is outside of all; and each time the frames up to by_turns() itself, which are
	 * new.
	 */
	ck_assert_uint_le(tdt__frames_hint(task.traced.handle), longest + ROUNDS * (own + 12));
	ck_assert_uint_ge(longest, own + 10);
}
#endif

/* --- Trees at random -------------------------------------------------------------------------- */

/* A future that is a node of such a tree: a leaf, a coroutine, a poll of all that is below. */
struct node {
	enum { LEAF, CALL, COROUTINE, JOIN } kind;
	unsigned n;
	struct node *below[3];
	struct tdt_future future; /* of a coroutine: what it awaits */
	struct tdt_future own[3];
};

static NOINLINE tdt_poll_t random_leaf(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static tdt_poll_t random_call(void *state, struct tdt_context *cx)
{
	struct node *node = state;

	for (unsigned i = 0; i < node->n; i++)
		tdt_future_poll(&node->own[i], cx);
	return TDT_PENDING;
}

static int random_coroutine(void *arg)
{
	struct node *node = arg;
	int err = tdt_co_await(node->future);

	TDT_KEEP_FRAME();
	return err;
}

static void drop_nodes(void *state)
{
	struct node *node = state;

	for (unsigned i = 0; i < node->n; i++)
		tdt_future_drop(&node->own[i]);
}

static unsigned seed;

static struct node *grow(struct node *pool, unsigned *used, unsigned depth)
{
	struct node *node = &pool[(*used)++];

	*node = (struct node){ .kind = LEAF };
	if (depth == 0 || *used > 60 || random_below(&seed, 8) == 0)
		return node;
	node->kind = 1 + random_below(&seed, 3);
	node->n = node->kind == COROUTINE ? 1 : 1 + random_below(&seed, 3);
	for (unsigned i = 0; i < node->n; i++)
		node->below[i] = grow(pool, used, depth - 1);
	return node;
}

static struct tdt_future future_of_node(struct node *node)
{
	for (unsigned i = 0; i < node->n; i++)
		node->own[i] = future_of_node(node->below[i]);
	switch (node->kind) {
	case LEAF:
		return future_of(random_leaf, NULL);
	case CALL:
		return (struct tdt_future){ node, random_call, drop_nodes };
	case COROUTINE:
		node->future = node->own[0];
		return coroutine(random_coroutine, node);
	default:
		return tdt_join_all(node->own, node->n);
	}
}

/* The tree that must come. */
static void expect_node(struct tdt_trace *trace, const struct tdt_node *parent,
			const struct node *node)
{
	static const char *const names[] = { "random_leaf", "random_call", "random_coroutine",
					     "tdt_join_all" };
	struct tdt_frame frame = { .size = sizeof(frame),
				   .kind = TDT_NODE_FRAME,
				   .function = names[node->kind],
				   .line = 1 };

	parent = tdt_trace_add(trace, parent, &frame, node->kind == LEAF);
	for (unsigned i = 0; i < node->n; i++)
		expect_node(trace, parent, node->below[i]);
}

TEST(trees_at_random_are_whole)
{
	static struct node pool[256];

	seed = seed_of_run();
	for (int round = 0; round < 300; round++) {
		struct tdt_task_info info = { .size = sizeof(info) };
		TRACE(expected, tdt_trace_new(&info));
		unsigned used = 0;
		struct node *root = grow(pool, &used, 9);

		expect_node(expected, NULL, root);
		TEXT(names, names_of(expected));
		expect_tree_of(future_of_node(root), names);
	}
}

/* --- Coroutines of another library ------------------------------------------------------------ */

/*
 * As small as one can be; and to be futures, as man 7 tdt-coroutines says.  (Memory checkers are
 * told of them, too: the lines with `san`.)
 */
struct theirs {
	ucontext_t inside, outside;
	char *memory;
	void (*function)(struct theirs *co);
	struct tdt_future *awaited;
	struct tdt_context *cx;
	struct tdt_stack stack;
	struct tdt__san san, poller;
	bool told, based, ended;
};

#define THEIR_BYTES ((size_t)256 << 10)

static struct theirs *starting;

static NOINLINE void their_entry(void)
{
	struct theirs *co = starting;

	tdt__san_entered(&co->poller, &co->san);
	if (co->based)
		TDT_STACK_BASE(&co->stack);
	co->function(co);
	co->ended = true;
	tdt__san_leave(&co->poller, &co->san, 1);
	swapcontext(&co->inside, &co->outside);
}

static NOINLINE tdt_poll_t their_resume(void *state, struct tdt_context *cx)
{
	struct theirs *co = state;

	co->cx = cx;
	starting = co;
	if (co->told)
		tdt_stack_enter(&co->stack);
	tdt__san_enter(&co->poller, &co->san);
	swapcontext(&co->outside, &co->inside);
	tdt__san_left(&co->poller);
	if (co->told)
		tdt_stack_leave(&co->stack);
	return co->ended ? TDT_READY : TDT_PENDING;
}

static NOINLINE void their_await(struct theirs *co)
{
	while (tdt_future_poll(co->awaited, co->cx) == TDT_PENDING) {
		tdt__san_leave(&co->poller, &co->san, 0);
		swapcontext(&co->inside, &co->outside);
		tdt__san_entered(&co->poller, &co->san);
	}
	tdt_future_drop(co->awaited);
}

static NOINLINE void their_function(struct theirs *co)
{
	their_await(co);
	TDT_KEEP_FRAME();
}

static void their_free(void *state)
{
	struct theirs *co = state;

	if (!co->ended)
		tdt_future_drop(co->awaited);
	tdt__san_fini(&co->san);
	munmap(co->memory, THEIR_BYTES + 2 * 4096);
}

/* Between unreadable memory. */
static struct tdt_future theirs(struct theirs *co, struct tdt_future *awaited, bool told,
				bool based)
{
	*co = (struct theirs){
		.function = their_function, .awaited = awaited, .told = told, .based = based
	};
	co->memory =
	    mmap(NULL, THEIR_BYTES + 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(co->memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(co->memory + 4096, THEIR_BYTES, PROT_READ | PROT_WRITE), 0);
	co->stack = (struct tdt_stack){ .low = co->memory + 4096, .size = THEIR_BYTES };
	tdt__san_init(&co->san, co->stack.low, THEIR_BYTES);
	getcontext(&co->inside);
	co->inside.uc_stack.ss_sp = co->stack.low;
	co->inside.uc_stack.ss_size = THEIR_BYTES;
	makecontext(&co->inside, their_entry, 0);
	return (struct tdt_future){ co, their_resume, their_free };
}

CASE(others)

TEST(coroutines_of_others_are_seen_like_ours)
{
	static struct theirs first, second, third;
	struct tdt_future leaves = future_of(two_leaves, NULL), one = future_of(leaf, NULL), inside,
			  both;

	inside = join(theirs(&first, &leaves, true, true), coroutine(waits_too, &one));
	both = join(theirs(&second, &inside, true, true), future_of(leaf, NULL));
	expect_tree_of(theirs(&third, &both, true, true), "their_resume\n"
							  " their_entry\n"
							  "  their_function\n"
							  "   their_await\n"
							  "    their_resume\n"
							  "     their_entry\n"
							  "      their_function\n"
							  "       their_await\n"
							  "        their_resume\n"
							  "         their_entry\n"
							  "          their_function\n"
							  "           their_await\n"
							  "            two_leaves\n"
							  "             leaf x2\n"
							  "        waits_too\n"
							  "         leaf x1\n"
							  "    leaf x1\n");
}

/* Where they stand in the tree, and that no more of it is known. */
static void expect_cut(struct tdt_future future, const char *function)
{
	enum tdt_cut cut;
	POLL_NOW(task, future);
	TRACE(trace, poll_now_ask(&task, 0));

	tdt_trace_stack(trace, 0, NULL, 0, &cut);
	ck_assert_int_ne(cut, TDT_CUT_NOT);
	ck_assert_int_eq(tdt_node_frame(tdt_node_next(tdt_trace_root(trace)))->kind, TDT_NODE_CUT);
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		if (tdt_node_frame(node)->function != NULL &&
		    strcmp(tdt_node_frame(node)->function, function) == 0)
			function = "";
	ck_assert_str_eq(function, "");
}

TEST(a_stack_that_nobody_told_of_is_cut)
{
	static struct theirs co;
	struct tdt_future one = future_of(leaf, NULL);

	expect_cut(theirs(&co, &one, false, false), "leaf");
}

TEST(a_stack_whose_outermost_function_is_not_known_is_cut_at_its_end)
{
	static struct theirs co;
	struct tdt_future one = future_of(leaf, NULL);

	expect_cut(theirs(&co, &one, true, false), "their_entry");
}

TEST(a_stack_that_nobody_told_of_on_one_of_ours_is_cut)
{
	static struct theirs co;
	struct tdt_future one = future_of(leaf, NULL), their_co = theirs(&co, &one, false, false);

	expect_cut(coroutine(waits, &their_co), "leaf");
}

TEST(a_coroutine_on_a_stack_that_nobody_told_of_is_cut_there)
{
	static struct theirs co;
	struct tdt_future one = future_of(leaf, NULL), ours = coroutine(waits, &one);

	expect_cut(theirs(&co, &ours, false, false), "waits");
}
