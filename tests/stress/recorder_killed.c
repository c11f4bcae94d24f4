// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process that records into a file is killed at a random moment, and its file is read: all events
 * up to each `head` are whole, the polls of a thread do not overlap, and what a ring says is being
 * polled began after the polls that are over.
 *
 *	tests/stress/recorder_killed [TIMES]
 */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/recording.h>
#include <tdt/recorder.h>
#include <tdt/tdt.h>

#include "lib/folder.h"
#include "lib/must.h"
#include "lib/seeded.h"

#define THREADS 3

/* --- The process that is killed --------------------------------------------------------- */

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, nothing, nothing, nothing };
static const struct tdt_waker waker = { &vtable };

/* The third poll ends the task. */
static tdt_poll_t three_polls(void *state, struct tdt_context *cx)
{
	int *polls = state;

	(void)cx;
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, state, 1, "a lock with a name of more than a slot");
	return --*polls > 0 ? TDT_PENDING : TDT_READY;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static void live_once(void)
{
	struct tdt_context cx = { &waker };
	int polls = 3;
	struct tdt_traced task =
		tdt_traced_with((struct tdt_future){ &polls, three_polls, drop_nothing },
				TDT_TASK_ATTR(.name = "a task that ends soon"));

	while (tdt_future_poll(&task.future, &cx) == TDT_PENDING)
		tdt_task_woken(task.handle);
	tdt_future_drop(&task.future);
	tdt_handle_unref(task.handle);
}

static void *live(void *arg)
{
	for (;;)
		live_once();
	return arg;
}

static _Noreturn void record_in(const char *dir, int ready)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 65536,
						      .long_poll_ns = 1, /* each is remarkable */
						      .dir = dir };
	pthread_t thread;

	MUST(tdt_recorder_start(&options) == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread, NULL, live, NULL) == 0);
	MUST(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

/* --- Its file ------------------------------------------------------------------------------ */

static const struct tdt_recording *block;
static unsigned long events, polls;

static const struct tdt_event *slot_of(const struct tdt_recording_ring *ring, uint64_t at)
{
	return (const struct tdt_event *)((const char *)block + ring->slots) +
	       (at & (ring->room - 1));
}

static unsigned count_more(const struct tdt_recording_ring *ring, uint64_t *at)
{
	unsigned n = 0;

	for (; *at < ring->head && slot_of(ring, *at)->kind == TDT_EVENT_MORE; (*at)++) {
		MUST(((const struct tdt_event_more *)slot_of(ring, *at))->n <= TDT_EVENT_TEXT);
		n++;
	}
	return n;
}

static void check_kind(const struct tdt_event *event, unsigned more)
{
	MUST(event->kind > TDT_EVENT_MORE && event->kind <= TDT_EVENT_STATE);
	MUST(more < TDT_EVENT_SLOTS_MAX);
	MUST((more == 0) == (event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_WAKE ||
			     event->kind == TDT_EVENT_START || event->kind == TDT_EVENT_STACK ||
			     event->kind == TDT_EVENT_DELAY));
	MUST(event->kind != TDT_EVENT_WAIT || more == 2);
}

/* Returns when the last poll ended. */
static uint64_t check_poll(const struct tdt_event *event, uint64_t ended)
{
	uint64_t length = (uint64_t)event->a << (event->detail >> 4) * 4;

	MUST((event->detail & 3) == TDT_PENDING || (event->detail & 3) == TDT_READY);
	MUST(event->time >= ended && event->time >= block->start_ticks && event->task != 0);
	polls++;
	return event->time + length;
}

static void check_ring(const struct tdt_recording_ring *ring)
{
	uint64_t most = ring->head + TDT_EVENT_SLOTS_MAX, ended = 0,
		 at = most > ring->room ? most - ring->room : 0;
	const struct tdt_event *last = NULL;

	if (at < ring->first)
		at = ring->first;
	if (at > 0)
		count_more(ring, &at);
	while (at < ring->head) {
		const struct tdt_event *event = slot_of(ring, at++);

		check_kind(event, count_more(ring, &at));
		if (event->kind == TDT_EVENT_POLL && ring->kind == TDT_RING_POLLS) {
			ended = check_poll(event, ended);
			last = event;
		}
		events++;
	}
	if (ring->task != 0 && last != NULL)
		MUST(ring->since >= ended ||
		     (ring->since == last->time && ring->task == last->task));
}

static void check_block(size_t size)
{
	MUST(memcmp(block->magic, TDT_RECORDING_MAGIC, 8) == 0 && block->bytes <= size);
	MUST(block->recording == 1);
	for (uint32_t i = 0; i < block->n_rings; i++) {
		const struct tdt_recording_ring *ring =
			(const struct tdt_recording_ring *)((const char *)block + block->rings) + i;

		MUST((ring->room & (ring->room - 1)) == 0);
		if (ring->room == 0)
			continue;
		MUST(ring->slots + ring->room * sizeof(struct tdt_event) <= size);
		check_ring(ring);
	}
}

static void check_file(int dir, const char *name)
{
	int file = openat(dir, name, O_RDONLY);
	struct stat about;

	MUST(file >= 0 && fstat(file, &about) == 0);
	block = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
	MUST(block != MAP_FAILED);
	check_block((size_t)about.st_size);
	munmap((void *)(uintptr_t)block, (size_t)about.st_size);
	close(file);
	MUST(unlinkat(dir, name, 0) == 0);
}

/* Check the files of the directory, and remove them. */
static int check_files(const char *path)
{
	DIR *entries = opendir(path);
	const struct dirent *entry;
	int n = 0;

	MUST(entries != NULL);
	while ((entry = readdir(entries)) != NULL)
		if (entry->d_name[0] != '.') {
			check_file(dirfd(entries), entry->d_name);
			n++;
		}
	closedir(entries);
	return n;
}

static void kill_once(const char *dir, unsigned *random)
{
	int ready[2], status;
	char byte;
	pid_t child;

	MUST(pipe(ready) == 0);
	child = fork();
	MUST(child >= 0);
	if (child == 0)
		record_in(dir, ready[1]);
	close(ready[1]);
	MUST(read(ready[0], &byte, 1) == 1);
	usleep(random_below(random, 20000));
	MUST(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	close(ready[0]);
	MUST(check_files(dir) == 1);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 30;
	char dir[FOLDER_SIZE];
	unsigned random;

	puts("1..1");
	random = seed_of_run();
	MUST(make_folder(dir));
	for (int i = 0; i < times; i++)
		kill_once(dir, &random);
	rmdir(dir);
	printf("# %lu events in %d files, %lu of them polls\n", events, times, polls);
	MUST(polls > 0);
	puts("ok 1 - the file of a process that was killed is whole");
	return EXIT_SUCCESS;
}
