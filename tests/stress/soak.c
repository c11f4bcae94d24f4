// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tasks of all kinds churn, while threads dump them, ask them, watch them, send signals and fork.
 * In rounds, each with a runtime of its own; after each all must be gone that came: tasks, records,
 * threads, descriptors, memory.
 *
 *	soak SECONDS		TDT_TEST_SEED
 *
 * It speaks TAP.  What stands still for a minute is a deadlock: it is dumped, and the process
 * aborts.
 */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tdt/layout/registry.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/find_registry.h"
#include "lib/must.h"
#include "lib/options.h"
#include "lib/sanitized.h"
#include "lib/seeded.h"
#include "stress/soak_tasks.h"

#define ROUND_S 8
#define LIVE 1500
#define MS 1000000

static atomic_bool stopping;
static FILE *nowhere;
static atomic_ulong dumps, traces, running, lasts, forks, signals, toggles;

static void sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, (long)(ms % 1000) * MS };

	nanosleep(&time, NULL);
}

/* --- What disturbs --------------------------------------------------------------- */

static void *dump(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		struct tdt_print_options print = { .size = sizeof print,
						   .format = random_below(&state, 3) };
		struct tdt_dump_options options = { .size = sizeof options,
						    .print = &print,
						    .timeout_ns = 1 + random_below(&state, 100) *
									  (int64_t)MS };
		int error = tdt_dump_with(nowhere, &options);

		MUST(error == 0);
		atomic_fetch_add(&dumps, 1);
		sleep_ms(random_below(&state, 50));
	}
	return NULL;
}

struct pick {
	unsigned left;
	struct tdt_handle *handle;
};

static int pick(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	struct pick *picked = arg;

	MUST(info->id == tdt_handle_id(handle));
	if (picked->left-- != 0)
		return 0;
	picked->handle = tdt_handle_ref(handle);
	return 1;
}

static void ask_about(struct tdt_handle *handle, unsigned *state)
{
	struct tdt_trace *last = tdt_backtrace_last(handle), *trace;

	MUST(last != NULL || errno == ENODATA);
	if (last != NULL) {
		atomic_fetch_add(&lasts, 1);
		MUST(tdt_trace_root(last) != NULL);
		tdt_trace_free(last);
	}
	trace = backtrace_timed(handle, random_below(state, 60) * (int64_t)MS);
	MUST(trace != NULL || errno == ESRCH || errno == ETIMEDOUT);
	if (trace == NULL)
		return;
	atomic_fetch_add(tdt_trace_info(trace)->state == TDT_TASK_RUNNING ? &running : &traces, 1);
	MUST(tdt_trace_print(trace, nowhere) == 0);
	tdt_trace_free(trace);
}

static void *ask(void *arg)
{
	unsigned state = *(unsigned *)arg;
	struct tdt_task_filter busy = { .size = sizeof busy, .states = 1 << TDT_TASK_RUNNING };

	while (!atomic_load(&stopping)) {
		bool of_busy = random_below(&state, 2) == 0;
		struct pick picked = { .left = random_below(&state, of_busy ? 3 : LIVE) };

		tdt_tasks(of_busy ? &busy : NULL, pick, &picked);
		if (picked.handle != NULL)
			ask_about(picked.handle, &state);
		else
			sleep_ms(1);
		tdt_handle_unref(picked.handle);
	}
	return NULL;
}

static void *toggle_watch(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping)) {
		MUST(tdt_watch(random_below(&state, 4) == 0
				   ? 0
				   : (1 + random_below(&state, 20)) * (int64_t)MS,
			       NULL) == 0);
		atomic_fetch_add(&toggles, 1);
		sleep_ms(random_below(&state, 200));
	}
	MUST(tdt_watch(0, NULL) == 0);
	return NULL;
}

static atomic_ulong handled;

static void handle(int signo)
{
	(void)signo;
	atomic_fetch_add(&handled, 1);
}

/* The host's own signal: none is lost that the kernel delivers, and ours for dumps. */
static void *signal_all(void *arg)
{
	unsigned state = *(unsigned *)arg;
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR1);
	sigaddset(&mine, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
	while (!atomic_load(&stopping)) {
		unsigned long before = atomic_load(&handled);

		kill(getpid(), SIGUSR1);
		pthread_kill(pthread_self(), SIGUSR2);
		MUST(atomic_load(&handled) == before + 1);
		atomic_fetch_add(&signals, 1);
		sleep_ms(random_below(&state, 300));
	}
	return NULL;
}

static int count_task(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	(void)handle;
	(void)info;
	++*(size_t *)arg;
	return 0;
}

/* A child has the records, but no thread that could poll or watch. */
static int live_as_a_child(void)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 20 * MS };
	size_t n = 0;

	alarm(TSAN ? 15 : 60);
	if (tdt_tasks(NULL, count_task, &n) != 0)
		return 1;
	if (tdt_dump_with(nowhere, &options) != 0)
		return 2;
	if (!TSAN && (tdt_watch(MS, NULL) != 0 || tdt_watch(0, NULL) != 0))
		return 3;
	return 0;
}

static void *fork_all(void *arg)
{
	unsigned state = *(unsigned *)arg;

	while (!atomic_load(&stopping) && !ASAN) {
		pid_t child = fork();
		int status;

		if (child == 0)
			_exit(live_as_a_child());
		MUST(child > 0);
		MUST(waitpid(child, &status, 0) == child);
		if (status != 0)
			printf("# a child ended with status %#x\n", (unsigned)status);
		if (tsan_hung(status))
			continue;
		MUST(status == 0);
		atomic_fetch_add(&forks, 1);
		sleep_ms(random_below(&state, 200));
	}
	return NULL;
}

/* What each round has to have done before it is over, however slow the machine is. */
static atomic_ulong *const works[] = {
	&dumps, &traces, &running, &lasts, &forks, &signals, &toggles
};

#define WORKS (sizeof works / sizeof works[0])

static void note_work(unsigned long *done)
{
	for (size_t i = 0; i < WORKS; i++)
		done[i] = atomic_load(works[i]);
}

static bool has_worked_since(const unsigned long *before)
{
	for (size_t i = 0; i < WORKS; i++)
		if (atomic_load(works[i]) == before[i] && !(ASAN && works[i] == &forks))
			return false;
	return true;
}

static void *(*const disturbers[])(void *) = { dump,         dump,       ask,     ask,
					       toggle_watch, signal_all, fork_all };

#define DISTURBERS (sizeof disturbers / sizeof disturbers[0])

/* --- What must not be -------------------------------------------------------------- */

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

/* What is there when all is quiet. */
struct quiet {
	int descriptors, threads;
	size_t slabs, memory; /* of the registry; and all other */
};

/*
 * The registry keeps its slabs, of some 1000 records.  Each of its eight shards gets its own when
 * the first thread spawns there whose id leads to it: so there are more after each round, up to so
 * many.
 */
#define MOST_SLABS (8 * ((LIVE + 1023) / 1024 + 1))

static size_t slabs(size_t *bytes)
{
	const struct tdt_registry *registry = find_registry();
	const struct tdt_registry_slab *slab = (const void *)(uintptr_t)registry->slabs;
	size_t n = 0;

	for (*bytes = 0; slab != NULL; slab = (const void *)(uintptr_t)slab->next, n++)
		*bytes += (size_t)slab->room * registry->stride;
	return n;
}

static struct quiet look(void)
{
	struct quiet quiet = { entries_of("/proc/self/fd"), entries_of("/proc/self/task"), 0, 0 };
	size_t in_slabs;

	malloc_trim(0);
	quiet.slabs = slabs(&in_slabs);
	quiet.memory = mallinfo2().uordblks - in_slabs;
	return quiet;
}

/*
 * The watch keeps its trees, and gets them some 256 KiB at a time: some more, as larger ones are
 * wanted.
 */
#define MORE_MEMORY (1 << 20)

static bool has_lost_memory(const struct quiet *first, const struct quiet *last)
{
	return last->memory > first->memory + MORE_MEMORY;
}

static bool has_grown(const struct quiet *first, const struct quiet *last)
{
	return last->descriptors > first->descriptors || last->threads > first->threads ||
	       has_lost_memory(first, last);
}

/*
 * What a dump for the last signal has goes when that is over, and a thread that was joined a moment
 * later.
 */
static struct quiet look_until_quiet(const struct quiet *first)
{
	struct quiet quiet = look();

	for (int i = 0; i < 100 && has_grown(first, &quiet); i++) {
		sleep_ms(100);
		quiet = look();
	}
	return quiet;
}

static atomic_bool finished;

static void *guard(void *arg)
{
	unsigned long before = 0;

	(void)arg;
	for (unsigned idle = 0; !atomic_load(&finished); idle++) {
		unsigned long now = soak_ended();

		if (now != before)
			idle = 0;
		before = now;
		if (idle == 600) {
			printf("# nothing has ended for a minute:\n");
			tdt_dump(stdout);
			abort();
		}
		sleep_ms(100);
	}
	return NULL;
}

static int tests, failures;

static void claim(bool right, const char *what)
{
	printf("%sok %d - %s\n", right ? "" : "not ", ++tests, what);
	failures += !right;
}

static void churn(unsigned seed, unsigned seconds)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 2 };
	struct tdt_rt *rt = tdt_rt_new(&config);
	pthread_t threads[DISTURBERS];
	unsigned seeds[DISTURBERS];
	unsigned long before[WORKS];

	MUST(rt != NULL);
	note_work(before);
	atomic_store(&stopping, false);
	soak_tasks_begin(rt, seed, LIVE);
	for (size_t i = 0; i < DISTURBERS; i++) {
		seeds[i] = seed + 77 * (unsigned)i;
		MUST(pthread_create(&threads[i], NULL, disturbers[i], &seeds[i]) == 0);
	}
	sleep_ms(seconds * 1000);
	while (!has_worked_since(before))
		sleep_ms(10);
	atomic_store(&stopping, true);
	for (size_t i = 0; i < DISTURBERS; i++)
		pthread_join(threads[i], NULL);
	soak_tasks_end();
	tdt_rt_free(rt);
}

static void report(unsigned round, const struct quiet *quiet)
{
	struct soak_counts counts = soak_counts();

	printf("# round %u: %lu tasks, %lu dumps, %lu traces, %lu of running tasks, %lu of the "
	       "watch, %lu children, %lu "
	       "signals, %lu watches; %lu calls interrupted; %zu slabs, %zu bytes beside\n",
	       round, counts.ended, dumps, traces, running, lasts, forks, signals, toggles,
	       counts.interrupted, quiet->slabs, quiet->memory);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 120, seed = seed_of_run(), rounds,
		 seconds_each;
	struct quiet first = { 0 }, last = { 0 };
	struct soak_counts counts;
	pthread_t guarding;
	sigset_t mine;
	size_t live = 0;

	mallopt(M_MMAP_THRESHOLD, 32 << 20); /* so that all is counted in the same place */
	if (TSAN)
		printf("# not tried: no watch in children under ThreadSanitizer, which lets them "
		       "start no threads\n");
	if (ASAN)
		printf("# not tried: no children under AddressSanitizer, whose allocator may be "
		       "locked in them\n");
	rounds = seconds / ROUND_S < 3 ? 3 : seconds / ROUND_S;
	seconds_each = seconds / rounds;
	nowhere = fopen("/dev/null", "we");
	MUST(nowhere != NULL && freopen("/dev/null", "w", stderr) != NULL);
	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR1);
	sigaddset(&mine, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &mine, NULL);
	MUST(signal(SIGUSR2, handle) != SIG_ERR);
	MUST(tdt_dump_on_signal(SIGUSR1, NULL) == 0);
	MUST(tdt_watch(MS, NULL) == 0 && tdt_watch(0, NULL) == 0); /* its thread is for good */
	MUST(pthread_create(&guarding, NULL, guard, NULL) == 0);
	for (unsigned round = 0, half = rounds / 2; round < rounds; round++) {
		churn(seed + round, seconds_each);
		last = round > half ? look_until_quiet(&first) : look();
		if (round ==
		    half) /* names, rules, pools and what else is kept for good are there, nearly */
			first = last;
		report(round, &last);
	}
	atomic_store(&finished, true);
	pthread_join(guarding, NULL);
	MUST(tdt_dump_on_signal(0, NULL) == 0);

	counts = soak_counts();
	tdt_tasks(NULL, count_task, &live);
	claim(counts.spawned == counts.ended, "every task that was spawned has ended, once");
	claim(counts.sent == counts.received, "every value that was sent was received");
	claim(counts.locked == counts.taken, "no two tasks had a mutex at once");
	claim(live == 0, "no task is left in the registry");
	claim(last.descriptors <= first.descriptors, "no descriptor is left open");
	claim(last.threads <= first.threads, "no thread is left");
	claim(last.slabs <= MOST_SLABS,
	      "the registry has grown no more than so many tasks at once need");
	claim(!has_lost_memory(&first, &last), "no memory is lost");
	claim(dumps > 0 && traces > 0 && running > 0 && lasts > 0 && (forks > 0 || ASAN) &&
		  signals > 0,
	      "all of it went on");
	printf("1..%d\n", tests);
	fclose(nowhere);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
