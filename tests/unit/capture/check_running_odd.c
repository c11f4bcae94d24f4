// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/running, capture/follow, capture/stack_copy, capture/walk_copy.  Running polls
 * whose stacks are not as a compiler and a thread make them: damaged, with holes, very large, on
 * other memory.  Each is requested while it is blocked, and read from outside; and while it spins,
 * and read by the signal.  What can't be known is marked; nothing takes long, and nothing crashes.
 */

#include <config.h>

#include <ucontext.h>

#include "lib/gate.h"
#include "lib/options.h"
#include "lib/refused.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

/* --- Damage ---------------------------------------------------------------------- */

#define ACTIVATIONS 6

static struct {
	void (*damage)(void);
	uintptr_t *record
	    [ACTIVATIONS]; /* the caller's frame pointer and the return address, of activations */
	unsigned seed;
} damaged;

static NOINLINE void activation(unsigned depth)
{
	damaged.record[depth] = __builtin_frame_address(0);
	if (depth == 0) {
		uintptr_t saved[ACTIVATIONS][2];

		for (unsigned i = 0; i < ACTIVATIONS; i++)
			memcpy(saved[i], damaged.record[i], sizeof saved[i]);
		damaged.damage();
		gate_stay();
		for (unsigned i = 0; i < ACTIVATIONS; i++)
			memcpy(damaged.record[i], saved[i], sizeof saved[i]);
	} else {
		activation(depth - 1);
	}
	USE(&depth);
}

static tdt_poll_t damaged_poll(void *state, struct tdt_context *cx)
{
	activation(ACTIVATIONS - 1);
	USE(cx);
	return TDT_READY;
}

static void loop(void)
{
	damaged.record[2][0] = (uintptr_t)damaged.record[2];
}

static void no_code(void)
{
	damaged.record[3][1] = 0x1234;
}

static void out_of_the_stack(void)
{
	damaged.record[2][0] = (uintptr_t)&damaged;
}

SUITE_SKIP(stuck_impossible())

CASE(running_odd)

TEST(a_damaged_stack_is_cut_and_marked, .to = 6)
{
	static void (*const damages[])(void) = { loop, no_code, out_of_the_stack };

	damaged.damage = damages[_i / 2];
	TRACE(trace, gate_ask(damaged_poll, NULL, _i % 2, NULL));
	TEXT(path, stuck_path(trace));
	/* What is no code of any module may have been made at run time: that is guessed through. */
	ck_assert_msg(strncmp(path, "cut:", 4) == 0 || strchr(path, '~') != NULL, "%s", path);
	ck_assert_msg(strstr(path, gate_seen(_i % 2, "gate_stay")) != NULL, "%s", path);
}

static uintptr_t garbage(void)
{
	uintptr_t near = (uintptr_t)damaged.record[random_below(&damaged.seed, ACTIVATIONS)];

	switch (random_below(&damaged.seed, 6)) {
	case 0:
		return (uintptr_t)random_below(&damaged.seed, UINT32_MAX) << 20;
	case 1:
		return random_below(&damaged.seed, 65536);
	case 2:
		return near + random_below(&damaged.seed, 4096) - 2048;
	case 3:
		return near + (random_below(&damaged.seed, 512) - 256) * UINT64_C(8);
	case 4:
		return (uintptr_t)damaged_poll + random_below(&damaged.seed, 65536);
	default:
		return (uintptr_t)qsort + random_below(&damaged.seed, 1000000);
	}
}

static void spread_garbage(void)
{
	for (unsigned n = 1 + random_below(&damaged.seed, 3); n > 0; n--)
		damaged.record[random_below(&damaged.seed, ACTIVATIONS)]
			      [random_below(&damaged.seed, 2)] = garbage();
}

TEST(no_garbage_on_the_stack_does_harm)
{
	damaged.seed = seed_of_run();
	damaged.damage = spread_garbage;
	for (int round = 0; round < 100; round++)
		tdt_trace_free(gate_ask(damaged_poll, NULL, round % 2, NULL));
}

/* --- Stale frames -------------------------------------------------------------------- */

/*
 * On its last call frames of the calls before lie in `room`: of this very function, and leading to
 * the top.
 */
static NOINLINE void stale_stay(bool stays)
{
	char room[1500];

	USE(room);
	if (stays) {
		atomic_fetch_add(&gate.entered, 1);
		MUST(read(gate.pipe[0], room, 1) == 1);
	}
	USE(room);
}

static NOINLINE void stale_calls(bool stays, unsigned depth)
{
	char room[64];

	USE(room);
	if (depth > 0)
		stale_calls(stays, depth - 1);
	else
		stale_stay(stays);
	USE(room);
}

static tdt_poll_t stale_poll(void *state, struct tdt_context *cx)
{
	for (unsigned depth = 8; depth > 0; depth--)
		stale_calls(false, depth);
	stale_calls(true, 0);
	USE(cx);
	return TDT_READY;
}

TEST(frames_of_calls_that_are_over_are_not_taken_for_live_ones)
{
	TRACE(trace, gate_ask(stale_poll, NULL, false, NULL));
	const char *want = "stale_poll stale_calls stale_stay ";
	TEXT(path, stuck_path(trace));

#if TDT_WALK_RULES && !SANITIZED
	ck_assert_msg(strncmp(path, want, strlen(want)) == 0, "%s", path);
#else
	ck_assert_msg(strstr(path, want) != NULL, "%s", path);
#endif
}

/*
 * The caller of `room_stay` has called another function, which jumps to any.  And where the record
 * of `room_stay` is, its instructions don't tell.  The traced future's own record, which leads to
 * the top too, is not taken for it.
 */
void jump_by_pointer(size_t n, void (*to)(size_t n));

#if defined(__x86_64__)
#define JUMP "jmp *%rsi"
#else
#define JUMP "br x1"
#endif
__asm__(".text\n"
	".type jump_by_pointer, %function\n"
	"jump_by_pointer:\n"
	".cfi_startproc\n" JUMP "\n"
	".cfi_endproc\n"
	".size jump_by_pointer, . - jump_by_pointer\n");

static NOINLINE void room_stay(size_t n)
{
	char *room = __builtin_alloca(n);

	USE(room);
	atomic_fetch_add(&gate.entered, 1);
	MUST(read(gate.pipe[0], room, 1) == 1);
	USE(room);
}

static tdt_poll_t jumping_poll(void *state, struct tdt_context *cx)
{
	jump_by_pointer(100 + (size_t)random_below(&damaged.seed, 100), room_stay);
	USE(cx);
	return TDT_READY;
}

TEST(a_function_that_may_have_been_jumped_to_keeps_its_callers)
{
	TRACE(trace, gate_ask(jumping_poll, NULL, false, NULL));
	TEXT(path, stuck_path(trace));

	ck_assert_msg(strstr(path, "jumping_poll") != NULL, "%s", path);
	ck_assert_msg(strstr(path, "room_stay") != NULL, "%s", path);
}

/* --- Memory ------------------------------------------------------------------------------- */

#define STACK_SIZE ((size_t)32 << 20)

static void *stack;
static pthread_attr_t on_stack;

static void make_stack(void)
{
	stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(stack, MAP_FAILED);
	pthread_attr_init(&on_stack);
	ck_assert_int_eq(pthread_attr_setstack(&on_stack, stack, STACK_SIZE), 0);
}

static void free_stack(void)
{
	pthread_attr_destroy(&on_stack);
	munmap(stack, STACK_SIZE);
}

static NOINLINE void below(char *room)
{
	gate_stay();
	USE(room);
}

static tdt_poll_t hole_poll(void *state, struct tdt_context *cx)
{
	char room[65536], *page = (char *)(((uintptr_t)room + 32768) & ~(uintptr_t)4095);

	USE(room);
	MUST(mprotect(page, 4096, PROT_NONE) == 0);
	below(room);
	MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	USE(cx);
	return TDT_READY;
}

TEST(a_hole_in_the_stack_ends_it, .to = 2, .skip = reading_refused)
{
	struct tdt_trace *trace;
	char *path;

	make_stack();
	trace = gate_ask(hole_poll, NULL, _i, &on_stack);
	if (!SANITIZED)
		ck_assert_int_eq(gate_cut(trace), TDT_CUT_CORRUPT);
	path = stuck_path(trace);
	ck_assert_msg(strncmp(path, "cut:", 4) == 0 &&
			  strstr(path, gate_seen(_i, "gate_stay")) != NULL,
		      "%s", path);
	free(path);
	tdt_trace_free(trace);
	free_stack();
}

static NOINLINE void deeper(unsigned levels)
{
	char room[100000];

	USE(room);
	if (levels > 0)
		deeper(levels - 1);
	else
		gate_stay();
	USE(room);
}

static tdt_poll_t deep_poll(void *state, struct tdt_context *cx)
{
	deeper(100);
	USE(cx);
	return TDT_READY;
}

static void expect_the_innermost(const struct tdt_trace *trace)
{
	TEXT(path, stuck_path(trace));

	ck_assert_int_eq(gate_cut(trace), TDT_CUT_LIMIT);
	ck_assert_msg(strstr(path, "deeper deeper deeper ") != NULL &&
			  strstr(path, "gate_stay") != NULL,
		      "%s", path);
}

TEST(ten_megabytes_of_stack_are_cut_at_the_limit, .to = 2)
{
	struct tdt_trace *trace;

	make_stack();
	trace = gate_ask(deep_poll, NULL, _i, &on_stack);
	if (gate_seen(_i, "deeper")[0] != '\0')
		expect_the_innermost(trace);
	tdt_trace_free(trace);
	free_stack();
}

/* --- Other stacks ---------------------------------------------------------------------------- */

static ucontext_t host, coroutine;

static void on_coroutine(void)
{
	gate_stay();
	USE(&host);
}

static tdt_poll_t coroutine_poll(void *state, struct tdt_context *cx)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = state;
	coroutine.uc_stack.ss_size = 256 << 10;
	coroutine.uc_link = &host;
	makecontext(&coroutine, on_coroutine, 0);
	swapcontext(&host, &coroutine);
	USE(cx);
	return TDT_READY;
}

/*
 * Nobody can tell it from a scheduler that the coroutine has switched to in the middle of its poll.
 */
TEST(a_poll_gone_to_a_stack_nobody_tells_of_is_not_read, .to = 2)
{
	void *memory = malloc(256 << 10);

	ck_assert_int_eq(gate_ask_in_vain(coroutine_poll, memory, _i), -ENOTSUP);
	free(memory);
}

/* The handler of a signal that is raised in the poll. */
static void stay_in_handler(int signal)
{
	gate_stay();
	USE(&signal);
}

static tdt_poll_t raising_poll(void *state, struct tdt_context *cx)
{
	stack_t other = { .ss_sp = state, .ss_size = 256 << 10 };

	MUST(sigaltstack(&other, NULL) == 0);
	raise(SIGUSR1);
	other.ss_flags = SS_DISABLE;
	sigaltstack(&other, NULL);
	USE(cx);
	return TDT_READY;
}

TEST(a_poll_in_a_handler_on_a_signal_stack_is_not_read, .to = 2)
{
	struct sigaction action = { .sa_handler = stay_in_handler, .sa_flags = SA_ONSTACK };
	void *memory;

	NOT_TRIED_IF(TSAN && _i, "ThreadSanitizer delivers no signal in a handler");
	memory = malloc(256 << 10);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	ck_assert_int_eq(gate_ask_in_vain(raising_poll, memory, _i), -ENOTSUP);
	free(memory);
}

/* The whole task in a handler: it is all on the signal stack. */
static struct tdt_future inner_future;
static struct tdt_context *inner_cx;

static tdt_poll_t inner_poll(void *state, struct tdt_context *cx)
{
	gate_stay();
	USE(cx);
	return TDT_READY;
}

static void poll_in_handler(int signal)
{
	tdt_future_poll(&inner_future, inner_cx);
}

static tdt_poll_t polls_in_handler(void *state, struct tdt_context *cx)
{
	inner_cx = cx;
	return raising_poll(state, cx);
}

TEST(a_task_polled_on_a_signal_stack_is_whole, .to = 2)
{
	struct sigaction action = { .sa_handler = poll_in_handler, .sa_flags = SA_ONSTACK };
	struct stuck_task task = { 0 };
	struct tdt_traced inner;
	void *memory;

	NOT_TRIED_IF(SANITIZED, "a sanitizer's read() can't be left without a guess, nor its "
				"signals come in a handler");
	memory = malloc(256 << 10);
	inner = tdt_traced(((struct tdt_future){ NULL, inner_poll, drop_nothing }));
	inner_future = inner.future;
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	gate_close(_i);
	stuck_task_start(&task, polls_in_handler, memory);
	gate_await();
	stuck_task_settle(&task, _i);
	TRACE(trace, backtrace_timed(inner.handle, INT64_C(30000000000)));
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_RUNNING);
	TEXT(path, stuck_path(trace));
	ck_assert_msg(strncmp(path, "inner_poll gate_stay", 20) == 0, "%s", path);
	ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
	gate_open();
	stuck_task_end(&task);
	end_traced(&inner);
	free(memory);
}

/* --- vfork ------------------------------------------------------------------------------------ */

static tdt_poll_t vfork_poll(void *state, struct tdt_context *cx)
{
	pid_t child;

	atomic_fetch_add(&gate.entered, 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	child = vfork();
#pragma GCC diagnostic pop
	if (child == 0) {
		while (!atomic_load(&gate.is_open)) /* memory is shared */
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		_exit(0);
	}
	MUST(child > 0);
	waitpid(child, NULL, 0);
	USE(cx);
	return TDT_READY;
}

TEST(a_thread_in_vfork_gives_what_can_be_known)
{
	NOT_TRIED_IF(TSAN, "ThreadSanitizer makes a fork of it");
	TRACE(trace, gate_ask(vfork_poll, NULL, false, NULL));
	ck_assert_str_eq(tdt_trace_info(trace)->syscall, "vfork");
}
