// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/profile_ages, reader/profile_sum.  Tasks that wait known times at known places, the
 * ticks of a watch, and the looks of a profile are all made up, so nothing is left to chance but
 * what the seed says.
 */

#include <math.h>

#include "lib/test.h"
#include "reader/profile_sum.h"

#define MS 1000000

CASE(ages)

TEST(each_age_is_in_the_bin_that_begins_at_or_before_it)
{
	unsigned bin;

	for (uint64_t ns = 1; ns != 0; ns *= 2) {
		bin = tdt__age_bin(ns);
		ck_assert_uint_lt(bin, TDT__AGE_BINS);
		ck_assert_uint_le(tdt__age_begin(bin), ns);
		if (bin + 1 < TDT__AGE_BINS)
			ck_assert_uint_gt(tdt__age_begin(bin + 1), ns);
	}
	ck_assert_uint_eq(tdt__age_bin(0), 0);
	ck_assert_uint_eq(tdt__age_bin(UINT64_MAX), TDT__AGE_BINS - 1);
	for (bin = 0; bin < TDT__AGE_BINS; bin++)
		ck_assert_uint_eq(tdt__age_bin(tdt__age_begin(bin)), bin);
}

TEST(few_looks_are_one_cell)
{
	uint64_t looks[TDT__AGE_BINS] = { [3] = 10, [5] = 7, [9] = 20, [70] = 2 };

	ck_assert_uint_eq(tdt__age_cell(looks, 0), 6);
	ck_assert_uint_eq(tdt__age_cell(looks, 6), TDT__AGE_BINS);
	looks[9] = 2;
	ck_assert_uint_eq(tdt__age_cell(looks, 0), TDT__AGE_BINS);
}

TEST(trees_that_were_seen_too_often_at_an_age_count_for_less)
{
	static struct tdt__young_trees young;
	unsigned until = tdt__age_bin(64 * MS), early = tdt__age_bin(8 * MS),
		 late = tdt__age_bin(32 * MS);
	double scale[TDT__AGE_BINS], early_ns, late_ns;

	for (int i = 0; i < 300; i++)
		tdt__young_see(&young, 1, early, until);
	for (int i = 0; i < 100; i++)
		tdt__young_see(&young, 1, late, until);
	tdt__young_scale(&young, scale);
	early_ns = (double)tdt__age_begin(early + 1);
	late_ns = (double)tdt__age_begin(until) - early_ns;
	ck_assert_double_eq_tol(scale[early], 400 / 300.0 * early_ns / (early_ns + late_ns), 1e-9);
	ck_assert_double_eq_tol(scale[late], 400 / 100.0 * late_ns / (early_ns + late_ns), 1e-9);
}

TEST(with_few_looks_nothing_is_scaled)
{
	static struct tdt__young_trees young;
	double scale[TDT__AGE_BINS];

	for (unsigned i = 0; i < 15; i++)
		tdt__young_see(&young, 2.5, i, 60);
	tdt__young_scale(&young, scale);
	for (unsigned i = 0; i < TDT__AGE_BINS; i++)
		ck_assert_double_eq_tol(scale[i], 1, 1e-9);
}

static void add_waits(struct tdt__profile_sum *sum, uint32_t group, uint64_t age, int n)
{
	const struct tdt__profile_wait wait = { .ns = MS, .age = tdt__age_bin(age), .chance = 1 };

	for (int i = 0; i < n; i++)
		if (group != TDT__PROFILE_NONE)
			tdt__profile_add_wait(sum, group, &wait);
		else
			tdt__profile_add_stale(sum, 0, TDT_WAIT_TIMER, &wait);
}

CASE(waits)

TEST(stale_time_goes_where_waits_get_as_old)
{
	struct tdt__profile_sum sum;
	uint32_t brief, lasting;

	ck_assert_int_eq(tdt__profile_sum_init(&sum), 0);
	brief = tdt__profile_group(&sum, TDT__PROFILE_WAITING, TDT_WAIT_TIMER, 0, 1);
	lasting = tdt__profile_group(&sum, TDT__PROFILE_WAITING, TDT_WAIT_TIMER, 0, 2);
	add_waits(&sum, brief, 2 * MS, 30);
	add_waits(&sum, lasting, 2 * MS, 10);
	add_waits(&sum, lasting, 200 * MS, 20);
	add_waits(&sum, TDT__PROFILE_NONE, 2 * MS, 40);
	add_waits(&sum, TDT__PROFILE_NONE, 200 * MS, 100);
	ck_assert_int_eq(tdt__profile_conclude(&sum), 0);
	ck_assert_double_eq_tol(sum.group[brief].ns, 60.0 * MS, 1);
	ck_assert_double_eq_tol(sum.group[lasting].ns, (20.0 + 120) * MS, 1);
	ck_assert_double_eq_tol(sum.stale_ns, 140.0 * MS, 1);
	tdt__profile_sum_fini(&sum);
}

/* --- A program that is profiled ------------------------------------------------------------ */

enum place { CONSTANT, EXPONENTIAL, SHORT, BURST, REST, PLACES };

#define TASKS 600
#define TICK 139.0 /* ms */
#define SECONDS 60
#define HZ 19

/* Times in milliseconds. */
struct made_task {
	enum place kind, place;
	unsigned waits;
	double since, end; /* of the present wait */
	uint64_t polls;
	unsigned tick; /* in which it was captured last */
	struct {
		uint64_t polls;
		double when, chance;
		enum place place;
		unsigned young;
	} tree;
};

static struct {
	struct made_task task[TASKS];
	struct tdt__profile_sum sum;
	double waited[PLACES];  /* the truth */
	double weight[PLACES];  /* of fresh trees, without more ado */
	uint64_t stale;
	uint64_t random;
	bool cycles; /* short waits follow each other, beside tasks that rest for long */
} made;

static double make_random(void)
{
	made.random = made.random * 6364136223846793005u + 1442695040888963407u;
	return (double)(made.random >> 11) / (double)(UINT64_C(1) << 53);
}

static double length_at(enum place place)
{
	static const double of_cycle[PLACES] = { 1, 3, 40, 0, 10000 };

	if (made.cycles)
		return of_cycle[place];
	switch (place) {
	case CONSTANT:
		return 20;
	case EXPONENTIAL:
		return -log(1 - make_random()) * 30;
	case SHORT:
		return 4;
	case BURST:
		return 10;
	default:
		return 200;
	}
}

static void begin_wait(struct made_task *task, double now)
{
	bool rests = task->kind == BURST && task->waits % 11 == 10;

	task->place = rests ? REST : task->kind;
	if (made.cycles)
		task->place = task->kind == BURST ? REST : (enum place)(task->waits % 3);
	task->since = now;
	/* The first wait is of any length; and a task is polled a little late. */
	task->end = now + make_random() / 10 +
		    (task->waits == 0 ? make_random() * 300 : length_at(task->place));
	task->waits++;
}

static void capture(struct made_task *task, double now, double gap)
{
	task->tree.polls = task->polls;
	task->tree.when = now;
	task->tree.chance = gap < TICK ? gap / TICK : 1;
	task->tree.place = task->place;
	task->tree.young = gap < TICK ? tdt__age_bin((uint64_t)((TICK - gap) * MS)) : 0;
}

/* Poll the task as often as it is due until then. */
static void run_task(struct made_task *task, double until)
{
	while (task->end <= until) {
		double now = task->end, gap = now - task->since;

		made.waited[task->place] += gap;
		task->polls++;
		begin_wait(task, now);
		if (task->tick == (unsigned)(now / TICK))
			continue;
		task->tick = (unsigned)(now / TICK);
		capture(task, now, gap);
	}
}

static void look_at_task(struct made_task *task, double now)
{
	const double ns = 1e9 / HZ;
	bool fresh = task->tree.polls == task->polls;
	unsigned age = tdt__age_bin((uint64_t)((now - task->since) * MS)),
		 tree_age = tdt__age_bin((uint64_t)((now - task->tree.when) * MS));
	const struct tdt__profile_wait wait = { .ns = ns,
						.age = age,
						.chance = task->tree.chance,
						.young = tree_age < task->tree.young };

	if (wait.young)
		tdt__young_see(&made.sum.young[task->tree.place], ns / task->tree.chance, tree_age,
			       task->tree.young);
	if (!fresh) {
		tdt__profile_add_stale(&made.sum, 0, TDT_WAIT_TIMER, &wait);
		made.stale++;
		return;
	}
	tdt__profile_add_wait(&made.sum, task->place, &wait);
	made.weight[task->place] += 1 / task->tree.chance;
}

/* Groups and young trees have the numbers of their places. */
static void make_program(uint64_t seed)
{
	static const enum place kinds[] = { CONSTANT, CONSTANT, CONSTANT, CONSTANT, EXPONENTIAL,
					    EXPONENTIAL, EXPONENTIAL, EXPONENTIAL, SHORT, BURST,
					    BURST, BURST, BURST, BURST, BURST };

	memset(&made, 0, sizeof made);
	made.random = seed;
	ck_assert_int_eq(tdt__profile_sum_init(&made.sum), 0);
	for (uint32_t place = 0; place < PLACES; place++) {
		ck_assert_uint_eq(tdt__profile_group(&made.sum, TDT__PROFILE_WAITING,
						     TDT_WAIT_TIMER, 0, place), place);
		ck_assert_uint_eq(tdt__profile_young(&made.sum, 0, place), place);
	}
	for (unsigned i = 0; i < TASKS; i++) {
		made.task[i].kind = kinds[i % 15];
		begin_wait(&made.task[i], 0);
	}
}

static void run_program(double from, double until)
{
	memset(made.waited, 0, sizeof made.waited);
	for (int look = 0; look < SECONDS * HZ; look++) {
		double now = from + (look + make_random()) * 1000 / HZ;

		made.sum.look++;
		for (unsigned i = 0; i < TASKS; i++) {
			run_task(&made.task[i], now);
			look_at_task(&made.task[i], now);
		}
	}
	for (unsigned i = 0; i < TASKS; i++)
		run_task(&made.task[i], until);
}

/* By how many percentage points a place may be off, as the profile says. */
static double said_of(const struct tdt__profile_sum *sum)
{
	return 100 * sum->off_ns / sum->state_ns[TDT__PROFILE_WAITING];
}

/* How far the worst of the shares is off, in percentage points. */
static double worst_of(const double told[PLACES])
{
	double all_told = 0, all = 0, worst = 0;

	for (int i = 0; i < PLACES; i++) {
		all_told += told[i];
		all += made.waited[i];
	}
	for (int i = 0; i < PLACES; i++)
		worst = fmax(worst, 100 * fabs(told[i] / all_told - made.waited[i] / all));
	return worst;
}

TEST(each_place_is_right_to_one_point_with_most_trees_stale)
{
	double told[PLACES], worst = 0, worst_by_weight = 0;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		make_program(seed);
		for (unsigned i = 0; i < TASKS; i++)
			run_task(&made.task[i], 1000);
		run_program(1000, 1000 + SECONDS * 1000);
		ck_assert_uint_gt(made.stale, (uint64_t)(0.85 * TASKS * SECONDS * HZ));
		ck_assert_int_eq(tdt__profile_conclude(&made.sum), 0);
		for (int i = 0; i < PLACES; i++)
			told[i] = made.sum.group[i].ns;
		worst = fmax(worst, worst_of(told));
		worst_by_weight = fmax(worst_by_weight, worst_of(made.weight));
		tdt__profile_sum_fini(&made.sum);
	}
	ck_assert_double_lt(worst, 1);
	/* The weights alone leave more to chance. */
	ck_assert_double_gt(worst_by_weight, 1.5 * worst);
}

TEST(short_waits_in_a_cycle_are_as_right_as_the_profile_says)
{
	double told[PLACES];

	for (uint64_t seed = 1; seed <= 3; seed++) {
		make_program(seed);
		made.cycles = true;
		for (unsigned i = 0; i < TASKS; i++)
			run_task(&made.task[i], 1000);
		run_program(1000, 1000 + SECONDS * 1000);
		ck_assert_int_eq(tdt__profile_conclude(&made.sum), 0);
		for (int i = 0; i < PLACES; i++)
			told[i] = made.sum.group[i].ns;
		ck_assert_double_gt(said_of(&made.sum), 0);
		ck_assert_double_lt(worst_of(told), fmax(1.5, said_of(&made.sum)));
		tdt__profile_sum_fini(&made.sum);
	}
}
