// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what 10,000 sleeping tasks cost: their memory, and how often the
 * process wakes while nothing is due.  It also measures the time to drop them all, with their
 * timers.
 */

#include <config.h>

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>

#include "report.h"

#define SLEEPERS 10000
#define TASK_SIZE 320 /* the bytes of a record: man 3 tdt */

static struct tdt_rt *rt;

/* How often all threads but this one have gone to sleep so far: that is once a wake-up. */
static long sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	long sum = 0, n;

	if (tasks == NULL)
		die("/proc/self/task");
	while ((entry = readdir(tasks)) != NULL) {
		char path[300], line[200];
		FILE *file;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		while (fgets(line, sizeof line, file) != NULL)
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		fclose(file);
	}
	closedir(tasks);
	return sum;
}

static double allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return (double)(info.uordblks + info.hblkhd);
}

/* Wait until all have begun to sleep. */
static void settle(void)
{
	long before;

	do {
		before = sleeps();
		usleep(200000);
	} while (sleeps() != before);
}

static void spawn_all(void)
{
	for (int i = 0; i < SLEEPERS; i++) {
		struct tdt_handle *handle = tdt_rt_spawn(rt, tdt_sleep_ms(3600000), NULL);

		if (handle == NULL)
			die("tdt_rt_spawn");
		tdt_handle_unref(handle);
	}
	settle();
}

static void begin(void)
{
	rt = tdt_rt_new(NULL);
	if (rt == NULL)
		die("tdt_rt_new");
}

int main(int argc, char **argv)
{
	struct figure *memory, *wakes, *dropped;

	report_start(argc, argv, "What do 10,000 sleeping tasks cost?", "ns", 3);
	memory = figure("a task asleep", NULL);
	in_unit(memory, "bytes of memory");
	wakes = figure("wake-ups of the process, while none is due", NULL);
	in_unit(wakes, "a second");
	at_most(wakes, 0);
	dropped = figure("a task dropped while it sleeps", NULL);
	begin();
	spawn_all(); /* so that there is room for their records */
	tdt_rt_free(rt);
	for (int i = 0; i < rounds; i++) {
		double before;
		int64_t start;
		long slept;

		begin();
		before = allocated();
		spawn_all();
		add(memory, (allocated() - before) / SLEEPERS + TASK_SIZE);
		slept = sleeps();
		sleep(1);
		add(wakes, (double)(sleeps() - slept));
		start = now();
		tdt_rt_free(rt);
		add(dropped, (double)(now() - start) / SLEEPERS);
	}
	return report_end();
}
