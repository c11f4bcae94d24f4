// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/inject, runtime/worker, runtime/task.  The runtime with many tasks and threads at
 * once.  What is random comes from a seed, which is printed.
 */

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <tdt/rt/net.h>

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"

static uint32_t seed;

static void nothing(void *state)
{
}

/* --- A storm ------------------------------------------------------------------- */

#define SPAWNERS 4
#define EACH 25000 /* of a spawner; a tenth of them spawn nine more */

static atomic_int stormed, storm_drops;

static void count_drop(void *state)
{
	atomic_fetch_add(&storm_drops, 1);
}

static tdt_poll_t storm_poll(void *state, struct tdt_context *cx)
{
	for (int i = 0; state != NULL && i < 9; i++) {
		struct tdt_handle *handle = tdt_rt_spawn(
		    tdt_rt_current(), (struct tdt_future){ NULL, storm_poll, count_drop }, NULL);

		MUST(handle != NULL);
		tdt_handle_unref(handle);
	}
	atomic_fetch_add(&stormed, 1);
	return TDT_READY;
}

static void *storm(void *rt)
{
	for (int i = 0; i < EACH / 10; i++) {
		struct tdt_handle *handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ rt, storm_poll, count_drop }, NULL);

		MUST(handle != NULL);
		tdt_handle_unref(handle);
	}
	return NULL;
}

static void expect_storm(unsigned workers)
{
	pthread_t threads[SPAWNERS];
	RT(rt, rt_of(workers));

	threads_start(threads, SPAWNERS, storm, rt);
	threads_join(threads, SPAWNERS);
	UNTIL(storm_drops == SPAWNERS * EACH);
	ck_assert_int_eq(stormed, SPAWNERS * EACH);
}

CASE(run)

TEST(all_of_a_hundred_thousand_tasks_run, .from = 1, .to = 4)
{
	expect_storm((unsigned)_i);
}

/* --- Wake-ups ---------------------------------------------------------------------- */

#define TASKS 20
#define WAKERS 3
#define ROUNDS 150
#define WAKES 100 /* of each thread, in a round; then all must have been heard */

/* A task that sees how often it was told something before it was woken. */
struct listener {
	atomic_int told, heard;
	atomic_bool polled; /* right now */
	const struct tdt_waker *waker;
	sem_t ready;
};

static struct listener listeners[TASKS];

static tdt_poll_t listener_poll(void *state, struct tdt_context *cx)
{
	struct listener *listener = state;

	MUST(!atomic_exchange_explicit(&listener->polled, true, memory_order_relaxed));
	if (listener->waker == NULL) {
		listener->waker = tdt_waker_clone(cx->waker);
		sem_post(&listener->ready);
	}
	/* Relaxed: it is the wake-up that has to bring it. */
	atomic_store_explicit(&listener->heard,
			      atomic_load_explicit(&listener->told, memory_order_relaxed),
			      memory_order_relaxed);
	sched_yield(); /* wake-ups from here on need another poll: let there be some */
	atomic_store_explicit(&listener->polled, false, memory_order_relaxed);
	return TDT_PENDING;
}

static void *tell(void *number)
{
	uint32_t state = seed + (uint32_t)(uintptr_t)number;

	for (int i = 0; i < WAKES; i++) {
		struct listener *listener = &listeners[random_below(&state, TASKS)];

		atomic_fetch_add_explicit(&listener->told, 1, memory_order_relaxed);
		if (random_below(&state, 2) == 0)
			tdt_waker_wake_by_ref(listener->waker);
		else
			tdt_waker_wake(tdt_waker_clone(listener->waker));
		if (random_below(&state, 50) == 0)
			leaf_pause(); /* let the workers fall asleep */
	}
	return NULL;
}

TEST(each_wake_up_leads_to_a_poll_after_it, .from = 1, .to = 4)
{
	struct tdt_rt *rt = rt_of((unsigned)_i);
	pthread_t threads[WAKERS];

	seed = seed_of_run();
	for (int i = 0; i < TASKS; i++) {
		sem_init(&listeners[i].ready, 0, 0);
		tdt_handle_unref(tdt_rt_spawn(
		    rt, (struct tdt_future){ &listeners[i], listener_poll, nothing }, NULL));
		while (sem_wait(&listeners[i].ready) != 0)
			;
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < WAKERS; i++) {
			int number = WAKERS * round + i;

			ck_assert_int_eq(
			    pthread_create(&threads[i], NULL, tell, (void *)(intptr_t)number), 0);
		}
		threads_join(threads, WAKERS);
		for (int i = 0; i < TASKS; i++)
			UNTIL(listeners[i].heard == listeners[i].told);
	}
	tdt_rt_free(rt);
	for (int i = 0; i < TASKS; i++) {
		tdt_waker_drop(listeners[i].waker);
		sem_destroy(&listeners[i].ready);
	}
}

/*
 * As soon as a task has been polled, its worker looks around once more and goes to sleep: that is
 * when it is woken.
 */
TEST(no_wake_up_is_lost_while_a_worker_falls_asleep, .from = 1, .to = 3)
{
	struct leaf leaf = { 0 };
	RT(rt, rt_of((unsigned)_i));

	seed = seed_of_run();
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
	for (int polls = 1, n = (int)times_here(30000); polls < n; polls++) {
		while (leaf.polls != polls || leaf.waker == NULL)
			if (random_below(&seed, 1000) == 0)
				sched_yield();
		for (volatile uint32_t i = random_below(&seed, 400); i > 0; i--)
			;
		leaf_wake(&leaf);
	}
}

/* --- Stealing ------------------------------------------------------------------------- */

#define BEHIND 200

static sem_t behind_polled;

static tdt_poll_t behind_poll(void *state, struct tdt_context *cx)
{
	sem_post(&behind_polled);
	return TDT_READY;
}

/* Spawn tasks, which go into this worker's queue, and block the worker until they have run. */
static tdt_poll_t blocking_poll(void *state, struct tdt_context *cx)
{
	int n = *(int *)state;

	for (int i = 0; i < n; i++)
		tdt_handle_unref(tdt_rt_spawn(
		    tdt_rt_current(), (struct tdt_future){ NULL, behind_poll, nothing }, NULL));
	for (int i = 0; i < n; i++)
		while (sem_wait(&behind_polled) != 0)
			;
	return TDT_READY;
}

TEST(tasks_behind_one_that_blocks_run_elsewhere)
{
	static const int numbers[] = { 1, 2, 7, BEHIND, 1000 };
	RT(rt, rt_of(2));

	sem_init(&behind_polled, 0, 0);
	for (int round = 0; round < 50; round++) {
		int n = numbers[round % 5];
		struct tdt_handle *handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ &n, blocking_poll, nothing }, NULL);
		struct tdt_trace *trace;

		ck_assert_ptr_nonnull(handle);
		for (;;) {
			trace = backtrace_timed(handle, 1000000);
			tdt_trace_free(trace);
			if (trace == NULL && errno == ESRCH)
				break;
		}
		tdt_handle_unref(handle);
	}
}

static void wait_for_data(struct leaf *leaf, struct tdt_context *cx)
{
	struct leaf *other = leaf->data;

	UNTIL(other->drops == 1);
}

/* Of two tasks that come from outside, one waits for the other and blocks its worker. */
TEST(whoever_is_woken_for_one_task_wakes_another_for_the_next)
{
	RT(rt, rt_of(2));

	for (int round = 0; round < 300; round++) {
		struct leaf second = { .open = true };
		struct leaf first = { .open = true, .on_poll = wait_for_data, .data = &second };

		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&first), NULL));
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&second), NULL));
		UNTIL(first.drops == 1 && second.drops == 1);
		if (round % 2 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 12000000 },
				  NULL); /* then nobody looks out */
	}
}

/* What a task wakes, and then blocks its worker, runs elsewhere too. */
static void wake_and_block(struct leaf *leaf, struct tdt_context *cx)
{
	struct leaf *other = leaf->data;

	leaf_open(other);
	UNTIL(other->drops == 1);
}

TEST(a_task_woken_by_one_that_then_blocks_runs_elsewhere)
{
	RT(rt, rt_of(2));

	for (int round = 0; round < 50; round++) {
		struct leaf other = { 0 },
			    leaf = { .open = true, .on_poll = wake_and_block, .data = &other };

		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&other), NULL));
		UNTIL(other.waker != NULL);
		tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&leaf), NULL));
		UNTIL(leaf.drops == 1);
	}
}

/* --- Tasks the driver wakes ------------------------------------------------------------ */

/* A waker that is no task's, and blocks the thread that wakes it. */
struct blocking {
	struct tdt_waker waker;
	atomic_bool *until;
	atomic_bool begun, over;
};

static void blocking_wake(const struct tdt_waker *waker)
{
	struct blocking *blocking = (struct blocking *)(uintptr_t)waker;

	blocking->begun = true;
	UNTIL(*blocking->until);
	blocking->over = true;
}

static const struct tdt_waker_vtable blocking_vtable = { clone_itself, blocking_wake, blocking_wake,
							 ignore_waker };

/* Accepts a connection, and says so. */
struct accepting {
	struct tdt_tcp_listener *listener;
	struct tdt_future future;
	struct tdt_tcp *tcp;
	int error, client;
	const struct tdt_waker *waker; /* to wait with; NULL: that of its task */
	atomic_bool done;
};

static tdt_poll_t accepting_poll(void *state, struct tdt_context *cx)
{
	struct accepting *accepting = state;
	struct tdt_context other = { accepting->waker };
	tdt_poll_t result =
	    tdt_future_poll(&accepting->future, accepting->waker != NULL ? &other : cx);

	if (accepting->waker != NULL)
		return result == TDT_PENDING ? TDT_READY : TDT_PANICKED;
	accepting->done = result == TDT_READY;
	return result;
}

static void accepting_new(struct accepting *accepting)
{
	accepting->listener = tdt_tcp_listen("127.0.0.1", 0);
	ck_assert_ptr_nonnull(accepting->listener);
	accepting->future = tdt_tcp_accept(accepting->listener, &accepting->tcp, &accepting->error);
	ck_assert(!tdt_future_is_none(&accepting->future));
}

/* The descriptor of what listens there. */
static int listening_on(in_port_t port)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in at = { 0 };
		int listens = 0;

		if (getsockname(fd, (struct sockaddr *)&at, &(socklen_t){ sizeof at }) == 0 &&
		    at.sin_port == port &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens,
			       &(socklen_t){ sizeof listens }) == 0 &&
		    listens)
			return fd;
	}
	ck_abort_msg("nothing listens");
}

/*
 * The last packet may come after connect() has returned; but the listener is ready when this does.
 */
static void accepting_connect(struct accepting *accepting)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(tdt_tcp_listener_port(accepting->listener)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd ready = { .fd = listening_on(to.sin_port), .events = POLLIN };

	accepting->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(accepting->client, (struct sockaddr *)&to, sizeof to), 0);
	if (accepting->waker != NULL) /* nobody accepts it */
		ck_assert_int_eq(poll(&ready, 1, 30000), 1);
}

static void accepting_free(struct accepting *accepting)
{
	tdt_future_drop(&accepting->future);
	tdt_tcp_free(accepting->tcp);
	tdt_tcp_listener_free(accepting->listener);
	close(accepting->client);
}

/*
 * If another worker is there to poll it: the waker keeps the worker that was in the driver's role,
 * and so has the task in its queue.
 */
TEST(a_waker_may_wait_for_a_task_that_the_driver_has_woken_before)
{
	RT(rt, rt_of(2));

	for (int round = 0; round < 10; round++) {
		atomic_bool both_ready = false;
		struct accepting task = { 0 }, first = { 0 }, second = { 0 };
		struct blocking holds = { .waker = { &blocking_vtable }, .until = &both_ready };
		struct blocking waits = { .waker = { &blocking_vtable }, .until = &task.done };
		struct tdt_handle *handle;

		accepting_new(&task);
		accepting_new(&first);
		accepting_new(&second);
		first.waker = &holds.waker;
		second.waker = &waits.waker;
		handle =
		    tdt_rt_spawn(rt, (struct tdt_future){ &task, accepting_poll, nothing }, NULL);
		ck_assert_ptr_nonnull(handle);
		tdt_trace_free(request_waiting(handle)); /* it waits */
		tdt_handle_unref(handle);
		ck_assert_int_eq(
		    tdt_rt_block_on(rt, (struct tdt_future){ &second, accepting_poll, nothing }),
		    0);
		ck_assert_int_eq(
		    tdt_rt_block_on(rt, (struct tdt_future){ &first, accepting_poll, nothing }), 0);

		/* Hold one worker up until both others are ready: the other finds them. */
		accepting_connect(&first);
		UNTIL(holds.begun);
		accepting_connect(&task);
		accepting_connect(&second);
		both_ready = true;
		UNTIL(waits.over);
		UNTIL(holds.over);
		accepting_free(&first);
		accepting_free(&second);
		accepting_free(&task);
	}
}

/* --- The end, while others go on ------------------------------------------------------- */

struct ending {
	struct tdt_rt *rt;
	pthread_t thread;
	struct leaf leaf;
	const struct tdt_waker *waker;
	uint32_t state;
	atomic_int accepted;
};

static atomic_int ending_drops;

static void count_ending(void *state)
{
	atomic_fetch_add(&ending_drops, 1);
}

static void *spawn_until_refused(void *arg)
{
	struct ending *ending = arg;
	struct tdt_handle *handle;

	while ((handle = tdt_rt_spawn(ending->rt,
				      (struct tdt_future){ NULL, stay_pending, count_ending },
				      NULL)) != NULL) {
		tdt_handle_unref(handle);
		/* The thread that ends the runtime is held up: memory is to last until then. */
		if (atomic_fetch_add(&ending->accepted, 1) > 20000)
			leaf_pause();
	}
	MUST(errno == ESHUTDOWN);
	return NULL;
}

/* It makes the end of the runtime wait for the thread. */
static void join_spawner(struct leaf *leaf)
{
	struct ending *ending = leaf->data;

	pthread_join(ending->thread, NULL);
}

CASE(end)

TEST(threads_may_spawn_while_the_end_begins)
{
	for (int round = 0; round < 30; round++) {
		struct ending endings[3] = { 0 };
		struct tdt_rt *rt = rt_of(2);
		int accepted = 0;

		ending_drops = 0;
		for (int i = 0; i < 3; i++) {
			endings[i].rt = rt;
			endings[i].leaf =
			    (struct leaf){ .on_drop = join_spawner, .data = &endings[i] };
			tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&endings[i].leaf), NULL));
			ck_assert_int_eq(pthread_create(&endings[i].thread, NULL,
							spawn_until_refused, &endings[i]),
					 0);
		}
		UNTIL(endings[0].accepted > 10 * round);
		tdt_rt_free(rt);
		for (int i = 0; i < 3; i++)
			accepted += endings[i].accepted;
		ck_assert_int_eq(ending_drops, accepted);
	}
}

static void *wake_often(void *arg)
{
	struct ending *ending = arg;
	const struct tdt_waker *waker = ending->waker;

	for (int i = 0; i < 300; i++) {
		tdt_waker_wake_by_ref(waker);
		if (random_below(&ending->state, 10) == 0)
			leaf_pause();
		if (random_below(&ending->state, 10) == 0)
			tdt_waker_wake(tdt_waker_clone(waker));
	}
	tdt_waker_wake(waker);
	return NULL;
}

TEST(threads_may_wake_while_and_after_it_ends)
{
	seed = seed_of_run();
	for (int round = 0; round < 30; round++) {
		struct ending endings[3] = { 0 };
		struct tdt_rt *rt = rt_of(2);

		for (int i = 0; i < 3; i++) {
			endings[i].state = seed + (uint32_t)(3 * round + i);
			tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&endings[i].leaf), NULL));
			UNTIL((endings[i].waker = atomic_exchange(&endings[i].leaf.waker, NULL)) !=
			      NULL);
			ck_assert_int_eq(
			    pthread_create(&endings[i].thread, NULL, wake_often, &endings[i]), 0);
		}
		for (uint32_t i = random_below(&seed, 10); i > 0; i--)
			leaf_pause();
		tdt_rt_free(rt);
		for (int i = 0; i < 3; i++) {
			ck_assert_int_eq(endings[i].leaf.drops, 1);
			pthread_join(endings[i].thread, NULL);
		}
	}
}

/* Tasks that end, panic, wait or go on for ever, and a runtime that ends at any moment. */
static tdt_poll_t any_poll(void *state, struct tdt_context *cx)
{
	uint32_t *random = state;

	switch (random_below(random, 4)) {
	case 0:
		return TDT_READY;
	case 1:
		return TDT_PANICKED;
	case 2:
		return TDT_PENDING;
	default:
		tdt_waker_wake_by_ref(cx->waker);
		return TDT_PENDING;
	}
}

TEST(a_runtime_may_end_at_any_moment)
{
	static uint32_t states[300];

	seed = seed_of_run();
	for (int round = 0; round < 200; round++) {
		struct tdt_rt *rt = rt_of(1 + random_below(&seed, 4));
		int n = (int)random_below(&seed, 300);

		ending_drops = 0;
		for (int i = 0; i < n; i++) {
			states[i] = seed + (uint32_t)i;
			tdt_handle_unref(tdt_rt_spawn(
			    rt, (struct tdt_future){ &states[i], any_poll, count_ending }, NULL));
		}
		tdt_rt_free(rt);
		ck_assert_int_eq(ending_drops, n);
	}
}
