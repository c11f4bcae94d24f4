// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The lines above the tasks, in the text forms of tdt ps. */

#include <inttypes.h>
#include <stdlib.h>

#include "cli/ps.h"
#include "facts/record.h"
#include "reader/history.h"
#include "tree-printer/stuck_locks.h"
#include "tree-printer/names.h"
#include "tree-printer/words.h"

static void count_state(struct tdt__string *string, size_t n, const char *what)
{
	if (n == 0)
		return;
	tdt__string_printf(string, ", %s%s", TDT__NUMBER(n), what);
}

static void count_states(struct tdt__string *string, const struct listing *listing)
{
	size_t states[TDT_TASK_UNKNOWN + 1] = { 0 }, ended = 0;

	for (size_t i = 0; i < listing->tasks->n; i++) {
		const struct tdt__seen_task *task = &listing->tasks->task[i];

		if (task->outcome != NULL)
			ended++;
		else
			states[task->member.info.state]++;
	}
	tdt__string_puts(string, TDT__COUNTED(listing->tasks->n, "task"));
	count_state(string, states[TDT_TASK_WAITING], " waiting");
	count_state(string, states[TDT_TASK_RUNNABLE], " runnable");
	count_state(string, states[TDT_TASK_RUNNING], " polling");
	count_state(string, ended, " ended");
	count_state(string, states[TDT_TASK_UNKNOWN], " unknown");
}

/* The line of text that counts what happened since the library began its work. */
static void counts_line(struct tdt__string *string, const struct listing *listing)
{
	struct tdt_counts counts;

	tdt__history_counts(listing->tasks, &counts);
	if (counts.spawned == 0)
		return;
	tdt__string_printf(string, "since the start: %s spawned",
			   TDT__COUNTED(counts.spawned, "task"));
	count_state(string, counts.ended, " ended");
	count_state(string, counts.panicked, " panicked");
	count_state(string, counts.polls, counts.polls == 1 ? " poll" : " polls");
	tdt__string_puts(string, "\n");
}

static void untraced_line(struct tdt__string *string, const struct listing *listing)
{
	size_t n = 0;

	for (size_t i = 0; i < listing->tasks->n; i++)
		n += listing->tasks->task[i].member.info.untraced != 0;
	if (n == 0)
		return;
	tdt__string_printf(string, "%s " TDT__UNTRACED "\n", TDT__COUNTED(n, "task"));
}

static void seen_misuse_line(struct tdt__string *string, const struct listing *listing)
{
	struct tdt__seen_misuse seen;

	if (tdt__history_misuse(listing->tasks, &seen))
		tdt__misuse_line(string, &seen.misuse, listing->print);
}

static int seen_futurelock_lines(struct tdt__string *string, const struct listing *listing)
{
	struct tdt__stuck_locks locks;
	int error = tdt__stuck_locks_collect(&locks, &listing->found);
	struct tdt__names *names = locks.n != 0 ? tdt__names_new(&listing->found) : NULL;

	for (size_t i = 0; i < locks.n; i++) {
		tdt__stuck_lock_line(string, &locks.lock[i], names, listing->print);
		tdt__string_puts(string, "\n");
	}
	tdt__names_free(names);
	free(locks.lock);
	return error;
}

uint32_t ps_pid(const struct listing *listing)
{
	const struct tdt__target *target = listing->tasks->target;

	return target != NULL && target->core == NULL ? (uint32_t)target->pid
						      : listing->tasks->registry.pid;
}

int ps_summary(struct tdt__out *out, const struct listing *listing)
{
	const struct tdt_registry *registry = &listing->tasks->registry;
	struct tdt__string string = { 0 };
	int error, written;

	if (listing->last != NULL)
		last_title(&string, listing->last, listing->print);
	else
		tdt__string_printf(&string, "process %" PRIu32, ps_pid(listing));
	tdt__string_puts(&string, ", libtdt ");
	tdt__string_escape(&string, registry->library, false, '\0');
	if (listing->several)
		tdt__string_printf(&string, " (the copy at 0x%" PRIx64 ")", registry->self);
	tdt__string_puts(&string, ": ");
	count_states(&string, listing);
	tdt__string_puts(&string, "\n");
	if (listing->last != NULL) {
		last_missing(&string, listing->last);
	} else {
		counts_line(&string, listing);
		seen_misuse_line(&string, listing);
	}
	untraced_line(&string, listing);
	if (tdt__tasks_at_least(listing->tasks))
		tdt__string_puts(&string, TDT__AT_LEAST);
	error = seen_futurelock_lines(&string, listing);
	for (size_t i = 0; i < listing->tasks->n; i++)
		if (listing->tasks->task[i].member.info.busy_polls != 0) {
			tdt__busy_line(&string, &listing->tasks->task[i].member.info,
				       listing->print);
			tdt__string_puts(&string, "\n");
		}
	for (size_t i = 0; i < listing->found.n_lost_wakeups; i++)
		tdt__lost_line(&string, listing->found.lost_wakeups[i]->tasks[0], 0, NULL,
			       listing->print);
	for (size_t i = 0; i < listing->found.n_cycles; i++) {
		tdt__ring_line(&string, listing->found.cycles[i], SIZE_MAX, listing->print);
		tdt__string_puts(&string, "\n");
	}
	tdt__string_puts(&string, "\n");
	written = tdt__out_take(out, &string);
	return error != 0 ? error : written;
}
