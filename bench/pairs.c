// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Whether a busy server (store.h) takes more CPU time for a request in one environment than in
 * another.
 *
 *	bench/pairs OLD NEW [PAIRS]
 *
 * OLD and NEW are assignments.  Two builds of the library, watched:
 *
 *	old=LD_LIBRARY_PATH=/old/.libs new=LD_LIBRARY_PATH=/new/.libs
 *	bench/pairs "$old TDT_WATCH=10ms" "$new TDT_WATCH=10ms"
 *
 * One build, with counted clones in watched polls and without:
 *
 *	bench/pairs "TDT_WATCH=10ms TDT_LEAF_WAKERS=0" "TDT_WATCH=10ms TDT_LEAF_WAKERS=1"
 *
 * The flight recorder, off and on, in the echo server of the demo:
 *
 *	PAIRS_ECHO=1 bench/pairs TDT_RECORD=0 TDT_RECORD=16M
 *
 * Both servers run on one CPU, and a client on another has 50 connections to each, which are busy
 * with one server at a time, in turn: a pair is two new servers, and ten short slices of each.
 * Prints the pairs, in ns a request, and the mean of NEW / OLD (of its logarithm) with the 95 %
 * interval of Student's t.
 *
 * The servers call nothing that is newer than the oldest library they are to run with.
 */

#include <config.h>

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../demo/echo.h"
#include "load.h"
#include "report.h"
#include "store.h"

#define CONNECTIONS 50
#define SLICES 10
#define SLICE_US 100000

/* --- A server, in a process of its own ------------------------------------------------ */

static struct tdt_tcp_listener *start_store(void)
{
	static struct store store;

	store_start(&store);
	return store.listener;
}

static struct tdt_tcp_listener *start_echo(void)
{
	static const struct echo_options options = {
		.host = "127.0.0.1", .workers = 1, .idle_ms = 60000, .report_ms = 24 * 3600 * 1000
	};
	static struct service service;
	const char *what;

	errno = -service_start(&service, &options, &what);
	if (errno != 0)
		die(what);
	return service.listener;
}

static int serve(void)
{
	uint16_t port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	port = tdt_tcp_listener_port(getenv("PAIRS_ECHO") != NULL ? start_echo() : start_store());
	if (write(STDOUT_FILENO, &port, sizeof port) != sizeof port)
		die("write");
	for (;;)
		pause();
}

/* The program once more, with these assignments in its environment.  It says its port. */
static pid_t start_server(const char *assignments, int cpu, uint16_t *port)
{
	int said[2];
	pid_t pid;

	if (pipe(said) != 0 || (pid = fork()) < 0)
		die("a server");
	if (pid == 0) {
		load_pin(cpu);
		for (char *one = strtok(strdup(assignments), " "); one != NULL;
		     one = strtok(NULL, " "))
			putenv(one);
		dup2(said[1], STDOUT_FILENO);
		execl("/proc/self/exe", "pairs", (char *)NULL);
		die("execl");
	}
	close(said[1]);
	if (read(said[0], port, sizeof *port) != sizeof *port)
		die("a server's port");
	close(said[0]);
	return pid;
}

/* --- Pairs --------------------------------------------------------------------------------- */

static double used(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		die("the clock of a server");
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double requests(const struct load *load, int server)
{
	return (double)atomic_load(&load->account[server].echoes);
}

/* CPU time for a request of each, over some slices in turn. */
static void slices(struct load *load, const pid_t pid[2], double ns[2])
{
	double cpu[2], before[2];

	for (int i = 0; i < 2; i++) {
		cpu[i] = used(pid[i]);
		before[i] = requests(load, i);
	}
	for (int slice = 0; slice < 2 * SLICES; slice++) {
		/* Each is as often the first. */
		int server = (slice ^ slice >> 1) & 1;

		load_turn(load, server, CONNECTIONS, (unsigned)server);
		usleep(SLICE_US);
		load_turn(load, -1, 0, 0);
	}
	for (int i = 0; i < 2; i++)
		ns[i] = (used(pid[i]) - cpu[i]) / (requests(load, i) - before[i]);
}

/* By two new servers: where things come to lie in memory makes a difference, too. */
static void measure(const char *const *assignments, double ns[2])
{
	struct load *load;
	uint16_t port[2];
	pid_t pid[2];
	int cpus[2];

	load_cpus(cpus);
	load = load_start(cpus[1], 2);
	for (int i = 0; i < 2; i++)
		pid[i] = start_server(assignments[i], cpus[0], &port[i]);
	load_connect(load, port, 2);
	for (int i = 0; i < 2; i++) { /* to warm up */
		load_turn(load, i, CONNECTIONS, (unsigned)i);
		usleep(SLICE_US);
		load_turn(load, -1, 0, 0);
	}
	slices(load, pid, ns);
	load_stop(load);
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	int pairs = argc > 3 ? atoi(argv[3]) : 20;
	double ns[2], sum = 0, squares = 0, df = pairs - 1, half;

	if (argc == 1)
		return serve();
	if (argc < 3 || pairs < 5) {
		fprintf(stderr, "Usage: %s OLD NEW [PAIRS, 5 at least]\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < pairs; i++) {
		/* The server that is started first differs by 1 %. */
		int old = i % 2;
		const char *in_turn[2];
		double ratio;

		in_turn[old] = argv[1];
		in_turn[!old] = argv[2];
		measure(in_turn, ns);
		ratio = log(ns[!old] / ns[old]);
		sum += ratio;
		squares += ratio * ratio;
		printf("%.0f %.0f\n", ns[old], ns[!old]);
		fflush(stdout);
	}
	/* Student's t for 95 %, near enough from 4 degrees of freedom on. */
	half = (1.959964 + 2.37227 / df + 2.82250 / (df * df)) *
	       sqrt((squares - sum * sum / pairs) / df / pairs);
	printf("new / old: %.4f, 95 %% certain between %.4f and %.4f (%d pairs)\n",
	       exp(sum / pairs), exp(sum / pairs - half), exp(sum / pairs + half), pairs);
	return 0;
}
