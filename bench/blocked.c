// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How late are timers and reads while workers are blocked, in system calls that no future made?  A
 * task of the same runtime awaits them while one of its two workers is blocked, and
 * tdt_rt_block_on() while all are, since no task could be polled then.
 */

#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "report.h"

#define MS INT64_C(1000000)
#define WAIT_MS 10

static struct tdt_rt *rt;
static struct tdt_tcp *tcp; /* `peer` is the other end */
static int peer;

static void sleep_ns(int64_t ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* --- Tasks that block their workers ------------------------------------------------- */

static atomic_int blocked;
static atomic_bool unblock;

static void nothing(void *state)
{
	(void)state;
}

static tdt_poll_t block_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	atomic_fetch_add(&blocked, 1);
	while (!atomic_load(&unblock))
		sleep_ns(MS);
	atomic_fetch_sub(&blocked, 1);
	return TDT_READY;
}

static void block(int n)
{
	atomic_store(&unblock, false);
	for (int i = 0; i < n; i++) {
		if (tdt_rt_go(rt, (struct tdt_future){ NULL, block_poll, nothing }, NULL) != 0)
			die("tdt_rt_go");
		while (atomic_load(&blocked) <= i)
			sleep_ns(MS / 10);
	}
}

static void go_on(void)
{
	atomic_store(&unblock, true);
	while (atomic_load(&blocked) != 0)
		sleep_ns(MS);
}

/* --- What is late ------------------------------------------------------------------- */

/* A task that takes the time when its future is ready. */
struct timed {
	struct tdt_future future;
	int64_t ready;
	sem_t over;
};

static tdt_poll_t timed_poll(void *state, struct tdt_context *cx)
{
	struct timed *timed = state;

	if (tdt_future_poll(&timed->future, cx) == TDT_PENDING)
		return TDT_PENDING;
	timed->ready = now();
	return TDT_READY;
}

static void timed_drop(void *state)
{
	struct timed *timed = state;

	tdt_future_drop(&timed->future);
	sem_post(&timed->over);
}

/* Returns when the future was ready. */
static int64_t run(struct tdt_future future, bool in_a_task)
{
	static struct timed timed;
	const struct tdt_future outer = { &timed, timed_poll, timed_drop };

	timed.future = future;
	sem_init(&timed.over, 0, 0);
	if ((in_a_task ? tdt_rt_go(rt, outer, NULL) : tdt_rt_block_on(rt, outer)) != 0)
		die("a task");
	while (sem_wait(&timed.over) != 0)
		;
	return timed.ready;
}

static int64_t written;

static void *write_later(void *nothing_more)
{
	sleep_ns(WAIT_MS * MS);
	written = now();
	if (write(peer, "x", 1) != 1)
		die("write");
	return nothing_more;
}

static void measure_timer(struct figure *late, bool in_a_task)
{
	int64_t due = now() + WAIT_MS * MS;

	add(late, (double)(run(tdt_sleep_ms(WAIT_MS), in_a_task) - due) / 1e6);
}

static void measure_read(struct figure *late, bool in_a_task)
{
	pthread_t writer;
	int64_t ready;
	ssize_t n;
	char byte;

	if (pthread_create(&writer, NULL, write_later, NULL) != 0)
		die("pthread_create");
	ready = run(tdt_tcp_read(tcp, &byte, 1, &n), in_a_task);
	pthread_join(writer, NULL);
	add(late, (double)(ready - written) / 1e6);
}

/* --- The runtimes ------------------------------------------------------------------- */

static void connect_both(void)
{
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int error;

	if (listener == NULL)
		die("tdt_tcp_listen");
	to.sin_port = htons(tdt_tcp_listener_port(listener));
	peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(peer, (struct sockaddr *)&to, sizeof to) != 0 ||
	    tdt_rt_block_on(rt, tdt_tcp_accept(listener, &tcp, &error)) != 0 || error != 0)
		die("connect");
	tdt_tcp_listener_free(listener);
}

static struct case_of {
	const char *name;
	unsigned workers, blocked;
	struct figure *first, *timer, *read;
} cases[] = {
	{ .name = "none of 2 workers is blocked:", .workers = 2 },
	{ .name = "1 of 2 workers is blocked:", .workers = 2, .blocked = 1 },
	{ .name = "all of 1, tdt_rt_block_on():", .workers = 1, .blocked = 1 },
	{ .name = "all of 2, tdt_rt_block_on():", .workers = 2, .blocked = 2 },
};

static void measure(struct case_of *one)
{
	const struct tdt_rt_config config = { .size = sizeof config, .workers = one->workers };
	bool in_a_task = one->blocked < one->workers;

	rt = tdt_rt_new(&config);
	if (rt == NULL)
		die("tdt_rt_new");
	connect_both();
	sleep_ns(20 * MS); /* all threads sleep */
	block((int)one->blocked);
	measure_timer(one->first, in_a_task);
	for (int i = 0; i < (quick ? 1 : 5); i++) {
		measure_timer(one->timer, in_a_task);
		measure_read(one->read, in_a_task);
	}
	go_on();
	tdt_tcp_free(tcp);
	close(peer);
	tdt_rt_free(rt);
}

int main(int argc, char **argv)
{
	const size_t n = sizeof cases / sizeof cases[0];

	report_start(argc, argv, "How late are timers and reads while workers are blocked?",
		     "ms late", 15);
	for (size_t i = 0; i < n; i++) {
		remark("%s", cases[i].name);
		cases[i].first = figure("  the first timer", NULL);
		cases[i].timer = figure("  a timer", NULL);
		cases[i].read = figure("  a read", NULL);
	}
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++)
			measure(&cases[i]);
	return report_end();
}
