// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/summary_text, tree-printer/summary_json, tree-printer/summary_print.
 * How the summary of a made recording looks.
 */

#include <jansson.h>

#include "base/clock.h"
#include "lib/made_recording.h"
#include "lib/test.h"
#include "recording/summary.h"
#include "symbolize/modules.h"
#include "tree-printer/summaries.h"

#define MS UINT64_C(1000000)
#define OPTIONS(...) (&(struct tdt_print_options){ .size = sizeof(struct tdt_print_options), \
						   .color = TDT_PRINT_NO, __VA_ARGS__ })
#define ASCII .utf8 = TDT_PRINT_NO

/* What is made, and what is read. */
static unsigned one, two;
static struct tdt__summary *summary;
static struct tdt__summary_limits limits;
static struct tdt__modules *modules;

static void set_up(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
	maker = maker_new();
	maker_header(maker)->taken = 1000 * MS;
	maker_header(maker)->recording = 1;
	one = maker_ring(maker, TDT_RING_POLLS, 1024, 101);
	two = maker_ring(maker, TDT_RING_POLLS, 1024, 102);
	maker_thread(maker, one, 1, 101, 0, 1, "worker-0");
	maker_thread(maker, two, 1, 102, 0, 1, "worker-1");
	limits = (struct tdt__summary_limits){ .rows = TDT__SUMMARY_ROWS };
	modules = tdt__modules_new(0);
	MUST(modules != NULL);
}

static void tear_down(void)
{
	tdt__modules_unref(modules);
	tdt__summary_free(summary);
	end();
}

static void sum_up_all(void)
{
	open_block();
	summary = tdt__summary_new(recording, &limits);
	MUST(summary != NULL);
}

/* What is printed, for the caller to free. */
static char *printed(const struct tdt_print_options *options, bool full)
{
	return TEXT_WRITTEN(
	    out, ck_assert_int_eq(tdt__summary_print(summary, out, options, full, modules,
						     tdt__clock() + TDT__SECOND),
				  0));
}

static void expect(const struct tdt_print_options *options, bool full, const char *expected)
{
	TEXT(text, printed(options, full));

	ck_assert_str_eq(text, expected);
}

static void identify(uint64_t task, uint8_t kind, const char *name)
{
	maker_identity(maker, two, kind, 5 * MS, task, TDT_PANICKED, 0, name, "demo/x.c", 88);
}

/*
 * A parser that holds its worker up for 50 ms, meanwhile a task of the same worker cannot go on; a
 * lock that is held for 80 ms; and a task that panics.
 */
static void make_story(void)
{
	static const uint64_t pcs[] = { 0x1000, 0x2000 };
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);
	uint32_t stack = maker_stack(maker, pcs, 2, 0);

	identify(7, TDT_EVENT_SPAWN, "parser");
	identify(8, TDT_EVENT_SPAWN, "writer");
	identify(9, TDT_EVENT_SPAWN, "reader");
	identify(12, TDT_EVENT_SPAWN, "pinned");
	identify(21, TDT_EVENT_SPAWN, "conn 1");
	identify(22, TDT_EVENT_SPAWN, "conn 2");
	identify(13, TDT_EVENT_END, "rash");
	maker_poll(maker, one, 90 * MS, MS / 10, 12, TDT_PENDING);
	maker_poll(maker, one, 100 * MS, 50 * MS, 7, TDT_READY);
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 120 * MS,
		    .task = 7, .c = 101);
	maker_wake(maker, two, 101 * MS, 12, 8);
	maker_park(maker, two, 110 * MS, 89 * MS);
	maker_poll(maker, one, 150 * MS, MS / 10, 12, TDT_READY);
	maker_wait(maker, two, 9, TDT_WAIT_MUTEX, 0x7f1208, 8, "table");
	maker_poll(maker, two, 200 * MS, MS / 10, 9, TDT_PENDING);
	maker_wake(maker, two, 280 * MS + MS / 10, 9, 8);
	maker_poll(maker, two, 281 * MS, MS, 9, TDT_READY);
	for (uint64_t i = 0; i < 200; i++) {
		maker_wait(maker, two, 21 + i % 2, TDT_WAIT_IO, 0, 0, NULL);
		maker_poll(maker, two, (300 + i) * MS, 1000, 21 + i % 2, TDT_PENDING);
		maker_wake(maker, two, (301 + i) * MS - 3000, 21 + i % 2, 0);
	}
}

CASE(text, .setup = set_up, .teardown = tear_down)

/* What both texts have below the slowest polls. */
#define STORY_BELOW                                                                                \
	"longest waits for locks\n"                                                                \
	"   80.00 ms  22:13:20.200  task 9 \"reader\"\n"                                           \
	"             for a mutex \"table\" (0x7f1208) held by task 8 \"writer\"\n"                \
	"\n"                                                                                       \
	"tasks that waited for one busy worker while another worker was parked\n"                  \
	"   40.00 ms  22:13:20.101  task 12 \"pinned\" on thread 101 behind task 7 \"parser\"\n"   \
	"             (2 polls, none by another worker)\n"                                         \
	"\n"                                                                                       \
	"longest waits for a worker\n"                                                             \
	"   501.0 ms  22:13:20.498  task 21 \"conn 1\" (not over)\n"                               \
	"   500.0 ms  22:13:20.499  task 22 \"conn 2\" (not over)\n"                               \
	"\n"                                                                                       \
	"longest other waits\n"                                                                    \
	"   10.90 ms  22:13:20.090  task 12 \"pinned\"\n"                                          \
	"   996.0 us  22:13:20.300  task 21 \"conn 1\" for a descriptor\n"                         \
	"             (200 waits, 199.2 ms in all)\n"                                              \
	"\n"                                                                                       \
	"from wake-up to poll           median       99 %       most      polls\n"                 \
	"   \"pinned\"                  49.00 ms   49.00 ms   49.00 ms          1\n"               \
	"   \"conn #\"                  1.003 ms   1.003 ms   1.003 ms        198\n"               \
	"   \"reader\"                  900.0 us   900.0 us   900.0 us          1\n"               \
	"\n"                                                                                       \
	"busiest tasks                in polls       time      polls\n"                            \
	"   7 \"parser\"                   5.0 %   50.00 ms          1\n"                          \
	"   9 \"reader\"                   0.1 %   1.100 ms          2\n"                          \
	"   12 \"pinned\"                  0.0 %   200.0 us          2\n"                          \
	"\n"                                                                                       \
	"threads                       polling     parked    neither      polls\n"                 \
	"   101 \"worker-0\"               5.0 %      0.0 %     95.0 %          3\n"

TEST(the_text_names_what_was_wrong_on_one_screen)
{
	make_story();
	sum_up_all();
	expect(OPTIONS(ASCII), false,
	"made[4242]: 999.9 ms until 2023-11-14 22:13:21.000\n"
	"205 polls, 202 wake-ups, 7 tasks, 1 panicked\n"
	"\n"
	"panicked\n"
	"             22:13:20.005  task 13 \"rash\" on thread 102\n"
	"\n"
	"slowest polls\n"
	"   50.00 ms  22:13:20.100  task 7 \"parser\" on thread 101 in 0x1000 from 0x2000\n"
	"   1.000 ms  22:13:20.281  task 9 \"reader\" on thread 102\n"
	"\n"
	STORY_BELOW
	"   102 \"worker-1\"               0.1 %      8.9 %     91.0 %        202\n");
}

TEST(the_long_text_has_whole_stacks_and_rings)
{
	make_story();
	sum_up_all();
	expect(OPTIONS(ASCII), true,
	"made[4242]: 999.9 ms until 2023-11-14 22:13:21.000\n"
	"205 polls, 202 wake-ups, 7 tasks, 1 panicked\n"
	"\n"
	"panicked\n"
	"             22:13:20.005  task 13 \"rash\" on thread 102\n"
	"\n"
	"slowest polls\n"
	"   50.00 ms  22:13:20.100  task 7 \"parser\" on thread 101\n"
	"- 0x2000\n"
	" `- 0x1000\n"
	"   1.000 ms  22:13:20.281  task 9 \"reader\" on thread 102\n"
	"   100.0 us  22:13:20.090  task 12 \"pinned\" on thread 101\n"
	"\n"
	STORY_BELOW
	"   102 \"worker-1\"               0.1 %      8.9 %     91.0 %        202\n"
	"\n"
	"rings                         back to      slots       lost\n"
	"   101 \"worker-0\"            999.9 ms          5          0  polls\n"
	"   102 \"worker-1\"            999.9 ms        629          0  polls\n"
	"   100                       880.0 ms          1          0  of the recorder\n");
}

TEST(what_was_missed_and_overwritten_is_said)
{
	unsigned small = maker_ring(maker, TDT_RING_POLLS, 64, 103);

	maker_header(maker)->missed = 1234;
	maker_header(maker)->missed_last = 200 * MS;
	maker_header(maker)->missed_polls = 1;
	maker_stacks(maker)->lost = 2;
	maker_header(maker)->recording = 0;
	maker_poll(maker, one, 10 * MS, MS, 7, TDT_READY);
	for (uint64_t i = 0; i < 200; i++)
		maker_poll(maker, small, (300 + i) * MS, 1000, 9, TDT_READY);
	sum_up_all();
	expect(OPTIONS(ASCII), false,
	"made[4242]: 999.9 ms until 2023-11-14 22:13:21.000\n"
	"The recorder was stopped then.\n"
	"65 polls, 0 wake-ups, 2 tasks\n"
	"Waits and latencies are those of the last 563.9 ms: older events are missing.\n"
	"1,234 events were not recorded, 1 poll among them: no ring was left\n"
	"2 stacks were not recorded: their table was full, or no capture was left\n"
	"\n"
	"slowest polls\n"
	"   1.000 ms  22:13:20.010  task 7 on thread 101\n"
	"\n"
	"busiest tasks                in polls       time      polls\n"
	"   7                            0.1 %   1.000 ms          1\n"
	"   9                            0.0 %   63.00 us         64\n"
	"\n"
	"threads                       polling     parked    neither      polls\n"
	"   101 \"worker-0\"               0.1 %      0.0 %     99.9 %          1\n"
	"   103                          0.0 %      0.0 %    100.0 %         64\n"
	"   102 \"worker-1\"               0.0 %      0.0 %    100.0 %          0\n");
}

TEST(no_name_harms_the_terminal)
{
	identify(7, TDT_EVENT_SPAWN, "\033[31m\"\n\xff\xe2\x80\xae");
	identify(8, TDT_EVENT_SPAWN,
		 "a name so long that it needs a line of its own, and is cut");
	maker_identity(maker, two, TDT_EVENT_SPAWN, 5 * MS, 9, 0, 0, "", "\033/x.c", 88);
	strcpy(maker_header(maker)->program, "\r\xc3\xa9");
	for (uint64_t task = 7; task <= 9; task++) {
		maker_wake(maker, two, task * 10 * MS, task, 0);
		maker_wait(maker, one, task, TDT_WAIT_CHANNEL, 0x10, 0, "\a");
		maker_poll(maker, one, task * 10 * MS + MS, MS, task, TDT_PENDING);
	}
	sum_up_all();
	expect(OPTIONS(ASCII), false,
	"\\r\\u00e9[4242]: 999.9 ms until 2023-11-14 22:13:21.000\n"
	"3 polls, 3 wake-ups, 3 tasks\n"
	"\n"
	"slowest polls\n"
	"   1.000 ms  22:13:20.071  task 7 \"\\x1b[31m\\\"\\n\\xff\\u202e\" on thread 101\n"
	"   1.000 ms  22:13:20.081\n"
	"             task 8 \"a name so long that it needs a line of its own, and is cut\"\n"
	"             on thread 101\n"
	"   1.000 ms  22:13:20.091  task 9 spawned at \\x1b/x.c:88:3 on thread 101\n"
	"\n"
	"longest other waits\n"
	"   928.0 ms  22:13:20.072  task 7 \"\\x1b[31m\\\"\\n\\xff\\u202e\"\n"
	"             for a channel \"\\a\" (0x10) (not over)\n"
	"   918.0 ms  22:13:20.082\n"
	"             task 8 \"a name so long that it needs a line of its own, and is cut\"\n"
	"             for a channel \"\\a\" (0x10) (not over)\n"
	"   908.0 ms  22:13:20.092  task 9 spawned at \\x1b/x.c:88:3\n"
	"             for a channel \"\\a\" (0x10) (not over)\n"
	"\n"
	"from wake-up to poll           median       99 %       most      polls\n"
	"   \"\\x1b[31m\\\"\\n\\xff\\u202e   1.000 ms   1.000 ms   1.000 ms          1\n"
	"   \"a name so long that it   1.000 ms   1.000 ms   1.000 ms          1\n"
	"   spawned at \\x1b/x.c:88:   1.000 ms   1.000 ms   1.000 ms          1\n"
	"\n"
	"busiest tasks                in polls       time      polls\n"
	"   7 \"\\x1b[31m\\\"\\n\\xff\\u20      0.1 %   1.000 ms          1\n"
	"   8 \"a name so long that       0.1 %   1.000 ms          1\n"
	"   9                            0.1 %   1.000 ms          1\n"
	"\n"
	"threads                       polling     parked    neither      polls\n"
	"   101 \"worker-0\"               0.3 %      0.0 %     99.7 %          3\n"
	"   102 \"worker-1\"               0.0 %      0.0 %    100.0 %          0\n");
}

static json_t *parsed(void)
{
	TEXT(text, printed(OPTIONS(.format = TDT_PRINT_JSON), false));

	json_t *json = json_loads(text, 0, NULL);

	MUST(json != NULL);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	return json;
}

/* The value at a path of keys and indexes, each after a dot. */
static json_t *at(json_t *json, const char *path)
{
	char key[64];
	int n;

	for (; sscanf(path, ".%63[^.]%n", key, &n) == 1; path += n)
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
					   : json_object_get(json, key);
	return json;
}

static void expect_number(json_t *json, const char *path, uint64_t value)
{
	ck_assert_msg(json_is_integer(at(json, path)), "no number %s", path);
	ck_assert_uint_eq((uint64_t)json_integer_value(at(json, path)), value);
}

static void expect_string(json_t *json, const char *path, const char *value)
{
	ck_assert_msg(json_is_string(at(json, path)), "no string %s", path);
	ck_assert_str_eq(json_string_value(at(json, path)), value);
}

CASE(json, .setup = set_up, .teardown = tear_down)

TEST(json_has_all_of_it)
{
	json_t *json;

	limits.rows = TDT__SUMMARY_ROWS_FULL;
	make_story();
	maker_stacks(maker)->lost = 2;
	sum_up_all();
	json = parsed();
	expect_number(json, ".tdt", 1);
	expect_string(json, ".summary.program", "made");
	expect_number(json, ".summary.polls", 205);
	expect_number(json, ".summary.lost_stacks", 2);
	expect_string(json, ".panics.0.task.name", "rash");
	expect_number(json, ".slow_polls.0.ns", 50 * MS);
	expect_string(json, ".slow_polls.0.task.name", "parser");
	expect_string(json, ".slow_polls.0.result", "ready");
	expect_string(json, ".slow_polls.0.nodes.1.pc", "0x2000");
	ck_assert_uint_eq(json_array_size(at(json, ".slow_polls")), 100);
	expect_string(json, ".locks.0.kind", "mutex");
	expect_string(json, ".locks.0.object", "0x7f1208");
	expect_string(json, ".locks.0.owner.name", "writer");
	expect_number(json, ".locks.0.ns", 80 * MS);
	expect_string(json, ".starved.0.task.name", "pinned");
	expect_string(json, ".starved.0.behind.name", "parser");
	ck_assert(json_is_true(at(json, ".delays.0.going_on")));
	expect_number(json, ".waits.1.waits", 200);
	expect_number(json, ".latency.1.polls", 198);
	ck_assert(json_is_true(at(json, ".latency.1.several")));
	expect_number(json, ".busy.0.ns", 50 * MS);
	ck_assert_double_eq_tol(json_real_value(at(json, ".busy.0.share")), 0.05, 0.001);
	expect_number(json, ".threads.1.parked_ns", 89 * MS);
	expect_number(json, ".threads.1.recorded_ns", 1000 * MS - 1);
	expect_string(json, ".rings.0.kind", "polls");
	json_decref(json);
}

TEST(json_names_an_owner_that_is_not_known_otherwise)
{
	json_t *json;

	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 0x10, 99, "\xff");
	maker_poll(maker, one, 10 * MS, MS, 7, TDT_PENDING);
	sum_up_all();
	json = parsed();
	expect_number(json, ".locks.0.owner.id", 99);
	expect_string(json, ".locks.0.name", "\xef\xbf\xbd");
	ck_assert_ptr_null(at(json, ".locks.0.owner.name"));
	ck_assert_ptr_null(at(json, ".locks.0.task.name"));
	json_decref(json);
}

/* ---- Errors ---- */

static struct tdt_print_options form;

static int try_to_print(void *file)
{
	return tdt__summary_print(summary, file, &form, false, modules,
				  tdt__clock() + TDT__SECOND);
}

CASE(text)

TEST(wrong_options_and_a_full_disk_are_reported)
{
	FILE *full = fopen("/dev/full", "w");

	MUST(full != NULL);
	sum_up_all();
	form = *OPTIONS(.format = TDT_PRINT_FOLDED);
	ck_assert_int_eq(try_to_print(stdout), -EINVAL);
	form = *OPTIONS(.max_depth = 0);
	form.utf8 = (enum tdt_print_choice)9;
	ck_assert_int_eq(try_to_print(stdout), -EINVAL);
	form = *OPTIONS(ASCII);
	ck_assert_int_eq(try_to_print(full), -ENOSPC);
	fclose(full);
}

TEST(each_lack_of_memory_is_reported, .to = 2)
{
	FILE *null = fopen("/dev/null", "w");

	MUST(null != NULL);
	make_story();
	sum_up_all();
	form = *OPTIONS(ASCII, .format = _i ? TDT_PRINT_JSON : TDT_PRINT_TEXT);
	try_to_print(null); /* what is cached is there from now on */
	no_memory_each(try_to_print, null, no_memory_possible() ? 5 : 0);
	fclose(null);
}

TEST(the_head_does_not_count_a_pause)
{
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);

	maker_event(maker, service, .kind = TDT_EVENT_STOP, .time = 100 * MS);
	maker_event(maker, service, .kind = TDT_EVENT_START, .time = 600 * MS);
	sum_up_all();
	TEXT(text, printed(OPTIONS(ASCII), false));
	MUST(strstr(text, "made[4242]: 499.9 ms until ") != NULL);
}

TEST(an_empty_recording_is_said_to_be_so)
{
	sum_up_all();
	expect(OPTIONS(ASCII), false,
	"made[4242]: 999.9 ms until 2023-11-14 22:13:21.000\n"
	"0 polls, 0 wake-ups, 0 tasks\n"
	"\n"
	"threads                       polling     parked    neither      polls\n"
	"   101 \"worker-0\"               0.0 %      0.0 %    100.0 %          0\n"
	"   102 \"worker-1\"               0.0 %      0.0 %    100.0 %          0\n");
}
