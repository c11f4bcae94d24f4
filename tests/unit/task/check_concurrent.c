// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/request, task/wrapper.  Requesters, pollers and droppers, all at once and at random:
 * every request is answered or refused as the manual says, and nothing is left behind.  The choices
 * come from a seed, which is printed; TDT_TEST_SEED sets it.
 */

#include <tdt/integrate/hooks.h>

#include "lib/bell.h"
#include "lib/options.h"
#include "lib/test.h"

#define WORKERS 2
#define REQUESTERS 3
#define SLOTS 12
#define PARKED 8
#define SECONDS 2
#define SECOND INT64_C(1000000000)

static atomic_bool no_more_questions, no_more_tasks;
static atomic_long jobs, leaves; /* that are not freed */
static unsigned seed;

/* Of this thread, whatever it does. */
static __thread unsigned choices;

static bool one_in(unsigned n)
{
	return random_below(&choices, n) == 0;
}

static void seed_thread(unsigned number)
{
	choices = seed + 7919 * number;
}

/* --- An executor -------------------------------------------------------------------- */

enum { IDLE, QUEUED, RUNNING, NOTIFIED, ENDED };

struct job {
	struct tdt_waker waker; /* the job is its own waker */
	atomic_uint
	    refs; /* of the executor until it has ended, of clones, of the queue, of a slot */
	atomic_uint state;
	atomic_bool cancelled;
	struct tdt_future future;
	struct job *next;
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct job *queue_head, **queue_tail = &queue_head;
static bool queue_closed;

static struct job *job_of(const struct tdt_waker *waker)
{
	return (struct job *)(uintptr_t)waker;
}

static void job_unref(struct job *job)
{
	if (atomic_fetch_sub(&job->refs, 1) == 1) {
		free(job);
		atomic_fetch_sub(&jobs, 1);
	}
}

static void enqueue(struct job *job)
{
	atomic_fetch_add(&job->refs, 1);
	pthread_mutex_lock(&queue_lock);
	job->next = NULL;
	*queue_tail = job;
	queue_tail = &job->next;
	pthread_cond_signal(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
}

static struct job *dequeue(void)
{
	struct job *job;

	pthread_mutex_lock(&queue_lock);
	while (queue_head == NULL && !queue_closed)
		pthread_cond_wait(&queue_filled, &queue_lock);
	job = queue_head;
	if (job != NULL) {
		queue_head = job->next;
		if (queue_head == NULL)
			queue_tail = &queue_head;
	}
	pthread_mutex_unlock(&queue_lock);
	return job;
}

static const struct tdt_waker *job_clone(const struct tdt_waker *waker)
{
	if (one_in(50))
		return NULL;
	atomic_fetch_add(&job_of(waker)->refs, 1);
	return waker;
}

static void job_wake_by_ref(const struct tdt_waker *waker)
{
	struct job *job = job_of(waker);
	unsigned state = atomic_load(&job->state);

	do {
		if (state != IDLE && state != RUNNING)
			return;
	} while (
	    !atomic_compare_exchange_weak(&job->state, &state, state == IDLE ? QUEUED : NOTIFIED));
	if (state == IDLE)
		enqueue(job);
}

static void job_drop(const struct tdt_waker *waker)
{
	job_unref(job_of(waker));
}

static void job_wake(const struct tdt_waker *waker)
{
	job_wake_by_ref(waker);
	job_drop(waker);
}

static void job_end(struct job *job)
{
	tdt_future_drop(&job->future);
	atomic_store(&job->state, ENDED);
	job_unref(job);
}

static void job_poll(struct job *job)
{
	struct tdt_context cx = { &job->waker };
	unsigned running = RUNNING;

	atomic_store(&job->state, RUNNING);
	if (atomic_load(&job->cancelled) || tdt_future_poll(&job->future, &cx) != TDT_PENDING) {
		job_end(job);
	} else if (!atomic_compare_exchange_strong(&job->state, &running, IDLE)) {
		atomic_store(&job->state, QUEUED);
		enqueue(job);
	}
}

static void *work(void *argument)
{
	struct job *job;

	seed_thread((unsigned)(uintptr_t)argument);
	tdt_worker_thread_start(NULL);
	while ((job = dequeue()) != NULL) {
		job_poll(job);
		job_unref(job);
	}
	tdt_worker_thread_stop();
	return NULL;
}

/* Run `future`; returns the job, with a reference for the caller. */
static struct job *spawn(struct tdt_future future)
{
	static const struct tdt_waker_vtable vtable = { job_clone, job_wake, job_wake_by_ref,
							job_drop };
	struct job *job = calloc(1, sizeof(*job));

	MUST(job != NULL);
	atomic_fetch_add(&jobs, 1);
	job->waker.vtable = &vtable;
	job->future = future;
	atomic_init(&job->refs, 2);
	atomic_init(&job->state, QUEUED);
	enqueue(job);
	return job;
}

/* Cancel, and give the reference back. */
static void cancel(struct job *job)
{
	atomic_store(&job->cancelled, true);
	job_wake_by_ref(&job->waker);
	job_unref(job);
}

/* --- Leaves ------------------------------------------------------------------------------ */

/* Wakers that leaves have left to be woken by others. */
static const struct tdt_waker *_Atomic parked[PARKED];

static void park(const struct tdt_waker *waker)
{
	tdt_waker_wake(atomic_exchange(&parked[random_below(&choices, PARKED)], waker));
}

static tdt_poll_t poll_leaf(void *state, struct tdt_context *cx)
{
	unsigned *polls = state;

	if (--*polls == 0)
		return one_in(4) ? TDT_PANICKED : TDT_READY;
	if (one_in(4))
		tdt_waker_wake_by_ref(cx->waker);
	else if (!one_in(4)) /* else only a requester, or its end, will have it polled again */
		park(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static void drop_leaf(void *state)
{
	free(state);
	atomic_fetch_sub(&leaves, 1);
}

static struct tdt_future new_leaf(void)
{
	unsigned *polls = malloc(sizeof(*polls));

	MUST(polls != NULL);
	*polls = 1 + random_below(&choices, 200);
	atomic_fetch_add(&leaves, 1);
	return (struct tdt_future){ polls, poll_leaf, drop_leaf };
}

/* --- Tasks to ask --------------------------------------------------------------------------- */

static struct slot {
	pthread_mutex_t lock;
	struct job *job;
	struct tdt_handle *outer, *inner;
} slots[SLOTS];

static void fill(struct slot *slot)
{
	struct tdt_traced inner = tdt_traced(new_leaf()), outer;
	struct tdt_future both[2] = { inner.future, new_leaf() };

	outer = tdt_traced(tdt_join_all(both, 2));
	MUST(inner.handle != NULL && outer.handle != NULL);
	slot->outer = outer.handle;
	slot->inner = inner.handle;
	slot->job = spawn(outer.future);
}

/*
 * Take out what is in `slot` and end it: one handle before the task, one after; with `refill` put
 * another in.
 */
static void replace(struct slot *slot, bool refill)
{
	struct slot old;

	pthread_mutex_lock(&slot->lock);
	old = *slot;
	if (refill)
		fill(slot);
	pthread_mutex_unlock(&slot->lock);
	tdt_handle_unref(old.outer);
	cancel(old.job);
	tdt_handle_unref(old.inner);
}

static void *drop_and_wake(void *argument)
{
	seed_thread((unsigned)(uintptr_t)argument);
	while (!atomic_load(&no_more_tasks)) {
		const struct timespec moment = { 0, 20000 };

		replace(&slots[random_below(&choices, SLOTS)], true);
		for (int i = 0; i < 4; i++)
			park(NULL);
		nanosleep(&moment, NULL);
	}
	return NULL;
}

/* A handle of some task, whether it lives or not; for the caller to give back. */
static struct tdt_handle *some_handle(void)
{
	struct slot *slot = &slots[random_below(&choices, SLOTS)];
	struct tdt_handle *handle;

	pthread_mutex_lock(&slot->lock);
	handle = tdt_handle_ref(one_in(2) ? slot->outer : slot->inner);
	pthread_mutex_unlock(&slot->lock);
	return handle;
}

/* --- Requesters ------------------------------------------------------------------------------- */

static atomic_long traces, gone, late, dropped;

static void take_answer(struct tdt_trace *trace, int error, bool may_be_late)
{
	if (trace == NULL) {
		MUST(error == -ESRCH || (may_be_late && error == -ETIMEDOUT));
		atomic_fetch_add(error == -ESRCH ? &gone : &late, 1);
		return;
	}
	MUST(tdt_trace_stacks(trace) == tdt_trace_info(trace)->leaves);
	MUST(tdt_trace_info(trace)->polls > 0);
	if (one_in(64))
		MUST(tdt_trace_root(trace) != NULL);
	tdt_trace_free(trace);
	atomic_fetch_add(&traces, 1);
}

static void ask_async(struct tdt_handle *handle)
{
	struct bell *bell = bell_new();
	struct tdt_context cx = { &bell->waker };
	struct tdt_trace *trace = NULL;
	int error = 1;
	struct tdt_future requester = tdt_backtrace_async(handle, NULL, &trace, &error);
	bool patient = !one_in(4);
	tdt_poll_t result;

	MUST(!tdt_future_is_none(&requester));
	while ((result = tdt_future_poll(&requester, &cx)) == TDT_PENDING && patient)
		bell_wait(bell);
	if (result == TDT_READY)
		take_answer(trace, error, false);
	else
		atomic_fetch_add(&dropped, 1);
	tdt_future_drop(&requester);
	tdt_waker_drop(&bell->waker);
}

static void *ask(void *argument)
{
	seed_thread((unsigned)(uintptr_t)argument);
	while (!atomic_load(&no_more_questions)) {
		struct tdt_trace *trace;
		HANDLE(handle, some_handle());

		if (one_in(3)) {
			ask_async(handle);
		} else if (one_in(2)) {
			trace = backtrace_timed(handle, random_below(&choices, 100000));
			take_answer(trace, -errno, true);
		} else {
			trace = backtrace_timed(handle, 30 * SECOND);
			take_answer(trace, -errno, false);
		}
	}
	return NULL;
}

static void set_seed(void)
{
	seed = seed_of_run();
	seed_thread(0);
}

CASE(all)

TEST(requesters_pollers_and_droppers_get_along)
{
	const struct timespec while_they_play = { SECONDS, 0 }, a_moment = { 0, 1000000 };
	pthread_t worker[WORKERS], requester[REQUESTERS], dropper;
	uintptr_t number = 0;

	set_seed();
	for (int i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&slots[i].lock, NULL);
		fill(&slots[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&worker[i], NULL, work, (void *)++number);
	for (int i = 0; i < REQUESTERS; i++)
		pthread_create(&requester[i], NULL, ask, (void *)++number);
	pthread_create(&dropper, NULL, drop_and_wake, (void *)++number);
	nanosleep(&while_they_play, NULL);
	while (atomic_load(&traces) == 0) /* they may have come late */
		nanosleep(&a_moment, NULL);
	atomic_store(&no_more_questions, true);
	threads_join(requester, REQUESTERS);
	/* Until then: an idle task whose waker could not be cloned answers by being dropped. */
	atomic_store(&no_more_tasks, true);
	pthread_join(dropper, NULL);

	for (int i = 0; i < SLOTS; i++)
		replace(&slots[i], false);
	pthread_mutex_lock(&queue_lock);
	queue_closed = true;
	pthread_cond_broadcast(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
	threads_join(worker, WORKERS);
	for (int i = 0; i < PARKED; i++)
		tdt_waker_drop(atomic_exchange(&parked[i], NULL));

	printf("# %ld traces, %ld had ended, %ld timed out, %ld dropped\n", traces, gone, late,
	       dropped);
	fflush(stdout);
	ck_assert_int_gt(traces, 0);
	ck_assert_int_eq(leaves, 0);
	ck_assert_int_eq(bells, 0);
	ck_assert_int_eq(jobs, 0);
}
