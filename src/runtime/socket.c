// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sockets: how leaves wait for them, and what epoll reports of them. */

#include "runtime/socket.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/hold.h"
#include "runtime/rt.h"

/* So many freed sockets wait for the next turn before the thread in the role is woken for them. */
#define FREED_AT_MOST 64

void tdt__socket_init(struct tdt__socket *socket, int fd)
{
	socket->fd = fd;
	for (int side = TDT__READ; side <= TDT__WRITE; side++)
		atomic_init(&socket->sides[side].events, 1);
}

static void free_memory(struct tdt__socket *socket)
{
	tdt__driver_unref(atomic_load_explicit(&socket->driver, memory_order_relaxed));
	free(socket->name);
	free(socket);
}

/* --- In the role --------------------------------------------------------------- */

static void happened(struct tdt__side *side, bool cut, struct tdt__turn *turn)
{
	if (cut)
		atomic_store_explicit(&side->cut, true, memory_order_relaxed);
	atomic_fetch_add(&side->events, 1);	    /* 5 in socket.h */
	if (atomic_load(&side->slot.waker) != NULL) /* 6 in socket.h */
		tdt__turn_wake(turn, tdt__slot_take(&side->slot));
}

void tdt__socket_happened(struct tdt__socket *socket, uint32_t events, struct tdt__turn *turn)
{
	uint32_t cut = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI);

	if (events & EPOLLIN || cut)
		happened(&socket->sides[TDT__READ], cut, turn);
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		happened(&socket->sides[TDT__WRITE], false, turn);
}

void tdt__sockets_release(struct tdt__driver *driver)
{
	struct tdt__socket *socket;

	while ((socket = TAILQ_FIRST(&driver->freed)) != NULL) {
		TAILQ_REMOVE(&driver->freed, socket, link);
		free_memory(socket); /* not the last reference of the driver */
	}
	driver->n_freed = 0;
}

void tdt__sockets_give_up(struct tdt__driver *driver)
{
	struct tdt__socket *socket;

	pthread_mutex_lock(&driver->lock);
	while ((socket = TAILQ_FIRST(&driver->sockets)) != NULL) {
		const struct tdt_waker *wakers[2];

		TAILQ_REMOVE(&driver->sockets, socket, link);
		atomic_store_explicit(&socket->known, false, memory_order_relaxed);
		for (int side = TDT__READ; side <= TDT__WRITE; side++)
			wakers[side] = tdt__slot_take(&socket->sides[side].slot);
		pthread_mutex_unlock(&driver->lock); /* the socket may be freed now */
		tdt_waker_wake(wakers[TDT__READ]);
		tdt_waker_wake(wakers[TDT__WRITE]);
		pthread_mutex_lock(&driver->lock);
	}
	pthread_mutex_unlock(&driver->lock);
}

/* --- On other threads ------------------------------------------------------------ */

int tdt__socket_begin(struct tdt__socket *socket, int side, bool *took, unsigned *seen)
{
	struct tdt__side *of = &socket->sides[side];

	/* Acquire: what the leaf before did with the side.  Pairs with tdt__socket_leave(). */
	if (!*took && atomic_exchange_explicit(&of->taken, true, memory_order_acquire))
		return -EBUSY;
	*took = true;
	/* Acquire: `cut`.  Pairs with happened(). */
	*seen = atomic_load_explicit(&of->events, memory_order_acquire);
	/* No driver adds to `events` of a socket that epoll does not know, or knows no longer. */
	return *seen == of->drained && atomic_load_explicit(&socket->known, memory_order_relaxed)
		   ? -EAGAIN
		   : 0;
}

void tdt__socket_leave(struct tdt__socket *socket, int side)
{
	struct tdt__side *of = &socket->sides[side];

	/* Relaxed: only this leaf puts a waker there. */
	if (atomic_load_explicit(&of->slot.waker, memory_order_relaxed) != NULL)
		tdt__slot_clear(&of->slot);
	/* Release: what this leaf did with the side.  Pairs with tdt__socket_begin(). */
	atomic_store_explicit(&of->taken, false, memory_order_release);
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

int tdt__socket_meet(struct tdt__socket *socket)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
				     .data.ptr = socket };
	struct tdt__driver *driver = driver_of(socket);

	if (driver == NULL)
		return -ENOTSUP;
	TDT__HOLD(&driver->lock);
	if (tdt__driver_stopped(driver))
		return -ENOTSUP;
	if (atomic_load_explicit(&socket->known, memory_order_relaxed))
		return 0;
	/* If it is ready already, epoll reports that as an event. */
	if (epoll_ctl(driver->epoll, EPOLL_CTL_ADD, socket->fd, &event) != 0)
		return -errno;
	TAILQ_INSERT_TAIL(&driver->sockets, socket, link);
	/* Release: `driver`.  Pairs with tdt__socket_wait(). */
	atomic_store_explicit(&socket->known, true, memory_order_release);
	return 0;
}

/*
 * The socket's driver is locked.  Returns whether the memory is to stay until the next turn, since
 * the present one may have an event of the socket:
 *
 *   this thread                      a thread that takes the role
 *     1. takes it out of epoll         3. held = true
 *     2. reads `held`                  4. reads events from epoll
 *
 * All are sequentially consistent (epoll has a lock): if 2 does not see 3, 4 sees what 1 did.
 */
static bool leave_epoll(struct tdt__socket *socket, struct tdt__driver *driver)
{
	if (!atomic_load_explicit(&socket->known, memory_order_relaxed))
		return false;
	/* Not left to close(): a child of fork() may have the socket, too. */
	epoll_ctl(driver->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
	TAILQ_REMOVE(&driver->sockets, socket, link);
	if (atomic_load(&driver->held) == TDT__NOBODY)
		return false;
	TAILQ_INSERT_TAIL(&driver->freed, socket, link);
	if (++driver->n_freed == FREED_AT_MOST && !tdt__driver_stopped(driver))
		tdt__driver_ring(driver);
	return true;
}

/* In a child of fork() only the descriptor is closed, since the driver is the parent's. */
void tdt__socket_free(struct tdt__socket *socket)
{
	/* Acquire: pairs with driver_of(). */
	struct tdt__driver *driver = atomic_load_explicit(&socket->driver, memory_order_acquire);
	const int fd = socket->fd; /* the next turn frees the socket */
	bool stays = false;

	if (driver != NULL && tdt__driver_is_here(driver)) {
		pthread_mutex_lock(&driver->lock);
		stays = leave_epoll(socket, driver);
		pthread_mutex_unlock(&driver->lock);
	}
	if (fd >= 0)
		close(fd);
	if (!stays)
		free_memory(socket);
}
