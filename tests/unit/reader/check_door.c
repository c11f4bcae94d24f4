// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/door, reader/fresh.  The reader's side of the door, with a target that the test
 * makes up: a child that says what a test wants it to say.
 */

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "lib/refuse_call.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/door.h"
#include "reader/fresh.h"

#define REGISTRY UINT64_C(0x7f0000000000)
#define RECORD(id) (REGISTRY + 4096 * (id))

static struct tdt__target target;
static struct tdt__found found;
static struct tdt__trouble trouble;
static struct tdt__door the_door;
static pid_t child;
static int ends[2]; /* the first listens, the second is the door */
static struct tdt__answers answers;

/* The reader gives no target up that stands still, unless its time is over already. */
int poll(struct pollfd *waits, nfds_t n, int ms)
{
	return ppoll(waits, n, ms != 0 ? NULL : &(const struct timespec){ 0 }, NULL);
}

/* --- The target ----------------------------------------------------------------------------- */

/* Receive a reader's hello, and return the connection that comes with it. */
static int take_connection(struct tdt_outside_header *header)
{
	struct iovec bytes = { header, sizeof *header };
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof control };
	int connection;

	MUST(recvmsg(ends[0], &message, 0) == sizeof *header);
	MUST(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&connection, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof connection);
	MUST(header->version == TDT_OUTSIDE_VERSION && header->kind == TDT_OUTSIDE_HELLO);
	return connection;
}

static void say(int connection, const void *message, size_t size)
{
	send(connection, message, size, MSG_NOSIGNAL); /* the reader may have gone away */
}

static void say_hello(int connection, const struct tdt_outside_header *to)
{
	struct tdt_outside_hello hello = {
		.header = *to, .registry = REGISTRY, .pid = (uint32_t)getpid(), .library = "0"
	};

	hello.header.size = sizeof hello;
	say(connection, &hello, sizeof hello);
}

/* Receive a request for trees. */
static struct tdt_outside_trees take_request(int connection)
{
	struct tdt_outside_trees trees;

	MUST(recv(connection, &trees, sizeof trees, 0) == sizeof trees);
	MUST(trees.header.size == sizeof trees && trees.header.kind == TDT_OUTSIDE_TREES);
	MUST(trees.header.version == TDT_OUTSIDE_VERSION && trees.header.error == 0);
	return trees;
}

static struct tdt_outside_trees take_first_request(int connection,
						   const struct tdt_outside_header *hello)
{
	say_hello(connection, hello);
	return take_request(connection);
}

/* A message with a tree of two frames. */
struct two_frames {
	struct tdt_outside_tree tree;
	struct tdt_registry_entry entry[2];
};

static struct two_frames tree_of(const struct tdt_outside_trees *request, uint64_t id)
{
	struct two_frames message = { .tree = { .header = request->header,
						.id = id,
						.record = RECORD(id),
						.answer = TDT_OUTSIDE_FRESH,
						.wait_size = sizeof(struct tdt_outside_wait),
						.entries = sizeof message.tree,
						.tree = { .polls = 2, .n = 2, .leaves = 1 } } };

	message.tree.header.kind = TDT_OUTSIDE_TREE;
	message.tree.header.size = sizeof message;
	message.entry[0] = (struct tdt_registry_entry){ .pc = id, .parent = 1, .leaves = 1 };
	message.entry[1] = (struct tdt_registry_entry){ .pc = 3, .parent = TDT_REGISTRY_TOP };
	return message;
}

static void say_tree(int connection, const struct tdt_outside_trees *request, uint64_t id)
{
	struct two_frames message = tree_of(request, id);

	say(connection, &message, sizeof message);
}

static struct tdt_outside_done done_of(const struct tdt_outside_trees *request)
{
	struct tdt_outside_done done = { .header = request->header };

	done.header.size = sizeof done;
	return done;
}

static void say_done(int connection, const struct tdt_outside_trees *request)
{
	struct tdt_outside_done done = done_of(request);

	say(connection, &done, sizeof done);
}

/* Start a target that calls `serve` with the descriptor of the first connection. */
static void start_target(void (*serve)(int connection, struct tdt_outside_header *hello))
{
	struct tdt_outside_header hello;
	struct stat status;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	ck_assert_int_eq(fstat(ends[1], &status), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(take_connection(&hello), &hello);
		_exit(0);
	}
	found = (struct tdt__found){ .address = REGISTRY,
				     .registry = { .pid = (uint32_t)child,
						   .door = (uint32_t)ends[1],
						   .door_inode = status.st_ino } };
	close(ends[0]);
	close(ends[1]);
	ck_assert_int_eq(tdt__target_open_process(&target, child, &trouble), 0);
}

static void stop_target(void)
{
	tdt__target_close(&target);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int open_door(void)
{
	return tdt__door_open(&the_door, &target, &found, &trouble);
}

/* Why descriptors of other processes cannot be taken here; NULL: they can. */
static const char *refused(void)
{
	/* valgrind knows neither call, and says so at length. */
	int self = in_valgrind() ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = self >= 0 ? (int)syscall(SYS_pidfd_getfd, self, self, 0) : -1;

	if (copy >= 0)
		close(copy);
	if (self >= 0)
		close(self);
	return copy >= 0 ? NULL : "pidfd_getfd(2) is refused here";
}

/* Expect that the door cannot be opened, and why. */
static void expect_closed(int error, const char *why)
{
	ck_assert_int_eq(open_door(), error);
	ck_assert_msg(strstr(trouble.text, why) != NULL, "%s", trouble.text);
	ck_assert_int_eq(the_door.connection, -1);
	stop_target();
}

static void serve_nothing(int connection, struct tdt_outside_header *hello)
{
	say_hello(connection, hello);
	pause();
}

CASE(opening)

TEST(a_door_that_is_not_there_is_explained)
{
	static const struct {
		uint32_t door;
		int error;
		const char *why;
	} cases[] = {
		{ 0, -ENOTCONN, "call tdt_listen(), or to be started with TDT_OUTSIDE=1" },
		{ EPERM, -EACCES, "started with TDT_OUTSIDE=0" },
		{ EMFILE, -ENOTCONN, "Too many open files" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		start_target(serve_nothing);
		found.registry.door_inode = 0;
		found.registry.door = cases[i].door;
		expect_closed(cases[i].error, cases[i].why);
	}
}

TEST(a_child_that_has_its_parents_registry_is_not_asked)
{
	start_target(serve_nothing);
	found.registry.pid++;
	expect_closed(-ENOTCONN, "forked");
}

TEST(a_stopped_target_is_not_waited_for)
{
	start_target(serve_nothing);
	kill(child, SIGSTOP);
	while (tdt__target_state(&target) != 'T')
		usleep(1000);
	expect_closed(-EAGAIN, "is stopped");
}

CASE(reaching, .skip = refused)

TEST(a_descriptor_with_another_inode_is_not_used)
{
	start_target(serve_nothing);
	found.registry.door_inode++;
	expect_closed(-ENOTCONN, "call tdt_listen() again");
	start_target(serve_nothing);
	found.registry.door = 1000;
	expect_closed(-ENOTCONN, "call tdt_listen() again");
	start_target(serve_nothing);
	found.registry.door = 0; /* stdin: no socket, or another one */
	expect_closed(-ENOTCONN, "call tdt_listen() again");
}

/* Expect that the system call is explained if it fails so. */
static void expect_refused(long number, int with, int error, const char *why)
{
	start_target(serve_nothing);
	if (refuse_call((unsigned)number, (unsigned)with))
		expect_closed(error, why);
	else
		stop_target();
}

TEST(a_container_that_forbids_it_is_told_what_helps)
{
	expect_refused(SYS_pidfd_getfd, EPERM, -EPERM, "--cap-add SYS_PTRACE");
}

TEST(an_old_kernel_is_named)
{
	expect_refused(SYS_pidfd_open, ENOSYS, -ENOSYS, "came with Linux 5.6");
}

static void serve_other(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_hello other = { .header = *hello,
					   .registry = REGISTRY,
					   .pid = (uint32_t)getpid() + 1 };

	other.header.size = sizeof other;
	say(connection, &other, sizeof other);
}

static void serve_short(int connection, struct tdt_outside_header *hello)
{
	say(connection, hello, sizeof *hello);
}

static void refuse_as_busy(int connection, struct tdt_outside_header *hello)
{
	hello->error = EBUSY;
	say(connection, hello, sizeof *hello);
}

static void refuse_version(int connection, struct tdt_outside_header *hello)
{
	hello->error = EPROTONOSUPPORT;
	hello->version = 7;
	say(connection, hello, sizeof *hello);
}

static void hang_up(int connection, struct tdt_outside_header *hello)
{
	close(connection);
	pause();
}

TEST(a_wrong_hello_and_a_refusal_are_told_apart)
{
	static const struct {
		void (*serve)(int connection, struct tdt_outside_header *hello);
		int error;
		const char *why;
	} cases[] = {
		{ serve_other, -EPROTO, "makes no sense" },
		{ serve_short, -EPROTO, "makes no sense" },
		{ refuse_as_busy, -EBUSY, "8 connections already" },
		{ refuse_version, -EPROTONOSUPPORT, "speaks version 7" },
		{ hang_up, -ECONNRESET, "broken off" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		start_target(cases[i].serve);
		expect_closed(cases[i].error, cases[i].why);
	}
}

static const struct tdt__task_choice all = { .n_ids = 0 };

/* Request trees of the target that is served so. */
static int request_trees_of(void (*serve)(int connection, struct tdt_outside_header *hello),
			    const struct tdt__task_choice *choice, uint32_t most)
{
	int error;

	start_target(serve);
	error = open_door();
	ck_assert_msg(error == 0, "%s", trouble.text);
	tdt__answers_fini(&answers);
	error = tdt__answers_request(&answers, &the_door, choice, most, TDT__SECOND, &trouble);
	tdt__door_close(&the_door);
	stop_target();
	return error;
}

static struct tdt__seen seen_of(uint64_t id)
{
	return (struct tdt__seen){ .address = RECORD(id), .record = { .id = id } };
}

static void serve_two(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);
	struct tdt_outside_done done;

	MUST(request.most == 10 && request.n_ids == 0 && request.timeout_ns == TDT__SECOND);
	say_tree(connection, &request, 5);
	say_tree(connection, &request, 6);
	done = done_of(&request);
	done.left_out = 3;
	say(connection, &done, sizeof done);
}

static void forget_answers(void)
{
	tdt__answers_fini(&answers);
}

CASE(trees, .skip = refused, .teardown = forget_answers)

TEST(each_tree_is_found_by_the_record_of_its_task)
{
	struct tdt__seen five = seen_of(5), seven = seen_of(7), other = seen_of(6);
	const struct tdt_outside_tree *tree;

	ck_assert_int_eq(request_trees_of(serve_two, &all, 10), 0);
	ck_assert_uint_eq(answers.n, 2);
	ck_assert_uint_eq(answers.left_out, 3);
	tree = tdt__answers_find(&answers, &five);
	ck_assert_ptr_nonnull(tree);
	ck_assert_uint_eq(tree->tree.polls, 2);
	ck_assert_uint_eq(tdt__answer_entries(tree)[0].pc, 5);
	ck_assert_ptr_null(tdt__answers_find(&answers, &seven));
	other.record.id = 8; /* the record is another task's by now */
	ck_assert_ptr_null(tdt__answers_find(&answers, &other));
}

/* Answer any number of requests by ids. */
static void serve_ids(int connection, struct tdt_outside_header *hello)
{
	char next;

	say_hello(connection, hello);
	while (recv(connection, &next, 1, MSG_PEEK) > 0) {
		struct tdt_outside_trees request = take_request(connection);

		MUST(request.n_ids > 0 && request.n_ids <= TDT_OUTSIDE_IDS);
		for (uint32_t i = 0; i < request.n_ids; i++)
			say_tree(connection, &request, request.ids[i]);
		say_done(connection, &request);
	}
}

TEST(as_many_tasks_are_requested_as_may_be)
{
	static uint64_t ids[300];
	const struct tdt__task_choice some = { .ids = ids, .n_ids = 300 };

	for (uint64_t i = 0; i < 300; i++)
		ids[i] = i + 1;
	ck_assert_int_eq(request_trees_of(serve_ids, &some, 1000), 0);
	ck_assert_uint_eq(answers.n, 300);
	ck_assert_uint_eq(answers.left_out, 0);
	ck_assert_uint_eq(answers.answer[299]->id, 300);
	ck_assert_int_eq(request_trees_of(serve_ids, &some, 130), 0);
	ck_assert_uint_eq(answers.n, 130);
	ck_assert_uint_eq(answers.left_out, 170);
}

static void serve_late(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);

	say_tree(connection, &request, 5);
	pause();
}

TEST(what_came_before_the_target_fell_silent_is_kept)
{
	struct tdt_outside_trees request = { .most = 10 };

	start_target(serve_late);
	ck_assert_int_eq(open_door(), 0);
	ck_assert_int_eq(tdt__door_send(&the_door, &request.header, TDT_OUTSIDE_TREES,
					sizeof request, 0, &trouble), 0);
	ck_assert_int_eq(tdt__door_receive(&the_door, &trouble), TDT_OUTSIDE_TREE);
	the_door.deadline = tdt__clock();
	ck_assert_int_eq(tdt__door_receive(&the_door, &trouble), -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(trouble.text, "did not answer in time"));
	tdt__door_close(&the_door);
	stop_target();
}

static void serve_and_die(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);

	say_tree(connection, &request, 5);
}

static void refuse_all(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);

	request.header.size = sizeof request.header;
	request.header.error = ENOMEM;
	say(connection, &request.header, sizeof request.header);
}

TEST(a_target_that_dies_or_refuses_leaves_what_had_come)
{
	ck_assert_int_eq(request_trees_of(serve_and_die, &all, 10), -ECONNRESET);
	ck_assert_uint_eq(answers.n, 1);
	ck_assert_int_eq(request_trees_of(refuse_all, &all, 10), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(trouble.text, "refuses the request"));
}

/* A tree that makes no sense: a field with another value, in a message of so many bytes. */
#define LIE(field, value, sent)                                                                    \
	{                                                                                          \
		offsetof(struct two_frames, field), sizeof(((struct two_frames *)0)->field),       \
		    (uint64_t)(value), sent                                                        \
	}
#define ALL sizeof(struct two_frames)

static const struct lie {
	size_t at, n;
	uint64_t value;
	size_t sent;
} lies[] = {
	LIE(tree.header.size, ALL - 1, ALL),
	LIE(tree.header.number, 4711, ALL),
	LIE(tree.header.version, TDT_OUTSIDE_VERSION + 1, ALL),
	LIE(tree.header.kind, TDT_OUTSIDE_WATCH, ALL),
	LIE(tree.header.kind, 0, ALL),
	LIE(tree.answer, 0, ALL),
	LIE(tree.answer, TDT_OUTSIDE_ENDED + 1, ALL),
	LIE(tree.tree.n, UINT32_MAX, ALL),
	LIE(tree.tree.n, 1, ALL),
	LIE(tree.header.error, -1, ALL),
	LIE(tree.n_waits, 1, ALL),
	LIE(tree.header.size, 40, 40), /* less than a tree */
	LIE(tree.entries, 8, ALL),
	LIE(tree.entries, sizeof(struct tdt_outside_tree) + 16, ALL),
	LIE(tree.wait_size, 8, ALL),
	LIE(tree.header.size, 5, 5), /* less than a header */
};
static const struct lie *lie; /* that the target tells */

static void serve_lie(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);
	struct two_frames message = tree_of(&request, 5);

	memcpy((char *)&message + lie->at, &lie->value, lie->n); /* the lower bytes */
	say(connection, &message, lie->sent);
	say_done(connection, &request);
}

/* A tree of a later release: its struct and its waits are longer, as is the end of the answer. */
static void serve_longer(int connection, struct tdt_outside_header *hello)
{
	struct {
		struct tdt_outside_tree tree;
		uint64_t later[3];
		struct tdt_registry_entry entry[2];
		struct {
			struct tdt_outside_wait known;
			uint64_t later;
		} wait[2];
	} message = { .later = { 1, 2, 3 } };
	struct tdt_outside_trees request = take_first_request(connection, hello);
	struct {
		struct tdt_outside_done known;
		uint64_t later;
	} done = { .later = 4 };

	memcpy(&message.entry, tree_of(&request, 5).entry, sizeof message.entry);
	message.tree = tree_of(&request, 5).tree;
	message.tree.header.size = sizeof message;
	message.tree.entries = offsetof(__typeof__(message), entry);
	message.tree.wait_size = sizeof message.wait[0];
	message.tree.n_waits = 2;
	message.wait[0].known = (struct tdt_outside_wait){ .kind = TDT_WAIT_IO, .object = 7 };
	message.wait[1].known = (struct tdt_outside_wait){ .kind = 99, .owner = 8 };
	say(connection, &message.tree.header, sizeof message);
	done.known = done_of(&request);
	done.known.header.size = sizeof done;
	say(connection, &done.known.header, sizeof done);
}

TEST(longer_messages_of_a_later_library_are_understood)
{
	ck_assert_int_eq(request_trees_of(serve_longer, &all, 10), 0);
	ck_assert_uint_eq(answers.n, 1);
	ck_assert_uint_eq(tdt__answer_entries(answers.answer[0])[1].pc, 3);
	ck_assert_uint_eq(tdt__answer_wait(answers.answer[0], 0)->object, 7);
	ck_assert_uint_eq(tdt__answer_wait(answers.answer[0], 1)->owner, 8);
}

CASE(lies, .skip = refused, .teardown = forget_answers)

TEST(a_message_that_makes_no_sense_is_not_used)
{
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		int error;

		lie = &lies[i];
		error = request_trees_of(serve_lie, &all, 10);
		ck_assert_msg(error == -EPROTO, "lie %zu: %d", i, error);
		ck_assert_uint_eq(answers.n, 0);
	}
}

static void serve_without_end(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_trees request = take_first_request(connection, hello);

	for (;;)
		say_tree(connection, &request, 5);
}

TEST(a_target_that_sends_without_end_is_left)
{
	ck_assert_int_eq(request_trees_of(serve_without_end, &all, 10), -EPROTO);
	ck_assert_uint_eq(answers.n, 10);
}

/* A packet that is larger than any message. */
static void serve_large(int connection, struct tdt_outside_header *hello)
{
	static char large[TDT_OUTSIDE_MESSAGE_MAX + 32];
	struct tdt_outside_trees request = take_first_request(connection, hello);
	struct two_frames message = tree_of(&request, 5);

	message.tree.header.size = sizeof large;
	memcpy(large, &message, sizeof message);
	say(connection, large, sizeof large);
}

TEST(a_packet_that_is_too_large_is_not_used)
{
	ck_assert_int_eq(request_trees_of(serve_large, &all, 10), -EPROTO);
}

/* --- One answer ----------------------------------------------------------------------------- */

static void serve_watch(int connection, struct tdt_outside_header *hello)
{
	struct tdt_outside_watch watch;

	say_hello(connection, hello);
	MUST(recv(connection, &watch, sizeof watch, 0) == sizeof watch);
	MUST(watch.header.kind == TDT_OUTSIDE_WATCH && watch.interval_ns == 5);
	watch.interval_ns = 1000000;
	say(connection, &watch, sizeof watch);
	MUST(recv(connection, &watch, sizeof watch, 0) == sizeof watch);
	watch.header.size = sizeof watch.header;
	say(connection, &watch, sizeof watch.header);
}

CASE(trees)

TEST(an_answer_replaces_its_request)
{
	struct tdt_outside_watch watch = { .interval_ns = 5 };

	start_target(serve_watch);
	ck_assert_int_eq(open_door(), 0);
	ck_assert_int_eq(tdt__door_request(&the_door, &watch.header, TDT_OUTSIDE_WATCH,
					   sizeof watch, &trouble), 0);
	ck_assert_uint_eq(watch.interval_ns, 1000000);
	ck_assert_int_eq(tdt__door_request(&the_door, &watch.header, TDT_OUTSIDE_WATCH,
					   sizeof watch, &trouble), -EPROTO);
	tdt__door_close(&the_door);
	stop_target();
}

/* --- Memory --------------------------------------------------------------------------------- */

static int request_and_forget(void *arg)
{
	int error = open_door();

	if (error == 0)
		error = tdt__answers_request(&answers, &the_door, &all, 10, TDT__SECOND, &trouble);
	tdt__answers_fini(&answers);
	tdt__door_close(&the_door);
	return error;
}

/* Serve one connection after the other. */
static void serve_many(int connection, struct tdt_outside_header *hello)
{
	for (;;) {
		struct tdt_outside_trees request;

		say_hello(connection, hello);
		if (recv(connection, &request, sizeof request, 0) == sizeof request) {
			say_tree(connection, &request, 5);
			say_done(connection, &request);
		}
		close(connection);
		connection = take_connection(hello);
	}
}

TEST(without_memory_there_is_an_error)
{
	NEEDS_FAILING_MEMORY();
	start_target(serve_many);
	no_memory_each(request_and_forget, NULL, 4);
	stop_target();
}

SUITE_SKIP(reading_refused())
