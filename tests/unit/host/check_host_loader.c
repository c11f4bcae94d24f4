// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers host/loaded, host/unloads.  Requests and dumps while the dynamic loader is busy: a task is
 * stuck in a plugin's constructor, another one waits for the loader to be done with that, or a
 * thread sits in a callback of dl_iterate_phdr().
 *
 * Nothing here is compared with a clock: what is claimed is that a call with a deadline returns
 * before the loader goes on, which is when the test says so.
 *
 * Without a cure all of these wait for the loader, but for tracing a future.
 */

#include <link.h>

#include "lib/apart.h"
#include "lib/host_plugins.h"
#include "lib/options.h"
#include "lib/poll_now.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

#define MS INT64_C(1000000)
#define SOON (5000 * MS) /* names, too, must be found by then, on a busy machine as well */
#define LATE (15000 * MS) /* of what does not last until its deadline */

/* --- What is dumped ------------------------------------------------------------------ */

static char *text_of_dump(int64_t timeout_ns)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = timeout_ns };

	return TEXT_WRITTEN(out, MUST(tdt_dump_with(out, &options) == 0));
}

static void must_have(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		printf("# not in the dump: %s\n%s", part, text);
	MUST(strstr(text, part) != NULL);
}

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Plugin e has no debug information: libdw would look for it elsewhere. */
static struct host_loaded stripped;

static void clone_and_drop(void *arg)
{
	idle_poll(NULL, arg);
	TDT_KEEP_FRAME();
}

static tdt_poll_t idle_in_plugin(void *state, struct tdt_context *cx)
{
	host_run(&stripped, clone_and_drop, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Tasks that wait, and answer as soon as they are requested. */
static struct poll_now idle[3];

static void start_idle(void)
{
	host_load(&stripped, 'e');
	for (int i = 0; i < 3; i++)
		poll_now_start(&idle[i], future_of(i == 0 ? idle_in_plugin : idle_poll, NULL));
}

static void end_idle(void)
{
	for (int i = 0; i < 3; i++)
		poll_now_end(&idle[i]);
	host_unload(&stripped);
}

/* --- A constructor that is stuck ------------------------------------------------------ */

static int constructor[2]; /* a pipe */
static atomic_int loading;

static __attribute__((noinline)) void load_d(void)
{
	struct host_loaded loaded;

	atomic_fetch_add(&loading, 1);
	host_load(&loaded, 'd');
	host_unload(&loaded);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void load_a(void)
{
	struct host_loaded loaded;

	atomic_fetch_add(&loading, 1);
	host_load(&loaded, 'a');
	host_unload(&loaded);
	TDT_KEEP_FRAME();
}

static tdt_poll_t loading_poll(void *state, struct tdt_context *cx)
{
	void (*load)(void) = *(void (**)(void))state;

	load();
	TDT_KEEP_FRAME();
	return TDT_READY;
}

static void (*loads_a)(void) = load_a, (*loads_d)(void) = load_d;

/* A process whose tasks `in_constructor` and `at_loader` are stuck until let_loader_go(). */
static struct stuck_task in_constructor, at_loader;

static void get_stuck(void)
{
	char number[16];

	MUST(pipe(constructor) == 0);
	snprintf(number, sizeof number, "%d", constructor[0]);
	MUST(setenv(HOST_CONSTRUCTOR_FD, number, 1) == 0);
	stuck_task_start(&in_constructor, loading_poll, &loads_d);
	while (atomic_load(&loading) < 1)
		usleep(200);
	stuck_task_settle(&in_constructor, false);
	stuck_task_start(&at_loader, loading_poll, &loads_a);
	while (atomic_load(&loading) < 2)
		usleep(200);
	stuck_task_settle(&at_loader, false);
}

static void let_loader_go(void)
{
	MUST(write(constructor[1], "", 1) == 1);
	stuck_task_end(&in_constructor);
	stuck_task_end(&at_loader);
}

static void dump_in_constructor(void *arg)
{
	bool warm = *(bool *)arg;
	char *text;

	start_idle();
	if (warm)
		free(text_of_dump(LATE));
	get_stuck();
	apart_doing("a dump while a constructor is stuck");
	text = text_of_dump(LATE);
	must_have(text, "5 tasks");
	must_have(text, "host_d_construct");
	must_have(text, "load_d");
	must_have(text, "load_a");
	must_have(text, "idle_poll");
	must_have(text, "idle_in_plugin");
	free(text);
	apart_doing("ending");
	let_loader_go();
	end_idle();
}

SUITE_SKIP(stuck_impossible())

CASE(host_loader, .timeout = APART_TEST_SECONDS)

TEST(a_dump_shows_a_task_down_to_the_constructor_it_is_stuck_in_and_all_others, .to = 2)
{
	bool warm = _i == 1;

	apart_must(dump_in_constructor, &warm);
}

/* --- A callback that takes its time ------------------------------------------------------ */

static atomic_bool in_callback, callback_may_end, callback_is_over;

static int sit(struct dl_phdr_info *info, size_t size, void *data)
{
	atomic_store(&in_callback, true);
	while (!atomic_load(&callback_may_end))
		usleep(1000);
	return 1;
}

static void *be_in_callback(void *arg)
{
	dl_iterate_phdr(sit, NULL);
	atomic_store(&callback_is_over, true);
	return arg;
}

static atomic_bool never;

static tdt_poll_t never_lets_go(void *state, struct tdt_context *cx)
{
	while (!atomic_load(&never))
		usleep(10000);
	return TDT_READY;
}

static void dump_now(struct tdt_handle *handle)
{
	TEXT(text, text_of_dump(SOON));

	must_have(text, "task");
	must_have(text, "never_lets_go");
}

static void ask_now(struct tdt_handle *handle)
{
	struct tdt_trace *trace = backtrace_timed(handle, SOON);

	if (trace != NULL)
		MUST(tdt_trace_root(trace) != NULL);
	tdt_trace_free(trace);
}

static void read_last(struct tdt_handle *handle)
{
	tdt_trace_free(tdt_backtrace_last(handle));
}

static void trace_another(struct tdt_handle *handle)
{
	POLL_NOW(task, future_of(idle_poll, NULL));
}

static const struct busy {
	void (*act)(struct tdt_handle *handle);
	const char *what;
	bool running; /* ask the task that runs */
	bool warm;    /* all was shown before */
	bool loads;   /* a task waits in dlopen() for the callback to end: then no thread can be
			 started */
} busy[] = {
	{ dump_now, "a dump during a callback of dl_iterate_phdr()", .warm = false },
	{ dump_now, "a dump during a callback of dl_iterate_phdr(), later", .warm = true },
	{ ask_now, "asking during a callback of dl_iterate_phdr()", .warm = false },
	{ ask_now, "asking during a callback of dl_iterate_phdr(), later", .warm = true },
	{ ask_now, "asking a poll that goes on during a callback of dl_iterate_phdr()",
	  .running = true },
	{ ask_now, "asking a poll that goes on during a callback of dl_iterate_phdr(), later",
	  .running = true, .warm = true },
	{ read_last, "reading a watched tree during a callback of dl_iterate_phdr()",
	  .warm = true },
	{ trace_another, "tracing a future during a callback of dl_iterate_phdr()", .warm = false },
	{ dump_now, "a dump during a callback and a dlopen()", .loads = true },
	{ dump_now, "a dump during a callback and a dlopen(), later", .warm = true, .loads = true },
	{ ask_now, "asking during a callback and a dlopen()", .loads = true },
	{ ask_now, "asking a poll that goes on during a callback and a dlopen()", .running = true,
	  .loads = true },
};

/* Returns when it waits for the loader. */
static void start_loading(struct stuck_task *task)
{
	stuck_task_start(task, loading_poll, &loads_a);
	while (atomic_load(&loading) == 0)
		usleep(200);
	stuck_task_settle(task, false);
}

static void act_during_callback(void *arg)
{
	const struct busy *test = arg;
	struct stuck_task running = { 0 }, loader = { 0 };
	pthread_t sitter;

	start_idle();
	stuck_task_start(&running, never_lets_go, NULL);
	if (test->warm) {
		MUST(tdt_watch(5 * MS, NULL) == 0);
		free(text_of_dump(SOON));
	}
	MUST(pthread_create(&sitter, NULL, be_in_callback, NULL) == 0);
	while (!atomic_load(&in_callback))
		usleep(200);
	if (test->loads)
		start_loading(&loader);
	apart_doing(test->what);
	test->act(test->running ? running.traced.handle : idle[0].traced.handle);
	MUST(!atomic_load(&callback_is_over));
	apart_doing("ending");
	atomic_store(&callback_may_end, true);
	pthread_join(sitter, NULL);
	if (test->loads)
		stuck_task_end(&loader);
	atomic_store(&never, true);
	stuck_task_end(&running);
	end_idle();
}

TEST(who_asks_does_not_wait_for_the_end_of_a_callback_of_the_loader,
     .to = sizeof busy / sizeof busy[0])
{
	struct busy test = busy[_i];

	apart_must(act_during_callback, &test);
}
