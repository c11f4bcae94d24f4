// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Whether the tasks of a busy program feel that it is watched, that it is recorded, or that all of
 * its tasks are asked again and again: the echo server of the demo, as busy as a client can keep
 * it; with some connections, with many, and with 10,000 tasks that wait beside some.
 *
 * The server, its runtime's driver, the ticker and the thread that dumps all run on one CPU, the
 * client on another.  So whatever CPU time tracing takes is taken from the echoes, and nothing can
 * hide on a CPU that was idle.  Beside it stands an echo server on bare libuv, with the same
 * client, on the same CPU.
 *
 * Each situation has many short slices, each between two in which nothing disturbs.  The load goes
 * on from one to the next: it takes a while to be even.  What is compared is the throughput in each
 * slice with that of the two beside it, since from one second to another it changes by more than
 * tracing costs.  Beside it stands the CPU time of the server's process for each echo, and how long
 * echoes took.
 */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/recorder.h>
#include <tdt/rt/runtime.h>
#include <tdt/watch.h>

#include "../demo/echo.h"
#include "load.h"
#include "report.h"
#include "uv_echo.h"

#define MS INT64_C(1000000)
#define FEW 8
#define MANY LOAD_CONNECTIONS
#define IDLE 10000
#define DEPTH 10

enum { OURS, LIBUV };
enum dump { NO_DUMP, RAW, TEXT };

static const struct phase {
	unsigned connections;
	int idle; /* tasks beside them */
	int slice_ms;
	int turns; /* a round: how often each of its situations is measured */
} phases[] = {
	{ .connections = FEW, .slice_ms = 30, .turns = 6 }, /* with a dump in each: 33 a second */
	{ .connections = MANY,
	  .slice_ms = 100,
	  .turns = 5 }, /* an epoch of the watch takes as long */
	{ .connections = FEW,
	  .idle = IDLE,
	  .slice_ms = 100,
	  .turns = 1 }, /* with a dump in each: 10 a second */
};

#define PHASES (sizeof phases / sizeof phases[0])

static struct situation {
	unsigned phase;
	const char *name;
	int server;
	bool watched, recorded;
	enum dump dump; /* one, in the middle of the slice */
	double target;  /* of its throughput; 0: it is there to compare with */

	struct figure *rate, *part, *used, *slow, *slowest, *took, *cost;
} situations[] = {
	{ .phase = 0, .name = "undisturbed" },
	{ .phase = 0, .name = "watched at 10 ms", .watched = true, .target = 0.99 },
	{ .phase = 0, .name = "recorded", .recorded = true, .target = 0.97 },
	{ .phase = 0, .name = "33 dumps/s, as text", .dump = TEXT, .target = 0.95 },
	{ .phase = 0, .name = "bare libuv, untraced", .server = LIBUV },
	{ .phase = 1, .name = "undisturbed" },
	{ .phase = 1, .name = "watched at 10 ms", .watched = true, .target = 0.99 },
	{ .phase = 1, .name = "recorded", .recorded = true, .target = 0.97 },
	{ .phase = 1, .name = "bare libuv, untraced", .server = LIBUV },
	{ .phase = 2, .name = "undisturbed" },
	{ .phase = 2, .name = "10 dumps/s, raw", .dump = RAW, .target = 0.95 },
	{ .phase = 2, .name = "10 dumps/s, as text", .dump = TEXT, .target = 0.95 },
};

#define SITUATIONS (sizeof situations / sizeof situations[0])
#define LIBUV_EVERY 20 /* turns */

static struct load *load;
static pid_t libuv;
static FILE *nowhere;

/* --- Tasks that wait for ever ------------------------------------------------------ */

static atomic_int polled;

static __attribute__((noinline)) tdt_poll_t wait_below(int depth, const struct tdt_waker **waker,
						       struct tdt_context *cx)
{
	tdt_poll_t result = TDT_PENDING;

	if (depth > 0) {
		result = wait_below(depth - 1, waker, cx);
	} else if (*waker == NULL || !tdt_waker_will_wake(*waker, cx->waker)) {
		tdt_waker_drop(*waker);
		*waker = tdt_waker_clone(cx->waker);
		atomic_fetch_add(&polled, 1);
	}
	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t idle_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = wait_below(DEPTH - 2, state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void idle_drop(void *state)
{
	const struct tdt_waker **waker = state;

	tdt_waker_drop(*waker);
	*waker = NULL;
}

static void spawn_idle(struct tdt_rt *rt)
{
	static const struct tdt_waker *waker[IDLE];

	for (int i = 0; i < IDLE; i++) {
		struct tdt_handle *handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ &waker[i], idle_poll, idle_drop }, NULL);

		if (handle == NULL)
			die("tdt_rt_spawn");
		tdt_handle_unref(handle);
	}
	while (atomic_load(&polled) < IDLE)
		usleep(1000);
}

/* --- A slice --------------------------------------------------------------------------- */

static int64_t used(int server)
{
	struct timespec time;

	if (server == LIBUV)
		return uv_echo_used(libuv);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t time)
{
	const struct timespec until = { time / (1000 * MS), time % (1000 * MS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

static void dump_once(struct situation *situation)
{
	int64_t start = now();

	if (situation->dump == TEXT) {
		if (tdt_dump_with(nowhere, NULL) != 0)
			die("tdt_dump");
	} else {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(NULL);

		if (snapshot == NULL)
			die("tdt_snapshot_take");
		tdt_snapshot_free(snapshot);
	}
	add(situation->took, (double)(now() - start) / 1e6);
}

static uint64_t echoes(const struct situation *situation)
{
	return atomic_load(&load->account[situation - situations].echoes);
}

static int64_t slice_ns(const struct phase *phase)
{
	return (quick ? 20 : phase->slice_ms) * MS;
}

/* Returns the throughput. */
static double measure_slice(struct situation *situation)
{
	const struct phase *phase = &phases[situation->phase];
	int64_t start, cpu, ns;
	uint64_t before;
	double n, rate;

	load_turn(load, situation->server, phase->connections, (unsigned)(situation - situations));
	before = echoes(situation);
	cpu = used(situation->server);
	start = now();
	if (situation->watched && tdt_watch(10 * MS, NULL) != 0)
		die("tdt_watch");
	if (situation->recorded && tdt_recorder_start(NULL) != 0)
		die("tdt_recorder_start");
	if (situation->dump != NO_DUMP) {
		sleep_until(start + slice_ns(phase) / 2);
		dump_once(situation);
	}
	sleep_until(start + slice_ns(phase));
	ns = now() - start;
	n = (double)(echoes(situation) - before);
	if (n < 1)
		n = 1; /* none in a short slice of a busy machine */
	rate = n / (double)ns * 1e9;
	add(situation->rate, rate);
	add(situation->used, (double)(used(situation->server) - cpu) / n / 1e3);
	tdt_watch(0, NULL);
	if (situation->recorded)
		tdt_recorder_stop();
	return rate;
}

/* --- Turns ----------------------------------------------------------------------------- */

/* All messages begin at once: until they come evenly. */
static void settle(const struct phase *phase, int server)
{
	load_turn(load, server, phase->connections, SITUATIONS);
	usleep(quick ? 20000 : 100000);
}

static double measure_libuv(struct situation *situation)
{
	double rate;

	settle(&phases[situation->phase], LIBUV);
	rate = measure_slice(situation);
	settle(&phases[situation->phase], OURS);
	return rate;
}

/* Beside what is undisturbed before, and after; the throughput of the latter is returned. */
static double compare(struct situation *situation, struct situation *undisturbed, double before)
{
	double rate =
	    situation->server == LIBUV ? measure_libuv(situation) : measure_slice(situation);
	double after = measure_slice(undisturbed);
	double part = rate / ((before + after) / 2);

	add(situation->part, part);
	if (situation->dump != NO_DUMP)
		add(situation->cost, (1 - part) * (double)slice_ns(&phases[situation->phase]) / MS);
	return after;
}

static void measure(unsigned phase)
{
	struct situation *undisturbed = situations;
	double before;

	while (undisturbed->phase != phase)
		undisturbed++;
	settle(&phases[phase], OURS);
	before = measure_slice(undisturbed);
	for (int turn = 0; turn < rounds * (quick ? 1 : phases[phase].turns); turn++)
		for (size_t i = 0; i < SITUATIONS; i++) {
			struct situation *situation =
			    &situations[turn % 2 == 0 ? i : SITUATIONS - 1 - i];

			if (situation->phase == phase && situation != undisturbed &&
			    (situation->server != LIBUV || turn % LIBUV_EVERY == 0))
				before = compare(situation, undisturbed, before);
		}
	load_turn(load, -1, 0, 0);
	for (size_t i = 0; i < SITUATIONS; i++)
		if (situations[i].phase == phase) {
			add(situations[i].slow, load_quantile(&load->account[i], 0.99) / 1e3);
			add(situations[i].slowest,
			    (double)atomic_load(&load->account[i].longest) / 1e3);
		}
}

/* Make the connections, have trees ready for all tasks, and look names up for the first time. */
static void warm_up(const struct phase *phase)
{
	settle(phase, LIBUV);
	settle(phase, OURS);
	if (tdt_watch(10 * MS, NULL) != 0)
		die("tdt_watch");
	usleep(quick ? 50000 : 300000);
	tdt_watch(0, NULL);
	tdt_recorder_start(NULL);
	usleep(quick ? 50000 : 300000);
	tdt_recorder_stop();
	tdt_dump_with(nowhere, NULL);
}

static struct figure *figure_in(const char *unit, const char *name)
{
	struct figure *made = figure(name, NULL);

	in_unit(made, unit);
	return made;
}

static void make_figures(struct situation *situation)
{
	remark(" %s", situation->name);
	situation->rate = figure("  throughput", NULL);
	if (situation->server != OURS || situation->watched || situation->recorded ||
	    situation->dump != NO_DUMP) {
		situation->part = figure_uncertain("  of the undisturbed");
		in_unit(situation->part, "95 % certain");
	}
	if (situation->target != 0)
		at_least(situation->part, situation->target);
	situation->used = figure_in("us an echo", "  CPU time");
	situation->slow = figure_in("us", "  99 of 100 echoes within");
	situation->slowest = figure_in("us", "  the slowest echo");
	if (situation->dump == NO_DUMP)
		return;
	situation->took = figure_in("ms", "  a dump");
	situation->cost = figure_uncertain("  what it took from the echoes");
	in_unit(situation->cost, "ms, 95 % certain");
}

static void make_phase(unsigned phase)
{
	if (phases[phase].idle != 0)
		remark("The server with %u connections, and %d tasks that wait, %d functions deep:",
		       phases[phase].connections, phases[phase].idle, DEPTH);
	else
		remark("The server with %u connections:", phases[phase].connections);
	for (size_t i = 0; i < SITUATIONS; i++)
		if (situations[i].phase == phase)
			make_figures(&situations[i]);
}

/* Whether the client can have the many connections to both servers. */
static bool allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		die("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		die("setrlimit");
	return limit.rlim_max > 2 * MANY + 100;
}

int main(int argc, char **argv)
{
	static const struct echo_options options = {
		.host = "127.0.0.1", .workers = 1, .idle_ms = 60000, .report_ms = 24 * 3600 * 1000
	};
	struct service service;
	uint16_t ports[2];
	const char *what;
	bool many = allow_descriptors();
	int cpu[2];

	report_start(argc, argv, "Does a busy echo server feel that it is watched, or dumped?",
		     "echoes a second", 40);
	load_cpus(cpu);
	load = load_start(cpu[1], SITUATIONS + 1);
	libuv = uv_echo_start(cpu[0], &ports[LIBUV]);
	load_pin(cpu[0]);
	if (service_start(&service, &options, &what) != 0)
		die(what);
	ports[OURS] = tdt_tcp_listener_port(service.listener);
	load_connect(load, ports, 2);
	nowhere = fopen("/dev/null", "we");
	if (nowhere == NULL)
		die("/dev/null");
	for (unsigned phase = 0; phase < PHASES; phase++)
		make_phase(phase);

	for (unsigned phase = 0; phase < PHASES; phase++) {
		if (phases[phase].connections == MANY && !many)
			continue;
		if (phases[phase].idle != 0)
			spawn_idle(service.rt);
		warm_up(&phases[phase]);
		measure(phase);
	}

	load_stop(load);
	uv_echo_stop(libuv);
	service_stop(&service);
	fclose(nowhere);
	return report_end();
}
