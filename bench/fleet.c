// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what a page of tdt metrics --listen --all costs on a machine with 200
 * processes of 100 tasks each: the CPU time of the server and of its children.  Prometheus asks for
 * one every 15 seconds.  All other processes of the machine are looked at, too, as they are
 * wherever the server runs.
 */

#include <config.h>

#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "report.h"

#define PROCESSES 200
#define TASKS 100
#define INTERVAL 15 /* seconds */

static const struct tdt_waker *same(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { same, ignore, ignore, ignore };
static const struct tdt_waker waker = { &vtable };

static tdt_poll_t wait_for_io(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	tdt_leaf_waits_on(TDT_WAIT_IO, NULL, 0);
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

/* A child with tasks, which stands still. */
static void start_process(int ready)
{
	struct tdt_context cx = { &waker };
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < TASKS; i++) {
		struct tdt_traced task =
		    tdt_traced((struct tdt_future){ NULL, wait_for_io, nothing });

		if (task.handle == NULL)
			die("tdt_traced");
		tdt_future_poll(&task.future, &cx);
	}
	if (write(ready, "", 1) != 1)
		die("write");
	for (;;)
		pause();
}

static void start_processes(void)
{
	int ready[2];
	char byte;

	if (pipe(ready) != 0)
		die("pipe");
	for (int i = 0; i < PROCESSES; i++)
		start_process(ready[1]);
	for (int i = 0; i < PROCESSES; i++)
		if (read(ready[0], &byte, 1) != 1)
			die("a process does not start");
}

/* --- The server ----------------------------------------------------------------------- */

static pid_t server;

/* The program tdt of the build, which lies above the folder of this program. */
static const char *tdt_of_build(void)
{
	static char path[PATH_MAX + 8];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	if (n < 0)
		die("/proc/self/exe");
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/../tdt");
	return path;
}

/* Returns its port. */
static unsigned start_server(const char *tdt)
{
	unsigned port;
	FILE *out;
	int url[2];

	if (pipe(url) != 0)
		die("pipe");
	server = fork();
	if (server < 0)
		die("fork");
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(url[1], STDOUT_FILENO);
		execl(tdt, "tdt", "metrics", "--listen=0", "--all", (char *)NULL);
		die(tdt);
	}
	close(url[1]);
	out = fdopen(url[0], "r");
	if (out == NULL || fscanf(out, "serving http://127.0.0.1:%u/metrics", &port) != 1)
		die("tdt does not serve");
	fclose(out);
	return port;
}

/* CPU time of the server and of the children that have ended, in ms: a tick has 10 of them. */
static double server_ms(void)
{
	unsigned long time[4] = { 0 };
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)server);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file,
				   "%*d (tdt) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				   "%lu %lu %lu %lu",
				   &time[0], &time[1], &time[2], &time[3]) != 4)
		die(path);
	fclose(file);
	return (double)(time[0] + time[1] + time[2] + time[3]) * 1000 /
	       (double)sysconf(_SC_CLK_TCK);
}

/* Returns how many processes with so many tasks are in the page. */
static unsigned get_page(unsigned port)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int connection = socket(AF_INET, SOCK_STREAM, 0);
	unsigned n = 0;
	char line[4096];
	FILE *page;

	if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0 ||
	    write(connection, request, strlen(request)) != (ssize_t)strlen(request))
		die("connect");
	page = fdopen(connection, "r");
	while (page != NULL && fgets(line, sizeof line, page) != NULL)
		n += strstr(line, "state=\"waiting\"} 100\n") != NULL;
	if (page != NULL)
		fclose(page);
	return n;
}

int main(int argc, char **argv)
{
	struct figure *cost, *share, *wall;
	unsigned port;

	report_start(argc, argv, "What does a page of 200 processes cost?", "ms", 20);
	cost = figure("CPU time of a page", NULL);
	share = figure("  of one CPU, every 15 s", NULL);
	wall = figure("time until it is there", NULL);
	in_unit(share, "%");
	at_most(share, 2);
	start_processes();
	port = start_server(tdt_of_build());
	get_page(port);
	for (int i = 0; i < rounds; i++) {
		double before = server_ms(), ms;
		int64_t start = now();

		if (get_page(port) < PROCESSES) {
			errno = EPERM;
			die("processes may not be read here");
		}
		add(wall, (double)(now() - start) / 1e6);
		ms = server_ms() - before;
		add(cost, ms);
		add(share, ms / (INTERVAL * 1000) * 100);
	}
	kill(server, SIGKILL);
	return report_end();
}
