// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers registry/task_info, capture/fiber.  A record changes while it is read: after each
 * instruction of the reader once, and between any two of the poller; and a process forks while a
 * thread gives memory back.  The processor is made to trap after every instruction (x86-64), and
 * the handler plays the other thread.
 */

#include <sys/syscall.h>
#include <ucontext.h>

#include <tdt/integrate/hooks.h>

#include "capture/fiber.h"
#include "lib/test.h"
#include "registry/handle.h"
#include "registry/registry.h"

/* ThreadSanitizer's runtime, which the handler would enter again, locks itself out. */
#if SANITIZED
SUITE_SKIP("a sanitizer's code would be stepped, too")
#elif !defined(__x86_64__)
SUITE_SKIP("only x86-64 is stepped")
#else

#define TRAP 0x100 /* in the flags */
#define STEPS 3000

static int left; /* instructions before `act` is called once; it is called after each if `often` */
static bool often, stepping;
static void (*act)(void);
static long acted;

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	if (stepping && (often || left-- == 0)) {
		act();
		acted++;
	}
	if (stepping && (often || left >= 0))
		*flags |= TRAP;
	else
		*flags &= ~(greg_t)TRAP;
}

static void step(bool on)
{
	stepping = on;
	if (on)
		raise(SIGTRAP); /* the handler goes on from there */
}

static void setup(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
}

/* --- Tasks ---------------------------------------------------------------------------- */

static uint64_t number;
static struct tdt_traced task;
static struct tdt_task_record copy;
static struct tdt_handle *place;

/* Says something else in each poll. */
static tdt_poll_t say(void *state, struct tdt_context *cx)
{
	uint64_t *said = state;

	++*said;
	tdt_leaf_waits_on(TDT_WAIT_OTHER, (void *)(uintptr_t)*said, *said);
	return TDT_PENDING;
}

static uint64_t said;

static void begin(void)
{
	struct tdt_task_attr attr = { .size = sizeof attr };

	attr.id = ++number;
	attr.file = (const char *)(uintptr_t)number;
	attr.line = attr.column = (uint32_t)number;
	said = 0;
	task = tdt_traced_with((struct tdt_future){ &said, say, drop_nothing }, &attr);
	MUST(task.handle != NULL);
	place = task.handle;
}

static void end(void)
{
	end_traced(&task);
}

static void replace(void)
{
	end();
	begin();
}

static void poll_task(void)
{
	struct tdt_context cx = { &idle_waker };

	MUST(tdt_future_poll(&task.future, &cx) == TDT_PENDING);
}

static void expect_true(void)
{
	MUST(copy.file == copy.id && copy.line == copy.id && copy.column == copy.id);
	if (copy.state == TDT_TASK_RECORD_IDLE && copy.wait_count != 0 &&
	    copy.wait_polls == (uint32_t)copy.polls)
		MUST(copy.wait_object == copy.polls && copy.wait_owner == copy.polls);
}

/* Whether steps can be made here, by what came of many. */
static bool could(void)
{
	if (acted == 0)
		printf("# not tried: no traps here\n");
	return acted != 0;
}

CASE(steps, .setup = setup)

/* 0: the task is polled meanwhile, 1: it ends, and another takes its place */
TEST(a_copy_is_true_whenever_the_record_changes, .to = 2)
{
	int copied = 0;

	act = _i == 0 ? poll_task : replace;
	for (int i = 0; i < STEPS; i++) {
		begin();
		poll_task();
		left = i;
		step(true);
		copied += tdt__registry_read(place, &copy);
		step(false);
		expect_true();
		end();
		if (left >= 0)
			break; /* it takes no more instructions */
	}
	if (could())
		ck_assert_int_gt(copied, 0);
}

static void look(void)
{
	if (tdt__registry_read(place, &copy))
		expect_true();
}

TEST(a_copy_is_true_in_the_middle_of_every_change)
{
	act = look;
	often = true;
	begin();
	for (int i = 0; i < 20; i++) {
		step(true);
		poll_task();
		step(false);
		MUST(tdt__registry_read(place, &copy) && copy.wait_count == 1 &&
		     copy.wait_object == copy.polls);
		step(true);
		replace();
		step(false);
	}
	end();
	could();
}

static struct tdt_fiber *in_use;

/* In a child that is made now. */
static void take_in_child(void)
{
	pid_t child = (pid_t)syscall(SYS_fork); /* a thread that forks has handlers, this one not */
	int status;

	if (child == 0)
		_exit(tdt__fiber_take() == in_use);
	MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

TEST(a_child_of_fork_takes_no_fiber_that_is_in_use)
{
	struct tdt_fiber *given = tdt__fiber_take();

	in_use = tdt__fiber_take();
	tdt__fiber_give(in_use); /* it was where the other one will be */
	MUST(tdt__fiber_take() == in_use);
	act = take_in_child;
	often = true;
	step(true);
	tdt__fiber_give(given);
	step(false);
	could();
}

#endif
