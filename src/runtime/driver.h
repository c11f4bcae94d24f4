/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The driver waits, in epoll_wait(), for timers and sockets, and wakes the tasks that wait for
 * them.  It is a role, not a thread: one thread at a time is in it.
 *
 * An idle worker takes the role, and sleeps in it.  When something happens, the worker puts the
 * tasks that it wakes into its own queue, leaves the role, and polls them.  So an event that wakes
 * one task costs no switch to another thread.  A worker also takes the role for a moment, without
 * sleeping, between two polls: once in 244 polls, and when the watchdog asks for it.
 *
 * The watchdog is a thread that looks every TDT__LOOK_MS, while any worker is not asleep:
 *
 *   - If nobody was in the role since its last look, it wakes a sleeping worker, which takes the
 *     role.  If none sleeps, it asks the workers for a turn; if none has had one at the next look,
 *     all are in polls, and the watchdog is in the role itself until a worker is idle.  So a task
 *     that blocks its worker delays no timer of tdt_rt_block_on(), or of another runtime.
 *   - If a worker has left its queue as it was, it wakes a sleeping worker to steal it (idle.h).
 *
 * While all workers sleep, so does the watchdog, without a limit:
 *
 *   a worker that was woken              the watchdog
 *     1. leaves the stack of sleepers      3. watching = false
 *     2. if !watching: sets it, and        4. if any worker is not on the stack: sets it, and arms
 *        arms the watchdog's timer            the timer
 *
 * All accesses in these steps are sequentially consistent, so if 2 does not see what 3 did, 4 sees
 * what 1 did.  A single event in an idle process costs one wake-up of the watchdog.
 *
 * The role has an owner whenever all workers sleep.  A worker that goes to sleep tries to take it.
 * If it fails, either a worker is in the role, which either sleeps, or will try when it goes to
 * sleep itself; or the watchdog is, which is told, leaves the role, and wakes a sleeping worker:
 *
 *   a worker that goes to sleep          the watchdog
 *     1. puts itself on the stack          3. leaves the role
 *     2. looks who is in the role; if      4. wakes a worker from the stack, if there is one
 *        nobody is, gets up again
 *
 * Again 4 sees what 1 did, or 2 sees what 3 did.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#define TDT__LOOK_MS 2
#define TDT__EVENTS 128

struct tdt_rt;
struct tdt__timer;
struct tdt_waker;

TAILQ_HEAD(tdt__sockets, tdt__socket);

enum tdt__held { TDT__NOBODY, TDT__WORKER, TDT__WATCHDOG };

struct tdt__driver {
	atomic_uint refs;

	/* Constant from the start, until the driver is stopped. */
	pthread_t thread; /* the watchdog */
	struct tdt_rt *rt;
	uint32_t forks; /* as in struct tdt_rt */
	int epoll;
	int alarm; /* an eventfd in `epoll`, which is never read: each write is an event */
	int clock; /* a timerfd on which the watchdog sleeps between two looks */

	/* Protects the members from here to `stopped`.  No foreign code (a waker) runs under it. */
	pthread_mutex_t lock;
	struct tdt__timer *timers; /* the running timers: a heap (timer.c) */
	uint64_t timers_started;
	struct tdt__sockets sockets; /* the sockets that `epoll` knows */
	struct tdt__sockets freed;   /* those of which the present turn may have an event */
	unsigned n_freed;
	/*
	 * The thread in the role may sleep until this time, in ms of CLOCK_MONOTONIC; UINT64_MAX:
	 * for ever.  0: it will look at the members above before it sleeps.  This thread sets it
	 * to 0 without the lock.
	 */
	_Atomic uint64_t sleeps_until;
	atomic_bool stopped; /* tdt__driver_stop() has begun.  Read without the lock too */

	char apart[64];

	/* The role: above.  Sequentially consistent where nothing else is said. */
	atomic_uint held;     /* enum tdt__held */
	atomic_bool watching; /* the watchdog is in the role, or will look */
	atomic_bool wanted;   /* a worker would like to have the role from the watchdog */
	_Atomic uint64_t turns; /* how many there were; written in the role.  Relaxed */
};

static inline bool tdt__driver_stopped(struct tdt__driver *driver)
{
	/* Sequentially consistent: tdt__socket_wait() says why. */
	return atomic_load(&driver->stopped);
}

/* False in a child of fork(), in which the lock may be held, and `epoll` is the parent's. */
bool tdt__driver_is_here(const struct tdt__driver *driver);

/*
 * Have the thread in the role look at its timers at `due_ms` at the latest; 0 means at once.  The
 * driver is locked, and not stopped.
 */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms);

/*
 * Start a driver of the runtime `rt`; the watchdog is in the role.  NULL is for tests: a driver
 * without workers.  Returns 0, -ENOMEM, -EAGAIN (no thread), -EMFILE or -ENFILE.
 */
int tdt__driver_new(struct tdt__driver **driver, struct tdt_rt *rt);

/*
 * Stop the driver, after its workers.  Timers and sockets that are still registered never fire, but
 * the tasks that wait for them (on another runtime) are woken, and find the driver stopped.  From
 * now on registering fails.  Do not call this on the watchdog's thread.
 *
 * The memory stays until the last reference is dropped: the creator has one, and so has each timer
 * and each socket.
 */
void tdt__driver_stop(struct tdt__driver *driver);

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver);
void tdt__driver_unref(struct tdt__driver *driver); /* NULL is fine */

/* --- The role ------------------------------------------------------------------- */

/* Take the role, as `who` (enum tdt__held).  False: another thread is in it. */
bool tdt__driver_enter(struct tdt__driver *driver, unsigned who);
void tdt__driver_leave(struct tdt__driver *driver);

/*
 * The calling worker is on the stack of sleepers, and is not in the role.  False: nobody is, so the
 * worker should get up and take it.  If the watchdog is in the role, it is told to leave it.
 */
bool tdt__driver_rests(struct tdt__driver *driver);

/* The calling worker has left the stack of sleepers: have the watchdog look from now on. */
void tdt__driver_watch(struct tdt__driver *driver);

/* Wake the worker that sleeps in the role.  That is still so: the caller has the lock of idle.h. */
void tdt__driver_ring(struct tdt__driver *driver);

/* --- A turn: what a thread in the role does ------------------------------------- */

struct tdt__turn {
	int n;
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	struct epoll_event events[TDT__EVENTS];
	/* Two for each event, and some for timers. */
	const struct tdt_waker *others[2 * TDT__EVENTS + 64];
	unsigned n_others;
	unsigned n_woken; /* tasks, also those of tdt_rt_block_on() */
};

/* Wait until something happens, or, if not `sleeps`, only note what has happened. */
void tdt__turn_wait(struct tdt__driver *driver, struct tdt__turn *turn, bool sleeps);

/* Wake the tasks for which something has happened. */
void tdt__turn_deal(struct tdt__driver *driver, struct tdt__turn *turn);

/*
 * Wake `waker` (NULL does nothing), which this takes over: at once if a task of libtdt-rt owns it,
 * and otherwise in tdt__turn_end().
 */
void tdt__turn_wake(struct tdt__turn *turn, const struct tdt_waker *waker);

/*
 * Wake the wakers that no task of libtdt-rt owns.  They run foreign code, which may take its time:
 * so other workers have been notified of the tasks, and this thread has left the role.
 */
void tdt__turn_end(struct tdt__turn *turn);
