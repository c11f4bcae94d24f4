// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sockets: how leaves wait for them, and how the driver watches them. */

#include <config.h>

#include "runtime/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/current.h"
#include "runtime/task.h"
#include "runtime/worker.h"

static const unsigned side_bits[] = { [TDT__READ] = UV_READABLE, [TDT__WRITE] = UV_WRITABLE };

void tdt__socket_init(struct tdt__socket *socket, int fd)
{
	socket->fd = fd;
	socket->refs = 1;
}

static void unref_socket(struct tdt__socket *socket)
{
	/*
	 * Release: what this holder did.  Acquire: the last holder sees what all others did.  This
	 * decrement pairs with itself.
	 */
	if (atomic_fetch_sub_explicit(&socket->refs, 1, memory_order_acq_rel) != 1)
		return;
	close(socket->fd);
	tdt__driver_unref(atomic_load_explicit(&socket->driver, memory_order_relaxed));
	free(socket->name);
	free(socket);
}

/* --- The driver's list, under its lock --------------------------------------- */

static void list_socket(struct tdt__socket *socket, struct tdt__driver *driver)
{
	if (!socket->listed)
		TAILQ_INSERT_TAIL(&driver->sockets, socket, link);
	socket->listed = true;
	tdt__driver_wake(driver, 0);
}

static void unlist_socket(struct tdt__socket *socket, struct tdt__driver *driver)
{
	if (socket->listed)
		TAILQ_REMOVE(&driver->sockets, socket, link);
	socket->listed = false;
}

/* --- On the driver's thread ---------------------------------------------------- */

/*
 * Take the waker out of a slot and wake it.  If a task of this driver's runtime owns the waker, a
 * sleeping worker is notified only after the leaves of all ready sockets are woken.  If the worker
 * was notified for the first socket, it might sleep again before the second, with two thread
 * switches for each socket.
 *
 * A waker that no task of libtdt-rt owns may do anything, even wait for the tasks that were woken
 * before.  So a worker is notified of those tasks first.
 */
static void wake_slot(struct tdt__slot *slot, struct tdt__driver *driver)
{
	const struct tdt_waker *waker = tdt__slot_take(slot);

	if (waker != NULL && tdt__task_has_waker(waker))
		tdt__current_gather(driver);
	else
		tdt__worker_notify_gathered();
	tdt_waker_wake(waker);
	tdt__current_gather(NULL);
}

static void wake_sides(struct tdt__socket *socket, unsigned bits, struct tdt__driver *driver)
{
	for (int side = TDT__READ; side <= TDT__WRITE; side++)
		if (bits & side_bits[side])
			wake_slot(&socket->sides[side].slot, driver);
}

/*
 * Either the owner has freed the socket, and no leaf waits; or the driver was stopped, and the
 * leaves that wait are woken and find that out.
 */
void tdt__socket_closed(uv_handle_t *handle)
{
	struct tdt__socket *socket = handle->data;

	wake_sides(socket, UV_READABLE | UV_WRITABLE, NULL);
	unref_socket(socket);
}

/* Sides are ready, or there is an error.  The leaves try again, and find out which it is. */
static void on_ready(uv_poll_t *handle, int status, int events)
{
	struct tdt__socket *socket = handle->data;
	struct tdt__driver *driver = atomic_load_explicit(&socket->driver, memory_order_relaxed);
	unsigned ready = status < 0 ? UV_READABLE | UV_WRITABLE : (unsigned)events;

	socket->watched &= ~ready;
	uv_poll_start(handle, (int)socket->watched, on_ready); /* 0 stops it */
	pthread_mutex_lock(&driver->lock);
	socket->armed &= ~ready;
	pthread_mutex_unlock(&driver->lock);
	wake_sides(socket, ready,
		   driver); /* this is the loop's poll phase; the check phase follows */
}

static int open_handle(struct tdt__socket *socket, struct tdt__driver *driver)
{
	int error = tdt__driver_make_room(driver, socket->fd);

	if (error == 0)
		error = uv_poll_init(&driver->loop, &socket->uv, socket->fd);
	if (error != 0)
		return error;
	socket->uv.data = socket;
	socket->opened = true;
	return 0;
}

/*
 * libuv has refused the socket.  The leaves that wait get the error.  They may try again, because
 * the driver forgets the socket.
 */
static void fail_socket(struct tdt__socket *socket, struct tdt__driver *driver, int error)
{
	pthread_mutex_lock(&driver->lock);
	for (int side = TDT__READ; side <= TDT__WRITE; side++)
		if (socket->armed & side_bits[side])
			atomic_store_explicit(&socket->sides[side].error, error,
					      memory_order_relaxed);
	socket->armed = 0;
	socket->known = false;
	unlist_socket(socket, driver);
	pthread_mutex_unlock(&driver->lock);
	wake_sides(socket, UV_READABLE | UV_WRITABLE, NULL);
	unref_socket(socket);
}

void tdt__socket_update(struct tdt__socket *socket, struct tdt__driver *driver)
{
	unsigned armed = socket->armed;
	bool freed = socket->freed;
	int error = 0;

	unlist_socket(socket, driver);
	pthread_mutex_unlock(&driver->lock);
	if (freed) {
		if (socket->opened)
			uv_close((uv_handle_t *)&socket->uv, tdt__socket_closed);
		else
			unref_socket(socket);
	} else {
		if (!socket->opened)
			error = open_handle(socket, driver);
		if (error != 0) {
			fail_socket(socket, driver, error);
		} else {
			socket->watched = armed;
			/* This can't fail: no other handle has this descriptor. */
			uv_poll_start(&socket->uv, (int)armed, on_ready);
		}
	}
	pthread_mutex_lock(&driver->lock);
}

/* --- On other threads ------------------------------------------------------------ */

bool tdt__socket_take(struct tdt__socket *socket, int side)
{
	/* Acquire: what the leaf before did with the side.  Pairs with tdt__socket_leave(). */
	if (atomic_exchange_explicit(&socket->sides[side].taken, true, memory_order_acquire))
		return false;
	/* Clear the error of an earlier leaf that was dropped before it read the error. */
	atomic_store_explicit(&socket->sides[side].error, 0, memory_order_relaxed);
	return true;
}

void tdt__socket_leave(struct tdt__socket *socket, int side)
{
	tdt__slot_clear(&socket->sides[side].slot);
	/* Release: what this leaf did with the side.  Pairs with tdt__socket_take(). */
	atomic_store_explicit(&socket->sides[side].taken, false, memory_order_release);
}

/*
 * The driver that a socket belongs to.  A socket without a driver gets this thread's driver.  NULL
 * if this thread has none either.
 */
static struct tdt__driver *driver_of(struct tdt__socket *socket)
{
	/*
	 * Acquire, because this thread uses the driver.  Pairs with the release of the exchange
	 * below.
	 */
	struct tdt__driver *driver = atomic_load_explicit(&socket->driver, memory_order_acquire),
			   *current;

	if (driver != NULL || tdt__current.driver == NULL)
		return driver;
	current = tdt__driver_ref(tdt__current.driver);
	if (atomic_compare_exchange_strong_explicit(&socket->driver, &driver, current,
						    memory_order_acq_rel, memory_order_acquire))
		return current;
	tdt__driver_unref(current); /* the socket's other side was first */
	return driver;
}

int tdt__socket_arm(struct tdt__socket *socket, int side)
{
	struct tdt__driver *driver = driver_of(socket);
	int error;

	if (driver == NULL)
		return -ENOTSUP;
	pthread_mutex_lock(&driver->lock);
	error = atomic_exchange_explicit(&socket->sides[side].error, 0, memory_order_relaxed);
	if (tdt__driver_stopped(driver))
		error = -ENOTSUP;
	if (error == 0 && !(socket->armed & side_bits[side])) {
		socket->armed |= side_bits[side];
		if (!socket->known)
			atomic_fetch_add_explicit(&socket->refs, 1, memory_order_relaxed);
		socket->known = true;
		list_socket(socket, driver);
	}
	pthread_mutex_unlock(&driver->lock);
	return error;
}

void tdt__socket_free(struct tdt__socket *socket)
{
	/* Acquire: pairs with driver_of(). */
	struct tdt__driver *driver = atomic_load_explicit(&socket->driver, memory_order_acquire);

	if (driver != NULL) {
		pthread_mutex_lock(&driver->lock);
		socket->freed = true;
		if (socket->known && !tdt__driver_stopped(driver))
			list_socket(socket, driver);
		pthread_mutex_unlock(&driver->lock);
	}
	unref_socket(socket);
}
