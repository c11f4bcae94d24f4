// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reads a snapshot or a list of many tasks from JSON: see read_json.c. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/read_parts.h"
#include "tree-printer/names.h"
#include "tree-printer/schema.h"
#include "tree/groups.h"

struct dump {
	struct tdt_snapshot snapshot;
	json_t *object;		 /* it owns all strings */
	struct tdt__arena arena; /* for what the snapshot points to, but traces and waits */
	const struct tdt_snapshot_group **list; /* the panics and the orphaned locks come last */
	size_t n_groups;
	struct tdt_snapshot_cycle **rings;
	struct tdt_misuse misuse;
	struct tdt_snapshot_process process;
};

void dump_free(struct dump *dump)
{
	if (dump == NULL)
		return;
	for (size_t i = 0; i < dump->n_groups; i++) {
		const struct tdt_snapshot_group *group = dump->list[i];

		tdt_trace_free((struct tdt_trace *)(uintptr_t)group->trace);
		for (size_t k = 0; k < group->n; k++)
			free((void *)(uintptr_t)group->tasks[k]->waits);
	}
	tdt__arena_fini(&dump->arena);
	json_decref(dump->object);
	free(dump);
}

const struct tdt_snapshot *dump_snapshot(const struct dump *dump)
{
	return &dump->snapshot;
}

/* Memory of zeros for `n` objects.  NULL: there is none. */
static void *take_zeros(struct dump *dump, size_t n, size_t size)
{
	void *memory = tdt__arena_take(&dump->arena, n * size);

	return memory != NULL ? memset(memory, 0, n * size) : NULL;
}

/* Add a group with room for `n` tasks, `*infos`.  NULL: no memory. */
static struct tdt_snapshot_group *add_dump_group(struct dump *dump, enum tdt_answer answer,
						 size_t n, struct tdt_task_info **infos)
{
	struct tdt_snapshot_group *group = take_zeros(dump, 1, sizeof *group);
	const struct tdt_task_info **tasks =
	    take_zeros(dump, n, sizeof(const struct tdt_task_info *));

	*infos = take_zeros(dump, n, sizeof **infos);
	if (group == NULL || tasks == NULL || *infos == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		tasks[i] = &(*infos)[i];
	*group = (struct tdt_snapshot_group){
		.size = sizeof *group, .answer = answer, .tasks = tasks, .n = n
	};
	dump->list[dump->n_groups++] = group;
	return group;
}

static int read_group(struct reader *reader, const json_t *object, struct dump *dump)
{
	const struct json_place place = { .reader = reader, .object = object, .name = "group" };
	const json_t *tasks = json_object_get(object, "tasks"),
		     *nodes = json_object_get(object, "nodes");
	struct tdt_snapshot_group *group;
	struct tdt_task_info *infos;
	unsigned int answer;

	if (reader_word(&place, "answer", answer_words, N_WORDS(answer_words), &answer))
		return -1;
	if (!json_is_array(tasks) || json_array_size(tasks) == 0)
		return reader_fail_at(&place, "tasks", "not an array with a task at least");
	group = add_dump_group(dump, (enum tdt_answer)answer, json_array_size(tasks), &infos);
	if (group == NULL)
		return reader_no_memory(reader);
	for (size_t i = 0; i < group->n; i++) {
		struct json_place task = { .reader = reader, .object = json_array_get(tasks, i) };

		snprintf(task.name, sizeof(task.name), "tasks[%zu]", i);
		if (reader_task(&task, &infos[i]) != 0)
			return -1;
	}
	if (nodes == NULL && group->answer != TDT_ANSWER_NONE)
		return reader_fail_at(&place, "nodes", "is missing");
	if (nodes != NULL)
		group->trace = reader_tree(reader, nodes, infos);
	return nodes == NULL || group->trace != NULL ? 0 : -1;
}

/* Read the groups that `key` names, behind those that were read before. */
static int read_array(struct reader *reader, const json_t *groups, const char *key,
		      struct dump *dump)
{
	int err = 0;

	for (size_t i = 0; i < json_array_size(groups) && err == 0; i++) {
		snprintf(reader->prefix, sizeof(reader->prefix), "%s[%zu].", key, i);
		err = read_group(reader, json_array_get(groups, i), dump);
	}
	reader->prefix[0] = '\0';
	return err;
}

/* The arrays of groups: the first one, and others of one task each. */
static const struct {
	const char *key;
	size_t list, n; /* in the snapshot */
} group_arrays[] = {
#define AT(name) offsetof(struct tdt_snapshot, name)
	{ "groups", AT(groups), AT(n_groups) },
	{ "panics", AT(panics), AT(n_panics) },
	{ "before", AT(before), AT(n_before) },
	{ "lost_wakeups", AT(lost_wakeups), AT(n_lost_wakeups) },
	{ "orphans", AT(orphans), AT(n_orphans) },
};

#define GROUP_ARRAYS (sizeof group_arrays / sizeof group_arrays[0])

/* Read array `i` behind those that were read before. */
static int read_groups_of(struct reader *reader, const json_t *object, size_t i, struct dump *dump)
{
	const struct tdt_snapshot_group *const *list = &dump->list[dump->n_groups];
	size_t before = dump->n_groups, n;
	char *snapshot = (char *)&dump->snapshot;
	const char *key = group_arrays[i].key;

	if (read_array(reader, json_object_get(object, key), key, dump) != 0)
		return -1;
	n = dump->n_groups - before;
	memcpy(snapshot + group_arrays[i].list, &list, sizeof(list));
	memcpy(snapshot + group_arrays[i].n, &n, sizeof(n));
	for (size_t k = 0; k < n && i > 0; k++)
		if (list[k]->n != 1 || list[k]->trace == NULL)
			return reader_fail(reader, "%s: not one task with a tree each", key);
	return 0;
}

static int read_groups(struct reader *reader, const json_t *object, struct dump *dump)
{
	const struct tdt_snapshot *snapshot = &dump->snapshot;
	size_t n = 0;

	for (size_t i = 0; i < GROUP_ARRAYS; i++) {
		const json_t *array = json_object_get(object, group_arrays[i].key);

		if (array != NULL ? !json_is_array(array) : i == 0)
			return reader_fail(reader, "%s: not an array", group_arrays[i].key);
		n += json_array_size(array);
	}
	dump->list = take_zeros(dump, n, sizeof(const struct tdt_snapshot_group *));
	if (dump->list == NULL)
		return reader_no_memory(reader);
	for (size_t i = 0; i < GROUP_ARRAYS; i++)
		if (read_groups_of(reader, object, i, dump) != 0)
			return -1;
	for (size_t i = 0; i < snapshot->n_orphans; i++)
		if (snapshot->orphans[i]->tasks[0]->n_waits != 1)
			return reader_fail(reader, "orphans: not one wait each");
	return 0;
}

/* Read a cycle, which is an array of ids: number `i` under `key`. */
static int read_cycle(struct reader *reader, const json_t *ids, const char *key, size_t i,
		      const struct tdt__names *names, struct dump *dump)
{
	size_t n = json_array_size(ids);
	struct tdt_snapshot_cycle *cycle = take_zeros(dump, 1, sizeof *cycle);
	const struct tdt_task_info **tasks =
	    take_zeros(dump, n, sizeof(const struct tdt_task_info *));
	bool known = n != 0;
	uint64_t id;

	if (cycle == NULL || tasks == NULL)
		return reader_no_memory(reader);
	for (size_t k = 0; k < n && known; k++) {
		known = reader_parse_number(json_array_get(ids, k), &id);
		tasks[k] = known ? tdt__names_task(names, id) : NULL;
		known = tasks[k] != NULL;
	}
	if (!known)
		return reader_fail(reader, "%s[%zu]: not an array of ids of tasks in the groups",
				   key, i);
	*cycle = (struct tdt_snapshot_cycle){ .size = sizeof *cycle,
					      .tasks = tasks,
					      .n = n,
					      .deadlock = strcmp(key, "deadlocks") == 0,
					      .unproven = strcmp(key, "unproven") == 0 };
	dump->rings[dump->snapshot.n_cycles++] = cycle;
	return 0;
}

/* Count the groups of each deadlock, which come first, in the order of the deadlocks. */
static int count_deadlock_groups(struct reader *reader, const json_t *groups, size_t deadlocks,
				 struct dump *dump)
{
	size_t last = 0;

	for (size_t i = 0; i < dump->snapshot.n_groups; i++) {
		const json_t *deadlock = json_object_get(json_array_get(groups, i), "deadlock");
		uint64_t number;

		if (deadlock == NULL)
			break;
		if (!reader_parse_number(deadlock, &number) || number < last ||
		    number >= deadlocks)
			return reader_fail(
			    reader, "groups[%zu].deadlock: not the next deadlock's number", i);
		last = (size_t)number;
		dump->rings[last]->n_groups++;
	}
	return 0;
}

static const char *const ring_keys[] = { "deadlocks", "unproven", "rings" };

static int read_rings(struct reader *reader, const json_t *object, const struct tdt__names *names,
		      struct dump *dump)
{
	int err = 0;

	for (int kind = 0; kind < 3 && err == 0; kind++) {
		const json_t *rings = json_object_get(object, ring_keys[kind]);

		for (size_t i = 0; i < json_array_size(rings) && err == 0; i++)
			err = read_cycle(reader, json_array_get(rings, i), ring_keys[kind], i,
					 names, dump);
		if (kind == 0 && err == 0)
			err = count_deadlock_groups(reader, json_object_get(object, "groups"),
						    dump->snapshot.n_cycles, dump);
	}
	return err;
}

static int read_cycles(struct reader *reader, const json_t *object, struct dump *dump)
{
	struct tdt__names *names;
	size_t n = 0;
	int err;

	for (int i = 0; i < 3; i++) {
		const json_t *rings = json_object_get(object, ring_keys[i]);

		if (rings != NULL && !json_is_array(rings))
			return reader_fail(reader, "deadlocks, unproven, rings: not arrays");
		n += json_array_size(rings);
	}
	dump->rings = take_zeros(dump, n, sizeof dump->rings[0]);
	names = tdt__names_new(&dump->snapshot);
	if (dump->rings == NULL || names == NULL)
		err = reader_no_memory(reader);
	else
		err = read_rings(reader, object, names, dump);
	dump->snapshot.cycles = (const struct tdt_snapshot_cycle *const *)dump->rings;
	tdt__names_free(names);
	return err;
}

static int read_summary(const struct json_place *place, struct tdt_snapshot *snapshot)
{
	uint64_t tasks, lost, unsure, answers[4];

	if (reader_number(place, "took_ns", UINT64_MAX, &snapshot->took_ns) ||
	    reader_number(place, "tasks", SIZE_MAX, &tasks) ||
	    reader_number(place, "lost", SIZE_MAX, &lost) ||
	    reader_number(place, "unsure_lost_wakeups", SIZE_MAX, &unsure) ||
	    reader_number(place, "panicked", UINT64_MAX, &snapshot->panicked) ||
	    reader_number(place, "held", UINT64_MAX, &snapshot->held) ||
	    reader_flag(place, "outside", &snapshot->outside) ||
	    reader_flag(place, "recorded", &snapshot->recorded) ||
	    reader_flag(place, "at_least", &snapshot->at_least) ||
	    reader_flag(place, "unseen", &snapshot->unseen))
		return -1;
	for (int i = TDT_ANSWER_FRESH; i <= TDT_ANSWER_NONE; i++) {
		if (reader_number(place, answer_words[i], SIZE_MAX, &answers[i]))
			return -1;
		*tdt__answered(snapshot, (enum tdt_answer)i) = (size_t)answers[i];
	}
	snapshot->tasks = (size_t)tasks;
	snapshot->lost = (size_t)lost;
	snapshot->n_unsure_lost = (size_t)unsure;
	return 0;
}

static int read_misuse(struct reader *reader, const json_t *object, struct dump *dump)
{
	const struct json_place place = { .reader = reader, .object = object, .name = "misuse" };
	struct tdt_misuse *misuse = &dump->misuse;
	const char *name;
	unsigned int kind;

	if (object == NULL)
		return 0;
	if (!json_is_object(object))
		return reader_fail(reader, "misuse: not an object");
	if (reader_word(&place, "kind", misuse_words, N_WORDS(misuse_words), &kind) ||
	    reader_number(&place, "task", UINT64_MAX, &misuse->task) ||
	    reader_string(&place, "name", &name) || reader_require(&place, "reason") ||
	    reader_string(&place, "reason", &misuse->reason))
		return -1;
	misuse->size = sizeof *misuse;
	misuse->kind = (enum tdt_misuse_kind)kind;
	if (name != NULL)
		snprintf(misuse->name, sizeof misuse->name, "%s", name);
	dump->snapshot.misuse = misuse;
	return 0;
}

/* Read which process the answer is of: a member of `of`, if it is there. */
static int read_process(struct reader *reader, const json_t *of, struct dump *dump)
{
	const struct json_place place = { .reader = reader,
					  .object = json_object_get(of, "process"),
					  .name = "process" };
	struct tdt_snapshot_process *process = &dump->process;

	if (place.object == NULL)
		return 0;
	if (!json_is_object(place.object))
		return reader_fail(reader, "process: not an object");
	process->size = sizeof *process;
	if (reader_u32(&place, "pid", &process->pid) ||
	    reader_address(&place, "registry", &process->registry) ||
	    reader_number(&place, "start_real_ns", UINT64_MAX, &process->start_real_ns) ||
	    reader_number(&place, "now_ns", UINT64_MAX, &process->now_ns))
		return -1;
	dump->snapshot.process = process;
	return 0;
}

/* Read a dump or a list: the member `key`, and the rest by `read`. */
static int read_member(struct reader *reader, json_t *object, const char *key,
		       int (*read)(const struct json_place *place, json_t *object,
				   struct dump *dump),
		       struct dump **result)
{
	struct json_place place = { .reader = reader, .object = json_object_get(object, key) };
	struct dump *dump;

	snprintf(place.name, sizeof place.name, "%s", key);
	if (!json_is_object(place.object))
		return reader_fail(reader, "%s: not an object", key);
	dump = calloc(1, sizeof(*dump));
	if (dump == NULL)
		return reader_no_memory(reader);
	dump->snapshot.size = sizeof(dump->snapshot);
	dump->object = json_incref(object);
	if (read(&place, object, dump) != 0) {
		dump_free(dump);
		return -1;
	}
	*result = dump;
	return 1;
}

static int read_snapshot(const struct json_place *place, json_t *object, struct dump *dump)
{
	struct reader *reader = place->reader;

	return read_summary(place, &dump->snapshot) != 0 ||
		       read_process(reader, place->object, dump) != 0 ||
		       read_misuse(reader, json_object_get(object, "misuse"), dump) != 0 ||
		       read_groups(reader, object, dump) != 0 ||
		       read_cycles(reader, object, dump) != 0
		   ? -1
		   : 0;
}

int reader_dump(struct reader *reader, json_t *object, struct dump **result)
{
	return read_member(reader, object, "dump", read_snapshot, result);
}

/* Read a task of a list as the next one of a group, unless the task has ended. */
static int read_list_entry(struct reader *reader, const json_t *object,
			   struct tdt_snapshot_group *group, struct tdt_task_info *infos)
{
	const struct json_place place = { .reader = reader,
					  .object = json_object_get(object, "task"),
					  .name = "task" };

	if (!json_is_object(place.object))
		return reader_fail(reader, "tasks: not objects with a task");
	if (json_object_get(object, "outcome") != NULL)
		return 0;
	if (reader_task(&place, &infos[group->n]) != 0)
		return -1;
	group->n++;
	return 0;
}

/* Tasks without trees are one group; no group is empty. */
static int read_list_entries(struct reader *reader, const json_t *tasks, struct dump *dump)
{
	size_t n = json_array_size(tasks);
	struct tdt_snapshot_group *group = NULL;
	struct tdt_task_info *infos;
	int err = 0;

	if (!json_is_array(tasks))
		return reader_fail(reader, "tasks: not an array");
	dump->list = take_zeros(dump, 1, sizeof(const struct tdt_snapshot_group *));
	if (dump->list != NULL)
		group = add_dump_group(dump, TDT_ANSWER_NONE, n, &infos);
	if (group == NULL)
		return reader_no_memory(reader);
	group->n = 0;
	for (size_t i = 0; i < n && err == 0; i++) {
		snprintf(reader->prefix, sizeof(reader->prefix), "tasks[%zu].", i);
		err = read_list_entry(reader, json_array_get(tasks, i), group, infos);
	}
	reader->prefix[0] = '\0';
	dump->snapshot.groups = dump->list;
	dump->snapshot.n_groups = group->n != 0;
	dump->snapshot.tasks = dump->snapshot.unanswered = group->n;
	return err;
}

static int read_list(const struct json_place *place, json_t *object, struct dump *dump)
{
	dump->snapshot.outside = 1;
	dump->snapshot.recorded = json_object_get(place->object, "recording") != NULL;
	return read_process(place->reader, place->object, dump) != 0
		   ? -1
		   : read_list_entries(place->reader, json_object_get(object, "tasks"), dump);
}

int reader_list(struct reader *reader, json_t *object, struct dump **result)
{
	return read_member(reader, object, "ps", read_list, result);
}
