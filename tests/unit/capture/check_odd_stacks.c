// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/capture, capture/find_fp.  Captures of stacks that are not as a compiler and a
 * thread make them: on other memory, through code without unwind information, damaged.  What can't
 * be known is a best guess and marked so, or the tree is truncated there.
 */

#include <config.h>

#include <ucontext.h>

#include "lib/expected.h"
#include "lib/poll_now.h"
#include "lib/test.h"

static ucontext_t host, coroutine;
static struct {
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	struct tdt_future *future;
	struct tdt_context *cx;
	tdt_poll_t result;
	void (*callback)(
	    void); /* what the coroutine wants done on the host's stack; NULL: it has ended */
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
		stack = mmap(NULL, COROUTINE_BYTES + 2 * guard, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne(stack, MAP_FAILED);
		ck_assert_int_eq(mprotect(stack + guard, COROUTINE_BYTES, PROT_READ | PROT_WRITE),
				 0);
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
	switched.poll = chain;
	switched.future = NULL;
	switched.cx = cx;
	switch_to();
	return switched.result;
}

CASE(odd_stacks)

TEST(a_leaf_on_another_stack_is_cut_there)
{
	enum tdt_cut cut;
	POLL_NOW(task, future_of(polls_leaf_on_coroutine, NULL));
	TRACE(trace, poll_now_ask(&task, 0));

	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 1);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	TEXT(text, tree_text(trace));
	ck_assert(strncmp(text, "cut 4\n leaf:", 12) == 0);
}

/* A task that lives on a coroutine's stack altogether. */
static tdt_poll_t poll_on_coroutine(void *state, struct tdt_context *cx)
{
	switched.future = state;
	switched.cx = cx;
	switch_to();
	return switched.result;
}

TEST(a_task_polled_on_a_coroutine_is_exact)
{
	struct tdt_trace *traces[2];
	enum tdt_cut cut;
	struct tdt_traced traced = tdt_traced(future_of(branches, NULL));
	POLL_NOW(task, future_of(poll_on_coroutine, &traced.future));

	expect_begin();
	ask_both(&task, traced.handle, task.traced.handle, traces);
	expect_same(traces[0]);
	/* And the one whose own frame is on another stack gets it up to there. */
	ck_assert_uint_eq(tdt_trace_info(traces[1])->leaves, 5);
	tdt_trace_stack(traces[1], 4, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	TEXT(text, tree_text(traces[1]));
	ck_assert(strncmp(text, "cut 4\n branches:", 16) == 0);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	end_traced(&traced); /* before the task whose waker it has */
}

/* Both ways at once: a task on a coroutine has its leaf called on the thread's stack. */
static NOINLINE void leaf_for_coroutine(void)
{
	leaf(NULL, switched.cx);
}

static tdt_poll_t goes_back(void *state, struct tdt_context *cx)
{
	switched.cx = cx;
	switched.callback = leaf_for_coroutine;
	swapcontext(&coroutine, &host);
	return TDT_PENDING;
}

TEST(a_leaf_back_on_the_first_stack_is_cut_in_the_task_on_the_other)
{
	struct tdt_trace *traces[2];
	enum tdt_cut cut;
	struct tdt_traced traced = tdt_traced(future_of(goes_back, NULL));
	POLL_NOW(task, future_of(poll_on_coroutine, &traced.future));

	ask_both(&task, traced.handle, task.traced.handle, traces);
	ck_assert_uint_eq(tdt_trace_info(traces[0])->leaves_lost, 0);
	ck_assert_uint_gt(tdt_trace_stack(traces[0], 0, NULL, 0, &cut), 0);
	ck_assert_int_eq(cut, TDT_CUT_STACK);
	ck_assert_uint_eq(nodes_of(traces[1], "poll_on_coroutine"), 1);
	tdt_trace_stack(traces[1], 0, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	end_traced(&traced); /* before the task whose waker it has */
}

/* --- A task on a signal stack ---------------------------------------------------------- */

static struct poll_now *signalled;

static void poll_in_handler(int number)
{
	poll_now(signalled);
}

static const char *no_allocation_in_handlers(void)
{
	return TSAN ? "ThreadSanitizer allows no allocation in a signal handler" : NULL;
}

TEST(a_task_polled_on_a_signal_stack_is_exact, .skip = no_allocation_in_handlers)
{
	stack_t stack = { .ss_size = 256 << 10 };
	struct sigaction action = { .sa_handler = poll_in_handler, .sa_flags = SA_ONSTACK };
	struct tdt_trace *trace = NULL;
	struct poll_now task, requester;

	stack.ss_sp = malloc(stack.ss_size);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	poll_now_start(&task, future_of(branches, NULL));
	task.held = true;
	signalled = &task;
	poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace, NULL));
	expect_begin();
	raise(SIGUSR1);
	ck_assert_int_eq(requester.result, TDT_READY);
	expect_same(trace);
	tdt_trace_free(trace);
	poll_now_end(&requester);
	poll_now_end(&task);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
}

/* --- Code without unwind information (x86-64) ------------------------------------------------- */

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

	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
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

TEST(assembly_with_a_frame_pointer_is_guessed_through)
{
	TRACE(trace, ask_bare(bare_with_fp));
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
}

TEST(assembly_without_a_frame_pointer_is_cut)
{
	static void (*const functions[])(struct tdt_context * cx) = { bare_without_fp,
								      bare_with_data_in_fp };

	for (int i = 0; i < 2; i++) {
		TRACE(trace, ask_bare(functions[i]));
		enum tdt_cut cut;

		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 2);
		ck_assert_int_eq(cut, TDT_CUT_NO_INFO);
		ck_assert_uint_eq(lines_with(trace, "cut 2"), 1);
		ck_assert_uint_eq(lines_with(trace, "~"), 0);
	}
}

/* push %rbp; mov %rsp, %rbp; sub $size, %rsp; mov $function, %rax; call *%rax; leave; ret */
static void make_thunk(unsigned char *code, uint8_t size, void (*function)(struct tdt_context *cx))
{
	static const unsigned char template[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0,
						  0x48, 0xb8, 0,    0,    0,    0,    0,    0,
						  0,    0,    0xff, 0xd0, 0xc9, 0xc3 };

	memcpy(code, template, sizeof template);
	code[7] = size;
	memcpy(code + 10, &function, sizeof function);
}

TEST(code_made_at_run_time_is_guessed_and_never_remembered)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*thunk)(struct tdt_context * cx);

	NOT_TRIED_IF(code == MAP_FAILED, "no memory may be written and executed");
	memcpy(&thunk, &code, sizeof thunk);
	for (int i = 0; i < 8; i++) {
		make_thunk(code, (uint8_t)(16 * i), clone_here);
		TRACE(trace, ask_bare(thunk));
#if TDT_WALK_RULES
		ck_assert_uint_eq(lines_with(trace, "calls_bare:"), 1);
		ck_assert_uint_eq(lines_with(trace, "~0x"), 1);
#else
		ck_assert_uint_eq(lines_with(trace, "cut 2"), 1);
#endif
	}
	munmap(code, 4096);
}
#endif

/* --- Damaged stacks --------------------------------------------------------------------------- */

#define ACTIVATIONS 6

static struct {
	void (*damage)(void);
	uintptr_t *record
	    [ACTIVATIONS]; /* the caller's frame pointer and the return address, of activations */
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

TEST(a_frame_that_leads_out_of_the_stack_is_cut)
{
	static void (*const damages[])(void) = { clear_frame_pointer, jump_out_of_stack,
						 jump_back };

	damaged.damage = NULL;
	POLL_NOW(task, future_of(damaged_poll, NULL));
	for (int i = 0; i < 3; i++) {
		enum tdt_cut cut;

		damaged.damage = damages[i];
		TRACE(trace, poll_now_ask(&task, 0));
		check_second(trace);
		ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 5);
		ck_assert_int_eq(cut, TDT_CUT_CORRUPT);
	}
}

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

TEST(no_garbage_on_the_stack_does_harm)
{
	damaged.random = 0x74647421;
	damaged.damage = NULL;
	POLL_NOW(task, future_of(damaged_poll, NULL));
	damaged.damage = spread_garbage;
	for (damaged.round = 0; damaged.round < 10000; damaged.round++) {
		TRACE(trace, poll_now_ask(&task, 0));

		check_second(trace);
	}
}
