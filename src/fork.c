// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The library at a fork: this file has the order of all locks, and informs the parts of the library
 * in the child.
 *
 * A child inherits the locks as they are, but not the threads that would release them.  So the
 * locks must be free at a fork: they are taken before it and released after it, on both sides.
 *
 * So fork() waits for every thread that holds a lock.  No thread holds one for longer than some
 * tens of microseconds.  No lock is held while names are looked up, while a debug file is read, or
 * during a call of the loader; and no foreign code (poll, wake, clone, drop) is called with a lock
 * held.
 */

#include <stddef.h>

#include "capture/chain.h"
#include "capture/counted.h"
#include "capture/fiber.h"
#include "capture/interrupt.h"
#include "door/door.h"
#include "door/socket.h"
#include "dump/dump_signal.h"
#include "host/process_context.h"
#include "host/slot.h"
#include "host/start.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "probes/probes.h"
#include "recorder/recorder.h"
#include "registry/contexts.h"
#include "registry/registry.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"
#include "task/lost.h"
#include "task/panic_hooks.h"
#include "task/request.h"
#include "unwind/unwinder.h"
#include "watch/watch.h"

/*
 * A thread that holds several locks took them in this order.  After these come the lock of
 * unloads.h, one of the requests' locks, and the registry's.
 */
static pthread_mutex_t *const locks[] = {
	&tdt__door_lock,    &tdt__signal_lock, &tdt__recorder_lock,
	&tdt__watch_lock,   &tdt__counted_lock, &tdt__symbol_lock,
	&tdt__unwind_lock,  &tdt__interrupt_lock, &tdt__fibers_lock,
	&tdt__panic_hooks_lock, &tdt__contexts_lock
};

#define LOCKS (sizeof locks / sizeof locks[0])

static void before(void)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_lock(locks[i]);
	tdt__unloads_lock();
	tdt__request_locks_hold();
	tdt__registry_lock();
}

static void after_fork(void)
{
	tdt__registry_unlock();
	tdt__request_locks_release();
	tdt__unloads_unlock();
	for (size_t i = LOCKS; i-- > 0;)
		pthread_mutex_unlock(locks[i]);
}

static void in_forked_child(void)
{
	tdt__probes_forked();
	tdt__thread_forked();
	tdt__slots_forked();
	tdt__polls_forked();
	tdt__interrupt_forked();
	tdt__watch_forked();
	tdt__recorder_forked();
	tdt__unloads_forked();
	tdt__namer_forked();
	tdt__lost_forked();
	tdt__registry_forked();
	tdt__door_forked();
	tdt__panic_hooks_forked();
	tdt__process_context_forked();
	after_fork();
}

/* A caller may need the services at a time when no thread can be started: see service.h. */
static void begin_services(void)
{
	tdt__namer_begin();
	tdt__unloads_begin();
	tdt__registry_begin();
	tdt__dump_begin();
	tdt__door_begin();
}

static void resume_services(void)
{
	tdt__dump_begin();
	tdt__recorder_resume();
	tdt__door_begin();
}

const struct tdt__fork_handlers tdt__fork_handlers = { begin_services, before, after_fork,
						       in_forked_child, resume_services };
