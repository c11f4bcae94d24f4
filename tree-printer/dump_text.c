// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The text of a dump, for a reader who has just been woken by a pager: what is wrong comes first,
 * and the last tasks that panicked come last; tdt/dump.h has an example.  An empty line ends every
 * group, also the last one, so that the next text in the stream stands apart.  There is none
 * between the line of a deadlock and its first group.
 */

#include "dumps.h"

#include <stdlib.h>

#include "base/array.h"
#include "forms.h"
#include "kin.h"
#include "stuck_locks.h"
#include "terminal.h"
#include "words.h"

/* ---- The summary ---- */

static void finding(struct tdt__string *string, size_t n, const char *what)
{
	if (n == 0)
		return;
	tdt__string_puts(string, ", ");
	tdt__color(string, TDT__RED);
	tdt__string_puts(string, TDT__COUNTED(n, what));
	tdt__color(string, TDT__PLAIN);
}

static size_t deadlocks_of(const struct tdt_snapshot *snapshot)
{
	size_t n = 0;

	for (size_t i = 0; i < snapshot->n_cycles; i++)
		n += snapshot->cycles[i]->deadlock != 0;
	return n;
}

/* How many tasks are in busy loops, and how many have answered a request. */
static void count_tasks_that(const struct tdt_snapshot *snapshot, size_t *busy, size_t *asked)
{
	struct tdt_task_info room;

	*busy = *asked = 0;
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_snapshot_group *group = snapshot->groups[i];
			const struct tdt_task_info *info = tdt__group_task(group, k, &room);

			*busy += info->busy_polls != 0;
			*asked += group->answer == TDT_ANSWER_FRESH && info->asked != 0;
		}
}

static void summary_parts(struct tdt__string *string, const struct tdt__dump *dump, size_t asked)
{
	const struct tdt_snapshot *of = dump->snapshot;
	const struct {
		uint64_t n;
		const char *what;
	} parts[] = {
		{ asked, " answered" },
		{ of->fresh > asked ? of->fresh - asked : 0, " suspended" },
		{ of->running, " running" },
		{ of->last, of->recorded ? " as last recorded" : " as last watched" },
		{ of->unanswered, " without a tree" },
		{ of->panicked, " panicked since the start" },
		{ of->held, " ended, still held" },
		{ of->n_unsure_lost, " may have lost a wake-up (another dump tells in a second)" },
		{ of->lost, " left out for want of memory or time" },
		{ dump->unnamed,
		  dump->unnamed == 1 ? " frame not named in time" : " frames not named in time" },
	};
	const char *before = ": ";

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (parts[i].n == 0)
			continue;
		tdt__string_printf(string, "%s%s%s", before, TDT__NUMBER(parts[i].n),
				   parts[i].what);
		before = ", ";
	}
}

static void summary(struct tdt__string *string, const struct tdt__stuck_locks *locks,
		    const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;
	size_t busy, asked;

	count_tasks_that(snapshot, &busy, &asked);
	tdt__string_puts(string,
			 snapshot->tasks == 0 ? "no tasks" : TDT__COUNTED(snapshot->tasks, "task"));
	finding(string, tdt__stuck_orphans(locks), "orphaned lock");
	finding(string, locks->n - tdt__stuck_orphans(locks), "futurelock");
	finding(string, deadlocks_of(snapshot), "deadlock");
	finding(string, busy, "busy loop");
	finding(string, snapshot->n_lost_wakeups, "lost wake-up");
	summary_parts(string, dump, snapshot->outside ? asked : snapshot->fresh);
	if (snapshot->took_ns != 0)
		tdt__string_printf(string, " (took %s)", TDT__DURATION(snapshot->took_ns));
	tdt__string_puts(string, "\n");
	if (snapshot->at_least)
		tdt__string_puts(string, TDT__AT_LEAST);
	tdt__string_puts(string, "\n");
}

/* ---- Rings ---- */

static struct tdt_task_info ring_member(const struct tdt_snapshot_cycle *cycle, size_t i)
{
	const struct tdt_snapshot_group ring = { .tasks = cycle->tasks, .n = cycle->n };

	return tdt__dump_task(&ring, i % cycle->n);
}

/* What member `i` waits for, which also names the next member. */
static void ring_wait(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle, size_t i,
		      const struct tdt__dump *dump)
{
	struct tdt_task_info task = ring_member(cycle, i), next = ring_member(cycle, i + 1);
	/* The wait may have been lost: then say at least which task is waited for. */
	struct tdt_wait wait = { .kind = TDT_WAIT_TASK, .owner = next.id };

	for (uint32_t k = 0; k < task.n_waits && task.waits != NULL; k++) {
		if (task.waits[k]->owner == next.id) {
			wait = *task.waits[k];
			break;
		}
	}
	tdt__wait_for(string, &wait, task.id, tdt__names_owner(dump->names, &wait));
}

static void ring(struct tdt__string *string, const struct tdt_snapshot_cycle *cycle,
		 const struct tdt__dump *dump)
{
	struct tdt_task_info first = ring_member(cycle, 0);
	size_t shown = cycle->n <= dump->max_ids ? cycle->n : dump->max_ids;

	tdt__ring_kind(string, cycle);
	if (!cycle->deadlock)
		tdt__string_printf(string, " (%s)",
				   dump->snapshot->recorded ? "as their last polls reported"
				   : cycle->unproven ? "from records: another leaf may be silent"
						     : "another leaf may still bring one on");
	tdt__string_puts(string, ": task ");
	tdt__task_name(string, first.id, first.name);
	for (size_t i = 0; i < shown; i++) {
		tdt__string_puts(string, i == 0 ? " waits " : ", which waits ");
		ring_wait(string, cycle, i, dump);
	}
	if (shown < cycle->n) {
		tdt__string_printf(string, ", and so on by %s more to task ",
				   TDT__NUMBER(cycle->n - shown));
		tdt__task_name(string, first.id, first.name);
	}
	tdt__string_puts(string, cycle->n_groups != 0 ? "\n" : "\n\n");
}

/* ---- Groups that read the same ---- */

/*
 * The tasks of two groups may wait at the same places for a reader, and differ in calls that are
 * not shown.  They stay two groups, as in the snapshot and in its JSON; the second one says what
 * sets it apart.
 */
struct printed {
	struct tdt__reading reading;
	const struct tdt_snapshot_group *group;
};

static bool read_same(const struct printed *a, const struct printed *b)
{
	return a->reading.hash == b->reading.hash && a->group->answer == b->group->answer &&
	       a->group->tasks[0]->state == b->group->tasks[0]->state;
}

/* ---- Groups ---- */

#define DEEPEST 32 /* groups below groups; further ones are written as the others */
#define INDENT 3     /* how many columns they stand further in */

/* While a dump is written. */
struct dump_text {
	struct tdt__out *out;
	const struct tdt__dump *dump;
	struct tdt__frames frames;
	struct tdt__string string;
	TDT__TABLE(struct printed, printed, n_printed);
	size_t groups; /* how many groups have been written */
	struct tdt__kin *kin; /* of each group; NULL: no task is a child, or no memory */
};

/* If the group that was just printed reads like one before, say what sets it apart. */
static void tell_apart(struct dump_text *text, const struct printed *printed)
{
	uint32_t hash = tdt__hash_fold(printed->reading.hash), i;
	struct tdt_task_info other;

	TDT__INDEX_EACH (i, &text->printed_table.index, hash)
		if (read_same(&text->printed[i], printed))
			break;
	if (i == TDT__INDEX_NONE) {
		i = tdt__table_add(&text->printed_table, hash, printed, sizeof *printed);
		text->out->no_memory |= i == TDT__INDEX_NONE;
	} else if (printed->reading.partial || text->printed[i].reading.partial) {
		other = tdt__dump_task(text->printed[i].group, 0);
		tdt__string_puts(&text->string, "   the calls that differ from those of task ");
		tdt__task_name(&text->string, other.id, other.name);
		tdt__string_puts(&text->string, " are not shown\n");
	}
}

void tdt__dump_group_head(struct tdt__string *string, const struct tdt_snapshot_group *of,
			  bool deadlock, const struct tdt__dump *dump)
{
	struct tdt_task_info info;

	if (of->n > 1) {
		tdt__group_lines(string, of, deadlock, dump);
		return;
	}
	info = tdt__dump_task(of, 0);
	tdt__task_lines(string, &info, tdt__kind_in(dump->snapshot, of->answer, deadlock),
			dump->names);
}

/* The groups of deadlocks, and tasks that panicked, stand apart although their trees are equal. */
static void group_tree(struct dump_text *text, const struct tdt_snapshot_group *of, bool deadlock,
		       const struct tdt_node *root)
{
	bool apart = deadlock || of->tasks[0]->state == TDT_TASK_PANICKED;
	struct printed printed = { .group = of };

	tdt__print_tree(text->out, NULL, root, &text->frames, &printed.reading);
	if (!text->out->no_memory && !apart)
		tell_apart(text, &printed);
	tdt__out_take(text->out, &text->string);
}

static void children_line(struct dump_text *text, const struct tdt__kin *kin)
{
	tdt__string_printf(
	    &text->string, "   %s of %s%s\n", TDT__NUMBER(kin->shown), TDT__NUMBER(kin->children),
	    kin->children == 1 ? " child is shown below" : " children are shown below");
	tdt__out_take(text->out, &text->string);
}

static void group(struct dump_text *text, const struct tdt_snapshot_group *of, bool deadlock,
		  const struct tdt__kin *kin)
{
	static const char no_memory[] = "   no memory for the rest of this\n";
	const struct tdt_node *root = of->trace != NULL ? tdt_trace_root(of->trace) : NULL;
	struct tdt__out *out = text->out;
	bool before = out->no_memory; /* of other groups */

	out->no_memory = false;
	tdt__dump_group_head(&text->string, of, deadlock, text->dump);
	tdt__out_take(text->out, &text->string);
	if (root != NULL && !out->no_memory)
		group_tree(text, of, deadlock, root);
	out->no_memory |= of->trace != NULL && root == NULL;
	if (kin != NULL && kin->children != 0)
		children_line(text, kin);
	if (out->no_memory)
		tdt__out_add(out, no_memory, sizeof(no_memory) - 1);
	tdt__out_add(out, "\n", 1);
	out->no_memory |= before;
}

static void kin_group(struct dump_text *text, uint32_t i, bool deadlock)
{
	struct tdt__kin *own = text->kin != NULL ? &text->kin[i] : NULL;
	uint32_t below = own != NULL && text->out->indent < DEEPEST * INDENT ? own->first
									      : TDT__NO_KIN;

	if (own != NULL && own->written)
		return;
	if (own != NULL)
		own->written = true;
	group(text, text->dump->snapshot->groups[i], deadlock, own);
	text->out->indent += INDENT;
	for (; below != TDT__NO_KIN; below = text->kin[below].next)
		kin_group(text, below, false);
	text->out->indent -= INDENT;
}

/* Write the next `n` groups: in a deadlock all of them, wherever their parents are. */
static void next_groups(struct dump_text *text, size_t n, bool deadlock)
{
	for (; n > 0 && text->out->error == 0; n--, text->groups++)
		if (deadlock || text->kin == NULL ||
		    text->kin[text->groups].above == TDT__NO_KIN)
			kin_group(text, (uint32_t)text->groups, deadlock);
}

/* Write groups that have no kin here. */
static void groups_apart(struct dump_text *text, const struct tdt_snapshot_group *const *groups,
			 size_t n)
{
	for (size_t i = 0; i < n && text->out->error == 0; i++)
		group(text, groups[i], false, NULL);
}

static void tasks_before(struct dump_text *text)
{
	const struct tdt_snapshot *snapshot = text->dump->snapshot;

	if (snapshot->n_before == 0)
		return;
	tdt__string_printf(&text->string, "%s went on when asked; before, this was seen:\n\n",
			   TDT__COUNTED(snapshot->n_before, "task"));
	tdt__out_take(text->out, &text->string);
	groups_apart(text, snapshot->before, snapshot->n_before);
}

/* ---- Locks that are not given back ---- */

static void known_place(struct dump_text *text, const char *what, const struct tdt_node *root)
{
	if (root == NULL || tdt_node_first_child(root) == NULL)
		return;
	tdt__string_puts(&text->string, what);
	tdt__out_take(text->out, &text->string);
	tdt__print_tree(text->out, NULL, root, &text->frames, NULL);
}

static void place_of_taking(struct dump_text *text, const struct tdt_wait *wait)
{
	const struct tdt_snapshot *snapshot = text->dump->snapshot;
	const struct tdt_node *root = NULL;

	for (size_t i = 0; i < snapshot->n_orphans && root == NULL; i++)
		if (snapshot->orphans[i]->tasks[0]->waits[0]->object == wait->object &&
		    snapshot->orphans[i]->trace != NULL)
			root = tdt_trace_root(snapshot->orphans[i]->trace);
	known_place(text, "   it was taken here:\n", root);
}

static void stuck_locks(struct dump_text *text, const struct tdt__stuck_locks *locks)
{
	for (size_t i = 0; i < locks->n; i++) {
		tdt__stuck_lock_line(&text->string, &locks->lock[i], text->dump->names);
		if (locks->lock[i].wait.orphaned != 0)
			place_of_taking(text, &locks->lock[i].wait);
	}
	if (locks->n != 0)
		tdt__string_puts(&text->string, "\n");
	tdt__out_take(text->out, &text->string);
}

/* ---- Busy loops ---- */

static void busy_loops(struct dump_text *text)
{
	const struct tdt_snapshot *snapshot = text->dump->snapshot;
	struct tdt_task_info room;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *info =
				tdt__group_task(snapshot->groups[i], k, &room);

			if (info->busy_polls != 0)
				tdt__busy_line(&text->string, info);
		}
	if (text->string.n != 0)
		tdt__string_puts(&text->string, "\n");
	tdt__out_take(text->out, &text->string);
}

/* ---- Lost wake-ups ---- */

static void lost_wakeups(struct dump_text *text)
{
	const struct tdt_snapshot *snapshot = text->dump->snapshot;

	for (size_t i = 0; i < snapshot->n_lost_wakeups; i++) {
		const struct tdt_snapshot_group *of = snapshot->lost_wakeups[i];
		const struct tdt_task_info info = tdt__dump_task(of, 0);

		tdt__lost_line(&text->string, &info, snapshot->outside ? snapshot->took_ns : 0,
			       text->dump->names);
		if (of->trace != NULL)
			known_place(text, "   it waited here:\n", tdt_trace_root(of->trace));
		tdt__string_puts(&text->string, "\n");
		tdt__out_take(text->out, &text->string);
	}
}

static struct dump_text begin_dump(struct tdt__out *out, const struct tdt__dump *dump)
{
	return (struct dump_text){ .out = out,
				   .dump = dump,
				   .string.options = dump->options,
				   .frames.string.options = dump->options };
}

/* Write the groups that are not written yet; those that are below each other, or too deep, last. */
static void all_other_groups(struct dump_text *text)
{
	const struct tdt_snapshot *snapshot = text->dump->snapshot;

	next_groups(text, snapshot->n_groups - text->groups, false);
	for (size_t i = 0; i < snapshot->n_groups && text->out->error == 0; i++)
		if (text->kin != NULL && !text->kin[i].written)
			kin_group(text, (uint32_t)i, false);
}

static void end_dump(struct dump_text *text)
{
	free(text->kin);
	tdt__frames_fini(&text->frames);
	tdt__table_fini(&text->printed_table);
}

/* What stands above the rings and the groups. */
static void heading_lines(struct dump_text *text)
{
	const struct tdt__dump *dump = text->dump;
	struct tdt__stuck_locks locks;

	text->out->no_memory |= tdt__stuck_locks_collect(&locks, dump->snapshot) != 0;
	summary(&text->string, &locks, dump);
	tdt__out_take(text->out, &text->string);
	if (dump->snapshot->misuse != NULL) {
		tdt__misuse_line(&text->string, dump->snapshot->misuse);
		tdt__string_puts(&text->string, "\n");
		tdt__out_take(text->out, &text->string);
	}
	stuck_locks(text, &locks);
	free(locks.lock);
	busy_loops(text);
	lost_wakeups(text);
}

void tdt__dump_heading(struct tdt__out *out, const struct tdt__dump *dump)
{
	struct dump_text text = begin_dump(out, dump);

	heading_lines(&text);
	for (size_t i = 0; i < dump->snapshot->n_cycles; i++) {
		ring(&text.string, dump->snapshot->cycles[i], dump);
		tdt__out_take(out, &text.string);
	}
	end_dump(&text);
}

void tdt__dump_text(struct tdt__out *out, const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;
	struct dump_text text = begin_dump(out, dump);

	heading_lines(&text);
	text.kin = tdt__kin_find(snapshot, out);
	for (size_t i = 0; i < snapshot->n_cycles && out->error == 0; i++) {
		ring(&text.string, snapshot->cycles[i], dump);
		tdt__out_take(out, &text.string);
		next_groups(&text, snapshot->cycles[i]->n_groups, true);
	}
	all_other_groups(&text);
	tasks_before(&text);
	groups_apart(&text, snapshot->panics, snapshot->n_panics);
	end_dump(&text);
}

void tdt__dump_groups(struct tdt__out *out, const struct tdt__dump *dump)
{
	struct dump_text text = begin_dump(out, dump);

	text.kin = tdt__kin_find(dump->snapshot, out);
	all_other_groups(&text);
	end_dump(&text);
}
