// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/block, recorder/recorder, door/door.  What a recording takes of the host: its
 * memory, its address space and its core file, while it runs and when a reader outside has gone.
 */

#include <tdt/layout/outside.h>
#include <tdt/layout/recording.h>

#include "lib/hand.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "lib/threads.h"
#include "lib/visitor.h"
#include "recorder/recorder.h"
#include "registry/registry.h"

#define MIB ((uint64_t)1 << 20)

/* Sleep until the condition holds; if it never does, Check ends the test. */
#define UNTIL(condition)                                                                           \
	while (!(condition))                                                                       \
	usleep(1000)

/* --- What the process takes ---------------------------------------------------------------- */

struct footprint {
	uint64_t space, memory; /* bytes */
};

/* False: not all of it, that of later threads included. */
static bool lock_memory(void)
{
	struct rlimit most;

	return (geteuid() == 0 ||
		(getrlimit(RLIMIT_MEMLOCK, &most) == 0 && most.rlim_cur == RLIM_INFINITY)) &&
	       mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

static struct footprint footprint(void)
{
	struct footprint now;
	unsigned long space, memory;
	FILE *file = fopen("/proc/self/statm", "re");

	MUST(file != NULL && fscanf(file, "%lu %lu", &space, &memory) == 2);
	fclose(file);
	now.space = space * (uint64_t)sysconf(_SC_PAGESIZE);
	now.memory = memory * (uint64_t)sysconf(_SC_PAGESIZE);
	return now;
}

/* The bytes of the mappings that the kernel writes to a core file, as far as they have pages. */
static uint64_t dumped(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	uint64_t all = 0, size = 0, anonymous = 0;
	unsigned long value;
	char line[512];

	MUST(file != NULL);
	while (fgets(line, sizeof line, file) != NULL) {
		if (sscanf(line, "Size: %lu", &value) == 1)
			size = value * 1024;
		if (sscanf(line, "Anonymous: %lu", &value) == 1)
			anonymous = value;
		if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL &&
		    anonymous != 0)
			all += size;
	}
	fclose(file);
	return all;
}

/* --- A host -------------------------------------------------------------------------------- */

#define THREADS 4

static atomic_bool over;
static atomic_ulong polls;
static atomic_uint ready; /* threads that have what they need */
static pthread_t threads[THREADS];

static void *poll_until_over(void *nothing)
{
	struct tdt_traced task =
	    tdt_traced(((struct tdt_future){ NULL, stay_pending, drop_nothing }));
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };

	test_waker_init(&waker);
	tdt_future_poll(&task.future, &cx);
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&over)) {
		tdt_future_poll(&task.future, &cx);
		atomic_fetch_add(&polls, 1);
	}
	end_traced(&task);
	return NULL;
}

/* As tdt_listen() does. */
static void expect_readers(void)
{
	MUST(tdt__recorder_need_thread() == 0);
	UNTIL(threads_named("tdt-recorder") == 1);
}

static void run_host(void)
{
	expect_readers();
	threads_start(threads, THREADS, poll_until_over, NULL);
	UNTIL(atomic_load(&ready) == THREADS);
}

static void end_host(void)
{
	atomic_store(&over, true);
	threads_join(threads, THREADS);
}

static void poll_more(unsigned long n)
{
	unsigned long until = atomic_load(&polls) + n;

	UNTIL(atomic_load(&polls) >= until);
}

CASE(outside, .timeout = 60)

/* --- Readers outside ----------------------------------------------------------------------- */

/* No poll is read: the recorder's thread allocates for the first (see count_arenas()). */
static const struct tdt_recorder_options readers = { .size = sizeof readers,
						     .long_poll_ns = UINT64_MAX };

/* ThreadSanitizer keeps its shadow of memory that is gone. */
static bool is_back(const struct footprint *before)
{
	struct footprint now = footprint();

	return now.space <= before->space + 2 * MIB &&
	       (TSAN || now.memory <= before->memory + 2 * MIB);
}

/* The threads write all the time, also when the reader goes. */
static void record_for_a_reader(void)
{
	struct footprint before = footprint(), most;
	bool by_program;

	ck_assert_int_eq(tdt__recorder_outside_start(&readers, &by_program), 0);
	poll_more(50000);
	most = footprint();
	ck_assert_uint_eq(recorded_block()->missed, 0);
	ck_assert_uint_le(most.space, before.space + (THREADS + 4) * 17 * MIB);
	tdt__recorder_outside_stop(&by_program);
	UNTIL(is_back(&before));
	ck_assert_uint_eq(tdt__registry.rings, 0);
	printf("# %llu MiB of address space, %llu MiB of memory\n",
	       (unsigned long long)((most.space - before.space) / MIB),
	       (unsigned long long)((most.memory - before.memory) / MIB));
}

TEST(a_reader_leaves_nothing_behind)
{
	run_host();
	for (int i = 0; i < 5; i++)
		record_for_a_reader();
	end_host();
}

/* As hosts do that must not wait for a disk. */
TEST(neither_does_it_in_a_host_that_locks_its_memory)
{
	struct footprint before;
	bool by_program;

	NOT_TRIED_IF(ASAN || TSAN || !lock_memory(), "memory may not be locked here");
	run_host();
	before = footprint();
	ck_assert_int_eq(tdt__recorder_outside_start(&readers, &by_program), 0);
	usleep(100000);
	/* The rings of four threads are full at most. */
	ck_assert_uint_le(footprint().memory, before.memory + (THREADS + 1) * 17 * MIB);
	tdt__recorder_outside_stop(&by_program);
	UNTIL(is_back(&before));
	end_host();
}

TEST(an_idle_host_that_locks_its_memory_does_not_get_larger)
{
	struct footprint before;
	bool by_program;

	NOT_TRIED_IF(ASAN || TSAN || !lock_memory(), "memory may not be locked here");
	expect_readers();
	HAND(hand, 99999, TDT_READY, NULL);
	before = footprint();
	ck_assert_int_eq(tdt__recorder_outside_start(&readers, &by_program), 0);
	hand_poll(&hand);
	usleep(50000);
	ck_assert_uint_le(footprint().memory, before.memory + 6 * MIB);
	tdt__recorder_outside_stop(&by_program);
}

/* --- Readers at the door ------------------------------------------------------------------- */

static tdt_poll_t last_for_long(void *state, struct tdt_context *cx)
{
	usleep(5000);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void *poll_for_long(void *arg)
{
	struct tdt_traced *task = arg;

	while (!atomic_load(&over))
		poll_idly(&task->future);
	return NULL;
}

/* The reader goes when a poll was read while it went on. */
static void record_long_polls(const struct tdt_handle *task)
{
	const struct tdt_outside_record request = { .header =
							VISITOR_HEADER(tdt_outside_record, RECORD),
						    .on = 1 };
	struct tdt_outside_record answer;
	int connection = visitor_come(visitor_door());

	ck_assert_int_eq(visitor_ask(connection, &request, sizeof request, &answer, sizeof answer),
			 0);
	UNTIL(recorded_count(TDT_RING_SERVICE, TDT_EVENT_STACK, tdt_handle_id(task)) != 0);
	close(connection);
}

static const char *no_poll_is_read(void)
{
	if (in_valgrind())
		return "under valgrind threads are not where the kernel says";
	if (is_delayed())
		return "with random delays, each thread allocates at some time";
	return SANITIZED ? "sanitizers map memory of their own" : NULL;
}

#define ARENA (64 * MIB)

/* How many threads have allocated: glibc has reserved an aligned part of address space for each. */
static int count_arenas(void)
{
	unsigned long long start, end;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], access[8];
	int n = 0;

	MUST(maps != NULL);
	while (fgets(line, sizeof line, maps) != NULL)
		n += sscanf(line, "%llx-%llx %4s", &start, &end, access) == 3 &&
		     strcmp(access, "---p") == 0 && end % ARENA == 0 && end - start < ARENA &&
		     end - start > ARENA / 2;
	fclose(maps);
	return n;
}

/*
 * With the first allocation of each thread, glibc reserves 64 MiB of address space, and never gives
 * it back.
 */
TEST(neither_the_door_nor_the_recorder_takes_address_space_when_a_reader_comes,
     .skip = no_poll_is_read)
{
	struct footprint before;
	pthread_t thread;
	TRACED(task, tdt_traced(((struct tdt_future){ NULL, last_for_long, drop_nothing })));

	ck_assert_int_eq(tdt_listen(NULL), 0);
	UNTIL(threads_named("tdt-recorder") == 1);
	MUST(pthread_create(&thread, NULL, poll_for_long, &task) == 0);
	close(visitor_come(visitor_door()));
	UNTIL(count_arenas() >= 2); /* of the recorder's thread, and of that of the polls */
	before = footprint();
	for (int i = 0; i < 3; i++) {
		record_long_polls(task.handle);
		UNTIL(is_back(&before));
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

CASE(core)

static const char *shadow_is_dumped(void)
{
	return TSAN ? "ThreadSanitizer's shadow of it is in a core file, too" : NULL;
}

TEST(only_what_may_have_been_written_to_is_in_a_core_file, .skip = shadow_is_dumped)
{
	uint64_t before, after;
	HAND(hand, 99999, TDT_READY, NULL);

	before = dumped();
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	for (int i = 0; i < 100; i++)
		hand_poll(&hand);
	after = dumped();
	ck_assert_uint_le(after, before + 10 * MIB);
}
