// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what a probe of the user's costs, and how long a snapshot of two rings of
 * 16 MiB takes that are full.  The snapshot is written to /dev/shm, because disks differ.
 */

#include <config.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/layout/recording.h>
#include <tdt/tdt.h>

#include "report.h"

#define TIMES 100000
#define THREADS 2
#define RING_SIZE ((size_t)16 << 20)

/* --- Probes ---------------------------------------------------------------------------------- */

static void empty_turns(struct figure *figure)
{
	int64_t start = now();

	for (int i = 0; i < TIMES; i++)
		__asm__ volatile("" : : "r"(i));
	start = now() - start;
	add(figure, (double)start / TIMES);
}

static void probes(struct figure *figure)
{
	int64_t start = now();

	for (int i = 0; i < TIMES; i++) {
		__asm__ volatile("" : : "r"(i));
		TDT_PROBE(tdt_bench, numbers, i, 7u);
	}
	start = now() - start;
	add(figure, (double)start / TIMES);
}

/* --- Snapshots ------------------------------------------------------------------------- */

static void start_recorder(void)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = RING_SIZE };

	if (tdt_recorder_start(&options) != 0)
		die("tdt_recorder_start");
}

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

/* As many polls as a ring has slots; the thread keeps its ring until all have filled theirs. */
static void *fill_ring(void *filled)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, nothing, nothing, nothing };
	static const struct tdt_waker waker = { &vtable };
	struct tdt_traced task = tdt_traced(((struct tdt_future){ NULL, wait_poll, drop_nothing }));
	struct tdt_context cx = { &waker };

	if (task.handle == NULL)
		die("tdt_traced");
	for (size_t i = 0; i < RING_SIZE / sizeof(struct tdt_event); i++)
		tdt_future_poll(&task.future, &cx);
	pthread_barrier_wait(filled);
	tdt_future_drop(&task.future);
	tdt_handle_unref(task.handle);
	return NULL;
}

static void fill_rings(void)
{
	pthread_t thread[THREADS];
	pthread_barrier_t filled;

	pthread_barrier_init(&filled, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, fill_ring, &filled) != 0)
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&filled);
}

static void snapshot(struct figure *figure, const char *path)
{
	int64_t start = now();

	if (tdt_recorder_snapshot(path, NULL) != 0)
		die("tdt_recorder_snapshot");
	add(figure, (double)(now() - start) / 1e6);
}

int main(int argc, char **argv)
{
	struct figure *empty, *off, *on, *added_off, *whole;
	char path[64];

	report_start(argc, argv, "What do probes of your own and snapshots cost?", "ns", 21);
	empty = figure("an empty turn of a loop", NULL);
	off = figure("TDT_PROBE() with two numbers, unused", NULL);
	added_off = figure_added("  added", off, empty);
	at_most(added_off, 1.5);
	on = figure("TDT_PROBE() with two numbers, recorded", NULL);
	whole = figure("a snapshot of 2 x 16 MiB", NULL);
	in_unit(whole, "ms");
	at_most(whole, 50);
	snprintf(path, sizeof path, "/dev/shm/tdt-bench-%d.rec", (int)getpid());
	start_recorder();
	fill_rings();
	tdt_recorder_stop();
	for (int i = 0; i < rounds; i++) {
		empty_turns(empty);
		probes(off);
		start_recorder();
		probes(on);
		tdt_recorder_stop();
		snapshot(whole, path);
	}
	unlink(path);
	return report_end();
}
