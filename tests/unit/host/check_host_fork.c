// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/namer, host/loaded.  fork() does not wait for what the library waits for: not
 * while a name is being looked up, however long that takes, and not while the loader's list of
 * modules is in use.
 *
 * Without a cure all of these hang, but for those that say that the look-up makes no such call.
 */

#include <link.h>

#include "lib/apart.h"
#include "lib/calls.h"
#include "lib/host_plugins.h"
#include "lib/options.h"
#include "lib/poll_now.h"
#include "lib/test.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

static void wait_for(atomic_bool *flag)
{
	while (!atomic_load(flag))
		usleep(200);
}

/* --- A task that waits in a plugin -------------------------------------------------- */

static struct host_loaded loaded;

static void clone_and_drop(void *arg)
{
	struct tdt_context *cx = arg;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static tdt_poll_t waits_in_plugin(void *state, struct tdt_context *cx)
{
	host_run(&loaded, clone_and_drop, cx);
	return TDT_PENDING;
}

/*
 * Ask it, name the trace and print it.  What lies in plugins has no names if the machine has no
 * time for the thread that knows whether they were unloaded: then ask again.
 */
static void trace_and_name(struct poll_now *task)
{
	bool named = false;

	for (; !named; usleep(1000)) {
		TRACE(trace, poll_now_ask(task, 0));
		FILE *nowhere = fopen("/dev/null", "we");

		MUST(nowhere != NULL && tdt_trace_print(trace, nowhere) == 0);
		fclose(nowhere);
		MUST(host_names(trace, "waits_in_plugin"));
		named = loaded.plugin->name != 'a' || host_names(trace, "host_a_zero");
	}
}

/* --- Children ------------------------------------------------------------------------ */

/* In a child: a task of its own is traced, with names that the child looks up. */
static void trace_in_child(void)
{
	calls_seen_by(NULL);
	POLL_NOW(task, future_of(waits_in_plugin, NULL));
	trace_and_name(&task);
}

/* Fork, and await the child, which does that. */
static void fork_and_wait(void (*in_child)(void))
{
	fflush(NULL);
	IN_A_CHILD {
		apart_doing("a child of fork()");
		if (!ASAN && !TSAN)
			in_child();
		fflush(stdout);
	}
}

/* --- While names are looked up --------------------------------------------------------- */

static enum call held_call;
static atomic_bool held, let_go, named;

/* Hold up the look-up in the plugin's file, or in what libdw loads. */
static void hold(enum call call, const char *path, bool done)
{
	if (call != held_call || done || path == NULL ||
	    (call != CALL_DLOPEN && strstr(path, "host_plugin_a.so") == NULL))
		return;
	atomic_store(&held, true);
	wait_for(&let_go);
}

static void *name_it(void *arg)
{
	MUST(tdt_trace_root(arg) != NULL);
	atomic_store(&named, true);
	return NULL;
}

/* Ask, and have the trace named on another thread, until that is held or over. */
static pthread_t ask_and_name(struct poll_now *task, struct tdt_trace **trace)
{
	pthread_t naming;

	calls_seen_by(NULL);
	tdt_trace_free(*trace);
	*trace = poll_now_ask(task, 0);
	atomic_store(&named, false);
	calls_seen_by(hold);
	MUST(pthread_create(&naming, NULL, name_it, *trace) == 0);
	while (!atomic_load(&held) && !atomic_load(&named))
		usleep(200);
	return naming;
}

static void fork_while_naming(void *arg)
{
	struct tdt_trace *trace = NULL;
	pthread_t naming;
	bool is_made;

	held_call = *(enum call *)arg;
	is_made = held_call != CALL_PREAD && held_call != CALL_DLOPEN;
	calls_are_mine(true);
	host_load(&loaded, held_call == CALL_DLOPEN ? 'e' : 'a'); /* e has no debug information */
	POLL_NOW(task, future_of(waits_in_plugin, NULL));
	naming = ask_and_name(&task, &trace);
	/* The file is opened and mapped, and nothing is loaded; but see trace_and_name(). */
	while (is_made && !atomic_load(&held)) {
		pthread_join(naming, NULL);
		naming = ask_and_name(&task, &trace);
	}
	MUST(atomic_load(&held) == is_made);
	if (!is_made)
		printf("# not tried: the look-up makes no such call\n");
	apart_doing("fork() while a name is looked up");
	fork_and_wait(trace_in_child);
	apart_doing("ending");
	calls_seen_by(NULL);
	atomic_store(&let_go, true);
	pthread_join(naming, NULL);
	tdt_trace_free(trace);
}

static void say_what_is_left_out(void)
{
	if (ASAN || TSAN)
		printf("# sanitizers want no threads in a child, or their allocator may be locked "
		       "in it: the children end at once\n");
}

CASE(host_fork, .setup = say_what_is_left_out, .timeout = APART_TEST_SECONDS)

TEST(fork_does_not_wait_for_a_look_up_that_waits_for_a_file, .to = 3)
{
	static const enum call calls[] = { CALL_OPEN, CALL_MMAP, CALL_PREAD };
	enum call call = calls[_i];

	apart_must(fork_while_naming, &call);
}

TEST(fork_does_not_wait_for_a_look_up_that_waits_for_the_loader)
{
	enum call call = CALL_DLOPEN;

	apart_must(fork_while_naming, &call);
}

/* --- In a callback of dl_iterate_phdr() --------------------------------------------------- */

static struct poll_now asked;
static atomic_bool may_ask, waits_for_list, has_asked, over;

/* A requester is about to wait for the list of modules, with whatever it holds. */
static void notice(enum call call, const char *path, bool done)
{
	if (call == CALL_ITERATE && !done)
		atomic_store(&waits_for_list, true);
}

/* The task is not polled, so that each request takes the time it has. */
static void *ask_on(void *arg)
{
	wait_for(&may_ask);
	calls_seen_by(notice);
	do {
		tdt_trace_free(backtrace_timed(asked.traced.handle, 100 * MS));
		atomic_store(&has_asked, true);
	} while (!atomic_load(&over));
	return arg;
}

/* Have others ask, and come back when they wait for the list or have their answer. */
static void let_others_ask(void)
{
	atomic_store(&may_ask, true);
	while (!atomic_load(&waits_for_list) && !atomic_load(&has_asked))
		usleep(200);
	usleep(10000); /* whoever has noted the one or the other is about to do it */
}

static void just_end(void)
{
}

static void ask_in_child(void)
{
	tdt_trace_free(backtrace_timed(asked.traced.handle, 100 * MS));
	tdt_dump_with(stdout, &(struct tdt_dump_options){ .size = sizeof(struct tdt_dump_options),
						     .timeout_ns = 100 * MS });
}

static void ask_now(void)
{
	tdt_trace_free(backtrace_timed(asked.traced.handle, 300 * MS));
}

static void dump_now(void)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 300 * MS };
	FILE *nowhere = fopen("/dev/null", "we");

	MUST(nowhere != NULL && tdt_dump_with(nowhere, &options) == 0);
	fclose(nowhere);
}

static void fork_now(void)
{
	fork_and_wait(just_end);
}

static void fork_asking_now(void)
{
	fork_and_wait(ask_in_child);
}

static const struct in_callback {
	void (*act)(void);
	const char *what;
	bool warm; /* there was a request before */
} in_callback[] = {
	{ fork_now, "fork() in a callback of dl_iterate_phdr()", false },
	{ fork_now, "fork() in a callback of dl_iterate_phdr(), later", true },
	{ ask_now, "asking in a callback of dl_iterate_phdr()", false },
	{ ask_now, "asking in a callback of dl_iterate_phdr(), later", true },
	{ dump_now, "a dump in a callback of dl_iterate_phdr()", false },
	{ dump_now, "a dump in a callback of dl_iterate_phdr(), later", true },
	{ fork_asking_now, "asking in a child that was forked in a callback of dl_iterate_phdr()",
	  true },
};

static int callback(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct in_callback *test = data;

	let_others_ask();
	apart_doing(test->what);
	test->act();
	return 1;
}

static void be_in_callback(void *arg)
{
	const struct in_callback *test = arg;
	pthread_t requester;

	calls_are_mine(true);
	host_load(&loaded, 'a');
	poll_now_start(&asked, future_of(waits_in_plugin, NULL));
	if (test->warm)
		trace_and_name(&asked);
	asked.held = true;
	MUST(pthread_create(&requester, NULL, ask_on, NULL) == 0);
	MUST(dl_iterate_phdr(callback, arg) == 1);
	apart_doing("ending");
	atomic_store(&over, true);
	pthread_join(requester, NULL);
	poll_now_end(&asked);
}

static void in_callback_must(int i)
{
	struct in_callback test = in_callback[i];

	apart_must(be_in_callback, &test);
}

TEST(a_host_may_fork_in_a_callback_of_the_loader_while_others_ask, .to = 2)
{
	in_callback_must(_i);
}

TEST(a_host_may_ask_in_a_callback_of_the_loader_while_others_ask, .from = 2, .to = 6)
{
	in_callback_must(_i);
}

TEST(a_child_forked_in_a_callback_of_the_loader_may_ask, .from = 6, .to = 7)
{
	in_callback_must(_i);
}
