// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The driver's thread, and how other threads reach it.
 *
 * One turn of its loop has four phases:
 *
 *   prepare   give libuv the listed sockets and the timer that is due first; publish
 *             `sleeps_until`, the time until which the poll may sleep
 *   poll      sleep in epoll_wait() until something happens; wake the leaves of ready sockets
 *   check     notify a worker of the tasks that were woken; publish that the thread is awake
 *   timer     fire the timers that are due, and wake their leaves
 *
 * `sleeps_until` saves system calls.  Another thread wakes the driver's thread (it writes to an
 * eventfd) only if the driver might sleep beyond the time by which the other needs it.  A driver
 * that is awake, or that was woken already, is not woken again.
 *
 * When memory or descriptors run out, libuv (1.44) mostly returns an error, but it calls abort() in
 * three places:
 *
 *   - in uv_loop_init(), when there is no pipe for the first loop of the process;
 *   - in each call that starts a handle with a descriptor, when the table that finds handles by
 *     descriptor cannot grow;
 *   - in the poll, when the kernel accepts no more descriptors into an epoll instance (its memory,
 *     or the user's fs.epoll.max_user_watches, is used up).
 *
 * For the first two we try beforehand whether the resource is available.  For the third
 * uv_poll_init() tries it, once for each socket.  Another thread may still take the resource, or
 * another socket the last watch, between the test and the use; we accept this risk.
 */

#include <config.h>

#include "runtime/driver.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/loop.h"
#include "runtime/socket.h"
#include "runtime/timer.h"
#include "runtime/worker.h"

/* --- The loop ---------------------------------------------------------------- */

/*
 * Tell libuv what is new with the listed sockets.  Each of them is taken off the list by itself,
 * because libuv calls the kernel for it, and the driver is unlocked during that call.
 */
static void update_sockets(struct tdt__driver *driver)
{
	struct tdt__socket *socket;

	while ((socket = TAILQ_FIRST(&driver->sockets)) != NULL)
		tdt__socket_update(socket, driver);
}

static void on_timer(uv_timer_t *timer)
{
	tdt__timers_fire(timer->data);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct tdt__driver *driver = prepare->data;
	uint64_t now, due;

	uv_update_time(&driver->loop); /* wakers have taken some time */
	now = uv_now(&driver->loop);
	pthread_mutex_lock(&driver->lock);
	update_sockets(driver);
	due = tdt__timers_due(driver);
	driver->sleeps_until = due;
	pthread_mutex_unlock(&driver->lock);
	if (due != UINT64_MAX)
		uv_timer_start(&driver->timer, on_timer, due > now ? due - now : 0, 0);
	else
		uv_timer_stop(&driver->timer);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, handle->type == UV_POLL ? tdt__socket_closed : NULL);
}

static void on_check(uv_check_t *check)
{
	struct tdt__driver *driver = check->data;
	bool stopped;

	tdt__worker_notify_gathered();
	pthread_mutex_lock(&driver->lock);
	driver->sleeps_until = 0;
	stopped = tdt__driver_stopped(driver);
	if (stopped)
		update_sockets(driver);
	pthread_mutex_unlock(&driver->lock);
	if (stopped)
		uv_walk(&driver->loop, close_handle, NULL); /* uv_run() returns without handles */
}

static void *run_loop(void *arg)
{
	struct tdt__driver *driver = arg;

	pthread_setname_np(pthread_self(), "tdt-driver");
	uv_run(&driver->loop, UV_RUN_DEFAULT);
	return NULL;
}

/*
 * Test whether libuv's table, whose size is a power of two, can grow to hold `fd`.  The table never
 * shrinks, so descriptors up to the highest one tested need no second test.
 */
int tdt__driver_make_room(struct tdt__driver *driver, int fd)
{
	/* volatile: otherwise the compiler may remove malloc() and free() as having no effect */
	void *volatile memory;
	size_t n = 64;

	if (fd <= driver->highest_fd)
		return 0;
	while (n < (size_t)fd + 3)
		n *= 2;
	memory = malloc(n * sizeof(void *));
	if (memory == NULL)
		return -ENOMEM;
	free(memory);
	driver->highest_fd = fd;
	return 0;
}

/* --- Start and stop ------------------------------------------------------------ */

/* Test whether libuv will get the resources without which it aborts: see the top of this file. */
static int look_for_room(struct tdt__driver *driver)
{
	int fds[8]; /* libuv opens up to 6 */
	int n, highest = 0, error = 0;

	for (n = 0; n < 8; n++) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		if (fds[n] < 0) {
			error = -errno;
			break;
		}
		highest = fds[n] > highest ? fds[n] : highest;
	}
	while (n > 0)
		close(fds[--n]);
	return error != 0 ? error : tdt__driver_make_room(driver, highest);
}

static int open_loop(struct tdt__driver *driver)
{
	uv_loop_t *loop = &driver->loop;
	int error = look_for_room(driver);

	if (error == 0)
		error = uv_loop_init(loop);
	if (error != 0)
		return error;
	uv_async_init(loop, &driver->alarm, NULL); /* can't fail: the loop has one itself */
	uv_prepare_init(loop, &driver->prepare);
	uv_prepare_start(&driver->prepare, on_prepare);
	uv_check_init(loop, &driver->check);
	uv_check_start(&driver->check, on_check);
	uv_timer_init(loop, &driver->timer);
	driver->prepare.data = driver->check.data = driver->timer.data = driver;
	return 0;
}

/*
 * The driver's thread blocks all signals, so that no handler of the program runs on it.  The
 * signals for faults stay unblocked, because the thread's own faults cannot be deferred.
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
	error = pthread_create(&driver->thread, NULL, run_loop, driver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int tdt__driver_new(struct tdt__driver **out)
{
	struct tdt__driver *driver = calloc(1, sizeof(*driver));
	int error;

	if (driver == NULL)
		return -ENOMEM;
	driver->refs = 1;
	pthread_mutex_init(&driver->lock, NULL);
	RB_INIT(&driver->timers);
	TAILQ_INIT(&driver->sockets);
	error = open_loop(driver);
	if (error != 0)
		goto free_driver;
	error = start_thread(driver);
	if (error != 0)
		goto close_loop;
	*out = driver;
	return 0;

close_loop:
	uv_walk(&driver->loop, close_handle, NULL);
	uv_run(&driver->loop, UV_RUN_DEFAULT);
	uv_loop_close(&driver->loop);
free_driver:
	tdt__driver_unref(driver);
	return error;
}

void tdt__driver_stop(struct tdt__driver *driver)
{
	pthread_mutex_lock(&driver->lock);
	atomic_store_explicit(&driver->stopped, true, memory_order_relaxed);
	uv_async_send(&driver->alarm);
	pthread_mutex_unlock(&driver->lock);
	pthread_join(driver->thread, NULL);
	uv_loop_close(&driver->loop);
	tdt__timers_give_up(driver);
}

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver)
{
	atomic_fetch_add_explicit(&driver->refs, 1, memory_order_relaxed);
	return driver;
}

void tdt__driver_unref(struct tdt__driver *driver)
{
	/*
	 * Release: what this holder did.  Acquire: the last holder sees what all others did.  This
	 * decrement pairs with itself.
	 */
	if (driver == NULL ||
	    atomic_fetch_sub_explicit(&driver->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&driver->lock);
	free(driver);
}

/*
 * The alarm is sent under the lock: as soon as the lock is free the driver may be stopped and the
 * eventfd closed.
 */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms)
{
	if (due_ms >= driver->sleeps_until)
		return;
	driver->sleeps_until = 0;
	uv_async_send(&driver->alarm);
}
