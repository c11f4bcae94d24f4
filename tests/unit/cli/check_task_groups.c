// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/task_groups, facts/family.  Made-up tasks and waits, and how metrics count them. */

#include <stdarg.h>

#include "cli/task_groups.h"
#include "lib/test.h"
#include "recording/read.h"

#define TASKS 200

static struct tdt__seen_task seen[TASKS];
static char names[TASKS][32];
static struct tdt__tasks tasks = { .task = seen };
static struct tdt_wait waits[] = { [TDT_WAIT_MUTEX] = { .kind = TDT_WAIT_MUTEX },
				   [TDT_WAIT_IO] = { .kind = TDT_WAIT_IO } };
static const struct tdt_wait *mutex[] = { &waits[TDT_WAIT_MUTEX] };
static const struct tdt_wait *io[] = { &waits[TDT_WAIT_IO] };
static struct task_groups groups;
static struct metrics_groups shown;

/* The next task, which waits for something that is not known. */
__attribute__((format(printf, 1, 2))) static struct tdt_task_info *add_task(const char *format, ...)
{
	struct tdt_task_info *info = &seen[tasks.n].member.info;
	va_list values;

	va_start(values, format);
	vsnprintf(names[tasks.n], sizeof names[0], format, values);
	va_end(values);
	*info = (struct tdt_task_info){ .state = TDT_TASK_WAITING, .name = names[tasks.n] };
	tasks.n++;
	return info;
}

static void waits_for(struct tdt_task_info *info, const struct tdt_wait *const *what)
{
	info->waits = what;
	info->n_waits = 1;
}

static void count(void)
{
	task_groups_count(&groups, &tasks);
	task_groups_add_to(&shown, &groups);
	task_groups_fini(&groups);
}

static void is_group(size_t i, const char *name, const char *wait, uint64_t n)
{
	ck_assert_uint_lt(i, shown.n);
	ck_assert_str_eq(shown.group[i].name, name);
	ck_assert_str_eq(shown.group[i].wait, wait);
	ck_assert_uint_eq(shown.group[i].n, n);
}

static void set_up(void)
{
	tasks.n = 0;
	memset(seen, 0, sizeof seen);
	shown = (struct metrics_groups){ .n = 0 };
}

CASE(task_groups, .setup = set_up)

TEST(names_differ_but_for_their_numbers)
{
	for (unsigned i = 0; i < 5; i++)
		waits_for(add_task("session %u", i * 1000), mutex);
	for (unsigned i = 0; i < 3; i++)
		waits_for(add_task("session %u", i), io);
	add_task("session %u", 7);
	add_task("accept");
	count();
	ck_assert_uint_eq(shown.n, 4);
	is_group(0, "session #", "mutex", 5);
	is_group(1, "session #", "io", 3);
	is_group(2, "accept", "unknown", 1);
	is_group(3, "session #", "unknown", 1);
	ck_assert_uint_eq(shown.other.n, 0);
}

TEST(a_task_without_a_name_is_named_after_the_place_where_it_was_spawned)
{
	struct tdt_task_info *info = add_task("%s", "");

	info->file = "/src/app/main.c";
	info->line = 12;
	add_task("%s", "")->name = NULL;
	count();
	is_group(0, "", "unknown", 1);
	is_group(1, "spawned at main.c:12", "unknown", 1);
}

/* So that the sum is that of tdt_tasks. */
TEST(tasks_that_do_not_wait_count_and_those_that_have_ended_do_not)
{
	struct tdt_task_info *info = add_task("a");

	info->state = TDT_TASK_RUNNABLE;
	waits_for(info, mutex); /* an old wait of a task that was woken */
	add_task("a")->state = TDT_TASK_RUNNING;
	add_task("a")->state = TDT_TASK_UNKNOWN;
	add_task("a")->state = TDT_TASK_READY;
	seen[3].outcome = "ready";
	count();
	ck_assert_uint_eq(shown.n, 1);
	is_group(0, "a", "none", 2);
}

TEST(there_are_only_so_many_groups_and_the_rest_is_counted)
{
	uint64_t sum;

	for (unsigned i = 0; i < TASKS / 2; i++) {
		add_task("one");
		names[i][0] = (char)('a' + i % 10);
		names[i][1] = (char)('a' + i / 10);
	}
	for (unsigned i = 0; i < TASKS / 2; i++)
		add_task("many %u", i);
	count();
	ck_assert_uint_eq(shown.n, METRICS_GROUPS_MAX);
	is_group(0, "many #", "unknown", TASKS / 2);
	sum = shown.other.n;
	for (size_t i = 0; i < shown.n; i++)
		sum += shown.group[i].n;
	ck_assert_uint_eq(sum, TASKS);
}

/* Two labels of one text would make the page unreadable. */
TEST(names_that_read_alike_as_labels_are_one_group)
{
	add_task("bad\n");
	add_task("bad\x1b");
	add_task("bad\xff");
	count();
	ck_assert_uint_eq(shown.n, 1);
	is_group(0, "bad?", "unknown", 3);
}

TEST(without_memory_tasks_are_among_the_rest)
{
	NEEDS_FAILING_MEMORY();
	add_task("a");
	add_task("b");
	no_memory_begin(0);
	task_groups_count(&groups, &tasks);
	no_memory_end();
	task_groups_add_to(&shown, &groups);
	task_groups_fini(&groups);
	ck_assert_uint_eq(shown.n, 0);
	ck_assert_uint_eq(shown.other.n, 2);
}

/* --- Waits that have ended --- */

/* Add such a wait to those that wait to be shown. */
static void waited(const char *name, enum tdt_wait_kind kind, uint64_t ns)
{
	const struct tdt__recorded_task task = { .name = name, .file = "" };

	task_groups_waited(&groups, &task, kind, ns);
}

static void show(void)
{
	task_groups_add_to(&shown, &groups);
	task_groups_fini(&groups);
}

/* `shown` has so many waits in all, and so long ones. */
static void all_are(uint64_t n, uint64_t ns)
{
	uint64_t all_n = shown.other.n, all_ns = shown.other.ns;

	for (size_t i = 0; i < shown.n; i++) {
		all_n += shown.group[i].n;
		all_ns += shown.group[i].ns;
	}
	ck_assert_uint_eq(all_n, n);
	ck_assert_uint_eq(all_ns, ns);
}

TEST(waits_of_one_name_and_kind_are_added_up_and_the_longest_come_first)
{
	waited("conn 1", TDT_WAIT_MUTEX, 5);
	waited("conn 2", TDT_WAIT_MUTEX, 6);
	waited("conn 3", TDT_WAIT_IO, 100);
	waited("conn 3", TDT_WAIT_UNKNOWN, 1);
	show();
	ck_assert_uint_eq(shown.n, 3);
	is_group(0, "conn #", "io", 1);
	is_group(1, "conn #", "mutex", 2);
	is_group(2, "conn #", "unknown", 1);
	ck_assert_uint_eq(shown.group[1].ns, 11);
	all_are(4, 112);
}

TEST(a_group_that_is_shown_keeps_its_place_and_only_grows)
{
	waited("a", TDT_WAIT_IO, 5);
	show();
	waited("b", TDT_WAIT_IO, 500);
	show();
	waited("a", TDT_WAIT_IO, 2);
	show();
	ck_assert_uint_eq(shown.n, 2);
	is_group(0, "a", "io", 2);
	is_group(1, "b", "io", 1);
	ck_assert_uint_eq(shown.group[0].ns, 7);
	all_are(3, 507);
}

TEST(without_a_free_place_waits_are_among_the_rest)
{
	char name[] = "a";

	for (int i = 0; i < METRICS_GROUPS_MAX; i++, name[0]++)
		waited(name, TDT_WAIT_IO, 10);
	show();
	waited("longer", TDT_WAIT_IO, 1000);
	waited("a", TDT_WAIT_IO, 10);
	show();
	ck_assert_uint_eq(shown.n, METRICS_GROUPS_MAX);
	is_group(0, "a", "io", 2);
	ck_assert_uint_eq(shown.other.n, 1);
	ck_assert_uint_eq(shown.other.ns, 1000);
	all_are(METRICS_GROUPS_MAX + 2, METRICS_GROUPS_MAX * 10 + 1010);
}
