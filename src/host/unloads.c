// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The teller: a thread that sleeps until a requester needs the number of unloads.  Each requester
 * draws the next ticket.  The teller reads which ticket was drawn last, reads the number from the
 * loader, and then answers all tickets up to that one.
 */

#include <config.h>

#include "host/unloads.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/service.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All members are protected by `lock`. */
static struct {
	pthread_cond_t wanted; /* a ticket was drawn */
	pthread_cond_t told;   /* tickets were answered */
	uint64_t drawn;        /* the last ticket that was drawn */
	uint64_t answered;     /* the last ticket that was answered */
	uint64_t unloads;      /* the last answer */
	bool asking;           /* the teller reads the loader's list, or waits for its lock */
	bool in_vain;          /* tdt__unloads_count() got no answer in time: no requester waits
				  until there is an answer */
	bool running;          /* there is a teller, or one is being started */
	bool begun;            /* the teller's thread has started to run */
} teller = { .wanted = PTHREAD_COND_INITIALIZER, .told = PTHREAD_COND_INITIALIZER };

static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
	(void)size;
	*(uint64_t *)unloads = info->dlpi_subs;
	return 1; /* every module has the same number: do not go on to the others */
}

/* Read the number from the loader, with `lock` released, and wake the requesters that wait. */
static void answer(void)
{
	uint64_t ticket = teller.drawn, unloads = 0;

	teller.asking = true;
	pthread_mutex_unlock(&lock);
	dl_iterate_phdr(read_unloads, &unloads);
	pthread_mutex_lock(&lock);
	teller.asking = false;
	teller.unloads = unloads;
	teller.answered = ticket;
	teller.in_vain = false;
	pthread_cond_broadcast(&teller.told);
}

static void *tell(void *nothing)
{
	pthread_setname_np(pthread_self(), "tdt-unloads");
	pthread_mutex_lock(&lock);
	teller.begun = true;
	for (;;) {
		while (teller.answered == teller.drawn)
			pthread_cond_wait(&teller.wanted, &lock);
		answer();
	}
	return nothing;
}

/* Start the teller unless there is one.  `lock` is released meanwhile. */
static void need_teller(void)
{
	int error;

	if (teller.running)
		return;
	teller.running = true;
	pthread_mutex_unlock(&lock);
	error = tdt__service_start(tell);
	pthread_mutex_lock(&lock);
	if (error != 0)
		teller.running = false;
}

static bool wait_until(uint64_t ticket, uint64_t deadline)
{
	const struct timespec until = { (time_t)(deadline / 1000000000),
					(long)(deadline % 1000000000) };
	int error = 0;

	while (teller.answered < ticket && error == 0)
		error = pthread_cond_clockwait(&teller.told, &lock, CLOCK_MONOTONIC, &until);
	return teller.answered >= ticket;
}

#define LEAST_WAIT TDT__UNLOADS_SOON
#define MOST_WAIT (10 * TDT__UNLOADS_SOON)
#define MOST_STARVED (30 * TDT__UNLOADS_SOON)

/*
 * As wait_until(), but wait past the deadline as long as the teller has not begun to read the
 * number: on a busy machine the teller may wait for a processor.  Without the number a good trace
 * would be marked as one that may be wrong.
 */
static bool wait_scheduled(uint64_t ticket, uint64_t deadline)
{
	const uint64_t latest = deadline + MOST_STARVED;
	bool told = wait_until(ticket, deadline);

	while (!told && teller.begun && !teller.asking && deadline < latest) {
		deadline += LEAST_WAIT;
		told = wait_until(ticket, deadline);
	}
	return told;
}

static bool find_out(uint64_t *unloads, uint64_t deadline,
		     bool (*wait)(uint64_t ticket, uint64_t deadline))
{
	bool told = false;
	int cancel;

	/* To wait is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	need_teller();
	if (teller.running && !teller.in_vain) {
		uint64_t ticket = ++teller.drawn;

		pthread_cond_signal(&teller.wanted);
		told = wait(ticket, deadline);
	}
	*unloads = teller.unloads;
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	return told;
}

bool tdt__unloads_now(uint64_t *unloads, uint64_t deadline)
{
	return find_out(unloads, deadline, wait_until);
}

static uint64_t within(uint64_t deadline, uint64_t now)
{
	if (deadline < now + LEAST_WAIT)
		return now + LEAST_WAIT;
	return deadline < now + MOST_WAIT ? deadline : now + MOST_WAIT;
}

bool tdt__unloads_count(struct tdt__unloads *count)
{
	if (count->asked)
		return count->told;
	count->asked = true;
	count->told = find_out(&count->n, within(count->deadline, tdt__clock()), wait_scheduled);
	if (count->told)
		return true;
	pthread_mutex_lock(&lock);
	teller.in_vain = teller.answered < teller.drawn; /* false if the answer came just now */
	pthread_mutex_unlock(&lock);
	return false;
}

void tdt__unloads_begin(void)
{
	pthread_mutex_lock(&lock);
	need_teller();
	pthread_mutex_unlock(&lock);
}

#define FORK_WAIT UINT64_C(1000000)

/*
 * If the teller held the lock of the loader's list during fork(), the child would find that lock
 * held for ever.  So this function waits until the teller has read the list, which takes less than
 * a microsecond.  If the teller itself waits for another thread to release the list, this function
 * gives up after FORK_WAIT nanoseconds.
 */
void tdt__unloads_lock(void)
{
	uint64_t until = tdt__clock() + FORK_WAIT;
	const struct timespec limit = { (time_t)(until / 1000000000), (long)(until % 1000000000) };
	int error = 0;

	pthread_mutex_lock(&lock);
	while (teller.asking && !teller.in_vain && error == 0)
		error = pthread_cond_clockwait(&teller.told, &lock, CLOCK_MONOTONIC, &limit);
}

void tdt__unloads_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void tdt__unloads_forked(void)
{
	teller.wanted = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	teller.told = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	teller.answered = teller.drawn;
	teller.asking = false;
	teller.in_vain = false;
	teller.running = false;
	teller.begun = false;
}
