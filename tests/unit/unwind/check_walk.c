// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers unwind/walk_rules, unwind/rules, unwind/cfi, unwind/unwinder.  On every stack the walk
 * yields what libunwind's own cursor yields, and what walk_step.c yields; and so does a capture,
 * which walks only as far as two leaves differ.
 *
 * The stacks are random trees of calls (always the same ones) of the functions of frames.c, as it
 * was compiled for this program, and in the libraries that TDT_TEST_FRAMES names: walk.sh makes
 * some with each compiler.
 */

#include <config.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>

#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/seal.h"
#include "host/thread.h"
#include "lib/frames.h"
#include "lib/poll_now.h"
#include "lib/test.h"
#include "lib/walk_step.h"
#include "unwind/registers.h"
#include "unwind/walk.h"

#define FRAMES_MAX 512
#define LEAVES_MAX 128
#define DEPTH 24

extern const frames_fn frames_with_fp[];
extern const frames_fn frames_without_fp[];
extern const frames_fn frames_plain[];

/* ck_assert() tells Check where it is, even if it holds; that takes its time. */
#define REQUIRE(condition, ...)                                                                    \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg(__VA_ARGS__);                                                 \
	} while (0)

/* --- The functions there are ------------------------------------------------------ */

static frames_fn functions[4096];
static unsigned n_functions;

static void add_functions(const frames_fn *table)
{
	while (*table != NULL)
		functions[n_functions++] = *table++;
}

static void add_libraries(void)
{
	char *names = getenv("TDT_TEST_FRAMES"), *rest = NULL;

	if (names == NULL)
		return;
	names = strdup(names);
	for (char *name = strtok_r(names, " ", &rest); name != NULL;
	     name = strtok_r(NULL, " ", &rest)) {
		void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
		const frames_fn *table = library != NULL ? dlsym(library, "frames_table") : NULL;

		if (table == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			exit(EXIT_FAILURE);
		}
		add_functions(table);
	}
	free(names);
}

static __attribute__((constructor)) void find_functions(void)
{
	add_functions(frames_with_fp);
	add_functions(frames_without_fp);
	add_functions(frames_plain);
	add_libraries();
}

/* --- A leaf looks at its stack ------------------------------------------------------ */

struct stack {
	uintptr_t pc[FRAMES_MAX];
	uintptr_t cfa[FRAMES_MAX];
	size_t n;
};

static struct stack
    stacks[LEAVES_MAX]; /* by libunwind's cursor, of the leaves that were captured */
static unsigned leaves;
static uint64_t seed;

static void push(struct stack *stack, uintptr_t pc, uintptr_t cfa)
{
	REQUIRE(stack->n < FRAMES_MAX, "more than %d frames", FRAMES_MAX);
	stack->pc[stack->n] = pc;
	stack->cfa[stack->n++] = cfa;
}

static void walk_by_cursor(struct stack *stack, unw_context_t *context, uintptr_t top)
{
	unw_cursor_t cursor;
	unw_word_t pc, sp;

	stack->n = 0;
	REQUIRE(unw_init_local(&cursor, context) == 0 && unw_step(&cursor) > 0,
		"the cursor goes nowhere");
	for (;;) {
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		REQUIRE(unw_step(&cursor) > 0, "the cursor ends");
		unw_get_reg(&cursor, UNW_REG_SP, &sp);
		if (sp > top || tdt__is_top(sp, top))
			break;
		push(stack, pc, sp);
	}
	REQUIRE(tdt__is_top(sp, top), "the cursor misses the traced future's frame");
}

/* The walks are made ready once: that forgets what libunwind has cached. */
static struct tdt__walk_step by_steps;
#if TDT_WALK_RULES
static struct tdt__walk by_rules;
#endif

/* `next` yields the next frame into `frame`; `at` is its to use. */
#define WALK(walk, start, next, stack, from, top)                                                  \
	do {                                                                                       \
		struct tdt__registers at = (from);                                                 \
		struct tdt__frame frame;                                                           \
		enum tdt__walked walked;                                                           \
                                                                                                   \
		(stack)->n = 0;                                                                    \
		start(&(walk), at, (top));                                                         \
		while ((walked = (next)) == TDT__WALK_FRAME) {                                     \
			REQUIRE(!frame.guessed, "a guess at %#lx", (unsigned long)frame.pc);       \
			push((stack), frame.pc, frame.cfa);                                        \
		}                                                                                  \
		REQUIRE(walked == TDT__WALK_TOP, "cut %d at %#lx after %zu frames, seed %lu",      \
			(int)(walk).cut, (unsigned long)frame.pc, (stack)->n,                      \
			(unsigned long)seed);                                                      \
	} while (0)

static void check_same(const struct stack *a, const struct stack *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		REQUIRE(a->pc[i] == b->pc[i] && a->cfa[i] == b->cfa[i],
			"frame %zu of %zu and %zu: %#lx until %#lx, not %#lx until %#lx; seed %lu",
			i, a->n, b->n, (unsigned long)a->pc[i], (unsigned long)a->cfa[i],
			(unsigned long)b->pc[i], (unsigned long)b->cfa[i], (unsigned long)seed);
	REQUIRE(a->n == b->n, "%zu frames, not %zu; seed %lu", a->n, b->n, (unsigned long)seed);
}

static __attribute__((noinline)) void look(struct stack *stack, uintptr_t top)
{
	static struct stack other;
	struct tdt__registers from = TDT__CALLER_REGISTERS();
	unw_context_t context;

	unw_getcontext(&context);
	walk_by_cursor(stack, &context, top);
	WALK(by_steps, tdt__walk_step_start, tdt__walk_step_next(&by_steps, &frame), &other, from,
	     top);
	check_same(&other, stack);
#if TDT_WALK_RULES
	WALK(by_rules, tdt__walk_start, tdt__walk_next(&by_rules, &at, &frame), &other, from, top);
	check_same(&other, stack);
#endif
	REQUIRE(from.pc == stack->pc[0], "not its caller");
}

static struct tdt_context *context;

static __attribute__((noinline)) void leaf(void)
{
	const struct tdt__poll *poll = tdt__thread.poll;

	if (poll->capture != NULL) {
		REQUIRE(leaves < LEAVES_MAX, "more than %d leaves", LEAVES_MAX);
		look(&stacks[leaves++], poll->top);
	}
	tdt_waker_drop(tdt_waker_clone(context->waker));
}

/* --- Random trees of calls ------------------------------------------------------------ */

static void next(struct frames *frames)
{
	if (frames->depth == 0 || leaves >= LEAVES_MAX / 2 || frames_random(frames, 12) == 0) {
		leaf();
	} else {
		frames->depth--;
		functions[frames_random(frames, n_functions)](frames);
		frames->depth++;
	}
	TDT_KEEP_FRAME();
}

static tdt_poll_t tree_poll(void *state, struct tdt_context *cx)
{
	struct frames frames = { .next = next, .random = seed, .depth = DEPTH };

	context = cx;
	leaves = 0;
	next(&frames);
	next(&frames);
	return TDT_PENDING;
}

/* Callers of the leaf: its own PC is at another of its calls. */
static void check_captured(const struct tdt_trace *trace, uint32_t index)
{
	const struct stack *stack = &stacks[index];
	uint64_t pcs[FRAMES_MAX];
	enum tdt_cut cut;
	size_t n = tdt_trace_stack(trace, index, pcs, FRAMES_MAX, &cut);

	REQUIRE(cut == TDT_CUT_NOT, "cut %d: leaf %u of seed %lu", (int)cut, index,
		(unsigned long)seed);
	REQUIRE(n == stack->n, "%zu frames captured, not %zu: leaf %u of seed %lu", n, stack->n,
		index, (unsigned long)seed);
	for (size_t i = 1; i < n; i++)
		REQUIRE(pcs[i] == stack->pc[i], "frame %zu is %#lx, not %#lx: leaf %u of seed %lu",
			i, (unsigned long)pcs[i], (unsigned long)stack->pc[i], index,
			(unsigned long)seed);
}

CASE(walk)

TEST(all_ways_to_walk_give_the_same_frames)
{
	struct poll_now task;

	ck_assert(tdt__walk_step_init(&by_steps));
#if TDT_WALK_RULES
	ck_assert(tdt__walk_init(&by_rules));
#endif
	seed = 1;
	poll_now_start(&task, future_of(tree_poll, NULL));
	for (unsigned i = 0; i < 200; i++) {
		seed = 0x9e3779b97f4a7c15u * (i + 1);
		TRACE(trace, poll_now_ask(&task, FRAMES_MAX));
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, leaves);
		ck_assert_uint_eq(tdt_trace_stacks(trace), leaves);
		for (uint32_t leaf = 0; leaf < leaves; leaf++)
			check_captured(trace, leaf);
	}
	poll_now_end(&task);
	tdt__walk_step_fini(&by_steps);
#if TDT_WALK_RULES
	tdt__walk_fini(&by_rules);
#endif
}

/* As if there had been memory for some two thousand million frames. */
TEST(a_capture_with_no_index_left_loses_the_leaf)
{
	struct tdt__capture *capture = tdt__capture_new(1, TDT_MAX_FRAMES);
	struct tdt__poll poll = { .capture = capture };

	ck_assert_ptr_nonnull(capture);
	capture->stacks.n = capture->capacity = UINT32_C(1) << 31;
	tdt__capture_leaf(&poll, (struct tdt__registers){ .pc = 1, .sp = 16 });
	ck_assert_uint_eq(capture->stacks.n, UINT32_C(1) << 31);
	ck_assert_uint_eq(capture->stacks.leaves, 0);
	ck_assert_uint_eq(capture->stacks.lost, 1);
	tdt__capture_unref(capture);
}

#if TDT_WALK_RULES
/* --- Rules --------------------------------------------------------------------------------- */

/* Code that never runs, and unwind information for it.  The calls are at name + 2. */
#define CODE(name, ...)                                                                            \
	extern const char name[] __attribute__((visibility("hidden")));                            \
	__asm__(".pushsection .text\n"                                                             \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n" __VA_ARGS__ "nop\nnop\nnop\nnop\n"                              \
		".cfi_endproc\n"                                                                   \
		".size " #name ", . - " #name "\n"                                                 \
		".popsection\n")

#if defined(__x86_64__)
#define FP "6"
#define PC "16"
#define PC_SAVED ""
#else
#define FP "29"
#define PC "30"
#define PC_SAVED ".cfi_offset 30, -8\n"
#endif

CODE(by_sp, ".cfi_def_cfa_offset 32\n" PC_SAVED);
CODE(by_sp_far, ".cfi_def_cfa_offset 1000000008\n" PC_SAVED);
CODE(by_sp_four_mebibytes, ".cfi_def_cfa_offset 4194320\n" PC_SAVED);
CODE(by_sp_saves_fp, ".cfi_def_cfa_offset 48\n.cfi_offset " FP ", -32\n" PC_SAVED);
CODE(by_fp, ".cfi_def_cfa " FP ", 16\n.cfi_offset " FP ", -16\n" PC_SAVED);
CODE(by_fp_far, ".cfi_def_cfa " FP ", 0x7ffffff0\n.cfi_offset " FP ", -16\n" PC_SAVED);
CODE(outermost, ".cfi_undefined " PC "\n");
CODE(return_in_register, ".cfi_def_cfa_offset 32\n.cfi_register " PC ", 3\n");
CODE(fp_in_register, ".cfi_def_cfa_offset 32\n.cfi_register " FP ", 3\n" PC_SAVED);
CODE(fp_too_far, ".cfi_def_cfa_offset 1048576\n.cfi_offset " FP ", -524288\n" PC_SAVED);
extern const char no_information[] __attribute__((visibility("hidden")));
__asm__(".pushsection .text\nno_information:\nnop\nnop\nnop\n.popsection\n");

#if defined(__x86_64__)
/* CFA: the word at rbp - 8, or - 4096; rbp itself: the word at rbp. */
CODE(at_fp, ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n.cfi_escape 0x10, 6, 2, 0x76, 0\n");
CODE(at_fp_far, ".cfi_escape 0x0f, 4, 0x76, 0x80, 0x60, 0x06\n.cfi_escape 0x10, 6, 2, 0x76, 0\n");
CODE(by_rbx, ".cfi_def_cfa 3, 16\n");
CODE(at_sp, ".cfi_escape 0x0f, 3, 0x77, 0x08, 0x06\n");
/* What libunwind refuses: the word at rsp + 152, or - 8, and 8; and xmm6 and xmm15 are saved. */
CODE(at_sp_plus_8, ".cfi_escape 0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 8\n.cfi_offset 6, -24\n");
CODE(at_sp_below, ".cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8\n");
CODE(at_sp_plus_too_much, ".cfi_escape 0x0f, 6, 0x77, 0x08, 0x06, 0x23, 0x80, 0x02\n");
CODE(by_sp_saves_vectors,
     ".cfi_def_cfa_offset 48\n.cfi_offset 6, -32\n.cfi_offset 23, -48\n.cfi_offset 32, -64\n");
CODE(at_fp_saves_vectors, ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
			  ".cfi_escape 0x10, 23, 2, 0x76, 0x60\n");
/* At the return of a function that gcc realigned. */
CODE(returns_realigned, ".cfi_def_cfa 7, 8\n.cfi_escape 0x10, 6, 2, 0x76, 0\n");
CODE(at_fp_plus_8, ".cfi_escape 0x0f, 5, 0x76, 0x78, 0x06, 0x23, 8\n");
CODE(at_at_fp, ".cfi_escape 0x0f, 4, 0x76, 0x78, 0x06, 0x06\n");
CODE(at_zero, ".cfi_escape 0x0f, 2, 0x30, 0x06\n");
CODE(at_minus_one, ".cfi_escape 0x0f, 3, 0x09, 0xff, 0x06\n");
CODE(return_elsewhere, ".cfi_def_cfa_offset 32\n.cfi_offset 16, -16\n");
CODE(fp_unaligned,
     ".cfi_def_cfa_offset 32\n.cfi_escape 0x10, 6, 2, 0x77, 12\n"); /* rbp: at rsp + 12 */

static const struct {
	const char *code;
	struct tdt__rule rule;
} learned[] = {
	{ by_sp, { 32, 0, TDT__CFA_SP, TDT__FP_SAME } },
	{ by_sp_far, { 1000000008, 0, TDT__CFA_SP, TDT__FP_SAME } },
	{ by_sp_four_mebibytes, { 4194320, 0, TDT__CFA_SP, TDT__FP_SAME } },
	{ by_sp_saves_fp, { 48, -4, TDT__CFA_SP, TDT__FP_AT_CFA } },
	{ by_fp, { 16, -2, TDT__CFA_FP, TDT__FP_AT_CFA } },
	{ by_fp_far, { 0x7ffffff0, -2, TDT__CFA_FP, TDT__FP_AT_CFA } },
	{ at_fp, { -8, 0, TDT__CFA_AT_FP, TDT__FP_AT_FP } },
	{ at_fp_far, { -4096, 0, TDT__CFA_AT_FP, TDT__FP_AT_FP } },
	{ outermost, { 0, 0, TDT__CFA_OUTERMOST, TDT__FP_SAME } },
	{ by_rbx, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ at_sp, { 8 << TDT__AT_SP_BITS, 0, TDT__CFA_AT_SP, TDT__FP_SAME } },
	{ at_sp_plus_8, { (152 << TDT__AT_SP_BITS) + 8, -3, TDT__CFA_AT_SP, TDT__FP_AT_CFA } },
	{ at_sp_below, { (-8 * (1 << TDT__AT_SP_BITS)) + 8, 0, TDT__CFA_AT_SP, TDT__FP_SAME } },
	{ at_sp_plus_too_much, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ by_sp_saves_vectors, { 48, -4, TDT__CFA_SP, TDT__FP_AT_CFA } },
	{ at_fp_saves_vectors, { -8, 0, TDT__CFA_AT_FP, TDT__FP_AT_FP } },
	{ returns_realigned, { 8, 0, TDT__CFA_SP, TDT__FP_SAME } },
	{ no_information, { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME } },
	{ at_fp_plus_8, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ at_at_fp, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ at_zero, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ at_minus_one, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ return_in_register, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ return_elsewhere, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ fp_in_register, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ fp_too_far, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ fp_unaligned, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
};

#else
CODE(leaf_keeps_all, "");
CODE(record, ".cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\n");
CODE(record_far, ".cfi_def_cfa_offset 4194320\n.cfi_offset 29, -4194312\n"
		 ".cfi_offset 30, -4194304\n");
/* The return address is signed. */
CODE(signs, ".cfi_escape 0x2d\n.cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\n");
CODE(pc_below_fp, ".cfi_def_cfa_offset 32\n.cfi_offset 29, -8\n.cfi_offset 30, -24\n");
CODE(pc_far_from_fp, ".cfi_def_cfa_offset 512\n.cfi_offset 29, -512\n.cfi_offset 30, -8\n");
CODE(pc_in_register, ".cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n");
CODE(by_x19, ".cfi_def_cfa 19, 16\n" PC_SAVED);

#define PC_AT(words, fp_kind) (fp_kind | (uint8_t)((words) << 2))

static const struct {
	const char *code;
	struct tdt__rule rule;
} learned[] = {
	{ leaf_keeps_all, { 0, 0, TDT__CFA_SP, TDT__FP_SAME } },
	{ record, { 32, 0, TDT__CFA_SP, TDT__FP_RECORD } },
	{ signs, { 32, 0, TDT__CFA_SP, TDT__FP_RECORD } },
	{ by_sp, { 32, 2, TDT__CFA_SP, PC_AT(1, TDT__FP_SAME) } },
	{ by_sp_far, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ by_sp_four_mebibytes, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ by_sp_saves_fp, { 48, 2, TDT__CFA_SP, PC_AT(3, TDT__FP_SAVED) } },
	{ pc_below_fp, { 32, 3, TDT__CFA_SP, PC_AT(-2u, TDT__FP_SAVED) } },
	{ by_fp, { 16, 0, TDT__CFA_FP, TDT__FP_RECORD } },
	{ by_fp_far, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ record_far, { 4194320, 1, TDT__CFA_SP, TDT__FP_RECORD } },
	{ outermost, { 0, 0, TDT__CFA_OUTERMOST, TDT__FP_SAME } },
	{ no_information, { 0, 0, TDT__CFA_UNKNOWN, TDT__FP_SAME } },
	{ by_x19, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ pc_far_from_fp, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ pc_in_register, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ return_in_register, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ fp_in_register, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
	{ fp_too_far, { 0, 0, TDT__CFA_OTHER, TDT__FP_SAME } },
};
#endif

TEST(a_rule_is_what_the_unwind_information_says_or_none, .to = sizeof learned / sizeof learned[0])
{
	struct tdt__rules *rules = tdt__rules_get();
	const struct tdt__rule *wanted = &learned[_i].rule;
	uintptr_t pc = (uintptr_t)learned[_i].code + 1;

	ck_assert_int_eq(tdt__rules_find(rules, pc).cfa_kind, TDT__CFA_NONE);
	for (int again = 0; again < 2; again++) {
		struct tdt__rule rule = tdt__rules_learn(&rules, pc);

		ck_assert_int_eq(rule.cfa_kind, wanted->cfa_kind);
		if (wanted->cfa_kind == TDT__CFA_UNKNOWN || wanted->cfa_kind == TDT__CFA_OTHER)
			continue;
		ck_assert_int_eq(rule.fp_kind, wanted->fp_kind);
		ck_assert_int_eq(rule.cfa, wanted->cfa);
		ck_assert_int_eq(rule.fp, wanted->fp);
	}
	ck_assert_int_eq(tdt__rules_find(rules, pc).cfa_kind, wanted->cfa_kind);
	tdt__rules_put(rules);
}

TEST(a_table_grows_and_keeps_what_was_learned)
{
	struct tdt__rules *rules = tdt__rules_get();
	uintptr_t first = (uintptr_t)qsort & ~(uintptr_t)0xfff;

	for (uintptr_t pc = first; pc < first + 5000; pc++)
		tdt__rules_learn(&rules, pc);
	for (uintptr_t pc = first; pc < first + 5000; pc++)
		REQUIRE(tdt__rules_find(rules, pc).cfa_kind != TDT__CFA_NONE, "%#lx is forgotten",
			(unsigned long)pc);
	tdt__rules_put(rules);
}

/* --- Made-up stacks --------------------------------------------------------------------------- */

/*
 * A stack as a leaf might find it, word by word, up to the frame of the traced future, `by_fp`'s.
 * Between the leaves of one poll a word changes: the stack of each leaf must be what is there then.
 * The frames are compared one by one (0) or sealed (1).
 */
#define WORDS 64

static struct {
	struct tdt__capture *capture;
	struct tdt__seal seal;
	struct tdt__poll poll;
	struct tdt__registers at;
	uintptr_t *word;
} made_up;

static uintptr_t call_in(const char *code)
{
	return (uintptr_t)code + 2;
}

static uintptr_t address_of(unsigned word)
{
	return (uintptr_t)&made_up.word[word];
}

/* The stack begins in `by_sp`, whose frame pointer points to word 12. */
static void make_up(uintptr_t *words, bool sealed)
{
	memset(words, 0, WORDS * sizeof words[0]);
	made_up.word = words;
	made_up.capture = tdt__capture_new(64, 64);
	ck_assert_ptr_nonnull(made_up.capture);
	made_up.poll = (struct tdt__poll){ .capture = made_up.capture,
					   .top = address_of(WORDS) - TDT__TOP_RECORD };
	made_up.at = (struct tdt__registers){
		.pc = call_in(by_sp), .sp = address_of(0), .fp = address_of(12)
	};
	tdt__seal_init(&made_up.seal);
	if (sealed)
		made_up.capture->seal = &made_up.seal;
	words[WORDS - 1] = 1; /* whatever the traced future was called from */
}

/* Record a leaf; its callers must be in `codes`, up to a NULL, and the traced future. */
static void check_leaf(const char *const *codes)
{
	const struct tdt__recorded *frames = made_up.capture->stacks.frames;
	uint32_t index;

	tdt__capture_leaf(&made_up.poll, made_up.at);
	index = made_up.capture->last;
	frames = made_up.capture->stacks.frames;
	for (; *codes != NULL; codes++, index = frames[index].parent) {
		ck_assert(tdt__is_frame(index));
		ck_assert_uint_eq(frames[index].frame.pc, call_in(*codes));
	}
	ck_assert_uint_eq(index, TDT__PARENT_TOP);
}

/* The same of as many leaves as it takes for all frames to be sealed, and of one more. */
static void check_leaves(const char *const *codes)
{
	uint32_t n;

	for (int i = 0; i < 3; i++)
		check_leaf(codes);
	n = made_up.capture->stacks.n;
	if (made_up.capture->seal != NULL) {
		ck_assert_uint_gt(made_up.seal.n, 0);
		ck_assert_uint_eq(made_up.seal.beyond, TDT__PARENT_TOP);
	}
	check_leaf(codes);
	ck_assert_uint_eq(made_up.capture->stacks.n, n);
}

/*
 * leaf (4 words), then a frame by fp until word 14, whose caller is `by_sp` until 18, then until
 * the end.
 */
TEST(a_return_address_that_changed_is_seen, .to = 2)
{
	uintptr_t words[WORDS];
	const char *first[] = { by_sp, by_fp, by_sp, NULL },
		   *second[] = { by_sp, by_fp, by_sp_saves_fp, NULL };

	make_up(words, _i != 0);
	words[3] = call_in(by_fp);
	words[12] = address_of(WORDS - 2);
	words[13] = call_in(by_sp);
	words[17] = words[19] = call_in(by_fp);
	words[16] = address_of(WORDS - 2);
	check_leaves(first);
	words[13] = call_in(by_sp_saves_fp);
	check_leaf(second);
	words[13] = call_in(by_sp);
	check_leaf(first);
	tdt__capture_unref(made_up.capture);
}

/* What a frame pointer to word 20 leads to, and what one to word 30 does. */
static void make_up_two_ways(uintptr_t *words)
{
	words[20] = address_of(WORDS - 2);
	words[21] = call_in(by_sp);
	words[25] = call_in(by_fp);
	words[30] = address_of(WORDS - 2);
	words[31] = call_in(by_sp_saves_fp);
	words[34] = address_of(WORDS - 2);
	words[37] = call_in(by_fp);
}

/*
 * by_sp, then two frames by fp: the first tells where the second ends.  What was there before is
 * there still.
 */
TEST(a_frame_pointer_that_changed_is_seen, .to = 2)
{
	uintptr_t words[WORDS];
	const char *first[] = { by_sp, by_fp, by_fp, by_sp, NULL };
	const char *second[] = { by_sp, by_fp, by_fp, by_sp_saves_fp, NULL };

	make_up(words, _i != 0);
	words[3] = call_in(by_fp);
	words[12] = address_of(20);
	words[13] = call_in(by_fp);
	make_up_two_ways(words);
	check_leaves(first);
	words[12] = address_of(30);
	check_leaf(second);
	words[12] = address_of(20);
	check_leaf(first);
	tdt__capture_unref(made_up.capture);
}

/* The same where the first doesn't save it just below its return address. */
TEST(a_frame_pointer_that_is_saved_elsewhere_and_changed_is_seen, .to = 2)
{
	uintptr_t words[WORDS];
	const char *first[] = { by_sp, by_sp_saves_fp, by_fp, by_sp, NULL };
	const char *second[] = { by_sp, by_sp_saves_fp, by_fp, by_sp_saves_fp, NULL };

	make_up(words, _i != 0);
	words[3] = call_in(by_sp_saves_fp);
	words[6] = address_of(20);
	words[9] = call_in(by_fp);
	make_up_two_ways(words);
	check_leaves(first);
	words[6] = address_of(30);
	check_leaf(second);
	words[6] = address_of(20);
	check_leaf(first);
	tdt__capture_unref(made_up.capture);
}

#if defined(__x86_64__)
/* by_sp, then a realigned frame, whose CFA is in the word before its frame pointer's. */
TEST(a_cfa_in_memory_that_changed_is_seen, .to = 2)
{
	uintptr_t words[WORDS];
	const char *first[] = { by_sp, at_fp, by_sp, NULL },
		   *second[] = { by_sp, at_fp, by_sp_saves_fp, NULL };

	make_up(words, _i != 0);
	words[3] = call_in(at_fp);
	words[11] = address_of(20);
	words[12] = address_of(WORDS - 2);
	words[19] = call_in(by_sp);
	words[23] = call_in(by_fp);
	words[29] = call_in(by_sp_saves_fp);
	words[32] = address_of(WORDS - 2);
	words[35] = call_in(by_fp);
	check_leaves(first);
	words[11] = address_of(30);
	check_leaf(second);
	words[11] = address_of(20);
	check_leaf(first);
	tdt__capture_unref(made_up.capture);
}

/* The realigned frame's CFA is damaged while one leaf clones, and whole for the next. */
TEST(a_frame_that_was_damaged_may_be_whole_again, .to = 2)
{
	uintptr_t words[WORDS];
	const char *whole[] = { by_sp, at_fp, by_sp, NULL };

	make_up(words, _i != 0);
	words[3] = call_in(at_fp);
	words[11] = 0;
	words[12] = address_of(WORDS - 2);
	words[19] = call_in(by_sp);
	words[23] = call_in(by_fp);
	tdt__capture_leaf(&made_up.poll, made_up.at);
	ck_assert_uint_eq(made_up.capture->stacks.frames[1].parent,
			  TDT__PARENT_CUT(TDT_CUT_CORRUPT));
	words[11] = address_of(20);
	check_leaf(whole);
	tdt__capture_unref(made_up.capture);
}
#endif
#endif
