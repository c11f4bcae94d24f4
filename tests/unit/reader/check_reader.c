// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/find, reader/images, reader/records, reader/tasks, reader/trees.  The target is
 * this process, so what the reader finds is compared with what the library itself says.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/layout/registry.h>

#include "lib/poll_now.h"
#include "lib/read_self.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/trees.h"
#include "registry/registry.h"
#include "symbolize/symbolize.h"
#include "tree/stacks.h"

static struct tdt__tasks tasks;
static size_t n_found;

static void look_around(void)
{
	n_found = open_self();
	ck_assert_int_eq(tdt__tasks_read(&tasks, &target, &images, &found[0]), 0);
}

static void look_away(void)
{
	tdt__tasks_fini(&tasks);
	close_self();
}

static const struct tdt__seen_task *task_named(const char *name)
{
	for (size_t i = 0; i < tasks.n; i++)
		if (tasks.task[i].member.info.name != NULL &&
		    strcmp(tasks.task[i].member.info.name, name) == 0)
			return &tasks.task[i];
	ck_abort_msg("there is no task %s", name);
}

/* --- Tasks -------------------------------------------------------------------------- */

static const char *object_name = "the lock";

static __attribute__((noinline)) void wait_here(struct tdt_context *cx)
{
	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, object_name, 77, object_name);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
}

static tdt_poll_t pend(void *state, struct tdt_context *cx)
{
	wait_here(cx);
	return TDT_PENDING;
}

static tdt_poll_t end_at_once(void *state, struct tdt_context *cx)
{
	return state == NULL ? TDT_READY : TDT_PANICKED;
}

static uint32_t made_at; /* the line where tasks are made */

static struct tdt_traced make(const char *name, tdt_poll_t (*poll)(void *, struct tdt_context *))
{
	const struct tdt_task_attr *attr = TDT_TASK_ATTR(.name = name);
	struct tdt_traced traced = tdt_traced_with(future_of(poll, NULL), attr);

	made_at = attr->line;
	ck_assert_ptr_nonnull(traced.handle);
	return traced;
}

static void poll_task(struct tdt_traced *traced)
{
	poll_idly(&traced->future);
}

CASE(records)

TEST(the_registry_of_the_library_is_found_once)
{
	look_around();
	ck_assert_uint_eq(n_found, 1);
	ck_assert(found[0].known);
	ck_assert_uint_eq(found[0].address, (uintptr_t)&tdt__registry);
	look_away();
}

TEST(a_copy_of_a_registry_is_none)
{
	static _Alignas(64) struct tdt_registry copy = { .magic = "not yet" };

	copy = tdt__registry;
	n_found = open_self();
	ck_assert_uint_eq(n_found, 1);
	ck_assert_uint_ne(found[0].address, (uintptr_t)&copy);
	copy.self = (uintptr_t)&copy;
	copy.version = 2;
	n_found = tdt__find(&target, found);
	ck_assert_uint_eq(n_found, 2);
	ck_assert(!found[1].known && found[1].registry.version == 2);
	memset(&copy, 0, sizeof copy);
	look_away();
}

TEST(the_trace_context_of_a_task_is_read)
{
	const struct tdt_trace_context context = { .trace_id = { 1 }, .span_id = { 2 } };
	struct tdt_traced with = make("with", pend), without = make("without", pend);
	const struct tdt_trace_context *read;

	ck_assert_int_eq(tdt_task_context(with.handle, &context), 0);
	look_around();
	read = &task_named("with")->member.info.context;
	ck_assert_uint_eq(read->valid, 1);
	ck_assert_mem_eq(read->trace_id, context.trace_id, sizeof read->trace_id);
	ck_assert_mem_eq(read->span_id, context.span_id, sizeof read->span_id);
	ck_assert_uint_eq(task_named("without")->member.info.context.valid, 0);
	look_away();
	tdt_future_drop(&with.future);
	tdt_future_drop(&without.future);
	tdt_handle_unref(with.handle);
	tdt_handle_unref(without.handle);
}

TEST(tasks_are_as_they_were_made)
{
	struct tdt_traced waits = make("waits", pend), fresh = make("fresh", pend),
			  over = make("over", end_at_once);
	const struct tdt__seen_task *task;

	poll_task(&waits);
	poll_task(&waits);
	poll_task(&over);
	look_around();
	ck_assert_uint_eq(tasks.n, 3);
	task = task_named("waits");
	ck_assert_uint_eq(task->member.info.id, tdt_handle_id(waits.handle));
	ck_assert_int_eq(task->member.info.state, TDT_TASK_WAITING);
	ck_assert_uint_eq(task->member.info.polls, 2);
	ck_assert_uint_eq(task->member.info.n_waits, 1);
	ck_assert_int_eq(task->wait.kind, TDT_WAIT_MUTEX);
	ck_assert_uint_eq(task->wait.owner, 77);
	ck_assert_str_eq(task->wait.name, "the lock");
	ck_assert_ptr_nonnull(strstr(task->member.info.file, "check_reader.c"));
	ck_assert_uint_eq(task->member.info.line, made_at);
	ck_assert_ptr_eq(task->outcome, NULL);
	task = task_named("fresh");
	ck_assert_uint_eq(task->member.info.n_waits, 0);
	task = task_named("over");
	ck_assert_str_eq(task->outcome, "ready");
	look_away();
	tdt_future_drop(&waits.future);
	tdt_future_drop(&fresh.future);
	tdt_future_drop(&over.future);
	tdt_handle_unref(waits.handle);
	tdt_handle_unref(fresh.handle);
	tdt_handle_unref(over.handle);
}

/* It lies in two pages, or at the end of the memory that is mapped. */
TEST(the_name_of_an_object_may_lie_anywhere, .to = 2)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *name = memory + page - (_i == 0 ? 4 : sizeof "a door");
	struct tdt_traced waits = make("waits", pend);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	strcpy(name, "a door");
	ck_assert_int_eq(_i == 0 ? 0 : mprotect(memory + page, page, PROT_NONE), 0);
	object_name = name;
	poll_task(&waits);
	look_around();
	ck_assert_str_eq(task_named("waits")->wait.name, "a door");
	look_away();
	tdt_future_drop(&waits.future);
	tdt_handle_unref(waits.handle);
	munmap(memory, 2 * page);
}

TEST(a_slab_that_contradicts_itself_ends_the_list)
{
	struct tdt_registry_slab slab = { .used = 5, .room = 4 }, ring = { 0 };
	struct tdt_registry registry = { .record_size = sizeof(struct tdt_task_record),
					 .stride = sizeof(struct tdt_task_record) };
	struct tdt__records records;

	open_self();
	registry.slabs = (uintptr_t)&slab;
	ck_assert_int_eq(tdt__records_read(&records, &target, &registry), 0);
	ck_assert(records.damaged && records.n == 0);
	slab = (struct tdt_registry_slab){ .used = 1, .room = 1, .records = UINT64_MAX - 5 };
	ck_assert_int_eq(tdt__records_read(&records, &target, &registry), 0);
	ck_assert(records.damaged && records.n == 0);
	ring.next = registry.slabs = (uintptr_t)&ring;
	ck_assert_int_eq(tdt__records_read(&records, &target, &registry), 0);
	ck_assert(records.damaged);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

static int look_and_close(void *unused)
{
	int error = tdt__tasks_read(&tasks, &target, &images, &found[0]);

	if (error == 0)
		tdt__tasks_fini(&tasks);
	return error;
}

TEST(without_memory_there_is_no_list)
{
	TRACED(waits, make("waits", pend));

	NEEDS_FAILING_MEMORY();
	poll_task(&waits);
	open_self();
	no_memory_each(look_and_close, NULL, 5);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

/* --- Proofs ------------------------------------------------------------------------- */

static struct tdt_lock lock = { .magic = TDT_LOCK_MAGIC };

static tdt_poll_t lock_poll(void *state, struct tdt_context *cx)
{
	tdt_leaf_waits_on(TDT_WAIT_MUTEX, &lock, lock.owner);
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

TEST(a_wait_is_proved_by_a_record_that_stands_still)
{
	struct tdt__seen_task *task;
	TRACED(traced, make("prover", lock_poll));

	lock.owner = 4711;
	poll_task(&traced);
	tdt_task_woken(traced.handle); /* so wake-ups are reported */
	poll_task(&traced);
	look_around();
	task = (struct tdt__seen_task *)(uintptr_t)task_named("prover");
	tdt__tasks_settle(&tasks);
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__BY_RECORD);
	task->member.info.leaves = 1;
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__BY_TREE);
	task->member.info.leaves_known = TDT_LEAVES_PART;
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__BY_RECORD);
	task->member.info.leaves_known = TDT_LEAVES_ALL;
	task->member.info.leaves = 2;
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__UNSURE);
	task->member.info.polls_since = 1;
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__BY_RECORD);
	lock.owner = 4712; /* it was handed on */
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__UNSURE);
	lock.owner = 4711;
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__BY_RECORD);
	poll_task(&traced); /* since it was read */
	tdt__task_prove(&tasks, task);
	ck_assert_int_eq(task->member.proof, TDT__UNSURE);
	look_away();
}

TEST(a_lock_that_its_new_owner_does_not_take_is_a_futurelock)
{
	struct tdt_traced waiter = make("waiter", lock_poll), owner = make("owner", pend);
	const struct tdt_wait *wait;

	lock.owner = 4711;
	poll_task(&waiter);
	tdt_lock_hand(&lock, tdt_handle_id(owner.handle));
	lock.handed -= 1000000000; /* a second ago */
	tdt_task_woken(owner.handle);
	look_around();
	wait = &task_named("waiter")->wait;
	ck_assert_uint_eq(wait->owner, tdt_handle_id(owner.handle));
	ck_assert_uint_ge(wait->handed_ns, 1000000000);
	tdt__tasks_settle(&tasks);
	ck_assert_uint_eq(wait->futurelock, 0); /* its owner is runnable */
	look_away();

	poll_task(&owner);
	look_around();
	wait = &task_named("waiter")->wait;
	tdt__tasks_settle(&tasks);
	ck_assert_uint_eq(wait->futurelock, 1);
	look_away();

	tdt_lock_take(&lock, tdt_handle_id(owner.handle));
	look_around();
	wait = &task_named("waiter")->wait;
	tdt__tasks_settle(&tasks);
	ck_assert_uint_eq(wait->owner, tdt_handle_id(owner.handle));
	ck_assert_uint_eq(wait->handed_ns, 0);
	ck_assert_uint_eq(wait->futurelock, 0);
	look_away();
	lock.owner = 0;
	tdt_future_drop(&waiter.future);
	tdt_future_drop(&owner.future);
	tdt_handle_unref(waiter.handle);
	tdt_handle_unref(owner.handle);
}

CASE(modules)

TEST(the_file_of_a_module_is_opened_if_its_build_id_is_right)
{
	struct tdt__module *module;

	open_self();
	module = (struct tdt__module *)(uintptr_t)tdt__modules_find(
		images.table, (uintptr_t)the_file_of_a_module_is_opened_if_its_build_id_is_right);
	ck_assert_ptr_nonnull(module);
	ck_assert_ptr_eq(module->mapped, NULL);
	ck_assert_int_ge(tdt__images_open(&images, module->start), 0);
	ck_assert_ptr_nonnull(module->mapped);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

TEST(a_file_with_another_build_id_is_not_opened)
{
	struct tdt__module *module;

	open_self();
	module = (struct tdt__module *)(uintptr_t)tdt__modules_find(images.table,
								    (uintptr_t)&images);
	ck_assert_ptr_nonnull(module);
	module->build_id[0] ^= 1;
	ck_assert_int_lt(tdt__images_open(&images, module->start), 0);
	ck_assert_str_eq(module->mapped, ""); /* only its debug file is, by the build-id */
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

/* What is known of a function of this program; the file is opened before, if `open`. */
static const struct tdt__symbol *symbol_of_self(bool open)
{
	uintptr_t pc = (uintptr_t)symbol_of_self + 1;
	const struct tdt__symbol *symbol;

	open_self();
	if (open)
		ck_assert_int_ge(tdt__images_open(&images, pc), 0);
	symbol = tdt__symbolize(tdt__modules_find(images.table, pc), pc, true);
	ck_assert_ptr_nonnull(symbol);
	tdt__images_fini(&images);
	tdt__target_close(&target);
	return symbol;
}

TEST(a_file_that_was_opened_gives_names)
{
	const struct tdt__symbol *symbol = symbol_of_self(true);

	ck_assert_uint_eq(symbol->n, 1);
	ck_assert_str_eq(symbol->place[0].function, "symbol_of_self");
}

TEST(a_path_of_the_target_alone_gives_none)
{
	ck_assert_uint_eq(symbol_of_self(false)->n, 0);
}

TEST(no_file_is_opened_if_that_is_wanted)
{
	open_self();
	images.places.no_files = true;
	ck_assert_int_lt(tdt__images_open(&images, (uintptr_t)&images), 0);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

CASE(trees)

TEST(the_last_tree_is_that_of_the_library)
{
	struct tdt_traced traced;
	struct tdt__tree_reader reader = { .tasks = &tasks };
	struct tdt__read_tree tree;
	struct tdt_trace *last = NULL;
	uint64_t pc[64];

	ck_assert_int_eq(tdt_watch(1000000, NULL), 0);
	traced = make("watched", pend);
	while (last == NULL) {
		poll_task(&traced);
		usleep(1000);
		last = tdt_backtrace_last(traced.handle);
	}
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	look_around();
	ck_assert_int_eq(tdt__tree_read(&reader, task_named("watched"), &tree), 0);
	ck_assert_uint_eq(tree.stacks->leaves, 1);
	ck_assert_uint_eq(tree.stacks->n, tdt_trace_stack(last, 0, pc, 64, NULL));
	for (uint32_t i = 0; i < tree.stacks->n; i++)
		ck_assert_uint_eq(tree.stacks->frames[i].frame.pc, pc[i]);
	ck_assert_uint_le(tree.head.polls, task_named("watched")->member.info.polls);
	tdt__stacks_free(tree.stacks);
	tdt__tree_reader_fini(&reader);
	look_away();
	tdt_trace_free(last);
	end_traced(&traced);
}

/* A record with two trees, as a hostile target may have them. */
static struct {
	struct tdt_registry_watched head;
	struct {
		struct tdt_registry_tree tree;
		struct tdt_registry_entry entry[4];
	} tree[2];
} made_up;
static struct tdt__seen seen;

static void make_up(void)
{
	memset(&made_up, 0, sizeof made_up);
	made_up.head.published = 1;
	made_up.head.room = 4;
	made_up.tree[1].tree = (struct tdt_registry_tree){ .polls = 5, .n = 3, .leaves = 2 };
	made_up.tree[1].entry[0] =
		(struct tdt_registry_entry){ .pc = 1, .parent = 1, .leaves = 2 };
	made_up.tree[1].entry[1] = (struct tdt_registry_entry){ .pc = 2, .parent = 2 };
	made_up.tree[1].entry[2] =
		(struct tdt_registry_entry){ .pc = 3, .parent = TDT_REGISTRY_TOP };
}

static int read_made_up(uint32_t *frames)
{
	struct tdt__tree_reader reader = { .tasks = &tasks };
	struct tdt__seen_task task = { .seen = &seen };
	struct tdt__read_tree tree = { 0 };
	int error;

	seen.address = (uintptr_t)&seen.record;
	seen.record.tree = (uintptr_t)&made_up;
	error = tdt__tree_read(&reader, &task, &tree);
	*frames = tree.stacks != NULL ? tree.stacks->n : 0;
	tdt__stacks_free(tree.stacks);
	tdt__tree_reader_fini(&reader);
	return error;
}

TEST(a_sound_tree_is_read)
{
	uint32_t frames;

	look_around();
	make_up();
	ck_assert_int_eq(read_made_up(&frames), 0);
	ck_assert_uint_eq(frames, 3);
	look_away();
}

#define REFUSED(change)                                          \
	do {                                                     \
		make_up();                                       \
		change;                                          \
		ck_assert_int_eq(read_made_up(&frames), -ENODATA); \
	} while (0)

TEST(a_tree_that_contradicts_itself_is_none)
{
	uint32_t frames;

	look_around();
	REFUSED(made_up.tree[1].entry[2].parent = 0);			 /* a ring */
	REFUSED(made_up.tree[1].entry[2].parent = 2);			 /* the smallest ring */
	REFUSED(made_up.tree[1].entry[2].parent = 3);			 /* no such entry */
	REFUSED(made_up.tree[1].entry[2].parent = TDT_REGISTRY_TOP + 15); /* no such cut */
	REFUSED(made_up.tree[1].tree.n = 5);
	REFUSED(made_up.tree[1].tree.n = UINT32_MAX);
	REFUSED(made_up.tree[1].tree.leaves = 3);
	REFUSED(made_up.tree[1].tree.leaves = made_up.tree[1].entry[0].leaves = 1u << 30);
	REFUSED(made_up.head.room = UINT32_MAX);
	REFUSED(made_up.head.published = 0);
	look_away();
}

SUITE_SKIP(reading_refused())
