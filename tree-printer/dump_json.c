// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A dump as one JSON object, on one line, with groups and tasks in the order of the snapshot.
 * tdt-trace(5) has the schema.
 */

#include <config.h>

#include "dumps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "forms.h"
#include "futurelocks.h"
#include "schema.h"
#include "words.h"

#define NO_DEADLOCK SIZE_MAX

static void member(struct tdt__out *out, const char *before, const char *key, uint64_t value)
{
	tdt__json_text(out, before);
	tdt__json_text(out, "\"");
	tdt__json_text(out, key);
	tdt__json_text(out, "\":");
	tdt__json_u64(out, value);
}

/* Which process the dump was read from; nothing if it is of this process. */
static int process_json(struct tdt__out *out, const struct tdt_snapshot_process *process)
{
	if (process == NULL)
		return 0;
	tdt__json_text(out, ",\"process\":");
	return tdt__json_process(out, process);
}

static int summary_json(struct tdt__out *out, const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;

	member(out, "", "took_ns", snapshot->took_ns);
	member(out, ",", "tasks", snapshot->tasks);
	for (int answer = TDT_ANSWER_FRESH; answer <= TDT_ANSWER_NONE; answer++)
		member(out, ",", answer_words[answer], snapshot->answers[answer]);
	member(out, ",", "lost", snapshot->lost);
	if (snapshot->panicked != 0)
		member(out, ",", "panicked", snapshot->panicked);
	if (dump->unnamed != 0)
		member(out, ",", "unnamed", dump->unnamed);
	if (snapshot->outside)
		tdt__json_text(out, ",\"outside\":true");
	if (snapshot->recorded)
		tdt__json_text(out, ",\"recorded\":true");
	return process_json(out, snapshot->process);
}

void tdt__json_rings(struct tdt__out *out, const struct tdt_snapshot_cycle *cycles, size_t n,
		     bool deadlocks)
{
	const char *before = "";

	tdt__json_text(out, "[");
	for (size_t i = 0; i < n; i++) {
		const struct tdt_snapshot_cycle *cycle = &cycles[i];

		if ((cycle->deadlock != 0) != deadlocks)
			continue;
		tdt__json_text(out, before);
		for (size_t k = 0; k < cycle->n; k++) {
			tdt__json_text(out, k == 0 ? "[" : ",");
			tdt__json_u64(out, cycle->tasks[k]->id);
		}
		tdt__json_text(out, "]");
		before = ",";
	}
	tdt__json_text(out, "]");
}

static int tasks(struct tdt__out *out, const struct tdt_snapshot_group *group)
{
	int err = 0;

	for (size_t i = 0; i < group->n && err == 0 && out->error == 0; i++) {
		const struct tdt_trace_info info = tdt__dump_task(group, i);

		if (i > 0)
			tdt__json_text(out, ",");
		err = tdt__json_task(out, &info);
	}
	return err;
}

/* Which deadlocks rest on records; nothing if none does. */
static void from_records(struct tdt__out *out, const struct tdt_snapshot *snapshot)
{
	const char *before = ",\"from_records\":[";
	size_t deadlock = 0;

	for (size_t i = 0; i < snapshot->n_cycles; i++) {
		if (snapshot->cycles[i].deadlock && snapshot->cycles[i].records) {
			tdt__json_text(out, before);
			tdt__json_u64(out, deadlock);
			before = ",";
		}
		deadlock += snapshot->cycles[i].deadlock != 0;
	}
	if (before[1] == '\0')
		tdt__json_text(out, "]");
}

/* The futurelocks, which are also in the waits of the tasks; nothing if there are none. */
static int futurelocks_json(struct tdt__out *out, const struct tdt_snapshot *snapshot)
{
	struct tdt__futurelocks locks;
	int err = tdt__futurelocks_collect(&locks, snapshot);
	char object[48];

	for (size_t i = 0; i < locks.n; i++) {
		tdt__json_text(out, i == 0 ? ",\"futurelocks\":[" : ",");
		member(out, "{", "task", locks.lock[i].wait.owner);
		member(out, ",", "waits", locks.lock[i].waits);
		member(out, ",", "handed_ns", locks.lock[i].wait.handed_ns);
		snprintf(object, sizeof(object), ",\"object\":\"0x%" PRIx64 "\"}",
			 locks.lock[i].wait.object);
		tdt__json_text(out, object);
		if (i + 1 == locks.n)
			tdt__json_text(out, "]");
	}
	free(locks.lock);
	return err;
}

/* Write a group; `deadlock` is the number of its deadlock, or NO_DEADLOCK. */
static int group_json(struct tdt__out *out, const struct tdt_snapshot_group *of, size_t deadlock)
{
	const struct tdt_node *root = of->trace != NULL ? tdt_trace_root(of->trace) : NULL;
	int err;

	if (of->trace != NULL && root == NULL)
		return -ENOMEM;
	tdt__json_text(out, "{\"answer\":\"");
	tdt__json_text(out, answer_words[of->answer]);
	tdt__json_text(out, "\"");
	if (deadlock != NO_DEADLOCK)
		member(out, ",", "deadlock", deadlock);
	tdt__json_text(out, ",\"tasks\":[");
	err = tasks(out, of);
	if (err == 0)
		tdt__json_text(out, "]");
	if (err == 0 && root != NULL) {
		tdt__json_text(out, ",\"nodes\":");
		err = tdt__json_nodes(out, root);
	}
	if (err == 0)
		tdt__json_text(out, "}");
	return err;
}

/* Write the next `n` groups, from `*next` on. */
static int next_groups_json(struct tdt__out *out, const struct tdt_snapshot *snapshot,
			    size_t *next, size_t n,
			    size_t deadlock)
{
	int err = 0;

	for (; n > 0 && err == 0 && out->error == 0; n--) {
		if (*next > 0)
			tdt__json_text(out, ",");
		err = group_json(out, &snapshot->groups[(*next)++], deadlock);
	}
	return err;
}

static int all_groups(struct tdt__out *out, const struct tdt_snapshot *snapshot)
{
	size_t next = 0, deadlock = 0;
	int err = 0;

	for (size_t i = 0; i < snapshot->n_cycles && err == 0; i++)
		if (snapshot->cycles[i].deadlock)
			err = next_groups_json(out, snapshot, &next,
					       snapshot->cycles[i].n_groups, deadlock++);
	if (err != 0)
		return err;
	return next_groups_json(out, snapshot, &next, snapshot->n_groups - next, NO_DEADLOCK);
}

/* The last tasks that panicked, as groups of one task; nothing if there are none. */
static int panics_json(struct tdt__out *out, const struct tdt_snapshot *snapshot)
{
	int err = 0;

	for (size_t i = 0; i < snapshot->n_panics && err == 0 && out->error == 0; i++) {
		tdt__json_text(out, i == 0 ? "],\"panics\":[" : ",");
		err = group_json(out, &snapshot->panics[i], NO_DEADLOCK);
	}
	return err;
}

/* What was misused; nothing if nothing was. */
static int misuse_json(struct tdt__out *out, const struct tdt_misuse *misuse)
{
	if (misuse == NULL)
		return 0;
	tdt__json_text(out, ",\"misuse\":");
	return tdt__json_misuse(out, misuse);
}

int tdt__dump_json(struct tdt__out *out, const struct tdt__dump *dump)
{
	const struct tdt_snapshot *snapshot = dump->snapshot;
	char head[32];
	int err;

	snprintf(head, sizeof(head), "{\"tdt\":%d,\"dump\":{", SCHEMA);
	tdt__json_text(out, head);
	err = summary_json(out, dump);
	tdt__json_text(out, "}");
	if (err == 0)
		err = misuse_json(out, snapshot->misuse);
	if (err != 0)
		return err;
	tdt__json_text(out, ",\"deadlocks\":");
	tdt__json_rings(out, snapshot->cycles, snapshot->n_cycles, true);
	from_records(out, snapshot);
	tdt__json_text(out, ",\"rings\":");
	tdt__json_rings(out, snapshot->cycles, snapshot->n_cycles, false);
	err = futurelocks_json(out, snapshot);
	if (err != 0)
		return err;
	tdt__json_text(out, ",\"groups\":[");
	err = all_groups(out, snapshot);
	if (err == 0)
		err = panics_json(out, snapshot);
	if (err == 0) /* output that is cut short must not look complete */
		tdt__json_text(out, "]}\n");
	return err;
}
