/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The summary of a recording: what a person wants to know first.  Plain data, without names of
 * functions; tree-printer/summaries.h prints it.
 *
 * Each list is sorted: the worst entry comes first.  Each list has its first entries only, as many
 * as the caller wanted, and `found` says how many there are in total.
 *
 * Times are in nanoseconds of CLOCK_MONOTONIC.  A task is its number in the recording's table of
 * tasks (read.h).
 *
 * What the words mean:
 *
 *   wait      the time from the end of a poll that returned pending to the first wake-up after it;
 *             if there was none (the runtime does not report wake-ups), to the next poll, or to the
 *             end of the task.  A poll during which its task was woken is followed by no wait.
 *   latency   the time from the first wake-up since the previous poll began, or from the end of
 *             that poll if this is later, to the next poll.
 *   starved   A task is starved while it is runnable, the only thread that ever polled it is not
 *             parked, and another worker is.
 *
 * These three are measured only where no event is missing that may have ended them (timeline.h).
 * Shares are those of the time that is recorded of a thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/tree.h>

struct tdt__recording;

/* A task that is not known, or none. */
#define TDT__NO_TASK UINT32_MAX

struct tdt__summary_poll {
	uint32_t task;
	uint32_t thread;
	uint64_t start;
	uint64_t ns;
	uint64_t woken_by; /* a task's id; 0: none, or unknown */
	uint32_t stack;    /* where the poll was found while it went on; 0: it was not */
	uint16_t cpu;      /* UINT16_MAX: unknown */
	uint8_t result;    /* TDT_READY, TDT_PENDING or TDT_PANICKED */
	bool going_on;     /* when the recording ended; `ns` is the time until then */
};

/* The waits for one lock with one holder, or of another kind for one object at one place. */
struct tdt__summary_wait {
	struct tdt_wait what; /* the kind is TDT_WAIT_UNKNOWN if no leaf reported a wait */
	uint32_t owner;       /* the task that `what` names; TDT__NO_TASK: none */
	uint32_t stack;       /* where a leaf waited for longest; 0: unknown */
	uint64_t n;           /* how many waits */
	uint64_t total;       /* how long all of them lasted, ns */
	uint32_t task;        /* of the longest one, as the next fields */
	bool going_on;
	uint64_t start;
	uint64_t ns;
	uint64_t rank;        /* waits for orphaned locks come first */
};

/*
 * The latencies of a group of tasks: those whose names differ in nothing but numbers ("conn 1" and
 * "conn 2"), or that have no name and the same spawn place.
 */
struct tdt__summary_latency {
	uint32_t task;    /* one of the tasks */
	bool several;     /* others have other names */
	uint32_t slowest; /* the task with the longest latency, and the time of its wake-up */
	uint64_t at;
	uint64_t n;       /* how many latencies */
	uint64_t median;  /* half of the latencies, rounded up, are not above this one */
	uint64_t p99;     /* the same for 99 % */
	uint64_t most;
};

/* One latency that is remarkable. */
struct tdt__summary_delay {
	uint32_t task;
	uint32_t thread; /* on which the task was polled then; 0: not yet */
	uint64_t at;     /* the time of the wake-up */
	uint64_t ns;
	bool going_on;   /* the task had not been polled when the recording ended */
};

struct tdt__summary_busy {
	uint32_t task;
	uint64_t polls;
	uint64_t ns;  /* in polls */
	double share; /* of the recorded time of each thread that polled it, added up: 1 is a CPU */
};

struct tdt__summary_worker {
	uint32_t thread;
	const char *name; /* "": none, or unknown */
	uint64_t start;   /* from when on all is recorded */
	uint64_t recorded; /* ns, since then: without the time in which the recorder was stopped */
	uint64_t polls;
	uint64_t polling; /* ns */
	uint64_t parked;
	uint32_t task;    /* polled when the recording ended; TDT__NO_TASK: none */
	uint64_t since;
};

struct tdt__summary_starved {
	uint32_t task;
	uint32_t thread;
	uint64_t polls;
	uint64_t n;     /* how often the task was starved */
	uint64_t total; /* ns */
	uint64_t at;    /* the wake-up before the longest time, as the next fields */
	uint64_t ns;
	uint32_t behind; /* the task that the thread polled for longest then; TDT__NO_TASK: none */
};

struct tdt__summary_panic {
	uint32_t task;
	uint32_t thread;
	uint64_t at;
};

struct tdt__summary_lost {
	uint32_t task;
	uint64_t ns; /* how long it had waited */
	uint64_t at; /* a second after it went on, or somewhat later */
};

#define TDT__SUMMARY_LIST(type) struct { type *entry; size_t n, found; }

struct tdt__summary {
	const struct tdt__recording *recording;
	uint64_t start;    /* of the oldest event, those that are only remarkable left out */
	uint64_t whole;	   /* from when on no event is missing */
	uint64_t end;      /* when the recording ended: the snapshot, or the last event */
	uint64_t real;     /* CLOCK_REALTIME - CLOCK_MONOTONIC at the end, modulo 2^64 */
	uint64_t tasks;    /* how many were polled, woken, spawned, or ended */
	uint64_t polls, wakes, spawned, ended, panicked;

	TDT__SUMMARY_LIST(struct tdt__summary_panic) panics;
	TDT__SUMMARY_LIST(struct tdt__summary_lost) lost_wakeups;
	TDT__SUMMARY_LIST(struct tdt__summary_poll) slow;
	TDT__SUMMARY_LIST(struct tdt__summary_wait) locks; /* waits for what a task holds */
	TDT__SUMMARY_LIST(struct tdt__summary_wait) waits; /* all others */
	TDT__SUMMARY_LIST(struct tdt__summary_starved) starved;
	TDT__SUMMARY_LIST(struct tdt__summary_delay) delays;
	TDT__SUMMARY_LIST(struct tdt__summary_latency) latency;
	TDT__SUMMARY_LIST(struct tdt__summary_busy) busy;
	TDT__SUMMARY_LIST(struct tdt__summary_worker) workers;
};

struct tdt__summary_limits {
	size_t rows;    /* the most entries of each list */
	uint64_t since; /* leave out what is older at the end, in nanoseconds; 0: nothing */
};

/*
 * Make the summary of `recording`, which must outlive it.  The caller frees it with
 * tdt__summary_free().  NULL: no memory.
 */
struct tdt__summary *tdt__summary_new(const struct tdt__recording *recording,
				      const struct tdt__summary_limits *limits);
void tdt__summary_free(struct tdt__summary *summary); /* NULL does nothing */
