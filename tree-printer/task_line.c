// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What the text form says of a task above its tree: its line, and what it waits for.
 *
 *	task 7 "bar" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88 by task 3
 *	   some of these 2 may be over: the task may have gone on in the same poll
 *	   waits for a mutex (0x7f1208) held by task 9
 */

#include <config.h>

#include "printer.h"

#include <inttypes.h>

#include "names.h"

void tdt__color(struct tdt__string *string, const char *sequence, const struct tdt_print_options *options)
{
	if (options->color == TDT_PRINT_YES)
		tdt__string_puts(string, sequence);
}

void tdt__count_leaves(struct tdt__string *string, uint64_t n)
{
	tdt__string_printf(string, "%" PRIu64 " lea%s", n, n == 1 ? "f" : "ves");
}

/* Four digits and a unit.  By integers: a locale may have another decimal point. */
void tdt__duration(struct tdt__string *string, uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	uint64_t unit = 1, whole, rest;
	const char *point = ".";
	int i = 0;

	while (i < 3 && ns / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	whole = ns / unit;
	rest = ns % unit;
	tdt__string_printf(string, " %" PRIu64, whole);
	for (uint64_t limit = 1000; unit > 1 && whole < limit; limit /= 10) {
		unit /= 10;
		tdt__string_printf(string, "%s%u", point, (unsigned int)(rest / unit));
		rest %= unit;
		point = "";
	}
	tdt__string_printf(string, " %s", units[i]);
}

void tdt__task_name(struct tdt__string *string, uint64_t id, const char *name, const struct tdt_print_options *options)
{
	tdt__string_printf(string, "%" PRIu64, id);
	if (name == NULL)
		return;
	tdt__string_puts(string, " \"");
	tdt__string_escape(string, name, options->utf8 == TDT_PRINT_YES, '"');
	tdt__string_puts(string, "\"");
}

void tdt__task_state(struct tdt__string *string, enum tdt_task_state state, const struct tdt_print_options *options)
{
	static const struct {
		const char *word, *color;
	} states[] = { [TDT_TASK_WAITING] = { "pending", TDT__YELLOW },
		       [TDT_TASK_RUNNING] = { "running", TDT__GREEN },
		       [TDT_TASK_READY] = { "ready", TDT__CYAN },
		       [TDT_TASK_PANICKED] = { "panicked", TDT__RED } };

	tdt__string_puts(string, " ");
	tdt__color(string, states[state].color, options);
	tdt__string_puts(string, states[state].word);
	tdt__color(string, TDT__PLAIN, options);
}

static void state(struct tdt__string *string, const struct tdt_trace_info *info,
		  const struct tdt_print_options *options)
{
	tdt__task_state(string, info->state, options);
	if (info->state_ns != 0 && info->state == TDT_TASK_RUNNING)
		tdt__string_puts(string, " for");
	if (info->state_ns != 0)
		tdt__duration(string, info->state_ns);
	if (info->thread != 0)
		tdt__string_printf(string, " on thread %" PRIu32, info->thread);
	tdt__task_syscall(string, info->syscall, options);
}

void tdt__task_syscall(struct tdt__string *string, const char *syscall, const struct tdt_print_options *options)
{
	if (syscall == NULL)
		return;
	tdt__string_puts(string, ", in ");
	tdt__string_escape(string, syscall, options->utf8 == TDT_PRINT_YES, '\0');
	tdt__string_puts(string, "()");
}

/* Of a poll whose stack was read the one leaf is where it runs, and no news. */
static void task_leaves(struct tdt__string *string, const struct tdt_trace_info *info)
{
	if (info->thread == 0 || info->leaves > 1) {
		tdt__string_puts(string, ", ");
		if (info->leaves != 0)
			tdt__count_leaves(string, info->leaves);
		else if (info->state == TDT_TASK_WAITING && info->leaves_elsewhere == 0 && info->leaves_lost == 0)
			tdt__string_puts(string, "no leaves (the poll cloned no waker)");
		else
			tdt__string_puts(string, "no leaves");
	}
	if (info->leaves_elsewhere != 0)
		tdt__string_printf(string, ", %" PRIu32 " more on other threads", info->leaves_elsewhere);
	if (info->leaves_lost != 0)
		tdt__string_printf(string, ", %" PRIu32 " more lost for want of memory", info->leaves_lost);
}

void tdt__task_answer(struct tdt__string *string, const struct tdt_trace_info *info, enum tdt_answer answer)
{
	if (answer == TDT_ANSWER_NONE && info->state == TDT_TASK_RUNNING)
		tdt__string_puts(string, ", no stack could be read");
	else if (answer == TDT_ANSWER_NONE || answer == TDT_ANSWER_LAST)
		tdt__string_puts(string, ", did not answer");
}

static void age(struct tdt__string *string, const struct tdt_trace_info *info)
{
	if (info->age_ns == 0 && info->polls_since == 0)
		return;
	tdt__string_puts(string, ", as seen");
	if (info->age_ns != 0)
		tdt__duration(string, info->age_ns);
	if (info->polls_since != 0)
		tdt__string_printf(string, "%s %" PRIu64 " poll%s", info->age_ns != 0 ? " and" : "", info->polls_since,
				   info->polls_since == 1 ? "" : "s");
	tdt__string_puts(string, " ago");
}

/*
 * A wake-up by nobody in particular, which ended the wait before this one, is no news.  One that came while it has been
 * waiting is: its runtime has not polled it since, or what it waits for was not there.
 */
static void woken(struct tdt__string *string, const struct tdt_trace_info *info)
{
	if (info->state != TDT_TASK_WAITING || info->woken_ns == 0 ||
	    (info->woken_by == 0 && info->woken_ns >= info->state_ns / 2))
		return;
	tdt__string_puts(string, ", last woken");
	tdt__duration(string, info->woken_ns);
	tdt__string_puts(string, " ago");
	if (info->woken_by != 0)
		tdt__string_printf(string, " by task %" PRIu64, info->woken_by);
}

void tdt__task_place(struct tdt__string *string, const struct tdt_trace_info *info,
		     const struct tdt_print_options *options)
{
	if (info->file == NULL)
		return;
	tdt__string_puts(string, ", spawned at ");
	tdt__string_escape(string, info->file, options->utf8 == TDT_PRINT_YES, '\0');
	if (info->line != 0)
		tdt__string_printf(string, ":%" PRIu32, info->line);
	if (info->line != 0 && info->column != 0)
		tdt__string_printf(string, ":%" PRIu32, info->column);
}

void tdt__task_parent(struct tdt__string *string, const struct tdt_trace_info *info)
{
	if (info->parent != 0)
		tdt__string_printf(string, "%s by task %" PRIu64, info->file == NULL ? ", spawned" : "", info->parent);
}

void tdt__task_line(struct tdt__string *string, const struct tdt_trace_info *info, enum tdt_answer answer,
		    const struct tdt_print_options *options)
{
	tdt__string_puts(string, "task ");
	tdt__color(string, TDT__BOLD, options);
	tdt__task_name(string, info->id, info->name, options);
	tdt__color(string, TDT__PLAIN, options);
	state(string, info, options);
	if (answer != TDT_ANSWER_NONE)
		task_leaves(string, info);
	tdt__task_answer(string, info, answer);
	age(string, info);
	woken(string, info);
	tdt__task_place(string, info, options);
	tdt__task_parent(string, info);
	tdt__string_puts(string, "\n");
}

void tdt__unsure_line(struct tdt__string *string, const struct tdt_trace_info *info)
{
	if (info->leaves_unsure != 0)
		tdt__string_printf(string,
				   "   some of these %" PRIu32
				   " may be over: the task may have gone on in the same poll\n",
				   info->leaves_unsure);
}

/* ---- What it waits for ---- */

bool tdt__wait_tells(const struct tdt_wait *wait)
{
	return wait->owner != 0 || (wait->object != 0 && (wait->kind == TDT_WAIT_MUTEX || wait->kind == TDT_WAIT_CHANNEL));
}

static void wait_object(struct tdt__string *string, const char *what, const struct tdt_wait *wait)
{
	tdt__string_printf(string, "for %s", what);
	if (wait->object != 0)
		tdt__string_printf(string, " (0x%" PRIx64 ")", wait->object);
}

static void wait_owner(struct tdt__string *string, const char *how, const struct tdt_wait *wait, uint64_t self,
		       const struct tdt__names *names, const struct tdt_print_options *options)
{
	if (wait->owner == 0)
		return;
	tdt__string_puts(string, how);
	if (wait->owner == self) {
		tdt__string_puts(string, "itself");
	} else {
		tdt__string_puts(string, "task ");
		tdt__task_name(string, wait->owner, tdt__names_find(names, wait->owner), options);
	}
}

void tdt__wait_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		   const struct tdt__names *names, const struct tdt_print_options *options)
{
	const char *how = " of ";

	switch (wait->kind) {
	case TDT_WAIT_TASK:
		how = "for ";
		break;
	case TDT_WAIT_MUTEX:
		wait_object(string, "a mutex", wait);
		how = " held by ";
		break;
	case TDT_WAIT_CHANNEL:
		wait_object(string, "a channel", wait);
		break;
	case TDT_WAIT_TIMER:
		tdt__string_puts(string, "for a timer");
		break;
	case TDT_WAIT_IO:
		if (wait->object != 0)
			tdt__string_printf(string, "for descriptor %" PRIu64, wait->object);
		else
			tdt__string_puts(string, "for a descriptor");
		break;
	default:
		wait_object(string, "something", wait);
	}
	wait_owner(string, how, wait, self, names, options);
}

/* Equal waits of several leaves, which join: they are told once. */
struct joined {
	struct tdt_wait wait;
	uint64_t leaves;
};

static bool same_wait(const struct tdt_wait *a, const struct tdt_wait *b)
{
	return a->kind == b->kind && a->object == b->object && a->owner == b->owner;
}

/* Join the first different ones.  Returns how many these are; `others` leaves wait for something else. */
static size_t join_waits(struct joined *joined, const struct tdt_trace_info *info, uint64_t *others)
{
	size_t n = 0, at;

	*others = 0;
	for (uint32_t i = 0; i < info->n_waits && info->waits != NULL; i++) {
		if (!tdt__wait_tells(&info->waits[i]))
			continue;
		for (at = 0; at < n && !same_wait(&joined[at].wait, &info->waits[i]);)
			at++;
		if (at == n && n < TDT__WAITS_SHOWN)
			joined[n++] = (struct joined){ .wait = info->waits[i] };
		if (at < n)
			joined[at].leaves++;
		else
			(*others)++;
	}
	return n;
}

static void several_leaves(struct tdt__string *string, uint64_t n)
{
	tdt__string_puts(string, " (");
	tdt__count_leaves(string, n);
	tdt__string_puts(string, ")");
}

void tdt__wait_lines(struct tdt__string *string, const struct tdt_trace_info *info, const struct tdt__names *names,
		     const struct tdt_print_options *options)
{
	struct joined joined[TDT__WAITS_SHOWN];
	uint64_t others;
	size_t n = join_waits(joined, info, &others);

	for (size_t i = 0; i < n; i++) {
		tdt__string_puts(string, "   waits ");
		tdt__wait_for(string, &joined[i].wait, info->id, names, options);
		if (joined[i].leaves > 1)
			several_leaves(string, joined[i].leaves);
		tdt__string_puts(string, "\n");
	}
	if (others != 0) {
		tdt__string_puts(string, "   and for others");
		several_leaves(string, others);
		tdt__string_puts(string, "\n");
	}
}
