// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * make_trace SCENARIO FILE: writes the Perfetto trace of a recording that is made here, of events
 * that perfetto.sh knows.  If SCENARIO has a slash, it is a file with a recording.  With a third
 * argument the trace is compressed.
 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "lib/must.h"
#include "lib/recording_maker.h"
#include "tree-printer/perfetto.h"

#define MS 1000000u

static struct maker *maker;
static unsigned first, second, other, service;

/* The boot lasted 5 seconds longer than CLOCK_MONOTONIC counts. */
static void begin(void)
{
	struct tdt_recording *header;

	maker = maker_new();
	header = maker_header(maker);
	header->start = 1000 * MS;
	header->start_ticks = 1000 * MS;
	header->start_boot = 6000 * (uint64_t)MS;
	header->start_real = UINT64_C(1700000000) * 1000 * MS;
	header->taken = 2000 * (uint64_t)MS;
	strcpy(header->program, "ser\xffver");
	first = maker_ring(maker, TDT_RING_POLLS, 1024, 4243);
	second = maker_ring(maker, TDT_RING_POLLS, 1024, 4244);
	other = maker_ring(maker, TDT_RING_OTHERS, 64, 4245);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 4246);
	maker_thread(maker, first, 1000 * MS, 4243, 0, 1, "worker 1");
	maker_thread(maker, second, 1000 * MS, 4244, 0, 1, "worker 2");
	maker_thread(maker, other, 1000 * MS, 4245, 0, 0, "driver");
	maker_identity(maker, service, TDT_EVENT_TASK, 1000 * MS, 9, 0, 0,
		       "hol\x1b"
		       "der",
		       "h.c", 1);
}

static void append(char **at, enum tdt_user_type type, const void *value, size_t n)
{
	*(*at)++ = (char)type;
	memcpy(*at, value, n);
	*at += n;
}

static void add_user(uint64_t time, const char *name, const char *path)
{
	const int64_t minus = -5;
	const double half = 0.5;
	char arguments[100], *at = arguments;

	append(&at, TDT_USER_INT, &minus, 8);
	append(&at, TDT_USER_TEXT, path, strlen(path) + 1);
	append(&at, TDT_USER_DOUBLE, &half, 8);
	maker_user(maker, first, time, 7, "app", name, 3, arguments, (size_t)(at - arguments));
}

/*
 * Task 7 is spawned by task 8, polled on the first worker, waits for a mutex of task 9 (with a
 * stack), is woken by the driver, and polled on the second worker, where it panics.  In its first
 * poll it wakes task 8 twice, which is polled once more.
 */
static void make_story(void)
{
	static const uint64_t pcs[] = { 0x401010, 0x402020, 0x403030 };
	uint32_t stack = maker_stack(maker, pcs, 3, 0);
	uint32_t leaf = maker_stack(maker, pcs, 2, 0);
	const uint64_t t = 1100 * MS;

	maker_identity(maker, second, TDT_EVENT_SPAWN, t + 500, 7, 0, 8, "conn", "echo.c", 42);
	maker_poll_on(maker, second, t, 1000, 8, TDT_PENDING, 0, 1);
	maker_wake(maker, first, t + 2500, 8, 7);
	maker_wake(maker, first, t + 2600, 8, 7);
	add_user(t + 2700, "request__start", "/a\xff");
	add_user(t + 2800, "hit", "/b");
	maker_wait(maker, first, 7, TDT_WAIT_MUTEX, 0xabc, 9, "the table");
	maker_wait(maker, first, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_leaf(maker, first, 7, stack, 0, 2);
	maker_leaf(maker, first, 7, leaf, 1, 2);
	maker_poll_on(maker, first, t + 2000, 1000, 7, TDT_PENDING, 0, 0);
	maker_park(maker, first, t + 3000, 5000);
	maker_poll_on(maker, second, t + 4000, 500, 8, TDT_PENDING, 7, 1);
	maker_wake(maker, other, t + 9000, 7, 0);
	maker_identity(maker, second, TDT_EVENT_END, t + 10500, 7, TDT_PANICKED, 8, "conn",
		       "echo.c", 42);
	maker_poll_on(maker, second, t + 10000, 1000, 7, TDT_PANICKED, 0, 1);
	add_user(t + 11000, "request__end", "/c");
	add_user(t + 12000, "other__end", "/d");
	/* A poll of task 8 still goes on. */
	maker_entry(maker, second)->task = 8;
	maker_entry(maker, second)->since = t + 20000;
}

/* The recording of `polls` polls of 50 tasks, each with a wake-up, on two workers. */
static void make_many(uint64_t polls)
{
	uint64_t t = 1100 * MS;

	first = maker_ring(maker, TDT_RING_POLLS, 1 << 20, 4343);
	second = maker_ring(maker, TDT_RING_POLLS, 1 << 20, 4344);
	maker_thread(maker, first, t, 4343, 0, 1, "worker 3");
	maker_thread(maker, second, t, 4344, 0, 1, "worker 4");
	for (uint64_t i = 0; i < polls; i++, t += 2000) {
		maker_wake(maker, i & 1 ? first : second, t, 100 + i % 50, 0);
		maker_wait(maker, i & 1 ? second : first, 100 + i % 50, TDT_WAIT_IO, 3, 0, NULL);
		maker_poll_on(maker, i & 1 ? second : first, t + 500, 1000, 100 + i % 50,
			      TDT_PENDING, 0, (uint16_t)(i & 1));
	}
}

/* The first worker's ring has wrapped. */
static void make_lost(void)
{
	maker_header(maker)->missed = 5;
	maker_header(maker)->missed_last = 1;
	maker_header(maker)->missed_polls = 3;
	maker_poll(maker, second, 1001 * MS, 1000, 20, TDT_PENDING);
	for (uint64_t i = 0; i < 2000; i++)
		maker_poll(maker, first, (1100 + i / 10) * MS + i % 10 * 1000, 100, 21,
			   TDT_PENDING);
	maker_poll(maker, second, 1999 * (uint64_t)MS, 1000, 20, TDT_PENDING);
}

/* Names: one address has an inlined function, one is unknown. */
static size_t names(void *data, uint64_t pc, struct tdt_frame *frames, size_t max)
{
	(void)data;
	MUST(max >= 2);
	if (pc == 0x403030)
		return 0;
	if (pc == 0x1001) {
		frames[0].function = "conn_poll";
		return 1;
	}
	frames[0].module = "/bin/server";
	frames[0].module_offset = pc & 0xffff;
	frames[0].build_id = "01ab";
	frames[0].function = pc == 0x401010 ? "leaf\xff" : "outer";
	frames[0].file = "echo.c";
	frames[0].line = 17;
	frames[1] = frames[0];
	frames[1].function = "inliner";
	return pc == 0x401010 ? 2 : 1;
}

static void *make(const char *scenario, size_t *size)
{
	void *block;

	begin();
	if (strcmp(scenario, "story") == 0)
		make_story();
	else if (strncmp(scenario, "many", 4) == 0)
		make_many(strtoul(scenario + 4, NULL, 10));
	else if (strcmp(scenario, "lost") == 0)
		make_lost();
	else
		MUST(strcmp(scenario, "nothing") == 0);
	block = maker_block(maker, size);
	maker_free(maker);
	return block;
}

static void *read_file(const char *name, size_t *size)
{
	FILE *in = fopen(name, "r");
	void *block;

	MUST(in != NULL && fseek(in, 0, SEEK_END) == 0);
	*size = (size_t)ftell(in);
	block = malloc(*size);
	rewind(in);
	MUST(block != NULL && fread(block, 1, *size, in) == *size);
	fclose(in);
	return block;
}

int main(int argc, char **argv)
{
	bool is_file = strchr(argv[1], '/') != NULL;
	const struct tdt__perfetto_options options = { .gzip = argc > 3,
						       .names = is_file ? NULL : names };
	struct tdt__recording *recording;
	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;
	void *block;
	size_t size;

	MUST(out != NULL);
	block = is_file ? read_file(argv[1], &size) : make(argv[1], &size);
	MUST(tdt__recording_open(&recording, block, size) == 0);
	MUST(tdt__perfetto_write(recording, &options, out) == 0);
	MUST(fclose(out) == 0);
	tdt__recording_close(recording);
	free(block);
	return 0;
}
