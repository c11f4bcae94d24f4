// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/profile, reader/profile_places, reader/profile_recorded, tree-printer/pprof.  Looks
 * at records and trees that were made up in this process, so that it is known what each look finds;
 * and a recording that was made up.
 */

#include <zlib.h>

#include "base/clock.h"
#include "lib/recording_maker.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/profile.h"
#include "reader/profile_places.h"
#include "reader/profile_recorded.h"
#include "recording/read.h"
#include "symbolize/modules.h"
#include "tree-printer/pprof.h"

#define MANY 500 /* more than the lists that two looks read */
#define MS 1000000.0

/* --- A registry with some tasks ------------------------------------------------------------ */

struct made_tree {
	struct tdt_registry_watched head;
	struct {
		struct tdt_registry_tree tree;
		struct tdt_registry_entry entry[4];
	} tree[2];
};

static struct {
	struct tdt_registry registry;
	struct tdt_registry_slab slab;
	struct tdt_task_record record[MANY];
	struct made_tree tree[MANY];
} made;

static struct tdt__target target;
static struct tdt__images images;
static struct tdt__profile *profile;

/* Functions of this program, at whose addresses tasks wait. */
static __attribute__((noinline)) void shop(void)
{
	made.slab.room++;
}

static __attribute__((noinline)) void bank(void)
{
	made.slab.room--;
}

static __attribute__((noinline)) void customer(void)
{
	made.slab.room ^= 1;
}

static uint64_t address_of(void (*function)(void))
{
	return (uint64_t)(uintptr_t)function + 1;
}

static void make_registry(void)
{
	memset(&made, 0, sizeof made);
	made.registry = (struct tdt_registry){ .self = (uintptr_t)&made.registry,
					       .slabs = (uintptr_t)&made.slab,
					       .record_size = sizeof made.record[0],
					       .stride = sizeof made.record[0] };
	made.slab = (struct tdt_registry_slab){ .records = (uintptr_t)made.record, .room = MANY };
}

/* A task that was polled twice, and that waits since the second poll. */
static struct tdt_task_record *make_task(uint32_t number, const char *name)
{
	struct tdt_task_record *record = &made.record[number];

	*record = (struct tdt_task_record){ .id = number + 1,
					    .seq = 2,
					    .state = TDT_TASK_RECORD_IDLE,
					    .polls = 2,
					    .stack_top = 0x7000,
					    .since = 1000,
					    .poll = (uintptr_t)customer,
					    .tree = (uintptr_t)&made.tree[number] };
	strcpy(record->name, name);
	if (made.slab.used <= number)
		made.slab.used = number + 1;
	made.tree[number].head.room = 4;
	return record;
}

/* The task's last tree: a leaf in each of the two functions, of the poll with that number. */
static void make_tree(uint32_t number, uint64_t polls, void (*one)(void), void (*other)(void))
{
	struct made_tree *made_tree = &made.tree[number];
	uint32_t at = ++made_tree->head.published % 2, n = 0;

	made_tree->tree[at].tree = (struct tdt_registry_tree){
		.polls = polls, .when = 1000, .gap = 1000, .tick = 1000
	};
	made_tree->tree[at].entry[n++] = (struct tdt_registry_entry){
		.pc = address_of(customer), .parent = TDT_REGISTRY_TOP
	};
	made_tree->tree[at].entry[n++] = (struct tdt_registry_entry){
		.pc = address_of(one), .parent = 0, .leaves = 1
	};
	if (other != NULL)
		made_tree->tree[at].entry[n++] = (struct tdt_registry_entry){
			.pc = address_of(other), .parent = 0, .leaves = 1
		};
	made_tree->tree[at].tree.n = n;
	made_tree->tree[at].tree.leaves = n - 1;
}

/* A task that waits in that function, as its last tree says. */
static void make_waiting(uint32_t number, const char *name, void (*place)(void))
{
	make_task(number, name);
	make_tree(number, 2, place, NULL);
}

/* The gap before the poll of the task's last tree, of a tick of 1000 ns. */
static void set_gap(uint32_t number, uint64_t gap)
{
	made.tree[number].tree[made.tree[number].head.published % 2].tree.gap = gap;
}

/* The task's last tree stays young for as long as the test lasts: its poll is yet to come. */
static void make_young(uint32_t number)
{
	struct tdt_registry_tree *tree =
		&made.tree[number].tree[made.tree[number].head.published % 2].tree;

	tree->when = made.record[number].since = tdt__clock() + 3600 * TDT__SECOND;
	tree->gap = 50 * TDT__SECOND;
	tree->tick = 100 * TDT__SECOND;
}

static void open_profile(void)
{
	const struct tdt__places places = { 0 };
	struct tdt__found found = { .registry = made.registry };
	struct tdt__trouble trouble;

	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
	ck_assert_int_eq(tdt__images_init(&images, &target, &places), 0);
	profile = malloc(sizeof *profile);
	ck_assert_ptr_nonnull(profile);
	ck_assert_int_eq(tdt__profile_begin(profile, &target, &images, &found), 0);
	profile->watched_from = 0;
}

static void close_profile(void)
{
	tdt__profile_end(profile);
	free(profile);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

static void look(double ns)
{
	ck_assert_int_eq(tdt__profile_look(profile, ns), 0);
}

/* The group of the tasks of that name in that state, with or without a tree; NULL: none. */
static const struct tdt__profile_group *group_of(const char *name, enum tdt__profile_state state,
						 bool tree)
{
	const struct tdt__profile_sum *sum = &profile->sum;

	for (size_t i = 0; i < sum->n; i++)
		if (sum->group[i].state == state &&
		    strcmp(tdt__profile_name_of(sum, sum->group[i].name), name) == 0 &&
		    (sum->group[i].tree != TDT__PROFILE_NONE) == tree)
			return &sum->group[i];
	return NULL;
}

static double time_of(const char *name, enum tdt__profile_state state, bool tree)
{
	const struct tdt__profile_group *group = group_of(name, state, tree);

	return group != NULL ? group->ns : 0;
}

#define ck_assert_ns(a, b) ck_assert_double_eq_tol(a, b, 1)

CASE(looks, .setup = make_registry, .teardown = close_profile)

TEST(a_task_counts_once_in_each_look)
{
	make_waiting(0, "one leaf", shop);
	make_task(1, "two leaves");
	make_tree(1, 2, shop, bank);
	open_profile();
	look(5 * MS);
	look(7 * MS);
	ck_assert_uint_eq(profile->found, 4);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("one leaf", TDT__PROFILE_WAITING, true), 12 * MS);
	ck_assert_ns(time_of("two leaves", TDT__PROFILE_WAITING, true), 12 * MS);
	ck_assert_ns(profile->sum.state_ns[TDT__PROFILE_WAITING], 24 * MS);
}

TEST(states_are_told_apart)
{
	make_task(0, "woken");
	made.record[0].woken = 1500;
	made.record[0].woken_polls = 2;
	make_task(1, "over")->state = TDT_TASK_RECORD_ENDED;
	make_task(2, "in a poll")->state = TDT_TASK_RECORD_POLLING;
	make_task(3, "being made")->seq = 3;
	open_profile();
	look(MS);
	ck_assert_uint_eq(profile->found, 2);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("woken", TDT__PROFILE_RUNNABLE, true), MS);
	ck_assert_ns(time_of("in a poll", TDT__PROFILE_POLLING, true), MS);
	ck_assert_ns(profile->sum.state_ns[TDT__PROFILE_WAITING], 0);
}

/* Its poll function is one of the library, and it has no stack of its own. */
TEST(a_task_without_a_future_has_no_place_while_it_runs)
{
	struct tdt_task_record *record = make_task(0, "callback");

	record->state = TDT_TASK_RECORD_POLLING;
	record->stack_top = 0;
	open_profile();
	look(MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("callback", TDT__PROFILE_POLLING, false), MS);
}

TEST(a_tree_counts_only_for_the_wait_that_it_is_of)
{
	make_waiting(0, "waits", shop);
	open_profile();
	look(MS);
	made.record[0].polls = 3; /* and was not captured */
	look(MS);
	look(MS);
	look(MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(profile->sum.stale_ns, 3 * MS);
	/* What is stale is distributed to what is fresh. */
	ck_assert_ns(time_of("waits", TDT__PROFILE_WAITING, true), 4 * MS);
	ck_assert_ns(profile->sum.unknown_ns, 0);
}

TEST(a_tree_that_comes_late_is_found)
{
	make_task(0, "waits");
	make_tree(0, 1, bank, NULL);
	open_profile();
	look(MS);
	make_tree(0, 2, shop, NULL); /* it was just being written */
	look(MS);
	ck_assert_uint_eq(group_of("waits", TDT__PROFILE_WAITING, true)->looks, 1);
}

TEST(all_lists_are_read_in_the_end)
{
	const void *const frames[] = { (const void *)(uintptr_t)address_of(shop) };
	static struct tdt_leaf list[MANY];

	for (uint32_t i = 0; i < MANY; i++) {
		list[i] = (struct tdt_leaf){ .kind = TDT_LEAF_PCS, .n = 1, .frames = frames,
					     .task = i + 1, .polls = 2 };
		make_task(i, "at a list")->leaf = (uintptr_t)&list[i];
	}
	open_profile();
	for (int i = 0; i < 4; i++)
		look(MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_uint_eq(group_of("at a list", TDT__PROFILE_WAITING, true)->looks,
			  200 + 400 + MANY + MANY);
}

TEST(a_wait_that_is_rarely_captured_counts_for_more)
{
	bool shop_first;

	make_waiting(0, "worker 1", shop);
	make_waiting(1, "worker 2", bank);
	set_gap(1, 250); /* so one of four such waits has a fresh tree */
	make_task(2, "worker 3");
	make_tree(2, 1, shop, NULL);
	make_task(3, "worker 4");
	make_tree(3, 1, shop, NULL);
	open_profile();
	look(5 * MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_uint_eq(profile->sum.n, 2); /* "worker *" at two places */
	shop_first = profile->sum.group[0].ns < profile->sum.group[1].ns;
	for (size_t i = 0; i < profile->sum.n; i++) {
		const struct tdt__profile_group *group = &profile->sum.group[i];

		ck_assert_str_eq(tdt__profile_name_of(&profile->sum, group->name), "worker *");
		ck_assert_ns(group->ns, (i == 0) == shop_first ? 4 * MS : 16 * MS);
	}
	ck_assert_ns(profile->sum.stale_ns, 10 * MS);
}

TEST(a_young_tree_is_seen_also_when_its_wait_is_over)
{
	const struct tdt__young_trees *young;

	make_waiting(0, "waits", shop);
	make_young(0);
	made.record[0].polls = 3;
	open_profile();
	look(MS);
	made.record[0].state = TDT_TASK_RECORD_POLLING;
	look(MS);
	ck_assert_uint_eq(profile->sum.n_young, 1);
	young = &profile->sum.young[0];
	ck_assert_uint_eq(young->looks[0], 2);
	ck_assert_double_eq_tol(young->weight[0], 2 * 2 * MS, 1); /* every other one is captured */
	ck_assert_double_eq_tol(young->until[TDT__AGE_BINS - 1], 2 * 2 * MS, 1);
}

TEST(a_requested_poll_says_nothing_of_the_watch)
{
	make_waiting(0, "waits", shop);
	make_young(0);
	made.record[0].since -= 1; /* it has waited since then, as it did before the request */
	open_profile();
	look(MS);
	ck_assert_uint_eq(profile->sum.n_young, 0);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("waits", TDT__PROFILE_WAITING, true), MS);
}

TEST(a_wait_from_before_the_watch_has_no_place)
{
	make_task(0, "waits");
	make_tree(0, 1, shop, NULL);
	open_profile();
	profile->watched_from = 1000;
	look(MS);
	made.record[0].since = 1001; /* and no longer */
	look(MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("waits", TDT__PROFILE_WAITING, false), 2 * MS);
	ck_assert_ns(profile->sum.unknown_ns, 2 * MS);
	ck_assert_uint_eq(profile->sum.n_strata, 1);
}

TEST(another_task_in_the_same_record_is_another_task)
{
	make_waiting(0, "first", shop);
	open_profile();
	look(MS);
	make_task(0, "second")->id = 77;
	made.record[0].seq = 4;
	make_tree(0, 2, bank, NULL);
	look(MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	ck_assert_ns(time_of("first", TDT__PROFILE_WAITING, true), MS);
	ck_assert_ns(time_of("second", TDT__PROFILE_WAITING, true), MS);
}

TEST(what_a_task_waits_for_is_kept_apart)
{
	make_waiting(0, "waits", shop);
	made.record[0].wait_count = 1;
	made.record[0].wait_polls = 2;
	made.record[0].wait_kind = TDT_WAIT_TIMER;
	open_profile();
	look(MS);
	ck_assert_int_eq(group_of("waits", TDT__PROFILE_WAITING, true)->kind, TDT_WAIT_TIMER);
}

TEST(damaged_records_end_a_look)
{
	make_task(0, "waits");
	made.slab.next = (uintptr_t)&made.slab;
	open_profile();
	look(MS);
	ck_assert(profile->damaged);
	made.slab.next = 0;
	made.registry.stride = profile->tasks.registry.stride += 4;
	profile->damaged = false;
	look(MS);
	ck_assert(profile->damaged);
}

TEST(a_task_without_a_name_is_known_by_its_place)
{
	static const char file[] = "src/main.rs";

	make_task(0, "")->file = (uintptr_t)file;
	made.record[0].line = 88;
	open_profile();
	look(MS);
	ck_assert_str_eq(tdt__profile_name_of(&profile->sum, 0), "spawned at main.rs:88");
}

TEST(or_by_the_function_that_it_began_with)
{
	static const struct tdt_registry_fiber fiber = { .entry = (uintptr_t)shop };
	static const char file[] = "src/main.rs";

	make_task(0, "")->file = (uintptr_t)file;
	made.record[0].child_state = (uintptr_t)&fiber;
	made.record[0].poll = 0;
	made.registry.fiber_size = sizeof fiber;
	open_profile();
	look(MS);
	tdt__profile_open_images(&profile->sum, &images);
	tdt__profile_name_entries(&profile->sum, images.table, tdt__clock() + 60 * TDT__SECOND);
	ck_assert_str_eq(tdt__profile_name_of(&profile->sum, 0), "shop");
}

static void two_tasks(void)
{
	make_registry();
	make_waiting(0, "one leaf", shop);
	make_task(1, "two leaves");
	make_tree(1, 2, shop, bank);
	open_profile();
	look(10 * MS);
	ck_assert_int_eq(tdt__profile_conclude(&profile->sum), 0);
	tdt__profile_open_images(&profile->sum, &images);
}

static double time_at(const struct tdt__profile_places *places, const char *name,
		      const char *function)
{
	for (size_t i = 0; i < places->n; i++) {
		const struct tdt__profile_place *place = &places->place[i];
		const struct tdt_frame *frame = tdt_node_frame(place->leaf);

		if (strcmp(tdt__profile_name_of(&profile->sum, place->group->name), name) == 0 &&
		    frame->function != NULL && strcmp(frame->function, function) == 0)
			return place->ns;
	}
	return 0;
}

CASE(places)

TEST(leaves_share_the_time_of_their_task)
{
	struct tdt__profile_places places;

	two_tasks();
	ck_assert_int_eq(tdt__profile_places_find(&places, &profile->sum,
						  tdt__clock() + 60 * TDT__SECOND), 0);
	ck_assert_uint_eq(places.n, 3);
	ck_assert_ns(places.place[0].ns, 10 * MS);
	ck_assert_ns(time_at(&places, "one leaf", "shop"), 10 * MS);
	ck_assert_ns(time_at(&places, "two leaves", "shop"), 5 * MS);
	ck_assert_ns(time_at(&places, "two leaves", "bank"), 5 * MS);
	tdt__profile_places_fini(&places);
	close_profile();
}

/* --- Memory and pprof ---------------------------------------------------------------------- */

static int profile_all(void *unused)
{
	struct tdt__found found = { .registry = made.registry };
	struct tdt__profile_places places;
	int error = tdt__profile_begin(profile, &target, &images, &found);

	if (error != 0)
		return error;
	profile->watched_from = 0;
	error = tdt__profile_look(profile, MS);
	if (error == 0)
		error = tdt__profile_conclude(&profile->sum);
	if (error == 0)
		error = tdt__profile_places_find(&places, &profile->sum, UINT64_MAX);
	if (error == 0)
		tdt__profile_places_fini(&places);
	tdt__profile_end(profile);
	return error;
}

/* A profile lacks a place, or is none; and it gives back all memory. */
TEST(no_memory_is_no_harm)
{
	int first = 0, made_all;

	NEEDS_FAILING_MEMORY();
	two_tasks();
	make_young(0);
	tdt__profile_end(profile);
	ck_assert_int_eq(profile_all(NULL), 0); /* the names are found, and stay */
	do {
		no_memory_begin(first);
		profile_all(NULL);
		made_all = no_memory_end();
		ck_assert_int_eq(no_memory_kept(), 0);
	} while (made_all > first++);
	ck_assert_int_gt(first, 10);
	ck_assert_int_eq(profile_all(NULL), 0);
	free(profile);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

/* Write a sample at the first place of the profile, decompress it, and return its bytes. */
static size_t write_and_read(const struct tdt__profile_places *places, char *bytes, size_t size)
{
	const struct tdt__pprof_sample samples[] = {
		{ .leaf = places->place[0].leaf,
		  .label = { "one leaf", "waiting", NULL },
		  .value = { 10, 0, 0, 1 } },
		{ .instead = "(unknown)", .label = { "bad \xff name", "waiting", "timer" } },
	};
	const struct tdt__pprof pprof = { .type = { "waiting", "runnable", "polling", "samples" },
					  .unit = { "nanoseconds", "nanoseconds", "nanoseconds",
						    "count" },
					  .label = { "task", "state", "waits for" },
					  .comment = "a comment",
					  .sample = samples,
					  .n = 2,
					  .modules = images.table };
	FILE *file = tmpfile();
	gzFile gzip;
	int n;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(tdt__pprof_write(&pprof, file), 0);
	rewind(file);
	gzip = gzdopen(dup(fileno(file)), "rb");
	n = gzread(gzip, bytes, (unsigned)size);
	ck_assert_int_gt(n, 0);
	gzclose(gzip);
	fclose(file);
	return (size_t)n;
}

static bool has_text(const char *bytes, size_t n, const char *text)
{
	return memmem(bytes, n, text, strlen(text)) != NULL;
}

TEST(pprof_has_functions_labels_and_modules)
{
	static char bytes[65536];
	struct tdt__profile_places places;
	size_t n;

	two_tasks();
	ck_assert_int_eq(tdt__profile_places_find(&places, &profile->sum,
						  tdt__clock() + 60 * TDT__SECOND), 0);
	n = write_and_read(&places, bytes, sizeof bytes);
	ck_assert(has_text(bytes, n, "shop"));
	ck_assert(has_text(bytes, n, "customer"));
	ck_assert(has_text(bytes, n, "check_profile.c"));
	ck_assert(has_text(bytes, n, "waits for"));
	ck_assert(has_text(bytes, n, "bad \\xff name"));
	ck_assert(has_text(bytes, n, "(unknown)"));
	ck_assert(has_text(bytes, n, images.table->module[0].build_id));
	tdt__profile_places_fini(&places);
	close_profile();
}

/* --- A recording --------------------------------------------------------------------------- */

static uint64_t recorded_time(const struct tdt__profile_times *times,
			      enum tdt__profile_state state, enum tdt_wait_kind kind)
{
	for (size_t i = 0; i < times->n; i++)
		if (times->time[i].state == state && times->time[i].kind == kind)
			return times->time[i].ns;
	return 0;
}

/* A task that waits for a timer, is woken, is polled, and waits for something unknown. */
static struct tdt__recording *make_recording(void **block)
{
	struct maker *maker = maker_new();
	unsigned ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
	struct tdt__recording *recording;
	size_t size;

	maker_header(maker)->taken = 1000;
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 100, 7, 0, 0, "conn 7", "", 0);
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_poll(maker, ring, 150, 50, 7, TDT_PENDING);
	maker_wake(maker, ring, 500, 7, 0);
	maker_poll(maker, ring, 530, 70, 7, TDT_PENDING);
	*block = maker_block(maker, &size);
	maker_free(maker);
	ck_assert_int_eq(tdt__recording_open(&recording, *block, size), 0);
	return recording;
}

static void close_recording(struct tdt__recording *recording, void *block)
{
	tdt__recording_close(recording);
	free(block);
}

TEST(recorded_times_are_exact)
{
	struct tdt__profile_times times;
	struct tdt__profile_sum sum;
	void *block;
	struct tdt__recording *recording = make_recording(&block);

	ck_assert_int_eq(tdt__profile_sum_init(&sum), 0);
	ck_assert_int_eq(tdt__profile_times_read(&times, &sum, recording, 170, 900), 0);
	ck_assert_uint_eq(times.ns, 730);
	ck_assert_uint_eq(recorded_time(&times, TDT__PROFILE_WAITING, TDT_WAIT_TIMER), 300);
	ck_assert_uint_eq(recorded_time(&times, TDT__PROFILE_WAITING, TDT_WAIT_UNKNOWN), 300);
	ck_assert_uint_eq(recorded_time(&times, TDT__PROFILE_RUNNABLE, TDT_WAIT_UNKNOWN), 30);
	ck_assert_uint_eq(recorded_time(&times, TDT__PROFILE_POLLING, TDT_WAIT_UNKNOWN), 100);
	ck_assert_str_eq(tdt__profile_name_of(&sum, times.time[0].name), "conn *");
	tdt__profile_times_fini(&times);
	tdt__profile_sum_fini(&sum);
	close_recording(recording, block);
}

static int read_times(void *recording)
{
	struct tdt__profile_times times;
	struct tdt__profile_sum sum;
	int error = tdt__profile_sum_init(&sum);

	if (error != 0)
		return error;
	error = tdt__profile_times_read(&times, &sum, recording, 0, 900);
	if (error == 0)
		tdt__profile_times_fini(&times);
	tdt__profile_sum_fini(&sum);
	return error;
}

TEST(without_memory_there_are_no_times)
{
	struct tdt__recording *recording;
	void *block;

	NEEDS_FAILING_MEMORY();
	recording = make_recording(&block);
	for (int first = 0, made_all = 1; made_all > first; first++) {
		no_memory_begin(first);
		read_times(recording);
		made_all = no_memory_end();
		ck_assert_int_eq(no_memory_kept(), 0);
	}
	close_recording(recording, block);
}

SUITE_SKIP(reading_refused())
