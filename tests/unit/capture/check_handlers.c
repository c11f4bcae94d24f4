// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/interrupt, dump/dump_signal.  How much of an alternate stack the library's two
 * signal handlers take when they run for the first time in a process: little more than a handler
 * that does nothing, which takes the kernel's frame.  A function that is bound when it is first
 * called would take all the registers it saves besides.
 *
 * This suite is built twice: with the shared library, and with the static one in a program that
 * binds late.
 */

#include <sys/auxv.h>

#include "lib/stuck_task.h"
#include "lib/test.h"

#define MOST 1024 /* more than by the empty handler: what the manual says */

/* --- A stack whose use shows ----------------------------------------------------------- */

#define STACK_SIZE (256 << 10)
#define PATTERN UINT64_C(0x5eed0f5eed0f5eed)

static uint64_t stack[STACK_SIZE / sizeof(uint64_t)];

static void paint(void)
{
	for (size_t i = 0; i < STACK_SIZE / sizeof *stack; i++)
		stack[i] = PATTERN;
}

static size_t used(void)
{
	size_t i = 0;

	while (i < STACK_SIZE / sizeof *stack && stack[i] == PATTERN)
		i++;
	return STACK_SIZE - i * sizeof *stack;
}

static void have_stack(void)
{
	stack_t ours = { .ss_sp = stack, .ss_size = STACK_SIZE };

	MUST(sigaltstack(&ours, NULL) == 0);
	paint();
}

static void empty(int signal)
{
}

/* What a handler that does nothing takes, on a stack that is not used yet. */
static size_t used_by_empty(void)
{
	struct sigaction action = { .sa_handler = empty, .sa_flags = SA_ONSTACK };
	size_t size;

	MUST(sigaction(SIGUSR2, &action, NULL) == 0);
	MUST(raise(SIGUSR2) == 0);
	size = used();
	paint();
	return size;
}

static void expect_little(const char *handler, size_t took, size_t took_empty)
{
	printf("# %s: %zu bytes; an empty one: %zu; the kernel's frame: %lu\n", handler, took,
	       took_empty, getauxval(AT_MINSIGSTKSZ));
	ck_assert_uint_gt(took_empty, 0);
	ck_assert_uint_gt(took, 0);
	ck_assert_uint_le(took, took_empty + MOST);
}

static struct {
	atomic_bool over;
	size_t by_empty, by_ours;
} spun;

static tdt_poll_t spinning_poll(void *state, struct tdt_context *cx)
{
	have_stack();
	spun.by_empty = used_by_empty();
	atomic_store((atomic_bool *)state, true);
	while (!atomic_load(&spun.over))
		;
	spun.by_ours = used();
	return TDT_READY;
}

SUITE_SKIP(SANITIZED || in_valgrind()
	       ? "a sanitizer or valgrind has handlers of its own before ours"
	       : NULL)

CASE(handlers)

TEST(a_poll_that_is_read_takes_little_of_the_signal_stack, .skip = stuck_impossible)
{
	struct stuck_task task = { 0 };
	atomic_bool ready = false;

	stuck_task_start(&task, spinning_poll, &ready);
	while (!atomic_load(&ready))
		usleep(1000);
	stuck_task_settle(&task, true);
	tdt_trace_free(stuck_task_ask(&task));
	atomic_store(&spun.over, true);
	stuck_task_end(&task);
	expect_little("a poll that is read", spun.by_ours, spun.by_empty);
}

TEST(a_dump_on_a_signal_takes_little_of_the_signal_stack)
{
	size_t by_empty;

	have_stack();
	by_empty = used_by_empty();
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	expect_little("a dump on a signal", used(), by_empty);
}
