// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers door/door, door/socket, tdt/layout/outside.h.  Readers come through the door and go, in
 * whatever way; and the program forks, closes its descriptors, has none left, or refuses readers.
 * (What readers request is in the other suites.)
 */

#include <config.h>

#include <sys/socket.h>
#include <sys/syscall.h>

#include <tdt/layout/outside.h>

#include "door/socket.h"
#include "lib/no_threads.h"
#include "lib/test.h"
#include "lib/threads.h"
#include "lib/visitor.h"
#include "recorder/recorder.h"
#include "registry/registry.h"

#define MS INT64_C(1000000)

/* Sleep until `condition` holds; if it never does, Check ends the test. */
#define UNTIL(condition)                                                                           \
	while (!(condition))                                                                       \
	usleep(1000)

static uint64_t inode_of_door(void)
{
	return TDT__PEEK(tdt__registry.door_inode);
}

static uint32_t number_of_door(void)
{
	return TDT__PEEK(tdt__registry.door);
}

static void expect_no_door(int why)
{
	ck_assert_uint_eq(inode_of_door(), 0);
	ck_assert_uint_eq(number_of_door(), why);
}

/* --- Descriptors --------------------------------------------------------- */

#define MOST_FDS 1024

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < MOST_FDS; fd++)
		n += is_open(fd);
	return n;
}

/* The descriptors that the library has opened since: the new ones. */
struct descriptors {
	bool before[MOST_FDS];
	int opened[MOST_FDS];
	int n;
};

static void note_open(struct descriptors *all)
{
	for (int fd = 0; fd < MOST_FDS; fd++)
		all->before[fd] = is_open(fd);
}

static void find_opened(struct descriptors *all)
{
	all->n = 0;
	for (int fd = 0; fd < MOST_FDS; fd++)
		if (is_open(fd) && !all->before[fd])
			all->opened[all->n++] = fd;
}

CASE(open)

TEST(the_door_is_open_when_the_program_listens)
{
	expect_no_door(0);
	ck_assert_int_eq(threads_named("tdt-door"), 0);
	errno = EDOM;
	ck_assert_int_eq(tdt_listen(NULL), 0);
	ck_assert_int_eq(errno, EDOM);
	ck_assert_uint_ne(inode_of_door(), 0);
	UNTIL(threads_named("tdt-door") == 1);
	close(visitor_door()); /* the inode is that of the descriptor */
}

TEST(it_is_opened_once)
{
	uint64_t inode;
	int n;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	inode = inode_of_door();
	n = count_open();
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(tdt_listen(NULL), 0);
	ck_assert_uint_eq(inode_of_door(), inode);
	ck_assert_int_eq(count_open(), n);
	UNTIL(threads_named("tdt-door") == 1);
}

TEST(its_descriptors_are_closed_on_exec)
{
	struct descriptors all;
	int connection;

	note_open(&all);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come(visitor_door());
	find_opened(&all);
	ck_assert_int_ge(all.n, 3);
	for (int i = 0; i < all.n; i++)
		ck_assert_int_ne(fcntl(all.opened[i], F_GETFD) & FD_CLOEXEC, 0);
	close(connection);
}

TEST(it_takes_the_number_of_no_standard_stream)
{
	int saved = dup(0), connection;

	close(0);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	ck_assert(!is_open(0));
	ck_assert_uint_gt(number_of_door(), 2);
	connection = visitor_door(); /* takes 0 */
	ck_assert_int_eq(connection, 0);
	connection = visitor_come(connection);
	close(0);
	ck_assert_int_eq(dup(saved), 0);
	close(connection);
}

/* Wait until the thread sleeps without a limit; its short sleeps are shorter than this. */
static void await_quiet(void)
{
	long slept;

	do {
		slept = threads_slept("tdt-door");
		usleep(300000);
	} while (threads_slept("tdt-door") != slept);
}

/* Otherwise the test does not end. */
TEST(its_thread_sleeps_while_no_reader_comes)
{
	ck_assert_int_eq(tdt_listen(NULL), 0);
	close(visitor_come(visitor_door()));
	UNTIL(threads_named("tdt-door") == 1);
	await_quiet();
}

TEST(without_a_thread_there_is_no_door)
{
	int n;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	close(visitor_door());
	n = count_open();
	shutdown((int)number_of_door(), SHUT_RDWR);
	UNTIL(inode_of_door() == 0 && threads_named("tdt-door") == 0);
	threads_left = 0;
	ck_assert_fails(tdt_listen(NULL), EAGAIN);
	expect_no_door(EAGAIN);
	ck_assert_int_eq(count_open(), n - 2);
	threads_left = -1;
	ck_assert_int_eq(tdt_listen(NULL), 0);
	close(visitor_come(visitor_door()));
}

static void allow_descriptors(int n)
{
	struct rlimit limit = { 0 };

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)n;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Whether the limit is not the kernel's alone: then a test says so, and ends. */
static bool limits_are_valgrinds(void)
{
	if (in_valgrind())
		printf("# not tried: valgrind has its own limit of descriptors\n");
	return in_valgrind();
}

/* The lowest number that is free. */
static int next_free(void)
{
	int fd = 0;

	while (is_open(fd))
		fd++;
	return fd;
}

TEST(without_descriptors_there_is_no_door)
{
	int free_at = next_free(), n = count_open();

	if (limits_are_valgrinds())
		return;
	for (int i = 0; i < 2; i++) {
		allow_descriptors(free_at + i);
		ck_assert_fails(tdt_listen(NULL), EMFILE);
		expect_no_door(EMFILE);
		ck_assert_int_eq(count_open(), n);
	}
	allow_descriptors(MOST_FDS);
	ck_assert_int_eq(tdt_listen(NULL), 0);
}

TEST(without_a_descriptor_for_it_a_reader_is_sent_away)
{
	int door, connection, n;

	if (limits_are_valgrinds())
		return;
	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	n = count_open();
	for (int i = 0; i < 3; i++) {
		const struct tdt_outside_header hello = VISITOR_HEADER(tdt_outside_header, HELLO);
		int ends[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		allow_descriptors(3); /* sending needs no number */
		visitor_knock(door, &hello, sizeof hello, &ends[1], 1);
		close(ends[1]);
		visitor_end(ends[0]);
		allow_descriptors(MOST_FDS);
		ck_assert_int_eq(count_open(), n);
	}
	connection = visitor_come(door);
	close(connection);
	close(door);
}

TEST(without_any_descriptors_left_readers_are_served_all_the_same)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct tdt_outside_counters counters;
	int connection;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come(visitor_door());
	allow_descriptors(0); /* poll(2) refuses to wait then */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(visitor_ask(connection, &request, sizeof request, &counters,
					     sizeof counters),
				 0);
	allow_descriptors(MOST_FDS);
	close(connection);
}

CASE(readers)

TEST(a_hello_says_who_answers)
{
	struct tdt_outside_hello hello;
	int connection;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_enter(visitor_door());
	ck_assert_int_eq(visitor_receive(connection, &hello, sizeof hello), sizeof hello);
	ck_assert_uint_eq(hello.header.size, sizeof hello);
	ck_assert_uint_eq(hello.header.version, TDT_OUTSIDE_VERSION);
	ck_assert_uint_eq(hello.header.kind, TDT_OUTSIDE_HELLO);
	ck_assert_uint_eq(hello.header.number, 7);
	ck_assert_int_eq(hello.header.error, 0);
	ck_assert_uint_eq(hello.registry, (uintptr_t)&tdt__registry);
	ck_assert_uint_eq(hello.pid, (uint32_t)getpid());
	ck_assert_str_eq(hello.library, PACKAGE_VERSION);
	close(connection);
}

/* Knock with a message that is not sound; its refusal must be `error`, and the connection ends. */
static void expect_refused(int door, const void *message, size_t size, int error)
{
	struct tdt_outside_header answer;
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	visitor_knock(door, message, size, &ends[1], 1);
	close(ends[1]);
	ck_assert_int_eq(visitor_receive(ends[0], &answer, sizeof answer), sizeof answer);
	ck_assert_uint_eq(answer.size, sizeof answer);
	ck_assert_uint_eq(answer.version, TDT_OUTSIDE_VERSION);
	ck_assert_int_eq(answer.error, error);
	visitor_end(ends[0]);
}

TEST(a_hello_that_is_not_sound_is_refused)
{
	const struct tdt_outside_header sound = VISITOR_HEADER(tdt_outside_header, HELLO);
	struct tdt_outside_header wrong = sound;
	char much[4096] = { 0 };
	int door;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	expect_refused(door, "x", 1, EPROTO);
	expect_refused(door, &sound, sizeof sound - 1, EPROTO);
	memcpy(much, &sound, sizeof sound);
	expect_refused(door, much, sizeof much, EPROTO);
	((struct tdt_outside_header *)(void *)much)->size = sizeof much;
	expect_refused(door, much, sizeof much, E2BIG);
	wrong.version++;
	expect_refused(door, &wrong, sizeof wrong, EPROTONOSUPPORT);
	wrong = sound;
	wrong.kind = TDT_OUTSIDE_COUNTERS;
	expect_refused(door, &wrong, sizeof wrong, EINVAL);
	wrong = sound;
	wrong.reserved[1] = 1;
	expect_refused(door, &wrong, sizeof wrong, EINVAL);
	close(visitor_come(door));
	close(door);
}

TEST(a_hello_without_one_packet_socket_is_passed_over)
{
	const struct tdt_outside_header hello = VISITOR_HEADER(tdt_outside_header, HELLO);
	int door, n, pipes[2], streams[2], packets[2];

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, streams), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
	n = count_open();
	visitor_knock(door, &hello, sizeof hello, NULL, 0);
	visitor_knock(door, "", 0, NULL, 0);
	visitor_knock(door, &hello, sizeof hello, &pipes[1], 1);
	visitor_knock(door, &hello, sizeof hello, &streams[1], 1);
	visitor_knock(door, &hello, sizeof hello, packets, 2);
	close(visitor_come(door));
	UNTIL(count_open() == n);
	close(door);
}

TEST(one_reader_too_many_is_refused_until_another_one_goes)
{
	const struct tdt_outside_header hello = VISITOR_HEADER(tdt_outside_header, HELLO);
	int connection[TDT_OUTSIDE_CONNECTIONS], door, n;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	n = count_open();
	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++)
		connection[i] = visitor_come(door);
	ck_assert_int_eq(count_open(), n + 2 * TDT_OUTSIDE_CONNECTIONS);
	expect_refused(door, &hello, sizeof hello, EBUSY);
	close(connection[3]);
	UNTIL(count_open() == n + 2 * TDT_OUTSIDE_CONNECTIONS - 2);
	connection[3] = visitor_come(door);
	for (int i = 0; i < TDT_OUTSIDE_CONNECTIONS; i++)
		close(connection[i]);
	UNTIL(count_open() == n);
}

TEST(an_empty_packet_ends_its_connection_alone)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct tdt_outside_counters counters;
	int door, one, other;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	one = visitor_come(door);
	other = visitor_come(door);
	visitor_send(one, "", 0);
	visitor_end(one);
	ck_assert_int_eq(
		visitor_ask(other, &request, sizeof request, &counters, sizeof counters), 0);
	close(other);
}

/* --- The death of a reader ----------------------------------------------- */

/* Request everything that there is. */
static void request_everything(int connection)
{
	const struct tdt_outside_watch watch = { VISITOR_HEADER(tdt_outside_watch, WATCH),
						 .interval_ns = 10 * MS };
	const struct tdt_outside_record record = { VISITOR_HEADER(tdt_outside_record, RECORD),
						   .ring_size = 65536,
						   .total_size = 1 << 20,
						   .on = 1 };
	const struct tdt_outside_trees trees = { VISITOR_HEADER(tdt_outside_trees, TREES),
						 .most = 10 };
	struct tdt_outside_watch watching;
	struct tdt_outside_record recording;
	struct tdt_outside_done done;

	MUST(visitor_ask(connection, &watch, sizeof watch, &watching, sizeof watching) == 0);
	MUST(visitor_ask(connection, &record, sizeof record, &recording, sizeof recording) == 0);
	MUST(visitor_ask(connection, &trees, sizeof trees, &done, sizeof done) == 0);
}

/* Until death. */
static void request_for_ever(int door)
{
	for (;;) {
		int connection = visitor_come(door);

		for (int i = 0; i < 3; i++)
			request_everything(connection);
		close(connection);
	}
}

static bool is_recording(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	ck_assert_int_eq(tdt_recorder_info(&status), 0);
	return status.recording;
}

#define DEATHS 40

TEST(a_reader_may_die_at_any_moment)
{
	unsigned seed = seed_of_run();
	int door, connection, n, deaths = in_valgrind() || TSAN ? 4 : DEATHS;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	connection = visitor_come(door);
	request_everything(connection); /* what the library opens once is open now */
	n = count_open() - 2;
	close(connection);
	UNTIL(count_open() == n);
	for (int i = 0; i < deaths; i++) {
		pid_t reader = fork();

		if (reader == 0)
			request_for_ever(door);
		ck_assert_int_gt(reader, 0);
		usleep(random_below(&seed, 20000));
		kill(reader, SIGKILL);
		ck_assert_int_eq(waitpid(reader, NULL, 0), reader);
	}
	UNTIL(TDT__PEEK(tdt__registry.watch_ns) == 0);
	UNTIL(!is_recording());
	UNTIL(count_open() == n);
	close(visitor_come(door));
	close(door);
}

static int status_of(pid_t child)
{
	int status = -1;

	MUST(child > 0 && waitpid(child, &status, 0) == child);
	MUST(WIFEXITED(status));
	return WEXITSTATUS(status);
}

CASE(fork)

TEST(a_child_has_neither_its_parents_door_nor_its_connections)
{
	struct descriptors all;
	int connection;
	pid_t child;

	note_open(&all);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come(visitor_door());
	find_opened(&all);
	child = fork();
	if (child == 0) {
		int left = 0;

		for (int i = 0; i < all.n; i++)
			left += is_open(all.opened[i]);
		/* What the test itself has opened: the copy of the door, and the connection. */
		_exit(left == 2 && inode_of_door() == 0 && number_of_door() == 0 ? 0 : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
	close(connection);
	close(visitor_come(visitor_door()));
}

/* In the child, whose thread must be a new one. */
static void listen_in_child(uint64_t parents)
{
	struct tdt_outside_hello hello;
	int connection;

	MUST(inode_of_door() == 0);
	MUST(tdt_listen(NULL) == 0 && inode_of_door() != 0 && inode_of_door() != parents);
	connection = visitor_enter(visitor_door());
	MUST(visitor_receive(connection, &hello, sizeof hello) == sizeof hello);
	MUST(hello.pid == (uint32_t)getpid());
	_exit(0);
}

TEST(a_child_may_listen_itself)
{
	pid_t child;

	NOT_TRIED_IF(TSAN, "ThreadSanitizer wants no threads in a child");
	ck_assert_int_eq(tdt_listen(NULL), 0);
	close(visitor_come(visitor_door()));
	child = fork();
	if (child == 0)
		listen_in_child(inode_of_door());
	ck_assert_int_eq(status_of(child), 0);
	close(visitor_come(visitor_door()));
}

/* --- A program that closes what it does not know ------------------------- */

#define MOST_REPLACED 3
#define ENDS 2 /* of the door */

/*
 * To ThreadSanitizer, the use of a descriptor that another thread has opened is a data race.  It
 * does not see these calls.
 */
static int unseen_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static int unseen_dup(int fd, int number)
{
	return (int)syscall(SYS_dup3, fd, number, 0);
}

/* Receive a packet of at most 4 bytes, if there is one. */
static int unseen_receive(int fd)
{
	char bytes[4];

	return (int)syscall(SYS_recvfrom, fd, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL);
}

/*
 * The program closes these descriptors of the library, and gets their numbers for sockets of its
 * own, with a byte to read in each.
 */
static void replace(const int *fds, int n, int peer[])
{
	int own[MOST_REPLACED];

	ck_assert_int_le(n, MOST_REPLACED);
	for (int i = 0; i < n; i++) {
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		ck_assert_int_eq(write(pair[0], "x", 1), 1);
		ck_assert_int_eq(write(pair[1], "x", 1), 1);
		own[i] = pair[0];
		peer[i] = pair[1];
	}
	await_quiet(); /* the thread must not be just using one of them */
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(unseen_dup(own[i], fds[i]), fds[i]);
	for (int i = 0; i < n; i++)
		close(own[i]);
}

/* Nothing was read of the sockets, nothing was written to them, and they are open. */
static void expect_whole(const int *fds, int n, const int peer[])
{
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(unseen_receive(fds[i]), 1);
		ck_assert_int_eq(unseen_receive(fds[i]), -1);
		ck_assert_int_eq(errno, EAGAIN);
		ck_assert_int_eq(unseen_receive(peer[i]), 1);
		ck_assert_int_eq(unseen_receive(peer[i]), -1);
		ck_assert_int_eq(errno, EAGAIN);
		unseen_close(fds[i]);
		unseen_close(peer[i]);
	}
}

CASE(closed)

TEST(a_program_may_close_all_and_use_the_numbers_again)
{
	const struct tdt_outside_header request = VISITOR_HEADER(tdt_outside_header, COUNTERS);
	struct descriptors all;
	int door, connection, peer[MOST_REPLACED];

	note_open(&all);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come((int)number_of_door()); /* without a copy that keeps it open */
	all.before[connection] = true;
	find_opened(&all);
	ck_assert_int_eq(all.n, 3);
	replace(all.opened, all.n, peer);
	/* A request that is on its way when the connection is closed. */
	if (send(connection, &request, sizeof request, MSG_NOSIGNAL) < 0)
		ck_assert(errno == EPIPE || errno == ECONNRESET);
	visitor_end(connection);
	UNTIL(inode_of_door() == 0 && threads_named("tdt-door") == 0);
	expect_whole(all.opened, all.n, peer);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	close(visitor_come(door));
	close(door);
}

/* The program closes only one of the door's two descriptors, or only the connection. */
TEST(a_program_may_close_any_one_of_them, .to = 3)
{
	struct descriptors all;
	int door, connection, peer, spare;

	note_open(&all);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come((int)number_of_door());
	all.before[connection] = true;
	find_opened(&all);
	ck_assert_int_eq(all.n, 3);
	replace(&all.opened[_i], 1, &peer);
	/* It sees that at once, or when something comes. */
	spare = fcntl(connection, F_DUPFD_CLOEXEC, 0);
	send(connection, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	close(visitor_come(door));
	close(spare);
	close(connection);
	close(door);
	expect_whole(&all.opened[_i], 1, &peer);
}

/* While the thread still finds out that the old door is closed. */
TEST(a_program_that_has_closed_the_door_may_listen_again_at_once)
{
	struct descriptors all;

	note_open(&all);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	for (int i = 0; i < 100; i++) {
		int door = visitor_door();

		close(visitor_come(door));
		close(door);
		/* The connection has ended then. */
		for (find_opened(&all); all.n != ENDS; find_opened(&all))
			usleep(1000);
		for (int k = 0; k < all.n; k++)
			unseen_close(all.opened[k]);
		ck_assert_int_eq(tdt_listen(NULL), 0);
	}
}

/* It is closed then, until the program listens again. */
TEST(a_reader_may_shut_the_door_down, .to = 3)
{
	static const int how[] = { SHUT_RDWR, SHUT_RD, SHUT_WR };
	int door, connection;

	ck_assert_int_eq(tdt_listen(NULL), 0);
	door = visitor_door();
	connection = visitor_come(door);
	ck_assert_int_eq(shutdown(door, how[_i]), 0);
	if (how[_i] != SHUT_RD)
		UNTIL(inode_of_door() == 0);
	close(connection);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	connection = visitor_come(visitor_door());
	close(connection);
	close(door);
}

static tdt_poll_t never_polled(void *state, struct tdt_context *cx)
{
	return TDT_READY;
}

/* The library begins with the first traced future. */
static void begin(void)
{
	struct tdt_traced traced =
	    tdt_traced(((struct tdt_future){ NULL, never_polled, drop_nothing }));

	MUST(traced.handle != NULL);
	end_traced(&traced);
}

CASE(environment)

TEST(an_operator_lets_readers_in)
{
	ck_assert_int_eq(setenv("TDT_OUTSIDE", "1", 1), 0);
	begin();
	close(visitor_come(visitor_door()));
}

TEST(an_operator_refuses_readers)
{
	ck_assert_int_eq(setenv("TDT_OUTSIDE", "0", 1), 0);
	begin();
	expect_no_door(EPERM);
	ck_assert_fails(tdt_listen(NULL), EPERM);
	expect_no_door(EPERM);
	ck_assert_int_eq(threads_named("tdt-door"), 0);
}

TEST(a_refusal_is_for_children_too_whatever_their_environment)
{
	pid_t child;

	ck_assert_int_eq(setenv("TDT_OUTSIDE", "0", 1), 0);
	begin();
	child = fork();
	if (child == 0) {
		setenv("TDT_OUTSIDE", "1", 1);
		_exit(number_of_door() == EPERM && tdt_listen(NULL) == -EPERM ? 0 : 1);
	}
	ck_assert_int_eq(status_of(child), 0);
}

TEST(other_values_mean_nothing, .to = 5)
{
	static const char *const values[] = { "", "2", "01", "yes", "1 " };

	ck_assert_int_eq(setenv("TDT_OUTSIDE", values[_i], 1), 0);
	begin();
	expect_no_door(0);
	ck_assert_int_eq(tdt_listen(NULL), 0);
	close(visitor_come(visitor_door()));
}

/* A child that traces futures listens again if the operator wants it. */
TEST(the_operator_means_children_too)
{
	pid_t child;

	NOT_TRIED_IF(TSAN, "ThreadSanitizer wants no threads in a child");
	ck_assert_int_eq(setenv("TDT_OUTSIDE", "1", 1), 0);
	begin();
	child = fork();
	if (child == 0) {
		MUST(inode_of_door() == 0);
		begin();
		close(visitor_come(visitor_door()));
		_exit(0);
	}
	ck_assert_int_eq(status_of(child), 0);
}
