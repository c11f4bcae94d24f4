// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures how a recording becomes a Perfetto trace: a recording that is made here,
 * of tasks that are woken, polled on one of two workers, and wait for a descriptor.  It measures
 * the copy that a snapshot begins with, opening it, merging its rings, and writing the trace.
 */

#include <config.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "lib/recording_maker.h"
#include "recording/copy.h"
#include "recording/read.h"
#include "report.h"
#include "tree-printer/perfetto.h"

#define TASKS 1000
#define ROOM (1u << 19) /* slots of a worker's ring, which are 16 MiB */

static uint64_t polls = 340000;
static void *block;
static size_t size;

/* A wake-up, a wait and a poll are three slots. */
static void make_block(void)
{
	struct maker *maker = maker_new();
	unsigned ring[2] = { maker_ring(maker, TDT_RING_POLLS, ROOM, 4243),
			     maker_ring(maker, TDT_RING_POLLS, ROOM, 4244) };
	uint64_t t = 1000000000;

	maker_header(maker)->clock = TDT_RECORDING_TSC;
	maker_header(maker)->taken = t;
	for (uint64_t i = 0; i < polls; i++, t += 2000) {
		unsigned worker = ring[(i * 7 / 3) & 1], waker = ring[(i * 7 / 3 + 1) & 1];
		uint64_t task = 1 + i % TASKS;

		maker_wake(maker, waker, t, task, 0);
		maker_wait(maker, worker, task, TDT_WAIT_IO, task, 0, NULL);
		maker_poll_on(maker, worker, t + 500, 1000, task, TDT_PENDING, 0, 3);
	}
	block = maker_block(maker, &size);
	maker_free(maker);
}

static int read_block(void *data, uint64_t address, void *to, size_t n)
{
	(void)data;
	memcpy(to, (const void *)(uintptr_t)address, n);
	return 0;
}

static void measure_copy(struct figure *figure)
{
	const struct tdt__recording_source source = { .read = read_block,
						      .address = (uintptr_t)block,
						      .now = 1 };
	int64_t start = now();
	size_t copied;
	void *copy;

	if (tdt__recording_copy(&source, &copy, &copied) != 0)
		die("tdt__recording_copy");
	add(figure, (double)(now() - start) / 1e6);
	free(copy);
}

static struct tdt__recording *measure_open(struct figure *figure)
{
	struct tdt__recording *recording;
	int64_t start = now();

	if (tdt__recording_open(&recording, block, size) != 0)
		die("tdt__recording_open");
	add(figure, (double)(now() - start) / (double)polls);
	return recording;
}

static void measure_merge(struct figure *figure, const struct tdt__recording *recording)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	int64_t start = now();
	uint64_t items = 0;

	if (tdt__recording_begin(&cursor, recording) != 0)
		die("tdt__recording_begin");
	while (tdt__recording_next(&cursor, &item))
		items++;
	tdt__recording_end(&cursor);
	add(figure, (double)(now() - start) / (double)polls);
	if (items < 2 * polls)
		die("items");
}

static void measure_write(struct figure *figure, struct figure *bytes,
			  const struct tdt__recording *recording, bool gzip)
{
	const struct tdt__perfetto_options options = { .gzip = gzip };
	FILE *out = tmpfile();
	int64_t start = now();

	if (out == NULL || tdt__perfetto_write(recording, &options, out) != 0)
		die("tdt__perfetto_write");
	add(figure, (double)(now() - start) / (double)polls);
	add(bytes, (double)ftell(out) / (double)polls);
	fclose(out);
}

int main(int argc, char **argv)
{
	struct figure *copy, *open, *merge, *plain, *gzip, *plain_bytes, *gzip_bytes;

	report_start(argc, argv, "How does a recording become a Perfetto trace?", "ns a poll", 11);
	if (quick)
		polls /= 20;
	make_block();
	copy = figure("copying the block", NULL);
	in_unit(copy, "ms");
	at_most(copy, 50);
	open = figure("opening the copy", NULL);
	merge = figure("merging its rings", NULL);
	plain = figure("writing the trace", NULL);
	at_most(plain, 1000);
	gzip = figure("writing it compressed", plain);
	plain_bytes = figure("size", NULL);
	in_unit(plain_bytes, "bytes a poll");
	at_most(plain_bytes, 120);
	gzip_bytes = figure("size, compressed", plain_bytes);
	in_unit(gzip_bytes, "bytes a poll");
	for (int i = 0; i < rounds; i++) {
		struct tdt__recording *recording;

		measure_copy(copy);
		recording = measure_open(open);
		measure_merge(merge, recording);
		measure_write(plain, plain_bytes, recording, false);
		measure_write(gzip, gzip_bytes, recording, true);
		tdt__recording_close(recording);
	}
	free(block);
	return report_end();
}
