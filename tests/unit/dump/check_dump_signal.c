// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/dump_signal.  A dump on a signal is made by a thread of its own, whatever a host may
 * do to that thread.  The suite counts the dumps instead of printing them: tdt__dump() is
 * wrapped.
 */

#include <sys/socket.h>

#include "lib/folder.h"
#include "lib/no_threads.h"
#include "lib/options.h"
#include "lib/test.h"
#include "lib/threads.h"

static atomic_int begun, ended;
static atomic_bool held; /* a dump doesn't end while it is */
static atomic_int last_error;

int __wrap_tdt__dump(FILE *out, const struct tdt_dump_options *options, bool only_unseen)
{
	char name[16];
	sigset_t blocked;

	MUST(only_unseen);
	MUST((out == stderr) == (options == NULL));
	MUST(pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
	     strcmp(name, "tdt-dump") == 0);
	MUST(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
	for (int signo = 1; signo < 32; signo++)
		MUST(signo == SIGKILL || signo == SIGSTOP || sigismember(&blocked, signo));
	atomic_fetch_add(&begun, 1);
	while (atomic_load(&held))
		usleep(1000);
	errno = 0;
	fprintf(out, "# dump\n");
	atomic_store(&last_error, errno);
	atomic_fetch_add(&ended, 1);
	return 0;
}

/* Until so many have happened; 20 s at most. */
static bool reaches(atomic_int *count, int n)
{
	for (int i = 0; i < 20000 && atomic_load(count) < n; i++)
		usleep(1000);
	return atomic_load(count) >= n;
}

/* The thread ends some time after it is not wanted. */
static bool threads_become(int n)
{
	for (int i = 0; i < 20000 && threads_named("tdt-dump") != n; i++)
		usleep(1000);
	return threads_named("tdt-dump") == n;
}

static void expect_dump(int signo)
{
	int before = atomic_load(&ended);

	raise(signo);
	ck_assert(reaches(&ended, before + 1));
}

/* Whether what `signo` does is what `handler` says. */
static bool does(int signo, void (*handler)(int))
{
	struct sigaction action;

	sigaction(signo, NULL, &action);
	return action.sa_handler == handler;
}

CASE(signals)

TEST(a_signal_dumps_on_a_thread_with_all_signals_blocked)
{
	ck_assert_int_eq(threads_named("tdt-dump"), 0);
	errno = EDOM;
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(errno, EDOM);
	ck_assert(threads_become(1));
	for (int i = 0; i < 3; i++)
		expect_dump(SIGUSR1);
	ck_assert_int_eq(atomic_load(&begun), 3);
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
	ck_assert(threads_become(0));
	ck_assert(does(SIGUSR1, SIG_DFL));
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
}

TEST(the_handler_leaves_errno_alone)
{
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	errno = EDOM;
	raise(SIGUSR1);
	ck_assert_int_eq(errno, EDOM);
	ck_assert(reaches(&ended, 1));
}

TEST(signals_during_a_dump_lead_to_one_more)
{
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	atomic_store(&held, true);
	raise(SIGUSR1);
	ck_assert(reaches(&begun, 1));
	for (int i = 0; i < 1000; i++)
		raise(SIGUSR1);
	atomic_store(&held, false);
	ck_assert(reaches(&ended, 2));
	usleep(100000);
	ck_assert_int_eq(atomic_load(&begun), 2);
}

TEST(setting_and_unsetting_dump_nothing)
{
	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(tdt_dump_on_signal(i % 2 ? SIGUSR1 : SIGUSR2, NULL), 0);
		ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
	}
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	usleep(100000);
	ck_assert_int_eq(atomic_load(&begun), 0);
	ck_assert(threads_become(1));
	expect_dump(SIGUSR1);
}

TEST(another_signal_takes_over)
{
	signal(SIGUSR1, SIG_IGN);
	signal(SIGHUP, SIG_DFL); /* nohup has it ignored */
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), 0);
	ck_assert(does(SIGUSR1, SIG_IGN));
	expect_dump(SIGUSR2);
	ck_assert_int_eq(tdt_dump_on_signal(SIGHUP, NULL), 0);
	ck_assert(does(SIGUSR2, SIG_DFL));
	expect_dump(SIGHUP);
	ck_assert(threads_become(1));
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
	ck_assert(does(SIGHUP, SIG_DFL));
}

static void theirs(int signo)
{
}

TEST(a_signal_that_somebody_handles_is_left_to_him)
{
	signal(SIGUSR1, theirs);
	ck_assert_fails(tdt_dump_on_signal(SIGUSR1, NULL), EBUSY);
	ck_assert(does(SIGUSR1, theirs));
	ck_assert_int_eq(threads_named("tdt-dump"), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), -EBUSY);
	expect_dump(SIGUSR2);
	signal(SIGUSR2, theirs); /* taken from us */
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), -EBUSY);
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
	ck_assert(does(SIGUSR2, theirs));
}

TEST(a_signal_that_the_host_took_back_dumps_again)
{
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	signal(SIGUSR1, SIG_IGN);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	expect_dump(SIGUSR1);
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
	ck_assert(does(SIGUSR1, SIG_IGN));
}

TEST(what_can_t_dump_is_refused)
{
	static const int wrong[] = {
		-1, 65, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_fails(tdt_dump_on_signal(wrong[i], NULL), EINVAL);
	}
	ck_assert_int_eq(threads_named("tdt-dump"), 0);
}

/* Whether the file exists, and is then removed. */
static bool was_written(const char *path)
{
	for (int i = 0; i < 20000 && access(path, F_OK) != 0; i++)
		usleep(1000);
	return unlink(path) == 0;
}

TEST(dumps_go_to_the_file_of_the_last_call)
{
	char folder[FOLDER_SIZE], path[IN_FOLDER_SIZE], named[IN_FOLDER_SIZE];

	ck_assert(make_folder(folder));
	snprintf(path, sizeof path, "%s/%%p", folder);
	snprintf(named, sizeof named, "%s/%ld", folder, (long)getpid());
	errno = EDOM;
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO(path)), 0);
	ck_assert_int_eq(errno, EDOM);
	strcpy(path, "it is copied");
	expect_dump(SIGUSR1);
	ck_assert(was_written(named));
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO(NULL)), 0);
	expect_dump(SIGUSR1);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO(named)), 0);
	expect_dump(SIGUSR1);
	ck_assert(was_written(named));
	ck_assert_int_eq(tdt_dump_on_signal(0, TO(named)), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), 0);
	expect_dump(SIGUSR2);
	usleep(100000);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing was written since */
}

TEST(a_wrong_path_is_refused_and_changes_nothing)
{
	char path[PATH_MAX + 1] = "/tmp/none/";

	memset(path + 10, 'x', PATH_MAX - 10);
	ck_assert_fails(tdt_dump_on_signal(SIGUSR1, TO(path)), ENAMETOOLONG);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO("")), -EINVAL);
	ck_assert(does(SIGUSR1, SIG_DFL));
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO(path)), -ENAMETOOLONG);
	ck_assert_int_eq(tdt_dump_on_signal(SIGKILL, TO("/tmp/none/dump")), -EINVAL);
	expect_dump(SIGUSR1);
	path[PATH_MAX - 1] = '\0';
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO(path)), 0);
	expect_dump(SIGUSR1);
}

TEST(without_a_thread_nothing_is_changed)
{
	threads_left = 0;
	ck_assert_fails(tdt_dump_on_signal(SIGUSR1, NULL), EAGAIN);
	ck_assert(does(SIGUSR1, SIG_DFL));
	threads_left = -1;
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	expect_dump(SIGUSR1);
}

CASE(hosts)

TEST(blocked_calls_go_on_after_the_signal)
{
	int ends[2];
	char byte;
	pid_t child;

	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 20; i++) {
			kill(getppid(), SIGUSR1);
			usleep(5000);
		}
		_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
	}
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert(reaches(&ended, 1));
	waitpid(child, NULL, 0);
}

TEST(a_closed_stderr_and_a_closed_pipe_harm_nobody)
{
	int saved = dup(STDERR_FILENO), ends[2];

	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	signal(SIGPIPE, SIG_DFL);
	expect_dump(SIGUSR1);
	ck_assert_int_eq(atomic_load(&last_error), EPIPE);
	close(STDERR_FILENO);
	expect_dump(SIGUSR1);
	ck_assert_int_eq(atomic_load(&last_error), EBADF);
	dup2(saved, STDERR_FILENO);
	close(saved);
	expect_dump(SIGUSR1);
	ck_assert_int_eq(atomic_load(&last_error), 0);
}

/* As a daemon does it: all from 3 on are closed, and are sockets then. */
static void reuse_descriptors(void)
{
	int pair[2], saved, n = 0;
	char byte;

	MUST(tdt_dump_on_signal(SIGUSR1, NULL) == 0);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	saved = fcntl(pair[0], F_DUPFD, 200); /* the end that all others are */
	for (int fd = 3; fd < 100; fd++)
		n += fd != pair[1] && dup2(saved, fd) == fd;
	MUST(n > 90);
	for (int i = 1; i <= 2; i++) {
		raise(SIGUSR1);
		MUST(reaches(&ended, i));
	}
	MUST(recv(pair[1], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

TEST(no_descriptor_of_a_host_s_is_touched)
{
	IN_A_CHILD /* Check has descriptors, too */
		reuse_descriptors();
}

TEST(a_child_ignores_the_signal_until_it_asks_for_it)
{
	NOT_TRIED_IF(TSAN, "ThreadSanitizer wants no threads in a child");
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	expect_dump(SIGUSR1);
	IN_A_CHILD {
		MUST(threads_named("tdt-dump") == 0);
		raise(SIGUSR1); /* nobody dumps, here or there */
		usleep(50000);
		MUST(atomic_load(&begun) == 1);
		MUST(tdt_dump_on_signal(SIGUSR1, NULL) == 0);
		usleep(50000);
		MUST(atomic_load(&begun) == 1); /* what was raised before is forgotten */
		raise(SIGUSR1);
		MUST(reaches(&ended, 2));
		MUST(tdt_dump_on_signal(0, NULL) == 0);
		MUST(does(SIGUSR1, SIG_DFL));
	}
	ck_assert_int_eq(atomic_load(&begun), 1);
	expect_dump(SIGUSR1);
}

TEST(a_child_may_be_forked_in_the_middle_of_a_dump)
{
	NOT_TRIED_IF(TSAN, "ThreadSanitizer wants no threads in a child");
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	atomic_store(&held, true);
	raise(SIGUSR1);
	ck_assert(reaches(&begun, 1));
	raise(SIGUSR1);
	IN_A_CHILD {
		atomic_store(&held, false);
		MUST(tdt_dump_on_signal(0, NULL) == 0);
		MUST(tdt_dump_on_signal(SIGUSR2, NULL) == 0);
		raise(SIGUSR2);
		MUST(reaches(&ended, 1));
	}
	atomic_store(&held, false);
	ck_assert(reaches(&ended, 2));
}

static void *raise_often(void *arg)
{
	for (int i = 0; i < 2000; i++)
		raise(SIGUSR1);
	return NULL;
}

CASE(signals)

TEST(threads_may_raise_it_all_at_once)
{
	pthread_t threads[4];
	int before;

	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	threads_start(threads, 4, raise_often, NULL);
	threads_join(threads, 4);
	before = atomic_load(&begun);
	ck_assert(before >= 0 && before <= 8000);
	ck_assert(reaches(&ended, 1));
}
