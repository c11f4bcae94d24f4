// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Callbacks of libuv: each request sleeps, opens a file, has a thread work, and sleeps again; all
 * but the last one begin at once.  When they work, all is dumped.  What was added for tdt are the
 * lines with TDT_ or tdt_.  They cost a callback some 30 ns, of the 2 us and more that an event
 * takes.
 *
 *	callbacks-uv [REQUESTS [MS]]     prints where they wait (3, 1000)
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include <tdt/callback.h>
#include <tdt/trace.h>
#include <tdt/integrate/hooks.h>

struct request {
	struct tdt_op op;
	uv_timer_t timer;
	uv_fs_t file;
	uv_work_t work;
};

static uv_loop_t *loop;
static uv_timer_t dumper;
static int requests = 3, working;
static uint64_t nap = 1000;

static void dump(uv_timer_t *timer)
{
	(void)timer;
	tdt_dump(stdout);
	fflush(stdout);
	_exit(EXIT_SUCCESS); /* the threads that work are not waited for */
}

static void rested(uv_timer_t *timer)
{
	struct request *request = timer->data;

	tdt_op_end(&request->op);
}

static void work(uv_work_t *work)
{
	(void)work;
	usleep((useconds_t)nap * 1000);
}

static void worked(uv_work_t *work, int status)
{
	struct request *request = work->data;

	(void)status;
	TDT_RUNS(&request->op);
	TDT_AWAITS_FOR(&request->op, uv_timer_start(&request->timer, rested, nap, 0), "uv_timer",
		       TDT_WAIT_TIMER, 0);
}

static void opened(uv_fs_t *file)
{
	struct request *request = file->data;

	TDT_RUNS(&request->op);
	close((int)file->result);
	uv_fs_req_cleanup(file);
	TDT_AWAITS(&request->op, uv_queue_work(loop, &request->work, work, worked),
		   "uv_queue_work");
	if (++working >= requests - 1)
		uv_timer_start(&dumper, dump, 100, 0);
}

static void start(uv_timer_t *timer)
{
	struct request *request = timer->data;

	TDT_RUNS(&request->op);
	TDT_AWAITS(&request->op,
		   uv_fs_open(loop, &request->file, "/etc/passwd", O_RDONLY, 0, opened),
		   "uv_fs_open");
}

static void begin(struct request *request, uint64_t ms)
{
	tdt_op_begin(&request->op, TDT_TASK_ATTR(.name = "request"));
	uv_timer_init(loop, &request->timer);
	request->timer.data = request->file.data = request->work.data = request;
	TDT_AWAITS_FOR(&request->op, uv_timer_start(&request->timer, start, ms, 0), "uv_timer",
		       TDT_WAIT_TIMER, 0);
}

/* Once a turn of the loop: then no callback has to read a clock. */
static void tell_time(uv_check_t *check)
{
	tdt_worker_now(uv_now(check->loop) * 1000000);
}

int main(int argc, char **argv)
{
	struct request *request;
	uv_check_t check;

	if (argc > 1)
		requests = atoi(argv[1]);
	if (argc > 2)
		nap = (uint64_t)atoi(argv[2]);
	request = calloc((size_t)requests, sizeof *request);
	if (request == NULL)
		return EXIT_FAILURE;
	loop = uv_default_loop();
	uv_check_init(loop, &check);
	uv_check_start(&check, tell_time);
	uv_unref((uv_handle_t *)&check);
	uv_timer_init(loop, &dumper);
	for (int i = 0; i < requests; i++)
		begin(&request[i], i < requests - 1 ? 0 : nap);
	return uv_run(loop, UV_RUN_DEFAULT);
}
