// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what 10,000 sleeping tasks cost: their memory, and how often the
 * process wakes while nothing is due.  It also measures the time to drop them all, with their
 * timers.  Then the same with idle connections: as many as the descriptors, of which each takes
 * two, up to 100,000.
 */

#include <config.h>

#include <dirent.h>
#include <malloc.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/async.h>
#include <tdt/rt/net.h>
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

/* --- Connections ---------------------------------------------------------------- */

#define CONNECTIONS_MOST 100000

struct connection {
	struct tdt_async async;
	struct tdt_tcp *tcp;
	char byte;
	ssize_t n;
};

static int n_connections, *far_ends;
static sem_t received;

static tdt_poll_t receive_poll(void *state, struct tdt_context *cx)
{
	struct connection *it = state;

	TDT_BEGIN(&it->async, cx);
	for (;;) {
		TDT_AWAIT(tdt_tcp_read(it->tcp, &it->byte, 1, &it->n));
		if (it->n <= 0)
			return TDT_READY;
		sem_post(&received);
	}
	TDT_END();
}

static void receive_fini(void *state)
{
	tdt_tcp_free(((struct connection *)state)->tcp);
}

/* Raise the limit of descriptors, and return how many connections they suffice for. */
static int connections_possible(void)
{
	struct rlimit limit;
	int n;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	n = limit.rlim_cur > 2 * CONNECTIONS_MOST + 100 ? CONNECTIONS_MOST
							: ((int)limit.rlim_cur - 100) / 2;
	return quick && n > 1000 ? 1000 : n;
}

static void connect_all(void)
{
	for (int i = 0; i < n_connections; i++) {
		struct connection it = { .async.fini = receive_fini };
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
			die("socketpair");
		it.tcp = tdt_tcp_adopt(ends[0]);
		far_ends[i] = ends[1];
		if (it.tcp == NULL || tdt_rt_go(rt, TDT_ASYNC_NEW(receive_poll, it), NULL) != 0)
			die("tdt_rt_go");
	}
	settle();
}

static void close_far_ends(void)
{
	for (int i = 0; i < n_connections; i++)
		close(far_ends[i]);
}

/* From a byte that is sent to one of them until its task has it. */
static void wake_some(struct figure *figure)
{
	for (int i = 0; i < 1000; i++) {
		int64_t start = now();

		if (write(far_ends[(int64_t)i * 7919 % n_connections], "", 1) != 1)
			die("write");
		sem_wait(&received);
		add(figure, (double)(now() - start));
	}
}

static void begin(void)
{
	rt = tdt_rt_new(NULL);
	if (rt == NULL)
		die("tdt_rt_new");
}

int main(int argc, char **argv)
{
	struct figure *memory, *wakes, *dropped, *idle_memory, *idle_wakes, *woken, *idle_dropped;
	static char name[80];

	report_start(argc, argv, "What do 10,000 sleeping tasks cost?", "ns", 3);
	memory = figure("a task asleep", NULL);
	in_unit(memory, "bytes of memory");
	wakes = figure("wake-ups of the process, while none is due", NULL);
	in_unit(wakes, "a second");
	at_most(wakes, 0);
	dropped = figure("a task dropped while it sleeps", NULL);
	n_connections = connections_possible();
	far_ends = calloc((size_t)n_connections, sizeof *far_ends);
	sem_init(&received, 0, 0);
	snprintf(name, sizeof name, "one of %d idle connections, with its task", n_connections);
	idle_memory = figure(name, NULL);
	in_unit(idle_memory, "bytes of memory");
	idle_wakes = figure("wake-ups of the process meanwhile", NULL);
	in_unit(idle_wakes, "a second");
	at_most(idle_wakes, 0);
	woken = figure("until one of them has the byte that comes", NULL);
	idle_dropped = figure("a connection dropped while it is idle", NULL);
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

		begin();
		before = allocated();
		connect_all();
		add(idle_memory, (allocated() - before) / n_connections + TASK_SIZE);
		slept = sleeps();
		sleep(1);
		add(idle_wakes, (double)(sleeps() - slept));
		wake_some(woken);
		start = now();
		tdt_rt_free(rt);
		add(idle_dropped, (double)(now() - start) / n_connections);
		close_far_ends();
	}
	return report_end();
}
