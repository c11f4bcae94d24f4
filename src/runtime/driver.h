/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_DRIVER_H
#define TDT_RUNTIME_DRIVER_H

/*
 * The driver: one thread that waits, in libuv, for timers and sockets, and wakes the tasks that wait for them.
 *
 * A thread of its own, and not the worker that happens to be parked: a task that blocks its worker then holds up
 * nobody's timer, busy workers need not look at the loop every so often, and libuv, whose handles are not thread-safe,
 * is called by one thread only.  It costs one switch of threads from the events of a turn to their tasks.
 */

struct tdt__driver;

/* Start a driver.  0, or a negative errno: -ENOMEM, -EAGAIN (no thread), -EMFILE, -ENFILE. */
int tdt__driver_new(struct tdt__driver **driver);

/*
 * Stop its thread.  What is still registered never fires, but who waits for it (on another runtime) is woken, and finds
 * the driver stopped; registering fails from now on.  Not on the driver's thread.
 * The memory stays until the last reference is given back: the maker's, and one for each timer and socket.
 */
void tdt__driver_stop(struct tdt__driver *driver);

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver);
void tdt__driver_unref(struct tdt__driver *driver); /* NULL is fine */

#endif
