// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How many trees of a busy server show a leaf that is over, with counted clones and without; and
 * what the clones cost it while it is watched.
 *
 * The server (store.h) has 50 connections that are as busy as a client can keep them.  It runs on
 * one CPU together with the library's threads and this one, the client on another.  The CPU time of
 * the process for each request is compared in short slices, each with the slices beside it in which
 * nothing is watched.  bench/pairs compares two builds of the library.
 */

#include <config.h>

#include <string.h>
#include <unistd.h>

#include <tdt/watch.h>

#include "load.h"
#include "report.h"
#include "store.h"

#define MS INT64_C(1000000)
#define CONNECTIONS 50
#define SLICE_MS 200

static struct load *load;
static struct store store;

/* --- Its trees ---------------------------------------------------------------------- */

struct trees {
	const char *name;
	bool watched, clones;
	struct figure *ghosts;
	unsigned judged[STORE_VERDICTS];
};

static struct trees kinds[] = {
	{ .name = "  asked for, without counted clones" },
	{ .name = "  asked for, with them (the default)", .clones = true },
	{ .name = "  watched, without (the default)", .watched = true },
	{ .name = "  watched, with them", .watched = true, .clones = true },
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static void judge(struct trees *trees, struct store_connection *connection, struct tdt_trace *trace)
{
	uint64_t poll;

	if (trace == NULL)
		return;
	poll = tdt_trace_info(trace)->polls - tdt_trace_info(trace)->polls_since;
	/* A watched tree is there until the next comes. */
	if (poll != *store_judged(connection)) {
		*store_judged(connection) = poll;
		trees->judged[store_judge(connection, trace)]++;
	}
	tdt_trace_free(trace);
}

static void ask_for(struct trees *trees)
{
	unsigned n = atomic_load_explicit(&store.connections, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		struct store_connection *connection = store.connection[i];
		struct tdt_handle *handle = store_handle(connection);

		judge(trees, connection,
		      trees->watched ? tdt_backtrace_last(handle)
				     : tdt_backtrace_with(handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = 100 * MS }));
	}
}

/* How many trees were judged of which the server knows the truth. */
static unsigned known(const struct trees *trees)
{
	unsigned n = 0;

	for (int i = 0; i < STORE_UNKNOWN; i++)
		n += trees->judged[i];
	return n;
}

static void judge_slice(struct trees *trees)
{
	int64_t end = now() + (quick ? 20 : SLICE_MS) * MS;
	unsigned before[STORE_VERDICTS], n = known(trees), ghosts;

	memcpy(before, trees->judged, sizeof before);
	tdt_leaf_wakers(trees->clones);
	if (trees->watched && tdt_watch(10 * MS, NULL) != 0)
		die("tdt_watch");
	do {
		usleep(10000);
		ask_for(trees);
	} while (now() < end);
	tdt_watch(0, NULL);
	n = known(trees) - n;
	ghosts = trees->judged[STORE_MARKED] - before[STORE_MARKED] + trees->judged[STORE_GHOST] -
		 before[STORE_GHOST];
	if (n > 0)
		add(trees->ghosts, 100.0 * ghosts / n);
}

/* --- Its CPU time ------------------------------------------------------------------- */

static struct cost {
	const char *name;
	bool watched, clones;
	struct figure *used, *part;
} costs[] = {
	{ .name = "  not watched" },
	{ .name = "  watched at 10 ms", .watched = true },
	{ .name = "  watched at 10 ms, with counted clones", .watched = true, .clones = true },
};

#define COSTS (sizeof costs / sizeof costs[0])

static int64_t used(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static double cpu_slice(const struct cost *cost)
{
	struct load_account *account = &load->account[0];
	uint64_t requests;
	int64_t cpu;
	double us;

	tdt_leaf_wakers(cost->clones);
	if (cost->watched && tdt_watch(10 * MS, NULL) != 0)
		die("tdt_watch");
	requests = atomic_load(&account->echoes);
	cpu = used();
	usleep(1000 * (quick ? 20 : SLICE_MS));
	cpu = used() - cpu;
	requests = atomic_load(&account->echoes) - requests;
	tdt_watch(0, NULL);
	us = (double)cpu / 1e3 / (requests > 0 ? (double)requests : 1);
	add(cost->used, us);
	return us;
}

static void measure_cpu(void)
{
	double before = cpu_slice(&costs[0]);

	for (int turn = 0; turn < 5; turn++)
		for (size_t i = 1; i < COSTS; i++) {
			double us = cpu_slice(&costs[i]), after = cpu_slice(&costs[0]);

			add(costs[i].part, us / ((before + after) / 2));
			before = after;
		}
}

/* --- All of it ----------------------------------------------------------------------- */

static void make_figures(void)
{
	remark("Trees that show a leaf that is over:");
	for (size_t i = 0; i < KINDS; i++) {
		kinds[i].ghosts = figure_uncertain(kinds[i].name);
		in_unit(kinds[i].ghosts, "%, 95 % certain");
	}
	remark("CPU time for a request:");
	for (size_t i = 0; i < COSTS; i++) {
		costs[i].used = figure(costs[i].name, NULL);
		if (i == 0)
			continue;
		costs[i].part = figure_uncertain("    beside not watched");
		in_unit(costs[i].part, "times, 95 % certain");
	}
}

int main(int argc, char **argv)
{
	uint16_t port;
	int cpu[2];

	report_start(argc, argv,
		     "Do a busy server's trees show what waits, and what does that cost?", "us",
		     20);
	load_cpus(cpu);
	load = load_start(cpu[1], 1);
	load_pin(cpu[0]);
	store_start(&store);
	port = tdt_tcp_listener_port(store.listener);
	load_connect(load, &port, 1);
	make_figures();
	load_turn(load, 0, CONNECTIONS, 0);
	usleep(200000);
	for (int round = 0; round < rounds; round++) {
		measure_cpu();
		for (size_t i = 0; i < KINDS; i++)
			judge_slice(&kinds[i]);
	}
	load_turn(load, -1, 0, 0);
	remark("All of them:");
	for (size_t i = 0; i < KINDS; i++)
		remark("%s: of %u trees %u (%u of them marked), without one that waits %u",
		       kinds[i].name, known(&kinds[i]),
		       kinds[i].judged[STORE_MARKED] + kinds[i].judged[STORE_GHOST],
		       kinds[i].judged[STORE_MARKED], kinds[i].judged[STORE_LOST]);
	load_stop(load);
	store_stop(&store);
	return report_end();
}
