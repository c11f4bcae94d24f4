/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_WAITS_H
#define BENCH_WAITS_H

/*
 * Tasks that wait at known places, and a ledger of how long.  All tasks have names of one kind, so
 * the names do not tell the places apart.  The ledger may lie in memory that processes share.
 */

#include <pthread.h>
#include <stdint.h>

enum waits_place {
	WAITS_CONSTANT,    /* 20 ms each time */
	WAITS_EXPONENTIAL, /* 30 ms on average */
	WAITS_SHORT,       /* 4 ms */
	WAITS_BURST,       /* 10 ms, ten times, and then */
	WAITS_REST,        /* 200 ms */
	WAITS_PLACES
};

/* The functions of this program in which tasks wait. */
extern const char *const waits_function[WAITS_PLACES];

struct waits_ledger {
	pthread_mutex_t lock;
	/* Of each place: the time of waits that are over; and of those that go on: how many they
	   are, and the sum of the times when they began. */
	uint64_t over[WAITS_PLACES], begun[WAITS_PLACES], going_on[WAITS_PLACES];
};

/* Nobody uses the ledger, or whoever did was killed. */
void waits_ledger_init(struct waits_ledger *ledger);

/* How long the tasks have waited at each place, ns of all tasks together. */
void waits_ledger_read(struct waits_ledger *ledger, uint64_t ns[WAITS_PLACES]);

/* So many tasks wait at these places.  Those with bursts also rest. */
#define WAITS_TASKS 15

/* Start `times` times these tasks, which wait for ever.  `seed` makes waits vary. */
void waits_start(struct waits_ledger *ledger, unsigned times, uint64_t seed);

#endif
