// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/handshake, host/barrier.  No wake-up is lost between pollers and requesters: many
 * rounds in which a task is polled for other reasons while it is requested.  When a round is over,
 * every request must have been taken by a poll, or the task must have been woken: else an executor
 * would now put the task aside, and no poll would ever answer.
 *
 * The same with a barrier that does nothing on the requester's side must lose some, or the test
 * could not tell: the linker hands tdt__barrier_heavy() to this suite (--wrap).
 */

#include <config.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tdt/trace.h>

#include "capture/capture.h"
#include "host/barrier.h"
#include "lib/seeded.h"
#include "registry/handle.h"
#include "task/request.h"

#define REQUESTERS_MAX 2
#define SECOND INT64_C(1000000000)

/* --- The barrier, or none ---------------------------------------------------- */

static bool naive;

void __real_tdt__barrier_heavy(void);
void __wrap_tdt__barrier_heavy(void);

void __wrap_tdt__barrier_heavy(void)
{
	if (!naive)
		__real_tdt__barrier_heavy();
}

/* --- A task that is polled whatever happens ---------------------------------- */

static atomic_bool woken; /* since the last poll began */

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void wake(const struct tdt_waker *waker)
{
	(void)waker;
	atomic_store(&woken, true);
}

static void drop_waker(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable waker_vtable = { clone_itself, wake, wake, drop_waker };
static const struct tdt_waker waker = { &waker_vtable };

static tdt_poll_t wait_on(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void drop_future(void *state)
{
	(void)state;
}

static struct tdt_traced new_task(void)
{
	return tdt_traced(((struct tdt_future){ NULL, wait_on, drop_future }));
}

static void poll_once(struct tdt_traced *task)
{
	struct tdt_context cx = { &waker };

	/*
	 * Relaxed: in an executor a lock of its own orders this.  Here nothing may, or it would
	 * stand in for a missing barrier.
	 */
	atomic_store_explicit(&woken, false, memory_order_relaxed);
	tdt_future_poll(&task->future, &cx);
}

/* --- Rounds -------------------------------------------------------------------- */

struct play {
	unsigned requesters;
	bool fresh; /* a new task each round: its first poll leaves the first waker behind */

	struct tdt_traced task;
	struct tdt__request *request[REQUESTERS_MAX];
	atomic_uint round; /* odd: being played */
	atomic_uint playing;
	atomic_bool over;
};

struct requester {
	struct play *play;
	unsigned number;
};

static void spin(unsigned times)
{
	for (volatile unsigned i = 0; i < times; i++)
		;
}

static void wait_until(atomic_uint *word, unsigned value)
{
	for (unsigned i = 1; atomic_load(word) != value; i++)
		if (i % 1000 == 0)
			sched_yield();
}

static void *ask(void *argument)
{
	const struct requester *requester = argument;
	struct play *play = requester->play;
	unsigned seed = requester->number + 1;

	for (unsigned round = 1;; round += 2) {
		wait_until(&play->round, round);
		if (atomic_load(&play->over))
			return NULL;
		spin(random_below(&seed, 60));
		tdt__request_send(play->task.handle, play->request[requester->number]);
		atomic_fetch_sub(&play->playing, 1);
	}
}

/*
 * Poll a few times while the others ask.  Returns whether somebody is left to wait with nobody
 * woken.
 */
static bool play_round(struct play *play, unsigned *seed)
{
	struct tdt_handle *task = play->task.handle;
	bool lost = false;

	for (unsigned i = 0; i < play->requesters; i++)
		play->request[i] = tdt__request_new(task, TDT_MAX_FRAMES);
	atomic_store(&woken, false);
	atomic_store(&play->playing, play->requesters);
	atomic_fetch_add(&play->round, 1);
	for (unsigned polls = 1 + random_below(seed, 4); polls > 0; polls--) {
		spin(random_below(seed, 20));
		poll_once(&play->task);
	}
	wait_until(&play->playing, 0);
	for (unsigned i = 0; i < play->requesters; i++)
		lost = lost ||
		       (!tdt__request_answered(task, play->request[i]) && !atomic_load(&woken));
	poll_once(&play->task);
	for (unsigned i = 0; i < play->requesters; i++) {
		int error;

		tdt__capture_unref(tdt__request_result(play->request[i], &error));
	}
	atomic_fetch_add(&play->round, 1);
	return lost;
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

struct outcome {
	unsigned rounds;
	unsigned lost;
};

/* Play at most `rounds` rounds and `limit_ns`; with `until_lost` only to the first that is lost. */
static struct outcome play(unsigned requesters, bool fresh, unsigned rounds, int64_t limit_ns,
			   bool until_lost)
{
	struct play play = { .requesters = requesters, .fresh = fresh };
	struct outcome outcome = { 0, 0 };
	pthread_t thread[REQUESTERS_MAX];
	struct requester requester[REQUESTERS_MAX];
	int64_t end = now() + limit_ns;
	unsigned seed = 1;

	play.task = new_task();
	for (unsigned i = 0; i < requesters; i++) {
		requester[i] = (struct requester){ &play, i };
		pthread_create(&thread[i], NULL, ask, &requester[i]);
	}
	while (outcome.rounds < rounds && now() < end && !(until_lost && outcome.lost > 0)) {
		outcome.rounds++;
		outcome.lost += play_round(&play, &seed);
		if (fresh) {
			tdt_future_drop(&play.task.future);
			tdt_handle_unref(play.task.handle);
			play.task = new_task();
		}
	}
	atomic_store(&play.over, true);
	atomic_fetch_add(&play.round, 1);
	for (unsigned i = 0; i < requesters; i++)
		pthread_join(thread[i], NULL);
	tdt_future_drop(&play.task.future);
	tdt_handle_unref(play.task.handle);
	return outcome;
}

/* --- Claims ---------------------------------------------------------------------- */

static int claims, failures;

static void claim(const char *what, struct outcome outcome)
{
	printf("# %u of %u rounds lost\n", outcome.lost, outcome.rounds);
	printf("%s %d - %s\n", outcome.lost == 0 ? "ok" : "not ok", ++claims, what);
	failures += outcome.lost != 0;
}

static void claim_naive(struct outcome outcome)
{
	printf("# %u of %u rounds lost\n", outcome.lost, outcome.rounds);
	printf("ok %d - without the requester's barrier wake-ups are lost%s\n", ++claims,
	       outcome.lost > 0
		   ? ""
		   : " # SKIP this machine happened to lose none, so nothing was shown");
}

int main(void)
{
	const bool full = test_in_full();
	const unsigned rounds = full ? 200000 : 30000;
	const int64_t limit = (full ? 4 : 1) * SECOND;

	setvbuf(stdout, NULL, _IOLBF, 0);
	claim("no wake-up is lost by one requester", play(1, false, rounds, limit, false));
	claim("no wake-up is lost by several requesters", play(2, false, rounds, limit, false));
	claim("no wake-up is lost round a task's first polls", play(2, true, rounds, limit, false));
	if (tdt__barrier_fences)
		printf("# (this kernel refuses membarrier: all of that was done with fences)\n");
	tdt__barrier_fences = true;
	claim("no wake-up is lost with fences in place of membarrier",
	      play(1, false, rounds, limit, false));
	tdt__barrier_fences = false;
	naive = true;
	claim_naive(play(1, false, 10 * rounds, 2 * limit, true));
	printf("1..%d\n", claims);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
