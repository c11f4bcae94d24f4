// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/running, capture/interrupt.  Running polls are read while they end, move to other
 * threads and lose theirs, by several requesters, around forks, and with the signal in the hands of
 * the host.
 */

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/capture_trace.h"
#include "capture/running.h"
#include "lib/options.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "registry/handle.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* --- A task that is polled over and over, here and there ------------------------ */

static struct {
	struct tdt_waker waker;
	struct tdt_traced traced;
	pthread_mutex_t turn; /* its holder polls, and alone reads and writes what follows */
	uint64_t polls;
	unsigned seed;
	atomic_bool over;
} moving = { .turn = PTHREAD_MUTEX_INITIALIZER };

static void spend(unsigned ns, bool sleeps)
{
	uint64_t end = tdt__clock() + ns;

	if (sleeps)
		nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
	else
		while (tdt__clock() < end)
			;
}

static NOINLINE void even_poll(unsigned ns, bool sleeps)
{
	spend(ns, sleeps);
	USE(&ns);
}

static NOINLINE void odd_poll(unsigned ns, bool sleeps)
{
	spend(ns, sleeps);
	USE(&sleeps);
}

static tdt_poll_t moving_poll(void *state, struct tdt_context *cx)
{
	unsigned ns = random_below(&moving.seed, 60000);
	bool sleeps = random_below(&moving.seed, 3) == 0;

	moving.polls++;
	if (moving.polls % 2 == 0)
		even_poll(ns, sleeps);
	else
		odd_poll(ns, sleeps);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

/* Poll a few times and exit. */
static void *poll_some(void *argument)
{
	struct tdt_context cx = { &moving.waker };

	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&moving.turn);
		tdt_future_poll(&moving.traced.future, &cx);
		pthread_mutex_unlock(&moving.turn);
		sched_yield();
	}
	return argument;
}

/* New threads all the time. */
static void *keep_polling(void *argument)
{
	while (!atomic_load(&moving.over)) {
		run_on_thread(poll_some, NULL);
	}
	return argument;
}

/* What was read is of the poll that was requested, by its stack and its thread. */
static void check_capture(struct tdt__capture *capture, uint64_t polls)
{
	struct tdt_trace *trace;

	MUST(capture->facts.polls == polls && capture->facts.state == TDT_TASK_RUNNING);
	trace = tdt__capture_trace(moving.traced.handle, capture);
	MUST(trace != NULL);
	TEXT(path, stuck_path(trace));
	/* It may have been read just before or after it was in there. */
	MUST(strstr(path, polls % 2 == 0 ? "odd_poll" : "even_poll") == NULL);
	tdt_trace_free(trace);
}

static atomic_uint read_stacks, rounds;

static void *ask_on(void *argument)
{
	unsigned seed = *(unsigned *)argument;

	while (!atomic_load(&moving.over)) {
		uint64_t polls = tdt__running_poll(moving.traced.handle);
		struct tdt__capture *capture;
		int error = 0;

		if (polls == 0) {
			sched_yield();
			continue;
		}
		/* Often too soon for the thread: the signal comes late. */
		capture = tdt__running(moving.traced.handle, polls, TDT_MAX_FRAMES,
				       tdt__clock() + random_below(&seed, 2) * SECOND +
					   random_below(&seed, 20000),
				       &error);
		atomic_fetch_add(&rounds, 1);
		if (capture != NULL) {
			check_capture(capture, polls);
			atomic_fetch_add(&read_stacks, 1);
		} else {
			/*
			 * While the handler is at work for another, or was and can't go on, it has
			 * the signal blocked.
			 */
			MUST(error == -EAGAIN || error == -ETIMEDOUT || error == -EPERM);
		}
	}
	return NULL;
}

static void race(unsigned pollers, unsigned requesters)
{
	pthread_t poller[4], requester[16];
	unsigned seed[16], first = seed_of_run();
	uint64_t end = tdt__clock() + (test_in_full() ? 2000 : 400) * MS;

	moving.waker.vtable = idle_waker.vtable;
	moving.seed = first;
	moving.traced = tdt_traced(((struct tdt_future){ NULL, moving_poll, drop_nothing }));
	threads_start(poller, pollers, keep_polling, NULL);
	for (unsigned i = 0; i < requesters; i++) {
		seed[i] = first + i;
		ck_assert_int_eq(pthread_create(&requester[i], NULL, ask_on, &seed[i]), 0);
	}
	/* For some time, and until something was caught. */
	while (tdt__clock() < end || atomic_load(&read_stacks) == 0)
		usleep(10000);
	atomic_store(&moving.over, true);
	threads_join(requester, requesters);
	threads_join(poller, pollers);
	printf("# %u of %u read\n", atomic_load(&read_stacks), atomic_load(&rounds));
	end_traced(&moving.traced);
}

SUITE_SKIP(stuck_impossible())

CASE(running_races)

TEST(a_poll_that_ends_while_it_is_read_is_never_taken_for_another)
{
	race(1, 1);
}

TEST(a_task_that_moves_between_threads_that_exit_is_read_where_it_is)
{
	race(3, 2);
}

TEST(more_requesters_than_can_be_served_at_once_take_turns)
{
	race(2, 12);
}

/* --- A poll that spins until it is told ------------------------------------------- */

static atomic_bool spun_enough;
static atomic_int spinning;

static NOINLINE tdt_poll_t spin_poll(void *state, struct tdt_context *cx)
{
	atomic_fetch_add(&spinning, 1);
	while (!atomic_load(&spun_enough))
		;
	USE(cx);
	USE(state);
	return TDT_READY;
}

static void start_spinning(struct stuck_task *task)
{
	atomic_store(&spun_enough, false);
	atomic_store(&spinning, 0);
	stuck_task_start(task, spin_poll, NULL);
	while (atomic_load(&spinning) == 0)
		usleep(100);
}

static void stop_spinning(struct stuck_task *task)
{
	atomic_store(&spun_enough, true);
	stuck_task_end(task);
}

static void check_spinning(const struct stuck_task *task)
{
	TRACE(trace, stuck_task_ask(task));
	TEXT(path, stuck_path(trace));

	MUST(SIGNALS_ARE_LATE || strstr(path, "spin_poll") != NULL);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

/* What /proc says of the thread's pending signals is nothing. */
static bool nothing_is_pending(const struct stuck_task *task)
{
	char path[64], line[200];
	bool nothing = false;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%u/status", atomic_load(&task->tid));
	file = fopen(path, "re");
	MUST(file != NULL);
	while (fgets(line, sizeof line, file) != NULL)
		nothing = nothing || strcmp(line, "SigPnd:\t0000000000000000\n") == 0;
	fclose(file);
	return nothing;
}

static int note_state(struct tdt_handle *handle, const struct tdt_task_info *info, void *state)
{
	*(struct tdt_task_info *)state = *info;
	return 0;
}

TEST(a_thread_with_the_signal_blocked_is_sent_none)
{
	struct stuck_task task = { .before = block_all };
	struct tdt_task_info info;

	start_spinning(&task);
	ck_assert_ptr_fails(backtrace_timed(task.traced.handle, 200 * (int64_t)MS), ETIMEDOUT);
	ck_assert(nothing_is_pending(&task));
	ck_assert_int_eq(tdt_task_inspect(task.traced.handle, note_state, &info), 0);
	ck_assert_int_eq(info.state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info.thread, atomic_load(&task.tid));
	stop_spinning(&task);
}

/* --- The host's signals ----------------------------------------------------------------- */

static atomic_int hosts;

static void hosts_handler(int signal)
{
	atomic_fetch_add(&hosts, 1);
}

TEST(a_signal_that_the_host_takes_is_the_hosts)
{
	struct sigaction action = { .sa_handler = hosts_handler }, now;
	struct stuck_task task = { 0 };
	int first, second;

	/* One it had before. */
	ck_assert_int_eq(sigaction(SIGRTMAX - 1, &action, NULL), 0);
	start_spinning(&task);
	check_spinning(&task);
	first = stuck_signal();
	ck_assert_int_ne(first, SIGRTMAX - 1);
	/* And one it takes later. */
	ck_assert_int_eq(sigaction(first, &action, NULL), 0);
	check_spinning(&task);
	for (second = first - 1; second >= SIGRTMIN; second--)
		if (sigaction(second, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
		    now.sa_handler != hosts_handler)
			break;
	ck_assert_int_ge(second, SIGRTMIN);
	ck_assert_int_eq(sigaction(first, NULL, &now), 0);
	ck_assert(now.sa_handler == hosts_handler);
	ck_assert_int_eq(sigaction(SIGRTMAX - 1, NULL, &now), 0);
	ck_assert(now.sa_handler == hosts_handler);
	ck_assert_int_eq(atomic_load(&hosts), 0);
	stop_spinning(&task);
}

TEST(with_every_signal_taken_a_thread_that_runs_is_not_read)
{
	struct sigaction action = { .sa_handler = hosts_handler };
	struct stuck_task task = { 0 };

	for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
		sigaction(signal, &action, NULL);
	start_spinning(&task);
	ck_assert_ptr_fails(backtrace_timed(task.traced.handle, 100 * (int64_t)MS), ETIMEDOUT);
	ck_assert_int_eq(atomic_load(&hosts), 0);
	stop_spinning(&task);
}

TEST(a_signal_that_somebody_else_sends_does_nothing)
{
	struct stuck_task task = { 0 };

	start_spinning(&task);
	check_spinning(&task);
	for (unsigned number = 0; number < 100; number++)
		ck_assert_int_eq(
		    pthread_sigqueue(task.thread, stuck_signal(),
				     (union sigval){ .sival_ptr = (void *)(uintptr_t)number }),
		    0);
	ck_assert_int_eq(pthread_kill(task.thread, stuck_signal()), 0);
	check_spinning(&task);
	stop_spinning(&task);
}

/* --- fork -------------------------------------------------------------------------------- */

static struct stuck_task spun;

static void *keep_asking(void *argument)
{
	while (!atomic_load(&moving.over))
		check_spinning(&spun);
	return argument;
}

/* In a child: the thread that polls is not there; and a new one can be read. */
static void ask_in_child(void)
{
	struct stuck_task task = { 0 };

	MUST(backtrace_timed(spun.traced.handle, 30 * (int64_t)MS) == NULL &&
	     errno == ETIMEDOUT);
	start_spinning(&task);
	check_spinning(&task);
	stop_spinning(&task);
}

TEST(children_forked_while_others_ask_can_ask)
{
	pthread_t requester[2];

	NOT_TRIED_IF(SANITIZED, "sanitizers want no threads in such a child");
	start_spinning(&spun);
	threads_start(requester, 2, keep_asking, NULL);
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			ask_in_child();
			_exit(0);
		}
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_msg(status == 0, "child %d ended with %x", i, (unsigned)status);
	}
	atomic_store(&moving.over, true);
	threads_join(requester, 2);
	stop_spinning(&spun);
}

/* A poll that forks goes on in the child, on its only thread; another thread requests it. */
static void *ask_forking(void *argument)
{
	while (atomic_load(&spinning) == 0)
		usleep(100);
	check_spinning(argument);
	atomic_store(&spun_enough, true);
	return NULL;
}

static struct stuck_task forking;

static tdt_poll_t fork_poll(void *state, struct tdt_context *cx)
{
	pid_t child = fork();
	pthread_t requester;
	int status = 0;

	if (child == 0) {
		atomic_store(&forking.tid, (unsigned)gettid());
		MUST(pthread_create(&requester, NULL, ask_forking, &forking) == 0);
		spin_poll(state, cx);
		pthread_join(requester, NULL);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	*(int *)state = status;
	return TDT_READY;
}

TEST(a_poll_that_forks_can_be_read_in_the_child)
{
	int status = -1;

	NOT_TRIED_IF(SANITIZED, "sanitizers want no threads in such a child");
	stuck_task_start(&forking, fork_poll, &status);
	stuck_task_end(&forking);
	ck_assert_int_eq(status, 0);
}
