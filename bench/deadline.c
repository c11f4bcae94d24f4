// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How late do calls with a deadline return if something keeps them: more tasks than can answer in
 * time, a host that holds the loader's list, a file that can't be read, a task that nobody polls?
 * And how long does fork() take while names are looked up?
 */

#include <config.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/rt/runtime.h>

#include "../src/base/clock.h"
#include "../src/host/loaded.h"
#include "../src/symbolize/modules.h"
#include "../src/symbolize/namer.h"
#include "../src/unwind/unwinder.h"
#include "report.h"

#define MS INT64_C(1000000)
#define MANY 100000
#define FEW 1000
#define ROUNDS 101

/* --- What is measured: the lateness of each round, and how late 99 of 100 were --------- */

struct late {
	struct figure *each, *most;
	double ms[ROUNDS];
	int n;
};

static struct late late_figure(const char *name)
{
	struct late late = { .each = figure(name, NULL) };

	late.most = figure("  99 of 100 rounds at most", NULL);
	at_most(late.most, 20);
	return late;
}

static void late_add(struct late *late, int64_t start, int64_t timeout)
{
	double ms = (double)(now() - start - timeout) / 1e6;

	add(late->each, ms);
	late->ms[late->n++] = ms;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void late_end(struct late *late)
{
	qsort(late->ms, (size_t)late->n, sizeof late->ms[0], by_size);
	add(late->most, late->ms[(late->n - 1) * 99 / 100]);
}

/* --- Tasks that wait for ever -------------------------------------------------------------- */

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **waker = state;

	if (*waker == NULL || !tdt_waker_will_wake(*waker, cx->waker)) {
		tdt_waker_drop(*waker);
		*waker = tdt_waker_clone(cx->waker);
	}
	return TDT_PENDING;
}

static void idle_drop(void *state)
{
	const struct tdt_waker **waker = state;

	tdt_waker_drop(*waker);
	*waker = NULL;
}

static struct tdt_rt *spawn(int n)
{
	static const struct tdt_waker *waker[MANY];
	struct tdt_rt *rt =
		tdt_rt_new(&(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), 2 });

	if (rt == NULL)
		die("tdt_rt_new");
	for (int i = 0; i < n; i++) {
		struct tdt_handle *handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ &waker[i], idle_poll, idle_drop },
				 TDT_TASK_ATTR());

		if (handle == NULL)
			die("tdt_rt_spawn");
		tdt_handle_unref(handle);
	}
	usleep(300000); /* for all to be polled */
	return rt;
}

static FILE *nowhere;

static void dump_late(struct late *late, int64_t timeout)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = timeout };
	int64_t start = now();

	if (tdt_dump_with(nowhere, &options) != 0)
		die("tdt_dump");
	late_add(late, start, timeout);
}

/* --- Things that keep calls ------------------------------------------------------------- */

static sem_t there, leave;

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	sem_post(&there);
	while (sem_wait(&leave) != 0)
		;
	return 1;
}

static void *hold_list(void *nothing)
{
	dl_iterate_phdr(stay, NULL);
	return nothing;
}

static atomic_bool stalled;

/* Files come to libtdt and libdw through here. */
int open(const char *path, int flags, ...)
{
	static int (*real)(const char *path, int flags, ...);
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	while (atomic_load(&stalled) && strncmp(path, "/proc/", 6) != 0 &&
	       strncmp(path, "/dev/", 5) != 0)
		usleep(1000);
	return real(path, flags, mode);
}

/* --- fork() while names are looked up --------------------------------------------------- */

static atomic_bool over;

/* One address after the other, so that there is always one that is not known. */
static void *name_all(void *nothing)
{
	struct tdt__modules *modules = tdt__modules_new(0);
	uintptr_t pc = (uintptr_t)name_all;

	pthread_mutex_lock(&tdt__unwind_lock);
	if (modules == NULL || tdt__loaded_meet(&modules, pc) != 0)
		die("tdt__loaded_meet");
	pthread_mutex_unlock(&tdt__unwind_lock);
	while (!atomic_load(&over)) {
		struct tdt__name name = { &modules->module[0], pc, NULL };

		tdt__namer_find(modules, &name, 1, UINT64_MAX / 2);
		pc = pc + 1 < modules->module[0].end ? pc + 1 : modules->module[0].start;
	}
	tdt__modules_unref(modules);
	return nothing;
}

static double fork_ms(void)
{
	int64_t start = now(), took;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	took = now() - start;
	if (child < 0 || waitpid(child, NULL, 0) != child)
		die("fork");
	return (double)took / 1e6;
}

static void measure_fork(struct figure *alone, struct figure *naming)
{
	pthread_t thread;

	for (int i = 0; i < rounds; i++)
		add(alone, fork_ms());
	if (pthread_create(&thread, NULL, name_all, NULL) != 0)
		die("pthread_create");
	usleep(10000);
	for (int i = 0; i < rounds; i++)
		add(naming, fork_ms());
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

static void measure_nobody(struct late *late)
{
	const struct tdt_waker *waker = NULL;
	struct tdt_traced traced =
	    tdt_traced(((struct tdt_future){ &waker, idle_poll, idle_drop }));

	for (int i = 0; i < rounds; i++) {
		int64_t start = now();

		tdt_trace_free(tdt_backtrace_with(traced.handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = 20 * MS }));
		late_add(late, start, 20 * MS);
	}
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
}

static void measure_list(struct late *late)
{
	pthread_t thread;

	sem_init(&there, 0, 0);
	sem_init(&leave, 0, 0);
	if (pthread_create(&thread, NULL, hold_list, NULL) != 0)
		die("pthread_create");
	while (sem_wait(&there) != 0)
		;
	for (int i = 0; i < rounds; i++)
		dump_late(late, 50 * MS);
	sem_post(&leave);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct late many, list, nobody, file;
	struct figure *alone, *naming;
	struct tdt_rt *rt;

	report_start(argc, argv, "How late do calls return that have a deadline?", "ms late",
		     ROUNDS);
	if (rounds > ROUNDS)
		rounds = ROUNDS;
	nowhere = fopen("/dev/null", "w");
	many = late_figure("a dump of 100,000 tasks in 50 ms");
	list = late_figure("a dump of 1,000 in 50 ms, while a callback has the loader's list");
	nobody = late_figure("a backtrace in 20 ms, of a task that nobody polls");
	file = late_figure("a dump of 1,000 in 40 ms, while no debug file can be opened");
	alone = figure("fork()", NULL);
	in_unit(alone, "ms");
	naming = figure("fork() while names are looked up", alone);
	in_unit(naming, "ms");

	atomic_store(&stalled, true); /* before anything was named */
	rt = spawn(FEW);
	for (int i = 0; i < rounds; i++)
		dump_late(&file, 40 * MS);
	atomic_store(&stalled, false);
	measure_list(&list);
	measure_nobody(&nobody);
	measure_fork(alone, naming);
	tdt_rt_free(rt);
	rt = spawn(quick ? FEW : MANY);
	for (int i = 0; i < rounds; i++)
		dump_late(&many, 50 * MS);
	tdt_rt_free(rt);
	late_end(&many);
	late_end(&list);
	late_end(&nobody);
	late_end(&file);
	return report_end();
}
