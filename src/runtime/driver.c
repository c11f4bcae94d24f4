// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The driver's thread, and how others talk to it.
 *
 * A turn of its loop:
 *
 *   prepare   tell libuv of sockets, and of the timer that is due first; publish until when the poll may sleep
 *   poll      sleep in epoll_wait() until something happens; wake who waits for sockets
 *   check     have a worker look for the tasks that were woken; say that it is awake
 *   timer     fire timers that are due, and wake who waits for them
 *
 * `sleeps_until` saves system calls.  Others wake the thread (a write to an eventfd) only if it might sleep for longer
 * than they can wait; it is not woken twice, nor when it is awake.
 *
 * Out of memory or descriptors libuv (1.44) mostly returns an error, but calls abort() in three places: uv_loop_init()
 * when there is no pipe for the first loop of the process; whatever starts a handle with a descriptor, when the table
 * of handles by descriptor can't grow; and the poll, when the kernel takes a descriptor into no epoll any more (out of
 * its memory, or of the user's fs.epoll.max_user_watches).  So we look first whether the first two can be had, and for
 * the third uv_poll_init() does, once a socket.  Another thread may take them just then, other sockets the last
 * watches: that much is left to chance.
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

/* Tell libuv of sockets: one by one, since it calls the kernel, for which the driver is unlocked. */
static void tell_sockets(struct tdt__driver *driver)
{
	struct tdt__socket *socket;

	while ((socket = TAILQ_FIRST(&driver->sockets)) != NULL)
		tdt__socket_tell(socket, driver);
}

static void on_timer(uv_timer_t *timer)
{
	tdt__timers_fire(timer->data);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct tdt__driver *driver = prepare->data;
	uint64_t now, due;

	uv_update_time(&driver->loop); /* wakers took some */
	now = uv_now(&driver->loop);
	pthread_mutex_lock(&driver->lock);
	tell_sockets(driver);
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

	tdt__worker_tell_gathered();
	pthread_mutex_lock(&driver->lock);
	driver->sleeps_until = 0;
	stopped = tdt__driver_stopped(driver);
	if (stopped)
		tell_sockets(driver);
	pthread_mutex_unlock(&driver->lock);
	if (stopped)
		uv_walk(&driver->loop, close_handle, NULL); /* with no handles left uv_run() returns */
}

static void *run(void *arg)
{
	struct tdt__driver *driver = arg;

	pthread_setname_np(pthread_self(), "tdt-driver");
	uv_run(&driver->loop, UV_RUN_DEFAULT);
	return NULL;
}

/*
 * Whether libuv can take note of `fd`: its table has as many entries as a power of two says.  Nothing else grows the
 * table, so it is not asked for again.
 */
int tdt__driver_make_room(struct tdt__driver *driver, int fd)
{
	void *volatile memory; /* volatile: a compiler may think that malloc and free are for nothing */
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

/* Whether libuv will get what it does not do without: see above. */
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
	uv_async_init(loop, &driver->alarm, NULL); /* can't fail: the loop has one of its own already */
	uv_prepare_init(loop, &driver->prepare);
	uv_prepare_start(&driver->prepare, on_prepare);
	uv_check_init(loop, &driver->check);
	uv_check_start(&driver->check, on_check);
	uv_timer_init(loop, &driver->timer);
	driver->prepare.data = driver->check.data = driver->timer.data = driver;
	return 0;
}

/* No signal of the host's is handled on the driver's thread; those of its own faults can't be put off. */
static int start_thread(struct tdt__driver *driver)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	sigset_t blocked, before;
	int error;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	error = pthread_create(&driver->thread, NULL, run, driver);
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
	/* Release what this thread did with it, acquire what others did: pairs with itself. */
	if (driver == NULL || atomic_fetch_sub_explicit(&driver->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&driver->lock);
	free(driver);
}

/* Sent under the lock: as soon as that is given back the driver may be stopped, and the eventfd be closed. */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms)
{
	if (due_ms >= driver->sleeps_until)
		return;
	driver->sleeps_until = 0;
	uv_async_send(&driver->alarm);
}
