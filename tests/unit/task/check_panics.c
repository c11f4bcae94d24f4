// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers task/panics, task/panic_hooks.  Tasks that panicked: what is kept, and hooks. */

#include "lib/says.h"
#include "lib/test.h"
#include "registry/registry.h"
#include "watch/watch.h"

/* A future that is pending for some polls, and then panics.  Each poll clones the waker. */
struct falling {
	int pending;
	const struct tdt_waker *own;
};

static tdt_poll_t poll_falling(void *state, struct tdt_context *cx)
{
	struct falling *falling = state;

	tdt_waker_drop(falling->own);
	falling->own = tdt_waker_clone(cx->waker);
	return falling->pending-- > 0 ? TDT_PENDING : TDT_PANICKED;
}

static void drop_falling(void *state)
{
	struct falling *falling = state;

	tdt_waker_drop(falling->own);
}

static struct tdt_traced trace(struct falling *falling, uint64_t id, const char *name)
{
	const struct tdt_task_attr attr = {
		.size = sizeof attr, .id = id, .name = name, .file = "x.c", .line = 7
	};
	struct tdt_traced task =
	    tdt_traced_with((struct tdt_future){ falling, poll_falling, drop_falling }, &attr);

	MUST(task.handle != NULL);
	return task;
}

static tdt_poll_t poll_once(struct tdt_traced *task)
{
	return poll_idly(&task->future);
}

/* A task that panics at once, and is gone. */
static void fall(uint64_t id, const char *name)
{
	struct falling falling = { 0 };
	TRACED(task, trace(&falling, id, name));

	MUST(poll_once(&task) == TDT_PANICKED);
}

/* --- What is kept ------------------------------------------------------------------- */

/* What tdt_panics() has shown. */
struct shown {
	size_t n, most;
	struct tdt_task_info info[32];
	char name[32][TDT_TASK_NAME_MAX + 1];
	char file[16]; /* of the last one */
};

static int show(const struct tdt_trace *trace, void *arg)
{
	struct shown *shown = arg;
	const struct tdt_task_info *info = tdt_trace_info(trace);

	shown->info[shown->n] = *info;
	if (info->name != NULL)
		strcpy(shown->name[shown->n], info->name);
	snprintf(shown->file, sizeof shown->file, "%s", info->file != NULL ? info->file : "");
	shown->n++;
	return shown->most != 0 && shown->n == shown->most ? 123 : 0;
}

CASE(panics)

TEST(without_panics_there_is_nothing)
{
	struct shown shown = { 0 };

	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.n, 0);
	ck_assert_fails(tdt_panics(NULL, NULL), EINVAL);
}

TEST(a_task_that_panicked_is_remembered)
{
	struct falling falling = { .pending = 2 };
	struct tdt_traced task = trace(&falling, 5, "falling");
	struct shown shown = { 0 };

	poll_once(&task);
	poll_once(&task);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.n, 0);
	poll_once(&task);
	ck_assert_uint_eq(poll_once(&task), TDT_PANICKED); /* no other panic */
	end_traced(&task);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.n, 1);
	ck_assert_uint_eq(shown.info[0].id, 5);
	ck_assert_str_eq(shown.name[0], "falling");
	ck_assert_str_eq(shown.info[0].file, "x.c");
	ck_assert_uint_eq(shown.info[0].line, 7);
	ck_assert_uint_eq(shown.info[0].polls, 3);
	ck_assert_uint_eq(shown.info[0].leaves, 0);
	ck_assert_int_eq(shown.info[0].state, TDT_TASK_PANICKED);
	ck_assert_uint_lt(shown.info[0].state_ns, UINT64_C(60000000000));
}

/* As the __FILE__ of a plugin does, which may be unloaded when its tasks have ended. */
TEST(the_file_may_vanish_with_the_plugin_that_spawned_the_task)
{
	char *file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct falling falling = { 0 };
	struct tdt_task_attr attr = { .size = sizeof attr, .id = 1, .file = file, .line = 7 };
	struct shown shown = { 0 };
	struct tdt_traced task;

	MUST(file != MAP_FAILED);
	strcpy(file, "plugin.c");
	task = tdt_traced_with((struct tdt_future){ &falling, poll_falling, drop_falling }, &attr);
	MUST(task.handle != NULL && poll_once(&task) == TDT_PANICKED);
	end_traced(&task);
	munmap(file, 4096);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.n, 1);
	ck_assert_str_eq(shown.file, "plugin.c");
}

/* The thread that was writing a panic at the fork is not in the child. */
TEST(a_panic_that_was_being_written_at_a_fork_leaves_its_place_free,
     .skip = no_threads_in_children)
{
	struct shown shown = { 0 };

	fall(1, "before");
	TDT__POKE(tdt__panics[2].seq, 1);
	IN_A_CHILD {
		fall(2, "after");
		tdt_panics(show, &shown);
		MUST(shown.n == 2 && strcmp(shown.name[0], "after") == 0);
	}
}

TEST(the_last_sixteen_are_remembered_and_the_last_one_comes_first)
{
	struct shown shown = { 0 }, some = { .most = 3 };
	struct tdt_counts counts = { .size = sizeof counts };

	for (uint64_t id = 1; id <= 20; id++)
		fall(id, NULL);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.n, 16);
	for (size_t i = 0; i < 16; i++)
		ck_assert_uint_eq(shown.info[i].id, 20 - i);
	ck_assert_int_eq(tdt_panics(show, &some), 123);
	ck_assert_uint_eq(some.n, 3);
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(counts.panicked, 20);
}

TEST(the_tree_of_the_last_poll_is_kept_if_it_was_captured)
{
	struct falling falling = { 0 };
	struct tdt_traced task = trace(&falling, 5, NULL);
	struct tdt_trace *answer = NULL;
	struct tdt_future requester = tdt_backtrace_async(task.handle, NULL, &answer, NULL);
	struct shown shown = { 0 };

	poll_idly(&requester);
	poll_once(&task);
	end_traced(&task);
	ck_assert_uint_eq(poll_idly(&requester), TDT_READY);
	tdt_future_drop(&requester);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.info[0].leaves, 1);
	ck_assert_uint_eq(shown.info[0].polls_since, 0);
	ck_assert_uint_eq(tdt_trace_info(answer)->leaves, 1);
	tdt_trace_free(answer);
}

TEST(otherwise_the_last_watched_tree_is_kept)
{
	struct falling falling = { .pending = 2 };
	struct tdt_traced task;
	struct shown shown = { 0 };

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	task = trace(&falling, 5, NULL);
	poll_once(&task);
	poll_once(&task); /* in the same interval: it is not captured */
	poll_once(&task);
	end_traced(&task);
	tdt_watch(0, NULL);
	ck_assert_int_eq(tdt_panics(show, &shown), 0);
	ck_assert_uint_eq(shown.info[0].leaves, 1);
	ck_assert_uint_eq(shown.info[0].polls, 3);
	ck_assert_uint_eq(shown.info[0].polls_since, 2);
}

static int visit(void *unused)
{
	struct shown shown = { 0 };

	return tdt_panics(show, &shown);
}

TEST(a_lack_of_memory_is_reported)
{
	struct falling falling = { .pending = 1 };
	struct tdt_traced task;

	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	task = trace(&falling, 5, NULL);
	poll_once(&task);
	poll_once(&task);
	end_traced(&task);
	tdt_watch(0, NULL);
	visit(NULL); /* what is made once is made */
	no_memory_each(visit, NULL, 2);
}

/* --- In a dump ------------------------------------------------------------------------ */

static char *dump(enum tdt_print_format format)
{
	const struct tdt_print_options print = { .size = sizeof print, .format = format };
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };

	return TEXT_WRITTEN(out, MUST(tdt_dump_with(out, &options) == 0));
}

TEST(a_dump_shows_them)
{
	SAYS(dump(TDT_PRINT_TEXT), "!panicked");
	SAYS(dump(TDT_PRINT_JSON), "!panic");
	fall(8, "one");
	fall(9, "two");
	SAYS(dump(TDT_PRINT_TEXT), "no tasks: 2 panicked since the start",
	     "\ntask 8 \"one\" panicked", "\ntask 9 \"two\" panicked",
	     " ago, no leaves, spawned at x.c:7\n");
	SAYS(dump(TDT_PRINT_JSON), "\"panicked\":2}",
	     "\"groups\":[],\"panics\":[{\"answer\":\"fresh\","
	     "\"tasks\":[{\"id\":9,\"name\":\"two\",");
}

/* --- The hook --------------------------------------------------------------------------- */

static int hooked;
static struct tdt_task_info hooked_info;
static char hooked_name[TDT_TASK_NAME_MAX + 1];
static struct shown seen_in_hook;

static void hook(const struct tdt_task_info *task, void *arg)
{
	hooked++;
	hooked_info = *task;
	snprintf(hooked_name, sizeof hooked_name, "%s", task->name != NULL ? task->name : "");
	ck_assert_int_eq(tdt_panics(show, &seen_in_hook), 0);
}

static void other_hook(const struct tdt_task_info *task, void *arg)
{
	hooked += *(const int *)arg;
}

TEST(the_hook_is_called_once_for_each)
{
	struct falling falling = { .pending = 1 };
	struct tdt_traced task = trace(&falling, 5, "falling"), dropped;

	ck_assert_int_eq(tdt_panic_hook_add(hook, NULL), 0);
	poll_once(&task);
	ck_assert_int_eq(hooked, 0);
	poll_once(&task);
	ck_assert_int_eq(hooked, 1);
	poll_once(&task);
	ck_assert_int_eq(hooked, 1);
	ck_assert_uint_eq(hooked_info.id, 5);
	ck_assert_str_eq(hooked_name, "falling");
	ck_assert_int_eq(hooked_info.state, TDT_TASK_PANICKED);
	ck_assert_uint_eq(seen_in_hook.n, 1);
	ck_assert_uint_eq(seen_in_hook.info[0].id, 5);
	end_traced(&task);
	dropped = trace(&(struct falling){ 0 }, 6, NULL);
	end_traced(&dropped);
	ck_assert_int_eq(hooked, 1);
	ck_assert_int_eq(tdt_panic_hook_remove(hook, NULL), 0);
	fall(7, NULL);
	ck_assert_int_eq(hooked, 1);
}

TEST(several_hooks_are_called_each_with_its_argument)
{
	static int ten = 10, hundred = 100;

	ck_assert_int_eq(tdt_panic_hook_add(other_hook, &ten), 0);
	ck_assert_int_eq(tdt_panic_hook_add(other_hook, &hundred), 0);
	ck_assert_int_eq(tdt_panic_hook_add(other_hook, &ten), -EEXIST);
	fall(7, NULL);
	ck_assert_int_eq(hooked, 110);
	ck_assert_int_eq(tdt_panic_hook_remove(other_hook, &ten), 0);
	fall(8, NULL);
	ck_assert_int_eq(hooked, 210);
	ck_assert_fails(tdt_panic_hook_remove(other_hook, &ten), ENOENT);
	ck_assert_int_eq(tdt_panic_hook_remove(other_hook, &hundred), 0);
}

static int removed_inside;

static void removes_itself(const struct tdt_task_info *task, void *arg)
{
	removed_inside = tdt_panic_hook_remove(removes_itself, arg);
}

TEST(a_hook_is_not_removed_from_within)
{
	ck_assert_int_eq(tdt_panic_hook_add(removes_itself, NULL), 0);
	fall(7, NULL);
	ck_assert_int_eq(removed_inside, -EDEADLK);
	ck_assert_int_eq(tdt_panic_hook_remove(removes_itself, NULL), 0);
}

/* A hook that stays until it is let go. */
static atomic_int entered, let_go, left;

static void stays(const struct tdt_task_info *task, void *arg)
{
	atomic_store(&entered, 1);
	while (!atomic_load(&let_go))
		sched_yield();
	atomic_store(&left, 1);
}

static void *falls(void *nothing)
{
	fall(7, NULL);
	return nothing;
}

static void *removes(void *nothing)
{
	MUST(tdt_panic_hook_remove(stays, NULL) == 0);
	MUST(atomic_load(&left)); /* not before */
	return nothing;
}

TEST(removing_a_hook_waits_for_the_threads_in_it)
{
	pthread_t in_hook, remover;

	ck_assert_int_eq(tdt_panic_hook_add(stays, NULL), 0);
	ck_assert_int_eq(pthread_create(&in_hook, NULL, falls, NULL), 0);
	while (!atomic_load(&entered))
		sched_yield();
	ck_assert_int_eq(pthread_create(&remover, NULL, removes, NULL), 0);
	/* Others are added and removed meanwhile. */
	ck_assert_int_eq(tdt_panic_hook_add(other_hook, &hooked), 0);
	ck_assert_int_eq(tdt_panic_hook_remove(other_hook, &hooked), 0);
	atomic_store(&let_go, 1);
	pthread_join(remover, NULL);
	pthread_join(in_hook, NULL);
	atomic_store(&entered, 0);
	fall(8, NULL);
	ck_assert_int_eq(atomic_load(&entered), 0);
}

/* --- Threads ---------------------------------------------------------------------------- */

#define THREADS 4
#define FALLS 2000

static atomic_int falling_threads = THREADS;

/* The name of each task is its id. */
static void *fall_often(void *arg)
{
	uint64_t id = (uintptr_t)arg * 1000000;
	char name[32];

	for (int i = 0; i < FALLS; i++) {
		snprintf(name, sizeof name, "%" PRIu64, ++id);
		fall(id, name);
	}
	atomic_fetch_sub(&falling_threads, 1);
	return NULL;
}

static int expect_whole(const struct tdt_trace *trace, void *n)
{
	const struct tdt_task_info *info = tdt_trace_info(trace);

	ck_assert_uint_eq(strtoull(info->name, NULL, 10), info->id);
	++*(int *)n;
	return 0;
}

TEST(each_that_is_read_is_of_one_task)
{
	pthread_t thread[THREADS];
	struct tdt_counts counts = { .size = sizeof counts };
	int n = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, fall_often, (void *)(i + 1)) == 0);
	while (atomic_load(&falling_threads) != 0)
		ck_assert_int_eq(tdt_panics(expect_whole, &n), 0);
	threads_join(thread, THREADS);
	n = 0;
	ck_assert_int_eq(tdt_panics(expect_whole, &n), 0);
	ck_assert_int_ge(n, 16 - THREADS); /* some may have been left out at the same moment */
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(counts.panicked, THREADS * FALLS);
}
