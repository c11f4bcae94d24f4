// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/top_round, cli/top_press, cli/top_lines, cli/top_places, cli/top_screen.  Rounds that
 * are made here, compared and shown as text, and what keys do.
 */

#define NCURSES_NOMACROS 1
#include <curses.h>

#include "cli/top_lines.h"
#include "cli/top_look.h"
#include "cli/top_round.h"
#include "cli/top_screen.h"
#include "lib/test.h"
#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define SECOND UINT64_C(1000000000)

static struct top_round *last, *now;
static struct top_choice choice;
static struct tdt_print_options print = { .size = sizeof print,
					  .utf8 = TDT_PRINT_NO,
					  .color = TDT_PRINT_NO };

static void add_task(struct top_round *round, uint64_t id, const char *name, uint64_t polls)
{
	struct top_task *task = &round->task[round->n_tasks++];

	task->id = id;
	task->polls = polls;
	task->state_ns = 3 * SECOND;
	snprintf(task->name, sizeof task->name, "%s", name);
	snprintf(task->where, sizeof task->where, "f at a.c:1:1: read");
	round->n_matching = round->tasks = round->counts.waiting = round->n_tasks;
}

static void add_place(struct top_round *round, uint64_t key, uint64_t n)
{
	struct top_place *place = &round->place[round->n_places++];

	place->key = key;
	place->n = n;
	snprintf(place->text, sizeof place->text, "place %d", (int)key);
}

static void set_up(void)
{
	last = calloc(1, sizeof *last);
	now = calloc(1, sizeof *now);
	ck_assert_ptr_nonnull(last);
	ck_assert_ptr_nonnull(now);
	last->when = 10 * SECOND;
	now->when = 12 * SECOND;
	choice = (struct top_choice){ .interval = SECOND };
}

static void tear_down(void)
{
	free(last);
	free(now);
}

/* The screen as text, which the caller frees. */
static char *drawn(const struct top_round *round, unsigned width, unsigned height)
{
	const struct top_size size = { .width = width, .height = height, .screen = width != 0 };
	struct tdt__string text = { 0 };

	top_draw(&text, &choice, round, &size, &print);
	tdt__string_add(&text, "", 1);
	ck_assert(!text.failed);
	return text.bytes;
}

static void shows(const struct top_round *round, unsigned width, unsigned height,
		  const char *part)
{
	TEXT(text, drawn(round, width, height));

	ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text);
}

static void shows_not(const struct top_round *round, unsigned width, unsigned height,
		      const char *part)
{
	TEXT(text, drawn(round, width, height));

	ck_assert_msg(strstr(text, part) == NULL, "'%s' in:\n%s", part, text);
}

CASE(top, .setup = set_up, .teardown = tear_down, .timeout = 60)

TEST(the_first_round_has_no_rates)
{
	now->counts.polls = 100;
	add_task(now, 1, "a", 5);
	add_place(now, 1, 5);
	top_round_take(now, NULL);
	ck_assert(!now->has_rates);
	ck_assert_double_lt(now->task[0].rate, 0);
	ck_assert_int_eq(now->place[0].more, 0);
}

TEST(rates_are_of_the_time_between_two_rounds)
{
	last->counts.polls = 100;
	last->counts.spawned = 10;
	now->counts.polls = 300;
	now->counts.spawned = 11;
	add_task(last, 7, "a", 4);
	add_task(now, 8, "b", 9);
	add_task(now, 7, "a", 10);
	top_round_take(now, last);
	ck_assert_double_eq(now->poll_rate, 100);
	ck_assert_double_eq(now->spawn_rate, 0.5);
	ck_assert_double_lt(now->task[0].rate, 0);
	ck_assert_double_eq(now->task[1].rate, 3);
}

TEST(a_count_that_goes_back_is_no_rate)
{
	last->counts.polls = 100;
	now->counts.polls = 50;
	top_round_take(now, last);
	ck_assert_double_eq(now->poll_rate, 0);
}

TEST(places_are_compared_by_their_keys)
{
	add_place(last, 1, 5);
	add_place(last, 2, 9);
	add_place(now, 2, 4);
	add_place(now, 3, 2);
	add_place(now, 1, 6);
	top_round_take(now, last);
	ck_assert_int_eq(now->place[0].more, -5);
	ck_assert_int_eq(now->place[1].more, 2);
	ck_assert_int_eq(now->place[2].more, 1);
}

/* The place of a task whose tree begins with `n` calls; -1: no tree is known. */
static void expect_place_of(int n, struct tdt_task_info info, const char *expected)
{
	const struct options options = { .print = print };
	const struct top_look look = { .options = &options, .round = now };
	const struct outside outside = { .n_found = 0 };
	struct tdt__stacks *stacks = n >= 0 ? tdt__stacks_new(2) : NULL;
	const struct tdt_task_info *infos[] = { &info };
	struct tdt_snapshot_group group = { .size = sizeof group, .tasks = infos, .n = 1 };
	const struct tdt_snapshot_group *groups[] = { &group };
	const struct tdt_snapshot snapshot = { .groups = groups, .n_groups = 1 };
	struct top_places *places;

	for (int i = 0; i < n; i++) {
		const char name[] = { (char)('a' + i), '\0' };
		uintptr_t pc = tdt__named_add(&stacks->named, name, "x.c", 4, 0);

		stacks->frames[i] = (struct tdt__recorded){ .frame.pc = pc,
							    .parent = TDT__PARENT_TOP,
							    .leaves = 1 };
		stacks->n++;
		stacks->leaves++;
	}
	if (stacks != NULL) {
		stacks->modules = tdt__modules_new(0);
		group.trace = tdt__trace_of(&info, stacks);
	}
	*now = (struct top_round){ 0 };
	places = top_places_find(&look, &outside, &snapshot);
	ck_assert_ptr_nonnull(places);
	ck_assert_str_eq(top_places_text(places, 0, &info), expected);
	top_places_free(places);
	tdt_trace_free((struct tdt_trace *)(uintptr_t)group.trace);
}

TEST(a_place_without_a_way_says_why)
{
	const struct tdt_task_info task = { .size = sizeof task, .file = "x.c", .line = 9 };
	struct tdt_task_info late = task;

	expect_place_of(1, task, "a at x.c:4");
	expect_place_of(-1, task, "(no tree), spawned at x.c:9");
	expect_place_of(0, task, "(no leaves)");
	expect_place_of(2, task, "several");
	late.polls_since = 1;
	expect_place_of(0, late, "(older tree) (no leaves)");
}

TEST(the_cpu_time_of_a_thread_becomes_a_share)
{
	last->n_threads = now->n_threads = 2;
	last->thread[0].id = now->thread[0].id = 5;
	last->thread[1].id = now->thread[1].id = 6;
	last->thread[0].cpu_ns = SECOND;
	now->thread[0].cpu_ns = 2 * SECOND;
	now->thread[1].cpu_ns = SECOND; /* unknown before */
	top_round_take(now, last);
	ck_assert_double_eq(now->thread[0].cpu, 0.5);
	ck_assert_double_lt(now->thread[1].cpu, 0);
}

TEST(a_round_that_lies_can_be_shown)
{
	memset(now, 0xff, sizeof *now);
	top_round_take(now, last);
	ck_assert_uint_eq(now->n_tasks, TOP_TASKS);
	ck_assert_uint_eq(now->n_places, TOP_PLACES);
	ck_assert_uint_lt(strlen(now->task[0].name), TOP_TEXT);
	for (int view = 0; view < TOP_VIEWS; view++) {
		choice.question.view = (enum top_view)view;
		free(drawn(now, 80, 24));
	}
	choice.question.open = true;
	free(drawn(now, 80, 24));
}

TEST(control_characters_do_not_get_through)
{
	add_task(now, 1, "a\033]0;b", 1);
	strcpy(now->tree, "x\033[2Jy\x9b" "2Jz\302\233" "2J\n");
	now->tree_size = strlen(now->tree);
	now->is_there = true;
	top_round_take(now, last);
	shows(now, 80, 24, "a?]0;b");
	choice.question.open = true;
	shows(now, 80, 24, "x?[2Jy?2Jz?2J");
	shows_not(now, 80, 24, "\033[2J");
}

/* The copyright sign; an end of writing from right to left; and what is no UTF-8. */
TEST(only_characters_that_the_terminal_knows_get_through)
{
	add_task(now, 1, "a\302\251b\342\200\256c\300d\342\202", 1);
	top_round_take(now, last);
	shows(now, 80, 24, "a?b?c?d?? ");
	print.utf8 = TDT_PRINT_YES;
	shows(now, 80, 24, "a\302\251b?c?d?? ");
	print.utf8 = TDT_PRINT_NO;
}

TEST(histograms_count_by_powers_of_two)
{
	struct top_histogram histogram = { 0 };

	for (int i = 0; i < 99; i++)
		top_histogram_add(&histogram, 999);
	top_histogram_add(&histogram, 5000);
	top_histogram_add(&histogram, UINT64_MAX);
	ck_assert_uint_eq(histogram.n[0], 99);
	ck_assert_uint_eq(histogram.n[3], 1); /* from 4 us to 8 us */
	ck_assert_uint_eq(histogram.n[TOP_BUCKETS - 1], 1);
	ck_assert_uint_eq(top_histogram_share(&histogram, 0.5), 1000);
	ck_assert_uint_eq(top_histogram_share(&histogram, 0.99), 8000);
	ck_assert_uint_eq(top_histogram_share(&histogram, 1), UINT64_MAX);
}

TEST(a_share_is_not_above_the_longest)
{
	struct top_histogram histogram = { 0 };

	ck_assert_uint_eq(top_histogram_share(&histogram, 0.5), 0);
	top_histogram_add(&histogram, 4100);
	ck_assert_uint_eq(top_histogram_share(&histogram, 0.5), 4100);
}

/* --- The screen --------------------------------------------------------------------- */

/* Each line is `width` columns wide at most, and they are `height` at most; all in ASCII. */
static void fits(const struct top_round *round, unsigned width, unsigned height)
{
	char *text = drawn(round, width, height), *line = text, *end;
	unsigned lines = 0;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
		size_t columns = (size_t)(end - line);

		if (strncmp(line, TOP_REVERSE, strlen(TOP_REVERSE)) == 0)
			columns -= strlen(TOP_REVERSE) + strlen("\033[0m");
		ck_assert_msg(columns <= width, "%u columns: %s", width, line);
	}
	ck_assert_uint_eq(lines, height);
	free(text);
}

TEST(every_view_fits_every_size)
{
	static const unsigned sizes[][2] = { { 80, 24 }, { 132, 40 }, { 40, 10 }, { 20, 5 } };

	for (uint64_t i = 1; i <= 100; i++) {
		add_task(now, i, "a task with a name that is far too long for any screen", i);
		add_place(now, i, 101 - i);
	}
	now->n_threads = 100;
	now->n_rings = TOP_RINGS;
	memset(now->ring[0], 'x', TOP_TEXT - 1);
	now->times.there = true;
	for (unsigned i = 0; i < TOP_BUCKETS; i++)
		now->times.polls.n[i] = i;
	top_round_take(now, last);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int view = 0; view < TOP_VIEWS; view++) {
			choice.question.view = (enum top_view)view;
			fits(now, sizes[i][0], sizes[i][1]);
			choice.help = true;
			fits(now, sizes[i][0], sizes[i][1]);
			choice.help = false;
		}
}

TEST(a_window_that_is_too_small_says_so)
{
	shows(now, 19, 24, "too small");
	shows(now, 80, 4, "too small");
	shows_not(now, 20, 5, "too small");
}

TEST(before_the_first_round_it_reads)
{
	shows(NULL, 80, 24, "reading...");
	strcpy(choice.trouble, "no process");
	shows(NULL, 80, 24, "no process");
}

TEST(the_selected_row_is_on_the_screen)
{
	for (uint64_t i = 1; i <= 100; i++)
		add_task(now, i, "name", i);
	top_round_take(now, last);
	shows_not(now, 80, 24, "    100 name");
	top_press(&choice, KEY_END, now);
	shows(now, 80, 24, "    100 name");
}

TEST(text_that_is_not_for_a_screen_is_not_cut)
{
	add_task(now, 1, "a", 1);
	memset(now->task[0].where, 'w', TOP_TEXT - 2);
	now->task[0].where[TOP_TEXT - 2] = 'Z';
	top_round_take(now, last);
	shows(now, 0, 40, "wwwZ\n");
	shows(now, 80, 24, "www>\033[0m\n");
	shows_not(now, 0, 40, TOP_REVERSE);
}

TEST(a_deadlock_is_red_if_there_are_colors)
{
	add_task(now, 1, "a", 1);
	now->task[0].deadlock = true;
	top_round_take(now, last);
	shows_not(now, 0, 40, "\033[31m");
	print.color = TDT_PRINT_YES;
	shows(now, 0, 40, "\033[31mwaiting");
	print.color = TDT_PRINT_NO;
}

TEST(a_cut_counts_columns_and_keeps_colors)
{
	struct tdt__string text = { 0 };
	const char line[] = "\033[31mab\xc3\xa4" "de\033[0m";

	top_cut(&text, line, strlen(line), 4, true);
	tdt__string_add(&text, "", 1);
	ck_assert_str_eq(text.bytes, "\033[31mab\xc3\xa4\xe2\x80\xa6\033[0m");
	tdt__string_free(&text);
}

TEST(what_the_process_does_is_said)
{
	now->state = 'T';
	shows(now, 80, 24, "stopped");
	choice.ended = true;
	shows(now, 80, 24, "it has ended");
	choice.question.open = true;
	choice.question.id = 9;
	shows(now, 80, 24, "task 9 is not there");
}

TEST(without_a_recording_there_are_no_times)
{
	choice.question.view = TOP_VIEW_TIMES;
	shows(now, 80, 24, "reading the recording");
	strcpy(now->times.trouble, "never recorded");
	shows(now, 80, 24, "never recorded");
	now->times.there = true;
	top_histogram_add(&now->times.polls, 5000);
	shows(now, 80, 24, "8.000 us         1 ##############");
}

TEST(on_a_low_screen_a_row_has_several_buckets)
{
	choice.question.view = TOP_VIEW_TIMES;
	now->times.there = true;
	top_histogram_add(&now->times.polls, 999);
	top_histogram_add(&now->times.polls, 1999);
	top_histogram_add(&now->times.polls, UINT64_MAX);
	shows(now, 80, 50, "1.000 us         1 ##############");
	shows(now, 80, 50, "longer         1 ##############");
	shows(now, 80, 24, "     2 ##############");
	shows(now, 80, 24, "longer         1 #######");
}

/* --- Keys --------------------------------------------------------------------------- */

TEST(enter_opens_a_task_and_escape_closes_it)
{
	add_task(now, 1, "a", 1);
	add_task(now, 5, "b", 1);
	top_press(&choice, KEY_DOWN, now);
	top_press(&choice, KEY_ENTER, now);
	ck_assert(choice.question.open && choice.anew);
	ck_assert_uint_eq(choice.question.id, 5);
	top_press(&choice, KEY_LEFT, now);
	ck_assert(!choice.question.open);
	top_follow(&choice, now);
	ck_assert_uint_eq(choice.at, 1);
}

TEST(o_goes_to_the_holder_and_escape_comes_back)
{
	add_task(now, 1, "a", 1);
	top_press(&choice, KEY_ENTER, now);
	top_press(&choice, 'o', now);
	ck_assert_uint_eq(choice.question.id, 1);
	now->holder = 2;
	for (int i = 0; i < 2 * TOP_OPENED; i++)
		top_press(&choice, 'o', now);
	ck_assert_uint_eq(choice.question.id, 2);
	for (int i = 0; i < TOP_OPENED; i++) {
		ck_assert(choice.question.open);
		top_press(&choice, KEY_LEFT, now);
	}
	ck_assert(choice.question.open);
	top_press(&choice, KEY_LEFT, now);
	ck_assert(!choice.question.open);
}

TEST(the_selected_task_is_followed)
{
	add_task(last, 1, "a", 1);
	add_task(last, 2, "b", 1);
	add_task(now, 3, "c", 1);
	add_task(now, 1, "a", 1);
	add_task(now, 2, "b", 1);
	top_press(&choice, KEY_DOWN, last);
	top_follow(&choice, now);
	ck_assert_uint_eq(choice.at, 2);
	now->n_tasks = 1;
	top_follow(&choice, now);
	ck_assert_uint_eq(choice.at, 0);
}

TEST(a_filter_is_typed)
{
	top_press(&choice, '/', now);
	ck_assert(choice.typing);
	top_press(&choice, 'q', now);
	top_press(&choice, '2', now);
	top_press(&choice, 'x', now);
	top_press(&choice, KEY_BACKSPACE, now);
	ck_assert_str_eq(choice.question.filter, "q2");
	shows(now, 80, 24, "filter: q2_");
	top_press(&choice, KEY_ENTER, now);
	ck_assert(!choice.typing && !choice.quit);
	for (int i = 0; i < 200; i++) {
		choice.typing = true;
		top_press(&choice, 'y', now);
	}
	ck_assert_uint_eq(strlen(choice.question.filter), sizeof choice.question.filter - 1);
	top_press(&choice, KEY_LEFT, now);
	ck_assert_str_eq(choice.question.filter, "");
}

TEST(keys_change_the_question)
{
	top_press(&choice, '>', now);
	ck_assert_int_eq(choice.question.sort, TOP_BY_FOR);
	top_press(&choice, '<', now);
	top_press(&choice, '<', now);
	ck_assert_int_eq(choice.question.sort, TOP_BY_ID);
	top_press(&choice, 'r', now);
	ck_assert(choice.question.reverse);
	top_press(&choice, 's', now);
	ck_assert_int_eq(choice.question.only, TOP_ONLY_WAITING);
	top_press(&choice, '4', now);
	ck_assert_int_eq(choice.question.view, TOP_VIEW_TIMES);
	top_press(&choice, '\t', now);
	ck_assert_int_eq(choice.question.view, TOP_VIEW_TASKS);
	ck_assert(choice.anew);
}

TEST(other_keys_do_what_the_help_says)
{
	top_press(&choice, '?', now);
	shows(now, 80, 24, "any key: back");
	top_press(&choice, 'x', now);
	ck_assert(!choice.help);
	top_press(&choice, ' ', now);
	shows(now, 80, 24, "paused");
	top_press(&choice, ' ', now);
	ck_assert(!choice.paused);
	top_press(&choice, '+', now);
	ck_assert_uint_eq(choice.interval, SECOND / 2);
	for (int i = 0; i < 20; i++)
		top_press(&choice, '-', now);
	ck_assert_uint_le(choice.interval, 60 * SECOND);
	top_press(&choice, 'q', now);
	ck_assert(choice.quit);
}

TEST(keys_before_the_first_round_do_no_harm)
{
	static const int keys[] = { KEY_UP, KEY_DOWN,  KEY_END, KEY_ENTER,
				    'o',	KEY_LEFT, KEY_MOUSE, 's' };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		top_press(&choice, keys[i], NULL);
	ck_assert(!choice.question.open && !choice.quit);
}

/* --- Memory ------------------------------------------------------------------------- */

static int draw_a_screen(void *arg)
{
	const struct top_size size = { .width = 80, .height = 24, .screen = true };
	struct tdt__string text = { 0 };
	bool failed;

	top_draw(&text, &choice, now, &size, &print);
	failed = text.failed;
	tdt__string_free(&text);
	return failed ? -ENOMEM : 0;
}

TEST(without_memory_the_screen_says_that_it_failed)
{
	NOT_TRIED_IF(!no_memory_possible(), "allocations can't be made to fail here");
	now->when = last->when + 1;
	no_memory_each(draw_a_screen, NULL, 2);
}
