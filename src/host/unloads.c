// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reporter: a thread that sleeps until a requester needs the number of unloads.  Each requester
 * draws the next ticket.  The reporter reads which ticket was drawn last, reads the number from the
 * loader, and then answers all tickets up to that one.
 */

#include "host/unloads.h"

#include <link.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/service.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All members are protected by `lock`. */
static struct {
	pthread_cond_t wanted;   /* a ticket was drawn */
	pthread_cond_t reported; /* tickets were answered */
	uint64_t drawn;          /* the last ticket that was drawn */
	uint64_t answered;       /* the last ticket that was answered */
	bool reading;            /* the reporter reads the loader's list, or waits for its lock */
	bool in_vain;            /* tdt__unloads_count() got no answer in time: no requester waits
				  until there is an answer */
	bool running;            /* there is a reporter, or one is being started */
} reporter = { .wanted = PTHREAD_COND_INITIALIZER, .reported = PTHREAD_COND_INITIALIZER };

uint64_t tdt__unloads_last;

static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
	(void)size;
	*(uint64_t *)unloads = info->dlpi_subs;
	return 1; /* every module has the same number: do not go on to the others */
}

/* Read the number from the loader, with `lock` released, and wake the requesters that wait. */
static void answer_tickets(void)
{
	uint64_t ticket = reporter.drawn, unloads = 0;

	reporter.reading = true;
	pthread_mutex_unlock(&lock);
	dl_iterate_phdr(read_unloads, &unloads);
	pthread_mutex_lock(&lock);
	reporter.reading = false;
	/* Relaxed: only readers outside the process read it without the lock. */
	__atomic_store_n(&tdt__unloads_last, unloads, __ATOMIC_RELAXED);
	reporter.answered = ticket;
	reporter.in_vain = false;
	pthread_cond_broadcast(&reporter.reported);
}

static void *report_unloads(void *nothing)
{
	pthread_setname_np(pthread_self(), "tdt-unloads");
	pthread_mutex_lock(&lock);
	for (;;) {
		while (reporter.answered == reporter.drawn)
			pthread_cond_wait(&reporter.wanted, &lock);
		answer_tickets();
	}
	return nothing;
}

static bool wait_until(uint64_t ticket, uint64_t deadline)
{
	const struct timespec until = tdt__timespec(deadline);
	int error = 0;

	while (reporter.answered < ticket && error == 0)
		error = pthread_cond_clockwait(&reporter.reported, &lock, CLOCK_MONOTONIC, &until);
	return reporter.answered >= ticket;
}

#define LEAST_WAIT TDT__UNLOADS_SOON
#define MOST_WAIT (10 * TDT__UNLOADS_SOON)
#define STARVED_WAITS 30

/*
 * As wait_until(), but wait past the deadline as long as the reporter has not begun to read the
 * number: on a busy machine the reporter may wait for a processor, also when its thread was created
 * just now.  Without the number a good trace would be marked as one that may be wrong.  Each wait
 * begins now: if the whole process was stopped, any moment set before is over.
 */
static bool wait_scheduled(uint64_t ticket, uint64_t deadline)
{
	bool known = wait_until(ticket, deadline), late = tdt__clock() > deadline + LEAST_WAIT;

	for (int i = 0; i < STARVED_WAITS && !known && !reporter.reading; i++) {
		known = wait_until(ticket, tdt__clock() + LEAST_WAIT);
		late = true;
	}
	/* A reporter that began late is as likely to be interrupted. */
	return known || (late && wait_until(ticket, tdt__clock() + MOST_WAIT));
}

static bool find_out(uint64_t *unloads, uint64_t deadline,
		     bool (*wait)(uint64_t ticket, uint64_t deadline))
{
	bool known = false;
	int cancel;

	/* To wait is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&lock);
	tdt__service_need(report_unloads, &reporter.running, &lock);
	if (reporter.running && !reporter.in_vain) {
		uint64_t ticket = ++reporter.drawn;

		pthread_cond_signal(&reporter.wanted);
		known = wait(ticket, deadline);
	}
	*unloads = tdt__unloads_last;
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	return known;
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
	if (count->requested)
		return count->known;
	count->requested = true;
	count->known = find_out(&count->n, within(count->deadline, tdt__clock()), wait_scheduled);
	if (count->known)
		return true;
	pthread_mutex_lock(&lock);
	/* False if the answer came just now. */
	reporter.in_vain = reporter.answered < reporter.drawn;
	pthread_mutex_unlock(&lock);
	return false;
}

void tdt__unloads_begin(void)
{
	pthread_mutex_lock(&lock);
	tdt__service_need(report_unloads, &reporter.running, &lock);
	pthread_mutex_unlock(&lock);
}

#define FORK_WAIT UINT64_C(1000000)

/*
 * If the reporter held the lock of the loader's list during fork(), the child would find that lock
 * held for ever.  So this function waits until the reporter has read the list, which takes less
 * than a microsecond.  If the reporter itself waits for another thread to release the list, this
 * function gives up after FORK_WAIT nanoseconds.
 */
void tdt__unloads_lock(void)
{
	const struct timespec limit = tdt__timespec(tdt__clock() + FORK_WAIT);
	int error = 0;

	pthread_mutex_lock(&lock);
	while (reporter.reading && !reporter.in_vain && error == 0)
		error = pthread_cond_clockwait(&reporter.reported, &lock, CLOCK_MONOTONIC, &limit);
}

void tdt__unloads_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void tdt__unloads_forked(void)
{
	reporter.wanted = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	reporter.reported = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	reporter.answered = reporter.drawn;
	reporter.reading = false;
	reporter.in_vain = false;
	reporter.running = false;
}
