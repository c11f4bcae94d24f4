// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Whether the tasks of a busy program feel that it is watched, or that all of its tasks are asked again and again: the
 * echo server of the demo, as busy as a client can keep it; with some connections, with 10,000 tasks beside them that
 * wait, and with many connections.
 *
 * The server, its runtime's driver, the ticker and the thread that dumps all run on one CPU, the client on another.  So
 * whatever CPU time tracing takes is taken from the echoes, and nothing can hide on a CPU that was idle.  Beside it
 * stands an echo server on bare libuv, with the same client, on the same CPU.
 *
 * A round is made of short slices, in which each situation has its turn: what disturbs one disturbs all.  Beside
 * the echoes a second stands the CPU time that the server's process used for each, which other processes disturb less;
 * and how long the slowest echoes took.
 */

#include <config.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <tdt/dump.h>
#include <tdt/runtime.h>
#include <tdt/watch.h>

#include "../demo/echo.h"
#include "load.h"
#include "report.h"
#include "uv_echo.h"

#define MS INT64_C(1000000)
#define SLICE_MS 50
#define SLICES 10 /* a round */
#define FEW 8
#define MANY LOAD_CONNECTIONS
#define IDLE 10000
#define DEPTH 10

enum { OURS, LIBUV };
enum dump { NO_DUMP, RAW, TEXT };
enum phase { ALONE, BESIDE_IDLE, MANY_CONNECTIONS, PHASES };

#define BACK_TO_BACK 1000000

static struct situation {
	enum phase phase;
	const char *name;
	int server;
	bool watched;
	enum dump dump;
	int dumps; /* a second */

	struct figure *rate, *used, *slow, *slowest, *took;
	double echoes, seconds, cpu; /* of this round */
} situations[] = {
	{ .phase = ALONE, .name = "bare libuv, untraced", .server = LIBUV },
	{ .phase = ALONE, .name = "undisturbed" },
	{ .phase = ALONE, .name = "undisturbed again" },
	{ .phase = ALONE, .name = "watched at 10 ms", .watched = true },
	{ .phase = ALONE, .name = "100 dumps/s, raw", .dump = RAW, .dumps = 100 },
	{ .phase = ALONE, .name = "100 dumps/s, as text", .dump = TEXT, .dumps = 100 },
	{ .phase = BESIDE_IDLE, .name = "undisturbed" },
	{ .phase = BESIDE_IDLE, .name = "undisturbed again" },
	{ .phase = BESIDE_IDLE, .name = "10 dumps/s, raw", .dump = RAW, .dumps = 10 },
	{ .phase = BESIDE_IDLE, .name = "10 dumps/s, as text", .dump = TEXT, .dumps = 10 },
	{ .phase = BESIDE_IDLE, .name = "one raw dump after the other", .dump = RAW, .dumps = BACK_TO_BACK },
	{ .phase = MANY_CONNECTIONS, .name = "bare libuv, untraced", .server = LIBUV },
	{ .phase = MANY_CONNECTIONS, .name = "undisturbed" },
	{ .phase = MANY_CONNECTIONS, .name = "undisturbed again" },
	{ .phase = MANY_CONNECTIONS, .name = "watched at 10 ms", .watched = true },
	{ .phase = MANY_CONNECTIONS, .name = "10 dumps/s, raw", .dump = RAW, .dumps = 10 },
};

#define SITUATIONS (sizeof situations / sizeof situations[0])

static int64_t slice_ns = SLICE_MS * MS;
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
		if (tdt_dump(nowhere, NULL) != 0)
			die("tdt_dump");
	} else {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(NULL);

		if (snapshot == NULL)
			die("tdt_snapshot_take");
		tdt_snapshot_free(snapshot);
	}
	add(situation->took, (double)(now() - start) / 1e6);
}

static int dumps_by(const struct situation *situation, int slice)
{
	return situation->dumps * slice * SLICE_MS / 1000;
}

static void disturb(struct situation *situation, int slice, int64_t start)
{
	int n = dumps_by(situation, slice + 1) - dumps_by(situation, slice);

	for (int i = 0; i < n && now() < start + slice_ns; i++) {
		sleep_until(start + slice_ns * (2 * i + 1) / (2 * n));
		dump_once(situation);
	}
	sleep_until(start + slice_ns);
}

static uint64_t echoes(const struct situation *situation)
{
	return atomic_load(&load->account[situation - situations].echoes);
}

static void measure_slice(struct situation *situation, int slice)
{
	int64_t start, cpu;
	uint64_t before;

	if (situation->watched && tdt_watch(10 * MS) != 0)
		die("tdt_watch");
	load_turn(load, situation->server, situation->phase == MANY_CONNECTIONS ? MANY : FEW,
		  (unsigned)(situation - situations));
	usleep(2000); /* until all are under way */
	before = echoes(situation);
	cpu = used(situation->server);
	start = now();
	disturb(situation, slice, start);
	situation->seconds += (double)(now() - start) / 1e9;
	situation->cpu += (double)(used(situation->server) - cpu) / 1e3;
	situation->echoes += (double)(echoes(situation) - before);
	tdt_watch(0);
	load_turn(load, -1, 0, 0);
}

/* --- Rounds ---------------------------------------------------------------------------- */

static void tell_round(struct situation *situation)
{
	struct load_account *account = &load->account[situation - situations];

	add(situation->rate, situation->echoes / situation->seconds);
	add(situation->used, situation->cpu / situation->echoes);
	add(situation->slow, load_quantile(account, 0.99) / 1e3);
	add(situation->slowest, (double)atomic_load(&account->longest) / 1e3);
	load_clear(account);
	situation->echoes = situation->seconds = situation->cpu = 0;
}

/* Forth, and back: what changes steadily does to all the same. */
static void measure(enum phase phase)
{
	for (int slice = 0; slice < SLICES; slice++)
		for (size_t i = 0; i < SITUATIONS; i++) {
			size_t number = slice % 2 == 0 ? i : SITUATIONS - 1 - i;

			if (situations[number].phase == phase)
				measure_slice(&situations[number], slice);
		}
	for (size_t i = 0; i < SITUATIONS; i++)
		if (situations[i].phase == phase)
			tell_round(&situations[i]);
}

/* Make the connections, and look names up for the first time. */
static void warm_up(enum phase phase)
{
	for (int server = OURS; server <= LIBUV; server++) {
		load_turn(load, server, phase == MANY_CONNECTIONS ? MANY : FEW, SITUATIONS);
		usleep(200000);
	}
	tdt_dump(nowhere, NULL);
	load_turn(load, -1, 0, 0);
}

static void make_figures(enum phase phase)
{
	struct figure *rate = NULL, *cpu = NULL;

	if (phase == ALONE)
		remark("The server with %d connections:", FEW);
	else if (phase == BESIDE_IDLE)
		remark("And with %d tasks that wait, %d functions deep:", IDLE, DEPTH);
	else
		remark("And with %d connections:", MANY);
	for (size_t i = 0; i < SITUATIONS; i++) {
		struct situation *situation = &situations[i];

		if (situation->phase != phase)
			continue;
		remark(" %s", situation->name);
		situation->rate = figure("  throughput", rate);
		situation->used = figure("  CPU time", cpu);
		in_unit(situation->used, "us an echo");
		situation->slow = figure("  99 of 100 echoes within", NULL);
		in_unit(situation->slow, "us");
		situation->slowest = figure("  the slowest echo", NULL);
		in_unit(situation->slowest, "us");
		if (situation->dump != NO_DUMP) {
			situation->took = figure("  a dump", NULL);
			in_unit(situation->took, "ms");
		}
		if (situation->server == OURS && rate == NULL) {
			rate = situation->rate;
			cpu = situation->used;
		} else if (situation->watched) {
			ratio_at_least(situation->rate, 0.99);
		} else if (situation->dump != NO_DUMP && situation->dumps != BACK_TO_BACK) {
			ratio_at_least(situation->rate, 0.95);
		}
	}
}

/* The first two CPUs that we may use; -1: there are less. */
static void choose_cpus(int cpu[2])
{
	cpu_set_t set;
	int n = 0;

	cpu[0] = cpu[1] = -1;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n < 2)
		cpu[0] = -1;
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
	enum phase phases = allow_descriptors() ? PHASES : MANY_CONNECTIONS;
	int cpu[2];

	report_start(argc, argv, "Does a busy echo server feel that it is watched, or dumped?", "echoes a second", 7);
	if (quick)
		slice_ns = 5 * MS;
	choose_cpus(cpu);
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
	for (enum phase phase = 0; phase < PHASES; phase++)
		make_figures(phase);

	for (enum phase phase = 0; phase < phases; phase++) {
		if (phase == BESIDE_IDLE)
			spawn_idle(service.rt);
		warm_up(phase);
		for (int i = 0; i < rounds; i++)
			measure(phase);
	}

	load_stop(load);
	uv_echo_stop(libuv);
	service_stop(&service);
	fclose(nowhere);
	return report_end();
}
