// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers runtime/ready.  Leaves that wait for descriptors, and for signals. */

#include <config.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "lib/driven.h"
#include "lib/futures.h"
#include "lib/test.h"
#include "runtime/tcp.h"

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };
static struct tdt_tcp *from, *to; /* a pipe */
static int error, signal_number;
static const int signals[] = { SIGTERM, SIGHUP, 0 };

static void setup(void)
{
	sigset_t blocked;
	int ends[2];

	driven_setup();
	test_waker_init(&waker);
	ck_assert_int_eq(pipe(ends), 0);
	from = tdt_tcp_adopt(ends[0]);
	to = tdt_tcp_adopt(ends[1]);
	ck_assert_ptr_nonnull(from);
	ck_assert_ptr_nonnull(to);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	error = signal_number = 1;
}

static void teardown(void)
{
	tdt_tcp_free(from);
	tdt_tcp_free(to);
	driven_teardown();
}

CASE(descriptors, .setup = setup, .teardown = teardown)

TEST(an_adopted_descriptor_does_not_block_and_is_closed_on_exec)
{
	ck_assert_int_eq(fcntl(from->socket.fd, F_GETFD), FD_CLOEXEC);
	ck_assert(fcntl(from->socket.fd, F_GETFL) & O_NONBLOCK);
	errno = 0;
	ck_assert_ptr_null(tdt_tcp_adopt(-1));
	ck_assert_int_eq(errno, EBADF);
	errno = 0;
	ck_assert_ptr_null(tdt_tcp_listener_adopt(-1));
	ck_assert_int_eq(errno, EBADF);
}

/* Again and again, though what is read or written meanwhile is not told to the library. */
TEST(who_waits_for_a_descriptor_is_woken_when_it_is_ready)
{
	char some[65536] = { 0 };

	for (int i = 0; i < 3; i++) {
		struct driven *reader = driven_new(tdt_tcp_ready(from, false, &error));

		ck_assert_uint_eq(driven_poll(reader), TDT_PENDING);
		while (write(to->socket.fd, some, sizeof some) > 0)
			;
		driven_wait(reader);
		ck_assert_uint_eq(driven_poll(reader), TDT_READY);
		ck_assert_int_eq(error, 0);
		driven_end(reader);
		DRIVEN(writer, driven_new(tdt_tcp_ready(to, true, &error)));
		ck_assert_uint_eq(driven_poll(writer), TDT_PENDING);
		while (read(from->socket.fd, some, sizeof some) > 0)
			;
		driven_wait(writer);
		ck_assert_uint_eq(driven_poll(writer), TDT_READY);
		ck_assert_int_eq(error, 0);
	}
}

TEST(what_is_ready_already_needs_no_wait)
{
	error = 1;
	ck_assert_uint_eq(drive(tdt_tcp_ready(to, true, &error)), TDT_READY);
	ck_assert_int_eq(error, 0);
	tdt_tcp_free(to);
	to = NULL;
	error = 1;
	ck_assert_uint_eq(drive(tdt_tcp_ready(from, false, &error)), TDT_READY); /* the end */
	ck_assert_int_eq(error, 0);
}

TEST(only_one_waits_for_a_side)
{
	struct tdt_future first = tdt_tcp_ready(from, false, &error);
	int other = 1;

	ck_assert_uint_eq(tdt_future_poll(&first, &cx), TDT_PENDING);
	ck_assert_uint_eq(drive(tdt_tcp_ready(from, false, &other)), TDT_READY);
	ck_assert_int_eq(other, -EBUSY);
	tdt_future_drop(&first);
	ck_assert_int_eq(waker.alive, 0);
}

static void send_to_itself(int number)
{
	ck_assert_int_eq(kill(getpid(), number), 0);
}

TEST(a_signal_wakes_who_waits_for_it, .to = 2)
{
	int number = _i == 0 ? SIGTERM : SIGHUP;
	DRIVEN(task, driven_new(tdt_signal_wait(signals, &signal_number)));

	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	send_to_itself(number);
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert_int_eq(signal_number, number);
}

TEST(a_signal_that_came_before_is_taken_once)
{
	struct tdt_future again;

	send_to_itself(SIGTERM);
	ck_assert_uint_eq(drive(tdt_signal_wait(signals, &signal_number)), TDT_READY);
	ck_assert_int_eq(signal_number, SIGTERM);
	again = tdt_signal_wait(signals, &signal_number);
	ck_assert_uint_eq(tdt_future_poll(&again, &cx), TDT_PENDING);
	tdt_future_drop(&again);
	ck_assert_int_eq(waker.alive, 0);
}

TEST(a_wait_that_is_dropped_leaves_the_signal)
{
	struct tdt_future dropped = tdt_signal_wait(signals, &signal_number);

	ck_assert_uint_eq(tdt_future_poll(&dropped, &cx), TDT_PENDING);
	tdt_future_drop(&dropped);
	send_to_itself(SIGHUP);
	ck_assert_uint_eq(drive(tdt_signal_wait(signals, &signal_number)), TDT_READY);
	ck_assert_int_eq(signal_number, SIGHUP);
}

static void expect_refused(struct tdt_future future)
{
	ck_assert(tdt_future_is_none(&future));
	ck_assert_int_eq(errno, EINVAL);
	errno = 0;
}

TEST(null_is_refused)
{
	expect_refused(tdt_tcp_ready(NULL, false, &error));
	expect_refused(tdt_tcp_ready(from, false, NULL));
	expect_refused(tdt_signal_wait(NULL, &signal_number));
	expect_refused(tdt_signal_wait(signals, NULL));
}

TEST(signals_that_never_come_to_a_wait_are_refused)
{
	const int never[] = { 4711, -1, SIGKILL, SIGSTOP };

	expect_refused(tdt_signal_wait((const int[]){ 0 }, &signal_number));
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		expect_refused(
		    tdt_signal_wait((const int[]){ SIGTERM, never[i], 0 }, &signal_number));
}

static int make_them(void *unused)
{
	struct tdt_future ready = tdt_tcp_ready(from, false, &error),
			  signalled = tdt_signal_wait(signals, &signal_number);
	struct tdt_tcp *adopted = tdt_tcp_adopt(dup(from->socket.fd));
	bool failed = tdt_future_is_none(&ready) || tdt_future_is_none(&signalled) ||
		      adopted == NULL;

	(void)unused;
	tdt_tcp_free(adopted);
	tdt_future_drop(&ready);
	tdt_future_drop(&signalled);
	return failed ? -errno : 0;
}

TEST(without_memory_there_is_none)
{
	no_memory_each(make_them, NULL, 5);
}

TEST(without_descriptors_no_signal_can_be_waited_for)
{
	struct tdt_future none;
	int first = dup(0), last = first;

	for (int fd; (fd = dup(0)) >= 0;)
		last = fd;
	errno = 0;
	none = tdt_signal_wait(signals, &signal_number);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EMFILE);
	while (last >= first)
		close(last--);
}
