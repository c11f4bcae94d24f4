// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures a wake-up of a task and the poll that follows.  Two tasks wake each
 * other in turn, on one worker, and on two workers of two runtimes.  Another task, or a thread,
 * wakes 1,000 tasks at once.  Beside the turns are two threads that take turns by a mutex and a
 * condition variable, and two threads of GNU Pth that yield.
 */

#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/rt/runtime.h>

#include "pth.h"
#include "report.h"

#define MANY 1000

static int turns, times;
static struct tdt_rt *rt[2]; /* of one worker each */
static sem_t over;

static void nothing(void *state)
{
	(void)state;
}

static void spawn(struct tdt_rt *on, tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
		  void *state)
{
	struct tdt_handle *handle =
	    tdt_rt_spawn(on, (struct tdt_future){ state, poll, nothing }, NULL);

	if (handle == NULL)
		die("tdt_rt_spawn");
	tdt_handle_unref(handle);
}

/* --- In turn ---------------------------------------------------------------------- */

struct player {
	struct player *other;
	const struct tdt_waker *_Atomic waker; /* of a player that waits for its turn */
	atomic_int turns;		       /* that it was given */
	int played;
};

/* Take the turns there are; each gives one to the other. */
static tdt_poll_t player_poll(void *state, struct tdt_context *cx)
{
	struct player *player = state;

	for (;;) {
		tdt_waker_drop(atomic_exchange(&player->waker, tdt_waker_clone(cx->waker)));
		if (atomic_load(&player->turns) == player->played)
			return TDT_PENDING;
		player->played++;
		atomic_fetch_add(&player->other->turns, 1);
		tdt_waker_wake(atomic_exchange(&player->other->waker, NULL));
		if (player->played == turns) {
			tdt_waker_drop(atomic_exchange(&player->waker, NULL));
			sem_post(&over);
			return TDT_READY;
		}
	}
}

static void two_tasks(struct figure *figure, struct tdt_rt *one, struct tdt_rt *other)
{
	struct player players[2] = { { .other = &players[1], .turns = 1 },
				     { .other = &players[0] } };
	int64_t start = now();

	spawn(one, player_poll, &players[0]);
	spawn(other, player_poll, &players[1]);
	for (int i = 0; i < 2; i++)
		sem_wait(&over);
	add(figure, (double)(now() - start) / turns / 2);
	for (int i = 0; i < 2; i++)
		tdt_waker_drop(atomic_exchange(&players[i].waker, NULL));
}

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int whose; /* turn; under `table` */

static void *player_thread(void *number)
{
	int me = number != NULL;

	pthread_mutex_lock(&table);
	for (int i = 0; i < turns; i++) {
		while (whose != me)
			pthread_cond_wait(&turned, &table);
		whose = !me;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&table);
	return NULL;
}

static void two_threads(struct figure *figure)
{
	int64_t start = now();
	pthread_t other;

	whose = 0;
	if (pthread_create(&other, NULL, player_thread, &whose) != 0)
		die("pthread_create");
	player_thread(NULL);
	pthread_join(other, NULL);
	add(figure, (double)(now() - start) / turns / 2);
}

/* --- Many at once -------------------------------------------------------------------- */

static const struct tdt_waker *_Atomic wakers[MANY];
static const struct tdt_waker
    *_Atomic waker_of_all; /* that of the task that wakes them; NULL: a thread does */
static atomic_int left;				       /* to be polled of those that were woken */
static atomic_bool closing;

static tdt_poll_t woken_poll(void *state, struct tdt_context *cx)
{
	const struct tdt_waker *_Atomic *waker = state;
	const struct tdt_waker *all;
	bool last = atomic_load(&closing); /* as it is before they all have been polled */

	if (atomic_load(waker) == NULL)
		atomic_store(waker, tdt_waker_clone(cx->waker));
	all = atomic_load(&waker_of_all);
	if (atomic_fetch_sub(&left, 1) == 1) {
		if (all != NULL)
			tdt_waker_wake_by_ref(all);
		else
			sem_post(&over);
	}
	return last ? TDT_READY : TDT_PENDING;
}

static void wake_all(void)
{
	atomic_store(&left, MANY);
	for (int i = 0; i < MANY; i++)
		tdt_waker_wake_by_ref(wakers[i]);
}

static int woken; /* times, by the task */

static tdt_poll_t waker_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (woken == 0)
		atomic_store(&waker_of_all, tdt_waker_clone(cx->waker));
	if (woken++ == times) {
		tdt_waker_drop(atomic_exchange(&waker_of_all, NULL));
		sem_post(&over);
		return TDT_READY;
	}
	wake_all();
	return TDT_PENDING;
}

static void many_tasks(struct figure *by_task, struct figure *by_thread)
{
	int64_t start;

	atomic_store(&left, MANY);
	atomic_store(&closing, false);
	for (int i = 0; i < MANY; i++)
		spawn(rt[0], woken_poll, (void *)(uintptr_t)&wakers[i]);
	sem_wait(&over);
	woken = 0;
	start = now();
	spawn(rt[0], waker_poll, NULL);
	sem_wait(&over);
	add(by_task, (double)(now() - start) / times / MANY);
	start = now();
	for (int i = 0; i < times; i++) {
		wake_all();
		sem_wait(&over);
	}
	add(by_thread, (double)(now() - start) / times / MANY);
	atomic_store(&closing, true);
	wake_all();
	sem_wait(&over);
	for (int i = 0; i < MANY; i++)
		tdt_waker_drop(atomic_exchange(&wakers[i], NULL));
}

int main(int argc, char **argv)
{
	struct tdt_rt_config config = { .size = sizeof config, .workers = 1 };
	struct figure *threads, *one, *two, *pth = NULL, *by_task, *by_thread;

	report_start(argc, argv, "What does it cost to wake a task, and poll it?", "ns", 9);
	turns = quick ? 1000 : 50000;
	times = quick ? 10 : 500;
	sem_init(&over, 0, 0);
	for (int i = 0; i < 2; i++)
		if ((rt[i] = tdt_rt_new(&config)) == NULL)
			die("tdt_rt_new");
	threads = figure("a turn of two threads, with a condition variable", NULL);
	if (have_pth)
		pth = figure("a turn of two threads of GNU Pth", threads);
	else
		remark(NO_PTH);
	one = figure("a turn of two tasks of one worker", threads);
	two = figure("a turn of two tasks of two workers", threads);
	by_task = figure("each of 1,000 tasks that a task wakes", NULL);
	by_thread = figure("each of 1,000 tasks that a thread wakes", NULL);
	for (int i = 0; i < rounds; i++) {
		two_threads(threads);
		if (have_pth)
			add(pth, (double)pth_turns(turns) / turns / 2);
		two_tasks(one, rt[0], rt[0]);
		two_tasks(two, rt[0], rt[1]);
		many_tasks(by_task, by_thread);
	}
	for (int i = 0; i < 2; i++)
		tdt_rt_free(rt[i]);
	return report_end();
}
