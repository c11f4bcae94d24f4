// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A bank that stands still, and what a dump of all its tasks shows.
 *
 * Two transfers have each locked one account, and wait for the other one for ever.  A third task
 * blocks its thread in read(), a fourth computes without end.  Sessions wait, as they should.
 * tdt_dump() shows the deadlock, the stacks of the two busy threads, and the sessions as one.
 */

#include <locale.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>
#include <tdt/tdt.h>

#include "help.h"

static const char stuck_help[] =
	"Usage: stuck [--help]\n"
	"Let a bank stand still, and print where all of its tasks wait.\n";

#define SESSIONS 1000

struct account {
	struct tdt_mutex *mutex;
};

static struct account alice, bob;
static atomic_int halfway; /* transfers that have locked their first account */
static atomic_bool done;

/* --- The deadlock ------------------------------------------------------------- */

struct transfer {
	struct tdt_async async;
	struct account *from, *to;
	bool has_from, has_to;
};

static tdt_poll_t transfer_poll(void *state, struct tdt_context *cx)
{
	struct transfer *transfer = state;

	TDT_BEGIN(&transfer->async, cx);
	TDT_AWAIT(tdt_mutex_lock(transfer->from->mutex));
	transfer->has_from = true;
	atomic_fetch_add(&halfway, 1);
	while (atomic_load(&halfway) < 2) /* so that the deadlock happens each time */
		TDT_AWAIT(tdt_sleep_ms(1));
	TDT_AWAIT(tdt_mutex_lock(transfer->to->mutex));
	transfer->has_to = true;
	TDT_END();
}

static void transfer_fini(void *state)
{
	struct transfer *transfer = state;

	if (transfer->has_to)
		tdt_mutex_unlock(transfer->to->mutex);
	if (transfer->has_from)
		tdt_mutex_unlock(transfer->from->mutex);
}

static struct tdt_future transfer(struct account *from, struct account *to)
{
	return TDT_ASYNC_NEW(transfer_poll, (struct transfer){ .async.fini = transfer_fini,
							       .from = from, .to = to });
}

/* --- The tasks that keep their threads ------------------------------------------ */

struct job {
	struct tdt_async async;
	int fd;
};

static void read_config(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0) /* no thread ever writes */
		perror("stuck: read");
}

static tdt_poll_t reload_poll(void *state, struct tdt_context *cx)
{
	struct job *job = state;

	TDT_BEGIN(&job->async, cx);
	read_config(job->fd);
	TDT_END();
}

static void sum_up(void)
{
	while (!atomic_load_explicit(&done, memory_order_relaxed))
		;
}

static tdt_poll_t report_poll(void *state, struct tdt_context *cx)
{
	struct job *job = state;

	TDT_BEGIN(&job->async, cx);
	sum_up();
	TDT_END();
}

/* --- The tasks that wait as they should -------------------------------------------- */

static tdt_poll_t next_order_poll(void *state, struct tdt_context *cx)
{
	struct job *job = state;

	TDT_BEGIN(&job->async, cx);
	TDT_AWAIT(tdt_sleep_ms(60000));
	TDT_END();
}

static tdt_poll_t session_poll(void *state, struct tdt_context *cx)
{
	struct job *job = state;

	TDT_BEGIN(&job->async, cx);
	TDT_AWAIT(TDT_ASYNC_NEW(next_order_poll, (struct job){ 0 }));
	TDT_END();
}

/* --- The program --------------------------------------------------------------------- */

static void spawn(struct tdt_rt *rt, struct tdt_future future, const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, future, attr);

	if (handle == NULL) {
		perror("stuck: tdt_rt_spawn");
		exit(EXIT_FAILURE);
	}
	tdt_handle_unref(handle); /* the dump finds the task without it */
}

int main(int argc, char **argv)
{
	int status = read_options(argc, argv, stuck_help);
	struct tdt_rt_config config = { .size = sizeof config, .workers = 4 };
	struct timespec moment = { .tv_nsec = 300000000 };
	struct tdt_rt *rt;
	int ends[2];

	if (status >= 0)
		return status;
	setlocale(LC_ALL, "");
	rt = tdt_rt_new(&config);
	alice.mutex = tdt_mutex_new();
	bob.mutex = tdt_mutex_new();
	if (rt == NULL || alice.mutex == NULL || bob.mutex == NULL || pipe(ends) != 0) {
		perror("stuck");
		return EXIT_FAILURE;
	}
	for (int i = 1; i <= SESSIONS; i++) {
		char name[32];

		snprintf(name, sizeof name, "session %d", i);
		spawn(rt, TDT_ASYNC_NEW(session_poll, (struct job){ 0 }),
		      TDT_TASK_ATTR(.name = name));
	}
	spawn(rt, transfer(&alice, &bob), TDT_TASK_ATTR(.name = "alice to bob"));
	spawn(rt, transfer(&bob, &alice), TDT_TASK_ATTR(.name = "bob to alice"));
	spawn(rt, TDT_ASYNC_NEW(reload_poll, (struct job){ .fd = ends[0] }),
	      TDT_TASK_ATTR(.name = "reload"));
	spawn(rt, TDT_ASYNC_NEW(report_poll, (struct job){ 0 }), TDT_TASK_ATTR(.name = "report"));
	nanosleep(&moment, NULL);

	tdt_dump(stdout);

	atomic_store(&done, true);
	close(ends[1]); /* ends the read() */
	tdt_rt_free(rt);
	close(ends[0]);
	tdt_mutex_free(alice.mutex);
	tdt_mutex_free(bob.mutex);
	return EXIT_SUCCESS;
}
