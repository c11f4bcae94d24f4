// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump as one JSON object, on one line, with groups and tasks in the order of the snapshot.
 * tdt-trace(5) has the schema.
 */

#include "dumps.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "forms.h"
#include "kin.h"
#include "stuck_locks.h"
#include "schema.h"
#include "words.h"

#define NO_DEADLOCK SIZE_MAX

static void summary_json(struct tdt__json *json, const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;

	tdt__json_begin(json, "dump", '{');
	tdt__json_u64(json, "took_ns", snapshot->took_ns);
	tdt__json_u64(json, "tasks", snapshot->tasks);
	tdt__json_u64(json, answer_words[TDT_ANSWER_FRESH], snapshot->fresh);
	tdt__json_u64(json, answer_words[TDT_ANSWER_RUNNING], snapshot->running);
	tdt__json_u64(json, answer_words[TDT_ANSWER_LAST], snapshot->last);
	tdt__json_u64(json, answer_words[TDT_ANSWER_NONE], snapshot->unanswered);
	tdt__json_u64(json, "lost", snapshot->lost);
	tdt__json_known_u64(json, "unsure_lost_wakeups", snapshot->n_unsure_lost);
	tdt__json_known_u64(json, "panicked", snapshot->panicked);
	tdt__json_known_u64(json, "held", snapshot->held);
	tdt__json_known_u64(json, "unnamed", dump->unnamed);
	tdt__json_true(json, "outside", snapshot->outside);
	tdt__json_true(json, "recorded", snapshot->recorded);
	tdt__json_true(json, "at_least", snapshot->at_least);
	tdt__json_true(json, "unseen", snapshot->unseen);
	if (snapshot->process != NULL) /* else the dump is of this process */
		tdt__json_process(json, snapshot->process);
	tdt__json_end(json, '}');
}

void tdt__json_rings(struct tdt__json *json, const struct tdt_snapshot_cycle *const *cycles,
		     size_t n)
{
	static const char *const keys[] = { "deadlocks", "unproven", "rings" };

	for (int kind = 0; kind < 3; kind++) {
		tdt__json_begin(json, keys[kind], '[');
		for (size_t i = 0; i < n; i++) {
			if (kind != (cycles[i]->deadlock ? 0 : cycles[i]->unproven ? 1 : 2))
				continue;
			tdt__json_begin(json, NULL, '[');
			for (size_t k = 0; k < cycles[i]->n; k++)
				tdt__json_u64(json, NULL, cycles[i]->tasks[k]->id);
			tdt__json_end(json, ']');
		}
		tdt__json_end(json, ']');
	}
}

/* Where the group stands, by the numbers of groups. */
static void kin_json(struct tdt__json *json, const struct tdt__kin *kin)
{
	if (kin->above != TDT__NO_KIN)
		tdt__json_u64(json, "below", kin->above);
	if (kin->children != 0) {
		tdt__json_u64(json, "children", kin->children);
		tdt__json_u64(json, "children_shown", kin->shown);
	}
}

/*
 * Write a group; `deadlock` is the number of its deadlock, or NO_DEADLOCK.  `kin` may be NULL.
 */
static void group_json(struct tdt__json *json, const struct tdt_snapshot_group *of, size_t deadlock,
		       const struct tdt__kin *kin)
{
	const struct tdt_node *root = of->trace != NULL ? tdt_trace_root(of->trace) : NULL;

	if (of->trace != NULL && root == NULL)
		tdt__out_fail(json->out, -ENOMEM);
	tdt__json_begin(json, NULL, '{');
	tdt__json_string(json, "answer", answer_words[of->answer]);
	if (deadlock != NO_DEADLOCK)
		tdt__json_u64(json, "deadlock", deadlock);
	if (kin != NULL)
		kin_json(json, kin);
	tdt__json_begin(json, "tasks", '[');
	for (size_t i = 0; i < of->n && json->out->error == 0; i++) {
		const struct tdt_task_info info = tdt__dump_task(of, i);

		tdt__json_task(json, NULL, &info);
	}
	tdt__json_end(json, ']');
	if (root != NULL)
		tdt__json_nodes(json, root);
	tdt__json_end(json, '}');
}

static void groups_json(struct tdt__json *json, const struct tdt_snapshot_group *const *groups,
			const struct tdt__kin *kin, size_t from, size_t end, size_t deadlock)
{
	for (size_t i = from; i < end && json->out->error == 0; i++)
		group_json(json, groups[i], deadlock, kin != NULL ? &kin[i] : NULL);
}

/* Groups of one task each; nothing if there are none. */
static void groups_array(struct tdt__json *json, const char *key,
			 const struct tdt_snapshot_group *const *groups, size_t n)
{
	if (n == 0)
		return;
	tdt__json_begin(json, key, '[');
	groups_json(json, groups, NULL, 0, n, NO_DEADLOCK);
	tdt__json_end(json, ']');
}

static void futurelock_members(struct tdt__json *json, const struct tdt__stuck_lock *lock)
{
	tdt__json_u64(json, "task", lock->wait.owner);
	tdt__json_u64(json, "waits", lock->waits);
	tdt__json_u64(json, "handed_ns", lock->wait.handed_ns);
	tdt__json_address(json, "object", lock->wait.object);
}

void tdt__json_stuck_locks(struct tdt__json *json, const struct tdt_snapshot *snapshot)
{
	struct tdt__stuck_locks locks;
	int err = tdt__stuck_locks_collect(&locks, snapshot);
	size_t n;

	if (err != 0)
		tdt__out_fail(json->out, err);
	n = locks.n - tdt__stuck_orphans(&locks);
	if (n != 0)
		TDT__JSON_LIST(json, "futurelocks", locks.lock, n, futurelock_members, json);
	free(locks.lock);
	groups_array(json, "orphans", snapshot->orphans, snapshot->n_orphans);
	groups_array(json, "lost_wakeups", snapshot->lost_wakeups, snapshot->n_lost_wakeups);
}

/* The groups of deadlocks come first. */
static void all_groups(struct tdt__json *json, const struct tdt_snapshot *snapshot)
{
	struct tdt__kin *kin = tdt__kin_find(snapshot, json->out);
	size_t next = 0, deadlock = 0;

	tdt__json_begin(json, "groups", '[');
	for (size_t i = 0; i < snapshot->n_cycles; i++) {
		size_t end = next + snapshot->cycles[i]->n_groups;

		if (snapshot->cycles[i]->deadlock)
			groups_json(json, snapshot->groups, kin, next, end, deadlock++);
		next = end; /* other cycles have none */
	}
	groups_json(json, snapshot->groups, kin, next, snapshot->n_groups, NO_DEADLOCK);
	free(kin);
	tdt__json_end(json, ']');
}

void tdt__dump_json(struct tdt__out *out, const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;
	struct tdt__json json = tdt__json_document(out);

	summary_json(&json, dump);
	tdt__json_misuse(&json, snapshot->misuse);
	tdt__json_rings(&json, snapshot->cycles, snapshot->n_cycles);
	tdt__json_stuck_locks(&json, snapshot);
	all_groups(&json, snapshot);
	groups_array(&json, "before", snapshot->before, snapshot->n_before);
	groups_array(&json, "panics", snapshot->panics, snapshot->n_panics);
	tdt__json_finish(&json);
}
