// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program for tracers to look at, which does the same over and over: on two workers tasks burn,
 * sleep, wake each other and spawn others; a third worker never has anything to do.  For each line
 * on its standard input it prints where the five tasks wait, as JSON, and an empty line; it ends
 * when that ends.
 *
 *	burner   burns 4 ms in burn(), sleeps 10 ms
 *	laggard  burns 60 ms in burn(), sleeps 60 ms: long polls
 *	pinger   sleeps 5 ms, opens ponger's gate
 *	ponger   waits at that gate and, beside it, at one that is never opened
 *	spawner  every 20 ms spawns three tasks in one place and one in another, which end in their first poll; and
 *	         awaits a traced future of its own, whose polls are inside its own
 *
 * It has a runtime of its own, so that one worker is known to have nothing to do.
 */

#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

enum { WORKERS = 2 };

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* --- The runtime ---------------------------------------------------------- */

struct task {
	struct tdt_waker waker;
	/* Each clone of the waker, the queue, and the runtime until the task has ended have one. */
	atomic_uint refs;
	struct tdt_future future;
	struct tdt_handle *handle;
	bool woken, polled, ended; /* these under the lock, as all below */
	struct task *next;
};

/* Where a task waits until the time has come. */
struct gate {
	uint64_t due;
	const struct tdt_waker *waker;
	struct gate *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed, never;
static struct task *queue, **queue_end = &queue;
static struct gate *gates;
static bool stopping, idles;

static struct task *task_of(const struct tdt_waker *waker)
{
	return (struct task *)(uintptr_t)waker;
}

static const struct tdt_waker *clone_waker(const struct tdt_waker *waker)
{
	atomic_fetch_add(&task_of(waker)->refs, 1);
	return waker;
}

static void drop_waker(const struct tdt_waker *waker)
{
	struct task *task = task_of(waker);

	if (atomic_fetch_sub(&task->refs, 1) == 1) {
		tdt_future_drop(&task->future);
		tdt_handle_unref(task->handle);
		free(task);
	}
}

static void enqueue(struct task *task)
{
	clone_waker(&task->waker);
	task->next = NULL;
	*queue_end = task;
	queue_end = &task->next;
	pthread_cond_broadcast(&changed);
}

static void wake_locked(struct task *task)
{
	if (task->woken || task->ended)
		return;
	tdt_task_woken(task->handle);
	task->woken = true;
	if (!task->polled)
		enqueue(task);
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	pthread_mutex_lock(&lock);
	wake_locked(task_of(waker));
	pthread_mutex_unlock(&lock);
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop_waker(waker);
}

static const struct tdt_waker_vtable waker_vtable = { clone_waker, wake, wake_by_ref, drop_waker };

/* Takes the traced future over, and leaves the handle to the caller. */
static struct tdt_handle *spawn(struct tdt_traced traced)
{
	struct task *task = malloc(sizeof(*task));

	if (traced.handle == NULL || task == NULL)
		die("spawn");
	*task = (struct task){ .waker = { &waker_vtable },
			       .refs = 1,
			       .future = traced.future,
			       .handle = tdt_handle_ref(traced.handle),
			       .woken = true };
	pthread_mutex_lock(&lock);
	enqueue(task);
	pthread_mutex_unlock(&lock);
	return traced.handle;
}

/* Under the lock, which it gives up meanwhile. */
static void poll_task(struct task *task)
{
	struct tdt_context cx = { &task->waker };
	tdt_poll_t result;

	task->woken = false;
	task->polled = true;
	pthread_mutex_unlock(&lock);
	result = tdt_future_poll(&task->future, &cx);
	if (result != TDT_PENDING)
		tdt_future_drop(&task->future);
	pthread_mutex_lock(&lock);
	task->polled = false;
	task->ended = result != TDT_PENDING;
	if (task->woken && !task->ended)
		enqueue(task);
	pthread_mutex_unlock(&lock);
	if (task->ended)
		drop_waker(&task->waker);
	drop_waker(&task->waker);
	pthread_mutex_lock(&lock);
}

/* Wake the tasks at gates that are due, and return when the next will be.  Under the lock. */
static uint64_t open_gates(void)
{
	uint64_t time = now(), next = UINT64_MAX;

	for (struct gate *gate = gates; gate != NULL; gate = gate->next) {
		if (gate->waker != NULL && gate->due <= time) {
			wake_locked(task_of(tdt_waker_beneath(gate->waker)));
			tdt_waker_drop(gate->waker); /* never the last one: the task has the gate */
			gate->waker = NULL;
		} else if (gate->waker != NULL && gate->due < next) {
			next = gate->due;
		}
	}
	return next;
}

static void park_until(uint64_t due)
{
	struct timespec time = { (time_t)(due / 1000000000), (long)(due % 1000000000) };

	tdt_worker_thread_park();
	if (due == UINT64_MAX)
		pthread_cond_wait(&changed, &lock);
	else
		pthread_cond_timedwait(&changed, &lock, &time);
	tdt_worker_thread_unpark();
}

static void *work(void *unused)
{
	(void)unused;
	tdt_worker_thread_start(NULL);
	pthread_mutex_lock(&lock);
	while (!stopping) {
		uint64_t due = open_gates();
		struct task *task = queue;

		if (task == NULL) {
			park_until(due);
			continue;
		}
		queue = task->next;
		if (queue == NULL)
			queue_end = &queue;
		poll_task(task);
	}
	pthread_mutex_unlock(&lock);
	tdt_worker_thread_stop();
	return unused;
}

static void *idle(void *unused)
{
	tdt_worker_thread_start(NULL);
	tdt_worker_thread_park();
	pthread_mutex_lock(&lock);
	idles = true;
	pthread_cond_broadcast(&changed);
	while (!stopping)
		pthread_cond_wait(&never, &lock);
	pthread_mutex_unlock(&lock);
	tdt_worker_thread_unpark();
	tdt_worker_thread_stop();
	return unused;
}

/* --- Futures -------------------------------------------------------------- */

static bool is_open(struct gate *gate)
{
	bool open;

	pthread_mutex_lock(&lock);
	open = gate->due <= now();
	pthread_mutex_unlock(&lock);
	return open;
}

/* Takes the waker over. */
static tdt_poll_t wait_at(struct gate *gate, const struct tdt_waker *waker)
{
	const struct tdt_waker *old;

	pthread_mutex_lock(&lock);
	old = gate->waker;
	gate->waker = waker;
	pthread_cond_broadcast(&changed); /* a worker that sleeps may do so too long */
	pthread_mutex_unlock(&lock);
	tdt_waker_drop(old);
	return TDT_PENDING;
}

#if __has_attribute(noipa)
#define AS_IT_STANDS                                                                               \
	__attribute__((noipa)) /* not split, and not folded into another that looks the same */
#else
#define AS_IT_STANDS __attribute__((noinline))
#endif

#define LEAF_POLL(name)                                                                            \
	static AS_IT_STANDS tdt_poll_t name(void *state, struct tdt_context *cx)                   \
	{                                                                                          \
		TDT_KEEP_FRAME();                                                                  \
		return is_open(state) ? TDT_READY : wait_at(state, tdt_waker_clone(cx->waker));    \
	}

static void gate_drop(void *state)
{
	struct gate *gate = state, **link = &gates;

	pthread_mutex_lock(&lock);
	while (*link != gate)
		link = &(*link)->next;
	*link = gate->next;
	pthread_mutex_unlock(&lock);
	tdt_waker_drop(gate->waker);
	free(gate);
}

/* `gate` may be NULL. */
static struct tdt_future wait_until(uint64_t due,
				    tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
				    struct gate **gate)
{
	struct gate *new = calloc(1, sizeof(*new));

	if (new == NULL)
		die("wait_until");
	new->due = due;
	pthread_mutex_lock(&lock);
	new->next = gates;
	gates = new;
	if (gate != NULL)
		*gate = new;
	pthread_mutex_unlock(&lock);
	return (struct tdt_future){ new, poll, gate_drop };
}

LEAF_POLL(nap_poll)

static struct tdt_future nap(uint64_t ms)
{
	return wait_until(now() + ms * 1000000, nap_poll, NULL);
}

/* Mostly here: the functions of libc that read the clock have no frame pointer. */
static __attribute__((noinline)) void burn(uint64_t ms)
{
	uint64_t end = now() + ms * 1000000;

	while (now() < end)
		for (int i = 0; i < 50000; i++)
			TDT_KEEP_FRAME();
}

/* The state of all of them. */
struct plain {
	struct tdt_async async;
};

static tdt_poll_t burner_poll(void *state, struct tdt_context *cx)
{
	struct plain *burner = state;

	TDT_BEGIN(&burner->async, cx);
	for (;;) {
		burn(4);
		TDT_AWAIT(nap(10));
	}
	TDT_END();
}

static tdt_poll_t laggard_poll(void *state, struct tdt_context *cx)
{
	struct plain *laggard = state;

	TDT_BEGIN(&laggard->async, cx);
	for (;;) {
		burn(60);
		TDT_AWAIT(nap(60));
	}
	TDT_END();
}

static struct gate *ping; /* under the lock; NULL: nobody waits there */

static tdt_poll_t pinger_poll(void *state, struct tdt_context *cx)
{
	struct plain *pinger = state;

	TDT_BEGIN(&pinger->async, cx);
	for (;;) {
		TDT_AWAIT(nap(5));
		pthread_mutex_lock(&lock);
		if (ping != NULL)
			ping->due = 0;
		ping = NULL;
		open_gates();
		pthread_mutex_unlock(&lock);
	}
	TDT_END();
}

LEAF_POLL(ping_poll)
LEAF_POLL(never_poll)

static struct tdt_future ping_or_never(void)
{
	struct tdt_future both[] = { wait_until(UINT64_MAX, ping_poll, &ping),
				     wait_until(UINT64_MAX, never_poll, NULL) };
	struct tdt_future either = tdt_select(both, 2, NULL);

	if (tdt_future_is_none(&either))
		die("tdt_select");
	return either;
}

static tdt_poll_t ponger_poll(void *state, struct tdt_context *cx)
{
	struct plain *ponger = state;

	TDT_BEGIN(&ponger->async, cx);
	for (;;)
		TDT_AWAIT(ping_or_never());
	TDT_END();
}

static tdt_poll_t trifle_poll(void *state, struct tdt_context *cx)
{
	struct plain *trifle = state;

	TDT_BEGIN(&trifle->async, cx);
	TDT_END();
}

static tdt_poll_t inner_poll(void *state, struct tdt_context *cx)
{
	struct plain *inner = state;

	TDT_BEGIN(&inner->async, cx);
	burn(2);
	TDT_AWAIT(nap(2));
	burn(2);
	TDT_END();
}

#define TRIFLE(name_)                                                                              \
	tdt_traced_with(TDT_ASYNC_NEW(trifle_poll, (struct plain){ 0 }),                           \
			TDT_TASK_ATTR(.name = name_))

static void spawn_trifles(void)
{
	for (int i = 0; i < 3; i++)
		tdt_handle_unref(spawn(TRIFLE("one of three")));
	tdt_handle_unref(spawn(TRIFLE("single")));
}

static struct tdt_future traced_inside(void)
{
	struct tdt_traced inner = tdt_traced_with(TDT_ASYNC_NEW(inner_poll, (struct plain){ 0 }),
						  TDT_TASK_ATTR(.name = "inner"));

	tdt_handle_unref(inner.handle);
	return inner.future;
}

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	struct plain *spawner = state;

	TDT_BEGIN(&spawner->async, cx);
	for (;;) {
		TDT_AWAIT(nap(20));
		spawn_trifles();
		TDT_AWAIT(traced_inside());
	}
	TDT_END();
}

/* --- What the standard input says ------------------------------------------ */

#define TASK(name_)                                                                                \
	spawn(tdt_traced_with(TDT_ASYNC_NEW(name_##_poll, (struct plain){ 0 }),                    \
			      TDT_TASK_ATTR(.name = #name_)))

static void print_tasks(struct tdt_handle **tasks, size_t n)
{
	const struct tdt_print_options json = { .size = sizeof(json), .format = TDT_PRINT_JSON };

	for (size_t i = 0; i < n; i++) {
		struct tdt_trace *trace = tdt_backtrace(tasks[i]);

		if (trace == NULL)
			perror("tdt_backtrace");
		else
			tdt_trace_print_with(trace, stdout, &json);
		tdt_trace_free(trace);
	}
	puts("");
	fflush(stdout);
}

static void start(pthread_t *thread, void *(*run)(void *unused))
{
	if (pthread_create(thread, NULL, run, NULL) != 0)
		die("pthread_create");
}

int main(void)
{
	pthread_condattr_t monotonic;
	pthread_t threads[WORKERS + 1];
	struct tdt_handle *tasks[5];
	char line[64];

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &monotonic);
	pthread_cond_init(&never, NULL);
	start(&threads[WORKERS], idle);
	pthread_mutex_lock(&lock);
	while (!idles) /* a tracer that comes later is to see nothing of it */
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS; i++)
		start(&threads[i], work);
	tasks[0] = TASK(burner);
	tasks[1] = TASK(laggard);
	tasks[2] = TASK(pinger);
	tasks[3] = TASK(ponger);
	tasks[4] = TASK(spawner);
	while (fgets(line, sizeof(line), stdin) != NULL)
		print_tasks(tasks, sizeof(tasks) / sizeof(tasks[0]));
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&changed);
	pthread_cond_broadcast(&never);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS + 1; i++)
		pthread_join(threads[i], NULL);
	return EXIT_SUCCESS; /* the tasks go with the process */
}
