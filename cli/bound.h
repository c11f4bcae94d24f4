/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a command may take.  A target may be made to do harm: it may let a reading last for ever, or
 * use up all memory.  Memory is bounded for each process of tdt.  The time of a command is bounded
 * as a whole; what it does in child processes (apart.h) gets a part of what is left.
 */

#include <stddef.h>
#include <sys/resource.h>

#define BOUND_SECONDS 60 /* unless --timeout says another time */

/* Set a limit of this process, as RLIMIT_CPU.  One that is lower already stays. */
void bound_limit(int resource, rlim_t most);

/* Bound the memory of this process, and of each of its children. */
void bound_memory(void);

/*
 * End this process with TDT_TROUBLE, and its children with it, two seconds after `seconds`,
 * unless the call is made again before.  0: there is no bound from now on.
 */
void bound_time(unsigned seconds);

/* Have the time that is left last longer: as long as reading and writing so many bytes may take. */
void bound_more(size_t bytes);

/* How much is left of the time, but at most so many seconds.  In children, too. */
unsigned bound_left(unsigned most);

/* The same for the look-up of names, after which there must be time to do without. */
unsigned bound_names(void);

/*
 * Remove this file if the time is over, or SIGINT, SIGTERM or SIGHUP ends the process.  The string
 * is the caller's; NULL: none any more.
 */
void bound_unfinished(const char *path);
