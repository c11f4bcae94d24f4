// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The driver's turns, its role, and its watchdog. */

#include "runtime/driver.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refs.h"
#include "runtime/idle.h"
#include "runtime/rt.h"
#include "runtime/socket.h"
#include "runtime/task.h"
#include "runtime/timer.h"

bool tdt__driver_is_here(const struct tdt__driver *driver)
{
	return driver->forks == tdt__rt_forks;
}

void tdt__driver_ring(struct tdt__driver *driver)
{
	int saved = errno;

	/* Not by write(), where a thread may be cancelled: callers have locks. */
	TEMP_FAILURE_RETRY(
	    syscall(SYS_write, driver->alarm, &(uint64_t){ 1 }, sizeof(uint64_t)));
	errno = saved;
}

/*
 * The alarm is sent under the lock: as soon as the lock is free the driver may be stopped and the
 * eventfd closed.
 */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms)
{
	if (due_ms >= atomic_load_explicit(&driver->sleeps_until, memory_order_relaxed))
		return;
	atomic_store_explicit(&driver->sleeps_until, 0, memory_order_relaxed);
	tdt__driver_ring(driver);
}

/* --- A turn ---------------------------------------------------------------------- */

/*
 * How long the thread in the role may sleep now, in ms; -1: for ever.  The clock is rounded down,
 * and the time at which a timer is due is rounded up: so no timer is early.
 */
static int time_left(struct tdt__driver *driver)
{
	uint64_t due = tdt__timers_due(driver), now;

	atomic_store_explicit(&driver->sleeps_until, due, memory_order_relaxed);
	if (due == UINT64_MAX)
		return -1;
	now = tdt__clock() / 1000000u;
	return due <= now ? 0 : due - now > INT32_MAX ? INT32_MAX : (int)(due - now);
}

void tdt__turn_wait(struct tdt__driver *driver, struct tdt__turn *turn, bool sleeps)
{
	uint64_t turns = atomic_load_explicit(&driver->turns, memory_order_relaxed);
	int timeout = 0, n;

	atomic_store_explicit(&driver->turns, turns + 1, memory_order_relaxed);
	if (driver->rt != NULL && atomic_load_explicit(&driver->rt->asked, memory_order_relaxed))
		atomic_store_explicit(&driver->rt->asked, false, memory_order_relaxed);
	do {
		pthread_mutex_lock(&driver->lock);
		tdt__sockets_release(driver); /* the turn before is over */
		if (sleeps && !tdt__driver_stopped(driver))
			timeout = time_left(driver);
		pthread_mutex_unlock(&driver->lock);
		n = epoll_wait(driver->epoll, turn->events, TDT__EVENTS, timeout);
		/* The handler of a signal has run on this worker: no reason to wake up. */
	} while (n < 0 && errno == EINTR && timeout != 0);
	/* Relaxed: another thread that sees this late rings in vain. */
	atomic_store_explicit(&driver->sleeps_until, 0, memory_order_relaxed);
	turn->n = n < 0 ? 0 : n;
	turn->n_others = turn->n_woken = 0;
	turn->now_ns = tdt__clock();
}

void tdt__turn_wake(struct tdt__turn *turn, const struct tdt_waker *waker)
{
	if (waker == NULL)
		return;
	if (tdt__task_has_waker(waker)) {
		tdt_waker_wake(waker);
		turn->n_woken++;
	} else {
		turn->others[turn->n_others++] = waker;
	}
}

void tdt__turn_deal(struct tdt__driver *driver, struct tdt__turn *turn)
{
	tdt__current.deals = driver->rt; /* no foreign code runs until it is reset */
	for (int i = 0; i < turn->n; i++)
		if (turn->events[i].data.ptr != NULL) /* the alarm */
			tdt__socket_happened(turn->events[i].data.ptr, turn->events[i].events,
					     turn);
	tdt__timers_fire(driver, turn);
	tdt__current.deals = NULL;
}

void tdt__turn_end(struct tdt__turn *turn)
{
	for (unsigned i = 0; i < turn->n_others; i++)
		tdt_waker_wake(turn->others[i]);
}

/* --- The role -------------------------------------------------------------------- */

bool tdt__driver_enter(struct tdt__driver *driver, unsigned who)
{
	unsigned nobody = TDT__NOBODY;

	return atomic_load_explicit(&driver->held, memory_order_relaxed) == TDT__NOBODY &&
	       atomic_compare_exchange_strong(&driver->held, &nobody, who);
}

void tdt__driver_leave(struct tdt__driver *driver)
{
	atomic_store(&driver->held, TDT__NOBODY);
}

bool tdt__driver_rests(struct tdt__driver *driver)
{
	unsigned held = atomic_load(&driver->held);

	if (held == TDT__WATCHDOG) {
		atomic_store(&driver->wanted, true);
		tdt__driver_ring(driver);
	}
	return held != TDT__NOBODY;
}

/* Have the watchdog look after `ns`. */
static void arm_clock(struct tdt__driver *driver, long ns)
{
	timerfd_settime(driver->clock, 0, &(struct itimerspec){ .it_value.tv_nsec = ns }, NULL);
}

void tdt__driver_watch(struct tdt__driver *driver)
{
	if (!atomic_load(&driver->watching) && !atomic_exchange(&driver->watching, true))
		arm_clock(driver, TDT__LOOK_MS * 1000000);
}

/* --- The watchdog ------------------------------------------------------------------ */

static void step_back(struct tdt__driver *driver)
{
	tdt__driver_leave(driver); /* 3 in driver.h */
	if (driver->rt != NULL)
		tdt__idle_offer(driver->rt); /* 4 in driver.h */
}

/*
 * The watchdog is in the role, until a worker wants it or has taken it, or the driver is stopped.
 * It leaves the role while it runs foreign code.
 */
static void stand_in(struct tdt__driver *driver)
{
	struct tdt__turn turn;

	do {
		tdt__turn_wait(driver, &turn, true);
		tdt__turn_deal(driver, &turn);
		if (driver->rt != NULL)
			tdt__idle_notify(driver->rt);
		if (turn.n_others != 0) {
			step_back(driver);
			tdt__turn_end(&turn);
			if (!tdt__driver_enter(driver, TDT__WATCHDOG))
				return;
		}
	} while (!tdt__driver_stopped(driver) && !atomic_exchange(&driver->wanted, false));
	step_back(driver);
}

/* Whether all workers sleep, so that the watchdog need not look. */
static bool may_rest(struct tdt__driver *driver)
{
	if (!tdt__idle_all_parked(driver->rt))
		return false;
	atomic_store(&driver->watching, false); /* 3 in driver.h */
	if (tdt__idle_all_parked(driver->rt))	/* 4 in driver.h */
		return true;
	atomic_store(&driver->watching, true);
	return false;
}

/* Have the role taken, if nobody was in it since the last look.  True: the watchdog takes it. */
static bool look_at_role(struct tdt__driver *driver, uint64_t *seen)
{
	uint64_t before = *seen;

	*seen = atomic_load_explicit(&driver->turns, memory_order_relaxed);
	if (atomic_load(&driver->held) != TDT__NOBODY || *seen != before ||
	    tdt__idle_offer(driver->rt))
		return false;
	return atomic_exchange_explicit(&driver->rt->asked, true, memory_order_relaxed) &&
	       tdt__driver_enter(driver, TDT__WATCHDOG);
}

/* Look now and then, until the watchdog is in the role, or the driver is stopped. */
static void look_around(struct tdt__driver *driver)
{
	uint64_t seen = 0, n;

	while (!tdt__driver_stopped(driver)) {
		if (!may_rest(driver)) {
			tdt__idle_look(driver->rt);
			if (look_at_role(driver, &seen))
				return;
			arm_clock(driver, TDT__LOOK_MS * 1000000);
		}
		if (!tdt__driver_stopped(driver) && read(driver->clock, &n, sizeof n) < 0)
			continue; /* interrupted by a debugger, say */
	}
}

static void *run_watchdog(void *arg)
{
	struct tdt__driver *driver = arg;

	pthread_setname_np(pthread_self(), "tdt-driver");
	while (!tdt__driver_stopped(driver)) {
		stand_in(driver);
		if (driver->rt != NULL)
			look_around(driver);
	}
	return NULL;
}

/* --- Start and stop ------------------------------------------------------------ */

static int open_descriptors(struct tdt__driver *driver)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	driver->epoll = epoll_create1(EPOLL_CLOEXEC);
	driver->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	driver->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (driver->epoll < 0 || driver->alarm < 0 || driver->clock < 0 ||
	    epoll_ctl(driver->epoll, EPOLL_CTL_ADD, driver->alarm, &event) != 0)
		return -errno;
	return 0;
}

static void close_descriptors(struct tdt__driver *driver)
{
	int *all[] = { &driver->epoll, &driver->alarm, &driver->clock };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
}

/*
 * The watchdog blocks all signals, so that no handler of the program runs on it.  The signals for
 * faults stay unblocked, because the thread's own faults cannot be deferred.
 */
static int start_thread(struct tdt__driver *driver)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	sigset_t blocked, before;
	int error;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	error = pthread_create(&driver->thread, NULL, run_watchdog, driver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int tdt__driver_new(struct tdt__driver **out, struct tdt_rt *rt)
{
	struct tdt__driver *driver = calloc(1, sizeof(*driver));
	int error;

	if (driver == NULL)
		return -ENOMEM;
	driver->refs = 1;
	driver->rt = rt;
	driver->forks = tdt__rt_forks;
	pthread_mutex_init(&driver->lock, NULL);
	TAILQ_INIT(&driver->sockets);
	TAILQ_INIT(&driver->freed);
	atomic_init(&driver->held, TDT__WATCHDOG);
	atomic_init(&driver->watching, true);
	error = open_descriptors(driver);
	if (error == 0)
		error = start_thread(driver);
	if (error != 0) {
		close_descriptors(driver);
		tdt__driver_unref(driver);
		return error;
	}
	*out = driver;
	return 0;
}

void tdt__driver_stop(struct tdt__driver *driver)
{
	pthread_mutex_lock(&driver->lock);
	atomic_store(&driver->stopped, true);
	pthread_mutex_unlock(&driver->lock);
	tdt__driver_ring(driver); /* in the role, or not: */
	arm_clock(driver, 1);
	pthread_join(driver->thread, NULL);
	tdt__driver_leave(driver); /* from now on no turn has an event of a freed socket */
	tdt__sockets_give_up(driver);
	tdt__timers_give_up(driver);
	pthread_mutex_lock(&driver->lock);
	tdt__sockets_release(driver);
	close_descriptors(driver);
	pthread_mutex_unlock(&driver->lock);
}

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver)
{
	atomic_fetch_add_explicit(&driver->refs, 1, memory_order_relaxed);
	return driver;
}

void tdt__driver_unref(struct tdt__driver *driver)
{
	if (driver == NULL || !tdt__refs_drop(&driver->refs))
		return;
	pthread_mutex_destroy(&driver->lock);
	free(driver);
}
