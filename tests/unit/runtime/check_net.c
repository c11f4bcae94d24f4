// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/net, runtime/socket, runtime/tcp.  TCP connections that work, break, are refused
 * and cancelled.
 */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "lib/driven.h"
#include "lib/futures.h"
#include "lib/test.h"
#include "runtime/tcp.h"

static struct test_waker waker, other;
static struct tdt_context cx = { &waker.waker }, other_cx = { &other.waker };
static struct tdt_tcp_listener *listener;
static struct tdt_tcp *ours, *theirs; /* connected with each other */
static char byte;
static ssize_t n;

/* --- A socket that can't be watched ------------------------------------------------ */

static atomic_int refusal;    /* the errno of epoll_ctl(), once; 0: what it gives */
static atomic_int refused_fd; /* for this one: the driver may still have to come to others */

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	int error = fd == refused_fd ? atomic_exchange(&refusal, 0) : 0;

	if (error == 0)
		return __real_epoll_ctl(epoll, op, fd, event);
	errno = error;
	return -1;
}

static void refuse(struct tdt_tcp *tcp)
{
	refused_fd = tcp->socket.fd;
	refusal = ENOSPC;
}

/* --- What tests do -------------------------------------------------------------- */

/* Connect and accept, the one being awaited beside the other. */
static void pair(const char *host)
{
	uint16_t port = tdt_tcp_listener_port(listener);
	int accepted = 1, connected = 1;
	struct tdt_future both[] = { tdt_tcp_accept(listener, &theirs, &accepted),
				     tdt_tcp_connect(host, port, &ours, &connected) };

	ck_assert_uint_eq(drive(tdt_join_all(both, 2)), TDT_READY);
	ck_assert_int_eq(connected, 0);
	ck_assert_int_eq(accepted, 0);
}

static void setup_nothing(void)
{
	driven_setup();
	test_waker_init(&waker);
	test_waker_init(&other);
}

static void setup_listener(void)
{
	setup_nothing();
	listener = tdt_tcp_listen("127.0.0.1", 0);
	ck_assert_ptr_nonnull(listener);
}

static void setup_pair(void)
{
	setup_listener();
	pair("127.0.0.1");
}

static void teardown_listener(void)
{
	tdt_tcp_listener_free(listener);
	driven_teardown();
}

static void teardown_pair(void)
{
	tdt_tcp_free(ours);
	tdt_tcp_free(theirs);
	teardown_listener();
}

static ssize_t read_some(struct tdt_tcp *tcp, void *buffer, size_t size)
{
	ssize_t result = -1;

	ck_assert_uint_eq(drive(tdt_tcp_read(tcp, buffer, size, &result)), TDT_READY);
	return result;
}

static ssize_t write_all(struct tdt_tcp *tcp, const void *data, size_t size)
{
	ssize_t result = -1;

	ck_assert_uint_eq(drive(tdt_tcp_write(tcp, data, size, &result)), TDT_READY);
	return result;
}

static void expect_bytes(struct tdt_tcp *tcp, const char *bytes)
{
	char buffer[64];
	ssize_t size = read_some(tcp, buffer, sizeof(buffer));

	ck_assert_int_eq(size, (ssize_t)strlen(bytes));
	ck_assert_mem_eq(buffer, bytes, strlen(bytes));
}

/* Reset the connection: the peer is told so. */
static void reset(struct tdt_tcp **tcp)
{
	struct linger linger = { 1, 0 };

	ck_assert_int_eq(
	    setsockopt((*tcp)->socket.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	tdt_tcp_free(*tcp);
	*tcp = NULL;
}

static void small_buffers(struct tdt_tcp *tcp)
{
	int size = 4096;

	setsockopt(tcp->socket.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

/* More than the kernel's buffers take: a write that waits. */
static char plenty[16 << 20];

static struct tdt_future write_plenty(struct tdt_tcp *tcp, ssize_t *result)
{
	small_buffers(tcp);
	return tdt_tcp_write(tcp, plenty, sizeof(plenty), result);
}

/*
 * Wait until it has been woken for what ends it: a writer may be woken for room first, and fill
 * that.
 */
static void driven_finish(struct driven *task)
{
	tdt_poll_t polled;

	do {
		driven_wait(task);
		polled = driven_poll(task);
	} while (polled == TDT_PENDING);
	ck_assert_uint_eq(polled, TDT_READY);
}

/*
 * What was sent may come after the call that sent it has returned; and the last packet of a
 * handshake, too.
 */
static void expect_readable(int fd)
{
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 30000), 1);
}

/* Poll with `context`: it waits. */
static void expect_pending(struct tdt_future *future, struct tdt_context *context)
{
	ck_assert_uint_eq(tdt_future_poll(future, context), TDT_PENDING);
}

CASE(bytes, .setup = setup_pair, .teardown = teardown_pair)

TEST(what_is_written_is_read)
{
	ck_assert_int_eq(write_all(ours, "hello", 5), 5);
	expect_bytes(theirs, "hello");
	ck_assert_int_eq(write_all(theirs, "hi", 2), 2);
	expect_bytes(ours, "hi");
}

TEST(a_read_gives_what_there_is)
{
	char buffer[4];

	ck_assert_int_eq(write_all(ours, "abcdef", 6), 6);
	ck_assert_int_eq(read_some(theirs, buffer, 4), 4);
	ck_assert_mem_eq(buffer, "abcd", 4);
	ck_assert_int_eq(read_some(theirs, buffer, 4), 2);
	ck_assert_mem_eq(buffer, "ef", 2);
}

TEST(nothing_is_read_and_written_at_once)
{
	struct tdt_future none = tdt_tcp_read(ours, &byte, 0, &n);

	n = 7;
	ck_assert_uint_eq(tdt_future_poll(&none, &cx), TDT_READY);
	ck_assert_int_eq(n, 0);
	tdt_future_drop(&none);
	ck_assert_int_eq(write_all(ours, "", 0), 0);
}

TEST(a_read_waits_for_bytes)
{
	DRIVEN(task, driven_new(tdt_tcp_read(theirs, &byte, 1, &n)));

	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	drive(tdt_sleep_ms(10));
	ck_assert_int_eq(driven_wakes(task), 0);
	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(byte, 'x');
	ck_assert_uint_eq(driven_poll(task), TDT_PANICKED);
	ck_assert_int_eq(driven_wakes(task), 1);
	ck_assert_int_eq(driven_wakers(task), 0);
}

/* A future that copies what it reads back to where it came from, until the end. */
struct echo {
	struct tdt_tcp *tcp;
	struct tdt_future child;
	bool writing;
	ssize_t got;
	char buffer[1500];
};

static tdt_poll_t echo_poll(void *state, struct tdt_context *context)
{
	struct echo *echo = state;

	for (;;) {
		tdt_poll_t polled;

		if (tdt_future_is_none(&echo->child))
			echo->child = echo->writing
					  ? tdt_tcp_write(echo->tcp, echo->buffer,
							  (size_t)echo->got, &echo->got)
					  : tdt_tcp_read(echo->tcp, echo->buffer,
							 sizeof(echo->buffer), &echo->got);
		polled = tdt_future_poll(&echo->child, context);
		if (polled != TDT_READY)
			return polled;
		tdt_future_drop(&echo->child);
		if (echo->got <= 0)
			return TDT_READY;
		echo->writing = !echo->writing;
	}
}

static void echo_drop(void *state)
{
	tdt_future_drop(&((struct echo *)state)->child);
}

/* Reads until it has all. */
struct receiver {
	struct tdt_tcp *tcp;
	struct tdt_future child;
	char *buffer;
	size_t size, done;
	ssize_t got;
};

static tdt_poll_t receiver_poll(void *state, struct tdt_context *context)
{
	struct receiver *receiver = state;

	while (receiver->done < receiver->size) {
		tdt_poll_t polled;

		if (tdt_future_is_none(&receiver->child))
			receiver->child =
			    tdt_tcp_read(receiver->tcp, receiver->buffer + receiver->done,
					 receiver->size - receiver->done, &receiver->got);
		polled = tdt_future_poll(&receiver->child, context);
		if (polled != TDT_READY)
			return polled;
		tdt_future_drop(&receiver->child);
		if (receiver->got <= 0)
			return TDT_PANICKED;
		receiver->done += (size_t)receiver->got;
	}
	tdt_tcp_shutdown(receiver->tcp);
	return TDT_READY;
}

static void receiver_drop(void *state)
{
	tdt_future_drop(&((struct receiver *)state)->child);
}

/*
 * Ten megabytes there and back, through buffers that take a few kilobytes: both sides wait to read
 * and to write.
 */
TEST(much_is_written_while_it_is_read)
{
	static char sent[10 << 20], received[sizeof(sent)];
	struct echo echo = { .tcp = theirs };
	struct receiver receiver = { .tcp = ours, .buffer = received, .size = sizeof(received) };
	struct tdt_future all[3];
	unsigned seed = seed_of_run();

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)rand_r(&seed);
	small_buffers(ours);
	small_buffers(theirs);
	all[0] = tdt_tcp_write(ours, sent, sizeof(sent), &n);
	all[1] = (struct tdt_future){ &receiver, receiver_poll, receiver_drop };
	all[2] = (struct tdt_future){ &echo, echo_poll, echo_drop };
	ck_assert_uint_eq(drive(tdt_join_all(all, 3)), TDT_READY);
	ck_assert_int_eq(n, sizeof(sent));
	ck_assert_int_eq(memcmp(sent, received, sizeof(sent)), 0);
	ck_assert_int_eq(echo.got, 0);
}

TEST(a_half_closed_connection_goes_on_the_other_way)
{
	ck_assert_int_eq(write_all(ours, "last", 4), 4);
	ck_assert_int_eq(tdt_tcp_shutdown(ours), 0);
	expect_bytes(theirs, "last");
	ck_assert_int_eq(read_some(theirs, &byte, 1), 0);
	ck_assert_int_eq(read_some(theirs, &byte, 1), 0);
	ck_assert_int_eq(write_all(theirs, "answer", 6), 6);
	expect_bytes(ours, "answer");
	ck_assert_int_eq(write_all(ours, "more", 4), -EPIPE);
}

/* Urgent data cuts a read off: what it got is less than it had room for, and not all. */
TEST(urgent_data_hides_no_bytes)
{
	struct driven *reader = driven_new(tdt_tcp_read(theirs, &byte, 1, &n));
	char buffer[64];

	ck_assert_uint_eq(driven_poll(reader), TDT_PENDING); /* epoll knows the socket */
	driven_end(reader);
	ck_assert_int_eq(send(ours->socket.fd, "before!", 7, MSG_OOB), 7);
	ck_assert_int_eq(write_all(ours, "after", 5), 5);
	ck_assert_int_eq(read_some(theirs, buffer, sizeof(buffer)), 6);
	ck_assert_mem_eq(buffer, "before", 6);
	expect_bytes(theirs, "after");
}

/* However little it read before. */
TEST(who_finds_bytes_needs_no_runtime_again)
{
	struct tdt__driver *driver = driven_driver();
	char buffer[4];

	driven_use(NULL);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(write_all(ours, "x", 1), 1);
		expect_readable(theirs->socket.fd);
		ck_assert_int_eq(read_some(theirs, buffer, sizeof(buffer)), 1);
	}
	driven_use(driver);
}

/* A child of fork() has the same epoll, and what it frees there is the parent's. */
TEST(a_child_of_fork_frees_its_own_descriptor_only)
{
	struct tdt_future reading = tdt_tcp_read(theirs, &byte, 1, &n);

	tdt_rt_free(tdt_rt_new(NULL)); /* counts forks from now on */
	expect_pending(&reading, &cx);
	IN_A_CHILD {
		tdt_tcp_free(ours);
		tdt_future_drop(&reading);
		tdt_tcp_free(theirs);
	}
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	while (waker.alive != 0)
		sched_yield();
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&reading, &cx), TDT_READY);
	ck_assert_int_eq(n, 1);
	tdt_future_drop(&reading);
}

static unsigned freed_sockets(void)
{
	struct tdt__driver *driver = driven_driver();
	unsigned freed;

	pthread_mutex_lock(&driver->lock);
	freed = driver->n_freed;
	pthread_mutex_unlock(&driver->lock);
	return freed;
}

/* While nothing happens for which it would have a turn. */
TEST(freed_sockets_do_not_pile_up_while_the_driver_sleeps)
{
	unsigned most = 0;

	for (int i = 0; i < 300; i++) {
		struct tdt_tcp_listener *another = tdt_tcp_listen("127.0.0.1", 0);
		struct tdt_tcp *none;
		struct tdt_future accepting;
		int error;

		ck_assert_ptr_nonnull(another);
		accepting = tdt_tcp_accept(another, &none, &error);
		expect_pending(&accepting, &cx);
		tdt_future_drop(&accepting);
		tdt_tcp_listener_free(another);
		most = freed_sockets() > most ? freed_sockets() : most;
	}
	ck_assert_uint_gt(most, 0); /* they are freed later */
	while (freed_sockets() >= 64)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

TEST(the_end_wakes_a_reader)
{
	DRIVEN(task, driven_new(tdt_tcp_read(theirs, &byte, 1, &n)));

	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	tdt_tcp_free(ours); /* with the driver, which has heard of neither, or */
	ours = NULL;
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert_int_eq(n, 0);
}

/* More parts than the kernel takes at a time, empty ones among them, of all sizes. */
TEST(parts_are_written_one_after_the_other)
{
	enum { PARTS = 3000 };
	static struct iovec parts[PARTS];
	struct tdt_future writing;
	size_t size = 0, got = 0;
	ssize_t written = 1;

	for (size_t i = 0; i < sizeof(plenty); i++)
		plenty[i] = (char)(i * 7 / 5);
	for (size_t i = 0; i < PARTS; i++) {
		parts[i] = (struct iovec){ plenty + size, i % 5 * (i % 300) };
		size += parts[i].iov_len;
	}
	small_buffers(ours);
	writing = tdt_tcp_writev(ours, parts, PARTS, &written);
	expect_pending(&writing, &cx);
	while (got < size) {
		static char buffer[65536];
		ssize_t more;

		if (written == 1)
			tdt_future_poll(&writing, &cx);
		if (poll(&(struct pollfd){ .fd = theirs->socket.fd, .events = POLLIN }, 1, 1) == 0)
			continue; /* the driver is about to say that there is room */
		more = read_some(theirs, buffer, sizeof(buffer));
		ck_assert_int_gt(more, 0);
		ck_assert_mem_eq(buffer, plenty + got, (size_t)more);
		got += (size_t)more;
	}
	ck_assert_int_eq(written, (ssize_t)size);
	tdt_future_drop(&writing);
	ck_assert_uint_eq(drive(tdt_tcp_writev(ours, parts, 0, &written)), TDT_READY);
	ck_assert_int_eq(written, 0);
}

CASE(broken, .setup = setup_pair, .teardown = teardown_pair)

TEST(a_reset_wakes_who_reads_and_who_writes, .to = 3)
{
	ssize_t read_result = 1, write_result = 1;
	DRIVEN(reader, driven_new(tdt_tcp_read(ours, &byte, 1, &read_result)));

	DRIVEN(writer, driven_new(write_plenty(ours, &write_result)));

	if (_i != 1)
		ck_assert_uint_eq(driven_poll(reader), TDT_PENDING);
	if (_i != 0)
		ck_assert_uint_eq(driven_poll(writer), TDT_PENDING);
	reset(&theirs);
	if (_i != 1) {
		driven_finish(reader);
		ck_assert(read_result == -ECONNRESET ||
			  read_result == 0); /* the writer may have been told it */
	}
	if (_i != 0) {
		driven_finish(writer);
		ck_assert(write_result == -ECONNRESET || write_result == -EPIPE);
	}
	if (_i == 0)
		ck_assert_int_eq(read_result, -ECONNRESET);
	if (_i == 1)
		ck_assert_int_eq(write_result, -ECONNRESET);
}

TEST(what_was_reset_cannot_be_shut_down)
{
	reset(&theirs);
	ck_assert_int_eq(read_some(ours, &byte, 1), -ECONNRESET);
	ck_assert_fails(tdt_tcp_shutdown(ours), ENOTCONN);
}

static volatile sig_atomic_t sigpipes;

static void on_sigpipe(int signal)
{
	sigpipes++;
}

TEST(writing_to_nobody_raises_no_signal)
{
	signal(SIGPIPE, on_sigpipe);
	reset(&theirs);
	ck_assert_int_eq(read_some(ours, &byte, 1), -ECONNRESET);
	ck_assert_int_eq(write_all(ours, "x", 1), -EPIPE);
	ck_assert_int_eq(sigpipes, 0);
}

CASE(one, .setup = setup_pair, .teardown = teardown_pair)

TEST(a_second_reader_is_refused_and_a_writer_is_not)
{
	FUTURE(first, tdt_tcp_read(ours, &byte, 1, &n));

	expect_pending(&first, &cx);
	ck_assert_int_eq(read_some(ours, &byte, 1), -EBUSY);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	ck_assert_int_eq(write_all(theirs, "y", 1), 1);
	while (tdt_future_poll(&first, &cx) == TDT_PENDING)
		drive(tdt_sleep_ms(1));
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(byte, 'y');
	ck_assert_int_eq(write_all(theirs, "z", 1),
			 1); /* `first` has ended, though it is not dropped */
	ck_assert_int_eq(read_some(ours, &byte, 1), 1);
}

TEST(a_second_writer_is_refused)
{
	FUTURE(first, write_plenty(ours, &n));

	expect_pending(&first, &cx);
	ck_assert_int_eq(write_all(ours, "x", 1), -EBUSY);
}

CASE(opening, .setup = setup_listener, .teardown = teardown_pair)

TEST(a_second_acceptor_is_refused)
{
	struct tdt_tcp *tcp = ours;
	int error = 0;
	struct tdt_future first = tdt_tcp_accept(listener, &theirs, &error);

	expect_pending(&first, &cx);
	ck_assert_uint_eq(drive(tdt_tcp_accept(listener, &tcp, &error)), TDT_READY);
	ck_assert_int_eq(error, -EBUSY);
	ck_assert_ptr_null(tcp);
	tdt_future_drop(&first);
	pair("127.0.0.1");
}

CASE(cancelled, .setup = setup_pair, .teardown = teardown_pair)

TEST(a_cancelled_read_loses_no_byte)
{
	char buffer[2] = { 0 };

	for (int i = 0; i < 100; i++) {
		struct tdt_future cancelled = tdt_tcp_read(theirs, &byte, 1, &n);
		char sent[2] = { (char)i, (char)~i };

		expect_pending(&cancelled, &cx);
		if (i % 2 == 0)
			drive(tdt_sleep_ms(1)); /* the driver has heard of it */
		ck_assert_int_eq(write_all(ours, sent, 2), 2);
		if (i % 3 == 0)
			while (waker.alive != 0)
				nanosleep(&(struct timespec){ .tv_nsec = 100000 },
					  NULL); /* it was told */
		tdt_future_drop(&cancelled);
		while (waker.alive != 0) /* the driver may be about to wake it */
			sched_yield();
		ck_assert_int_eq(read_some(theirs, buffer, 2), 2);
		ck_assert_mem_eq(buffer, sent, 2);
	}
}

TEST(a_dropped_read_is_not_woken)
{
	struct tdt_future cancelled = tdt_tcp_read(theirs, &byte, 1, &n);

	expect_pending(&cancelled, &cx);
	tdt_future_drop(&cancelled);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	drive(tdt_sleep_ms(10));
	ck_assert_int_eq(waker.wakes, 0);
}

TEST(the_last_waker_is_the_one_woken)
{
	FUTURE(reading, tdt_tcp_read(theirs, &byte, 1, &n));

	expect_pending(&reading, &cx);
	expect_pending(&reading, &cx);
	ck_assert_int_eq(waker.clones, 1);
	expect_pending(&reading, &other_cx);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	while (other.alive != 0)
		drive(tdt_sleep_ms(1));
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&reading, &cx), TDT_READY);
}

/* Ready, and nobody reads: the driver is woken once, and has no turn after that. */
TEST(a_socket_that_stays_ready_leaves_the_driver_asleep)
{
	FUTURE(reading, tdt_tcp_read(theirs, &byte, 1, &n));
	uint64_t turns;

	expect_pending(&reading, &cx);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	while (waker.alive != 0)
		drive(tdt_sleep_ms(1));
	turns = atomic_load(&driven_driver()->turns);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	/* It may have a turn or two to come before it sleeps. */
	ck_assert_uint_le(atomic_load(&driven_driver()->turns), turns + 5);
}

/* --- Connect ---------------------------------------------------------------------------- */

static int connect_to(const char *host, uint16_t port)
{
	int error = 1;

	ours = (struct tdt_tcp *)listener; /* anything: it is overwritten */
	ck_assert_uint_eq(drive(tdt_tcp_connect(host, port, &ours, &error)), TDT_READY);
	return error;
}

CASE(opening)

TEST(a_refused_connection_says_so)
{
	uint16_t port = tdt_tcp_listener_port(listener);

	tdt_tcp_listener_free(listener);
	listener = NULL;
	ck_assert_int_eq(connect_to("127.0.0.1", port), -ECONNREFUSED);
	ck_assert_ptr_null(ours);
}

/* A listener whose queue is full answers nobody. */
TEST(a_connect_waits_and_can_be_cancelled)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), error[2] = { 1, 1 };
	struct tdt_tcp *tcps[2];
	struct tdt_future first, second;
	bool elapsed;

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(
	    getsockname(fd, (struct sockaddr *)&address, &(socklen_t){ sizeof(address) }), 0);
	first = tdt_tcp_connect("127.0.0.1", ntohs(address.sin_port), &tcps[0], &error[0]);
	ck_assert_uint_eq(drive(first), TDT_READY);
	ck_assert_int_eq(error[0], 0);
	expect_readable(fd); /* the queue is full then */
	second = tdt_tcp_connect("127.0.0.1", ntohs(address.sin_port), &tcps[1], &error[1]);
	expect_pending(&second, &cx);
	expect_pending(&second, &cx); /* a poll that nothing has happened before */
	ck_assert_uint_eq(drive(tdt_timeout_ms(second, 20, &elapsed)), TDT_READY);
	ck_assert(elapsed);
	ck_assert_int_eq(error[1], 1);
	tdt_tcp_free(tcps[0]);
	close(fd);
}

CASE(bytes)

TEST(connections_have_no_delay_and_close_on_exec)
{
	struct tdt_tcp *both[] = { ours, theirs };

	for (int i = 0; i < 2; i++) {
		int on = 0, fd = both[i]->socket.fd;

		ck_assert_int_eq(
		    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &(socklen_t){ sizeof(on) }), 0);
		ck_assert_int_ne(on, 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	ck_assert_int_eq(fcntl(listener->socket.fd, F_GETFD), FD_CLOEXEC);
}

CASE(opening)

TEST(ipv6_works)
{
	tdt_tcp_listener_free(listener);
	listener = tdt_tcp_listen("::1", 0);
	NOT_TRIED_IF(listener == NULL && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT),
		     "no IPv6 here");
	ck_assert_ptr_nonnull(listener);
	ck_assert_uint_ne(tdt_tcp_listener_port(listener), 0);
	pair("::1");
	ck_assert_int_eq(write_all(ours, "six", 3), 3);
	expect_bytes(theirs, "six");
}

static void pair_at(const char *path)
{
	tdt_tcp_listener_free(listener);
	listener = tdt_tcp_listen(path, 0);
	ck_assert_ptr_nonnull(listener);
	pair(path);
	ck_assert_int_eq(write_all(ours, "local", 5), 5);
	expect_bytes(theirs, "local");
	ck_assert_int_eq(tdt_tcp_shutdown(ours), 0);
	ck_assert_int_eq(read_some(theirs, &byte, 1), 0);
}

TEST(unix_sockets_work, .to = 2)
{
	char path[64], text[80];

	snprintf(path, sizeof(path), "unix:%stdt-check-%d", _i == 0 ? "@" : "/tmp/", (int)getpid());
	pair_at(path);
	ck_assert_uint_eq(tdt_tcp_listener_port(listener), 0);
	ck_assert_int_eq(tdt_tcp_peer(theirs, text, sizeof(text)), 5);
	ck_assert_str_eq(text, "unix:"); /* it has no name */
	ck_assert_int_eq(tdt_tcp_peer(ours, text, sizeof(text)), (int)strlen(path));
	ck_assert_str_eq(text, path);
	if (_i == 1)
		unlink(path + 5);
}

/* Bound by hand: tdt_tcp_listen() takes no such name.  0: with a NUL in it, 1: as long as can be */
TEST(an_abstract_name_is_shown_whole, .to = 2)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = _i == 0 ? 32 : sizeof(address.sun_path);
	const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	char text[128], expected[128] = "unix:@";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), other_end;

	memset(address.sun_path + 1, 'x', length - 1);
	snprintf(address.sun_path + 1, 20, "tdt-name-%d", (int)getpid());
	memcpy(expected + 6, address.sun_path + 1, length - 1);
	*strchr(expected, '\0') = '@';
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	other_end = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(other_end, (struct sockaddr *)&address, size), 0);
	ours = tdt_tcp_adopt(other_end);
	ck_assert_int_eq(tdt_tcp_peer(ours, text, sizeof(text)), (int)length + 5);
	ck_assert_str_eq(text, expected);
	close(fd);
}

/* It would wait for nothing: there is no event when it has room. */
TEST(a_unix_listener_with_a_full_queue_refuses)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), last = 0;
	struct tdt_tcp *tcps[16] = { NULL };
	char path[64];

	snprintf(path, sizeof(path), "unix:@tdt-full-%d", (int)getpid());
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", path + 6);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					  strlen(path) - 5)),
			 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	for (int i = 0; i < 16 && last == 0; i++)
		ck_assert_uint_eq(drive(tdt_tcp_connect(path, 0, &tcps[i], &last)), TDT_READY);
	ck_assert_int_eq(last, -ECONNREFUSED);
	for (int i = 0; i < 16; i++)
		tdt_tcp_free(tcps[i]);
	close(fd);
}

TEST(a_peer_has_an_address)
{
	char text[64], expected[64], little[4];
	struct sockaddr_in own;

	pair("127.0.0.1");
	ck_assert_int_eq(getsockname(ours->socket.fd, (struct sockaddr *)&own,
				     &(socklen_t){ sizeof(own) }),
			 0);
	snprintf(expected, sizeof(expected), "127.0.0.1:%u", ntohs(own.sin_port));
	ck_assert_int_eq(tdt_tcp_peer(theirs, text, sizeof(text)), (int)strlen(expected));
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(tdt_tcp_peer(theirs, little, sizeof(little)), (int)strlen(expected));
	ck_assert_str_eq(little, "127");
	ck_assert_int_eq(tdt_tcp_peer(NULL, text, sizeof(text)), -EINVAL);
}

TEST(what_is_adopted_works_as_what_was_made)
{
	int listening = dup(listener->socket.fd), fd;
	uint16_t port = tdt_tcp_listener_port(listener);

	tdt_tcp_listener_free(listener);
	listener = tdt_tcp_listener_adopt(listening);
	ck_assert_ptr_nonnull(listener);
	ck_assert_uint_eq(tdt_tcp_listener_port(listener), port);
	pair("127.0.0.1");
	fd = dup(ours->socket.fd);
	tdt_tcp_free(ours);
	ours = tdt_tcp_adopt(fd);
	ck_assert_ptr_nonnull(ours);
	ck_assert_int_eq(write_all(theirs, "taken", 5), 5);
	expect_bytes(ours, "taken");
}

/* What is read of other sockets than TCP's may be short, although there is more. */
TEST(messages_are_read_one_by_one)
{
	struct driven *reading;
	char buffer[64];
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	ours = tdt_tcp_adopt(ends[0]);
	ck_assert_ptr_nonnull(ours);
	reading = driven_new(tdt_tcp_read(ours, buffer, sizeof(buffer), &n));
	ck_assert_uint_eq(driven_poll(reading), TDT_PENDING);
	ck_assert_int_eq(send(ends[1], "one", 3, 0), 3);
	ck_assert_int_eq(send(ends[1], "two", 3, 0), 3);
	driven_wait(reading); /* the driver has told of both */
	ck_assert_uint_eq(driven_poll(reading), TDT_READY);
	ck_assert_int_eq(n, 3);
	ck_assert_mem_eq(buffer, "one", 3);
	driven_end(reading);
	expect_bytes(ours, "two");
	close(ends[1]);
}

/* That is no fault of a connection, after which there may be another one. */
TEST(a_socket_that_cannot_accept_says_so)
{
	int error = 1;

	tdt_tcp_listener_free(listener);
	listener = tdt_tcp_listener_adopt(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	ck_assert_ptr_nonnull(listener);
	ck_assert_uint_eq(drive(tdt_tcp_accept(listener, &theirs, &error)), TDT_READY);
	ck_assert_int_eq(error, -EOPNOTSUPP);
	ck_assert_ptr_null(theirs);
}

/* --- Accept ------------------------------------------------------------------------------ */

/* Though the driver, which lets go of it only when it comes to that, knows the listener. */
TEST(a_freed_listener_gives_back_its_port_at_once)
{
	uint16_t port = tdt_tcp_listener_port(listener);

	for (unsigned i = times_here(300); i > 0; i--) {
		int error;
		struct tdt_future accepting = tdt_tcp_accept(listener, &theirs, &error);

		expect_pending(&accepting, &cx);
		if (i % 2 == 0)
			drive(tdt_sleep_ms(1));
		tdt_future_drop(&accepting);
		tdt_tcp_listener_free(listener);
		listener = tdt_tcp_listen("127.0.0.1", port);
		ck_assert_msg(listener != NULL, "%u: %s", i, strerror(errno));
	}
}

TEST(an_accept_is_woken)
{
	int error = 1, ignored;
	DRIVEN(task, driven_new(tdt_tcp_accept(listener, &theirs, &error)));

	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	ck_assert_uint_eq(
	    drive(tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(listener), &ours, &ignored)),
	    TDT_READY);
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert_int_eq(error, 0);
}

/* All descriptors in use but one, for the connecting side; then one more. */
TEST(without_descriptors_accept_says_so_and_goes_on_later)
{
	int error = 1, fd = dup(0), next = dup(0); /* others that are open may lie in between */
	struct rlimit lowered;
	struct tdt_tcp *tcp = ours;
	const char *preloaded = getenv("LD_PRELOAD");

	NOT_TRIED_IF(preloaded != NULL && strstr(preloaded, "vgpreload") != NULL,
		     "valgrind accepts the connection, and closes it");
	ck_assert_int_ge(next, 0);
	close(fd);
	close(next);
	getrlimit(RLIMIT_NOFILE, &lowered);
	lowered.rlim_cur = (rlim_t)fd + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lowered), 0);
	ck_assert_int_eq(connect_to("127.0.0.1", tdt_tcp_listener_port(listener)), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(drive(tdt_tcp_accept(listener, &tcp, &error)), TDT_READY);
		ck_assert_int_eq(error, -EMFILE);
		ck_assert_ptr_null(tcp);
	}
	lowered.rlim_cur = (rlim_t)next + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lowered), 0);
	ck_assert_uint_eq(drive(tdt_tcp_accept(listener, &theirs, &error)), TDT_READY);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	expect_bytes(theirs, "x");
	error = 1;
	ck_assert_uint_eq(drive(tdt_tcp_connect("127.0.0.1", 1, &tcp, &error)), TDT_READY);
	ck_assert_int_eq(error, -EMFILE);
	ck_assert_ptr_null(tcp);
	ck_assert_ptr_fails(tdt_tcp_listen("127.0.0.1", 0), EMFILE);
}

CASE(refused, .setup = setup_listener, .teardown = teardown_pair)

TEST(a_port_is_listened_at_once)
{
	ck_assert_ptr_fails(tdt_tcp_listen("127.0.0.1", tdt_tcp_listener_port(listener)),
			    EADDRINUSE);
}

CASE(opening)

/*
 * Also while the driver has not let go of the old one, and where old connections of the port
 * linger.
 */
TEST(a_port_is_free_again_at_once)
{
	for (int round = 0; round < 50; round++) {
		uint16_t port = tdt_tcp_listener_port(listener);
		struct tdt_tcp *none;
		struct tdt_future accepting;
		int error;

		pair("127.0.0.1");
		tdt_tcp_free(theirs);
		ck_assert_int_eq(read_some(ours, &byte, 1), 0);
		tdt_tcp_free(ours);
		ours = theirs = NULL;
		accepting = tdt_tcp_accept(listener, &none, &error);
		expect_pending(&accepting, &cx);
		tdt_future_drop(&accepting);
		tdt_tcp_listener_free(listener);
		listener = tdt_tcp_listen("127.0.0.1", port);
		ck_assert_msg(listener != NULL, "%s", strerror(errno));
	}
}

#define TOO_LONG                                                                                   \
	"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
	"01234567890123456789"

/* The first ones are no names either. */
static const char *const bad_hosts[] = {
	NULL,	     "",	  "unix:",     "unix:" TOO_LONG, "localhost", "1.2.3",
	"1.2.3.4.5", "256.0.0.1", "127.0.0.1 ", ":::1"
};
#define NO_NAMES 4

CASE(refused)

TEST(addresses_are_numbers, .to = (int)(sizeof(bad_hosts) / sizeof(*bad_hosts)))
{
	struct tdt_future connecting;
	int error;

	ck_assert_ptr_fails(tdt_tcp_listen(bad_hosts[_i], 0), EINVAL);
	if (_i >= NO_NAMES)
		return;
	errno = 0;
	connecting = tdt_tcp_connect(bad_hosts[_i], 1, &ours, &error);
	ck_assert(tdt_future_is_none(&connecting));
	ck_assert_int_eq(errno, EINVAL);
	ours = NULL;
}

CASE(bytes)

TEST(null_is_refused)
{
	struct iovec too_much[2] = { { &byte, SSIZE_MAX }, { &byte, 1 } };
	int error;
	struct tdt_future refused[] = {
		tdt_tcp_accept(NULL, &theirs, &error),
		tdt_tcp_accept(listener, NULL, &error),
		tdt_tcp_accept(listener, &theirs, NULL),
		tdt_tcp_connect("127.0.0.1", 1, NULL, &error),
		tdt_tcp_connect("127.0.0.1", 1, &ours, NULL),
		tdt_tcp_read(NULL, &byte, 1, &n),
		tdt_tcp_read(ours, NULL, 1, &n),
		tdt_tcp_read(ours, &byte, 1, NULL),
		tdt_tcp_write(NULL, &byte, 1, &n),
		tdt_tcp_write(ours, NULL, 1, &n),
		tdt_tcp_write(ours, &byte, 1, NULL),
		tdt_tcp_write(ours, &byte, SIZE_MAX, &n),
		tdt_tcp_writev(ours, NULL, 1, &n),
		tdt_tcp_writev(ours, too_much, 2, &n),
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		ck_assert(tdt_future_is_none(&refused[i]));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(tdt_tcp_shutdown(NULL), -EINVAL);
	tdt_tcp_free(NULL);
	tdt_tcp_listener_free(NULL);
}

CASE(outside, .setup = setup_pair, .teardown = teardown_pair)

TEST(who_need_not_wait_needs_no_runtime)
{
	struct tdt__driver *driver = driven_driver();
	struct tdt_future future;

	driven_use(NULL);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	expect_readable(theirs->socket.fd);
	expect_bytes(theirs, "x");
	future = tdt_tcp_read(theirs, &byte, 1, &n);
	errno = 0;
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	ck_assert_int_eq(waker.alive, 0);
	tdt_future_drop(&future);
	driven_use(driver);
	ck_assert_int_eq(write_all(ours, "y", 1), 1);
	expect_bytes(theirs, "y");
}

/* Read: known to the driver, or only listed; freed before it stopped, or after. */
TEST(sockets_outlive_the_driver, .to = 4)
{
	struct tdt_future reading = tdt_tcp_read(ours, &byte, 1, &n), accepting, writing;
	struct tdt_tcp *tcp;
	ssize_t written;
	int error;

	expect_pending(&reading, &cx);
	if (_i & 1)
		drive(tdt_sleep_ms(1));
	accepting = tdt_tcp_accept(listener, &tcp, &error);
	expect_pending(&accepting, &cx);
	writing = write_plenty(theirs, &written);
	expect_pending(&writing, &cx);
	if (_i & 2) {
		tdt_future_drop(&reading);
		tdt_tcp_free(ours);
		ours = NULL;
	}
	driven_stop();
	if (!(_i & 2)) {
		while (tdt_future_poll(&reading, &cx) == TDT_PENDING)
			;
		tdt_future_drop(&reading); /* it may have found something */
		reading = tdt_tcp_read(ours, plenty, sizeof(plenty), &n);
		while (tdt_future_poll(&reading, &cx) == TDT_READY) {
			tdt_future_drop(&reading);
			reading = tdt_tcp_read(ours, plenty, sizeof(plenty), &n);
		}
		ck_assert_int_eq(errno, ENOTSUP);
		tdt_future_drop(&reading);
	}
	errno = 0;
	ck_assert_uint_eq(tdt_future_poll(&accepting, &cx), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	tdt_future_drop(&accepting);
	tdt_future_drop(&writing);
	tdt__driver_unref(driven_driver());
	driven_use(NULL);
	ck_assert_int_eq(waker.alive, 0);
	tdt_tcp_free(ours);
	tdt_tcp_free(theirs);
	tdt_tcp_listener_free(listener);
	ours = theirs = NULL;
	listener = NULL;
	driven_setup(); /* for the teardown */
}

/* A task of another runtime, say: it would wait for ever.  Known to the driver, or only listed. */
TEST(who_waits_when_the_driver_stops_is_woken, .to = 2)
{
	struct tdt_tcp *tcp;
	ssize_t written;
	int error;
	struct driven *tasks[] = {
		driven_new(tdt_tcp_read(ours, &byte, 1, &n)),
		driven_new(write_plenty(ours, &written)),
		driven_new(tdt_tcp_accept(listener, &tcp, &error)),
	};

	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(driven_poll(tasks[i]), TDT_PENDING);
	if (_i == 1)
		drive(tdt_sleep_ms(1));
	driven_stop();
	for (int i = 0; i < 3; i++) {
		driven_wait(tasks[i]);
		ck_assert_int_eq(driven_wakers(tasks[i]), 0);
		errno = 0;
		while (driven_poll(tasks[i]) == TDT_PENDING)
			driven_wait(tasks[i]);
		ck_assert_int_eq(errno, ENOTSUP);
		driven_end(tasks[i]);
	}
	tdt__driver_unref(driven_driver());
	driven_setup(); /* for the teardown */
}

CASE(opening)

TEST(descriptors_are_closed_and_used_again)
{
	int fd = dup(0);

	close(fd);
	for (unsigned i = times_here(500); i > 0; i--) {
		struct tdt_future reading;

		pair("127.0.0.1");
		reading = tdt_tcp_read(ours, &byte, 1, &n);
		expect_pending(&reading, &cx);
		if (i % 2 == 0)
			ck_assert_int_eq(write_all(theirs, "x", 1), 1);
		tdt_future_drop(&reading);
		tdt_tcp_free(i % 3 == 0 ? theirs : ours);
		tdt_tcp_free(i % 3 == 0 ? ours : theirs);
	}
	drive(tdt_sleep_ms(20));
	ours = theirs = NULL;
	tdt_tcp_listener_free(listener);
	listener = NULL;
	driven_stop();
	for (int other_fd = fd; other_fd < fd + 1000; other_fd++) {
		struct sockaddr_storage address;

		ck_assert_int_ne(getsockname(other_fd, (struct sockaddr *)&address,
					     &(socklen_t){ sizeof(address) }),
				 0);
	}
	tdt__driver_unref(driven_driver());
	driven_setup();
}

CASE(outside)

TEST(a_socket_that_cannot_be_watched_says_so_and_may_be_later)
{
	struct driven *reader = driven_new(tdt_tcp_read(theirs, &byte, 1, &n));

	refuse(theirs);
	ck_assert_uint_eq(driven_poll(reader), TDT_READY);
	ck_assert_int_eq(n, -ENOSPC);
	driven_end(reader);
	reader = driven_new(tdt_tcp_read(theirs, &byte, 1, &n));
	ck_assert_uint_eq(driven_poll(reader), TDT_PENDING);
	ck_assert_int_eq(write_all(ours, "x", 1), 1);
	driven_wait(reader);
	ck_assert_uint_eq(driven_poll(reader), TDT_READY);
	ck_assert_int_eq(n, 1);
	driven_end(reader);
}

TEST(nobody_is_told_why_another_could_not_wait)
{
	struct tdt_future gave_up = tdt_tcp_read(theirs, &byte, 1, &n), reading;

	refuse(theirs);
	ck_assert_uint_eq(tdt_future_poll(&gave_up, &cx), TDT_READY);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(refusal, 0);
	tdt_future_drop(&gave_up);
	reading = tdt_tcp_read(theirs, &byte, 1, &n);
	expect_pending(&reading, &cx);
	tdt_future_drop(&reading);
}

TEST(a_socket_that_cannot_be_watched_may_be_freed)
{
	struct tdt_future reading = tdt_tcp_read(theirs, &byte, 1, &n);

	refuse(theirs);
	ck_assert_uint_eq(tdt_future_poll(&reading, &cx), TDT_READY);
	tdt_future_drop(&reading);
	tdt_tcp_free(theirs);
	theirs = NULL;
	ck_assert_int_eq(read_some(ours, &byte, 1), 0);
}

/* --- Threads ---------------------------------------------------------------------------------- */

/* One end of a connection, or both sides of it, on a thread of its own. */
struct end {
	struct tdt__driver *driver;
	struct tdt_tcp *tcp;
	unsigned seed;
};

static void *write_at_random(void *arg)
{
	struct end *end = arg;
	unsigned times = rand_r(&end->seed) % 4;

	driven_use(end->driver);
	while (times-- > 0) {
		ssize_t written = 0;
		size_t size = rand_r(&end->seed) % 2 ? 1 : 1 << 20;

		MUST(drive(tdt_timeout_ms(tdt_tcp_write(end->tcp, plenty, size, &written),
				       rand_r(&end->seed) % 3, NULL)) == TDT_READY);
		if (written < 0)
			break;
	}
	return NULL;
}

static void *read_at_random(void *arg)
{
	struct end *end = arg;
	unsigned times = rand_r(&end->seed) % 20;
	char buffer[65536];

	driven_use(end->driver);
	while (times-- > 0) {
		ssize_t got = 1;

		MUST(drive(tdt_timeout_ms(tdt_tcp_read(end->tcp, buffer, sizeof(buffer), &got),
				       rand_r(&end->seed) % 3, NULL)) == TDT_READY);
		if (got <= 0)
			break;
	}
	return NULL;
}

CASE(opening)

/*
 * Two threads on either end, that give up at random, and whichever end is done first is closed or
 * reset.
 */
TEST(threads_share_a_connection_that_breaks)
{
	unsigned seed = seed_of_run();

	for (unsigned round = times_here(300); round > 0; round--) {
		struct end ends[4];
		pthread_t threads[4];

		pair("127.0.0.1");
		small_buffers(ours);
		for (int i = 0; i < 4; i++) {
			ends[i] =
			    (struct end){ driven_driver(), i < 2 ? ours : theirs, rand_r(&seed) };
			MUST(pthread_create(&threads[i], NULL,
					    i % 2 ? read_at_random : write_at_random,
					    &ends[i]) == 0);
		}
		for (int i = 0; i < 4; i += 2) {
			struct tdt_tcp **tcp = i == 0 ? &ours : &theirs;

			pthread_join(threads[i], NULL);
			pthread_join(threads[i + 1], NULL);
			if (rand_r(&seed) % 2 == 0)
				reset(tcp);
			tdt_tcp_free(*tcp);
			*tcp = NULL;
		}
	}
}

static int make_them_all(void *argument)
{
	struct iovec part = { &byte, 1 };
	struct tdt_future made[5];
	struct tdt_tcp_listener *another;
	int failed = 0, error;

	made[0] = tdt_tcp_accept(listener, &theirs, &error);
	made[1] = tdt_tcp_connect("127.0.0.1", 1, &theirs, &error);
	made[2] = tdt_tcp_read(ours, &byte, 1, &n);
	made[3] = tdt_tcp_write(ours, &byte, 1, &n);
	made[4] = tdt_tcp_writev(ours, &part, 1, &n);
	another = tdt_tcp_listen("127.0.0.1", 0);
	failed |= another == NULL || tdt_tcp_listener_set_name(another, "another") != 0;
	failed |= tdt_tcp_set_name(ours, "ours") != 0;
	tdt_tcp_listener_free(another);
	for (int i = 0; i < 5; i++) {
		failed |= tdt_future_is_none(&made[i]);
		tdt_future_drop(&made[i]);
	}
	return failed ? -errno : 0;
}

CASE(outside)

TEST(without_memory_there_are_none)
{
	struct tdt_tcp *saved = theirs;

	ck_assert_int_eq(tdt_tcp_set_name(ours, "before"), 0); /* it is replaced each time */
	no_memory_each(make_them_all, NULL, 11);
	theirs = saved;
}
