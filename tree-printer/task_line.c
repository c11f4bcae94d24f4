// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lines about a task, which stand above its tree in the text form: its own line, and what it
 * waits for.
 */

#include "words.h"

#include <inttypes.h>

#include "terminal.h"
#include "tree/trace.h"

static void state(struct tdt__string *string, const struct tdt_task_info *info, bool deadlock)
{
	tdt__task_state(string, info, deadlock);
	tdt__task_time(string, info);
	if (info->moved != 0)
		tdt__string_puts(string, ", and moved when it was asked");
	tdt__task_thread(string, info);
	tdt__task_syscall(string, info->syscall);
	if (info->state == TDT_TASK_UNKNOWN && info->polls != 0)
		tdt__string_printf(string, ", last polled %s before the end",
				   TDT__DURATION(info->polled_ns));
}

/*
 * If the stack of a running poll was read, the only leaf is the place where the poll runs.  That is
 * no news, so one leaf is not counted then.
 */
static void task_leaves(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->leaves == 0 && info->thread == 0 && info->state == TDT_TASK_WAITING &&
	    info->leaves_elsewhere == 0 && info->leaves_lost == 0) {
		tdt__no_leaves(string, info);
	} else if (info->thread == 0 || info->leaves > 1) {
		tdt__string_puts(string, ", ");
		if (info->leaves != 0)
			tdt__count_leaves(string, info->leaves);
		else
			tdt__string_puts(string, "no leaves");
	}
	if (info->leaves_elsewhere != 0)
		tdt__string_printf(string, ", %" PRIu32 " more on other threads",
				   info->leaves_elsewhere);
	if (info->leaves_lost != 0)
		tdt__string_printf(string, ", %" PRIu32 " more lost for want of memory",
				   info->leaves_lost);
}

/*
 * When the task was last woken, and by which task; or that it was aborted.  The line of a runnable
 * task has the time already.  For a waiting task, a wake-up by no known task that ended the wait
 * before this one is no news.  A wake-up during this wait is news: the task was polled in vain.
 */
static void woken(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->aborted != 0) {
		tdt__string_puts(string, ", ");
		tdt__aborted(string, info->woken_by);
		return;
	}
	if (info->state == TDT_TASK_RUNNABLE && info->woken_by != 0)
		tdt__string_printf(string, ", woken by task %" PRIu64, info->woken_by);
	if (info->state != TDT_TASK_WAITING || info->woken_ns == 0 ||
	    (info->woken_by == 0 && info->woken_ns >= info->state_ns / 2))
		return;
	tdt__string_printf(string, ", last woken %s ago", TDT__DURATION(info->woken_ns));
	if (info->woken_by != 0)
		tdt__string_printf(string, " by task %" PRIu64, info->woken_by);
}

static void task_line(struct tdt__string *string, const struct tdt_task_info *info,
		      struct tdt__task_kind kind)
{
	tdt__string_puts(string, "task ");
	tdt__color(string, TDT__BOLD);
	tdt__task_name(string, info->id, info->name);
	tdt__color(string, TDT__PLAIN);
	state(string, info, kind.deadlock);
	if (kind.answer != TDT_ANSWER_NONE)
		task_leaves(string, info);
	tdt__task_answer(string, info, kind);
	tdt__tree_age(string, (struct tdt__extent){ info->age_ns, info->age_ns },
		      (struct tdt__extent){ info->polls_since, info->polls_since }, kind,
		      tdt__is_seen(info, kind));
	woken(string, info);
	tdt__task_place(string, info);
	tdt__task_parent(string, info);
	tdt__task_context(string, info, true);
	tdt__string_puts(string, "\n");
}

void tdt__headline(struct tdt__string *string, const char *what, uint64_t id, const char *name)
{
	tdt__colored(string, TDT__RED, what);
	tdt__string_puts(string, ": task ");
	tdt__task_name(string, id, name);
}

void tdt__busy_line(struct tdt__string *string, const struct tdt_task_info *info)
{
	tdt__headline(string, "busy loop", info->id, info->name);
	tdt__string_printf(string, "%s%s times in %s\n",
			   info->woken_by == info->id ? " woke itself " : " was polled ",
			   TDT__NUMBER(info->busy_polls), TDT__DURATION(info->busy_ns));
}

void tdt__lost_line(struct tdt__string *string, const struct tdt_task_info *info, uint64_t took_ns,
		    const struct tdt__names *names)
{
	tdt__headline(string, "lost wake-up", info->id, info->name);
	tdt__string_puts(string, " waited");
	tdt__task_time(string, info);
	for (uint32_t i = 0; i < info->n_waits; i++) {
		tdt__string_puts(string, " ");
		tdt__wait_for(string, info->waits[i], info->id,
			      tdt__names_owner(names, info->waits[i]));
	}
	tdt__string_puts(string, ", and went on when it was polled for ");
	if (info->age_ns <= took_ns)
		tdt__string_puts(string, "this request");
	else
		tdt__string_printf(string, "a request %s ago", TDT__DURATION(info->age_ns));
	tdt__string_puts(string, "; nobody had woken it");
	if (info->lost_times > 1)
		tdt__string_printf(string, ": certain, seen %" PRIu32 " times at this place",
				   info->lost_times);
	tdt__string_puts(string, "\n");
}

void tdt__unsure_line(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->leaves_unsure != 0)
		tdt__string_printf(string,
				   "   some of these %" PRIu32
				   " may be over: the task may have gone on in the same poll\n",
				   info->leaves_unsure);
}

/* Equal waits of several leaves, which are printed once. */
struct joined_wait {
	struct tdt_wait wait;
	uint64_t leaves;
};

/*
 * Join equal waits, for the first TDT__WAITS_SHOWN different ones.  Returns how many different ones
 * there are; `*others` becomes the number of leaves that wait for something else.
 */
static size_t join_waits(struct joined_wait *joined, const struct tdt_task_info *info,
			 uint64_t *others)
{
	size_t n = 0, at;

	*others = 0;
	for (uint32_t i = 0; i < info->n_waits && info->waits != NULL; i++) {
		if (!tdt__wait_is_news(info->waits[i]))
			continue;
		for (at = 0; at < n && !tdt__same_wait(&joined[at].wait, info->waits[i]);)
			at++;
		if (at == n && n < TDT__WAITS_SHOWN)
			joined[n++] = (struct joined_wait){
				.wait = *info->waits[i],
			};
		if (at < n)
			joined[at].leaves++;
		else
			(*others)++;
	}
	return n;
}

static void wait_lines(struct tdt__string *string, const struct tdt_task_info *info,
		       const struct tdt__names *names)
{
	struct joined_wait joined[TDT__WAITS_SHOWN];
	uint64_t others;
	size_t n = join_waits(joined, info, &others);

	for (size_t i = 0; i < n; i++) {
		tdt__string_puts(string, info->state == TDT_TASK_UNKNOWN ? "   waited "
									 : "   waits ");
		tdt__wait_for(string, &joined[i].wait, info->id,
			      tdt__names_owner(names, &joined[i].wait));
		if (joined[i].leaves > 1)
			tdt__leaves_aside(string, joined[i].leaves);
		tdt__string_puts(string, "\n");
	}
	if (others != 0) {
		tdt__string_puts(string, "   and for others");
		tdt__leaves_aside(string, others);
		tdt__string_puts(string, "\n");
	}
}

void tdt__task_lines(struct tdt__string *string, const struct tdt_task_info *info,
		     struct tdt__task_kind kind, const struct tdt__names *names)
{
	task_line(string, info, kind);
	tdt__unsure_line(string, info);
	wait_lines(string, info, names);
}
