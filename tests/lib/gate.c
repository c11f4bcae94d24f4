// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See gate.h. */

#include <config.h>

#include "lib/gate.h"

#include <check.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/running.h"
#include "lib/must.h"
#include "lib/stuck_task.h"

#define MINUTE UINT64_C(60000000000)

struct gate gate;

void gate_close(bool spin)
{
	gate.spinning = spin;
	atomic_store(&gate.is_open, false);
	atomic_store(&gate.entered, 0);
	ck_assert_int_eq(pipe(gate.pipe), 0);
}

void gate_await(void)
{
	while (atomic_load(&gate.entered) == 0)
		usleep(100);
}

void gate_open(void)
{
	atomic_store(&gate.is_open, true);
	MUST(write(gate.pipe[1], "", 1) == 1);
}

void gate_hold(pthread_t *thread, bool spin, void *(*run)(void *), void *arg)
{
	struct stuck_task there = { 0 };

	gate_close(spin);
	MUST(pthread_create(thread, NULL, run, arg) == 0);
	gate_await();
	atomic_store(&there.tid, atomic_load(&gate.tid));
	if (stuck_impossible() == NULL)
		stuck_task_settle(&there, spin);
}

void gate_release(pthread_t thread)
{
	gate_open();
	MUST(pthread_join(thread, NULL) == 0);
}

__attribute__((noinline)) void gate_stay(void)
{
	char byte;

	atomic_store(&gate.tid, (unsigned)gettid());
	atomic_fetch_add(&gate.entered, 1);
	if (gate.spinning)
		while (!atomic_load(&gate.is_open))
			;
	else
		MUST(read(gate.pipe[0], &byte, 1) == 1);
	__asm__ volatile("" : : "r"(&byte) : "memory");
}

struct tdt_trace *gate_ask(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state,
			   bool spin, pthread_attr_t *attr)
{
	struct stuck_task task = { .attr = attr };
	struct tdt_trace *trace;

	gate_close(spin);
	stuck_task_start(&task, poll, state);
	gate_await();
	stuck_task_settle(&task, spin);
	trace = stuck_task_ask(&task);
	tdt_trace_root(trace);
	gate_open();
	stuck_task_end(&task);
	close(gate.pipe[0]);
	close(gate.pipe[1]);
	return trace;
}

int gate_error(struct tdt_handle *handle)
{
	struct tdt__capture *capture;
	int error;

	for (;; usleep(1000)) { /* the request before may still have the signal blocked */
		error = 0;
		capture = tdt__running(handle, 1, TDT_MAX_FRAMES, tdt__clock() + MINUTE, &error);
		tdt__capture_unref(capture);
		if (error != -EAGAIN && error != -EPERM)
			return error;
	}
}

int gate_ask_in_vain(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state,
		     bool spin)
{
	struct stuck_task task = { 0 };
	int error;

	gate_close(spin);
	stuck_task_start(&task, poll, state);
	gate_await();
	stuck_task_settle(&task, spin);
	error = gate_error(task.traced.handle);
	gate_open();
	stuck_task_end(&task);
	close(gate.pipe[0]);
	close(gate.pipe[1]);
	return error;
}

const char *gate_seen(bool spin, const char *functions)
{
	if (SIGNALS_ARE_LATE && spin) {
		printf("# not tried: ThreadSanitizer delays signals: whether %s is there\n",
		       functions);
		return "";
	}
	return SANITIZED && !spin ? "read" : functions;
}

enum tdt_cut gate_cut(const struct tdt_trace *trace)
{
	enum tdt_cut cut;

	tdt_trace_stack(trace, 0, NULL, 0, &cut);
	return cut;
}
