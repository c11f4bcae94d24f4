// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lines of a group of several tasks: what the tasks have in common, the ranges of their times,
 * and some of the tasks by name.
 */

#include "dumps.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "terminal.h"
#include "tree/trace.h"
#include "words.h"

/* What the tasks have in common, and the ranges of what differs. */
struct facts {
	struct tdt_task_info first;
	struct tdt__extent state_ns, age_ns, polls_since;
	bool same_place, same_parent, same_syscall, same_trace;
};

static void widen(struct tdt__extent *range, uint64_t value)
{
	range->low = value < range->low ? value : range->low;
	range->high = value > range->high ? value : range->high;
}

static void find_facts(struct facts *facts, const struct tdt_snapshot_group *group)
{
	const struct tdt_task_info first = tdt__dump_task(group, 0);

	*facts = (struct facts){ .first = first,
				 .state_ns = { first.state_ns, first.state_ns },
				 .age_ns = { first.age_ns, first.age_ns },
				 .polls_since = { first.polls_since, first.polls_since },
				 .same_place = true,
				 .same_parent = true,
				 .same_syscall = true,
				 .same_trace = true };
	if (group->n > 1 && first.moved != 0)
		facts->first.moved = 0;
	for (size_t i = 0; i < group->n; i++) {
		const struct tdt_task_info info = tdt__dump_task(group, i);

		/* The wait in which a task is now has only begun, if the task has moved. */
		widen(&facts->state_ns, info.moved != 0 && group->n > 1 ? 0 : info.state_ns);
		widen(&facts->age_ns, info.age_ns);
		widen(&facts->polls_since, info.polls_since);
		facts->same_place = facts->same_place && tdt__same_text(info.file, first.file) &&
				    info.line == first.line && info.column == first.column;
		facts->same_parent = facts->same_parent && info.parent == first.parent;
		facts->same_syscall =
		    facts->same_syscall && tdt__same_text(info.syscall, first.syscall);
		facts->same_trace = facts->same_trace &&
				    memcmp(info.context.trace_id, first.context.trace_id,
					   sizeof first.context.trace_id) == 0;
		/* These two are said if they are true of all. */
		if (info.unknown_stack == 0)
			facts->first.unknown_stack = 0;
		if (info.asked == 0)
			facts->first.asked = 0;
	}
}

static void one(struct tdt__string *string, const struct tdt_task_info *info,
		const struct facts *facts)
{
	tdt__string_puts(string, " ");
	tdt__color(string, TDT__BOLD);
	tdt__task_name(string, info->id, info->name);
	tdt__color(string, TDT__PLAIN);
	tdt__task_thread(string, info);
	if (!facts->same_syscall && info->syscall != NULL) {
		tdt__string_puts(string, " in ");
		tdt__string_text(string, info->syscall);
		tdt__string_puts(string, "()");
	}
}

/* The first tasks of the group, which have been in their state the longest. */
static void some(struct tdt__string *string, const struct tdt_snapshot_group *group,
		 const struct facts *facts, const struct tdt__dump *dump)
{
	size_t shown = group->n <= dump->max_ids ? group->n : dump->max_ids;

	tdt__string_puts(string, shown < group->n ? ", e.g." : ":");
	for (size_t i = 0; i < shown && !string->failed; i++) {
		const struct tdt_task_info info = tdt__dump_task(group, i);

		if (i > 0)
			tdt__string_puts(string, i == group->n - 1 ? " and" : ",");
		one(string, &info, facts);
	}
	if (shown < group->n)
		tdt__string_printf(string, " and %s more", TDT__NUMBER(group->n - shown));
}

static void head(struct tdt__string *string, const struct tdt_snapshot_group *group,
		 const struct facts *facts, bool deadlock, const struct tdt__dump *dump)
{
	const struct tdt__task_kind kind = tdt__kind_in(dump->snapshot, group->answer, deadlock);
	const struct tdt_task_info *first = &facts->first;

	tdt__string_puts(string, TDT__COUNTED(group->n, "task"));
	tdt__task_state(string, first, deadlock);
	if (facts->state_ns.high == 0) {
		tdt__task_time(string, first);
	} else {
		tdt__string_puts(string, tdt__for(first->state));
		tdt__duration_range(string, facts->state_ns);
	}
	if (facts->same_syscall)
		tdt__task_syscall(string, first->syscall);
	if (group->answer == TDT_ANSWER_FRESH && first->state == TDT_TASK_WAITING &&
	    first->leaves == 0 && first->leaves_elsewhere == 0 && first->leaves_lost == 0)
		tdt__no_leaves(string, first);
	tdt__task_answer(string, first, kind);
	tdt__tree_age(string, facts->age_ns, facts->polls_since, kind, false);
	some(string, group, facts, dump);
	if (facts->same_place)
		tdt__task_place(string, first);
	if (facts->same_place && facts->same_parent)
		tdt__task_parent(string, first);
	if (facts->same_trace)
		tdt__task_context(string, first, false);
	tdt__string_puts(string, "\n");
}

struct awaited {
	struct tdt_wait wait;
	uint64_t self; /* the first task that waits so */
	size_t times;  /* 0: the wait has been taken out */
};

/* All different waits of a group. */
struct table {
	TDT__TABLE(struct awaited, awaited, n);
};

/* False: no memory. */
static bool count_wait(struct table *table, const struct tdt_wait *wait, uint64_t self)
{
	const struct awaited new = { .wait = *wait, .self = self, .times = 1 };
	uint64_t whole = tdt__mix(tdt__mix(wait->object, wait->owner), (uint64_t)wait->kind);
	uint32_t hash = (uint32_t)whole, i;

	TDT__INDEX_EACH (i, &table->awaited_table.index, hash)
		if (tdt__same_wait(&table->awaited[i].wait, wait)) {
			table->awaited[i].times++;
			return true;
		}
	return tdt__table_add(&table->awaited_table, hash, &new, sizeof new) != TDT__INDEX_NONE;
}

static bool count_waits(struct table *table, const struct tdt_snapshot_group *group)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct tdt_task_info info = tdt__dump_task(group, i);

		for (uint32_t k = 0; k < info.n_waits && info.waits != NULL; k++)
			if (tdt__wait_is_news(info.waits[k]) &&
			    !count_wait(table, info.waits[k], info.id))
				return false;
	}
	return true;
}

/*
 * Whether `a` is printed before `b`.  Addresses decide last, because they differ from process to
 * process.
 */
static bool is_before(const struct awaited *a, const struct awaited *b)
{
	if (a->times != b->times)
		return a->times > b->times;
	if (a->wait.owner != b->wait.owner)
		return a->wait.owner < b->wait.owner;
	return a->wait.object != b->wait.object ? a->wait.object < b->wait.object
						: a->wait.kind < b->wait.kind;
}

/* Take out the wait that is printed next: the most frequent one of those that are left. */
static struct awaited take(struct table *table)
{
	struct awaited *best = &table->awaited[0], taken;

	for (uint32_t i = 1; i < table->n; i++)
		if (is_before(&table->awaited[i], best))
			best = &table->awaited[i];
	taken = *best;
	best->times = 0;
	return taken;
}

/*
 * If there are too many different waits to print them all, take out those of this kind that only
 * one task has.  Without an owner they differ only in their address, so a number says as much.
 * Returns how many were taken out.
 */
static uint32_t take_single_waits(struct table *table, enum tdt_wait_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n && table->n > TDT__WAITS_SHOWN; i++) {
		struct awaited *awaited = &table->awaited[i];

		if (awaited->times != 1 || awaited->wait.kind != kind || awaited->wait.owner != 0)
			continue;
		awaited->times = 0;
		n++;
	}
	return n;
}

/* All tasks of a group have one state. */
static const char *wait_verb(const struct tdt_snapshot_group *group, uint64_t tasks)
{
	if (group->tasks[0]->state == TDT_TASK_UNKNOWN)
		return " waited ";
	return tasks == 1 ? " waits " : " wait ";
}

/* "200 wait for a channel each".  Returns how many different waits the line stands for. */
static uint32_t write_single_waits(struct tdt__string *string, struct table *table,
				   enum tdt_wait_kind kind, const struct tdt_snapshot_group *group)
{
	const struct tdt_wait wait = { .kind = kind };
	uint32_t n = take_single_waits(table, kind);

	if (n == 0)
		return 0;
	tdt__string_printf(string, "   %s%s", TDT__NUMBER(n), wait_verb(group, n));
	tdt__wait_for(string, &wait, 0, NULL);
	tdt__string_puts(string, n == 1 ? "\n" : " each\n");
	return n;
}

static void write_waits(struct tdt__string *string, struct table *table,
		       const struct tdt_snapshot_group *group, const struct tdt__dump *dump)
{
	uint32_t n = (uint32_t)table->n;

	for (unsigned kind = 0; kind <= TDT_WAIT_NOTIFICATION; kind++)
		if (tdt__shared_object((enum tdt_wait_kind)kind) != NULL)
			n -= write_single_waits(string, table, (enum tdt_wait_kind)kind, group);
	for (uint32_t i = 0; i < n && i < TDT__WAITS_SHOWN && !string->failed; i++) {
		struct awaited awaited = take(table);

		tdt__string_printf(string, "   %s%s", TDT__NUMBER(awaited.times),
				   wait_verb(group, awaited.times));
		tdt__wait_for(string, &awaited.wait, awaited.times == 1 ? awaited.self : 0,
			      tdt__names_owner(dump->names, &awaited.wait));
		tdt__string_puts(string, "\n");
	}
	if (n > TDT__WAITS_SHOWN)
		tdt__string_printf(string, "   and for %s more\n",
				   TDT__NUMBER(n - TDT__WAITS_SHOWN));
}

void tdt__group_lines(struct tdt__string *string, const struct tdt_snapshot_group *group,
		      bool deadlock, const struct tdt__dump *dump)
{
	struct table table = { 0 };
	struct facts facts;

	find_facts(&facts, group);
	head(string, group, &facts, deadlock, dump);
	tdt__unsure_line(string, &facts.first);
	if (count_waits(&table, group))
		write_waits(string, &table, group, dump);
	else
		string->failed = true;
	tdt__table_fini(&table.awaited_table);
}
