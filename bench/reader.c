// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures how long a reader outside takes for processes with 1,000 and with 100,000
 * tasks, beside a process's own walk over its tasks.  The processes are children that stand still.
 * The rounds are interleaved, so that what disturbs one measurement disturbs all.
 */

#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/layout/registry.h>
#include <tdt/tasks.h>

#include "reader/tasks.h"
#include "report.h"

#define FEW 1000

static int n_tasks; /* so far */

static tdt_poll_t never(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

/* --- The process ---------------------------------------------------------------------- */

static void spawn_until(int n)
{
	for (; n_tasks < n; n_tasks++)
		if (tdt_traced((struct tdt_future){ NULL, never, nothing }).handle == NULL)
			die("tdt_traced");
}

/* The process has the tasks that were spawned so far. */
static pid_t start_process(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

/* --- The measurements ----------------------------------------------------------------- */

static int count_own(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	(void)handle;
	(void)info;
	++*(int *)arg;
	return 0;
}

static void walk_own(struct figure *figure)
{
	int64_t start = now();
	int n = 0;

	tdt_tasks(NULL, count_own, &n);
	add(figure, (double)(now() - start) / 1e6);
	if (n != n_tasks)
		die("tdt_tasks");
}

/* Read all tasks, as `tdt ps` does before it prints. */
static void read_outside(pid_t pid, int n, struct figure *found_in, struct figure *read_in)
{
	const struct tdt__places places = { 0 };
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__trouble trouble;
	struct tdt__target target;
	struct tdt__images images;
	struct tdt__tasks tasks;
	int64_t start = now();

	if (tdt__target_open_process(&target, pid, &trouble) != 0)
		die(trouble.text);
	if (tdt__images_init(&images, &target, &places) != 0)
		die("tdt__images_init");
	if (tdt__find(&target, found) != 1)
		die("tdt__find");
	if (found_in != NULL)
		add(found_in, (double)(now() - start) / 1e6);
	start = now();
	if (tdt__tasks_read(&tasks, &target, &images, &found[0]) != 0)
		die("tdt__tasks_read");
	add(read_in, (double)(now() - start) / 1e6);
	if (tasks.n != (size_t)n)
		die("the tasks");
	tdt__tasks_fini(&tasks);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

static void end_process(pid_t process)
{
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
}

int main(int argc, char **argv)
{
	struct figure *own, *found, *few, *all;
	pid_t small, large;

	report_start(argc, argv, "What does it take to read 100,000 tasks from outside?", "ms", 15);
	own = figure("the process's own walk over its tasks", NULL);
	found = figure("opening another process and finding its tasks", own);
	at_most(found, 1);
	few = figure("reading 1,000 tasks", own);
	at_most(few, 5);
	all = figure("reading all of them", own);
	at_most(all, 50);
	spawn_until(FEW);
	small = start_process();
	spawn_until(quick ? 10000 : 100000);
	large = start_process();
	for (int i = 0; i < rounds; i++) {
		walk_own(own);
		read_outside(small, FEW, NULL, few);
		read_outside(large, n_tasks, found, all);
	}
	end_process(small);
	end_process(large);
	return report_end();
}
