// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/counted.  Counted clones in hosts that make it hard: tasks that end while leaves
 * hold clones, tasks in tasks, thousands of leaves, plugins that are unloaded, children of fork(),
 * runtimes that look into wakers.  No leaf that waits is lost, each wake-up comes through once, and
 * the runtime gets back every waker.
 */

#include <dlfcn.h>

#include <tdt/integrate/hooks.h>

#include "lib/futures.h"
#include "lib/test.h"

/* --- A leaf that registers first and looks second --------------------------------- */

struct gate {
	bool open;   /* the next poll ends it */
	bool keeps;  /* its slot is not emptied when it ends */
	bool yields; /* it wakes its own clone in the poll */
	bool takes;  /* it takes what it needs out of its clone, and drops the clone */
	const struct tdt_waker *slot;
	tdt_poll_t result; /* when it is open */
};

static void gate_empty(struct gate *gate)
{
	tdt_waker_drop(gate->slot);
	gate->slot = NULL;
}

static tdt_poll_t gate_poll(void *state, struct tdt_context *cx)
{
	struct gate *gate = state;

	tdt_waker_drop(gate->slot);
	gate->slot = tdt_waker_clone(cx->waker);
	if (gate->slot == NULL)
		return TDT_PANICKED;
	if (gate->yields) {
		tdt_waker_wake(gate->slot);
		gate->slot = NULL;
	}
	if (gate->takes || (gate->open && !gate->keeps))
		gate_empty(gate);
	return gate->open ? gate->result : TDT_PENDING;
}

static struct tdt_future pass(struct gate *gate)
{
	return (struct tdt_future){ gate, gate_poll, drop_nothing };
}

struct both {
	struct tdt_async async;
	struct gate *first, *second;
};

static tdt_poll_t both_poll(void *state, struct tdt_context *cx)
{
	struct both *both = state;

	TDT_BEGIN(&both->async, cx);
	TDT_AWAIT(pass(both->first));
	TDT_AWAIT(pass(both->second));
	TDT_END();
}

/* One after the other. */
static struct tdt_future in_turn(struct gate *first, struct gate *second)
{
	return TDT_ASYNC_NEW(both_poll, (struct both){ .first = first, .second = second });
}

static struct tdt_future joined(struct tdt_future first, struct tdt_future second)
{
	return tdt_join_all((struct tdt_future[]){ first, second }, 2);
}

/* --- A task on the thread of the test ------------------------------------------------ */

static struct test_waker runtime;
static struct tdt_traced task;

static void start(struct tdt_future future)
{
	test_waker_init(&runtime);
	task = tdt_traced(future);
	ck_assert_ptr_nonnull(task.handle);
}

static tdt_poll_t poll_task(void)
{
	struct tdt_context cx = { &runtime.waker };

	return task.future.poll(task.future.state, &cx);
}

/* A request, for polls of the task to answer. */
struct requester {
	struct tdt_future future;
	struct test_waker waker;
	struct tdt_trace *trace;
	int error;
};

static void ask(struct requester *requester, struct tdt_handle *handle)
{
	struct tdt_context cx = { &requester->waker.waker };

	test_waker_init(&requester->waker);
	requester->trace = NULL;
	requester->future = tdt_backtrace_async(handle, NULL, &requester->trace, &requester->error);
	ck_assert_int_eq(tdt_future_poll(&requester->future, &cx), TDT_PENDING);
}

/* The answer, for the caller to free. */
static struct tdt_trace *answer(struct requester *requester)
{
	struct tdt_context cx = { &requester->waker.waker };

	ck_assert_int_eq(tdt_future_poll(&requester->future, &cx), TDT_READY);
	tdt_future_drop(&requester->future);
	ck_assert_ptr_nonnull(requester->trace);
	return requester->trace;
}

/* Poll the task with a request. */
static struct tdt_trace *poll_asked(void)
{
	struct requester requester;

	ask(&requester, task.handle);
	poll_task();
	return answer(&requester);
}

static uint32_t leaves(const struct tdt_trace *trace)
{
	tdt_trace_root(trace);
	return tdt_trace_info(trace)->leaves;
}

/* The leaves in the tree of a poll with a request. */
static uint32_t leaves_asked(void)
{
	TRACE(trace, poll_asked());

	return leaves(trace);
}

static void drop_task(void)
{
	task.future.drop(task.future.state);
	tdt_handle_unref(task.handle);
}

/* Wake what is in the slot: the runtime hears it at once, and once. */
static void wake(struct gate *gate)
{
	const struct tdt_waker *waker = gate->slot;
	int wakes = runtime.wakes;

	gate->slot = NULL;
	ck_assert_ptr_nonnull(waker);
	tdt_waker_wake(waker);
	ck_assert_int_eq(runtime.wakes, wakes + 1);
}

CASE(outlive)

TEST(clones_wake_and_are_given_back_after_their_task_has_ended, .to = 4)
{
	struct gate first = { .keeps = true }, second = { .keeps = true };
	struct tdt_trace *trace;

	start(joined(pass(&first), pass(&second)));
	trace = poll_asked();
	ck_assert_uint_eq(leaves(trace), 2);
	first.open = second.open = true;
	if (_i % 2 == 0)
		ck_assert_int_eq(poll_task(), TDT_READY);
	drop_task();
	if (_i < 2)
		tdt_trace_free(trace);
	ck_assert_int_eq(runtime.alive, 2);
	wake(&first);
	gate_empty(&second);
	ck_assert_int_eq(runtime.alive, 0);
	if (_i >= 2)
		tdt_trace_free(trace);
}

/* Nobody has taken the answer, and the task is gone; then the clone. */
TEST(clones_outlive_a_request_that_is_withdrawn, .to = 2)
{
	struct gate gate = { .keeps = true };
	struct requester requester;

	start(pass(&gate));
	ask(&requester, task.handle);
	if (_i == 1)
		poll_task();
	tdt_future_drop(&requester.future);
	if (_i == 0)
		poll_task();
	drop_task();
	ck_assert_int_eq(runtime.alive, 1);
	wake(&gate);
	ck_assert_int_eq(runtime.alive, 0);
}

TEST(a_poll_that_panics_keeps_no_waker)
{
	struct gate first = { .open = true }, second = { .open = true, .result = TDT_PANICKED };
	struct tdt_trace *trace;

	start(in_turn(&first, &second));
	trace = poll_asked();
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_PANICKED);
	tdt_trace_free(trace);
	drop_task();
	ck_assert_int_eq(runtime.alive, 0);
}

TEST(clones_of_a_counted_clone_hold_it)
{
	struct gate first = { .keeps = true, .open = true }, second = { .open = false };
	const struct tdt_waker *more[2];

	start(joined(pass(&first), pass(&second)));
	ck_assert_uint_eq(leaves_asked(), 1 + 1); /* the first is over, but its clone is held */
	for (int i = 0; i < 2; i++)
		more[i] = tdt_waker_clone(first.slot);
	gate_empty(&first);
	ck_assert_int_eq(runtime.alive, 3); /* two leaves', and what the library has saved */
	tdt_waker_wake(more[0]);
	ck_assert_int_eq(runtime.wakes, 1);
	ck_assert_int_eq(runtime.alive, 3);
	tdt_waker_wake_by_ref(more[1]);
	ck_assert_int_eq(runtime.wakes, 2);
	tdt_waker_drop(more[1]);
	ck_assert_int_eq(runtime.alive, 2);
	drop_task();
	gate_empty(&second);
	ck_assert_int_eq(runtime.alive, 0);
}

CASE(shown)

TEST(a_leaf_that_was_woken_in_its_poll_waits)
{
	struct gate first = { .yields = true }, second = { .open = false };

	start(joined(pass(&first), pass(&second)));
	poll_task();
	ck_assert_uint_eq(leaves_asked(), 2);
	drop_task();
	gate_empty(&second);
	ck_assert_int_eq(runtime.alive, 0);
}

/* It is against the rules of tdt_leaf_wakers(); and where it is alone, the tree is not empty. */
TEST(a_leaf_that_takes_out_what_it_needs_is_shown_where_no_other_waits)
{
	struct gate first = { .takes = true }, second = { .takes = true };

	start(joined(pass(&first), pass(&second)));
	poll_task();
	ck_assert_uint_eq(leaves_asked(), 2);
	drop_task();
	ck_assert_int_eq(runtime.alive, 0);
}

#define MANY 5000

TEST(thousands_of_leaves_are_all_there_and_all_wake)
{
	static struct gate gate[MANY];
	static struct tdt_future future[MANY];

	for (int i = 0; i < MANY; i++) {
		gate[i] = (struct gate){ .open = false };
		future[i] = pass(&gate[i]);
	}
	start(tdt_join_all(future, MANY));
	for (int round = 0; round < 3; round++) {
		/* The library may have fewer counted clones, but not fewer leaves. */
		ck_assert_uint_eq(leaves_asked(), MANY);
		for (int i = 0; i < MANY; i++)
			wake(&gate[i]);
	}
	poll_task();
	for (int i = 0; i < MANY; i++)
		gate[i].open = i % 2 == 0;
	ck_assert_uint_ge(leaves_asked(), MANY / 2);
	drop_task();
	for (int i = 0; i < MANY; i++)
		gate_empty(&gate[i]);
	ck_assert_int_eq(runtime.alive, 0);
}

/* They are used again: nothing grows with the number of requests. */
TEST(request_after_request_takes_no_more_clones)
{
	struct gate first = { .open = true, .result = TDT_PENDING }, second = { .open = false };
	const struct tdt_waker *seen[256];
	unsigned n = 0;

	start(joined(pass(&first), pass(&second)));
	for (unsigned request = times_here(2000); request > 0; request--) {
		unsigned i = 0;

		ck_assert_uint_eq(leaves_asked(), 1); /* the first drops its clone at once */
		while (i < n && seen[i] != second.slot)
			i++;
		ck_assert_uint_lt(i, 256);
		seen[i] = second.slot;
		n = i == n ? n + 1 : n;
		gate_empty(&second);
	}
	drop_task();
	ck_assert_int_eq(runtime.alive, 0);
}

TEST(a_runtime_without_memory_for_a_waker_has_it_told)
{
	struct gate gate = { .open = false };
	struct tdt_trace *trace;

	start(pass(&gate));
	poll_task();
	runtime.fail_clone = true;
	trace = poll_asked();
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_PANICKED);
	tdt_trace_free(trace);
	drop_task();
	ck_assert_int_eq(runtime.alive, 0);
}

/* --- A traced future in another ---------------------------------------------------------- */

static struct tdt_handle *inner_handle;

static struct tdt_future inner(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);

	ck_assert_ptr_nonnull(traced.handle);
	inner_handle = traced.handle;
	return traced.future;
}

/* Bits of the loop: which tasks are requested. */
enum { ASK_OUTER = 1, ASK_INNER = 2 };

CASE(nested)

TEST(both_trees_of_a_task_in_a_task_show_what_waits, .to = 4)
{
	struct gate gate[4] = { { .open = false } };
	struct requester outer_requester, inner_requester;
	struct tdt_trace *trace;

	start(joined(in_turn(&gate[0], &gate[1]), inner(in_turn(&gate[2], &gate[3]))));
	poll_task();
	gate[0].open = gate[2].open = true;
	if (_i & ASK_OUTER)
		ask(&outer_requester, task.handle);
	if (_i & ASK_INNER)
		ask(&inner_requester, inner_handle);
	poll_task();
	if (_i & ASK_OUTER) {
		trace = answer(&outer_requester);
		ck_assert_uint_eq(leaves(trace), 2);
		tdt_trace_free(trace);
	}
	if (_i & ASK_INNER) {
		trace = answer(&inner_requester);
		ck_assert_uint_eq(leaves(trace), 1);
		tdt_trace_free(trace);
	}
	/* Two leaves, and the wakers that the library has saved of two tasks. */
	ck_assert_int_eq(runtime.alive, 4);
	wake(&gate[1]);
	wake(&gate[3]);
	gate[1].open = gate[3].open = true;
	ck_assert_int_eq(poll_task(), TDT_READY);
	drop_task();
	tdt_handle_unref(inner_handle);
	ck_assert_int_eq(runtime.alive, 0);
}

/* A leaf with a waker of its own between: a set of futures each of which has one. */
struct set {
	struct tdt_waker waker; /* what the child is polled with */
	struct tdt_future child;
	const struct tdt_waker *parent;
};

static struct set *set_of(const struct tdt_waker *waker)
{
	return (struct set *)(uintptr_t)waker;
}

static void set_wake(const struct tdt_waker *waker)
{
	tdt_waker_wake_by_ref(set_of(waker)->parent);
}

static const struct tdt_waker_vtable set_vtable = { clone_itself, set_wake, set_wake,
						    ignore_waker };

static tdt_poll_t set_poll(void *state, struct tdt_context *cx)
{
	struct set *set = state;
	struct tdt_context own = { &set->waker };

	tdt_waker_drop(set->parent);
	set->parent = tdt_waker_clone(cx->waker);
	return tdt_future_poll(&set->child, &own);
}

static void set_drop(void *state)
{
	struct set *set = state;

	tdt_future_drop(&set->child);
	tdt_waker_drop(set->parent);
}

TEST(a_task_in_a_set_with_wakers_of_its_own_is_shown_and_woken)
{
	struct gate gate[2] = { { .open = false } };
	struct set set = { .waker = { &set_vtable }, .child = inner(in_turn(&gate[0], &gate[1])) };
	struct requester outer_requester, inner_requester;
	struct tdt_trace *trace;

	start((struct tdt_future){ &set, set_poll, set_drop });
	poll_task();
	gate[0].open = true;
	ask(&outer_requester, task.handle);
	ask(&inner_requester, inner_handle);
	poll_task();
	trace = answer(&outer_requester);
	ck_assert_uint_ge(leaves(trace), 1);
	tdt_trace_free(trace);
	trace = answer(&inner_requester);
	ck_assert_uint_eq(leaves(trace), 1);
	tdt_trace_free(trace);
	wake(&gate[1]);
	drop_task();
	tdt_handle_unref(inner_handle);
	gate_empty(&gate[1]);
	ck_assert_int_eq(runtime.alive, 0);
}

CASE(runtimes)

TEST(a_runtime_that_casts_wakers_gets_its_own)
{
	struct gate gate = { .open = false };

	tdt_leaf_wakers(false);
	start(pass(&gate));
	ck_assert_uint_eq(leaves_asked(), 1);
	ck_assert_ptr_eq(gate.slot, &runtime.waker);
	drop_task();
	gate_empty(&gate);
	ck_assert_int_eq(runtime.alive, 0);
}

TEST(a_runtime_that_asks_what_is_beneath_gets_its_own)
{
	struct gate gate = { .open = false };

	start(pass(&gate));
	ck_assert_uint_eq(leaves_asked(), 1);
	ck_assert_ptr_ne(gate.slot, &runtime.waker);
	ck_assert_ptr_eq(tdt_waker_beneath(gate.slot), &runtime.waker);
	ck_assert_ptr_eq(tdt_waker_beneath(&runtime.waker), &runtime.waker);
	drop_task();
	ck_assert_ptr_eq(tdt_waker_beneath(gate.slot), &runtime.waker);
	gate_empty(&gate);
}

TEST(a_watched_poll_gives_the_runtimes_own_unless_it_is_told, .to = 2)
{
	struct gate gate = { .open = false };
	struct tdt_trace *trace;

	if (_i == 1)
		tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	/* The watch may have to make clones first. */
	do {
		start(pass(&gate));
		poll_task();
		trace = tdt_backtrace_last(task.handle);
		drop_task();
		ck_assert(trace == NULL || leaves(trace) == 1);
		tdt_trace_free(trace);
		if (_i == 0)
			ck_assert_ptr_eq(gate.slot, &runtime.waker);
		ck_assert_ptr_eq(tdt_waker_beneath(gate.slot), &runtime.waker);
		tdt_waker_drop(gate.slot);
		usleep(1000);
	} while (_i == 1 && gate.slot == &runtime.waker);
	ck_assert_int_eq(runtime.alive, 0);
}

/* There are not as many counted clones as leaves of a burst. */
TEST(in_a_burst_of_watched_tasks_each_has_a_waker_and_its_leaf)
{
	static struct gate gate[MANY];
	static struct tdt_traced burst[MANY];
	struct tdt_context cx = { &runtime.waker };
	unsigned counted = 0;

	test_waker_init(&runtime);
	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		burst[i] = tdt_traced(pass(&gate[i]));
		ck_assert_ptr_nonnull(burst[i].handle);
		ck_assert_int_eq(tdt_future_poll(&burst[i].future, &cx), TDT_PENDING);
		counted += gate[i].slot != &runtime.waker;
	}
	ck_assert_uint_lt(counted, MANY);
	for (int i = 0; i < MANY; i++) {
		TRACE(trace, tdt_backtrace_last(burst[i].handle));

		ck_assert_uint_eq(leaves(trace), 1);
		wake(&gate[i]);
		tdt_future_drop(&burst[i].future);
		tdt_handle_unref(burst[i].handle);
	}
	ck_assert_int_eq(runtime.alive, 0);
}

/* --- Plugins and children -------------------------------------------------------------------- */

static void *open_plugin(struct tdt_future *future)
{
	void *library = dlopen(PLUGINS "/ghost_plugin.so", RTLD_NOW | RTLD_LOCAL);
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);

	ck_assert_msg(library != NULL, "%s", dlerror());
	*(void **)&poll = dlsym(library, "plugin_poll");
	ck_assert(poll != NULL);
	*future = (struct tdt_future){ NULL, poll, drop_nothing };
	return library;
}

CASE(hosts)

/* Its destructor drops the clone, while the loader unloads it. */
TEST(a_plugin_that_holds_a_clone_is_unloaded, .to = 2)
{
	struct gate gate = { .open = false };
	struct tdt_trace *trace;
	struct tdt_future future;
	void *library = open_plugin(&future);
	FILE *nowhere = fopen("/dev/null", "w");

	start(joined(future, pass(&gate)));
	trace = poll_asked();
	ck_assert_uint_eq(leaves(trace), 2);
	if (_i == 0)
		drop_task();
	ck_assert_int_eq(dlclose(library), 0);
	ck_assert_ptr_null(dlopen(PLUGINS "/ghost_plugin.so", RTLD_NOW | RTLD_NOLOAD));
	ck_assert_int_eq(tdt_trace_print(trace, nowhere), 0);
	tdt_trace_free(trace);
	fclose(nowhere);
	if (_i == 1) {
		task.future.drop(task.future.state); /* the plugin's drop is this program's */
		tdt_handle_unref(task.handle);
	}
	wake(&gate);
	ck_assert_int_eq(runtime.alive, 0);
}

/* What the child does with clones that its parent made, and with new ones. */
static void in_child(struct gate *first, struct gate *second, struct requester *requester)
{
	struct tdt_trace *trace;
	int wakes = runtime.wakes;

	if (requester != NULL) {
		poll_task();
		trace = answer(requester);
		MUST(leaves(trace) == 2);
		tdt_trace_free(trace);
	}
	tdt_waker_wake(first->slot);
	first->slot = NULL;
	MUST(runtime.wakes == wakes + 1);
	gate_empty(second);
	trace = poll_asked();
	MUST(leaves(trace) == 2);
	tdt_trace_free(trace);
	drop_task();
	gate_empty(first);
	gate_empty(second);
	MUST(runtime.alive == 0);
	_exit(0);
}

/* Between a capture and the drop of its clones, or between a request and its capture. */
TEST(a_child_of_fork_has_clones_that_wake, .to = 2)
{
	struct gate first = { .open = false }, second = { .open = false };
	struct requester requester;
	pid_t pid;

	start(joined(pass(&first), pass(&second)));
	ck_assert_uint_eq(leaves_asked(), 2);
	if (_i == 1)
		ask(&requester, task.handle);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		in_child(&first, &second, _i == 1 ? &requester : NULL);
	ck_assert_int_eq(child_status(pid), 0);
	if (_i == 1) {
		poll_task();
		tdt_trace_free(answer(&requester));
	}
	wake(&first);
	drop_task();
	gate_empty(&second);
	ck_assert_int_eq(runtime.alive, 0);
}
