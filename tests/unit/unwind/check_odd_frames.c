// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers unwind/cfi, unwind/rules, capture/follow.  Frames of unusual shapes, of assembly and of
 * compilers (odd_frames.c).  A poll that runs is seen with all its callers at every single
 * instruction, and none is wrong; so is a leaf that waits there.  A poll that is blocked there (by
 * a page fault, say) is seen so, too, or the best guess is marked.  TDT_TEST_FRAMES names libraries
 * with more functions (odd_frames.sh).
 */

#include <config.h>

#include <dlfcn.h>

#include "lib/odd_frames.h"
#include "lib/poll_now.h"
#include "lib/steps.h"
#include "lib/test.h"

#define MOST 20000

/*
 * The library waits for its threads, however late they are.  By itself it would do without them
 * after a while, and mark frames, as it would not know whether a module was unloaded.
 */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until)
{
	return pthread_cond_wait(cond, mutex);
}

/* --- Assembly ------------------------------------------------------------------------- */

#if defined(__x86_64__)
void asm_word_at_sp(void (*inner)(void));
void asm_word_at_sp_and_register(void (*inner)(void));
void asm_by_rbx(void (*inner)(void));
void asm_word_at_fp(void (*inner)(void));

#define FUNCTION(name, body)                                                                       \
	__asm__(".pushsection .text\n"                                                             \
		".type " #name ", @function\n"                                                     \
		".globl " #name "\n" #name ":\n"                                                   \
		".cfi_startproc\n" body ".cfi_endproc\n"                                           \
		".size " #name ", . - " #name "\n"                                                 \
		".popsection\n")

/*
 * As OpenSSL's SHA-512: the caller's sp is kept in the aligned frame; rbp is a register like
 * others.
 */
FUNCTION(asm_word_at_sp, "	mov %rsp, %rax\n"
			 "	.cfi_def_cfa_register %rax\n"
			 "	push %rbx\n"
			 "	.cfi_offset %rbx, -16\n"
			 "	push %rbp\n"
			 "	.cfi_offset %rbp, -24\n"
			 "	push %r12\n"
			 "	.cfi_offset %r12, -32\n"
			 "	sub $256, %rsp\n"
			 "	and $-64, %rsp\n"
			 "	mov %rax, 152(%rsp)\n"
			 "	.cfi_escape 0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 8\n"
			 "	xor %ebp, %ebp\n"
			 "	call *%rdi\n"
			 "	mov $1, %ebp\n"
			 "	mov 152(%rsp), %rsi\n"
			 "	.cfi_def_cfa %rsi, 8\n"
			 "	mov -24(%rsi), %r12\n"
			 "	.cfi_restore %r12\n"
			 "	mov -16(%rsi), %rbp\n"
			 "	.cfi_restore %rbp\n"
			 "	mov -8(%rsi), %rbx\n"
			 "	.cfi_restore %rbx\n"
			 "	lea (%rsi), %rsp\n"
			 "	.cfi_def_cfa_register %rsp\n"
			 "	ret\n");

/* As its multiplication of Montgomery: the word is at an index. */
FUNCTION(asm_word_at_sp_and_register,
	 "	mov %rsp, %rax\n"
	 "	.cfi_def_cfa_register %rax\n"
	 "	push %rbp\n"
	 "	.cfi_offset %rbp, -16\n"
	 "	push %r9\n"
	 "	mov $5, %r9d\n"
	 "	sub $128, %rsp\n"
	 "	mov %rax, 8(%rsp,%r9,8)\n"
	 /* rsp + 8, r9 + 0, 8, *, +, word, + 8 */
	 "	.cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n"
	 "	mov $77, %ebp\n"
	 "	xor %ecx, %ecx\n"
	 "	mov 8(%rsp,%r9,8), %rsi\n"
	 "	.cfi_def_cfa %rsi, 8\n"
	 "	mov -8(%rsi), %rbp\n"
	 "	.cfi_restore %rbp\n"
	 "	lea (%rsi), %rsp\n"
	 "	.cfi_def_cfa_register %rsp\n"
	 "	sub $8, %rsp\n"
	 "	.cfi_adjust_cfa_offset 8\n"
	 "	call *%rdi\n"
	 "	add $8, %rsp\n"
	 "	.cfi_adjust_cfa_offset -8\n"
	 "	ret\n");

/* As _dl_runtime_resolve: by a register that callees save, or leave alone. */
FUNCTION(asm_by_rbx, "	push %rbx\n"
		     "	.cfi_adjust_cfa_offset 8\n"
		     "	.cfi_rel_offset %rbx, 0\n"
		     "	mov %rsp, %rbx\n"
		     "	.cfi_def_cfa_register %rbx\n"
		     "	push %rbp\n"
		     "	.cfi_offset %rbp, -24\n"
		     "	sub $512, %rsp\n"
		     "	and $-64, %rsp\n"
		     "	xor %ebp, %ebp\n"
		     "	call *%rdi\n"
		     "	mov -8(%rbx), %rbp\n"
		     "	.cfi_restore %rbp\n"
		     "	mov %rbx, %rsp\n"
		     "	.cfi_def_cfa_register %rsp\n"
		     "	pop %rbx\n"
		     "	.cfi_adjust_cfa_offset -8\n"
		     "	.cfi_restore %rbx\n"
		     "	ret\n");

FUNCTION(asm_word_at_fp, "	push %rbp\n"
			 "	.cfi_adjust_cfa_offset 8\n"
			 "	.cfi_offset %rbp, -16\n"
			 "	mov %rsp, %rax\n"
			 "	.cfi_def_cfa_register %rax\n"
			 "	sub $128, %rsp\n"
			 "	and $-64, %rsp\n"
			 "	mov %rsp, %rbp\n"
			 "	mov %rax, 16(%rbp)\n"
			 "	.cfi_escape 0x0f, 5, 0x76, 16, 0x06, 0x23, 16\n"
			 "	call *%rdi\n"
			 "	mov 16(%rbp), %rsp\n"
			 "	.cfi_def_cfa %rsp, 16\n"
			 "	pop %rbp\n"
			 "	.cfi_adjust_cfa_offset -8\n"
			 "	.cfi_restore %rbp\n"
			 "	ret\n");

static const struct odd_frame odd_assembly[] = {
	{ "asm_word_at_sp", asm_word_at_sp, NULL },
	{ "asm_word_at_sp_and_register", asm_word_at_sp_and_register, NULL },
	{ "asm_by_rbx", asm_by_rbx, NULL },
	{ "asm_word_at_fp", asm_word_at_fp, NULL },
};
#endif

/* --- All of them -------------------------------------------------------------------------- */

#define FRAMES_MAX 400

static struct odd_frame frames[FRAMES_MAX];
static int n_frames, n_compiled;

static void add(const struct odd_frame *table)
{
	for (; table->name != NULL; table++) {
		MUST(n_frames < FRAMES_MAX);
		frames[n_frames++] = *table;
	}
}

static void add_libraries(void)
{
	char *paths = getenv("TDT_TEST_FRAMES"), *rest;

	for (char *path = paths != NULL ? strtok_r(paths, " ", &rest) : NULL; path != NULL;
	     path = strtok_r(NULL, " ", &rest)) {
		void *library = dlopen(path, RTLD_LAZY);

		MUST(library != NULL);
		add(dlsym(library, "odd_frames"));
	}
}

static __attribute__((constructor)) void find_frames(void)
{
	add(odd_frames_o1);
	add(odd_frames_o2);
	add_libraries();
	n_compiled = n_frames;
#if defined(__x86_64__)
	for (unsigned i = 0; i < sizeof odd_assembly / sizeof odd_assembly[0]; i++)
		frames[n_frames++] = odd_assembly[i];
#endif
}

static int all_frames(void)
{
	return n_frames;
}

/* Those that the compilers made, and the first two in assembly. */
static int frames_to_wait_in(void)
{
	return n_frames > n_compiled ? n_compiled + 2 : n_compiled;
}

static void (*chosen)(void (*inner)(void));

/* Saves registers that its caller has its frame by. */
static NOINLINE void innermost(void)
{
	long a = 1, b = 2, c = 3;

#if defined(__x86_64__)
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : : "rbx", "r12", "r13", "r14");
#else
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : : "x19", "x20", "x21", "x22");
#endif
}

static NOINLINE void middle(void)
{
	char room[40];

	__asm__ volatile("" : : "r"(room) : "memory");
	innermost();
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void target(void)
{
	chosen(middle);
	TDT_KEEP_FRAME();
}

CASE(odd_frames)

TEST(a_poll_that_runs_has_all_its_callers_at_every_instruction, .rounds = all_frames)
{
	struct steps_of seen;

	if (steps_unknown() != NULL) {
		printf("# not tried: %s\n", steps_unknown());
		return;
	}
	chosen = frames[_i].call;
	if (frames[_i].wrong != NULL) {
		printf("# not tried: %s: %s\n", frames[_i].name, frames[_i].wrong);
		return;
	}
	seen = steps_follow(target, MOST, frames[_i].name, false);
	steps_show(frames[_i].name, &seen);
	ck_assert_int_gt(seen.running.steps, 10);
	ck_assert_int_eq(seen.running.right, seen.running.steps);
}

/* Whether it takes more than PC and sp to find its frame at some instructions. */
static bool takes_registers(const char *name)
{
	/* Hardened code touches the pages of `large` in a loop, and r11 says where that ends. */
	return strncmp(name, "asm_", 4) == 0 || strncmp(name, "aligned", 7) == 0 ||
	       strcmp(name, "large") == 0 || strcmp(name, "variable_over_itself") == 0 ||
	       strcmp(name, "bound_lazily") == 0;
}

TEST(a_poll_blocked_at_any_instruction_has_its_callers_or_a_mark, .rounds = all_frames)
{
	struct steps_of seen;

	if (steps_unknown() != NULL) {
		printf("# not tried: %s\n", steps_unknown());
		return;
	}
	if (frames[_i].wrong != NULL) {
		printf("# not tried: %s: %s\n", frames[_i].name, frames[_i].wrong);
		return;
	}
	chosen = frames[_i].call;
	seen = steps_follow(target, MOST, frames[_i].name, false);
	ck_assert_int_gt(seen.blocked.steps, 10);
	ck_assert_int_eq(seen.blocked.wrong, 0);
	if (!takes_registers(frames[_i].name))
		ck_assert_msg(seen.blocked.right == seen.blocked.steps, "%s: %ld of %ld",
			      frames[_i].name, seen.blocked.right, seen.blocked.steps);
}

/* --- A leaf that waits --------------------------------------------------------------------- */

static struct tdt_context *context;

static NOINLINE void clones(void)
{
	tdt_waker_drop(tdt_waker_clone(context->waker));
	TDT_KEEP_FRAME();
}

static NOINLINE tdt_poll_t outer_poll(void *state, struct tdt_context *cx)
{
	context = cx;
	chosen(clones);
	chosen(clones);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

TEST(a_leaf_that_waits_has_all_its_callers, .rounds = frames_to_wait_in)
{
	struct tdt_trace *trace;
	char *text;

#if !TDT_WALK_RULES
	printf("# not tried: libunwind, by which the slow walk goes, refuses some of these\n");
	return;
#endif
	chosen = frames[_i].call;
	POLL_NOW(task, future_of(outer_poll, NULL));
	for (int again = 0; again < 2; again++) {
		trace = poll_now_ask(&task, 0);
		text = tree_text(trace);
		ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 2);
		ck_assert_msg(strncmp(text, "outer_poll:", 11) == 0, "%s: %s", frames[_i].name,
			      text);
		ck_assert_msg(strpbrk(text, "~") == NULL && strstr(text, "cut") == NULL, "%s: %s",
			      frames[_i].name, text);
		free(text);
		tdt_trace_free(trace);
	}
}

#if defined(__x86_64__) && TDT_WALK_RULES
/* A walk that waits keeps no register but the frame pointer. */
TEST(a_frame_by_a_register_that_is_not_known_is_cut_and_named_as_that)
{
	enum tdt_cut cut;

	chosen = asm_by_rbx;
	POLL_NOW(task, future_of(outer_poll, NULL));
	TRACE(trace, poll_now_ask(&task, 0));
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 2);
	ck_assert_int_eq(cut, TDT_CUT_UNSUPPORTED);
}
#endif
