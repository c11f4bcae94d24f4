// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tasks that wake themselves again and again: see busy.h. */

#include "facts/busy.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "facts/record.h"
#include "tree/findings.h"

/*
 * If a task is as often woken by others as by itself, it is itself at all of these looks once in
 * 4 billion times.
 */
#define BUSY_LOOKS 32
#define BETWEEN UINT64_C(3125000)
#define JUST_NOW UINT64_C(100000000) /* a worker may be preempted for that long */
#define MOST 64 /* tasks that are looked at */
#define POLLS_A_SECOND 1000
#define UNREPORTED_POLLS_A_SECOND 100000

struct suspect {
	size_t index;
	struct tdt_task_record first;
	uint64_t start, polls, ns;
};

/* Whether the task was polled just now, and may be polled again and again. */
static bool is_suspect(const struct tdt_task_info *info, bool wakes)
{
	if (info->state != TDT_TASK_WAITING && info->state != TDT_TASK_RUNNABLE &&
	    info->state != TDT_TASK_RUNNING)
		return false;
	return info->state_ns < JUST_NOW &&
	       (wakes ? info->woken_by == info->id && info->polls >= POLLS_A_SECOND / 10
		      : info->polls >= UNREPORTED_POLLS_A_SECOND / 10);
}

static bool any_was_woken(const struct tdt__lock_places *places)
{
	for (size_t i = 0; i < places->n; i++)
		if (places->member(places->arg, i)->info.woken_ns != 0)
			return true;
	return false;
}

static size_t find_suspects(const struct tdt__lock_places *places, bool wakes,
			    struct suspect suspects[MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < places->n && n < MOST; i++) {
		struct suspect *suspect = &suspects[n];

		if (!is_suspect(&places->member(places->arg, i)->info, wakes))
			continue;
		*suspect = (struct suspect){ .index = i, .start = tdt__clock() };
		n += places->record(places->arg, i, &suspect->first);
	}
	return n;
}

/* Look again.  False: the task is no suspect any more. */
static bool look_again(const struct tdt__lock_places *places, struct suspect *suspect, bool wakes)
{
	struct tdt_task_record now;

	if (!places->record(places->arg, suspect->index, &now) ||
	    now.seq != suspect->first.seq || now.id != suspect->first.id ||
	    (wakes && now.woken_by != now.id))
		return false;
	suspect->ns = tdt__clock() - suspect->start;
	suspect->polls = now.polls - suspect->first.polls -
			 (uint8_t)(tdt__requested_polls(&now) -
				   tdt__requested_polls(&suspect->first)) %
				 TDT__REQUESTED_POLLS;
	return true;
}

static void pause_between(void)
{
	const struct timespec pause = { .tv_nsec = BETWEEN };
	int saved = errno;

	nanosleep(&pause, NULL);
	errno = saved;
}

void tdt__busy_find(const struct tdt__lock_places *places)
{
	bool wakes = any_was_woken(places);
	double rate = wakes ? POLLS_A_SECOND : UNREPORTED_POLLS_A_SECOND;
	struct suspect suspects[MOST];
	size_t n = find_suspects(places, wakes, suspects), still;

	for (int look = 0; look < BUSY_LOOKS && n > 0; look++) {
		pause_between();
		still = 0;
		for (size_t i = 0; i < n; i++)
			if (look_again(places, &suspects[i], wakes))
				suspects[still++] = suspects[i];
		n = still;
	}
	for (size_t i = 0; i < n; i++) {
		struct tdt_task_info *info =
			&places->member(places->arg, suspects[i].index)->info;

		if ((double)suspects[i].polls < rate * (double)suspects[i].ns / 1e9)
			continue;
		info->busy_polls = suspects[i].polls;
		info->busy_ns = suspects[i].ns;
	}
}
