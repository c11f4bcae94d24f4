// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/trigger, dump/recorder_trigger, dump/hourly.  What triggers a snapshot, and how
 * often.
 */

#include <dirent.h>

#include <tdt/integrate/hooks.h>

#include "dump/hourly.h"
#include "lib/folder.h"
#include "lib/hand.h"
#include "lib/test.h"
#include "registry/handle.h"
#include "registry/registry.h"

#define MS UINT64_C(1000000)

static char folder[FOLDER_SIZE];
static char pattern[IN_FOLDER_SIZE];

/* The snapshots that are whole: their names are numbers of processes. */
static int snapshots(void)
{
	DIR *dir = opendir(folder);
	int n = 0;

	MUST(dir != NULL);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		n += strspn(entry->d_name, "0123456789") == strlen(entry->d_name);
	closedir(dir);
	return n;
}

/* Forget the snapshots that were taken. */
static void remove_all(void)
{
	char command[IN_FOLDER_SIZE];

	snprintf(command, sizeof command, "rm -f %s/*", folder);
	MUST(system(command) == 0);
}

static bool come(void)
{
	for (int i = 0; i < 20000 && snapshots() == 0; i++)
		usleep(1000);
	return snapshots() != 0;
}

/* Long enough for several rounds of an idle recorder. */
static bool comes_none(void)
{
	usleep(500000);
	return snapshots() == 0;
}

static struct tdt_recorder_trigger trigger;

static void begin(void)
{
	ck_assert(make_folder(folder));
	snprintf(pattern, sizeof pattern, "%s/%%p", folder);
	trigger = (struct tdt_recorder_trigger){ .size = sizeof trigger, .path = pattern };
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
}

static void set(void)
{
	ck_assert_int_eq(tdt_recorder_on_trigger(&trigger), 0);
}

static void end(void)
{
	remove_all();
	ck_assert_int_eq(rmdir(folder), 0);
}

/* --- What ----------------------------------------------------------------------------------- */

static tdt_poll_t sleepy_poll(void *state, struct tdt_context *cx)
{
	usleep(*(useconds_t *)state * 1000);
	return TDT_PENDING;
}

static void poll_for_ms(useconds_t ms)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	TRACED(task, tdt_traced(((struct tdt_future){ &ms, sleepy_poll, drop_nothing })));

	test_waker_init(&waker);
	MUST(task.handle != NULL && tdt_future_poll(&task.future, &cx) == TDT_PENDING);
}

CASE(what, .timeout = 60, .setup = begin, .teardown = end)

TEST(a_long_poll_triggers_a_snapshot)
{
	trigger.long_poll_ns = 3600000 * MS;
	set();
	poll_for_ms(5);
	ck_assert(comes_none());
	trigger.long_poll_ns = 50 * MS;
	set();
	poll_for_ms(60);
	ck_assert(come());
}

static void *poll_for_a_minute(void *nothing)
{
	poll_for_ms(60000);
	return nothing;
}

TEST(a_poll_that_does_not_end_triggers_one_snapshot)
{
	pthread_t thread;

	trigger.long_poll_ns = 50 * MS;
	set();
	MUST(pthread_create(&thread, NULL, poll_for_a_minute, NULL) == 0);
	ck_assert(come());
	remove_all();
	ck_assert(comes_none());
}

TEST(a_panic_triggers_a_snapshot)
{
	struct hand hand;

	trigger.panics = 1;
	set();
	hand_begin(&hand, 0, TDT_READY, "ready");
	hand_poll(&hand);
	hand_end(&hand);
	poll_for_ms(10);
	ck_assert(comes_none());
	hand_begin(&hand, 0, TDT_PANICKED, "panics");
	hand_poll(&hand);
	ck_assert(come());
	hand_end(&hand);
}

TEST(a_long_wait_for_a_worker_triggers_a_snapshot)
{
	trigger.long_wait_ns = 200 * MS;
	set();
	HAND(hand, 99, TDT_READY, "waits");
	tdt_worker_now(1000 * MS);
	hand_poll(&hand);
	tdt_task_woken(hand.task.handle);
	tdt_worker_now(1150 * MS);
	hand_poll(&hand);
	ck_assert(comes_none());
	tdt_task_woken(hand.task.handle);
	tdt_worker_now(1400 * MS);
	hand_poll(&hand);
	ck_assert(come());
	tdt_worker_now(0);
}

TEST(null_ends_the_triggers)
{
	trigger.long_poll_ns = 5 * MS;
	set();
	ck_assert_int_eq(tdt_recorder_on_trigger(NULL), 0);
	poll_for_ms(10);
	ck_assert(comes_none());
}

TEST(a_child_of_fork_keeps_the_triggers)
{
	NOT_TRIED_IF(TSAN, "ThreadSanitizer wants no threads in a child");
	trigger.long_poll_ns = 5 * MS;
	set();
	IN_A_CHILD {
		poll_for_ms(10);
		MUST(come());
	}
}

CASE(often, .timeout = 60)

TEST(no_more_snapshots_are_taken_than_the_limit_says)
{
	begin();
	trigger.long_poll_ns = 5 * MS;
	trigger.per_hour = 2;
	set();
	for (int i = 0; i < 2; i++) {
		poll_for_ms(10);
		ck_assert(come());
		usleep(100000); /* what triggered it is over */
		remove_all();
	}
	poll_for_ms(10);
	ck_assert(comes_none());
	end();
}

TEST(the_limit_is_that_of_any_hour)
{
	struct tdt__hourly hourly = { .most = 3 };

	for (uint64_t i = 0; i < 3; i++)
		ck_assert(tdt__hourly_allows(&hourly, 7 + i));
	ck_assert(!tdt__hourly_allows(&hourly, 10));
	ck_assert(!tdt__hourly_allows(&hourly, 7 + TDT__HOUR - 1));
	ck_assert(tdt__hourly_allows(&hourly, 7 + TDT__HOUR));
	ck_assert(!tdt__hourly_allows(&hourly, 7 + TDT__HOUR));
	ck_assert(tdt__hourly_allows(&hourly, 8 + TDT__HOUR));
}

TEST(wrong_options_are_refused)
{
	static char longest[PATH_MAX + 1];
	struct {
		struct tdt_recorder_trigger trigger;
		int more;
	} larger = { .trigger = { .size = sizeof larger, .path = "x" }, .more = 1 };
	struct tdt_recorder_trigger none = { .size = sizeof none };
	struct tdt_recorder_trigger often = { .size = sizeof often, .path = "x", .per_hour = 61 };
	struct tdt_recorder_trigger odd = { .size = sizeof odd, .path = "x", .panics = 2 };

	ck_assert_fails(tdt_recorder_on_trigger(&none), EINVAL);
	none.path = "";
	ck_assert_int_eq(tdt_recorder_on_trigger(&none), -EINVAL);
	memset(longest, 'x', PATH_MAX);
	none.path = longest;
	ck_assert_int_eq(tdt_recorder_on_trigger(&none), -ENAMETOOLONG);
	ck_assert_int_eq(tdt_recorder_on_trigger(&often), -EINVAL);
	ck_assert_int_eq(tdt_recorder_on_trigger(&odd), -EINVAL);
	ck_assert_int_eq(tdt_recorder_on_trigger(&larger.trigger), -E2BIG);
	none.size = 0;
	ck_assert_int_eq(tdt_recorder_on_trigger(&none), -EINVAL);
}
