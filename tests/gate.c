// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See gate.h. */

#include <config.h>

#include "gate.h"

#include <check.h>
#include <unistd.h>

#include "must.h"
#include "stuck_task.h"

struct gate gate;

void gate_close(bool spin)
{
	gate.spinning = spin;
	atomic_store(&gate.is_open, false);
	atomic_store(&gate.entered, 0);
	ck_assert_int_eq(pipe(gate.pipe), 0);
}

void gate_open(void)
{
	atomic_store(&gate.is_open, true);
	MUST(write(gate.pipe[1], "", 1) == 1);
}

__attribute__((noinline)) void gate_stay(void)
{
	char byte;

	atomic_fetch_add(&gate.entered, 1);
	if (gate.spinning)
		while (!atomic_load(&gate.is_open))
			;
	else
		MUST(read(gate.pipe[0], &byte, 1) == 1);
	__asm__ volatile("" : : "r"(&byte) : "memory");
}

struct tdt_trace *gate_ask(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state, bool spin,
			   pthread_attr_t *attr)
{
	struct stuck_task task = { .attr = attr };
	struct tdt_trace *trace;

	gate_close(spin);
	stuck_task_start(&task, poll, state);
	while (atomic_load(&gate.entered) == 0)
		usleep(100);
	stuck_task_settle(&task, spin);
	trace = stuck_task_ask(&task);
	tdt_trace_root(trace);
	gate_open();
	stuck_task_end(&task);
	close(gate.pipe[0]);
	close(gate.pipe[1]);
	return trace;
}

const char *gate_seen(bool spin, const char *functions)
{
	if (SIGNALS_ARE_LATE && spin) {
		printf("# not looked for: %s: ThreadSanitizer delays signals\n", functions);
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
