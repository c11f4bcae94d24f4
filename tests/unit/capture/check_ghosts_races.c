// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/counted.  Counted clones in many hands at once: other threads and signal handlers
 * wake, clone and drop them while the task is polled, requested and watched, also on libtdt-rt.
 * Each wake-up comes through, and each waker is given back once.
 */

#include <tdt/rt/net.h>

#include "lib/options.h"
#include "lib/rt.h"
#include "lib/test.h"

#define MS INT64_C(1000000)
#define SLOW (ASAN || TSAN || in_valgrind() || is_delayed())

/* --- A runtime ------------------------------------------------------------------------- */

/* Its clones are itself, or objects of their own: then a sanitizer sees what is used after its end.
 */
struct runtime {
	struct tdt_waker waker;
	struct runtime *runtime;
	bool boxes;
	atomic_long alive;
};

struct box {
	struct tdt_waker waker;
	struct runtime *runtime;
};

/* The runtime's own is laid out as a box. */
static struct runtime *of(const struct tdt_waker *waker)
{
	return ((const struct box *)(const void *)waker)->runtime;
}

/* Wake-ups are heard on the thread that wakes. */
static __thread volatile unsigned heard;

static const struct tdt_waker *clone_waker(const struct tdt_waker *waker)
{
	struct runtime *runtime = of(waker);
	struct box *box;

	atomic_fetch_add(&runtime->alive, 1);
	if (!runtime->boxes)
		return waker;
	box = malloc(sizeof *box);
	MUST(box != NULL);
	*box = (struct box){ *waker, runtime };
	return &box->waker;
}

static void drop(const struct tdt_waker *waker)
{
	struct runtime *runtime = of(waker);

	MUST(atomic_fetch_sub(&runtime->alive, 1) > 0);
	if (waker != &runtime->waker)
		free((void *)(uintptr_t)waker);
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	MUST(of(waker) != NULL);
	heard++;
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop(waker);
}

static const struct tdt_waker_vtable vtable = { clone_waker, wake, wake_by_ref, drop };

/* --- Clones that lie about --------------------------------------------------------------- */

#define SLOTS 16

static const struct tdt_waker *_Atomic slot[SLOTS];

static unsigned next_of(unsigned *random)
{
	*random = *random * 1664525u + 1013904223u;
	return *random >> 16;
}

/* Acquire and release: whoever takes it from there goes on with it. */
static void put(unsigned where, const struct tdt_waker *waker)
{
	tdt_waker_drop(atomic_exchange(&slot[where % SLOTS], waker));
}

/* Take one, if there is one, and do something with it.  Async-signal-safe, if the runtime's wakers
 * are. */
static void meddle(unsigned *random)
{
	const struct tdt_waker *waker = atomic_exchange(&slot[next_of(random) % SLOTS], NULL);
	unsigned before = heard;

	if (waker == NULL)
		return;
	switch (next_of(random) % 5) {
	case 0:
		tdt_waker_wake(waker);
		MUST(heard == before + 1);
		break;
	case 1:
		tdt_waker_wake_by_ref(waker);
		MUST(heard == before + 1);
		tdt_waker_drop(waker);
		break;
	case 2:
		tdt_waker_wake(tdt_waker_clone(waker));
		MUST(heard == before + 1);
		put(next_of(random), waker);
		break;
	case 3:
		put(next_of(random), tdt_waker_clone(waker));
		tdt_waker_drop(waker);
		break;
	default:
		tdt_waker_drop(waker);
	}
}

/* One that goes on at once, and three that wait. */
static tdt_poll_t scatter(void *state, struct tdt_context *cx)
{
	unsigned *random = state;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	put(next_of(random), tdt_waker_clone(cx->waker));
	put(next_of(random), tdt_waker_clone(cx->waker));
	put(next_of(random), tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static struct runtime runtime;
static struct tdt_traced task;
static unsigned scattered = 1;
static atomic_bool stop;

static void start(bool boxes)
{
	runtime = (struct runtime){ { &vtable }, &runtime, boxes, 0 };
	task = tdt_traced(((struct tdt_future){ &scattered, scatter, drop_nothing }));
	ck_assert_ptr_nonnull(task.handle);
	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
}

static void poll_task(void)
{
	struct tdt_context cx = { &runtime.waker };

	task.future.poll(task.future.state, &cx);
}

static void end(void)
{
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	task.future.drop(task.future.state);
	tdt_handle_unref(task.handle);
	for (unsigned i = 0; i < SLOTS; i++)
		put(i, NULL);
	ck_assert_int_eq(atomic_load(&runtime.alive), 0);
}

static void *meddling(void *seed)
{
	unsigned random = *(unsigned *)seed;

	while (!atomic_load(&stop))
		meddle(&random);
	return NULL;
}

static uint32_t most_leaves = 4; /* that a trace shows */

static void *requesting(void *arg)
{
	while (!atomic_load(&stop)) {
		struct tdt_trace *trace = backtrace_timed(task.handle, MS);

		if (trace != NULL && tdt_trace_info(trace)->state == TDT_TASK_WAITING) {
			MUST(tdt_trace_info(trace)->leaves >= 1);
			MUST(tdt_trace_info(trace)->leaves <= most_leaves);
		}
		tdt_trace_free(trace);
	}
	return NULL;
}

static pthread_t begin(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

CASE(hands, .teardown = end)

TEST(other_threads_wake_clone_and_drop_them)
{
	static unsigned seed[3] = { 11, 12, 13 };
	pthread_t thread[3], requester;

	start(true);
	for (int i = 0; i < 3; i++)
		thread[i] = begin(meddling, &seed[i]);
	requester = begin(requesting, NULL);
	for (int round = 0; round < (SLOW ? 2000 : 50000); round++)
		poll_task();
	atomic_store(&stop, true);
	threads_join(thread, 3);
	pthread_join(requester, NULL);
}

static unsigned interrupted = 1;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	unsigned before = heard;

	for (int i = 0; i < 4; i++)
		meddle(&interrupted);
	heard = before; /* whom we interrupted counts, too */
	signals++;
}

static void *signalling(void *thread)
{
	while (!atomic_load(&stop)) {
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
		usleep(20);
	}
	return NULL;
}

/* They interrupt polls, captures, and the same being done by the thread itself. */
TEST(signal_handlers_wake_clone_and_drop_them)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), requester, signaller;
	unsigned random = 1;

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	start(false);
	requester = begin(requesting, NULL);
	signaller = begin(signalling, &self);
	for (int round = 0; round < (SLOW ? 2000 : 50000) || signals < 100; round++) {
		poll_task();
		meddle(&random);
	}
	atomic_store(&stop, true);
	pthread_join(signaller, NULL);
	pthread_join(requester, NULL);
}

/* --- On libtdt-rt ------------------------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static const struct tdt_waker *waiting;
static int items; /* 2 at most */
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;

/* Registers first and looks second; its slot is emptied. */
static tdt_poll_t item_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *waker = tdt_waker_clone(cx->waker), *old;
	bool there;

	pthread_mutex_lock(&lock);
	old = waiting;
	there = items > 0;
	items -= there;
	pthread_cond_signal(&room);
	waiting = there ? NULL : waker;
	pthread_mutex_unlock(&lock);
	tdt_waker_drop(old);
	if (there)
		tdt_waker_drop(waker);
	return there ? TDT_READY : TDT_PENDING;
}

struct consumer {
	struct tdt_async async;
	int left;
};

static tdt_poll_t consumer_poll(void *state, struct tdt_context *cx)
{
	struct consumer *consumer = state;

	TDT_BEGIN(&consumer->async, cx);
	for (; consumer->left > 0; consumer->left--)
		TDT_AWAIT(((struct tdt_future){ NULL, item_poll, drop_nothing }));
	TDT_END();
}

/*
 * When there is room.  It sleeps until then: with one CPU, a loop of sched_yield() lets each
 * program beside it run for its whole turn, time and again.
 */
static void give_item(void)
{
	const struct tdt_waker *waker;

	pthread_mutex_lock(&lock);
	while (items == 2)
		pthread_cond_wait(&room, &lock);
	items++;
	waker = waiting;
	waiting = NULL;
	pthread_mutex_unlock(&lock);
	tdt_waker_wake(waker);
}

CASE(runtime)

TEST(a_task_of_libtdt_rt_misses_no_wake_up)
{
	int rounds = SLOW ? 3000 : 60000;
	pthread_t requester;
	RT(rt, tdt_rt_new(NULL));

	/*
	 * Of one poll: items may come as fast as a slow capture goes on, more than there are
	 * counted clones.
	 */
	most_leaves = UINT32_MAX;
	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	task.handle = tdt_rt_spawn(
	    rt, TDT_ASYNC_NEW(consumer_poll, (struct consumer){ .left = rounds }), NULL);
	ck_assert_ptr_nonnull(task.handle);
	requester = begin(requesting, NULL);
	for (int i = 0; i < rounds; i++)
		give_item();
	/* It ends by itself: what it lacks comes by the wake-ups that were made. */
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(task.handle, NULL)), 0);
	atomic_store(&stop, true);
	pthread_join(requester, NULL);
	ck_assert_ptr_null(waiting);
	tdt_handle_unref(task.handle);
}

#define MESSAGES (SLOW ? 300 : 5000)

struct talker {
	struct tdt_async async;
	struct tdt_tcp *tcp;
	char byte;
	ssize_t n;
	int left;
	bool answers;
};

static tdt_poll_t talker_poll(void *state, struct tdt_context *cx)
{
	struct talker *talker = state;

	TDT_BEGIN(&talker->async, cx);
	for (; talker->left > 0; talker->left--) {
		if (!talker->answers)
			TDT_AWAIT(tdt_tcp_write(talker->tcp, &talker->byte, 1, &talker->n));
		TDT_AWAIT(tdt_tcp_read(talker->tcp, &talker->byte, 1, &talker->n));
		if (talker->n != 1)
			return TDT_PANICKED;
		if (talker->answers)
			TDT_AWAIT(tdt_tcp_write(talker->tcp, &talker->byte, 1, &talker->n));
	}
	TDT_END();
}

static void talker_fini(void *state)
{
	tdt_tcp_free(((struct talker *)state)->tcp);
}

static struct tdt_future talker(struct tdt_tcp *tcp, bool answers)
{
	return TDT_ASYNC_NEW(talker_poll, (struct talker){ .async.fini = talker_fini,
							   .tcp = tcp,
							   .left = MESSAGES,
							   .answers = answers });
}

/* Its sockets know the runtime's wakers, and get counted clones of them. */
TEST(sockets_of_libtdt_rt_miss_no_wake_up)
{
	struct tdt_tcp *near, *far;
	struct tdt_future both;
	struct tdt_handle *other;
	pthread_t requester;
	int errors[2];
	RT(rt, tdt_rt_new(NULL));
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);

	ck_assert_ptr_nonnull(rt);
	ck_assert_ptr_nonnull(listener);
	both = tdt_join_all(
	    (struct tdt_future[]){
		tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(listener), &near, &errors[0]),
		tdt_tcp_accept(listener, &far, &errors[1]) },
	    2);
	ck_assert_int_eq(tdt_rt_block_on(rt, both), 0);
	ck_assert(errors[0] == 0 && errors[1] == 0);
	tdt_leaf_wakers(true);
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	other = tdt_rt_spawn(rt, talker(far, true), NULL);
	task.handle = tdt_rt_spawn(rt, talker(near, false), NULL);
	ck_assert(task.handle != NULL && other != NULL);
	requester = begin(requesting, NULL);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(task.handle, NULL)), 0);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(other, NULL)), 0);
	atomic_store(&stop, true);
	pthread_join(requester, NULL);
	tdt_handle_unref(other);
	tdt_handle_unref(task.handle);
	tdt_tcp_listener_free(listener);
}
