// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Callbacks of libuv: each request sleeps, opens a file, has a thread work, and sleeps again.  What
 * was added for tdt are the lines with TDT_ or tdt_.  They cost a
 * callback some 30 ns, of the 2 us and more that an event takes.
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
	int rounds;
};

static uv_loop_t *loop;
static uint64_t nap = 1000;

static void rested(uv_timer_t *timer)
{
	struct request *request = timer->data;

	TDT_RUNS(&request->op);
	if (request->rounds++ < 3)
		TDT_AWAITS_FOR(&request->op, uv_timer_start(timer, rested, nap, 0), "uv_timer",
			       TDT_WAIT_TIMER, 0);
	else
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

static void dump(uv_timer_t *timer)
{
	(void)timer;
	tdt_dump(stdout);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3;
	struct request *requests = calloc((size_t)n, sizeof *requests);
	uv_timer_t dumper;
	uv_check_t check;

	if (requests == NULL)
		return EXIT_FAILURE;
	if (argc > 2)
		nap = (uint64_t)atoi(argv[2]);
	loop = uv_default_loop();
	uv_check_init(loop, &check);
	uv_check_start(&check, tell_time);
	uv_unref((uv_handle_t *)&check);
	for (int i = 0; i < n; i++)
		begin(&requests[i], (uint64_t)i * nap / 2);
	uv_timer_init(loop, &dumper);
	uv_timer_start(&dumper, dump, nap * 3 / 4, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	free(requests);
	return EXIT_SUCCESS;
}
