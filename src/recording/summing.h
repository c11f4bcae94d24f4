/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A summary (summary.h) while it is made: what is known of each task and thread at some time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/summary.h"
#include "recording/summary_groups.h"
#include "recording/timeline.h"

#define TDT__NO_THREAD UINT32_MAX
#define TDT__MANY_THREADS (UINT32_MAX - 1)

/* What is known of a task at some time, besides its phase. */
struct tdt__tracked {
	bool counted;	   /* in the summary's `tasks` */
	uint32_t threads;  /* the thread that polls it; TDT__NO_THREAD or TDT__MANY_THREADS */
	/* Of the two clocks for starvation, when the task became runnable. */
	uint64_t any_parked, own_parked;
	uint64_t polls;
	uint64_t ns; /* in polls */
	double share;
	uint64_t starved, starved_total, starved_at, starved_ns;
	uint32_t behind;
};

enum {
	TDT__LONGEST_KEPT = 16
};

/* A poll that is over. */
struct tdt__past_poll {
	uint32_t task;
	uint64_t begin, end;
};

/* What is known of a thread at some time. */
struct tdt__track {
	uint64_t start;     /* from here on its polls are counted */
	uint64_t recorded;  /* of the time since then */
	uint32_t depth;     /* how many polls are going on, one within the other */
	struct tdt__recorded_item outermost; /* of these, its beginning */
	uint32_t task;      /* which it polls */
	bool parked;
	uint64_t parked_ns; /* until `parked_since` */
	uint64_t parked_since;
	uint64_t polls;
	uint64_t polling_ns;
	uint32_t stack;     /* found in the poll that is going on */
	/* The longest polls since some time, each shorter than the one before it. */
	struct tdt__past_poll longest[TDT__LONGEST_KEPT];
	size_t n_longest;
};

/* While the summary is made. */
struct tdt__summing {
	struct tdt__summary *summary;
	const struct tdt__recording *recording;
	const struct tdt__timeline *timeline;
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_thread *thread;
	size_t n_tasks, n_threads, rows;
	uint64_t floor;	     /* what was before does not count */
	bool counts;         /* the item at hand is not before `floor` */
	uint64_t long_poll, long_wait;
	struct tdt__tracked *tracked;
	struct tdt__track *track;
	struct tdt__summary_groups groups;
	/* The clock that runs while any worker is parked. */
	size_t parked;
	uint64_t any_parked, any_since;
	bool failed;
};

/* ---- What an item and the end have in common (summary_measures.c) ---- */

/*
 * Make room in a sorted list of at most `rows` entries of `size` bytes, whose keys are at offset
 * `key_at`.  Returns the new entry; NULL: it is not among the worst.
 */
void *tdt__summing_insert(void *entries, size_t *n, size_t *found, size_t rows, size_t size,
			  size_t key_at, uint64_t key);

/* The same for a list of the summary. */
#define TDT__INSERT(summing, list, type, key, value)						\
	(type *)tdt__summing_insert((list).entry, &(list).n, &(list).found, (summing)->rows,	\
				    sizeof(type), offsetof(type, key), value)

/* The clocks of parked time, at the time `now`: of any worker, and of one thread. */
uint64_t tdt__summing_any_parked(const struct tdt__summing *summing, uint64_t now);
uint64_t tdt__summing_own_parked(const struct tdt__summing *summing, const struct tdt__track *track,
				 uint64_t now);

/* The thread is parked from now on, or no longer. */
void tdt__summing_park(struct tdt__summing *summing, struct tdt__track *track, uint64_t now);
void tdt__summing_unpark(struct tdt__summing *summing, struct tdt__track *track, uint64_t now);

/* The task, of which that is known, waited. */
void tdt__summing_end_wait(struct tdt__summing *summing, uint32_t number,
			   const struct tdt__timeline_task *task,
			   const struct tdt__timeline_phase *wait, bool going_on);

/*
 * The task, which was runnable since then, is polled now, on its thread as ever, or the recording
 * ends.
 */
void tdt__summing_measure_starving(struct tdt__summing *summing, struct tdt__tracked *task,
				   uint64_t since, uint64_t now);

/* List a latency, or a poll that ended at `end`, if it is among the longest. */
void tdt__summing_add_delay(struct tdt__summing *summing, uint32_t task, uint32_t thread,
			    uint64_t at, uint64_t ns, bool going_on);
void tdt__summing_add_poll(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			   uint32_t task, uint64_t end, uint32_t stack);

/*
 * Add a run of a task of tdt_task_new(), or a poll that is known by a listing.  `task` is what is
 * known of the task; `end` is UINT64_MAX if it goes on.
 */
void tdt__summing_add_run(struct tdt__summing *summing, uint32_t number,
			  const struct tdt__timeline_task *task, uint64_t end);

/*
 * Count a poll for its task and its thread, from when on these are counted.  `outermost`: it is not
 * within another poll.
 */
void tdt__summing_count_poll(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			     uint32_t number, uint64_t end, bool outermost);

/* ---- The two steps ---- */

/* The next step (summary_items.c). */
void tdt__summing_step(struct tdt__summing *summing, const struct tdt__step *step);

/* The recording has ended: fill in the lists of the summary (summary_end.c). */
void tdt__summing_end(struct tdt__summing *summing);
