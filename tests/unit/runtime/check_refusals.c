// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/net, runtime/tcp, runtime/ready, runtime/rt, runtime/driver.  Each system call
 * that the runtime makes fails once: the error is reported, or the call is made again.  They are
 * wrapped (--wrap).  check_net has epoll_ctl(), check_rt_nomem pthread_create().
 */

#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "lib/test.h"

/* --- Refusing ----------------------------------------------------------------------- */

static const char *_Atomic refused_call; /* NULL: none; set last */
static int refused_with;
static atomic_int left; /* how often it is refused */
static pthread_t refused_on;
static bool refused_anywhere;

static bool refuses(const char *call)
{
	const char *refused = refused_call;

	if (refused == NULL || strcmp(call, refused) != 0 ||
	    !(refused_anywhere || pthread_equal(refused_on, pthread_self())))
		return false;
	if (atomic_fetch_sub(&left, 1) <= 0)
		return false;
	errno = refused_with;
	return true;
}

#define REFUSABLE(type, call, parameters, ...)                                                     \
	type __real_##call parameters;                                                             \
	type __wrap_##call parameters                                                              \
	{                                                                                          \
		return refuses(#call) ? -1 : __real_##call(__VA_ARGS__);                           \
	}

REFUSABLE(int, socket, (int family, int type, int protocol), family, type, protocol)
REFUSABLE(int, bind, (int fd, const struct sockaddr *to, socklen_t length), fd, to, length)
REFUSABLE(int, listen, (int fd, int backlog), fd, backlog)
REFUSABLE(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length), fd,
	  level, name, value, length)
REFUSABLE(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *length), fd, level,
	  name, value, length)
REFUSABLE(int, getsockname, (int fd, struct sockaddr *name, socklen_t *length), fd, name, length)
REFUSABLE(int, getpeername, (int fd, struct sockaddr *name, socklen_t *length), fd, name, length)
REFUSABLE(int, accept4, (int fd, struct sockaddr *from, socklen_t *length, int flags), fd, from,
	  length, flags)
REFUSABLE(ssize_t, recv, (int fd, void *to, size_t size, int flags), fd, to, size, flags)
REFUSABLE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
REFUSABLE(int, shutdown, (int fd, int how), fd, how)
REFUSABLE(int, poll, (struct pollfd *fds, nfds_t n_fds, int timeout), fds, n_fds, timeout)
REFUSABLE(ssize_t, read, (int fd, void *to, size_t size), fd, to, size)
REFUSABLE(int, signalfd, (int fd, const sigset_t *set, int flags), fd, set, flags)
REFUSABLE(int, epoll_create1, (int flags), flags)
REFUSABLE(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout), fd, events,
	  most, timeout)
REFUSABLE(int, eventfd, (unsigned value, int flags), value, flags)
REFUSABLE(int, timerfd_create, (int clock, int flags), clock, flags)
REFUSABLE(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), pid, size, set)

int __real_connect(int fd, const struct sockaddr *to, socklen_t length);

/* If its result is refused, it takes a while. */
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t length)
{
	if (refused_call != NULL && strcmp(refused_call, "getsockopt") == 0) {
		errno = EINPROGRESS;
		return -1;
	}
	return refuses("connect") ? -1 : __real_connect(fd, to, length);
}

long __real_syscall(long number, ...);

/*
 * The driver's alarm is a write(2) that is no point of cancellation.  A caller that passes fewer
 * arguments left something else where the last one is read, which AddressSanitizer may know.
 */
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	return number == SYS_write && refuses("write")
		       ? -1
		       : __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* --- What is tried ------------------------------------------------------------------ */

static struct tdt_rt *rt;
static struct tdt_tcp_listener *listener;
static struct tdt_tcp *ours, *theirs;

/* Each of these returns 0 or the negative errno that it was told. */

static int try_runtime(void)
{
	struct tdt_rt *made = tdt_rt_new(NULL);

	if (made == NULL)
		return -errno;
	tdt_rt_free(made);
	return 0;
}

static int try_listen(void)
{
	struct tdt_tcp_listener *made = tdt_tcp_listen("127.0.0.1", 0);
	int error = made == NULL ? -errno : 0;

	tdt_tcp_listener_free(made);
	return error;
}

static int try_port(void)
{
	return tdt_tcp_listener_port(listener) == 0 ? -errno : 0;
}

static int try_peer(void)
{
	char text[64];
	int length = tdt_tcp_peer(ours, text, sizeof text);

	return length < 0 ? length : 0;
}

static int try_shutdown(void)
{
	return tdt_tcp_shutdown(ours);
}

static int try_connect(void)
{
	struct tdt_tcp *tcp;
	int error = 1;

	MUST(tdt_rt_block_on(rt, tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(listener),
						 &tcp, &error)) == 0);
	tdt_tcp_free(tcp);
	return error;
}

static int try_accept(void)
{
	struct tdt_tcp *tcp;
	int error = 1;

	MUST(tdt_rt_block_on(rt, tdt_tcp_accept(listener, &tcp, &error)) == 0);
	tdt_tcp_free(tcp);
	return error;
}

static int try_read(void)
{
	ssize_t n = -1;
	char byte;

	MUST(tdt_rt_block_on(rt, tdt_tcp_read(ours, &byte, 1, &n)) == 0);
	return n < 0 ? (int)n : 0;
}

static int try_write(void)
{
	ssize_t n = -1;

	MUST(tdt_rt_block_on(rt, tdt_tcp_write(ours, "", 1, &n)) == 0);
	return n < 0 ? (int)n : 0;
}

static int try_ready(void)
{
	int error = 1;

	MUST(tdt_rt_block_on(rt, tdt_tcp_ready(ours, false, &error)) == 0);
	return error;
}

static int try_signal(void)
{
	int signal = 1;
	sigset_t set;
	struct tdt_future future = tdt_signal_wait((const int[]){ SIGUSR1, 0 }, &signal);

	if (tdt_future_is_none(&future))
		return -errno;
	kill(getpid(), SIGUSR1);
	MUST(tdt_rt_block_on(rt, future) == 0);
	if (signal < 0) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		MUST(sigwaitinfo(&set, NULL) == SIGUSR1);
	}
	return signal < 0 ? signal : 0;
}

static int try_sleep(void)
{
	MUST(tdt_rt_block_on(rt, tdt_sleep_ms(5)) == 0);
	return 0;
}

/* --- The table ---------------------------------------------------------------------- */

static const struct {
	const char *call;
	int error;
	int (*run)(void);
	enum {
		TOLD,
		AGAIN,	 /* or it goes on without it: the caller is told nothing */
		ANYWHERE /* the same; another thread makes the call */
	} then;
} refusals[] = {
	{ "epoll_create1", EMFILE, try_runtime, TOLD },
	{ "eventfd", ENFILE, try_runtime, TOLD },
	{ "timerfd_create", EMFILE, try_runtime, TOLD },
	{ "sched_getaffinity", EINVAL, try_runtime, AGAIN },
	{ "epoll_wait", EINTR, try_sleep, ANYWHERE },
	{ "read", EINTR, try_sleep, ANYWHERE },
	{ "write", EINTR, try_sleep, ANYWHERE },
	{ "socket", EMFILE, try_listen, TOLD },
	{ "setsockopt", EACCES, try_listen, TOLD },
	{ "bind", EADDRINUSE, try_listen, TOLD },
	{ "listen", EADDRINUSE, try_listen, TOLD },
	{ "getsockname", ENOBUFS, try_port, TOLD },
	{ "getpeername", ENOBUFS, try_peer, TOLD },
	{ "shutdown", ENOTCONN, try_shutdown, TOLD },
	{ "socket", ENFILE, try_connect, TOLD },
	{ "connect", EACCES, try_connect, TOLD },
	{ "connect", ENETUNREACH, try_connect, TOLD },
	{ "setsockopt", ENOMEM, try_connect, AGAIN },
	{ "getsockopt", ENOBUFS, try_connect, TOLD },
	{ "accept4", EINTR, try_accept, AGAIN },
	{ "accept4", ECONNABORTED, try_accept, AGAIN },
	{ "accept4", EMFILE, try_accept, TOLD },
	{ "accept4", EOPNOTSUPP, try_accept, TOLD },
	{ "recv", EINTR, try_read, AGAIN },
	{ "recv", ECONNRESET, try_read, TOLD },
	{ "sendmsg", EINTR, try_write, AGAIN },
	{ "sendmsg", ENOBUFS, try_write, TOLD },
	{ "poll", EINTR, try_ready, AGAIN },
	{ "poll", ENOMEM, try_ready, TOLD },
	{ "signalfd", EMFILE, try_signal, TOLD },
	{ "read", EINTR, try_signal, AGAIN },
	{ "read", EIO, try_signal, TOLD },
};

static void setup(void)
{
	struct tdt_future both[2];
	int accepted = 1, connected = 1;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 1 });
	ck_assert_ptr_nonnull(rt);
	listener = tdt_tcp_listen("127.0.0.1", 0);
	ck_assert_ptr_nonnull(listener);
	both[0] = tdt_tcp_accept(listener, &theirs, &accepted);
	both[1] = tdt_tcp_connect("127.0.0.1", tdt_tcp_listener_port(listener), &ours, &connected);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join_all(both, 2)), 0);
	ck_assert(accepted == 0 && connected == 0);
}

/* What a call that is made again then finds. */
static void prepare(int (*run)(void))
{
	struct tdt_tcp *tcp = NULL;
	int error = 0;
	ssize_t n = 0;

	if (run == try_read || run == try_ready)
		MUST(tdt_rt_block_on(rt, tdt_tcp_write(theirs, "xy", 2, &n)) == 0 && n == 2);
	if (run == try_accept)
		MUST(tdt_rt_block_on(rt, tdt_tcp_connect("127.0.0.1",
							 tdt_tcp_listener_port(listener), &tcp,
							 &error)) == 0);
	tdt_tcp_free(tcp);
}

static void teardown(void)
{
	tdt_tcp_free(ours);
	tdt_tcp_free(theirs);
	tdt_tcp_listener_free(listener);
	tdt_rt_free(rt);
}

CASE(refusals, .setup = setup, .teardown = teardown)

TEST(each_call_that_fails_is_reported_or_made_again,
     .to = (int)(sizeof refusals / sizeof refusals[0]))
{
	int error;

	prepare(refusals[_i].run);
	refused_with = refusals[_i].error;
	refused_anywhere = refusals[_i].then == ANYWHERE;
	refused_on = pthread_self();
	left = 1;
	refused_call = refusals[_i].call;
	do
		error = refusals[_i].run();
	while (refused_anywhere && left > 0);
	refused_call = NULL;
	ck_assert_int_le(left, 0);
	ck_assert_int_eq(error, refusals[_i].then == TOLD ? -refusals[_i].error : 0);
	prepare(refusals[_i].run);
	if (refusals[_i].run != try_shutdown)
		ck_assert_int_eq(refusals[_i].run(), 0); /* and nothing is left behind */
}
