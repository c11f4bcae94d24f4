/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

/*
 * A client of echo servers that keeps them as busy as it can, in a process of its own: on each of
 * its connections it sends a message as soon as the one before has come back.  What it counts lies
 * in memory that it shares with its parent.  The parent says which server the client is to talk to,
 * and to which account its messages count.
 *
 *	load = load_start(cpu, accounts);
 *	load_connect(load, ports, 2);
 *	load_turn(load, server, connections, account);     from now on; server -1: to none
 *	...
 *	load_stop(load);
 */

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD_CONNECTIONS 1000 /* to each server, at most */
#define LOAD_STEP 10000	      /* ns: how finely times are told apart */
#define LOAD_STEPS 5000	      /* what took longer is in the last */

/*
 * Written by the client alone.  Relaxed: they are read when it talks to another account, or to
 * nobody.
 */
struct load_account {
	_Atomic uint64_t echoes;
	_Atomic uint64_t longest; /* ns */
	atomic_uint took[LOAD_STEPS];
};

struct load {
	pid_t pid;
	int ports; /* a pipe to it */
	size_t size;

	_Atomic uint64_t
	    turn; /* server, connections, account: one word, so that they come together */
	_Atomic uint64_t done; /* the turn that the client goes by */
	struct load_account account[];
};

/* Starts the process; on `cpu` unless that is negative. */
struct load *load_start(int cpu, unsigned accounts);

/* Tell it of the `n` servers, which are on this host.  It connects to them as their turn comes. */
void load_connect(struct load *load, const uint16_t *ports, size_t n);

/* Returns when the client does so.  If but the account is another, the messages go on meanwhile. */
void load_turn(struct load *load, int server, unsigned connections, unsigned account);

void load_stop(struct load *load);

/* The time within which the part `quantile` of the account's echoes came back, ns. */
double load_quantile(const struct load_account *account, double quantile);

/* Begin the account anew, while it is not the one talked to. */
void load_clear(struct load_account *account);

/* The first two CPUs that we may use; -1: there are less. */
void load_cpus(int cpu[2]);

/* Run on this CPU alone; not if it is negative. */
void load_pin(int cpu);

#endif
