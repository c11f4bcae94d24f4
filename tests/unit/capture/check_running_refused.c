// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/running, host/peek.  Running polls that can't be read because something is
 * refused: memory, descriptors, an answer of the thread that was interrupted.  The requester learns
 * it in time, and the next requester gets an answer.
 */

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/running.h"
#include "host/peek.h"
#include "host/readable.h"
#include "lib/gate.h"
#include "lib/options.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

#define SOON UINT64_C(200000000)
#define LATE UINT64_C(30000000000)

static bool know_stack;

static tdt_poll_t staying_poll(void *state, struct tdt_context *cx)
{
	uintptr_t here = (uintptr_t)&here;

	if (know_stack)
		tdt__stack_readable(here, here + 1); /* as the first capture of a thread does */
	gate_stay();
	__asm__ volatile("" : : "r"(cx) : "memory");
	return TDT_READY;
}

static struct stuck_task task;

static void start(bool spin)
{
	gate_close(spin);
	task = (struct stuck_task){ 0 };
	stuck_task_start(&task, staying_poll, NULL);
	gate_await();
	stuck_task_settle(&task, spin);
}

static void end(void)
{
	gate_open();
	stuck_task_end(&task);
}

/* Read the poll, at once.  Returns 0 or a negative errno. */
static int read_now(uint64_t ns)
{
	int error = 0;
	struct tdt__capture *capture =
	    tdt__running(task.traced.handle, 1, 100, tdt__clock() + ns, &error);

	if (capture == NULL)
		return error;
	tdt__capture_unref(capture);
	return 0;
}

/*
 * The same once the handler of the request before is over: its requester may be answered sooner.
 * ThreadSanitizer takes two signals in quick succession for one, so a requester that waits long has
 * to send another now and then.
 */
static int read_within(uint64_t ns)
{
	uint64_t end = tdt__clock() + ns, once = SIGNALS_ARE_LATE && ns > SOON ? SOON : ns;
	int error;

	while (error = read_now(once),
	       error == -EPERM || (error == -ETIMEDOUT && once < ns && tdt__clock() < end))
		usleep(1000);
	return error;
}

/* --- Memory ------------------------------------------------------------------------- */

static int read_late(void *argument)
{
	return read_within(LATE);
}

SUITE_SKIP(stuck_impossible())

CASE(running_refused, .teardown = end)

TEST(every_lack_of_memory_is_told, .to = 2)
{
	start(_i);
	ck_assert_int_eq(read_within(LATE), 0); /* what is learned on the way is kept */
	no_memory_each(read_late, NULL, 3);
	ck_assert_int_eq(read_within(LATE), 0);
}

/* --- Descriptors ---------------------------------------------------------------------- */

TEST(without_a_descriptor_it_is_not_read_and_nothing_is_sent, .to = 2)
{
	struct rlimit limit, none;
	struct tdt_trace *trace;

	start(_i);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(read_now(LATE), -EPERM);
	trace = backtrace_timed(task.traced.handle, SOON);
	ck_assert_ptr_null(trace);
	ck_assert_int_eq(errno, ETIMEDOUT);
	ck_assert_int_eq(stuck_signal(), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(read_within(LATE), 0);
}

/* --- A thread that is held up in the handler --------------------------------------------- */

size_t __real_tdt__peek(void *to, uintptr_t address, size_t size);

static atomic_bool hold, hold_blocked, refuse;
static atomic_int held, refused;

size_t __wrap_tdt__peek(void *to, uintptr_t address, size_t size)
{
	if (atomic_load(&hold) && (unsigned)gettid() == atomic_load(&task.tid)) {
		atomic_fetch_add(&held, 1);
		while (atomic_load(&hold))
			if (atomic_load(&hold_blocked))
				usleep(100000);
	}
	if (atomic_load(&refuse) && (unsigned)gettid() == atomic_load(&task.tid)) {
		atomic_fetch_add(&refused, 1);
		return 0;
	}
	return __real_tdt__peek(to, address, size);
}

TEST(a_thread_that_is_held_up_in_the_handler_is_not_waited_for)
{
	start(true);
	/* More often than there are slots. */
	for (int round = 1; round <= 20 || atomic_load(&held) == 0; round++) {
		atomic_store(&hold, true);
		ck_assert_int_eq(read_within(SOON / 10), -ETIMEDOUT);
		/* It may have been too late even to get there. */
		atomic_store(&hold, false);
		ck_assert_int_eq(read_within(LATE), 0);
	}
}

/* Whether it runs there or is blocked there, the poll is elsewhere. */
TEST(who_asks_a_thread_in_the_handler_is_told_that_it_takes_no_signal, .to = 2)
{
	start(true);
	atomic_store(&hold_blocked, _i);
	atomic_store(&hold, true);
	while (atomic_load(&held) == 0)
		ck_assert_int_ne(read_now(SOON), 0);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(read_now(LATE), -EPERM);
	atomic_store(&hold, false);
	ck_assert_int_eq(read_within(LATE), 0);
}

/* --- A thread whose memory the kernel does not copy --------------------------------------- */

TEST(where_the_kernel_copies_no_memory_the_handler_copies_its_own_stack)
{
	know_stack = true;
	start(true);
	atomic_store(&refuse, true);
	for (int i = 0; i < 10 || atomic_load(&refused) == 0; i++)
		ck_assert_int_eq(read_within(LATE), 0);
	atomic_store(&refuse, false);
}
