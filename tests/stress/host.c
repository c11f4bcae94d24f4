// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A host that does all at once what may harm it while it is traced: plugins are loaded, run in and
 * unloaded by polls, threads on small alternate stacks come and go and get signals, and meanwhile
 * other threads ask, dump, watch, fork, and sit in callbacks of dl_iterate_phdr().
 *
 *	host [--no-PART]... [--only PART,...] [SECONDS]		TDT_TEST_SEED
 *
 * PART is one of the names in the table below; with --no-... the rest shows that it does well
 *alone.
 *
 * All the time: no trace names a plugin that its poll was not in (unless it says that it is a
 *guess), nothing hangs (the process aborts, and says what), nothing grows without bound.  It speaks
 *TAP.
 *
 * With a sanitizer some is left out, and said so.
 */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/host_plugins.h"
#include "lib/must.h"
#include "lib/options.h"
#include "lib/sanitized.h"
#include "lib/seeded.h"
#include "stress/host_ops.h"
#include "stress/host_tasks.h"

#define MS INT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define HANG_S (ASAN || TSAN ? 80 : 20)

static atomic_bool stopping;
static FILE *nowhere;

static struct {
	atomic_ulong asked, traces, running, dumps, lasts, toggles, sits, forks, callback_forks;
	atomic_ulong in_callbacks;   /* requests and dumps */
	atomic_ulong named, unnamed; /* children that traced a task, with its name and without */
	atomic_uint_fast64_t latest_ask;  /* so many nanoseconds after its deadline */
	atomic_uint_fast64_t latest_dump; /* the same */
} done;

static void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

static void note_latest(atomic_uint_fast64_t *latest, uint64_t began, int64_t timeout_ns)
{
	uint64_t took = ops_now() - began;

	if (took > (uint64_t)timeout_ns && took - (uint64_t)timeout_ns > atomic_load(latest))
		atomic_store(latest, took - (uint64_t)timeout_ns);
}

/* --- Requests ---------------------------------------------------------------------------- */

struct pick {
	unsigned left;
	struct tdt_handle *handle;
};

static int pick(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	struct pick *picked = arg;

	(void)info;
	if (picked->left-- != 0)
		return 0;
	picked->handle = tdt_handle_ref(handle);
	return 1;
}

/* A live task, often one that is in a poll, for the caller to give back; or NULL. */
static struct tdt_handle *pick_task(unsigned *state)
{
	struct tdt_task_filter busy = { .size = sizeof busy, .states = 1 << TDT_TASK_RUNNING };
	bool of_busy = random_below(state, 3) != 0;
	struct pick picked = { .left = random_below(state, of_busy ? 4 : 24) };

	ops_begin("tdt_tasks()");
	MUST(tdt_tasks(of_busy ? &busy : NULL, pick, &picked) >= 0);
	ops_end();
	return picked.handle;
}

static struct tdt_trace *ask_for(struct tdt_handle *handle, int64_t timeout_ns, const char *what)
{
	uint64_t began = ops_now();
	struct tdt_trace *trace;

	ops_begin(what);
	trace = backtrace_timed(handle, timeout_ns);
	ops_end();
	note_latest(&done.latest_ask, began, timeout_ns);
	atomic_fetch_add(&done.asked, 1);
	return trace;
}

static void ask_one(struct tdt_handle *handle, int64_t timeout_ns)
{
	struct tdt_trace *trace = ask_for(handle, timeout_ns, "backtrace_timed()");

	MUST(trace != NULL || errno == ESRCH || errno == ETIMEDOUT);
	if (trace == NULL)
		return;
	host_check(trace);
	ops_begin("tdt_trace_print()");
	MUST(tdt_trace_print(trace, nowhere) == 0);
	ops_end();
	atomic_fetch_add(
	    tdt_trace_info(trace)->state == TDT_TASK_RUNNING ? &done.running : &done.traces, 1);
	tdt_trace_free(trace);
}

static void *ask(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		struct tdt_handle *handle = pick_task(&state);

		if (handle != NULL)
			ask_one(handle, random_below(&state, 200) * MS);
		tdt_handle_unref(handle);
		sleep_ms(random_below(&state, 5));
	}
	return NULL;
}

static void *read_last(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		struct tdt_handle *handle = pick_task(&state);
		struct tdt_trace *trace;

		ops_begin("tdt_backtrace_last()");
		trace = handle != NULL ? tdt_backtrace_last(handle) : NULL;
		ops_end();
		if (trace != NULL) {
			host_check(trace);
			atomic_fetch_add(&done.lasts, 1);
		}
		tdt_trace_free(trace);
		tdt_handle_unref(handle);
		sleep_ms(random_below(&state, 10));
	}
	return NULL;
}

static void *toggle_watch(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		bool off = random_below(&state, 4) == 0;

		ops_begin("tdt_watch()");
		MUST(tdt_watch(off ? 0 : (1 + random_below(&state, 20)) * MS, NULL) == 0);
		ops_end();
		atomic_fetch_add(&done.toggles, 1);
		sleep_ms(random_below(&state, 200));
	}
	return NULL;
}

/* --- Dumps --------------------------------------------------------------------------------- */

static void print_snapshot(const struct tdt_snapshot *snapshot, unsigned *state)
{
	struct tdt_print_options print = { .size = sizeof print, .format = random_below(state, 3) };
	struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	bool in_memory = random_below(state, 2) == 0;
	char *text = NULL;
	size_t size;
	FILE *out = in_memory ? open_memstream(&text, &size) : nowhere;

	MUST(out != NULL);
	ops_begin("tdt_snapshot_print()");
	MUST(tdt_snapshot_print(snapshot, out, &options) == 0);
	ops_end();
	if (in_memory)
		fclose(out);
	free(text);
}

static void dump_once(unsigned *state, const char *what)
{
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = 1 + random_below(state, 100) * MS };
	const struct tdt_snapshot *snapshot;
	uint64_t began = ops_now();

	ops_begin(what);
	snapshot = tdt_snapshot_take(&options);
	ops_end();
	note_latest(&done.latest_dump, began, options.timeout_ns);
	MUST(snapshot != NULL);
	for (size_t i = 0; i < snapshot->n_groups; i++)
		host_check_group(snapshot->groups[i]);
	print_snapshot(snapshot, state);
	tdt_snapshot_free(snapshot);
	atomic_fetch_add(&done.dumps, 1);
}

static void *dump(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		dump_once(&state, "tdt_snapshot_take()");
		sleep_ms(random_below(&state, 50));
	}
	return NULL;
}

static void *send_signals(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		host_signal_one(&state);
		sleep_ms(random_below(&state, 4));
	}
	return NULL;
}

/* --- Children --------------------------------------------------------------------------------- */

/* What a child does.  Those with a sanitizer only end: its allocator may be locked in them. */
enum { CHILD_EXITS, CHILD_EXECS, CHILD_ASKS, CHILD_TRACES, CHILD_KINDS };

static const char *const child_does[CHILD_KINDS] = {
	"a child of fork() that exits",
	"a child of fork() that calls exec()",
	"a child of fork() that asks and dumps",
	"a child of fork(), made while nobody was in the loader, that asks, dumps and traces",
};

#define CHILD_NAMED 0
#define CHILD_UNNAMED 10

static int ask_as_a_child(unsigned *state)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 50 * MS };
	struct tdt_handle *handle = pick_task(state);

	if (handle != NULL)
		tdt_trace_free(backtrace_timed(handle, 20 * MS));
	tdt_handle_unref(handle);
	return tdt_dump_with(nowhere, &options) == 0 ? 0 : 1;
}

/* A new task of the child's only thread is requested and polled: whether its trace has its name.
 */
static int trace_as_a_child(void)
{
	struct tdt_traced traced = tdt_traced(host_idle_future());
	struct tdt_context cx = { &host_waker };
	struct tdt_trace *trace = NULL;
	struct tdt_future requester;
	bool named;

	if (traced.handle == NULL)
		return 2;
	requester = tdt_backtrace_async(traced.handle, NULL, &trace, NULL);
	for (int i = 0; i < 10 && tdt_future_poll(&requester, &cx) == TDT_PENDING; i++)
		tdt_future_poll(&traced.future, &cx);
	tdt_future_drop(&requester);
	if (trace == NULL)
		return 3;
	named = host_names(trace, "host_idle_poll");
	if (tdt_trace_print(trace, nowhere) != 0)
		return 4;
	tdt_trace_free(trace);
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return named ? CHILD_NAMED : CHILD_UNNAMED;
}

static _Noreturn void be_child(unsigned kind, unsigned *state)
{
	int status = 0;

	if (kind == CHILD_EXECS) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(5);
	}
	if (kind >= CHILD_ASKS)
		status = ask_as_a_child(state);
	if (status == 0 && kind == CHILD_TRACES)
		status = trace_as_a_child();
	_exit(status);
}

static void check_child(unsigned kind, int status)
{
	bool unnamed = WIFEXITED(status) && WEXITSTATUS(status) == CHILD_UNNAMED;

	if (status != 0 && !unnamed)
		printf("# %s ended with %s %d\n", child_does[kind],
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	fflush(stdout);
	MUST(status == 0 || unnamed);
	if (kind == CHILD_TRACES)
		atomic_fetch_add(unnamed ? &done.unnamed : &done.named, 1);
}

/* The watchdog sees how long it takes. */
static void reap(pid_t child, unsigned kind)
{
	int status = 0;

	ops_begin(child_does[kind]);
	MUST(waitpid(child, &status, 0) == child);
	ops_end();
	check_child(kind, status);
}

static unsigned choose_child(unsigned *state, bool calm)
{
	if (ASAN || TSAN)
		return random_below(state, CHILD_ASKS);
	return calm ? CHILD_TRACES : random_below(state, CHILD_TRACES);
}

static pid_t fork_once(unsigned kind, unsigned *state, const char *what)
{
	pid_t child;

	ops_begin(what);
	child = fork();
	if (child == 0)
		be_child(kind, state);
	ops_end();
	MUST(child > 0);
	return child;
}

static void *fork_on(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		bool calm = random_below(&state, 2) == 0;
		unsigned kind = choose_child(&state, calm);
		pid_t child;

		if (calm)
			host_loader_close();
		child = fork_once(kind, &state, "fork()");
		if (calm)
			host_loader_open();
		reap(child, kind);
		atomic_fetch_add(&done.forks, 1);
		sleep_ms(random_below(&state, 100));
	}
	return NULL;
}

/* --- In callbacks of dl_iterate_phdr()
 * ------------------------------------------------------------- */

struct sitting {
	unsigned *state;
	pid_t child; /* 0: none */
	unsigned kind;
};

static void fork_in_callback(struct sitting *sitting)
{
	sitting->kind = random_below(sitting->state, CHILD_ASKS);
	sitting->child =
	    fork_once(sitting->kind, sitting->state, "fork() in a callback of dl_iterate_phdr()");
	atomic_fetch_add(&done.callback_forks, 1);
}

static void ask_in_callback(unsigned *state)
{
	struct tdt_handle *handle = pick_task(state);

	if (handle != NULL)
		tdt_trace_free(ask_for(handle, random_below(state, 60) * MS,
				       "backtrace_timed() in a callback of dl_iterate_phdr()"));
	tdt_handle_unref(handle);
	atomic_fetch_add(&done.in_callbacks, 1);
}

static int sit_here(struct dl_phdr_info *info, size_t size, void *data)
{
	struct sitting *sitting = data;
	unsigned choice = random_below(sitting->state, 4);

	(void)info;
	(void)size;
	sleep_ms(random_below(sitting->state, 100));
	if (choice == 0 && host_parts.fork)
		fork_in_callback(sitting);
	if (choice == 1 && host_parts.ask)
		ask_in_callback(sitting->state);
	if (choice == 2 && host_parts.dump)
		dump_once(sitting->state, "tdt_snapshot_take() in a callback of dl_iterate_phdr()");
	sleep_ms(random_below(sitting->state, 100));
	return 1;
}

static void *sit(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		struct sitting sitting = { .state = &state };

		host_loader_enter();
		dl_iterate_phdr(sit_here, &sitting);
		host_loader_leave();
		if (sitting.child != 0)
			reap(sitting.child, sitting.kind);
		atomic_fetch_add(&done.sits, 1);
		sleep_ms(random_below(&state, 300));
	}
	return NULL;
}

/* --- The parts
 * ---------------------------------------------------------------------------------------- */

#define THREADS_OF_PART 3

static const struct part {
	const char *name;
	bool *on;
	void *(*threads[THREADS_OF_PART])(void *arg); /* may be NULL */
	atomic_ulong *count; /* what is done of it; NULL: it can't be told */
} parts[] = {
	{ "plugins", &host_parts.plugins, { NULL }, &host_counts.same_place },
	{ "constructor", &host_parts.constructor, { NULL }, NULL },
	{ "altstacks", &host_parts.altstacks, { NULL }, NULL },
	{ "threads", &host_parts.threads, { NULL }, &host_counts.threads },
	{ "signals", &host_parts.signals, { send_signals }, &host_counts.handled },
	{ "ask", &host_parts.ask, { ask, ask, ask }, &done.asked },
	{ "dump", &host_parts.dump, { dump, dump }, &done.dumps },
	{ "watch", &host_parts.watch, { toggle_watch }, &done.toggles },
	{ "last", &host_parts.last, { read_last }, &done.lasts },
	{ "fork", &host_parts.fork, { fork_on }, &done.forks },
	{ "sit", &host_parts.sit, { sit, sit }, &done.sits },
};

#define PARTS (sizeof parts / sizeof parts[0])
#define THREADS (THREADS_OF_PART * PARTS)

static bool switch_part(const char *name, size_t length, bool on)
{
	for (size_t i = 0; i < PARTS; i++) {
		if (strlen(parts[i].name) != length || strncmp(parts[i].name, name, length) != 0)
			continue;
		*parts[i].on = on;
		return true;
	}
	return false;
}

static bool switch_only(const char *names)
{
	bool known = true;

	for (size_t i = 0; i < PARTS; i++)
		*parts[i].on = false;
	while (*names != '\0') {
		size_t length = strcspn(names, ",");

		known = known && switch_part(names, length, true);
		names += length + (names[length] == ',');
	}
	return known;
}

static void usage(void)
{
	fprintf(stderr, "usage: host [--no-PART]... [--only PART,...] [SECONDS]\nparts:");
	for (size_t i = 0; i < PARTS; i++)
		fprintf(stderr, " %s", parts[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

/* Returns the seconds. */
static unsigned read_arguments(int argc, char **argv)
{
	unsigned seconds = 60;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--no-", 5) == 0) {
			if (!switch_part(argv[i] + 5, strlen(argv[i] + 5), false))
				usage();
		} else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
			if (!switch_only(argv[++i]))
				usage();
		} else if (argv[i][0] >= '0' && argv[i][0] <= '9') {
			seconds = (unsigned)atoi(argv[i]);
		} else {
			usage();
		}
	}
	return seconds;
}

/* --- What must not grow
 * --------------------------------------------------------------------------- */

struct size {
	size_t memory_kb;
	int threads, descriptors;
};

static int entries_of(const char *directory)
{
	DIR *dir = opendir(directory);
	int n = 0;

	MUST(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static struct size size_now(void)
{
	struct size size = { 0, entries_of("/proc/self/task"), entries_of("/proc/self/fd") };
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long all, resident = 0;

	MUST(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2);
	fclose(file);
	size.memory_kb = resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
	return size;
}

static void report(unsigned quarter, const struct size *size)
{
	printf("# %u/4: %zu KiB, %d threads, %d descriptors; %lu polls of %lu tasks, %lu loads, "
	       "%lu dumps, "
	       "%lu traces, %lu forks\n",
	       quarter, size->memory_kb, size->threads, size->descriptors, host_counts.polls,
	       host_counts.tasks, host_counts.loads, done.dumps, done.traces + done.running,
	       done.forks);
	fflush(stdout);
}

/*
 * How much memory may grow from half of the time on, in KiB.  In a minute it grew by 0.4 MiB, in
 * four seconds, half of which is no time to warm up, by 2.3 MiB.  Sanitizers keep memory that was
 * freed.
 */
static size_t more_memory(const struct size *half)
{
	return ASAN || TSAN ? half->memory_kb / 3 + (24 << 10) : 12 << 10;
}

static bool has_grown(const struct size *half, const struct size *end)
{
	return end->memory_kb > half->memory_kb + more_memory(half) ||
	       end->threads > half->threads + 10 || end->descriptors > half->descriptors + 10;
}

/* --- All of it
 * -------------------------------------------------------------------------------------- */

static int tests, failures;

static void claim(bool right, const char *what)
{
	printf("%sok %d - %s\n", right ? "" : "not ", ++tests, what);
	failures += !right;
}

/* A part of which nothing has been done; NULL: there is none. */
static const struct part *idle_part(void)
{
	for (size_t i = 0; i < PARTS; i++)
		if (*parts[i].on && parts[i].count != NULL && *parts[i].count == 0)
			return &parts[i];
	return NULL;
}

/* However slow the machine is. */
static void wait_for_parts(void)
{
	const struct part *idle = idle_part();

	for (int i = 0; i < 6000 && idle != NULL; i++, idle = idle_part())
		sleep_ms(50);
	if (idle != NULL)
		printf("# nothing was done of: %s\n", idle->name);
	claim(idle == NULL, "all of it went on");
}

static void print_counts(void)
{
	const char *what;
	uint64_t longest = ops_longest(&what);

	printf("# %lu polls of %lu tasks on %lu threads; %lu loads, %lu in the place of another "
	       "plugin\n",
	       host_counts.polls, host_counts.tasks, host_counts.threads, host_counts.loads,
	       host_counts.same_place);
	printf("# %lu requests: %lu traces, %lu of running polls; %lu watched trees; %lu dumps; "
	       "%lu asked "
	       "in callbacks\n",
	       done.asked, done.traces, done.running, done.lasts, done.dumps, done.in_callbacks);
	printf("# %lu traces with names of plugins, %lu of them marked as guessed; wrong: %lu, and "
	       "%lu so "
	       "marked\n",
	       host_counts.named, host_counts.guessed, host_counts.wrong, host_counts.wrong_marked);
	printf("# %lu forks, %lu in callbacks; %lu children traced with names, %lu without\n",
	       done.forks, done.callback_forks, done.named, done.unnamed);
	printf("# %lu callbacks; %lu signals, %lu handled; %lu watches\n", done.sits,
	       host_counts.signals, host_counts.handled, done.toggles);
	printf("# behind the deadline at most: a request %.1f ms, a dump %.1f ms; the longest was "
	       "%s: %.1f "
	       "ms\n",
	       (double)done.latest_ask / 1e6, (double)done.latest_dump / 1e6,
	       what != NULL ? what : "nothing", (double)longest / 1e6);
}

static void say_what_is_left_out(void)
{
	for (size_t i = 0; i < PARTS; i++)
		if (!*parts[i].on)
			printf("# left out: %s\n", parts[i].name);
	if (ASAN || TSAN) {
		printf("# left out: small alternate stacks, on which a sanitizer's own handler has "
		       "no room\n");
		printf("# left out: children of fork() that do more than exit and exec, since a "
		       "sanitizer "
		       "lets them start no threads, or its allocator may be locked in them\n");
	}
	if (TSAN)
		printf("# left out: wrong names in polls that run, since ThreadSanitizer delays "
		       "signals\n");
	fflush(stdout);
}

static pthread_t threads[THREADS];
static unsigned seeds[THREADS], started;

static void start_threads(unsigned seed)
{
	for (size_t i = 0; i < PARTS; i++)
		for (size_t j = 0; j < THREADS_OF_PART; j++) {
			if (!*parts[i].on || parts[i].threads[j] == NULL)
				continue;
			seeds[started] = seed + 77 * (unsigned)(THREADS_OF_PART * i + j);
			MUST(pthread_create(&threads[started], NULL, parts[i].threads[j],
					    &seeds[started]) == 0);
			started++;
		}
}

static atomic_bool all_over;

/* From the beginning to the end: a thread can't be started while others hang in the loader. */
static void *watch_over(void *arg)
{
	while (!atomic_load(&all_over)) {
		ops_look(HANG_S);
		sleep_ms(100);
	}
	return arg;
}

static void stop_threads(void)
{
	atomic_store(&stopping, true);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	host_tasks_end();
	MUST(tdt_watch(0, NULL) == 0);
}

static void sleep_until(uint64_t time)
{
	while (ops_now() < time)
		sleep_ms(10);
}

int main(int argc, char **argv)
{
	unsigned seconds = read_arguments(argc, argv), seed = seed_of_run();
	struct size sizes[5];
	pthread_t watchdog;
	uint64_t began;

	setvbuf(stdout, NULL, _IOLBF, 0);
	say_what_is_left_out();
	nowhere = fopen("/dev/null", "we");
	MUST(nowhere != NULL);
	MUST(pthread_create(&watchdog, NULL, watch_over, NULL) == 0);
	host_tasks_begin(seed);
	start_threads(seed);
	began = ops_now();
	for (unsigned quarter = 1; quarter <= 4; quarter++) {
		sleep_until(began + quarter * seconds * SECOND / 4);
		sizes[quarter] = size_now();
		report(quarter, &sizes[quarter]);
	}
	wait_for_parts();
	stop_threads();
	atomic_store(&all_over, true);
	pthread_join(watchdog, NULL);
	print_counts();
	claim(host_counts.wrong == 0, "no trace names a plugin that its poll was not in");
	claim(ASAN || TSAN || !has_grown(&sizes[2], &sizes[4]), "nothing grows without bound");
	printf("1..%d\n", tests);
	fclose(nowhere);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
