// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers door/door, door/trees, tdt/layout/outside.h.  Readers of another process, as
 * <tdt/layout/outside.h> has them: they take the door by pidfd_getfd(2), and request trees of the
 * tasks of a runtime that polls nothing.
 */

#include <sys/syscall.h>
#include <sys/uio.h>

#include "lib/find_registry.h"
#include "lib/refused.h"
#include "lib/rt.h"
#include "lib/test.h"
#include "lib/visitor.h"

#define TASKS 50

/* --- The target ------------------------------------------------------------------------ */

static pid_t target;
static int ready; /* a pipe from the target */

static tdt_poll_t wait_for_ever(void *state, struct tdt_context *cx)
{
	static const struct tdt_waker *wakers[TASKS];
	const struct tdt_waker **waker = &wakers[(uintptr_t)state];

	tdt_waker_drop(*waker);
	*waker = tdt_waker_clone(cx->waker);
	return TDT_PENDING;
}

/* Tasks that nobody will ever wake; polled once, as their records say. */
static void be_wedged(int when_ready)
{
	struct tdt_rt *rt = rt_of(2);

	for (uintptr_t i = 0; i < TASKS; i++) {
		const struct tdt_future future = { (void *)i, wait_for_ever, drop_nothing };
		HANDLE(task, tdt_rt_spawn(rt, future, NULL));
		struct tdt_task_record *record = (void *)task;

		while (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) != TDT_TASK_RECORD_IDLE ||
		       __atomic_load_n(&record->polls, __ATOMIC_RELAXED) == 0)
			usleep(1000);
	}
	MUST(write(when_ready, "x", 1) == 1);
	for (;;)
		pause();
}

static void start_target(void)
{
	int pipes[2];
	char byte;

	ck_assert_int_eq(pipe(pipes), 0);
	target = fork();
	if (target == 0)
		be_wedged(pipes[1]);
	close(pipes[1]);
	ready = pipes[0];
	ck_assert_int_eq(read(ready, &byte, 1), 1);
}

static void kill_target(void)
{
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
}

/* --- The reader ------------------------------------------------------------------------- */

/* The target is a child of this process, so its registry is at the same address. */
static void read_registry(struct tdt_registry *registry)
{
	struct iovec to = { registry, sizeof *registry },
		     from = { (void *)(uintptr_t)find_registry(), sizeof *registry };

	MUST(process_vm_readv(target, &to, 1, &from, 1, 0) == sizeof *registry);
}

/* A descriptor of the target's door; -1: this is refused here. */
static int take_door(void)
{
	struct tdt_registry registry;
	struct stat stat;
	int process, door;

	process = (int)syscall(SYS_pidfd_open, target, 0);
	if (process < 0) {
		printf("# not tried: no pidfd_open(2) here\n");
		return -1;
	}
	read_registry(&registry);
	MUST(registry.door_inode != 0 && registry.pid == (uint32_t)target);
	door = (int)syscall(SYS_pidfd_getfd, process, registry.door, 0);
	close(process);
	if (door < 0) {
		printf("# not tried: pidfd_getfd(2) is refused here\n");
		return -1;
	}
	MUST(fstat(door, &stat) == 0 && S_ISSOCK(stat.st_mode));
	MUST(stat.st_ino == registry.door_inode);
	return door;
}

static void send_for_trees(int connection)
{
	const struct tdt_outside_trees request = { VISITOR_HEADER(tdt_outside_trees, TREES),
						   .timeout_ns = TDT_OUTSIDE_TIMEOUT_MAX_NS };

	visitor_send(connection, &request, sizeof request);
}

/* Receive all trees, and return how many of them are fresh. */
static uint32_t receive_trees(int connection)
{
	static union {
		struct tdt_outside_header header;
		struct tdt_outside_tree tree;
		struct tdt_outside_done done;
		char bytes[TDT_OUTSIDE_MESSAGE_MAX];
	} message;
	uint32_t fresh = 0, tasks = 0;

	for (;; tasks++) {
		visitor_receive(connection, &message, sizeof message);
		MUST(message.header.error == 0);
		if (message.header.kind == TDT_OUTSIDE_TREES)
			break;
		MUST(message.header.kind == TDT_OUTSIDE_TREE);
		fresh += message.tree.answer == TDT_OUTSIDE_FRESH && message.tree.tree.leaves == 1;
	}
	MUST(message.done.tasks == tasks && tasks == TASKS && message.done.fresh == fresh);
	return fresh;
}

/*
 * Receive a fresh tree of each task.  A worker may be held up in the poll that is to answer; then
 * its task is reported as running, and all are requested again.
 */
static void receive_all_fresh(int connection)
{
	while (receive_trees(connection) < TASKS)
		send_for_trees(connection);
}

CASE(wedged, .setup = start_target, .teardown = kill_target, .skip = reading_refused)

TEST(each_task_of_a_wedged_process_gives_its_tree)
{
	int door = take_door(), connection;

	if (door < 0)
		return;
	connection = visitor_come(door);
	send_for_trees(connection);
	receive_all_fresh(connection);
	close(connection);
	close(door);
}

TEST(readers_at_the_same_time_all_get_trees)
{
	int door = take_door(), connection[4];

	if (door < 0)
		return;
	for (int i = 0; i < 4; i++)
		connection[i] = visitor_come(door);
	for (int i = 0; i < 4; i++)
		send_for_trees(connection[i]);
	for (int i = 4; i-- > 0;) {
		receive_all_fresh(connection[i]);
		close(connection[i]);
	}
	close(door);
}

TEST(the_connection_ends_with_the_target)
{
	int door = take_door(), connection;

	if (door < 0)
		return;
	connection = visitor_come(door);
	kill(target, SIGKILL);
	visitor_end(connection);
	close(door);
}
