// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump on a signal, and a snapshot of the flight recorder on another signal: the two *actions*.
 *
 * A signal handler may do next to nothing.  This one raises a semaphore, and a thread that waits
 * for the semaphore takes the dump, or the snapshot.  A pipe would do as well, but it has
 * descriptors.  A daemon closes all descriptors that it does not know, and then opens sockets: the
 * handler would write a byte into one of these, and the thread would read bytes that are meant for
 * others.  A semaphore has no descriptor that can be closed, inherited or used up; and sem_post()
 * is async-signal-safe and never blocks.
 *
 * Two signals may dump: the one that the program chose by its last call, and the one that TDT_DUMP
 * chose.  The same holds for snapshots, with TDT_RECORD_FILE.  The variables belong to the operator
 * of the program, who must be able to send these signals whatever the program calls.  A constructor
 * installs their handlers, so that a signal does not end the process before the first task exists.
 * The thread starts with the first task: until then the process may have to be single-threaded, or
 * it may fork to become a daemon.
 *
 * After fork() the child has the handler and the semaphore, but not the thread.  A signal raises
 * the child's own semaphore, for which no thread waits.  So the requested dump never comes, and the
 * parent knows nothing of it.  The child gets a thread of its own, which begins with a semaphore at
 * 0, when it calls tdt_dump_on_signal(), or, with TDT_DUMP, when it makes a traced future.
 *
 * The thread ends by itself when no signal is wanted any more.  No thread waits for it: it may be
 * in the middle of a dump, and there in a write to a pipe that nobody reads.
 */

#include "dump/dump_signal.h"

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>
#include <tdt/recorder.h>

#include "base/options.h"
#include "base/result.h"
#include "base/service.h"
#include "dump/dump_file.h"
#include "dump/dump_variable.h"
#include "dump/recorder_snapshot.h"
#include "dump/snapshot.h"
#include "host/start.h"

pthread_mutex_t tdt__signal_lock = PTHREAD_MUTEX_INITIALIZER;

/* Raised by the handler, and when the thread has to end. */
static sem_t wanted;

static void on_dump_signal(int signo);
static void on_snapshot_signal(int signo);

static void make_dump(const char *path, uint64_t since_ns)
{
	(void)since_ns;
	if (path[0] != '\0')
		tdt__dump_to_file(path);
	else
		tdt__dump(stderr, NULL, true);
}

static void make_snapshot(const char *path, uint64_t since_ns)
{
	tdt__recorder_snapshot_by_pattern(path, since_ns);
}

/* What a signal leads to. */
struct action {
	const char *variable;          /* of the environment */
	void (*handler)(int signo);
	void (*run)(const char *path, uint64_t since_ns); /* "": to stderr */
	bool needs_path;
	/* There was a signal since the action was last run.  Relaxed: the semaphore orders it. */
	atomic_bool signaled;
	/* The variable's choice.  Written only before main(), or while dlopen() loads libtdt. */
	struct {
		int signo; /* 0: none */
		char path[PATH_MAX];
	} environment;
	/* Protected by tdt__signal_lock. */
	int signo;            /* what the program chose; 0: nothing */
	char path[PATH_MAX];  /* "": that of the environment */
	uint64_t since_ns;    /* of a snapshot: how much of the past; 0: all */
	struct sigaction old; /* the signal's disposition before */
};

enum { DUMP, SNAPSHOT, ACTIONS };

static struct action actions[ACTIONS] = {
	[DUMP] = { .variable = "TDT_DUMP", .handler = on_dump_signal, .run = make_dump },
	[SNAPSHOT] = { .variable = "TDT_RECORD_FILE",
		       .handler = on_snapshot_signal,
		       .run = make_snapshot,
		       .needs_path = true },
};

/* Protected by tdt__signal_lock. */
static struct {
	bool running;   /* there is a thread: it reads what is wanted before it ends */
	uint32_t forks; /* tdt__forks when it was started */
} dumper;

static void raise_action(struct action *action)
{
	int saved = errno;

	atomic_store_explicit(&action->signaled, true, memory_order_relaxed);
	sem_post(&wanted); /* EOVERFLOW: two thousand million posts are pending already */
	errno = saved;
}

static void on_dump_signal(int signo)
{
	(void)signo;
	raise_action(&actions[DUMP]);
}

static void on_snapshot_signal(int signo)
{
	(void)signo;
	raise_action(&actions[SNAPSHOT]);
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

static bool is_wanted_by_environment(void)
{
	return actions[DUMP].environment.signo != 0 || actions[SNAPSHOT].environment.signo != 0;
}

/* Whether any signal leads to an action. */
static bool is_wanted(void)
{
	return actions[DUMP].signo != 0 || actions[SNAPSHOT].signo != 0 ||
	       is_wanted_by_environment();
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

static void run_action(struct action *action)
{
	char path[PATH_MAX];
	uint64_t since_ns;

	if (!atomic_exchange_explicit(&action->signaled, false, memory_order_relaxed))
		return;
	pthread_mutex_lock(&tdt__signal_lock);
	since_ns = action->path[0] != '\0' ? action->since_ns : 0;
	strcpy(path, action->path[0] != '\0' ? action->path : action->environment.path);
	pthread_mutex_unlock(&tdt__signal_lock);
	if (path[0] != '\0' || !action->needs_path)
		action->run(path, since_ns);
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
		for (int i = 0; i < ACTIONS; i++)
			run_action(&actions[i]);
	}
}

/* Make sure that this process has the thread.  Gives up the lock meanwhile: see service.h. */
static int need_thread(void)
{
	if (dumper.running && dumper.forks == tdt__forks)
		return 0;
	/*
	 * No thread of this process waits for the semaphore, so what was raised in vain is dropped.
	 */
	sem_init(&wanted, 0, 0);
	for (int i = 0; i < ACTIONS; i++)
		atomic_store_explicit(&actions[i].signaled, false, memory_order_relaxed);
	dumper.running = false;
	dumper.forks = tdt__forks;
	return tdt__service_need(dump, &dumper.running, &tdt__signal_lock);
}

static bool is_ours(const struct action *action, const struct sigaction *now)
{
	return (now->sa_flags & SA_SIGINFO) == 0 && now->sa_handler == action->handler;
}

static bool is_free(const struct action *action, const struct sigaction *now)
{
	return is_ours(action, now) ||
	       ((now->sa_flags & SA_SIGINFO) == 0 &&
		(now->sa_handler == SIG_DFL || now->sa_handler == SIG_IGN));
}

/* Have the signal raise the semaphore.  The signal's old disposition goes to `old`. */
static int set_handler(const struct action *action, int signo, struct sigaction *old)
{
	struct sigaction new = { .sa_handler = action->handler,
				 .sa_flags = SA_RESTART | SA_ONSTACK };

	sigfillset(&new.sa_mask);
	return sigaction(signo, &new, old) == 0 ? 0 : -errno;
}

/* Restore the disposition of the action's signal, unless other code has changed it since. */
static void give_back(struct action *action)
{
	struct sigaction now;

	if (action->signo != 0 && sigaction(action->signo, NULL, &now) == 0 &&
	    is_ours(action, &now))
		sigaction(action->signo, &action->old, NULL);
	action->signo = 0;
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

/* Returns 0, or why the signal can't be used.  The signal's disposition goes to `old`. */
static int check(const struct action *action, int signo, struct sigaction *old)
{
	if (!can_dump(signo) || sigaction(signo, NULL, old) != 0)
		return -EINVAL;
	return is_free(action, old) ? 0 : -EBUSY;
}

/* Have `signo` lead to the action in place of its present signal, which may be the same one. */
static int replace(struct action *action, int signo)
{
	struct sigaction old;
	int error = set_handler(action, signo, &old);

	if (error != 0)
		return error;
	if (signo != action->signo)
		give_back(action);
	action->signo = signo;
	action->old = old;
	return 0;
}

/* Everything is checked again after need_thread(), which gives up the lock. */
static int change(struct action *action, int signo, const char *path, uint64_t since_ns)
{
	struct sigaction old;
	int error = check(action, signo, &old);

	if (error != 0)
		return error;
	do
		error = need_thread();
	while (error == 0 && !dumper.running);
	if (error == 0)
		error = check(action, signo, &old);
	if (error == 0 && (signo != action->signo || !is_ours(action, &old)))
		error = replace(action, signo);
	if (error == 0) {
		strcpy(action->path, path);
		action->since_ns = since_ns;
	} else if (!is_wanted()) {
		sem_post(&wanted); /* to make the thread end */
	}
	return error;
}

static int stop(struct action *action)
{
	give_back(action);
	action->path[0] = '\0';
	if (dumper.running)
		sem_post(&wanted);
	return 0;
}

/* Returns 0, or why the action cannot use the path. */
static int check_path(const struct action *action, const char *path)
{
	if (path == NULL)
		return action->needs_path ? -EINVAL : 0;
	if (path[0] == '\0')
		return -EINVAL;
	return strlen(path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int act_on_signal(struct action *action, int signo, const char *path, uint64_t since_ns)
{
	int saved = errno, error = signo != 0 ? check_path(action, path) : 0;

	if (error == 0)
		error = tdt__start();
	if (error == 0) {
		pthread_mutex_lock(&tdt__signal_lock);
		error = signo != 0 ? change(action, signo, path != NULL ? path : "", since_ns)
				   : stop(action);
		pthread_mutex_unlock(&tdt__signal_lock);
	}
	errno = error == 0 ? saved : -error;
	return error;
}

int tdt_dump_on_signal(int signo, const struct tdt_signal_dump *options)
{
	struct tdt_signal_dump ours;
	int error = tdt__options_read(&ours, sizeof ours, options);

	if (error == 0 && ours.flags != 0)
		error = -EINVAL;
	return error != 0 ? tdt__result(error)
			  : act_on_signal(&actions[DUMP], signo, ours.path, 0);
}

int tdt_recorder_on_signal(int signo, const char *path,
			   const struct tdt_recorder_snapshot_options *options)
{
	struct tdt_recorder_snapshot_options ours;
	int error = tdt__options_read(&ours, sizeof ours, options);

	if (error == 0 && ours.flags != 0)
		error = -EINVAL;
	return error != 0 ? tdt__result(error)
			  : act_on_signal(&actions[SNAPSHOT], signo, path, ours.since_ns);
}

/* The path is copied, because the program may overwrite its environment. */
static void choose_by_variable(struct action *action)
{
	const char *text = secure_getenv(action->variable);
	struct tdt__dump_choice choice;
	struct sigaction old;

	if (text == NULL || !tdt__dump_variable(text, &choice) ||
	    (action->needs_path && choice.path[0] == '\0') ||
	    check(action, choice.signo, &old) != 0)
		return;
	sem_init(&wanted, 0, 0);
	if (set_handler(action, choice.signo, &old) == 0) {
		action->environment.signo = choice.signo;
		strcpy(action->environment.path, choice.path);
	}
}

__attribute__((constructor)) static void by_environment(void)
{
	int saved = errno;

	for (int i = 0; i < ACTIONS; i++)
		choose_by_variable(&actions[i]);
	errno = saved;
}

void tdt__dump_begin(void)
{
	pthread_mutex_lock(&tdt__signal_lock);
	if (is_wanted_by_environment())
		need_thread();
	pthread_mutex_unlock(&tdt__signal_lock);
}
