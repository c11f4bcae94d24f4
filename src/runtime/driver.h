/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The driver: one thread that waits, in libuv, for timers and sockets, and wakes the tasks that
 * wait for them.
 *
 * The driver has a thread of its own, instead of running on a worker that happens to be parked.
 * So a task that blocks its worker delays no timer of another task; busy workers need not look at
 * the loop from time to time; and only one thread calls libuv, whose handles are not thread-safe.
 * The cost is one thread switch between the events of a turn and the polls of their tasks.
 */

struct tdt__driver;

/* Start a driver.  Returns 0, -ENOMEM, -EAGAIN (no thread), -EMFILE or -ENFILE. */
int tdt__driver_new(struct tdt__driver **driver);

/*
 * Stop the driver's thread.  Timers and sockets that are still registered never fire, but the tasks
 * that wait for them (on another runtime) are woken, and find the driver stopped.  From now on
 * registering fails.  Do not call this on the driver's thread.
 *
 * The memory stays until the last reference is dropped: the creator has one, and so has each timer
 * and each socket.
 */
void tdt__driver_stop(struct tdt__driver *driver);

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver);
void tdt__driver_unref(struct tdt__driver *driver); /* NULL is fine */
