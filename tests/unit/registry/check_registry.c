// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers registry/registry, host/slot.  Records: where they lie, that they are used again, and what
 * becomes of them without memory and in a child of fork().
 */

#include <config.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/registry.h>

#include "base/clock.h"
#include "host/slot.h"
#include "lib/find_registry.h"
#include "lib/test.h"
#include "registry/handle.h"
#include "registry/registry.h"

static struct tdt_traced trace_with(const struct tdt_task_attr *attr)
{
	return tdt_traced_with((struct tdt_future){ NULL, stay_pending, drop_nothing }, attr);
}

static struct tdt_traced trace(const char *name)
{
	return trace_with(TDT_TASK_ATTR(.name = name));
}

/* --- As a reader sees it ------------------------------------------------------------------ */

/* Count the records that have been in use, and those of tasks; the last one's address. */
struct sum {
	uint32_t slabs, used, live;
	const struct tdt_task_record *last;
};

static struct sum look(void)
{
	const struct tdt_registry_slab *slab = (const void *)(uintptr_t)tdt__registry.slabs;
	struct sum sum = { 0 };

	for (; slab != NULL; slab = (const void *)(uintptr_t)slab->next, sum.slabs++) {
		ck_assert_uint_le(slab->used, slab->room);
		for (uint32_t i = 0; i < slab->used; i++) {
			const struct tdt_task_record *record =
			    (const void *)(uintptr_t)(slab->records + i * tdt__registry.stride);

			if (record->seq % 2 != 0 || record->state == TDT_TASK_RECORD_FREE)
				continue;
			sum.live++;
			sum.last = record;
		}
		sum.used += slab->used;
	}
	return sum;
}

CASE(layout)

TEST(the_registry_leads_to_the_records)
{
	const struct tdt_task_attr attr = { .size = sizeof attr,
					    .name = "reading",
					    .id = 7,
					    .file = "x.c",
					    .line = 3,
					    .column = 4 };
	struct tdt_traced task;
	struct sum sum;

	ck_assert_int_eq(memcmp(tdt__registry.magic, TDT_REGISTRY_MAGIC, 8), 0);
	ck_assert_uint_eq(tdt__registry.version, TDT_REGISTRY_VERSION);
	ck_assert_uint_eq(tdt__registry.size, sizeof(struct tdt_registry));
	ck_assert_uint_eq(tdt__registry.record_size, sizeof(struct tdt_task_record));
	ck_assert_uint_eq(tdt__registry.thread_size, sizeof(struct tdt_registry_thread));
	ck_assert_uint_eq(tdt__registry.fiber_size, sizeof(struct tdt_registry_fiber));
	ck_assert_uint_eq(tdt__registry.features, TDT_REGISTRY_WAKES | TDT_REGISTRY_PARENTS);
	ck_assert_uint_eq(tdt__registry.slabs, 0);
	task = trace_with(&attr);
	sum = look();
	ck_assert_uint_eq(sum.live, 1);
	ck_assert_uint_eq(sum.last->state, TDT_TASK_RECORD_IDLE);
	ck_assert_uint_eq(sum.last->id, 7);
	ck_assert_str_eq(sum.last->name, "reading");
	ck_assert_str_eq((const char *)(uintptr_t)sum.last->file, "x.c");
	ck_assert_uint_eq(sum.last->line, 3);
	ck_assert_uint_eq(sum.last->column, 4);
	ck_assert_uint_eq(sum.last->poll, (uintptr_t)stay_pending);
	ck_assert_uint_ne(sum.last->spawned, 0);
	ck_assert_uint_eq(sum.last->spawned, sum.last->since);
	tdt_future_drop(&task.future);
	ck_assert_uint_eq(sum.last->state, TDT_TASK_RECORD_ENDED);
	ck_assert_uint_eq(sum.last->outcome, TDT_PENDING);
	tdt_handle_unref(task.handle);
	ck_assert_uint_eq(sum.last->state, TDT_TASK_RECORD_FREE);
}

TEST(the_registry_is_found_by_its_magic_and_knows_its_process)
{
	TRACED(task, trace(NULL));

	ck_assert_ptr_eq(find_registry(), &tdt__registry);
	ck_assert_str_eq(tdt__registry.library, PACKAGE_VERSION);
	ck_assert_uint_eq(tdt__registry.pid, (uint32_t)getpid());
	ck_assert_uint_ne(tdt__registry.start, 0);
	ck_assert_uint_le(tdt__registry.start, tdt__clock());
	ck_assert_uint_ge(tdt__registry.start_real / 1000000000, 1700000000); /* in 2023 */
}

TEST(a_record_says_who_wakes_the_task_and_what_it_keeps)
{
	int kept;
	struct tdt_traced task =
	    tdt_traced((struct tdt_future){ &kept, stay_pending, drop_nothing });
	struct tdt_future joining = tdt_join(task.handle, NULL);
	const struct tdt_task_record *record = look().last;

	/* A reader finds what a poll changes in one cache line. */
	ck_assert_uint_eq((uintptr_t)record % 64, 0);
	ck_assert_uint_eq(record->child_state, (uintptr_t)&kept);
	ck_assert_uint_eq(record->waker, 0);
	ck_assert_uint_eq(record->joiners, 0);
	ck_assert_uint_eq(poll_idly(&task.future), TDT_PENDING);
	ck_assert_uint_eq(record->waker, (uintptr_t)&idle_waker);
	ck_assert_uint_eq(poll_idly(&joining), TDT_PENDING);
	ck_assert_uint_eq(record->joiners, (uintptr_t)joining.state);
	tdt_future_drop(&joining);
	ck_assert_uint_eq(record->joiners, 0);
	tdt_future_drop(&task.future);
	ck_assert_uint_eq(record->waker, 0);
	tdt_handle_unref(task.handle);
}

static bool is_runnable(const struct tdt_task_record *record)
{
	return record->state == TDT_TASK_RECORD_IDLE && record->woken != 0 &&
	       record->woken_polls == (uint32_t)record->polls;
}

TEST(a_woken_task_is_runnable_until_its_next_poll)
{
	TRACED(task, trace(NULL));
	const struct tdt_task_record *record = look().last;

	ck_assert(!is_runnable(record)); /* nobody reported a wake-up */
	tdt_task_woken(task.handle);
	ck_assert(is_runnable(record));
	for (int i = 0; i < 3; i++) {
		poll_idly(&task.future);
		ck_assert(!is_runnable(record));
		tdt_task_woken(task.handle);
		ck_assert(is_runnable(record));
	}
	/* The count has 32 bits of 64. */
	TDT__POKE(task.handle->record.polls, UINT64_C(0x700000001));
	tdt_task_woken(task.handle);
	ck_assert(is_runnable(record));
	poll_idly(&task.future);
	ck_assert(!is_runnable(record));
}

static struct tdt_registry_counters sum_counters(void)
{
	const struct tdt_registry_counters *one = (void *)(uintptr_t)tdt__registry.counters;
	struct tdt_registry_counters sum = { 0 };

	for (uint32_t i = 0; i < tdt__registry.n_counters; i++, one++) {
		sum.spawned += one->spawned;
		sum.panicked += one->panicked;
		sum.polls += one->polls;
		sum.captures += one->captures;
		sum.dumps += one->dumps;
	}
	return sum;
}

static tdt_poll_t panic_now(void *state, struct tdt_context *cx)
{
	return TDT_PANICKED;
}

/* It is run by several threads, whose counters differ. */
static void *poll_twice_and_panic(void *unused)
{
	struct tdt_traced waiting = trace(NULL),
			  panics = tdt_traced((struct tdt_future){ NULL, panic_now, drop_nothing });

	poll_idly(&waiting.future);
	poll_idly(&waiting.future);
	poll_idly(&panics.future);
	poll_idly(&panics.future); /* no poll: the task has ended */
	end_traced(&waiting);
	end_traced(&panics);
	return unused;
}

#define COUNTING 20

TEST(counters_outlive_records)
{
	struct tdt_registry_counters sum;

	for (int i = 0; i < COUNTING; i++) {
		run_on_thread(poll_twice_and_panic, NULL);
	}
	sum = sum_counters();
	ck_assert_uint_eq(look().live, 0);
	ck_assert_uint_eq(sum.spawned, 2 * COUNTING);
	ck_assert_uint_eq(sum.panicked, COUNTING);
	ck_assert_uint_eq(sum.polls, 3 * COUNTING);
	ck_assert_uint_eq(sum.captures, 0);
	ck_assert_uint_eq(sum.dumps, 0);
	tdt_snapshot_free(tdt_snapshot_take(NULL));
	ck_assert_uint_eq(sum_counters().dumps, 1);
	ck_assert_uint_ne(tdt__registry.now, 0);
}

TEST(a_worker_that_parks_says_so_to_readers)
{
	uint32_t id = (uint32_t)gettid();
	const uint64_t *table = (const void *)(uintptr_t)tdt__registry.threads;
	TRACED(task, trace(NULL));
	const struct tdt_registry_thread *self =
	    (const void *)(uintptr_t)table[id % tdt__registry.n_threads];

	ck_assert_ptr_nonnull(self);
	ck_assert_uint_eq(self->id, id);
	ck_assert_uint_eq(self->worker, 0);
	tdt_worker_thread_start(NULL);
	tdt_worker_now(1234);
	ck_assert_uint_eq(self->worker, 1);
	ck_assert_uint_eq(self->now, 1234);
	tdt_worker_thread_park();
	ck_assert_uint_eq(self->parked, 1234);
	tdt_worker_thread_unpark();
	ck_assert_uint_eq(self->parked, 0);
	tdt_worker_thread_stop();
	ck_assert_uint_eq(self->worker, 0);
}

static tdt_poll_t wait_for_named(void *state, struct tdt_context *cx)
{
	const char *const *name = state;

	tdt_leaf_waits_on_named(TDT_WAIT_OTHER, name, 0, *name);
	return TDT_PENDING;
}

static int copy_wait_name(struct tdt_handle *handle, const struct tdt_task_info *info, void *name)
{
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_uint_eq(info->waits[0]->kind, TDT_WAIT_OTHER);
	memcpy(name, info->waits[0]->name, sizeof info->waits[0]->name);
	return 0;
}

/* What the record says in place of `name`. */
static void expect_wait_name(const char *name, const char *expected)
{
	char found[TDT_WAIT_NAME_MAX + 1];
	TRACED(task, tdt_traced((struct tdt_future){ &name, wait_for_named, drop_nothing }));

	ck_assert_uint_eq(poll_idly(&task.future), TDT_PENDING);
	ck_assert_uint_eq(task.handle->record.wait_name, (uintptr_t)name);
	errno = 1234;
	ck_assert_int_eq(tdt_task_inspect(task.handle, copy_wait_name, found), 0);
	ck_assert_int_eq(errno, 1234);
	ck_assert_str_eq(found, expected);
}

TEST(a_record_leads_to_the_name_of_what_its_task_waits_for)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *at_end = memory + page - 3;
	char expected[TDT_WAIT_NAME_MAX + 1] = "";

	expect_wait_name(NULL, "");
	expect_wait_name("room 1", "room 1");
	memset(memory, 'x', page);
	memset(expected, 'x', TDT_WAIT_NAME_MAX);
	expect_wait_name(memory, expected); /* too long */
	memcpy(memory + TDT_WAIT_NAME_MAX - 1, "\u00e9", 2);
	expected[TDT_WAIT_NAME_MAX - 1] = '\0';
	expect_wait_name(memory, expected); /* it would be cut in the middle of a character */
	MUST(mprotect(memory + page, page, PROT_NONE) == 0);
	memcpy(at_end, "ab", 3);
	expect_wait_name(at_end, "ab");
	at_end[2] = 'c'; /* and no NUL */
	expect_wait_name(at_end, "abc");
	expect_wait_name(memory + page, ""); /* the host has broken its promise */
	munmap(memory, 2 * page);
}

TEST(a_record_forgets_the_task_before)
{
	char name[TDT_TASK_RECORD_NAME_SIZE] = "";
	struct tdt_traced task;
	const struct tdt_task_record *record;
	uint32_t seq;

	memset(name, 'x', sizeof name - 1);
	task = trace(name);
	record = look().last;
	seq = record->seq;
	ck_assert_uint_eq(poll_idly(&task.future), TDT_PENDING);
	end_traced(&task);
	task = trace("y");
	ck_assert_ptr_eq(look().last, record);
	ck_assert_uint_eq(record->seq, seq + 2);
	ck_assert_uint_eq(record->polls, 0);
	ck_assert_uint_eq(record->thread, 0);
	ck_assert_uint_eq(record->name[0], 'y');
	for (size_t i = 1; i < sizeof name; i++)
		ck_assert_uint_eq(record->name[i], 0);
	end_traced(&task);
}

CASE(records)

TEST(a_record_that_is_being_made_is_no_task_yet)
{
	struct tdt_handle *task = tdt__registry_take(NULL);
	struct tdt_task_record copy;

	ck_assert_ptr_nonnull(task);
	ck_assert_uint_eq(look().live, 0);
	ck_assert(!tdt__registry_read(task, &copy));
	ck_assert(!tdt__handle_ref_if_same(task, task->record.seq));
	TDT__POKE(task->record.state, TDT_TASK_RECORD_IDLE);
	atomic_store(&task->refs, 1);
	tdt__registry_publish(&task->record);
	ck_assert(tdt__registry_read(task, &copy));
	ck_assert(tdt__handle_ref_if_same(task, copy.seq));
	tdt_handle_unref(task);
	tdt_handle_unref(task);
	ck_assert(!tdt__registry_read(task, &copy));
	ck_assert(!tdt__handle_ref_if_same(task, copy.seq));
}

/* With the same id even. */
TEST(another_task_in_the_same_place_is_not_taken_for_the_one_before)
{
	struct tdt_traced task = trace_with(TDT_TASK_ATTR(.id = 5));
	struct tdt_handle *handle = task.handle;
	struct tdt_task_record copy;

	ck_assert(tdt__registry_read(handle, &copy));
	end_traced(&task);
	task = trace_with(TDT_TASK_ATTR(.id = 5));
	ck_assert_ptr_eq(task.handle, handle);
	ck_assert(!tdt__handle_ref_if_same(handle, copy.seq));
	ck_assert_uint_eq(atomic_load(&handle->refs), 2);
	end_traced(&task);
}

#define BATCH 100

static struct tdt_traced batch[BATCH];

static void *end_batch(void *unused)
{
	for (int i = 0; i < BATCH; i++)
		end_traced(&batch[i]);
	return unused;
}

/* 0: by the thread that made them, 1: by another each time */
TEST(records_are_used_again, .to = 2)
{
	struct sum sum;

	for (int i = 0; i < 200; i++) {
		for (int j = 0; j < BATCH; j++)
			batch[j] = trace(NULL);
		if (_i == 0) {
			end_batch(NULL);
			continue;
		}
		run_on_thread(end_batch, NULL);
	}
	sum = look();
	ck_assert_uint_eq(sum.slabs, 1);
	ck_assert_uint_eq(sum.used, BATCH);
	ck_assert_uint_eq(sum.live, 0);
}

TEST(each_task_has_room_for_its_runtime)
{
	unsigned char whole[TDT_HANDLE_ROOM];

	for (int j = 0; j < BATCH; j++) {
		void *room;

		batch[j] = trace("with room");
		room = tdt_handle_room(batch[j].handle);
		ck_assert_uint_eq((uintptr_t)room % sizeof(void *), 0);
		memset(room, j, TDT_HANDLE_ROOM);
	}
	for (int j = 0; j < BATCH; j++) {
		memset(whole, j, sizeof whole);
		ck_assert_mem_eq(tdt_handle_room(batch[j].handle), whole, sizeof whole);
		ck_assert_str_eq(batch[j].handle->record.name, "with room");
	}
	end_batch(NULL);
}

#define THREADS 70 /* more than there are slots */

static atomic_int traced_tasks;

static void *trace_and_stay(void *task)
{
	*(struct tdt_traced *)task = trace(NULL);
	atomic_fetch_add(&traced_tasks, 1);
	while (atomic_load(&traced_tasks) <= THREADS)
		sched_yield();
	return NULL;
}

TEST(threads_have_slabs_of_their_own_or_share_one)
{
	struct tdt_traced task[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, trace_and_stay, &task[i]) == 0);
	while (atomic_load(&traced_tasks) < THREADS)
		sched_yield();
	ck_assert_uint_eq(look().slabs, TDT__SLOTS);
	ck_assert_uint_eq(look().live, THREADS);
	ck_assert_uint_eq(sum_counters().spawned, THREADS);
	atomic_fetch_add(&traced_tasks, 1);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		end_traced(&task[i]);
	}
	ck_assert_uint_eq(look().live, 0);
}

static pid_t tracing;

static void *trace_one(void *task)
{
	tracing = gettid();
	*(struct tdt_traced *)task = trace(NULL);
	return NULL;
}

TEST(a_thread_goes_on_with_the_slab_of_one_that_has_ended)
{
	struct tdt_traced task[3];

	for (int i = 0; i < 3; i++) {
		run_on_thread(trace_one, &task[i]);
		while (tgkill(getpid(), tracing, 0) == 0) /* the kernel knows it a little longer */
			sched_yield();
	}
	ck_assert_uint_eq(look().slabs, TSAN ? 3 : 1);
	for (int i = 0; i < 3; i++)
		end_traced(&task[i]);
}

/* --- Read while it is written ----------------------------------------------------------------- */

/*
 * Under valgrind only one thread runs at a time, and whether the other gets its turn between two
 * reads is luck.
 */
static int reads(void)
{
	return in_valgrind() ? 5000 : 200000;
}

static atomic_bool over;
static struct tdt_handle *_Atomic place;

static void *be_one_after_the_other(void *unused)
{
	for (uint64_t id = 1; !atomic_load(&over); id++) {
		const struct tdt_task_attr attr = { .size = sizeof attr,
						    .id = id,
						    .file = (const char *)(uintptr_t)id,
						    .line = (uint32_t)id,
						    .column = (uint32_t)id };
		TRACED(task, trace_with(&attr));

		atomic_store(&place, task.handle);
	}
	return unused;
}

TEST(a_copy_is_of_one_task)
{
	const int n = reads();
	struct tdt_task_record copy;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, be_one_after_the_other, NULL), 0);
	while (atomic_load(&place) == NULL)
		sched_yield();
	for (int i = 0; i < n; i++) {
		if (!tdt__registry_read(place, &copy))
			continue;
		if (copy.file != copy.id || copy.line != (uint32_t)copy.id ||
		    copy.column != (uint32_t)copy.id)
			ck_abort_msg("of %ju: %ju, %u, %u", (uintmax_t)copy.id,
				     (uintmax_t)copy.file, copy.line, copy.column);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}

/* Says something else in each poll. */
static tdt_poll_t say(void *state, struct tdt_context *cx)
{
	uintptr_t *said = state;

	++*said;
	tdt_leaf_waits_on(TDT_WAIT_OTHER, (void *)*said, *said);
	return TDT_PENDING;
}

static void *be_polled(void *task)
{
	struct tdt_context cx = { &idle_waker };

	while (!atomic_load(&over))
		MUST(tdt_future_poll(&((struct tdt_traced *)task)->future, &cx) == TDT_PENDING);
	return NULL;
}

TEST(a_copy_has_what_was_said_in_its_last_poll_or_nothing)
{
	uintptr_t said = 0;
	struct tdt_task_record copy;
	pthread_t thread;
	int saying = 0;
	TRACED(task, tdt_traced((struct tdt_future){ &said, say, drop_nothing }));
	const int n = reads();

	ck_assert_int_eq(pthread_create(&thread, NULL, be_polled, &task), 0);
	while (tdt__registry_read(task.handle, &copy) && copy.polls == 0)
		sched_yield();
	for (int i = 0; i < n; i++) {
		ck_assert(tdt__registry_read(task.handle, &copy));
		if (copy.wait_count == 0)
			continue;
		saying++;
		if (copy.wait_object != copy.polls || copy.wait_owner != copy.polls ||
		    copy.wait_polls != (uint32_t)copy.polls)
			ck_abort_msg("poll %ju: %ju, %ju, %u", (uintmax_t)copy.polls,
				     (uintmax_t)copy.wait_object, (uintmax_t)copy.wait_owner,
				     copy.wait_polls);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	ck_assert(tdt__registry_read(task.handle, &copy));
	ck_assert_uint_eq(copy.wait_count, 1); /* nobody disturbs */
	printf("# %d of %d copies say what it waits for\n", saying, n);
	fflush(stdout);
}

CASE(refused)

TEST(without_memory_for_a_slab_nothing_is_traced)
{
	static struct tdt_traced tasks[5000];
	int n = 0;

	NEEDS_FAILING_MEMORY();
	tasks[n++] = trace(NULL); /* what is allocated once a process is, now */
	no_memory_begin(0);
	do {
		errno = 0;
		tasks[n] = trace(NULL);
	} while (tasks[n++].handle != NULL && n < 5000);
	ck_assert_int_eq(no_memory_end(), 1);
	ck_assert_int_lt(n, 5000);
	n--;
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_ptr_eq(tasks[n].future.poll, stay_pending); /* untraced, as it was */
	ck_assert_uint_eq(look().live, (unsigned)n);
	end_traced(&tasks[0]);
	tasks[0] = trace(NULL); /* where that was */
	ck_assert_ptr_nonnull(tasks[0].handle);
	tasks[n] = trace(NULL);
	ck_assert_ptr_nonnull(tasks[n].handle);
	ck_assert_uint_eq(look().slabs, 2);
	for (int i = 0; i <= n; i++)
		end_traced(&tasks[i]);
}

static void *come_and_go(void *unused)
{
	while (!atomic_load(&over)) {
		TRACED(task, trace("other"));
	}
	return unused;
}

static int count(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	*(int *)n += info->name != NULL && strcmp(info->name, "mine") == 0;
	return 0;
}

static void child_of_fork(void)
{
	struct tdt_traced tasks[50];
	int n = 0;

	MUST(tdt__registry.pid == (uint32_t)getpid());
	for (int i = 0; i < 50; i++) {
		tasks[i] = trace("mine");
		MUST(tasks[i].handle != NULL);
	}
	MUST(tdt_tasks(NULL, count, &n) == 0);
	MUST(n == 51);
	for (int i = 0; i < 50; i++)
		end_traced(&tasks[i]);
	_exit(0);
}

TEST(a_child_of_fork_has_the_tasks_and_can_make_more)
{
	pthread_t thread[3];
	TRACED(mine, trace("mine"));

	threads_start(thread, 3, come_and_go, NULL);
	for (int i = 0; i < (in_valgrind() ? 5 : 50); i++) {
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			child_of_fork();
		ck_assert_int_eq(child_status(pid), 0);
	}
	atomic_store(&over, true);
	threads_join(thread, 3);
}
