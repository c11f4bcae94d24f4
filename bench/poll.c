// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures what tracing adds to a poll without a request, beside the same poll
 * bare.  The poll is made in a loop, by a worker of libtdt-rt, and by a library without probes,
 * whose path is in TDT_BENCH_WITHOUT_PROBES (`make bench` builds one).  It also measures what
 * tracing adds to a task's whole life.
 */

#include <config.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "report.h"

#define POLLS 20000
#define LIVES 2000
#define TURN 32 /* polls that one look at the clock serves in libtdt-rt */

/* --- Futures, and a waker that is its own clone ------------------------------------------ */

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static tdt_poll_t clone_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static tdt_poll_t ready_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_READY;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, nothing, nothing, nothing };
static const struct tdt_waker waker = { &vtable };

static struct tdt_future future_of(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	return (struct tdt_future){ NULL, poll, drop_nothing };
}

/* --- Libraries ------------------------------------------------------------------------------ */

/* What is called of one; the other is loaded beside the one this program is linked with. */
struct library {
	__typeof__(tdt_traced_with) *traced_with;
	__typeof__(tdt_handle_unref) *handle_unref;
	__typeof__(tdt_worker_now) *worker_now;
};

/* As it is: the linker hands out another under its name (--wrap, see below). */
struct tdt_traced __real_tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr);

static const struct library linked = { __real_tdt_traced_with, tdt_handle_unref, tdt_worker_now };

/* NULL: it is there; else why not. */
static const char *load(struct library *library, const char *path)
{
	void *module;

	if (path == NULL)
		return "make bench builds one, and says where it is";
	/* Its calls of its own functions are not for ours, which have the same names. */
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (module == NULL)
		return dlerror();
	library->traced_with =
	    (__typeof__(tdt_traced_with) *)(uintptr_t)dlsym(module, "tdt_traced_with");
	library->handle_unref =
	    (__typeof__(tdt_handle_unref) *)(uintptr_t)dlsym(module, "tdt_handle_unref");
	library->worker_now =
	    (__typeof__(tdt_worker_now) *)(uintptr_t)dlsym(module, "tdt_worker_now");
	if (library->traced_with == NULL || library->handle_unref == NULL ||
	    library->worker_now == NULL)
		return "it lacks a function";
	return NULL;
}

static struct tdt_future trace(const struct library *library, struct tdt_future future)
{
	struct tdt_traced traced = library->traced_with(future, TDT_TASK_ATTR());

	if (traced.handle == NULL)
		die("tdt_traced_with");
	library->handle_unref(traced.handle);
	return traced.future;
}

/* --- In a loop -------------------------------------------------------------------------------- */

static void poll_often(struct figure *figure, const struct tdt_future *future)
{
	struct tdt_context cx = { &waker };
	int64_t start = now();

	for (int i = 0; i < POLLS; i++)
		tdt_future_poll(future, &cx);
	add(figure, (double)(now() - start) / POLLS);
}

static void poll_in_turns(struct figure *figure, const struct tdt_future *future)
{
	struct tdt_context cx = { &waker };
	int64_t start = now();

	for (int i = 0; i < POLLS / TURN; i++) {
		tdt_worker_now((uint64_t)now());
		for (int j = 0; j < TURN; j++)
			tdt_future_poll(future, &cx);
	}
	add(figure, (double)(now() - start) / (POLLS / TURN * TURN));
}

static void live_often(struct figure *figure, const struct library *library)
{
	struct tdt_context cx = { &waker };
	int64_t start = now();

	for (int i = 0; i < LIVES; i++) {
		struct tdt_future future = trace(library, future_of(ready_poll));

		tdt_future_poll(&future, &cx);
		tdt_future_drop(&future);
	}
	add(figure, (double)(now() - start) / LIVES);
}

/* --- By a worker ------------------------------------------------------------------------------ */

#define TASKS 64
#define EACH 500

static bool bare; /* what is spawned now is polled without the wrapper */
static atomic_int alive;
static atomic_bool over;
static double took;

struct tdt_traced __wrap_tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr);

/*
 * The runtime traces tasks by this function (ld's --wrap).  Where polls are to be bare, the runtime
 * gets the handle of another future, which is never polled.  The runtime's task lies beside the
 * record, which a future that is traced would keep: here a reference does, for good.
 */
struct tdt_traced __wrap_tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = __real_tdt_traced_with(bare ? future_of(wait_poll) : fut, attr);

	if (bare && traced.handle != NULL) {
		tdt_handle_ref(traced.handle);
		tdt_future_drop(&traced.future);
		traced.future = fut;
	}
	return traced;
}

static tdt_poll_t again_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (atomic_load_explicit(&over, memory_order_relaxed)) {
		atomic_fetch_sub(&alive, 1);
		return TDT_READY;
	}
	tdt_waker_wake_by_ref(cx->waker);
	return TDT_PENDING;
}

/* One of the tasks, which take turns: between two polls of it all others are polled once. */
static tdt_poll_t measuring_poll(void *state, struct tdt_context *cx)
{
	static int64_t start;
	int *polls = state;

	if (*polls == EACH) { /* the others have come, and the queue goes round */
		start = now();
	} else if (*polls == 2 * EACH) {
		took = (double)(now() - start) / (EACH * TASKS);
		atomic_store_explicit(&over, true, memory_order_relaxed);
	}
	++*polls;
	return again_poll(NULL, cx);
}

static void spawn(struct tdt_rt *rt, struct tdt_future future)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, NULL);

	if (handle == NULL)
		die("tdt_rt_spawn");
	tdt_handle_unref(handle);
}

static double by_worker(struct tdt_rt *rt, bool no_wrapper)
{
	int polls = 0;

	bare = no_wrapper;
	atomic_store(&over, false);
	atomic_store(&alive, TASKS);
	for (int i = 1; i < TASKS; i++)
		spawn(rt, future_of(again_poll));
	spawn(rt, (struct tdt_future){ &polls, measuring_poll, drop_nothing });
	while (atomic_load(&alive) != 0)
		usleep(100);
	bare = false;
	return took;
}

/* A turn's look at the clock, for each of the polls it serves. */
static double stamp(void)
{
	int64_t start = now();

	for (int i = 0; i < POLLS / TURN; i++)
		tdt_worker_now((uint64_t)now());
	return (double)(now() - start) / (POLLS / TURN * TURN);
}

/* ---------------------------------------------------------------------------------------------- */

static struct figure *held_to(struct figure *figure, double limit)
{
	at_most(figure, limit);
	return figure;
}

int main(int argc, char **argv)
{
	const struct tdt_trace_context context = { .trace_id = { 1 }, .span_id = { 1 } };
	struct tdt_future waits = future_of(wait_poll), clones = future_of(clone_poll), traced,
			  nested, cloning, other;
	struct figure *labelled;
	struct figure *bare_poll, *told, *coarse, *in_turns, *twice, *bare_clone, *clone, *life;
	struct figure *bare_worker, *worker, *worker_adds, *without = NULL, *life_without = NULL;
	struct library library;
	const char *missing;
	struct tdt_rt *rt;

	report_start(argc, argv, "What is added to a poll that nobody asks about?", "ns a poll",
		     101);
	missing = load(&library, getenv("TDT_BENCH_WITHOUT_PROBES"));
	bare_poll = figure("a poll that does nothing", NULL);
	told = figure("traced, the time told", bare_poll);
	held_to(figure_added("  added (tasktrace: 24)", told, bare_poll), 6);
	in_turns = figure("traced, the clock read once for 32 polls", bare_poll);
	held_to(figure_added("  added", in_turns, bare_poll), 7);
	labelled = figure("traced, the thread labelled with its trace context", bare_poll);
	held_to(figure_added("  the label adds", labelled, told), 3);
	coarse = figure("traced, the coarse clock read", bare_poll);
	figure_added("  added", coarse, bare_poll);
	twice = figure("traced, in another traced one", bare_poll);
	figure_added("  added", twice, bare_poll);
	bare_clone = figure("a poll that clones its waker", NULL);
	clone = figure("traced, the time told", bare_clone);
	figure_added("  added", clone, bare_clone);
	remark("By a worker of libtdt-rt, 64 tasks that take turns:");
	bare_worker = figure("a bare poll, and what the runtime does round it", NULL);
	worker = figure("the same, traced", bare_worker);
	worker_adds = held_to(figure("  added, and a 32nd of a look at the clock", NULL), 7);
	remark("Probes, compiled in and not attached to:");
	if (missing == NULL) {
		without = figure("traced by a library without them", bare_poll);
		figure_added("  the probes add", told, without);
	} else {
		remark("traced by a library without them: not measured: %s", missing);
	}
	life = figure("a task of one poll, made and dropped", NULL);
	if (missing == NULL) {
		life_without = figure("the same without probes", NULL);
		figure_added("  the probes add", life, life_without);
	}

	traced = trace(&linked, waits);
	if (tdt_task_context(tdt_future_handle(&traced), &context) != 0)
		die("tdt_task_context");
	nested = trace(&linked, trace(&linked, waits));
	cloning = trace(&linked, clones);
	if (missing == NULL)
		other = trace(&library, waits);
	rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 1 });
	if (rt == NULL)
		die("tdt_rt_new");
	for (int i = 0; i < rounds; i++) {
		double bare_ns, traced_ns;

		poll_in_turns(in_turns, &traced);
		tdt_worker_now(0);
		poll_often(coarse, &traced);
		tdt_worker_now((uint64_t)now());
		poll_often(bare_poll, &waits);
		poll_often(told, &traced);
		tdt_context_labels(true);
		poll_often(labelled, &traced);
		tdt_context_labels(false);
		poll_often(twice, &nested);
		poll_often(bare_clone, &clones);
		poll_often(clone, &cloning);
		live_often(life, &linked);
		if (missing == NULL) {
			library.worker_now((uint64_t)now());
			poll_often(without, &other);
			live_often(life_without, &library);
		}
		bare_ns = by_worker(rt, true);
		traced_ns = by_worker(rt, false);
		add(bare_worker, bare_ns);
		add(worker, traced_ns);
		add(worker_adds, traced_ns - bare_ns + stamp());
	}
	tdt_rt_free(rt);
	if (missing == NULL)
		tdt_future_drop(&other);
	tdt_future_drop(&cloning);
	tdt_future_drop(&nested);
	tdt_future_drop(&traced);
	return report_end();
}
