// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump on a signal.
 *
 * A signal handler may do next to nothing.  This one raises a semaphore, and a thread that waits
 * for the semaphore takes the dump.  A pipe would do as well, but it has descriptors.  A daemon
 * closes all descriptors that it does not know, and then opens sockets: the handler would write a
 * byte into one of these, and the thread would read bytes that are meant for others.  A semaphore
 * has no descriptor that can be closed, inherited or used up; and sem_post() is async-signal-safe
 * and never blocks.
 *
 * Two signals may dump: the one that the program chose by its last call, and the one that TDT_DUMP
 * chose.  TDT_DUMP belongs to the operator of the program, who must be able to send that signal
 * whatever the program calls.  A constructor installs its handler, so that the signal does not end
 * the process before the first task exists.  The thread starts with the first task: until then the
 * process may have to be single-threaded, or it may fork to become a daemon.
 *
 * After fork() the child has the handler and the semaphore, but not the thread.  A signal raises
 * the child's own semaphore, for which no thread waits.  So the requested dump never comes, and the
 * parent knows nothing of it.  The child gets a thread of its own, which begins with a semaphore at
 * 0, when it calls tdt_dump_on_signal(), or, with TDT_DUMP, when it makes a traced future.
 *
 * The thread ends by itself when no signal is wanted any more.  No thread waits for it: it may be
 * in the middle of a dump, and there in a write to a pipe that nobody reads.
 */

#include <config.h>

#include "dump/dump_signal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>

#include "base/service.h"
#include "dump/dump_file.h"
#include "dump/dump_variable.h"
#include "host/start.h"

pthread_mutex_t tdt__signal_lock = PTHREAD_MUTEX_INITIALIZER;

/* Raised by the handler, and when the thread has to end. */
static sem_t wanted;

/* There was a signal since the last dump began.  Relaxed: the semaphore orders it. */
static atomic_bool signaled;

/* What TDT_DUMP chose.  Written only before main(), or while dlopen() loads the library. */
static struct {
	int signo;           /* 0: none */
	char path[PATH_MAX]; /* "": stderr */
} environment;

/* Protected by tdt__signal_lock. */
static struct {
	int signo;            /* what the program chose; 0: nothing */
	char path[PATH_MAX];  /* "": that of the environment */
	struct sigaction old; /* the signal's disposition before */
	bool running;         /* there is a thread: it reads `signo` before it ends */
	uint32_t forks;       /* tdt__forks when it was started */
} dumper;

static void on_signal(int signo)
{
	int saved = errno;

	(void)signo;
	atomic_store_explicit(&signaled, true, memory_order_relaxed);
	sem_post(&wanted); /* EOVERFLOW: two thousand million posts are pending already */
	errno = saved;
}

/*
 * Wait for a signal, and take the signals that came meanwhile with it: one dump is for all of them.
 */
static void wait_for_signal(void)
{
	while (sem_wait(&wanted) != 0)
		; /* EINTR, because of a tracer for example */
	while (sem_trywait(&wanted) == 0)
		;
}

/* Whether any signal dumps. */
static bool is_wanted(void)
{
	return dumper.signo != 0 || environment.signo != 0;
}

/* Whether the thread has to end.  If so, `running` becomes false. */
static bool is_over(void)
{
	bool over;

	pthread_mutex_lock(&tdt__signal_lock);
	over = !is_wanted();
	if (over)
		dumper.running = false;
	pthread_mutex_unlock(&tdt__signal_lock);
	return over;
}

/* Where the dump that is taken now goes.  "": to stderr. */
static void get_path(char path[PATH_MAX])
{
	pthread_mutex_lock(&tdt__signal_lock);
	strcpy(path, dumper.path[0] != '\0' ? dumper.path : environment.path);
	pthread_mutex_unlock(&tdt__signal_lock);
}

static void dump_once(void)
{
	char path[PATH_MAX];

	get_path(path);
	if (path[0] != '\0')
		tdt__dump_to_file(path);
	else
		tdt_dump(stderr, NULL);
}

/*
 * This thread has all signals blocked, SIGPIPE too: a dump to a closed pipe is an error in which
 * nobody is interested.
 */
static void *dump(void *nothing)
{
	pthread_setname_np(pthread_self(), "tdt-dump");
	for (;;) {
		wait_for_signal();
		if (is_over())
			return nothing;
		if (atomic_exchange_explicit(&signaled, false, memory_order_relaxed))
			dump_once();
	}
}

/* Make sure that this process has the thread.  Gives up the lock meanwhile: see service.h. */
static int need_thread(void)
{
	int error;

	if (dumper.running && dumper.forks == tdt__forks)
		return 0;
	/*
	 * No thread of this process waits for the semaphore, so what was raised in vain is dropped.
	 */
	sem_init(&wanted, 0, 0);
	atomic_store_explicit(&signaled, false, memory_order_relaxed);
	dumper.running = true;
	dumper.forks = tdt__forks;
	pthread_mutex_unlock(&tdt__signal_lock);
	error = tdt__service_start(dump);
	pthread_mutex_lock(&tdt__signal_lock);
	if (error != 0)
		dumper.running = false;
	return error;
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == on_signal;
}

static bool is_free(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 &&
	       (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ||
		action->sa_handler == on_signal);
}

/* Have the signal raise the semaphore.  The signal's old disposition goes to `old`. */
static int set_handler(int signo, struct sigaction *old)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };

	sigfillset(&action.sa_mask);
	return sigaction(signo, &action, old) == 0 ? 0 : -errno;
}

/* Restore the disposition of the signal that dumps now, unless other code has changed it since. */
static void give_back(void)
{
	struct sigaction now;

	if (dumper.signo != 0 && sigaction(dumper.signo, NULL, &now) == 0 && is_ours(&now))
		sigaction(dumper.signo, &dumper.old, NULL);
	dumper.signo = 0;
}

/*
 * Some signals can't be caught.  Those that the processor raises would come again as soon as their
 * handler returns, for ever.
 */
static bool can_dump(int signo)
{
	return signo != SIGKILL && signo != SIGSTOP && signo != SIGSEGV && signo != SIGBUS &&
	       signo != SIGFPE && signo != SIGILL;
}

/* Returns 0, or why the signal can't dump.  The signal's disposition goes to `old`. */
static int check(int signo, struct sigaction *old)
{
	if (!can_dump(signo) || sigaction(signo, NULL, old) != 0)
		return -EINVAL;
	return is_free(old) ? 0 : -EBUSY;
}

/* Have `signo` dump in place of the signal that dumps now, which may be the same one. */
static int replace(int signo)
{
	struct sigaction old;
	int error = set_handler(signo, &old);

	if (error != 0)
		return error;
	if (signo != dumper.signo)
		give_back();
	dumper.signo = signo;
	dumper.old = old;
	return 0;
}

/* Everything is checked again after need_thread(), which gives up the lock. */
static int change(int signo, const char *path)
{
	struct sigaction old;
	int error = check(signo, &old);

	if (error != 0)
		return error;
	do
		error = need_thread();
	while (error == 0 && !dumper.running);
	if (error == 0)
		error = check(signo, &old);
	if (error == 0 && (signo != dumper.signo || !is_ours(&old)))
		error = replace(signo);
	if (error == 0)
		strcpy(dumper.path, path);
	else if (!is_wanted())
		sem_post(&wanted); /* to make the thread end */
	return error;
}

static int stop(void)
{
	give_back();
	dumper.path[0] = '\0';
	if (dumper.running)
		sem_post(&wanted);
	return 0;
}

/* Returns 0, or why dumps cannot go there. */
static int check_path(const char *path)
{
	if (path == NULL)
		return 0;
	if (path[0] == '\0')
		return -EINVAL;
	return strlen(path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int tdt_dump_on_signal_to(int signo, const char *path)
{
	int saved = errno, error = signo != 0 ? check_path(path) : 0;

	if (error == 0)
		error = tdt__start();
	if (error == 0) {
		pthread_mutex_lock(&tdt__signal_lock);
		error = signo != 0 ? change(signo, path != NULL ? path : "") : stop();
		pthread_mutex_unlock(&tdt__signal_lock);
	}
	errno = error == 0 ? saved : -error;
	return error;
}

int tdt_dump_on_signal(int signo)
{
	return tdt_dump_on_signal_to(signo, NULL);
}

/* --- The environment ---------------------------------------------------------------- */

/* The path is copied, because the program may overwrite its environment. */
__attribute__((constructor)) static void by_environment(void)
{
	const char *text = secure_getenv("TDT_DUMP");
	struct tdt__dump_choice choice;
	struct sigaction old;
	int saved = errno;

	if (text != NULL && tdt__dump_variable(text, &choice) && check(choice.signo, &old) == 0) {
		sem_init(&wanted, 0, 0);
		if (set_handler(choice.signo, &old) == 0) {
			environment.signo = choice.signo;
			strcpy(environment.path, choice.path);
		}
	}
	errno = saved;
}

void tdt__dump_begin(void)
{
	pthread_mutex_lock(&tdt__signal_lock);
	if (environment.signo != 0)
		need_thread();
	pthread_mutex_unlock(&tdt__signal_lock);
}
