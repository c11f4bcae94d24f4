// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reads a trace, or a snapshot of many tasks, from JSON.  The file may be cut, damaged or hostile,
 * so everything in it is checked before it is used.  Members that are not in the schema are
 * ignored, because later versions may add some.  Members that are in the schema must be right.
 */

#include <config.h>

#include "cli/read_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tree-printer/schema.h"

/*
 * Whether jansson ran out of memory.  Its lexer (2.14) does not check for that when it saves the
 * text of a token; the text that it returns then lacks some characters.
 */
static bool no_memory;

static void *allocate_json(size_t size)
{
	void *memory = malloc(size);

	if (memory == NULL)
		no_memory = true;
	return memory;
}

/* The current place in the object: "task" or "nodes[7]". */
struct json_place {
	struct reader *reader;
	const json_t *object;
	char name[32];
};

static int fail(struct reader *reader, const char *message)
{
	snprintf(reader->message, sizeof(reader->message), "%s", message);
	return -1;
}

static int fail_at(const struct json_place *place, const char *key, const char *what)
{
	snprintf(place->reader->message, sizeof(place->reader->message), "%s%s.%s: %s",
		 place->reader->prefix, place->name, key, what);
	return -1;
}

static int read_byte(struct reader *reader)
{
	int byte = getc(reader->file);

	if (byte == '\n') {
		reader->line++;
		reader->column = 0;
	} else if (byte != EOF) {
		reader->column++;
	}
	return byte;
}

/* Reads byte by byte, so that no byte of the next object is read with this one. */
static size_t read_for_jansson(void *buffer, size_t size, void *reader)
{
	int byte = read_byte(reader);

	(void)size;
	if (byte == EOF)
		return 0;
	*(char *)buffer = (char)byte;
	return 1;
}

/* Skip to the next object.  Returns 1; 0: there is none; or -1: reading failed. */
static int skip_json_space(struct reader *reader)
{
	int byte;

	do
		byte = read_byte(reader);
	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
	if (byte == EOF)
		return ferror(reader->file) ? fail(reader, strerror(errno)) : 0;
	ungetc(byte, reader->file);
	reader->column--;
	return 1;
}

/* Parse a string that has only digits of `base`. */
static bool parse_digits(const char *digits, int base, uint64_t *value)
{
	size_t n = strspn(digits, base == 10 ? "0123456789" : "0123456789abcdefABCDEF");

	errno = 0;
	*value = strtoull(digits, NULL, base);
	return n > 0 && digits[n] == '\0' && errno == 0;
}

/* Parse a whole number, or a string of digits, which writers use for large numbers. */
static bool parse_number(const json_t *json, uint64_t *value)
{
	*value = (uint64_t)json_integer_value(json);
	if (json_is_string(json))
		return parse_digits(json_string_value(json), 10, value);
	return json_is_integer(json) && json_integer_value(json) >= 0;
}

/* Get a number that may be left out, and is 0 then. */
static int get_number(const struct json_place *place, const char *key, uint64_t max,
		      uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = 0;
	if (json == NULL || (parse_number(json, value) && *value <= max))
		return 0;
	return fail_at(place, key,
		       max == UINT64_MAX ? "not a whole number from 0 to 2^64 - 1"
					 : "not a whole number from 0 to 2^32 - 1");
}

static int get_u32(const struct json_place *place, const char *key, uint32_t *value)
{
	uint64_t number;
	int err = get_number(place, key, UINT32_MAX, &number);

	*value = (uint32_t)number;
	return err;
}

static int get_address(const struct json_place *place, const char *key, uint64_t *value)
{
	const json_t *json = json_object_get(place->object, key);
	const char *digits = json_string_value(json);

	*value = 0;
	if (json == NULL)
		return 0;
	if (digits != NULL && digits[0] == '0' && digits[1] == 'x' &&
	    parse_digits(digits + 2, 16, value))
		return 0;
	return fail_at(place, key, "not a string of a 64-bit hexadecimal number as \"0x1f\"");
}

static int get_string(const struct json_place *place, const char *key, const char **value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_string_value(json);
	return json == NULL || *value != NULL ? 0 : fail_at(place, key, "not a string");
}

static int get_flag(const struct json_place *place, const char *key, uint8_t *value)
{
	const json_t *json = json_object_get(place->object, key);

	*value = json_is_true(json);
	return json == NULL || json_is_boolean(json) ? 0 : fail_at(place, key, "not true or false");
}

#define N_WORDS(words) (sizeof(words) / sizeof((words)[0]))

/* Get one of the `n` words, as its index. */
static int get_word(const struct json_place *place, const char *key, const char *const *words,
		    size_t n, unsigned int *value)
{
	const json_t *json = json_object_get(place->object, key);

	for (*value = 0; *value < n && json_is_string(json); ++*value)
		if (words[*value] != NULL && strcmp(words[*value], json_string_value(json)) == 0)
			return 0;
	return fail_at(place, key,
		       json == NULL ? "is missing" : "not a word that this version knows");
}

static int require(const struct json_place *place, const char *key)
{
	return json_object_get(place->object, key) != NULL ? 0 : fail_at(place, key, "is missing");
}

/*
 * Read what the task waits for into an array, which the caller frees.  The names of the owners are
 * behind it, in the same block of memory.
 */
static int read_waits(const struct json_place *task, struct tdt_wait **waits, uint32_t *n,
		      const char *const **owner_names)
{
	const json_t *array = json_object_get(task->object, "waits");
	const char **names;

	*waits = NULL;
	*owner_names = NULL;
	*n = (uint32_t)json_array_size(array);
	if (array != NULL && (!json_is_array(array) || json_array_size(array) > UINT32_MAX))
		return fail_at(task, "waits", "not an array");
	if (*n == 0)
		return 0;
	*waits = calloc(*n, sizeof(**waits) + sizeof(*names));
	if (*waits == NULL)
		return fail(task->reader, strerror(ENOMEM));
	names = (const char **)(*waits + *n);
	*owner_names = names;
	for (uint32_t i = 0; i < *n; i++) {
		struct json_place place = { .reader = task->reader,
					    .object = json_array_get(array, i) };
		const char *name;
		unsigned int kind;

		snprintf(place.name, sizeof(place.name), "%.12s.waits[%" PRIu32 "]", task->name, i);
		if (get_word(&place, "kind", wait_words, N_WORDS(wait_words), &kind) ||
		    get_address(&place, "object", &(*waits)[i].object) ||
		    get_number(&place, "owner", UINT64_MAX, &(*waits)[i].owner) ||
		    get_string(&place, "owner_name", &names[i]) ||
		    get_string(&place, "name", &name)) {
			free(*waits);
			*waits = NULL;
			return -1;
		}
		(*waits)[i].kind = (enum tdt_wait_kind)kind;
		if (name != NULL)
			snprintf((*waits)[i].name, sizeof((*waits)[i].name), "%s", name);
	}
	return 0;
}

/* Read a task.  The caller frees `*waits`; the strings belong to the JSON object. */
static int read_task(const struct json_place *place, struct tdt_trace_info *info,
		     struct tdt_wait **waits)
{
	unsigned int state;

	*waits = NULL;
	*info = (struct tdt_trace_info){ .size = sizeof(*info) };
	if (require(place, "id") || get_number(place, "id", UINT64_MAX, &info->id) ||
	    get_string(place, "name", &info->name) || get_string(place, "file", &info->file) ||
	    get_u32(place, "line", &info->line) || get_u32(place, "column", &info->column) ||
	    get_word(place, "state", state_words, N_WORDS(state_words), &state) ||
	    get_number(place, "state_ns", UINT64_MAX, &info->state_ns) ||
	    get_number(place, "polls", UINT64_MAX, &info->polls) ||
	    get_u32(place, "leaves", &info->leaves) ||
	    get_u32(place, "leaves_unsure", &info->leaves_unsure) ||
	    get_u32(place, "leaves_elsewhere", &info->leaves_elsewhere) ||
	    get_u32(place, "leaves_lost", &info->leaves_lost) ||
	    get_number(place, "parent", UINT64_MAX, &info->parent) ||
	    get_number(place, "woken_ns", UINT64_MAX, &info->woken_ns) ||
	    get_number(place, "woken_by", UINT64_MAX, &info->woken_by) ||
	    get_number(place, "age_ns", UINT64_MAX, &info->age_ns) ||
	    get_number(place, "polls_since", UINT64_MAX, &info->polls_since) ||
	    get_u32(place, "thread", &info->thread) ||
	    get_string(place, "syscall", &info->syscall) ||
	    read_waits(place, waits, &info->n_waits, &info->owner_names))
		return -1;
	info->state = (enum tdt_task_state)state;
	info->waits = *waits;
	return 0;
}

/* How many other names of a function are read; further names are ignored. */
#define ALSO_MAX 4

/* Read the other names into `also`, to which the frame then points. */
static int read_also(const struct json_place *place, struct tdt_frame *frame,
		     const char *also[ALSO_MAX + 1])
{
	const json_t *array = json_object_get(place->object, "also");
	size_t n = 0;

	if (array != NULL && !json_is_array(array))
		return fail_at(place, "also", "not an array");
	for (; n < json_array_size(array) && n < ALSO_MAX; n++) {
		also[n] = json_string_value(json_array_get(array, n));
		if (also[n] == NULL)
			return fail_at(place, "also", "not an array of strings");
	}
	also[n] = NULL;
	if (n > 0)
		frame->also = also;
	return 0;
}

static int read_json_frame(const struct json_place *place, struct tdt_frame *frame)
{
	unsigned int cut;

	if (frame->kind == TDT_NODE_CUT) {
		if (get_word(place, "cut", cut_words, N_WORDS(cut_words), &cut))
			return -1;
		frame->cut = (enum tdt_cut)cut;
		return 0;
	}
	if (get_address(place, "pc", &frame->pc) ||
	    get_string(place, "function", &frame->function) ||
	    get_string(place, "file", &frame->file) ||
	    get_string(place, "directory", &frame->directory) ||
	    get_u32(place, "line", &frame->line) || get_u32(place, "column", &frame->column) ||
	    get_string(place, "module", &frame->module) ||
	    get_address(place, "module_offset", &frame->module_offset) ||
	    get_string(place, "symbol", &frame->symbol) ||
	    get_address(place, "symbol_offset", &frame->symbol_offset) ||
	    get_string(place, "build_id", &frame->build_id) ||
	    get_flag(place, "inlined", &frame->inlined) ||
	    get_flag(place, "guessed", &frame->guessed) ||
	    get_flag(place, "unnamed", &frame->unnamed))
		return -1;
	return 0;
}

/*
 * Read node `i`.  Its id must be `i`, and its parent's id must be less, so that the parent has been
 * read, and there can be no cycle.
 */
static int read_node(const struct json_place *place, size_t i, struct tdt_trace *trace,
		     const struct tdt_node **nodes)
{
	struct tdt_frame frame = { .size = sizeof(struct tdt_frame), .kind = TDT_NODE_TASK };
	const char *also[ALSO_MAX + 1];
	uint64_t id, parent;
	uint32_t leaves;
	unsigned int kind;

	if (require(place, "id") || get_number(place, "id", UINT64_MAX, &id) ||
	    get_word(place, "kind", kind_words, N_WORDS(kind_words), &kind))
		return -1;
	if (id != i)
		return fail_at(place, "id", "not the node's index");
	if ((kind == TDT_NODE_TASK) != (i == 0))
		return fail_at(place, "kind", "the first node and no other is the task");
	if (i == 0) {
		nodes[0] = tdt_trace_root(trace);
		return 0;
	}
	frame.kind = (enum tdt_node_kind)kind;
	if (require(place, "parent") || get_number(place, "parent", UINT64_MAX, &parent) ||
	    get_u32(place, "leaves", &leaves))
		return -1;
	if (parent >= i)
		return fail_at(place, "parent", "not the id of a node before this one");
	if (read_json_frame(place, &frame) != 0 || read_also(place, &frame, also) != 0)
		return -1;
	nodes[i] = tdt_trace_add(trace, nodes[parent], &frame, leaves);
	return nodes[i] != NULL ? 0 : fail(place->reader, strerror(errno));
}

static int read_nodes(struct reader *reader, const json_t *array, struct tdt_trace *trace)
{
	const struct tdt_node **nodes;
	size_t n = json_array_size(array);
	int err = 0;

	if (!json_is_array(array) || n == 0) {
		snprintf(reader->message, sizeof(reader->message),
			 "%snodes: not an array with the task as its first node", reader->prefix);
		return -1;
	}
	nodes = calloc(n, sizeof(const struct tdt_node *));
	if (nodes == NULL)
		return fail(reader, strerror(ENOMEM));
	for (size_t i = 0; i < n && err == 0; i++) {
		struct json_place place = { .reader = reader, .object = json_array_get(array, i) };

		snprintf(place.name, sizeof(place.name), "nodes[%zu]", i);
		err = read_node(&place, i, trace, nodes);
	}
	free(nodes);
	return err;
}

/* Read the tree of the task that `info` describes.  NULL: it failed, and `message` says why. */
static struct tdt_trace *read_tree(struct reader *reader, const json_t *nodes,
				   const struct tdt_trace_info *info)
{
	struct tdt_trace *trace = tdt_trace_new(info);

	if (trace == NULL) {
		fail(reader, strerror(errno));
	} else if (read_nodes(reader, nodes, trace) != 0) {
		tdt_trace_free(trace);
		trace = NULL;
	}
	return trace;
}

static int read_trace(struct reader *reader, const json_t *object, struct tdt_trace **trace)
{
	const struct json_place task = { .reader = reader,
					 .object = json_object_get(object, "task"),
					 .name = "task" };
	struct tdt_trace_info info;
	struct tdt_wait *waits;

	if (!json_is_object(task.object))
		return fail(reader, "task: not an object");
	if (read_task(&task, &info, &waits) != 0)
		return -1;
	*trace = read_tree(reader, json_object_get(object, "nodes"), &info);
	free(waits);
	return *trace != NULL ? 1 : -1;
}

/* ---- Dumps ---- */

struct dump {
	struct tdt_snapshot snapshot;
	json_t *object; /* it owns all strings */
	struct tdt_snapshot_group *groups; /* the panics come last */
	struct tdt_snapshot_cycle *cycles;
	struct tdt_trace_info *tasks;            /* of all groups, one group after the other */
	const struct tdt_trace_info **in_groups; /* pointers to them, in the same order */
	const struct tdt_trace_info **by_id;     /* pointers to them, sorted by id */
	const struct tdt_trace_info **in_cycles; /* of all cycles, one cycle after the other */
	size_t n_tasks;
};

void dump_free(struct dump *dump)
{
	if (dump == NULL)
		return;
	for (size_t i = 0; i < dump->snapshot.n_groups + dump->snapshot.n_panics; i++)
		tdt_trace_free((struct tdt_trace *)(uintptr_t)dump->groups[i].trace);
	for (size_t i = 0; i < dump->n_tasks; i++)
		free((void *)(uintptr_t)dump->tasks[i].waits);
	free(dump->groups);
	free(dump->cycles);
	free(dump->tasks);
	free(dump->in_groups);
	free(dump->by_id);
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

static int read_group(struct reader *reader, const json_t *object, struct dump *dump)
{
	struct tdt_snapshot_group *group = &dump->groups[dump->snapshot.n_groups];
	const struct json_place place = { .reader = reader, .object = object, .name = "group" };
	const json_t *tasks = json_object_get(object, "tasks"),
		     *nodes = json_object_get(object, "nodes");
	struct tdt_trace_info *first = &dump->tasks[dump->n_tasks];
	unsigned int answer;

	if (get_word(&place, "answer", answer_words, N_WORDS(answer_words), &answer))
		return -1;
	if (!json_is_array(tasks) || json_array_size(tasks) == 0)
		return fail_at(&place, "tasks", "not an array with a task at least");
	*group = (struct tdt_snapshot_group){ .answer = (enum tdt_answer)answer,
					      .tasks = &dump->in_groups[dump->n_tasks],
					      .n = json_array_size(tasks) };
	dump->snapshot.n_groups++;
	for (size_t i = 0; i < group->n; i++) {
		struct json_place task = { .reader = reader, .object = json_array_get(tasks, i) };
		struct tdt_wait *waits;

		snprintf(task.name, sizeof(task.name), "tasks[%zu]", i);
		if (read_task(&task, &dump->tasks[dump->n_tasks], &waits) != 0)
			return -1;
		dump->in_groups[dump->n_tasks] = &dump->tasks[dump->n_tasks];
		dump->n_tasks++;
	}
	if (nodes == NULL && group->answer != TDT_ANSWER_NONE)
		return fail_at(&place, "nodes", "is missing");
	if (nodes != NULL)
		group->trace = read_tree(reader, nodes, first);
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

/* The tasks that panicked are written as groups of one task each. */
static int read_panics(struct reader *reader, const json_t *panics, struct dump *dump)
{
	size_t before = dump->snapshot.n_groups;

	if (read_array(reader, panics, "panics", dump) != 0)
		return -1;
	dump->snapshot.panics = &dump->groups[before];
	dump->snapshot.n_panics = dump->snapshot.n_groups - before;
	dump->snapshot.n_groups = before;
	for (size_t i = 0; i < dump->snapshot.n_panics; i++)
		if (dump->groups[before + i].n != 1 || dump->groups[before + i].trace == NULL)
			return fail(reader, "panics: not one task with a tree each");
	return 0;
}

static int read_groups(struct reader *reader, const json_t *object, struct dump *dump)
{
	const json_t *groups = json_object_get(object, "groups"),
		     *panics = json_object_get(object, "panics");
	size_t n = json_array_size(groups) + json_array_size(panics);
	size_t tasks = count_within(groups, "tasks") + count_within(panics, "tasks");

	if (!json_is_array(groups) || (panics != NULL && !json_is_array(panics)))
		return fail(reader, panics == NULL || json_is_array(panics)
					? "groups: not an array"
					: "panics: not an array");
	dump->groups = calloc(n + 1, sizeof(*dump->groups));
	dump->tasks = calloc(tasks + 1, sizeof(*dump->tasks));
	dump->in_groups = calloc(tasks + 1, sizeof(*dump->in_groups));
	if (dump->groups == NULL || dump->tasks == NULL || dump->in_groups == NULL)
		return fail(reader, strerror(ENOMEM));
	dump->snapshot.groups = dump->groups;
	if (read_array(reader, groups, "groups", dump) != 0)
		return -1;
	return read_panics(reader, panics, dump);
}

static int compare_ids(const void *a, const void *b)
{
	const struct tdt_trace_info *const *one = a, *const *other = b;

	/* Tasks with the same id keep their order, so that the first one is always found. */
	if ((*one)->id == (*other)->id)
		return (*one > *other) - (*one < *other);
	return (*one)->id < (*other)->id ? -1 : 1;
}

static const struct tdt_trace_info *find_task(const struct dump *dump, uint64_t id)
{
	size_t low = 0, high = dump->n_tasks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (dump->by_id[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < dump->n_tasks && dump->by_id[low]->id == id ? dump->by_id[low] : NULL;
}

/* Read the cycles under `key`, which are arrays of ids.  Adds the number of ids to `*used`. */
static int read_rings(struct reader *reader, const json_t *object, const char *key,
		      struct dump *dump, size_t *used)
{
	const json_t *rings = json_object_get(object, key);

	for (size_t i = 0; i < json_array_size(rings); i++) {
		const json_t *ids = json_array_get(rings, i);
		struct tdt_snapshot_cycle *cycle = &dump->cycles[dump->snapshot.n_cycles];

		*cycle = (struct tdt_snapshot_cycle){ .tasks = &dump->in_cycles[*used],
						      .n = json_array_size(ids),
						      .deadlock = strcmp(key, "deadlocks") == 0 };
		for (size_t k = 0; k < cycle->n; k++) {
			uint64_t id;

			if (!parse_number(json_array_get(ids, k), &id) ||
			    find_task(dump, id) == NULL)
				break;
			dump->in_cycles[(*used)++] = find_task(dump, id);
		}
		if (cycle->n == 0 || &cycle->tasks[cycle->n] != &dump->in_cycles[*used]) {
			snprintf(reader->message, sizeof(reader->message),
				 "%s[%zu]: not an array of ids of tasks in the groups", key, i);
			return -1;
		}
		dump->snapshot.n_cycles++;
	}
	return 0;
}

static int read_from_records(struct reader *reader, const json_t *numbers, size_t deadlocks,
			     struct dump *dump)
{
	for (size_t i = 0; i < json_array_size(numbers); i++) {
		uint64_t number;

		if (!parse_number(json_array_get(numbers, i), &number) || number >= deadlocks) {
			snprintf(reader->message, sizeof(reader->message),
				 "from_records[%zu]: not the number of a deadlock", i);
			return -1;
		}
		dump->cycles[number].records = 1;
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
		if (!parse_number(deadlock, &number) || number < last || number >= deadlocks) {
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
	const json_t *deadlocks = json_object_get(object, "deadlocks"),
		     *rings = json_object_get(object, "rings");
	size_t used = 0;

	if ((deadlocks != NULL && !json_is_array(deadlocks)) ||
	    (rings != NULL && !json_is_array(rings)))
		return fail(reader, "deadlocks, rings: not arrays");
	dump->by_id = calloc(dump->n_tasks + 1, sizeof(*dump->by_id));
	dump->cycles =
	    calloc(json_array_size(deadlocks) + json_array_size(rings) + 1, sizeof(*dump->cycles));
	dump->in_cycles = calloc(count_within(deadlocks, NULL) + count_within(rings, NULL) + 1,
				 sizeof(*dump->in_cycles));
	if (dump->by_id == NULL || dump->cycles == NULL || dump->in_cycles == NULL)
		return fail(reader, strerror(ENOMEM));
	dump->snapshot.cycles = dump->cycles;
	memcpy(dump->by_id, dump->in_groups, dump->n_tasks * sizeof(*dump->by_id));
	qsort(dump->by_id, dump->n_tasks, sizeof(*dump->by_id), compare_ids);
	if (read_rings(reader, object, "deadlocks", dump, &used) != 0 ||
	    read_from_records(reader, json_object_get(object, "from_records"),
			      dump->snapshot.n_cycles, dump) != 0 ||
	    count_deadlock_groups(reader, json_object_get(object, "groups"),
				  dump->snapshot.n_cycles, dump) != 0)
		return -1;
	return read_rings(reader, object, "rings", dump, &used);
}

static int read_summary(const struct json_place *place, struct tdt_snapshot *snapshot)
{
	uint64_t tasks, lost, answers[4];

	if (get_number(place, "took_ns", UINT64_MAX, &snapshot->took_ns) ||
	    get_number(place, "tasks", SIZE_MAX, &tasks) ||
	    get_number(place, "lost", SIZE_MAX, &lost) ||
	    get_number(place, "panicked", UINT64_MAX, &snapshot->panicked))
		return -1;
	for (int i = TDT_ANSWER_FRESH; i <= TDT_ANSWER_NONE; i++) {
		if (get_number(place, answer_words[i], SIZE_MAX, &answers[i]))
			return -1;
		snapshot->answers[i] = (size_t)answers[i];
	}
	snapshot->tasks = (size_t)tasks;
	snapshot->lost = (size_t)lost;
	return 0;
}

static int read_dump(struct reader *reader, json_t *object, struct dump **result)
{
	const struct json_place place = { .reader = reader,
					  .object = json_object_get(object, "dump"),
					  .name = "dump" };
	struct dump *dump;

	if (!json_is_object(place.object))
		return fail(reader, "dump: not an object");
	dump = calloc(1, sizeof(*dump));
	if (dump == NULL)
		return fail(reader, strerror(ENOMEM));
	dump->snapshot.size = sizeof(dump->snapshot);
	dump->object = json_incref(object);
	if (read_summary(&place, &dump->snapshot) != 0 ||
	    read_groups(reader, object, dump) != 0 ||
	    read_cycles(reader, object, dump) != 0) {
		dump_free(dump);
		return -1;
	}
	*result = dump;
	return 1;
}

/* ---- Traces and dumps ---- */

static int read_object(struct reader *reader, json_t *object, struct tdt_trace **trace,
		       struct dump **dump)
{
	const json_t *schema = json_object_get(object, "tdt");

	if (!json_is_integer(schema))
		return fail(reader, "not a trace: an object with \"tdt\", the schema's version, "
				    "was expected");
	if (json_integer_value(schema) != SCHEMA) {
		snprintf(reader->message, sizeof(reader->message),
			 "schema version %" JSON_INTEGER_FORMAT ": this program knows version %d",
			 json_integer_value(schema), SCHEMA);
		return -1;
	}
	if (json_object_get(object, "dump") == NULL)
		return read_trace(reader, object, trace);
	return dump != NULL ? read_dump(reader, object, dump)
			    : fail(reader, "a dump of many tasks, not a trace of one");
}

int reader_next(struct reader *reader, struct tdt_trace **trace)
{
	return reader_next_of_both(reader, trace, NULL);
}

int reader_next_of_both(struct reader *reader, struct tdt_trace **trace, struct dump **dump)
{
	struct reader start;
	json_error_t error;
	json_t *object;
	int result;

	*trace = NULL;
	if (dump != NULL)
		*dump = NULL;
	if (reader->line == 0)
		reader->line = 1;
	result = skip_json_space(reader);
	if (result <= 0)
		return result;
	start = *reader;
	no_memory = false;
	json_set_alloc_funcs(allocate_json, free);
	object = json_load_callback(read_for_jansson, reader,
				    JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
	if (object == NULL)
		return fail(reader, ferror(reader->file) ? strerror(errno)
				    : no_memory          ? strerror(ENOMEM)
							 : error.text);
	result = no_memory ? fail(reader, strerror(ENOMEM))
			   : read_object(reader, object, trace, dump);
	if (result < 0) {
		reader->line = start.line;
		reader->column = start.column + 1;
	}
	json_decref(object);
	return result;
}
