/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_HOST_TASKS_H
#define TDT_TESTS_HOST_TASKS_H

/*
 * The tasks of the stress of a host, and the threads that poll them.  Which plugin a poll runs in
 * is told by the task's id and the number of the poll, so whoever has a trace knows it.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <tdt/tdt.h>

/* What goes on, all of it unless it is switched off. */
struct host_parts {
	bool plugins;	  /* polls load, run in, and unload plugins */
	bool constructor; /* the constructor of one of these takes its time */
	bool altstacks;	  /* polling threads have small alternate stacks */
	bool threads;	  /* polling threads come and go */
	bool signals;
	bool ask;
	bool dump;
	bool last;
	bool watch;
	bool fork;
	bool sit; /* in callbacks of dl_iterate_phdr() */
};

extern struct host_parts host_parts;

/* How often it was done, or seen. */
struct host_counts {
	atomic_ulong polls, tasks, threads, loads;
	atomic_ulong same_place;   /* a plugin lay where another one had been */
	atomic_ulong named;	   /* traces with a plugin's names */
	atomic_ulong guessed;	   /* of these, with such frames marked as guessed */
	atomic_ulong wrong;	   /* traces that can't be right, and are not marked so */
	atomic_ulong wrong_marked; /* that are */
	atomic_ulong signals, handled;
};

extern struct host_counts host_counts;

/*
 * Call these around loading, unloading and holding the list of modules, and where no thread may do
 * so.  A child of fork() can do little with the loader if another thread was in it.
 */
void host_loader_enter(void);
void host_loader_leave(void);
void host_loader_close(void);
void host_loader_open(void);

/* Let the tasks and their threads begin, and end.  They choose by `seed`. */
void host_tasks_begin(unsigned seed);
void host_tasks_end(void);

/* Send a signal to one of the polling threads. */
void host_signal_one(unsigned *state);

/* Look at a trace, and count it. */
void host_check(const struct tdt_trace *trace);

/* The same of a group of a dump, whose tasks are all said to wait where that trace shows. */
void host_check_group(const struct tdt_snapshot_group *group);

/* A future that waits in host_idle_poll(), and a waker to poll it with, for a child to trace. */
struct tdt_future host_idle_future(void);
extern const struct tdt_waker host_waker;

#endif
