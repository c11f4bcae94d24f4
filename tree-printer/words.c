// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The words of the text forms: counts, durations, what is said of a task, what it waits for. */

#include "words.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "frame.h"
#include "terminal.h"

/* The rule for the sizes of callers' structs; and the leaves of a trace whose names are known. */
#include "base/options.h"
#include "facts/traceparent.h"
#include "facts/wait.h"
#include "tree/trace.h"

/* ---- Counts and durations ---- */

const char *tdt__count_text(char text[TDT__WORDS_MAX], uint64_t n, const char *noun)
{
	const char *plural = noun[0] != '\0' && n != 1 ? "s" : "";
	uint64_t unit = 1, left = n;
	int at;

	while (n / unit >= 1000)
		unit *= 1000;
	at = sprintf(text, "%" PRIu64, n / unit);
	while (unit > 1) {
		left %= unit;
		unit /= 1000;
		at += sprintf(text + at, ",%03" PRIu64, left / unit);
	}
	snprintf(text + at, TDT__WORDS_MAX - (size_t)at, "%s%s%s", noun[0] != '\0' ? " " : "", noun,
		 plural);
	return text;
}

void tdt__count_leaves(struct tdt__string *string, uint64_t n)
{
	tdt__string_printf(string, "%" PRIu64 " lea%s", n, n == 1 ? "f" : "ves");
}

void tdt__leaves_aside(struct tdt__string *string, uint64_t n)
{
	tdt__string_puts(string, " (");
	tdt__count_leaves(string, n);
	tdt__string_puts(string, ")");
}

/*
 * Four digits and a unit.  Printed as integers, because the decimal point of a floating-point
 * number depends on the locale.
 */
const char *tdt__duration_text(char text[TDT__WORDS_MAX], uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	static const unsigned tens[] = { 1, 10, 100, 1000 };
	uint64_t unit = 1, whole;
	int i = 0, decimals;

	while (i < 3 && ns / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	whole = ns / unit;
	decimals = unit == 1 || whole >= 1000 ? 0 : whole >= 100 ? 1 : whole >= 10 ? 2 : 3;
	if (decimals == 0)
		sprintf(text, "%" PRIu64 " %s", whole, units[i]);
	else
		sprintf(text, "%" PRIu64 ".%0*" PRIu64 " %s", whole, decimals,
			ns % unit * tens[decimals] / unit, units[i]);
	return text;
}

void tdt__duration_range(struct tdt__string *string, struct tdt__extent range)
{
	const char *low = TDT__DURATION(range.low), *high = TDT__DURATION(range.high);

	if (range.low == 0 && range.high != 0)
		tdt__string_printf(string, " up to %s", high);
	else if (strcmp(low, high) == 0)
		tdt__string_printf(string, " %s", low);
	else
		tdt__string_printf(string, " %s to %s", low, high);
}

const char *tdt__wall_clock_text(char text[TDT__WORDS_MAX], uint64_t real, bool dated)
{
	time_t seconds = (time_t)(real / 1000000000);
	struct tm tm;
	size_t n = 0;

	if (localtime_r(&seconds, &tm) != NULL)
		n = strftime(text, TDT__WORDS_MAX, dated ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	snprintf(text + n, TDT__WORDS_MAX - n, "%s.%03u", n == 0 ? "?" : "",
		 (unsigned)(real / 1000000 % 1000));
	return text;
}

/* ---- A task ---- */

struct tdt_task_info tdt__dump_task(const struct tdt_snapshot_group *group, size_t i)
{
	struct tdt_task_info info;

	tdt__options_read(&info, sizeof(info), group->tasks[i]);
	if (info.size == 0) /* the caller's struct is larger: take the fields that we know */
		memcpy(&info, group->tasks[i], sizeof(info));
	if (group->trace != NULL)
		tdt__trace_count(group->trace, &info);
	return info;
}

void tdt__task_name(struct tdt__string *string, uint64_t id, const char *name)
{
	tdt__string_printf(string, "%" PRIu64, id);
	if (name == NULL)
		return;
	tdt__string_puts(string, " ");
	tdt__string_quoted(string, name);
}

const char *tdt__thread_word(bool polls, bool parked, bool worker)
{
	return polls ? "polling" : parked ? "parked" : worker ? "between polls" : "no worker";
}

void tdt__misuse_line(struct tdt__string *string, const struct tdt_misuse *misuse)
{
	tdt__colored(string, TDT__RED, "misuse");
	tdt__string_puts(string, ": ");
	tdt__string_text(string, misuse->reason);
	if (misuse->task != 0) {
		tdt__string_puts(string, " (task ");
		tdt__task_name(string, misuse->task, misuse->name[0] != '\0' ? misuse->name : NULL);
		tdt__string_puts(string, ")");
	}
	tdt__string_puts(string, "\n");
}

/* A poll, or the time until a woken task is polled, is long from here on. */
#define LONG UINT64_C(10000000)

const char *tdt__task_color(const struct tdt_task_info *info, bool deadlock)
{
	bool is_long = info->state_ns >= LONG;

	if (deadlock || info->state == TDT_TASK_PANICKED ||
	    (info->state == TDT_TASK_RUNNING && is_long && info->blocking == 0))
		return TDT__RED;
	return info->state == TDT_TASK_RUNNABLE && is_long ? TDT__YELLOW : NULL;
}

void tdt__task_state(struct tdt__string *string, const struct tdt_task_info *info, bool deadlock)
{
	static const char *const words[] = { [TDT_TASK_WAITING] = "pending",
					     [TDT_TASK_RUNNING] = "running",
					     [TDT_TASK_READY] = "ready",
					     [TDT_TASK_PANICKED] = "panicked",
					     [TDT_TASK_RUNNABLE] = "runnable",
					     [TDT_TASK_UNKNOWN] = "unknown" };
	const char *color = tdt__task_color(info, deadlock);

	tdt__string_puts(string, " ");
	tdt__colored(string, color, info->moved != 0 ? "waited" : words[info->state]);
}

void tdt__ring_kind(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle)
{
	if (cycle->deadlock)
		tdt__colored(string, TDT__RED, "deadlock");
	else
		tdt__string_puts(string,
				 cycle->unproven ? "unproven ring of waits" : "ring of waits");
}

void tdt__ring_line(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle, size_t most)
{
	tdt__ring_kind(string, cycle);
	for (size_t i = 0; i <= cycle->n && string->n < most; i++) {
		const struct tdt_task_info *task = cycle->tasks[i % cycle->n];

		tdt__string_puts(string, i == 0   ? ": task "
					 : i == 1 ? " waits for task "
						  : ", which waits for task ");
		tdt__task_name(string, task->id, task->name);
	}
	tdt__string_puts(string, "\n");
}

const char *tdt__for(enum tdt_task_state state)
{
	return state == TDT_TASK_RUNNING || state == TDT_TASK_RUNNABLE ? " for" : "";
}

void tdt__task_time(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->state_ns != 0) {
		tdt__string_printf(string, "%s %s", tdt__for(info->state),
				   TDT__DURATION(info->state_ns));
		if (info->state == TDT_TASK_PANICKED)
			tdt__string_puts(string, " ago");
	} else if (info->state == TDT_TASK_WAITING && info->polls != 0) {
		/*
		 * The clock of polls is not finer than that, unless the runtime reports the time.
		 */
		tdt__string_puts(string, " less than 10 ms");
	}
}

void tdt__task_thread(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->thread != 0)
		tdt__string_printf(string, " on %sthread %" PRIu32,
				   info->blocking != 0 ? "blocking " : "", info->thread);
}

void tdt__task_syscall(struct tdt__string *string, const char *syscall)
{
	if (syscall == NULL)
		return;
	tdt__string_puts(string, ", in ");
	tdt__string_text(string, syscall);
	tdt__string_puts(string, "()");
}

void tdt__aborted(struct tdt__string *string, uint64_t by)
{
	tdt__string_puts(string, "aborted");
	if (by != 0)
		tdt__string_printf(string, " by task %" PRIu64, by);
}

void tdt__no_leaves(struct tdt__string *string, const struct tdt_task_info *info)
{
	/* Only of a fiber the stack is read before it has run. */
	tdt__string_puts(string, info->polls == 0 ? ", has not run yet"
						  : ", no leaves (the poll cloned no waker)");
}

/* Not every task had a request made to it, so each line says how its tree was had. */
static void outside_answer(struct tdt__string *string, const struct tdt_task_info *info,
			   enum tdt_answer answer)
{
	if (answer == TDT_ANSWER_FRESH &&
	    (info->state == TDT_TASK_WAITING || info->state == TDT_TASK_RUNNABLE))
		tdt__string_puts(string, info->asked == 0   ? ", read just now"
					 : info->moved == 0 ? ", asked just now"
							    : "");
	if ((answer == TDT_ANSWER_LAST || answer == TDT_ANSWER_NONE) && info->asked != 0)
		tdt__string_puts(string, ", did not answer");
	if (answer == TDT_ANSWER_NONE)
		tdt__string_puts(string, ", record only");
}

static void leaves_known(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->leaves == 0 || info->state == TDT_TASK_RUNNING || info->polls_since != 0 ||
	    info->leaves_elsewhere != 0 || info->leaves_lost != 0)
		return; /* there are other words for that */
	if (info->leaves_known == TDT_LEAVES_PART)
		tdt__string_puts(string, ", a part of all leaves");
	if (info->leaves_known == TDT_LEAVES_UNKNOWN)
		tdt__string_puts(string, ", perhaps not all leaves");
}

void tdt__task_answer(struct tdt__string *string, const struct tdt_task_info *info,
		      struct tdt__task_kind kind)
{
	enum tdt_answer answer = kind.answer;

	leaves_known(string, info);
	if (kind.recorded && answer == TDT_ANSWER_NONE)
		tdt__string_puts(string, ", no stack was recorded");
	else if (answer == TDT_ANSWER_NONE && info->unknown_stack != 0)
		tdt__string_puts(string, ", on a stack that is not known as its own");
	else if (answer == TDT_ANSWER_NONE && info->state == TDT_TASK_RUNNING)
		tdt__string_puts(string, ", no stack could be read");
	else if (kind.outside)
		outside_answer(string, info, answer);
	else if (answer == TDT_ANSWER_NONE ||
		 (answer == TDT_ANSWER_LAST && !tdt__is_seen(info, kind)))
		tdt__string_puts(string, ", did not answer");
}

static void poll_range(struct tdt__string *string, struct tdt__extent polls)
{
	if (polls.low != polls.high)
		tdt__string_printf(string, "%s to ", TDT__NUMBER(polls.low));
	tdt__string_puts(string, TDT__COUNTED(polls.high, "poll"));
}

void tdt__tree_age(struct tdt__string *string, struct tdt__extent age_ns,
		   struct tdt__extent polls_since, struct tdt__task_kind kind, bool seen)
{
	bool aged = age_ns.high != 0, polled = polls_since.high != 0;
	bool recorded = kind.recorded && kind.answer != TDT_ANSWER_NONE;
	bool watched = !kind.recorded && ((kind.outside && kind.answer == TDT_ANSWER_LAST) || seen);

	if (kind.recorded ? !recorded : !watched && !aged && !polled)
		return; /* there is no tree, or it is as new as the answer */
	tdt__string_puts(string, recorded ? ", recorded" : watched ? ", watched" : ", as seen");
	if (aged || watched)
		tdt__duration_range(string, age_ns);
	if (recorded)
		tdt__string_puts(string, aged ? " before the end" : " at the end");
	if (watched || polled) {
		tdt__string_puts(string, watched    ? " ago, "
					 : recorded ? ", "
					 : aged	    ? " and "
						    : " ");
		poll_range(string, polls_since);
	}
	tdt__string_puts(string, watched     ? " since"
				 : !recorded ? " ago"
				 : polled    ? " before the last"
					     : "");
}

void tdt__spawn_place(struct tdt__string *string, const char *file, uint32_t line, uint32_t column)
{
	tdt__string_puts(string, "spawned at ");
	tdt__string_text(string, file);
	tdt__line_column(string, line, column);
}

void tdt__task_place(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->file == NULL)
		return;
	tdt__string_puts(string, ", ");
	tdt__spawn_place(string, info->file, info->line, info->column);
}

void tdt__task_parent(struct tdt__string *string, const struct tdt_task_info *info)
{
	if (info->parent != 0)
		tdt__string_printf(string, "%s by task %" PRIu64,
				   info->file == NULL ? ", spawned" : "", info->parent);
}

void tdt__task_context(struct tdt__string *string, const struct tdt_task_info *info, bool span)
{
	char text[TDT__TRACEPARENT_SIZE];

	if (info->context.valid != 1)
		return;
	tdt__traceparent(text, &info->context);
	tdt__string_printf(string, ", trace %.32s", text + TDT__TRACE_AT);
	if (span)
		tdt__string_printf(string, " span %.16s", text + TDT__SPAN_AT);
}

/* ---- What a task waits for ---- */

const char *tdt__shared_object(enum tdt_wait_kind kind)
{
	static const char *const words[] = { [TDT_WAIT_MUTEX] = "a mutex",
					     [TDT_WAIT_CHANNEL] = "a channel",
					     [TDT_WAIT_SEMAPHORE] = "a semaphore",
					     [TDT_WAIT_NOTIFICATION] = "a notification" };

	return words[tdt__wait_kind(kind)];
}

bool tdt__wait_is_news(const struct tdt_wait *wait)
{
	return wait->owner != 0 || wait->name[0] != '\0' ||
	       (wait->object != 0 && tdt__shared_object(wait->kind) != NULL);
}

static void wait_name(struct tdt__string *string, const struct tdt_wait *wait)
{
	if (wait->name[0] == '\0')
		return;
	tdt__string_puts(string, " ");
	tdt__string_quoted(string, wait->name);
}

void tdt__wait_object(struct tdt__string *string, const char *what, const struct tdt_wait *wait)
{
	tdt__string_puts(string, what);
	wait_name(string, wait);
	if (wait->object != 0)
		tdt__string_printf(string, " (0x%" PRIx64 ")", wait->object);
}

static void wait_owner(struct tdt__string *string, const char *how, const struct tdt_wait *wait,
		       uint64_t self, const char *name)
{
	if (wait->owner == 0)
		return;
	tdt__string_puts(string, how);
	if (wait->owner == self) {
		tdt__string_puts(string, "itself");
	} else {
		tdt__string_puts(string, "task ");
		tdt__task_name(string, wait->owner, name);
	}
}

/* " handed 3.204 s ago to task 7 "x", which has not taken it". */
static void wait_handed(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
			const char *name)
{
	tdt__string_printf(string, " handed %s", TDT__DURATION(wait->handed_ns));
	if (wait->owner == self)
		tdt__string_puts(string, " ago to another future of its own");
	else
		wait_owner(string, " ago to ", wait, self, name);
	tdt__string_puts(string, ", which has not taken it");
}

void tdt__waited_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		     const char *owner)
{
	const char *object = tdt__shared_object(wait->kind), *how = " of ";

	switch (wait->kind) {
	case TDT_WAIT_TASK:
		how = "";
		break;
	case TDT_WAIT_TIMER:
		tdt__string_puts(string, "a timer");
		wait_name(string, wait);
		break;
	case TDT_WAIT_IO:
		if (wait->object != 0)
			tdt__string_printf(string, "descriptor %" PRIu64, wait->object);
		else
			tdt__string_puts(string, "a descriptor");
		wait_name(string, wait);
		break;
	default:
		tdt__wait_object(string, object != NULL ? object : "something", wait);
	}
	if (wait->kind == TDT_WAIT_MUTEX) {
		how = " held by ";
		if (wait->owner != 0 && wait->handed_ns != 0) {
			wait_handed(string, wait, self, owner);
			return;
		}
	}
	wait_owner(string, how, wait, self, owner);
	if (wait->orphaned != 0)
		tdt__string_puts(string, ", which has ended without giving it back");
}

void tdt__wait_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		   const char *owner)
{
	tdt__string_puts(string, "for ");
	tdt__waited_for(string, wait, self, owner);
}
