// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reads a snapshot or a list of many tasks from JSON: see read_json.c. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "cli/read_parts.h"
#include "tree-printer/schema.h"
#include "tree/groups.h"

struct dump {
	struct tdt_snapshot snapshot;
	json_t *object;			   /* it owns all strings */
	struct tdt_snapshot_group *groups; /* the panics and the orphaned locks come last */
	const struct tdt_snapshot_group **list;	 /* pointers to them */
	size_t n_groups;
	struct tdt_snapshot_cycle *cycles;
	const struct tdt_snapshot_cycle **rings; /* pointers to them */
	struct tdt_misuse misuse;
	struct tdt_snapshot_process process;
	struct tdt_task_info *tasks;		 /* of all groups, one group after the other */
	const struct tdt_task_info **in_groups; /* pointers to them, in the same order */
	struct tdt__index by_id;		 /* of several with one id, the first one */
	const struct tdt_task_info **in_cycles; /* of all cycles, one cycle after the other */
	size_t n_tasks;
};

void dump_free(struct dump *dump)
{
	if (dump == NULL)
		return;
	for (size_t i = 0; i < dump->n_groups; i++)
		tdt_trace_free((struct tdt_trace *)(uintptr_t)dump->groups[i].trace);
	for (size_t i = 0; i < dump->n_tasks; i++)
		free((void *)(uintptr_t)dump->tasks[i].waits);
	free(dump->groups);
	free(dump->list);
	free(dump->cycles);
	free(dump->rings);
	free(dump->tasks);
	free(dump->in_groups);
	tdt__index_fini(&dump->by_id);
	free(dump->in_cycles);
	json_decref(dump->object);
	free(dump);
}

const struct tdt_snapshot *dump_snapshot(const struct dump *dump)
{
	return &dump->snapshot;
}

/*
 * How many elements the elements of `array` have together: their arrays `key`, or, if `key` is
 * NULL, they themselves.
 */
static size_t count_within(const json_t *array, const char *key)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *element = json_array_get(array, i);

		n += json_array_size(key != NULL ? json_object_get(element, key) : element);
	}
	return n;
}

static int allocate_groups(struct dump *dump, size_t groups, size_t tasks)
{
	dump->groups = calloc(groups + 1, sizeof(*dump->groups));
	dump->list = calloc(groups + 1, sizeof(*dump->list));
	dump->tasks = calloc(tasks + 1, sizeof(*dump->tasks));
	dump->in_groups = calloc(tasks + 1, sizeof(*dump->in_groups));
	return dump->groups != NULL && dump->list != NULL && dump->tasks != NULL &&
		       dump->in_groups != NULL
		   ? 0
		   : -ENOMEM;
}

static int reader_fail_of(struct reader *reader, const char *key, const char *what)
{
	snprintf(reader->message, sizeof(reader->message), "%s: %s", key, what);
	return -1;
}

static int read_group(struct reader *reader, const json_t *object, struct dump *dump)
{
	struct tdt_snapshot_group *group = &dump->groups[dump->n_groups];
	const struct json_place place = { .reader = reader, .object = object, .name = "group" };
	const json_t *tasks = json_object_get(object, "tasks"),
		     *nodes = json_object_get(object, "nodes");
	struct tdt_task_info *first = &dump->tasks[dump->n_tasks];
	unsigned int answer;

	if (reader_word(&place, "answer", answer_words, N_WORDS(answer_words), &answer))
		return -1;
	if (!json_is_array(tasks) || json_array_size(tasks) == 0)
		return reader_fail_at(&place, "tasks", "not an array with a task at least");
	*group = (struct tdt_snapshot_group){ .size = sizeof *group,
					      .answer = (enum tdt_answer)answer,
					      .tasks = &dump->in_groups[dump->n_tasks],
					      .n = json_array_size(tasks) };
	dump->list[dump->n_groups++] = group;
	for (size_t i = 0; i < group->n; i++) {
		struct json_place task = { .reader = reader, .object = json_array_get(tasks, i) };

		snprintf(task.name, sizeof(task.name), "tasks[%zu]", i);
		if (reader_task(&task, &dump->tasks[dump->n_tasks]) != 0)
			return -1;
		dump->in_groups[dump->n_tasks] = &dump->tasks[dump->n_tasks];
		dump->n_tasks++;
	}
	if (nodes == NULL && group->answer != TDT_ANSWER_NONE)
		return reader_fail_at(&place, "nodes", "is missing");
	if (nodes != NULL)
		group->trace = reader_tree(reader, nodes, first);
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
			return reader_fail_of(reader, key, "not one task with a tree each");
	return 0;
}

static int read_groups(struct reader *reader, const json_t *object, struct dump *dump)
{
	const struct tdt_snapshot *snapshot = &dump->snapshot;
	size_t n = 0, tasks = 0;

	for (size_t i = 0; i < GROUP_ARRAYS; i++) {
		const json_t *array = json_object_get(object, group_arrays[i].key);

		if (array != NULL ? !json_is_array(array) : i == 0)
			return reader_fail_of(reader, group_arrays[i].key, "not an array");
		n += json_array_size(array);
		tasks += count_within(array, "tasks");
	}
	if (allocate_groups(dump, n, tasks) != 0)
		return reader_fail(reader, strerror(ENOMEM));
	for (size_t i = 0; i < GROUP_ARRAYS; i++)
		if (read_groups_of(reader, object, i, dump) != 0)
			return -1;
	for (size_t i = 0; i < snapshot->n_orphans; i++)
		if (snapshot->orphans[i]->tasks[0]->n_waits != 1)
			return reader_fail(reader, "orphans: not one wait each");
	return 0;
}

static const struct tdt_task_info *find_task(const struct dump *dump, uint64_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &dump->by_id, tdt__hash_id(id))
		if (dump->tasks[i].id == id)
			return &dump->tasks[i];
	return NULL;
}

/* Returns 0 or -ENOMEM. */
static int index_tasks(struct dump *dump)
{
	if (tdt__index_reserve(&dump->by_id, dump->n_tasks) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->n_tasks; i++)
		if (find_task(dump, dump->tasks[i].id) == NULL)
			tdt__index_add(&dump->by_id, tdt__hash_id(dump->tasks[i].id), i);
	return 0;
}

/* Read the cycles under `key`, which are arrays of ids.  Adds the number of ids to `*used`. */
static int read_rings(struct reader *reader, const json_t *object, const char *key,
		      struct dump *dump, size_t *used)
{
	const json_t *rings = json_object_get(object, key);

	for (size_t i = 0; i < json_array_size(rings); i++) {
		const json_t *ids = json_array_get(rings, i);
		struct tdt_snapshot_cycle *cycle = &dump->cycles[dump->snapshot.n_cycles];

		*cycle = (struct tdt_snapshot_cycle){ .size = sizeof *cycle,
						      .tasks = &dump->in_cycles[*used],
						      .n = json_array_size(ids),
						      .deadlock = strcmp(key, "deadlocks") == 0,
						      .unproven = strcmp(key, "unproven") == 0 };
		for (size_t k = 0; k < cycle->n; k++) {
			uint64_t id;

			if (!reader_parse_number(json_array_get(ids, k), &id) ||
			    find_task(dump, id) == NULL)
				break;
			dump->in_cycles[(*used)++] = find_task(dump, id);
		}
		if (cycle->n == 0 || &cycle->tasks[cycle->n] != &dump->in_cycles[*used]) {
			snprintf(reader->message, sizeof(reader->message),
				 "%s[%zu]: not an array of ids of tasks in the groups", key, i);
			return -1;
		}
		dump->rings[dump->snapshot.n_cycles++] = cycle;
	}
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
		    number >= deadlocks) {
			snprintf(reader->message, sizeof(reader->message),
				 "groups[%zu].deadlock: not the next deadlock's number", i);
			return -1;
		}
		last = (size_t)number;
		dump->cycles[last].n_groups++;
	}
	return 0;
}

static int read_cycles(struct reader *reader, const json_t *object, struct dump *dump)
{
	static const char *const keys[] = { "deadlocks", "unproven", "rings" };
	size_t used = 0, n = 0, within = 0;

	for (int i = 0; i < 3; i++) {
		const json_t *rings = json_object_get(object, keys[i]);

		if (rings != NULL && !json_is_array(rings))
			return reader_fail(reader, "deadlocks, unproven, rings: not arrays");
		n += json_array_size(rings);
		within += count_within(rings, NULL);
	}
	dump->cycles = calloc(n + 1, sizeof(*dump->cycles));
	dump->rings = calloc(n + 1, sizeof(*dump->rings));
	dump->in_cycles = calloc(within + 1, sizeof(*dump->in_cycles));
	if (dump->cycles == NULL || dump->rings == NULL || dump->in_cycles == NULL ||
	    index_tasks(dump) != 0)
		return reader_fail(reader, strerror(ENOMEM));
	dump->snapshot.cycles = dump->rings;
	if (read_rings(reader, object, "deadlocks", dump, &used) != 0 ||
	    count_deadlock_groups(reader, json_object_get(object, "groups"),
				  dump->snapshot.n_cycles, dump) != 0)
		return -1;
	return read_rings(reader, object, "unproven", dump, &used) != 0
		   ? -1
		   : read_rings(reader, object, "rings", dump, &used);
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

int reader_dump(struct reader *reader, json_t *object, struct dump **result)
{
	const struct json_place place = { .reader = reader,
					  .object = json_object_get(object, "dump"),
					  .name = "dump" };
	struct dump *dump;

	if (!json_is_object(place.object))
		return reader_fail(reader, "dump: not an object");
	dump = calloc(1, sizeof(*dump));
	if (dump == NULL)
		return reader_fail(reader, strerror(ENOMEM));
	dump->snapshot.size = sizeof(dump->snapshot);
	dump->object = json_incref(object);
	if (read_summary(&place, &dump->snapshot) != 0 ||
	    read_process(reader, place.object, dump) != 0 ||
	    read_misuse(reader, json_object_get(object, "misuse"), dump) != 0 ||
	    read_groups(reader, object, dump) != 0 || read_cycles(reader, object, dump) != 0) {
		dump_free(dump);
		return -1;
	}
	*result = dump;
	return 1;
}

/* Add a task of a list to its only group, unless the task has ended. */
static int read_list_entry(struct reader *reader, const json_t *object, struct dump *dump)
{
	const struct json_place place = { .reader = reader,
					  .object = json_object_get(object, "task"),
					  .name = "task" };
	struct tdt_task_info *info = &dump->tasks[dump->n_tasks];

	if (!json_is_object(place.object))
		return reader_fail(reader, "tasks: not objects with a task");
	if (json_object_get(object, "outcome") != NULL)
		return 0;
	if (reader_task(&place, info) != 0)
		return -1;
	dump->in_groups[dump->n_tasks++] = info;
	return 0;
}

static int read_list_entries(struct reader *reader, const json_t *tasks, struct dump *dump)
{
	size_t n = json_array_size(tasks);
	int err = 0;

	if (!json_is_array(tasks))
		return reader_fail(reader, "tasks: not an array");
	if (allocate_groups(dump, 1, n) != 0)
		return reader_fail(reader, strerror(ENOMEM));
	for (size_t i = 0; i < n && err == 0; i++) {
		snprintf(reader->prefix, sizeof(reader->prefix), "tasks[%zu].", i);
		err = read_list_entry(reader, json_array_get(tasks, i), dump);
	}
	reader->prefix[0] = '\0';
	return err;
}

/* Tasks without trees are one group; no group is empty. */
static void group_listed(struct dump *dump)
{
	dump->groups[0] = (struct tdt_snapshot_group){ .size = sizeof dump->groups[0],
						       .answer = TDT_ANSWER_NONE,
						       .tasks = dump->in_groups,
						       .n = dump->n_tasks };
	dump->list[0] = &dump->groups[0];
	dump->snapshot.groups = dump->list;
	dump->snapshot.n_groups = dump->n_tasks != 0;
	dump->snapshot.tasks = dump->snapshot.unanswered = dump->n_tasks;
	dump->snapshot.outside = 1;
}

int reader_list(struct reader *reader, json_t *object, struct dump **result)
{
	const json_t *list = json_object_get(object, "ps");
	struct dump *dump;

	if (!json_is_object(list))
		return reader_fail(reader, "ps: not an object");
	dump = calloc(1, sizeof *dump);
	if (dump == NULL)
		return reader_fail(reader, strerror(ENOMEM));
	dump->snapshot.size = sizeof dump->snapshot;
	dump->object = json_incref(object);
	if (read_process(reader, list, dump) != 0 ||
	    read_list_entries(reader, json_object_get(object, "tasks"), dump) != 0) {
		dump_free(dump);
		return -1;
	}
	group_listed(dump);
	dump->snapshot.recorded = json_object_get(list, "recording") != NULL;
	*result = dump;
	return 1;
}
