// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/dump_text, tree-printer/dump_group, tree-printer/folded,
 * tree-printer/names.  The text and the folded stacks of a dump, compared with the whole text; and
 * what may go wrong.
 */

#include "lib/dumped.h"
#include "lib/says.h"
#include "lib/test.h"

#define SECOND UINT64_C(1000000000)
#define PRINT(...) DUMP(.print = OPTIONS(__VA_ARGS__))

static const char everything[] =
    "10 tasks, 1 deadlock: 7 answered, 1 running, 1 as last watched, 1 without a tree, "
    "2 left out for want of memory or time (took 1.000 s)\n"
    "\n"
    "misuse: it was polled\\ntwice (task 8 \"c\\\"\")\n"
    "\n"
    "deadlock: task 5 \"a\" waits for a mutex (0x10) held by task 6 \"b\", "
    "which waits for a mutex (0x20) held by task 5 \"a\"\n"
    "task 5 \"a\" pending 60.00 s, 1 leaf\n"
    "   waits for a mutex (0x10) held by task 6 \"b\"\n"
    "- a at x.c:1\n"
    "\n"
    "task 6 \"b\" pending 59.00 s, 1 leaf\n"
    "   waits for a mutex (0x20) held by task 5 \"a\"\n"
    "- b at x.c:1\n"
    "\n"
    "ring of waits (another leaf may still bring one on): task 7 \"c\" waits for task 8, "
    "which waits for a channel (0x30) of task 7 \"c\"\n"
    "\n"
    "3 tasks pending 2.000 s to 70.00 s: 20 \"conn 1\", 21 and 22 \"conn 3\", spawned at x.c:9\n"
    "   2 wait for a mutex (0x20) held by task 5 \"a\"\n"
    "- conn at x.c:9\n"
    " `- tdt_read at x.c:4\n"
    "\n"
    "task 7 \"c\" pending 9.000 s, 1 leaf\n"
    "   waits for task 8\n"
    "- c at x.c:2\n"
    "- d at x.c:3\n"
    "\n"
    "task 8 pending 8.000 s, 1 leaf\n"
    "   waits for a channel (0x30) of task 7 \"c\"\n"
    "- d at x.c:2\n"
    "\n"
    "task 9 \"busy\" running for 4.000 s on thread 4711, in read(), spawned by task 5\n"
    "- busy at x.c:3\n"
    "\n"
    "task 10 pending 3.000 s, 1 leaf, did not answer, as seen 4.000 s and 12 polls ago\n"
    "- old at x.c:4\n"
    "\n"
    "task 11 pending 2.000 s, did not answer\n"
    "\n";

static struct dumped *dumped;

static void begin(void)
{
	dumped = dumped_new();
}

/* The dump that was put together so far; then the next one begins. */
static void expect(const struct tdt_dump_options *options, const char *expected)
{
	dumped_expect(dumped, options, expected);
	begin();
}

static void end(void)
{
	dumped_free(dumped);
}

CASE(text, .setup = begin, .teardown = end)

TEST(a_dump_tells_what_is_wrong_first_then_groups)
{
	dumped_expect(dumped_everything(), PRINT(ASCII), everything);
}

TEST(no_tasks_are_told)
{
	expect(PRINT(ASCII), "no tasks\n\n");
	expect(PRINT(FOLDED), "");
}

static struct tdt_task_info *tasks_new(size_t n)
{
	struct tdt_task_info *tasks = calloc(n, sizeof(*tasks));

	ck_assert_ptr_nonnull(tasks);
	for (size_t i = 0; i < n; i++)
		tasks[i] =
		    (struct tdt_task_info)TASK(.id = i + 1, .state_ns = 60 * SECOND - i * 1000000,
						.file = "x.c", .line = 3, .parent = 4);
	return tasks;
}

TEST(of_many_tasks_some_are_named_and_all_counted)
{
	struct tdt_task_info *tasks = tasks_new(10000);

	tasks[0].name = "one";
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 10000);
	expect(DUMP(.max_ids = 3, .print = OPTIONS(UTF8)),
	       "10,000 tasks: 10,000 answered\n\n"
	       "10,000 tasks pending 50.00 s to 60.00 s, e.g. 1 \"one\", 2, 3 and 9,997 more, "
	       "spawned at x.c:3 by task 4\n"
	       "╼ a at x.c:1\n\n");
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 9);
	expect(
	    PRINT(ASCII),
	    "9 tasks: 9 answered\n\n"
	    "9 tasks pending 59.99 s to 60.00 s, e.g. 1 \"one\", 2, 3, 4, 5, 6, 7, 8 and 1 more, "
	    "spawned at x.c:3 by task 4\n"
	    "- a at x.c:1\n\n");
	free(tasks);
}

TEST(a_group_tells_only_what_all_share)
{
	struct tdt_task_info tasks[2] = { TASK(.id = 1, .file = "x.c", .line = 3, .parent = 4),
					  TASK(.id = 2, .file = "x.c", .line = 4, .parent = 4) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 2);
	expect(PRINT(ASCII), "2 tasks: 2 answered\n\n2 tasks pending: 1 and 2\n- a at x.c:1\n\n");
	tasks[1].line = 3;
	tasks[1].parent = 5;
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 2);
	expect(
	    PRINT(ASCII),
	    "2 tasks: 2 answered\n\n2 tasks pending: 1 and 2, spawned at x.c:3\n- a at x.c:1\n\n");
}

TEST(children_stand_below_their_parents)
{
	struct tdt_task_info parents[2] = { TASK(.id = 1, .name = "all"),
					    TASK(.id = 2, .name = "all") },
			     some[3] = { TASK(.id = 10, .parent = 1, .child = 1),
					 TASK(.id = 11, .parent = 2, .child = 1),
					 TASK(.id = 12, .parent = 1, .child = 1) },
			     silent[1] = { TASK(.id = 13, .parent = 1, .child = 1) },
			     inner[1] = { TASK(.id = 20, .parent = 10, .child = 1) },
			     spawned[1] = { TASK(.id = 30, .parent = 1) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "inner:9*", inner, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "some:4*", some, 3);
	dumped_group(dumped, TDT_ANSWER_FRESH, "all:1*", parents, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "other:7*", spawned, 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, silent, 1);
	expect(PRINT(ASCII), "8 tasks: 7 answered, 1 without a tree\n\n"
			     "2 tasks pending: 1 \"all\" and 2 \"all\"\n"
			     "- all at x.c:1\n"
			     "   3 of 4 children are shown below\n"
			     "\n"
			     "   3 tasks pending: 10, 11 and 12\n"
			     "   - some at x.c:4\n"
			     "      1 of 1 child is shown below\n"
			     "\n"
			     "      task 20 pending, 1 leaf, spawned by task 10\n"
			     "      - inner at x.c:9\n"
			     "\n"
			     "   task 13 pending, did not answer, spawned by task 1\n"
			     "\n"
			     "task 30 pending, 1 leaf, spawned by task 1\n"
			     "- other at x.c:7\n"
			     "\n");
}

TEST(children_of_tasks_that_are_not_in_one_group_stand_alone)
{
	struct tdt_task_info a[1] = { TASK(.id = 1) }, b[1] = { TASK(.id = 2) },
			     children[2] = { TASK(.id = 10, .parent = 1, .child = 1),
					     TASK(.id = 11, .parent = 2, .child = 1) },
			     orphan[1] = { TASK(.id = 12, .parent = 99, .child = 1) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", a, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "b:2*", b, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "c:3*", children, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "d:4*", orphan, 1);
	expect(PRINT(ASCII), "5 tasks: 5 answered\n\n"
			     "task 1 pending, 1 leaf\n- a at x.c:1\n"
			     "   0 of 1 child is shown below\n\n"
			     "task 2 pending, 1 leaf\n- b at x.c:2\n"
			     "   0 of 1 child is shown below\n\n"
			     "2 tasks pending: 10 and 11\n- c at x.c:3\n\n"
			     "task 12 pending, 1 leaf, spawned by task 99\n- d at x.c:4\n\n");
}

TEST(tasks_that_are_said_to_be_children_of_each_other_are_written_once)
{
	struct tdt_task_info a[1] = { TASK(.id = 1, .parent = 2, .child = 1) },
			     b[1] = { TASK(.id = 2, .parent = 1, .child = 1) },
			     own[1] = { TASK(.id = 3, .parent = 3, .child = 1) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", a, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "b:2*", b, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "c:3*", own, 1);
	expect(PRINT(ASCII), "3 tasks: 3 answered\n\n"
			     "task 3 pending, 1 leaf, spawned by task 3\n- c at x.c:3\n"
			     "   0 of 1 child is shown below\n\n"
			     "task 1 pending, 1 leaf, spawned by task 2\n- a at x.c:1\n"
			     "   1 of 1 child is shown below\n\n"
			     "   task 2 pending, 1 leaf, spawned by task 1\n   - b at x.c:2\n"
			     "      1 of 1 child is shown below\n\n");
}

TEST(times_of_a_group_are_a_range)
{
	static const struct {
		uint64_t oldest, youngest;
		const char *text;
	} cases[] = {
		{ 0, 0, "pending:" },
		{ SECOND, SECOND, "pending 1.000 s:" },
		{ SECOND + 999, SECOND, "pending 1.000 s:" },
		{ SECOND, 0, "pending up to 1.000 s:" },
		{ 2 * SECOND, 1, "pending 1 ns to 2.000 s:" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt_task_info tasks[2] = { TASK(.id = 1, .state_ns = cases[i].oldest),
						  TASK(.id = 2, .state_ns = cases[i].youngest) };
		char expected[200];

		dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 2);
		snprintf(expected, sizeof(expected),
			 "2 tasks: 2 answered\n\n2 tasks %s 1 and 2\n- a at x.c:1\n\n",
			 cases[i].text);
		expect(PRINT(ASCII), expected);
	}
}

TEST(groups_tell_where_their_trees_are_from)
{
	struct tdt_task_info run[2] = { TASK(.id = 1, .state = TDT_TASK_RUNNING, .thread = 10,
					      .syscall = "read", .state_ns = SECOND),
					 TASK(.id = 2, .state = TDT_TASK_RUNNING, .thread = 11,
					      .syscall = "read", .state_ns = SECOND) };
	struct tdt_task_info old[2] = { TASK(.id = 3, .age_ns = 2 * SECOND, .polls_since = 1),
					 TASK(.id = 4, .age_ns = SECOND, .polls_since = 1200) };
	struct tdt_task_info gone[2] = { BARE(.id = 5), BARE(.id = 6) };
	struct tdt_task_info bare[2] = { BARE(.id = 7, .polls = 1), BARE(.id = 8, .polls = 1) };
	struct tdt_task_info fiber[2] = { BARE(.id = 9), BARE(.id = 10) };

	dumped_group(dumped, TDT_ANSWER_RUNNING, "a:1*", run, 2);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:2*", old, 2);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, gone, 2);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, run, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "", bare, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "", fiber, 2);
	expect(
	    PRINT(ASCII),
	    "11 tasks: 4 answered, 2 running, 2 as last watched, 3 without a tree\n\n"
	    "2 tasks running for 1.000 s, in read(): 1 on thread 10 and 2 on thread 11\n- a at "
	    "x.c:1\n\n"
	    "2 tasks pending, did not answer, as seen 1.000 s to 2.000 s and 1 to 1,200 polls ago: "
	    "3 and 4\n"
	    "- a at x.c:2\n\n"
	    "2 tasks pending, did not answer: 5 and 6\n\n"
	    "task 1 running for 1.000 s on thread 10, in read(), no stack could be read\n\n"
	    "2 tasks pending less than 10 ms, no leaves (the poll cloned no waker): 7 and 8\n\n"
	    "2 tasks pending, has not run yet: 9 and 10\n\n");
	run[0].unknown_stack = 1;
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, run, 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, run, 2);
	expect(PRINT(ASCII),
	       "3 tasks: 3 without a tree\n\n"
	       "task 1 running for 1.000 s on thread 10, in read(), on a stack that is not "
	       "known as its own\n\n"
	       "2 tasks running for 1.000 s, in read(), no stack could be read: 1 on thread "
	       "10 and 2 on thread 11\n\n");
	run[0].unknown_stack = 0;
	run[0].blocking = 1;
	run[1].syscall = "write";
	dumped_group(dumped, TDT_ANSWER_RUNNING, "a:1*", run, 2);
	expect(PRINT(ASCII),
	       "2 tasks: 2 running\n\n"
	       "2 tasks running for 1.000 s: 1 on blocking thread 10 in read() and 2 on "
	       "thread 11 in write()\n- a at x.c:1\n\n");
}

TEST(from_outside_each_tree_tells_how_it_was_had)
{
	struct tdt_task_info asked[2] = { TASK(.id = 1, .asked = 1), TASK(.id = 2, .asked = 1) };
	struct tdt_task_info some[2] = { TASK(.id = 3, .asked = 1), TASK(.id = 4) };
	struct tdt_task_info old[2] = { TASK(.id = 5, .age_ns = 3000000),
					 TASK(.id = 6, .age_ns = 3000000, .polls_since = 2) };
	struct tdt_task_info silent[2] = { TASK(.id = 7, .age_ns = SECOND, .asked = 1),
					    BARE(.id = 8, .asked = 1) };
	struct tdt_task_info bare[2] = { BARE(.id = 9),
					 BARE(.id = 10, .state = TDT_TASK_READY, .asked = 1) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", asked, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:2*", some, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:3*", &some[1], 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:4*", old, 2);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:5*", &old[0], 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:6*", &silent[0], 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &silent[1], 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &bare[0], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:7*", &bare[1], 1);
	dumped->snapshot.outside = 1;
	expect(
	    PRINT(ASCII),
	    "12 tasks: 4 answered, 2 suspended, 4 as last watched, 2 without a tree\n\n"
	    "2 tasks pending, asked just now: 1 and 2\n- a at x.c:1\n\n"
	    "2 tasks pending, read just now: 3 and 4\n- a at x.c:2\n\n"
	    "task 4 pending, 1 leaf, read just now\n- a at x.c:3\n\n"
	    "2 tasks pending, watched 3.000 ms ago, 0 to 2 polls since: 5 and 6\n- a at x.c:4\n\n"
	    "task 5 pending, 1 leaf, watched 3.000 ms ago, 0 polls since\n- a at x.c:5\n\n"
	    "task 7 pending, 1 leaf, did not answer, watched 1.000 s ago, 0 polls since\n"
	    "- a at x.c:6\n\n"
	    "task 8 pending, did not answer, record only\n\n"
	    "task 9 pending, record only\n\n"
	    "task 10 ready, no leaves\n- a at x.c:7\n\n");
}

TEST(a_task_that_moved_because_it_was_asked_has_waited_until_then)
{
	struct tdt_task_info tasks[2] = { TASK(.id = 1, .asked = 1, .moved = 1, .state_ns = SECOND),
					  TASK(.id = 2, .asked = 1, .state_ns = SECOND) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:2*", tasks, 2);
	dumped->snapshot.outside = 1;
	expect(PRINT(ASCII), "3 tasks: 3 answered\n\n"
			     "task 1 waited 1.000 s, and moved when it was asked, 1 leaf\n"
			     "- a at x.c:1\n\n"
			     "2 tasks pending up to 1.000 s, asked just now: 1 and 2\n"
			     "- a at x.c:2\n\n");
}

TEST(a_tree_says_if_it_may_lack_leaves)
{
	struct tdt_task_info part[2] = { TASK(.id = 1, .leaves_known = TDT_LEAVES_PART),
					  TASK(.id = 2, .leaves_known = TDT_LEAVES_PART) };
	struct tdt_task_info unknown = TASK(.id = 3, .leaves_known = TDT_LEAVES_UNKNOWN);

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", part, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:2*", part, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:3*", &unknown, 1);
	expect(PRINT(ASCII), "4 tasks: 4 answered\n\n"
			     "2 tasks pending, a part of all leaves: 1 and 2\n- a at x.c:1\n\n"
			     "task 1 pending, 1 leaf, a part of all leaves\n- a at x.c:2\n\n"
			     "task 3 pending, 1 leaf, perhaps not all leaves\n- a at x.c:3\n\n");
}

TEST(of_a_recording_times_are_before_its_end)
{
	static const struct tdt_wait wait = { .kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 7 };
	static const struct tdt_wait *const waits = &wait;
	struct tdt_task_info ran = TASK(.id = 1, .state = TDT_TASK_RUNNING, .state_ns = SECOND,
					 .thread = 11, .age_ns = 3000000);
	struct tdt_task_info old[2] = { TASK(.id = 3, .age_ns = 3000000),
					 TASK(.id = 4, .age_ns = 4000000, .polls_since = 2) };
	struct tdt_task_info late = TASK(.id = 2);
	struct tdt_task_info lost[3] = {
		BARE(.id = 5, .state = TDT_TASK_UNKNOWN, .n_waits = 1, .waits = &waits, .polls = 2,
		     .polled_ns = SECOND),
		BARE(.id = 6, .state = TDT_TASK_UNKNOWN, .n_waits = 1, .waits = &waits),
		BARE(.id = 7, .state = TDT_TASK_UNKNOWN, .polled_ns = SECOND)
	};

	dumped_group(dumped, TDT_ANSWER_RUNNING, "a:1*", &ran, 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:2*", old, 2);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:3*", &old[1], 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:4*", &late, 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, lost, 2);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &lost[0], 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &lost[2], 1);
	dumped_cycle(dumped, false, old, 1);
	dumped->snapshot.outside = dumped->snapshot.recorded = 1;
	expect(PRINT(ASCII),
	       "9 tasks: 1 running, 4 as last recorded, 4 without a tree\n\n"
	       "ring of waits (as their last polls reported): task 3 waits for itself\n\n"
	       "task 1 running for 1.000 s on thread 11, recorded 3.000 ms before the end\n"
	       "- a at x.c:1\n\n"
	       "2 tasks pending, recorded 3.000 ms to 4.000 ms before the end, 0 to 2 polls before "
	       "the last: 3 and 4\n- a at x.c:2\n\n"
	       "task 4 pending, 1 leaf, recorded 4.000 ms before the end, 2 polls before the last\n"
	       "- a at x.c:3\n\n"
	       "task 2 pending, 1 leaf, recorded at the end\n- a at x.c:4\n\n"
	       "2 tasks unknown, no stack was recorded: 5 and 6\n"
	       "   2 waited for a mutex (0x10) held by task 7\n\n"
	       "task 5 unknown, last polled 1.000 s before the end, no stack was recorded\n"
	       "   waited for a mutex (0x10) held by task 7\n\n"
	       "task 7 unknown, no stack was recorded\n\n");
}

TEST(groups_and_tasks_tell_of_leaves_that_may_be_over)
{
	struct tdt_task_info tasks[3] = { TASK(.id = 1, .leaves_unsure = 2),
					  TASK(.id = 2, .leaves_unsure = 2),
					  TASK(.id = 3, .leaves_unsure = 3) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:2*", &tasks[2], 1);
	expect(PRINT(ASCII),
	       "3 tasks: 3 answered\n\n"
	       "2 tasks pending: 1 and 2\n"
	       "   some of these 2 may be over: the task may have gone on in the same poll\n"
	       "- a at x.c:1\n\n"
	       "task 3 pending, 1 leaf\n"
	       "   some of these 3 may be over: the task may have gone on in the same poll\n"
	       "- a at x.c:2\n\n");
}

TEST(what_most_of_a_group_wait_for_is_told_first)
{
	struct tdt_wait waits[40];
	const struct tdt_wait *list[40];
	struct tdt_task_info *tasks = tasks_new(40);

	for (uint64_t i = 0; i < 40; i++) {
		waits[i] = (struct tdt_wait){ .kind = TDT_WAIT_MUTEX,
					      .object = 0x1000,
					      .owner = i < 20 ? 1 : 100 + i };
		list[i] = &waits[i];
		tasks[i].waits = &list[i];
		tasks[i].n_waits = 1;
		tasks[i].file = NULL;
		tasks[i].parent = 0;
	}
	waits[39] = (struct tdt_wait){ .kind = TDT_WAIT_TIMER }; /* says no more than the tree */
	waits[20] = (struct tdt_wait){ .kind = TDT_WAIT_TASK, .owner = 21 };
	waits[21].owner_name = "aside"; /* it is not in the dump */
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 40);
	expect(DUMP(.max_ids = 1, .print = OPTIONS(ASCII)),
	       "40 tasks: 40 answered\n\n"
	       "40 tasks pending 59.96 s to 60.00 s, e.g. 1 and 39 more\n"
	       "   20 wait for a mutex (0x1000) held by task 1\n"
	       "   1 waits for itself\n"
	       "   1 waits for a mutex (0x1000) held by task 121 \"aside\"\n"
	       "   1 waits for a mutex (0x1000) held by task 122\n"
	       "   1 waits for a mutex (0x1000) held by task 123\n"
	       "   1 waits for a mutex (0x1000) held by task 124\n"
	       "   1 waits for a mutex (0x1000) held by task 125\n"
	       "   1 waits for a mutex (0x1000) held by task 126\n"
	       "   and for 12 more\n"
	       "- a at x.c:1\n\n");
	free(tasks);
}

TEST(many_that_wait_for_an_object_each_are_one_line)
{
	struct tdt_wait waits[200];
	const struct tdt_wait *list[200];
	struct tdt_task_info *tasks = tasks_new(200);

	for (uint64_t i = 0; i < 200; i++) {
		waits[i] = (struct tdt_wait){ .kind = TDT_WAIT_CHANNEL, .object = 0x1000 + i };
		list[i] = &waits[i];
		tasks[i].waits = &list[i];
		tasks[i].n_waits = 1;
		tasks[i].state_ns = 0;
	}
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 200);
	expect(DUMP(.max_ids = 1, .print = OPTIONS(ASCII)),
	       "200 tasks: 200 answered\n\n"
	       "200 tasks pending, e.g. 1 and 199 more, spawned at x.c:3 by task 4\n"
	       "   200 wait for a channel each\n"
	       "- a at x.c:1\n\n");

	/* Those that several tasks wait for, or that have an owner, are told apart. */
	waits[1] = waits[0];
	for (int i = 2; i < 5; i++)
		waits[i] = (struct tdt_wait){ .kind = TDT_WAIT_MUTEX,
					      .object = 0x2000 + (unsigned)i };
	waits[5].owner = 9;
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 200);
	expect(DUMP(.max_ids = 1, .print = OPTIONS(ASCII)),
	       "200 tasks: 200 answered\n\n"
	       "200 tasks pending, e.g. 1 and 199 more, spawned at x.c:3 by task 4\n"
	       "   3 wait for a mutex each\n"
	       "   194 wait for a channel each\n"
	       "   2 wait for a channel (0x1000)\n"
	       "   1 waits for a channel (0x1005) of task 9\n"
	       "- a at x.c:1\n\n");

	/* As many as can be shown are shown. */
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", &tasks[2], 2);
	expect(DUMP(.max_ids = 1, .print = OPTIONS(ASCII)),
	       "2 tasks: 2 answered\n\n"
	       "2 tasks pending, e.g. 3 and 1 more, spawned at x.c:3 by task 4\n"
	       "   1 waits for a mutex (0x2002)\n"
	       "   1 waits for a mutex (0x2003)\n"
	       "- a at x.c:1\n\n");
	free(tasks);
}

TEST(a_deadlock_of_one_waits_for_itself)
{
	static const struct tdt_wait wait = { .kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 1 };
	static const struct tdt_wait *const waits[] = { &wait };
	static const struct tdt_task_info task = TASK(.id = 1, .waits = waits, .n_waits = 1);

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", &task, 1);
	dumped_cycle(dumped, true, &task, 1);
	expect(
	    PRINT(ASCII),
	    "1 task, 1 deadlock: 1 answered\n\n"
	    "deadlock: task 1 waits for a mutex (0x10) held by itself\n\n"
	    "task 1 pending, 1 leaf\n   waits for a mutex (0x10) held by itself\n- a at x.c:1\n\n");
}

TEST(a_long_ring_is_cut_and_closed)
{
	struct tdt_task_info *tasks = tasks_new(1000);

	dumped_cycle(dumped, true, tasks, 1000);
	expect(DUMP(.max_ids = 2, .print = OPTIONS(ASCII)),
	       "no tasks, 1 deadlock\n\n"
	       "deadlock: task 1 waits for task 2, which waits for task 3, and so on by 998 "
	       "more to task 1\n\n");
	free(tasks);
}

TEST(a_ring_says_if_it_is_unproven)
{
	static const struct tdt_task_info task = TASK(.id = 1);

	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &task, 1);
	dumped_cycle(dumped, false, &task, 1);
	dumped->cycles[0].unproven = 1;
	expect(
	    PRINT(ASCII),
	    "1 task: 1 without a tree\n\n"
	    "unproven ring of waits (from records: another leaf may be silent): task 1 waits for "
	    "itself\n\n"
	    "task 1 pending, did not answer\n\n");
}

TEST(deadlocks_are_red_where_there_are_colors)
{
	static const struct tdt_task_info tasks[3] = { TASK(.id = 1, .name = "a"), TASK(.id = 2),
						       TASK(.id = 3) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", tasks, 2);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", &tasks[2], 1);
	dumped_cycle(dumped, true, tasks, 2);
	dumped->cycles[0].n_groups = 1;
	dumped_cycle(dumped, true, &tasks[2], 1);
	dumped->cycles[1].n_groups = 1;
	expect(
	    PRINT(UTF8, .color = TDT_PRINT_YES),
	    "3 tasks, \033[31m2 deadlocks\033[0m: 3 answered\n\n"
	    "\033[31mdeadlock\033[0m: task 1 \"a\" waits for task 2, which waits for task 1 \"a\"\n"
	    "2 tasks \033[31mpending\033[0m: \033[1m1 \"a\"\033[0m and \033[1m2\033[0m\n"
	    "╼ \033[1ma\033[0m\033[2m at x.c:1\033[0m\n\n"
	    "\033[31mdeadlock\033[0m: task 3 waits for itself\n"
	    "task \033[1m3\033[0m \033[31mpending\033[0m, 1 leaf\n"
	    "╼ \033[1ma\033[0m\033[2m at x.c:1\033[0m\n\n");
}

TEST(what_is_suspicious_is_colored_and_nothing_else)
{
	static const struct {
		enum tdt_task_state state;
		uint64_t state_ns;
		const char *text;
	} cases[] = {
		{ TDT_TASK_WAITING, 60 * SECOND, " pending 60.00 s" },
		{ TDT_TASK_RUNNING, 9999999, " running for 9.999 ms" },
		{ TDT_TASK_RUNNING, 10000000, " \033[31mrunning\033[0m for 10.00 ms" },
		{ TDT_TASK_RUNNABLE, 9999999, " runnable for 9.999 ms" },
		{ TDT_TASK_RUNNABLE, 10000000, " \033[33mrunnable\033[0m for 10.00 ms" },
		{ TDT_TASK_READY, 60 * SECOND, " ready 60.00 s" },
		{ TDT_TASK_PANICKED, 0, " \033[31mpanicked\033[0m" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt_task_info tasks[2] = {
			TASK(.id = 1, .state = cases[i].state, .state_ns = cases[i].state_ns),
			TASK(.id = 2, .state = cases[i].state, .state_ns = cases[i].state_ns)
		};
		char expected[300];

		dumped_group(dumped, TDT_ANSWER_NONE, NULL, tasks, 2);
		snprintf(expected, sizeof(expected),
			 "2 tasks: 2 without a tree\n\n2 tasks%s%s: \033[1m1\033[0m and "
			 "\033[1m2\033[0m\n\n",
			 cases[i].text,
			 cases[i].state == TDT_TASK_RUNNING ? ", no stack could be read"
							    : ", did not answer");
		expect(PRINT(ASCII, .color = TDT_PRINT_YES), expected);
	}
}

/* The tree of one frame that has no name, which may be because there was no time to find one. */
static struct tdt_trace *nameless(const struct tdt_task_info *info, bool unnamed)
{
	struct tdt_frame frame = {
		.size = sizeof(frame), .kind = TDT_NODE_FRAME, .pc = 0x10, .unnamed = unnamed
	};
	struct tdt_trace *trace = tdt_trace_new(info);

	ck_assert_ptr_nonnull(trace);
	ck_assert_ptr_nonnull(tdt_trace_add(trace, NULL, &frame, 1));
	return trace;
}

TEST(only_frames_that_were_not_named_in_time_are_marked_so)
{
	static const struct tdt_task_info tasks[2] = { TASK(.id = 1), TASK(.id = 2) };

	for (int i = 0; i < 2; i++) {
		dumped_group(dumped, TDT_ANSWER_FRESH, NULL, &tasks[i], 1);
		dumped->groups[i].trace = nameless(&tasks[i], i == 0);
	}
	expect(PRINT(ASCII), "2 tasks: 2 answered, 1 frame not named in time\n\n"
			     "task 1 pending, 1 leaf\n- 0x10 (not named in time)\n\n"
			     "task 2 pending, 1 leaf\n- 0x10\n\n");
}

TEST(no_name_harms_a_terminal)
{
	static const struct tdt_wait wait = { .kind = TDT_WAIT_TASK, .owner = 2 };
	static const struct tdt_wait *const waits[] = { &wait };
	static const struct tdt_task_info tasks[2] = {
		TASK(.id = 1, .name = "\033[2J\"é", .waits = waits, .n_waits = 1,
		     .state = TDT_TASK_RUNNING, .syscall = "\033x"),
		TASK(.id = 2, .name = "\n", .state = TDT_TASK_RUNNING),
	};

	dumped_group(dumped, TDT_ANSWER_RUNNING, "a:1*", tasks, 2);
	dumped_cycle(dumped, false, tasks, 2);
	expect(PRINT(ASCII),
	       "2 tasks: 2 running\n\n"
	       "ring of waits (another leaf may still bring one on): task 1 "
	       "\"\\x1b[2J\\\"\\u00e9\" waits for "
	       "task 2 \"\\n\", which waits for task 1 \"\\x1b[2J\\\"\\u00e9\"\n\n"
	       "2 tasks running: 1 \"\\x1b[2J\\\"\\u00e9\" in \\x1bx() and 2 \"\\n\"\n"
	       "   1 waits for task 2 \"\\n\"\n"
	       "- a at x.c:1\n\n");
}

TEST(trees_are_printed_as_the_options_say)
{
	static const struct tdt_task_info task = TASK(.id = 1);

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(tdt__x:2(b:3(c:4*)))", &task, 1);
	expect(PRINT(UTF8, .plumbing = 1, .full_paths = 1, .max_depth = 2),
	       "1 task: 1 answered\n\n"
	       "task 1 pending, 1 leaf\n"
	       "╼ a at /b/x.c:1\n"
	       " └╼ tdt__x at /b/x.c:2\n"
	       "    └╼ ... 2 frames and 1 leaf below\n\n");
}

TEST(groups_that_read_the_same_are_told_apart)
{
	struct tdt_task_info tasks[6] = { TASK(.id = 1, .name = "one"),
					  TASK(.id = 2),
					  TASK(.id = 3),
					  TASK(.id = 4),
					  TASK(.id = 5, .state = TDT_TASK_RUNNABLE),
					  TASK(.id = 6) };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(tdt_c:4(b:2*))", &tasks[0], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(b:2*)", &tasks[1], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(tdt_d:5(b:2*))", &tasks[2], 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "a:1(tdt_c:4(b:2*))", &tasks[3], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(tdt_c:4(b:2*))", &tasks[4], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1(tdt_c:4(b:3*))", &tasks[5], 1);
	expect(PRINT(ASCII),
	       "6 tasks: 5 answered, 1 as last watched\n\n"
	       "task 1 \"one\" pending, 1 leaf\n- a at x.c:1\n `- b at x.c:2\n\n"
	       "task 2 pending, 1 leaf\n- a at x.c:1\n `- b at x.c:2\n"
	       "   the calls that differ from those of task 1 \"one\" are not shown\n\n"
	       "task 3 pending, 1 leaf\n- a at x.c:1\n `- b at x.c:2\n"
	       "   the calls that differ from those of task 1 \"one\" are not shown\n\n"
	       "task 4 pending, 1 leaf, did not answer\n- a at x.c:1\n `- b at x.c:2\n\n"
	       "task 5 runnable, 1 leaf\n- a at x.c:1\n `- b at x.c:2\n\n"
	       "task 6 pending, 1 leaf\n- a at x.c:1\n `- b at x.c:3\n\n");
}

CASE(folded, .setup = begin, .teardown = end)

TEST(folded_stacks_count_tasks)
{
	dumped_expect(dumped_everything(), PRINT(FOLDED),
		      "a;a 1\n"
		      "b;b 1\n"
		      "tasks;conn;tdt_read 3\n"
		      "c;c 1\n"
		      "c;d 1\n"
		      "task 8;d 1\n"
		      "busy;busy 1\n"
		      "task 10;old 1\n");
}

TEST(tasks_of_one_name_are_folded_under_it)
{
	static const struct tdt_task_info tasks[2] = { TASK(.id = 1, .name = "a;b"),
						       TASK(.id = 2, .name = "a;b") };

	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1**(b:2*)", tasks, 2);
	expect(PRINT(FOLDED), "a:b;a 4\na:b;a;b 2\n");
}

CASE(size)

/* Looking for each name among all takes minutes, and so runs into the test's timeout. */
TEST(a_hundred_thousand_tasks_that_wait_for_each_other_are_printed)
{
	enum { N = 100000 };
	struct tdt_task_info *tasks = tasks_new(N);
	struct tdt_wait *waits = calloc(N, sizeof(*waits));
	const struct tdt_wait **list = calloc(N, sizeof(*list));
	struct tdt_snapshot_group *groups = calloc(N / 2 + 1, sizeof(*groups));
	const struct tdt_snapshot_group **grouped = calloc(N / 2 + 1, sizeof(*grouped));
	const struct tdt_task_info **pointers = calloc(N, sizeof(*pointers));
	struct tdt_snapshot snapshot = { .size = sizeof(snapshot), .tasks = N, .groups = grouped,
					 .n_groups = N / 2 + 1 };
	TRACE(trace, grow("a:1*"));

	ck_assert(waits != NULL && list != NULL && groups != NULL && grouped != NULL &&
		  pointers != NULL);
	for (uint64_t i = 0; i < N; i++) {
		waits[i] = (struct tdt_wait){ .kind = TDT_WAIT_TASK, .owner = N - i };
		list[i] = &waits[i];
		tasks[i].waits = &list[i];
		tasks[i].n_waits = 1;
		tasks[i].name = "x";
		pointers[i] = &tasks[i];
	}
	/* Half of them in one group, the others alone. */
	groups[0] = (struct tdt_snapshot_group){ .trace = trace, .tasks = pointers, .n = N / 2 };
	for (size_t i = 1; i <= N / 2; i++)
		groups[i] = (struct tdt_snapshot_group){
			.trace = trace, .tasks = &pointers[N / 2 + i - 1], .n = 1
		};
	for (size_t i = 0; i <= N / 2; i++)
		grouped[i] = &groups[i];
	SAYS(dumped_text(&snapshot, PRINT(ASCII)), "\n50,000 tasks pending ",
	     "   1 waits for task 50001 \"x\"\n", "   and for 49,992 more\n",
	     "\ntask 100000 \"x\" pending");
	free(dumped_text(&snapshot, PRINT(JSON)));
	free(pointers);
	free(groups);
	free(grouped);
	free(waits);
	free(list);
	free(tasks);
}

CASE(errors)

TEST(what_is_no_snapshot_is_refused)
{
	static const struct tdt_task_info task = TASK(.id = 1), no_size = { .id = 1 },
					   no_state = TASK(.state = (enum tdt_task_state)6);
	struct tdt_misuse misuse = { .size = sizeof(misuse),
				     .kind = TDT_MISUSE_ORDER,
				     .reason = "" };
	struct dumped *made = dumped_new();
	STREAM(file, fopen("/dev/null", "w"));

#define REFUSED(options, error)                                                                    \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(tdt_snapshot_print(&made->snapshot, file, options), error);       \
		ck_assert_int_eq(errno, -(error));                                                 \
	} while (0)

	ck_assert_int_eq(tdt_snapshot_print(NULL, file, NULL), -EINVAL);
	ck_assert_int_eq(tdt_snapshot_print(&made->snapshot, NULL, NULL), -EINVAL);
	REFUSED(&(struct tdt_dump_options){ 0 }, -EINVAL);
	REFUSED(PRINT(.format = (enum tdt_print_format)3), -EINVAL);
	made->snapshot.size = 0;
	REFUSED(NULL, -EINVAL);
	made->snapshot.size = sizeof(made->snapshot);
	dumped_group(made, TDT_ANSWER_FRESH, "a:1*", &no_size, 1);
	REFUSED(NULL, -EINVAL);
	*(const struct tdt_task_info **)(uintptr_t)made->groups[0].tasks = &no_state;
	REFUSED(NULL, -EINVAL);
	*(const struct tdt_task_info **)(uintptr_t)made->groups[0].tasks = &task;
	made->groups[0].n = 0;
	REFUSED(NULL, -EINVAL);
	made->groups[0].n = 1;
	made->groups[0].answer = (enum tdt_answer)4;
	REFUSED(NULL, -EINVAL);
	made->groups[0].answer = TDT_ANSWER_FRESH;
	ck_assert_int_eq(tdt_snapshot_print(&made->snapshot, file, NULL), 0);
	dumped_cycle(made, true, &task, 1);
	made->cycles[0].n_groups = 2; /* more than there are */
	REFUSED(NULL, -EINVAL);
	made->cycles[0].n_groups = 1;
	ck_assert_int_eq(tdt_snapshot_print(&made->snapshot, file, NULL), 0);
	made->cycles[0].deadlock = 0; /* only deadlocks have groups of their own */
	REFUSED(NULL, -EINVAL);
	dumped_cycle(made, true, &no_size, 1);
	made->cycles[0].deadlock = 1;
	REFUSED(NULL, -EINVAL);
	dumped_free(made);
	made = dumped_new();
	made->snapshot.misuse = &misuse;
	ck_assert_int_eq(tdt_snapshot_print(&made->snapshot, file, NULL), 0);
	misuse.kind = 0;
	REFUSED(NULL, -EINVAL);
	misuse.kind = TDT_MISUSE_ORDER;
	misuse.reason = NULL;
	REFUSED(NULL, -EINVAL);
	dumped_free(made);
}

TEST(a_full_disk_and_a_closed_pipe_are_told)
{
	struct dumped *made = dumped_everything();
	FILE *file = fopen("/dev/full", "w");
	int ends[2];

	if (file != NULL) {
		for (int format = TDT_PRINT_TEXT; format <= TDT_PRINT_FOLDED; format++)
			ck_assert_int_eq(
			    tdt_snapshot_print(&made->snapshot, file,
					       PRINT(.format = (enum tdt_print_format)format)),
			    -ENOSPC);
		fclose(file);
	}
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
	file = fdopen(ends[1], "w");
	ck_assert_fails(tdt_snapshot_print(&made->snapshot, file, NULL), EPIPE);
	fclose(file);
	dumped_free(made);
}

struct printing {
	struct dumped *dumped;
	const struct tdt_dump_options *options;
	char text[20000];
	FILE *file; /* that is `text` */
};

static void printing_begin(struct printing *printing)
{
	memset(printing, 0, sizeof(*printing));
	printing->dumped = dumped_everything();
	printing->file = fmemopen(printing->text, sizeof(printing->text), "w");
	ck_assert_ptr_nonnull(printing->file);
	setvbuf(printing->file, NULL, _IONBF, 0);
}

static void printing_end(struct printing *printing)
{
	fclose(printing->file);
	dumped_free(printing->dumped);
}

static int print_again(void *argument)
{
	struct printing *printing = argument;
	int err;

	rewind(printing->file);
	memset(printing->text, 0, sizeof(printing->text));
	err = tdt_snapshot_print(&printing->dumped->snapshot, printing->file, printing->options);
	/* What is cut short doesn't look whole. */
	if (err == -ENOMEM && printing->options->print->format == TDT_PRINT_JSON &&
	    strchr(printing->text, '\n') != NULL)
		return -EPROTO;
	return err;
}

TEST(every_allocation_may_fail)
{
	static struct printing printing;

	printing_begin(&printing);
	for (int format = TDT_PRINT_TEXT; format <= TDT_PRINT_FOLDED; format++) {
		printing.options = PRINT(.format = (enum tdt_print_format)format);
		no_memory_each(print_again, &printing, format == TDT_PRINT_JSON ? 4 : 20);
	}
	printing_end(&printing);
}

TEST(without_memory_the_rest_is_printed_and_what_is_missing_marked)
{
	static struct printing printing;
	int n, marked = 0;

	NEEDS_FAILING_MEMORY();
	printing_begin(&printing);
	printing.options = PRINT(ASCII);
	no_memory_begin(-1);
	print_again(&printing);
	n = no_memory_end();
	for (int first = 0; first < n; first++) {
		int err;

		no_memory_begin(first);
		err = print_again(&printing);
		no_memory_end();
		ck_assert_int_eq(err, -ENOMEM);
		marked += strstr(printing.text, "   no memory for the rest of this\n") != NULL;
	}
	ck_assert_int_ge(marked, n - 1);
	printing_end(&printing);
}
