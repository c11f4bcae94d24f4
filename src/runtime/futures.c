// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The public calls that make the runtime's futures.  The poll functions of these futures have the
 * same names, as static functions in other files, so that backtraces show the names that users
 * know.  src/future/combine.c explains this.
 */

#include <config.h>

#include <tdt/rt/channel.h>
#include <tdt/rt/join_set.h>
#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>

#include "runtime/channel.h"
#include "runtime/join_set.h"
#include "runtime/mutex.h"
#include "runtime/oneshot.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/tcp.h"
#include "runtime/timeout.h"
#include "runtime/yield.h"

struct tdt_future tdt_channel_receive(struct tdt_channel *channel, void **value, int *error)
{
	return tdt__channel_receive_new(channel, value, error);
}

struct tdt_future tdt_channel_send(struct tdt_channel *channel, void *value, int *error)
{
	return tdt__channel_send_new(channel, value, error);
}

struct tdt_future tdt_join_set_next(struct tdt_join_set *set, struct tdt_joined *joined)
{
	return joined != NULL ? tdt__join_set_next_new(set, &joined->id, &joined->outcome)
			      : tdt__join_set_next_new(set, NULL, NULL);
}

struct tdt_future tdt_join_set_wait(struct tdt_join_set *set)
{
	return tdt__join_set_wait_new(set);
}

struct tdt_future tdt_mutex_lock(struct tdt_mutex *mutex)
{
	return tdt__mutex_lock_new(mutex, __builtin_return_address(0));
}

struct tdt_future tdt_mutex_guard(struct tdt_mutex *mutex, struct tdt_future future)
{
	return tdt__mutex_guard_new(mutex, future, __builtin_return_address(0));
}

struct tdt_future tdt_notify_wait(struct tdt_notify *notify)
{
	return tdt__notify_wait_new((struct tdt__semaphore *)notify);
}

struct tdt_future tdt_oneshot_receive(struct tdt_oneshot_receiver *receiver, void **value,
				      int *error)
{
	return tdt__oneshot_receive_new(receiver, value, error);
}

struct tdt_future tdt_semaphore_acquire(struct tdt_semaphore *semaphore)
{
	return tdt__semaphore_acquire_new((struct tdt__semaphore *)semaphore);
}

struct tdt_future tdt_sleep_ms(uint64_t ms)
{
	return tdt__sleep_ms_new(ms);
}

struct tdt_future tdt_tcp_accept(struct tdt_tcp_listener *listener, struct tdt_tcp **tcp,
				 int *error)
{
	return tdt__tcp_accept_new(listener, tcp, error);
}

struct tdt_future tdt_tcp_connect(const char *host, uint16_t port, struct tdt_tcp **tcp, int *error)
{
	return tdt__tcp_connect_new(host, port, tcp, error);
}

struct tdt_future tdt_tcp_read(struct tdt_tcp *tcp, void *buffer, size_t size, ssize_t *n)
{
	return tdt__tcp_read_new(tcp, buffer, size, n);
}

struct tdt_future tdt_tcp_write(struct tdt_tcp *tcp, const void *data, size_t size, ssize_t *n)
{
	return tdt__tcp_write_new(tcp, data, size, n);
}

struct tdt_future tdt_timeout_ms(struct tdt_future future, uint64_t ms, bool *elapsed)
{
	return tdt__timeout_new(future, ms, elapsed);
}

struct tdt_future tdt_yield_now(void)
{
	return tdt__yield_now_new();
}
