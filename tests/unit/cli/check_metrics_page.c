// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/metrics_page.  The whole text of pages, in both forms. */

#include "cli/metrics_page.h"
#include "lib/test.h"

static struct metrics_page page;
static struct metrics_pages pages = { .page = &page, .n = 1 };

static void set_up(void)
{
	page = (struct metrics_page){
		.up = true,
		.counts = { .waiting = 1,
			    .runnable = 2,
			    .running = 3,
			    .longest_wait_ns = 12000000034,
			    .longest_poll_ns = 999999999,
			    .spawned = 18446744073709551615u,
			    .ended = 4,
			    .panicked = 5,
			    .polls = 6,
			    .captures = 7,
			    .dumps = 8,
			    .held = 9,
			    .lost_wakeups = 10 },
		.since = 1700000000000000001,
		.deadlocks = 9,
		.unproven = 8,
		.orphans = 7,
		.futurelocks = 6,
	};
}

static void prints(const char *expected)
{
	WRITTEN(text, out, metrics_page_print(out, &pages));

	ck_assert_str_eq(text, expected);
}

#define COUNTER(name, help, value)                                                                \
	"# TYPE " name " counter\n# HELP " name " " help "\n" name "_total " value "\n" name       \
	"_created 1700000000.000000001\n"
#define OLD_COUNTER(name, help, value)                                                            \
	"# TYPE " name "_total counter\n# HELP " name "_total " help "\n" name "_total " value "\n"

#define UP "# TYPE tdt_up gauge\n# HELP tdt_up 1 if the process was read, 0 otherwise.\ntdt_up "
#define TASKS                                                                                     \
	"# TYPE tdt_tasks gauge\n# HELP tdt_tasks Tasks that have not ended, by state.\n"          \
	"tdt_tasks{state=\"waiting\"} 1\n"                                                         \
	"tdt_tasks{state=\"runnable\"} 2\n"                                                        \
	"tdt_tasks{state=\"polling\"} 3\n"
#define COUNTERS(counter)                                                                         \
	counter("tdt_spawned", "Tasks that were spawned.", "18446744073709551615")                 \
	counter("tdt_task_panics", "Tasks that panicked.", "5")                                    \
	counter("tdt_polls", "Polls that began.", "6")                                             \
	counter("tdt_captures", "Polls in which stacks were captured.", "7")                       \
	counter("tdt_dumps", "Dumps that the process has made.", "8")                              \
	counter("tdt_lost_wakeups",                                                                \
		"Tasks that went on when polled for a request, and nobody had woken them.", "10")
#define LONGEST(poll_unit, wait_unit)                                                             \
	"# TYPE tdt_tasks_held gauge\n"                                                            \
	"# HELP tdt_tasks_held Tasks that have ended, and whose handles are held.\n"               \
	"tdt_tasks_held 9\n"                                                                       \
	"# TYPE tdt_longest_poll_seconds gauge\n"                                                  \
	"# HELP tdt_longest_poll_seconds Time since the oldest poll began that goes on.\n"         \
	poll_unit                                                                                  \
	"tdt_longest_poll_seconds 0.999999999\n"                                                   \
	"# TYPE tdt_longest_wait_seconds gauge\n"                                                  \
	"# HELP tdt_longest_wait_seconds Longest time since the last poll of a waiting task.\n"    \
	wait_unit                                                                                  \
	"tdt_longest_wait_seconds 12.000000034\n"                                                  \
	"# TYPE tdt_deadlocks gauge\n"                                                             \
	"# HELP tdt_deadlocks Rings of tasks that wait for each other for ever.\n"                 \
	"tdt_deadlocks 9\n"                                                                        \
	"# TYPE tdt_rings_unproven gauge\n"                                                        \
	"# HELP tdt_rings_unproven Rings that are deadlocks unless a task has a silent leaf.\n"    \
	"tdt_rings_unproven 8\n"                                                                   \
	"# TYPE tdt_futurelocks gauge\n"                                                           \
	"# HELP tdt_futurelocks Locks that tasks wait for, and whose owners do not take them.\n"   \
	"tdt_futurelocks 6\n"                                                                      \
	"# TYPE tdt_orphaned_locks gauge\n"                                                        \
	"# HELP tdt_orphaned_locks Locks that tasks wait for, and whose owners have ended.\n"      \
	"tdt_orphaned_locks 7\n"
#define OPEN_PAGE                                                                                 \
	UP "1\n" TASKS COUNTERS(COUNTER) LONGEST("# UNIT tdt_longest_poll_seconds seconds\n",      \
						 "# UNIT tdt_longest_wait_seconds seconds\n")
#define OLD_PAGE UP "1\n" TASKS COUNTERS(OLD_COUNTER) LONGEST("", "")

/* The buckets have one of each duration. */
#define BUCKET(name, le, n) name "_bucket{le=\"" le "\"} " n "\n"
#define BUCKETS(name)                                                                             \
	BUCKET(name, "1e-06", "1") BUCKET(name, "5e-06", "2") BUCKET(name, "1e-05", "3")           \
	BUCKET(name, "5e-05", "4") BUCKET(name, "0.0001", "5") BUCKET(name, "0.0005", "6")         \
	BUCKET(name, "0.001", "7") BUCKET(name, "0.005", "8") BUCKET(name, "0.01", "9")            \
	BUCKET(name, "0.05", "10") BUCKET(name, "0.1", "11") BUCKET(name, "0.5", "12")             \
	BUCKET(name, "1.0", "13") BUCKET(name, "5.0", "14") BUCKET(name, "10.0", "15")             \
	BUCKET(name, "+Inf", "16")
#define HISTOGRAM(name, type, help, unit, gauge)                                                  \
	"# TYPE " name " " type "\n# HELP " name " " help "\n" unit BUCKETS(name) name "_" gauge   \
	"count 16\n" name "_" gauge "sum 1.500000000\n"
#define HISTOGRAMS(type, poll_unit, wake_unit, gauge)                                             \
	HISTOGRAM("tdt_poll_seconds", type, "Duration of recorded polls.", poll_unit, gauge)       \
	HISTOGRAM("tdt_wake_to_poll_seconds", type,                                                \
		  "Time from recorded wake-ups to the next poll.", wake_unit, gauge)
#define OPEN_HISTOGRAMS(type, gauge)                                                              \
	HISTOGRAMS(type, "# UNIT tdt_poll_seconds seconds\n",                                      \
		   "# UNIT tdt_wake_to_poll_seconds seconds\n", gauge)

static void set_durations(void)
{
	page.recorded = true;
	for (size_t i = 0; i <= TDT__DURATION_BOUNDS; i++)
		page.polls.n[i] = page.latencies.n[i] = 1;
	page.polls.sum = page.latencies.sum = 1500000000;
}

CASE(all, .setup = set_up)

TEST(openmetrics_names_families_and_units_and_says_where_it_ends)
{
	prints(OPEN_PAGE "# EOF\n");
}

TEST(the_older_form_names_samples)
{
	pages.form = METRICS_PROMETHEUS;
	prints(OLD_PAGE);
}

TEST(durations_that_only_grow_are_histograms)
{
	set_durations();
	prints(OPEN_PAGE OPEN_HISTOGRAMS("histogram", "") "# EOF\n");
	pages.form = METRICS_PROMETHEUS;
	prints(OLD_PAGE HISTOGRAMS("histogram", "", "", ""));
}

TEST(durations_of_a_span_are_gauges_which_the_older_form_lacks)
{
	set_durations();
	page.recorded_ns = 2000000000;
	prints(OPEN_PAGE
	       "# TYPE tdt_recorded_seconds gauge\n"
	       "# HELP tdt_recorded_seconds Time until now that recorded metrics are of.\n"
	       "# UNIT tdt_recorded_seconds seconds\n"
	       "tdt_recorded_seconds 2.000000000\n"
	       OPEN_HISTOGRAMS("gaugehistogram", "g") "# EOF\n");
	pages.form = METRICS_PROMETHEUS;
	prints(OLD_PAGE);
}

TEST(of_a_process_that_was_not_read_nothing_is_said)
{
	set_durations();
	page.up = false;
	prints(UP "0\n# EOF\n");
}

TEST(without_a_time_nothing_says_when_the_counting_began)
{
	page.since = 0;
	WRITTEN(text, out, metrics_page_print(out, &pages));
	ck_assert_ptr_null(strstr(text, "_created"));
}

/* The lines of a page that have `what`. */
static void prints_lines_with(const char *what, const char *expected)
{
	char *text = TEXT_WRITTEN(out, metrics_page_print(out, &pages)), found[1024] = "";
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		if (strstr(line, what) != NULL)
			strcat(strcat(found, line), "\n");
	ck_assert_str_eq(found, expected);
	free(text);
}

static void prints_groups(const char *expected)
{
	prints_lines_with("tdt_task_group", expected);
}

#define GROUPS_HEAD                                                                               \
	"# TYPE tdt_task_group gauge\n"                                                            \
	"# HELP tdt_task_group Tasks that have not ended, by name and kind of wait: the largest "  \
	"groups.\n"

TEST(groups_have_names_and_waits_and_the_rest_has_no_wait)
{
	static struct metrics_page two[2];

	prints_groups("");
	page.grouped = true;
	prints_groups(GROUPS_HEAD "tdt_task_group{name=\"other\"} 0\n");
	page.groups.group[page.groups.n++] = (struct metrics_group){ "a \"b\\", "mutex", 12, 0 };
	page.groups.group[page.groups.n++] = (struct metrics_group){ "other", "other", 1, 0 };
	page.groups.other.n = 5;
	prints_groups(GROUPS_HEAD "tdt_task_group{name=\"a \\\"b\\\\\",wait=\"mutex\"} 12\n"
				  "tdt_task_group{name=\"other\",wait=\"other\"} 1\n"
				  "tdt_task_group{name=\"other\"} 5\n");
	two[0] = (struct metrics_page){ .pid = 7, .up = true, .grouped = true, .program = "x" };
	two[1] = (struct metrics_page){ .pid = 8, .up = true, .grouped = true, .program = "\n" };
	pages.page = two;
	pages.n = 2;
	prints_groups(GROUPS_HEAD
		      "tdt_task_group{program=\"x\",pid=\"7\",name=\"other\"} 0\n"
		      "tdt_task_group{program=\"?\",pid=\"8\",name=\"other\"} 0\n");
}

#define WAIT_SAMPLES(name, one, rest)                                                             \
	name "{name=\"a\",wait=\"mutex\"} " one "\n" name "{name=\"other\"} " rest "\n"
#define WAITS(family, sample, type, unit)                                                          \
	"# TYPE tdt_task_waits" family " " type "\n"                                               \
	"# HELP tdt_task_waits" family " Recorded waits of tasks, by name and kind of wait.\n"     \
	WAIT_SAMPLES("tdt_task_waits" sample, "12", "1")                                           \
	"# TYPE tdt_task_wait_seconds" family " " type "\n"                                        \
	"# HELP tdt_task_wait_seconds" family                                                      \
	" Duration of recorded waits, by name and kind of wait.\n" unit                            \
	WAIT_SAMPLES("tdt_task_wait_seconds" sample, "34.000000000", "0.000000005")
#define WAITS_UNIT "# UNIT tdt_task_wait_seconds seconds\n"

TEST(waits_are_counters_where_they_only_grow_and_otherwise_gauges)
{
	static const struct metrics_groups waits = {
		.n = 1,
		.group = { { "a", "mutex", 12, 34000000000 } },
		.other = { .n = 1, .ns = 5 },
	};

	set_durations();
	page.grouped = true;
	page.waits = waits;
	prints_lines_with("tdt_task_wait", WAITS("", "_total", "counter", WAITS_UNIT));
	pages.form = METRICS_PROMETHEUS;
	prints_lines_with("tdt_task_wait", WAITS("_total", "_total", "counter", ""));
	page.recorded_ns = 2000000000;
	prints_lines_with("tdt_task_wait", "");
	pages.form = METRICS_OPENMETRICS;
	prints_lines_with("tdt_task_wait", WAITS("", "", "gauge", WAITS_UNIT));
	page.recorded = false;
	prints_lines_with("tdt_task_wait", "");
}

TEST(a_clean_text_ends_where_there_is_no_room)
{
	char clean[4];

	metrics_clean(clean, sizeof clean, "ab\xc3\xa4");
	ck_assert_str_eq(clean, "ab");
	metrics_clean(clean, sizeof clean, "a\xc3\xa4");
	ck_assert_str_eq(clean, "a\xc3\xa4");
	metrics_clean(clean, sizeof clean, "a\xc3");
	ck_assert_str_eq(clean, "a?");
}

TEST(the_names_of_bounds_are_their_values)
{
	char *text, *at;

	set_durations();
	text = TEXT_WRITTEN(out, metrics_page_print(out, &pages));
	at = text;
	for (size_t i = 0; i < TDT__DURATION_BOUNDS; i++) {
		at = strstr(at, "le=\"") + strlen("le=\"");
		ck_assert_uint_eq((uint64_t)(strtod(at, NULL) * 1e9 + 0.5),
				  tdt__duration_bound[i]);
	}
	free(text);
}
