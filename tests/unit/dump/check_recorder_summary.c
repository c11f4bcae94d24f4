// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/recorder_summary, recording/module_table.
 * The summary of the process's own recording: its options, its errors, and while others write.
 */

#include "lib/recording_maker.h"
#include "lib/says.h"
#include "lib/test.h"
#include "recording/module_table.h"
#include "recording/read.h"
#include "symbolize/modules.h"

#define SUMMARY(...) \
	(&(struct tdt_summary_options){ .size = sizeof(struct tdt_summary_options), __VA_ARGS__ })
#define PRINT(...) \
	.print = &(struct tdt_print_options){ .size = sizeof(struct tdt_print_options), \
					      __VA_ARGS__ }

/* ---- Tasks ---- */

static void poll_times(const char *name, unsigned n)
{
	TRACED(task, tdt_traced_with((struct tdt_future){ NULL, stay_pending, drop_nothing },
				     TDT_TASK_ATTR(.name = name)));

	while (n-- > 0)
		poll_idly(&task.future);
}

static void start(void)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 1 << 20 };

	MUST(tdt_recorder_start(&options) == 0);
}

/* What is printed, for the caller to free. */
static char *printed(const struct tdt_summary_options *options)
{
	return TEXT_WRITTEN(out, ck_assert_int_eq(tdt_recorder_summary(out, options), 0));
}

static void expect_error(FILE *out, const struct tdt_summary_options *options, int error)
{
	errno = 0;
	ck_assert_int_eq(tdt_recorder_summary(out, options), -error);
	ck_assert_int_eq(errno, error);
}

CASE(own)

TEST(a_process_that_has_not_recorded_has_no_data)
{
	expect_error(stderr, NULL, ENODATA);
}

TEST(wrong_options_are_refused)
{
	struct {
		struct tdt_summary_options options;
		char more;
	} larger = { .options = { .size = sizeof larger }, .more = 1 };

	start();
	expect_error(NULL, NULL, EINVAL);
	expect_error(stderr, &(struct tdt_summary_options){ .size = 0 }, EINVAL);
	expect_error(stderr, SUMMARY(.rows = 100001), EINVAL);
	expect_error(stderr, SUMMARY(.reserved = { 0, 0, 1 }), EINVAL);
	expect_error(stderr, SUMMARY(PRINT(.format = TDT_PRINT_FOLDED)), EINVAL);
	expect_error(stderr, SUMMARY(PRINT(.utf8 = (enum tdt_print_choice)7)), EINVAL);
	expect_error(stderr, &larger.options, E2BIG);
}

TEST(polls_are_summed_up_whether_the_recorder_runs_or_has_stopped)
{
	start();
	poll_times("busy", 12);
	SAYS(printed(NULL), "\n12 polls, 0 wake-ups, 1 task\n", "\"busy\"", "!stopped");
	MUST(tdt_recorder_stop() == 0);
	SAYS(printed(SUMMARY(.full = 1)), "\n12 polls, ", "stopped", "\nrings ");
	SAYS(printed(SUMMARY(PRINT(.format = TDT_PRINT_JSON), .rows = 1)),
	     "{\"tdt\":1,\"summary\":{\"program\":\"", "\"polls\":12,");
}

static __attribute__((noinline)) void serve_client(void)
{
	TDT_KEEP_FRAME();
}

TEST(a_task_without_a_name_is_called_by_the_function_that_it_began_with)
{
	struct tdt_handle *task;
	char *text;

	start();
	task = tdt_task_new(TDT_TASK_ATTR(.entry = (uintptr_t)serve_client));
	MUST(task != NULL);
	tdt_task_enter(task);
	tdt_task_leave(task);
	/* A name that comes too late is in the next one. */
	for (text = printed(NULL); strstr(text, "\"serve_client\"") == NULL; text = printed(NULL))
		free(text);
	free(text);
	tdt_task_end(task);
}

TEST(what_is_older_is_left_out)
{
	start();
	poll_times("old", 12);
	usleep(20000);
	SAYS(printed(SUMMARY(.since_ns = 10000000)), "\n0 polls, 0 wake-ups, 0 tasks\n");
}

static atomic_bool over;

static void *poll_until_over(void *nothing)
{
	while (!atomic_load(&over))
		poll_times("busy", 1000);
	return nothing;
}

TEST(other_threads_write_meanwhile)
{
	pthread_t thread;
	int summaries = 0;

	start();
	MUST(pthread_create(&thread, NULL, poll_until_over, NULL) == 0);
	while (summaries < 10) {
		TEXT(text, printed(NULL));

		ck_assert_ptr_null(strstr(text, "panicked"));
		ck_assert_ptr_null(strstr(text, "longest waits for locks"));
		summaries += strstr(text, "busiest tasks") != NULL;
	}
	atomic_store(&over, true);
	MUST(pthread_join(thread, NULL) == 0);
}

static int try_summary(void *file)
{
	return tdt_recorder_summary(file, NULL);
}

TEST(each_lack_of_memory_is_reported)
{
	FILE *null = fopen("/dev/null", "w");

	MUST(null != NULL);
	start();
	poll_times("busy", 12);
	MUST(tdt_recorder_stop() == 0);
	no_memory_each(try_summary, null, no_memory_possible() ? 20 : 0);
	fclose(null);
}

CASE(modules)

TEST(modules_that_overlap_are_added_once)
{
	struct maker *maker = maker_new();
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 256, 1);
	struct tdt__recording *recording;
	struct tdt__modules *modules;
	char build_id[60];
	size_t size;
	void *block;

	memset(build_id, 0xab, sizeof build_id);
	maker_module(maker, service, 1, 0x3000, 0x4000, 0x3000, build_id, 2, "/b");
	maker_module(maker, service, 2, 0x1000, 0x2000, 0x500, build_id, 60, "/a");
	maker_module(maker, service, 3, 0x1800, 0x2800, 0, build_id, 2, "/over");
	maker_module(maker, service, 4, 0x5000, 0x6000, 0, build_id, 2, "");
	block = maker_block(maker, &size);
	MUST(tdt__recording_open(&recording, block, size) == 0);
	modules = tdt__recorded_module_table(recording);
	ck_assert_ptr_nonnull(modules);
	ck_assert_uint_eq(modules->n, 2);
	ck_assert_str_eq(modules->module[0].path, "/a");
	ck_assert_uint_eq(modules->module[0].bias, 0x500);
	ck_assert_uint_eq(strlen(modules->module[0].build_id), 2 * TDT__BUILD_ID_MAX);
	ck_assert_str_eq(modules->module[1].build_id, "abab");
	tdt__modules_unref(modules);
	tdt__recording_close(recording);
	free(block);
	maker_free(maker);
}
