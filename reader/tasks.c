// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From records to tasks: times, names, and what a task waits for. */

#include <config.h>

#include "reader/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>
#include <tdt/hooks.h>

#include "base/clock.h"
#include "base/index.h"
#include "base/name.h"
#include "reader/history.h"
#include "tree/futurelocks.h"

#define FILE_NAME_MAX 512
#define FILE_NAMES_MAX ((size_t)16 << 20) /* bytes of all of them */

_Static_assert(TDT__NAME_MAX + 1 == TDT_TASK_RECORD_NAME_SIZE, "names fit");

/* --- Names of files ----------------------------------------------------------------- */

/* Most tasks are spawned in a few files: each name is read once. */
struct file_name {
	uint64_t address;
	const char *name; /* NULL: it cannot be read */
};

struct file_names {
	struct tdt__tasks *tasks;
	struct file_name *entry;
	size_t n, room;
	size_t bytes; /* that the names take */
	struct tdt__index index;
	bool failed; /* there was no memory */
};

static bool grow_names(struct file_names *names)
{
	size_t room = names->room != 0 ? 2 * names->room : 64;
	struct file_name *entry;

	if (names->n < names->room)
		return true;
	entry = realloc(names->entry, room * sizeof *entry);
	if (entry == NULL)
		return false;
	names->entry = entry;
	if (tdt__index_reserve(&names->index, room) != 0)
		return false;
	names->room = room;
	return true;
}

static const char *read_file_name(struct file_names *names, uint64_t address)
{
	char text[FILE_NAME_MAX], *copy;

	if (names->bytes > FILE_NAMES_MAX ||
	    !tdt__images_string(names->tasks->images, address, text, sizeof text))
		return NULL;
	names->bytes += strlen(text) + 1;
	copy = tdt__arena_take(&names->tasks->arena, strlen(text) + 1);
	names->failed = names->failed || copy == NULL;
	return copy != NULL ? strcpy(copy, text) : NULL;
}

/* The name at an address of the target.  NULL: it is unknown. */
static const char *file_name_at(struct file_names *names, uint64_t address)
{
	uint32_t hash = tdt__hash_id(address), i;
	size_t tried = 0;

	if (address == 0)
		return NULL;
	while ((i = tdt__index_next(&names->index, hash, &tried)) != TDT__INDEX_NONE)
		if (names->entry[i].address == address)
			return names->entry[i].name;
	if (!grow_names(names)) {
		names->failed = true;
		return NULL;
	}
	names->entry[names->n] = (struct file_name){ address, read_file_name(names, address) };
	tdt__index_add(&names->index, hash, (uint32_t)names->n);
	return names->entry[names->n++].name;
}

/* --- Names of what tasks wait for --------------------------------------------------- */

#define NAMES_AT_ONCE 256

/* Names to read, and the records of their tasks to read after them. */
struct wait_names {
	const struct tdt__target *target;
	struct tdt__seen_task *task[NAMES_AT_ONCE];
	char name[NAMES_AT_ONCE][TDT_TASK_RECORD_NAME_SIZE];
	struct tdt_task_record after[NAMES_AT_ONCE];
	size_t n;
};

/* A name that lies at the end of mapped memory is shorter than the room for it. */
static size_t name_room(uint64_t address)
{
	size_t to_page_end = 4096 - (size_t)(address % 4096);

	return to_page_end < TDT_TASK_RECORD_NAME_SIZE - 1 ? to_page_end
							   : TDT_TASK_RECORD_NAME_SIZE - 1;
}

/* A core file may end within the room for a name. */
static bool read_alone(struct wait_names *names, size_t i)
{
	return names->target->core != NULL &&
	       tdt__target_string(names->target, names->task[i]->seen->record.wait_name,
				  names->name[i], sizeof names->name[i]);
}

/* A name belongs to the host: it counts only if the task has not been polled meanwhile. */
static void read_wait_names(struct wait_names *names)
{
	struct tdt__memory_range range[2 * NAMES_AT_ONCE];
	size_t n = names->n;

	for (size_t i = 0; i < n; i++) {
		const struct tdt__seen *seen = names->task[i]->seen;

		memset(names->name[i], 0, sizeof names->name[i]);
		range[i] = (struct tdt__memory_range){ seen->record.wait_name, names->name[i],
						name_room(seen->record.wait_name), false };
		range[n + i] = (struct tdt__memory_range){ seen->address, &names->after[i],
						    sizeof names->after[i], false };
	}
	tdt__target_read_ranges(names->target, range, 2 * n);
	for (size_t i = 0; i < n; i++)
		if ((range[i].read || read_alone(names, i)) && range[n + i].read &&
		    tdt__seen_unchanged(names->task[i]->seen, &names->after[i]))
			tdt__name_copy(names->task[i]->wait.name, names->name[i]);
	names->n = 0;
}

static int name_waits(struct tdt__tasks *tasks)
{
	struct wait_names *names = malloc(sizeof *names);

	if (names == NULL)
		return -ENOMEM;
	names->target = tasks->target;
	names->n = 0;
	for (size_t i = 0; i < tasks->n; i++) {
		struct tdt__seen_task *task = &tasks->task[i];

		if (task->member.info.n_waits == 0 || task->seen->record.wait_name == 0)
			continue;
		names->task[names->n++] = task;
		if (names->n == NAMES_AT_ONCE)
			read_wait_names(names);
	}
	read_wait_names(names);
	free(names);
	return 0;
}

/* --- Tasks -------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A core file has no clock: its latest time is the latest time in it. */
static uint64_t target_now(const struct tdt__tasks *tasks)
{
	uint64_t now = tasks->registry.now;

	if (tasks->target->core == NULL)
		return tdt__clock() + (uint64_t)tasks->target->clock_offset;
	for (size_t i = 0; i < tasks->records.n; i++) {
		const struct tdt_task_record *record = &tasks->records.seen[i].record;

		now = later(now, later(record->since, record->woken));
	}
	return now;
}

static uint64_t time_since(uint64_t now, uint64_t then)
{
	return then != 0 && now > then ? now - then : 0;
}

static enum tdt_task_state state_of_seen(const struct tdt__seen *seen)
{
	switch (seen->record.state) {
	case TDT_TASK_RECORD_POLLING:
		return TDT_TASK_RUNNING;
	case TDT_TASK_RECORD_ENDED:
		return seen->record.outcome == TDT_READY ? TDT_TASK_READY : TDT_TASK_PANICKED;
	default:
		return tdt__seen_runnable(seen) ? TDT_TASK_RUNNABLE : TDT_TASK_WAITING;
	}
}

static const char *seen_outcome(const struct tdt_task_record *record)
{
	if (record->state != TDT_TASK_RECORD_ENDED)
		return NULL;
	return record->outcome == TDT_READY     ? "ready"
	       : record->outcome == TDT_PENDING ? "dropped"
						: "panicked";
}

/* The kind comes from the target, so it may be any number. */
static enum tdt_wait_kind seen_kind(uint8_t kind)
{
	return kind <= TDT_WAIT_OTHER ? (enum tdt_wait_kind)kind : TDT_WAIT_OTHER;
}

static void set_info(struct tdt__seen_task *task, const char *file, uint64_t now)
{
	const struct tdt_task_record *record = &task->seen->record;
	struct tdt_trace_info *info = &task->member.info;

	*info = (struct tdt_trace_info){
		.size = sizeof *info,
		.id = record->id,
		.name = record->name[0] != '\0' ? record->name : NULL,
		.file = file,
		.line = record->line,
		.column = record->column,
		.state = state_of_seen(task->seen),
		.state_ns = time_since(now, record->since),
		.polls = record->polls,
		.parent = record->parent,
		.woken_ns = time_since(now, record->woken),
		.woken_by = record->woken_by,
		.requested = record->own_bits / 2,
		.spawned_ns = time_since(now, record->spawned),
		.polled_ns = time_since(now, record->since),
	};
	if (info->state == TDT_TASK_RUNNABLE)
		info->state_ns = info->woken_ns;
	if (info->state == TDT_TASK_RUNNING)
		info->thread = record->thread;
}

static void set_task(struct tdt__seen_task *task, const struct tdt__seen *seen, const char *file,
		     uint64_t now)
{
	*task = (struct tdt__seen_task){ .seen = seen };
	task->member.group = TDT__LEFT_OUT;
	set_info(task, file, now);
	task->outcome = seen_outcome(&seen->record);
	task->wait = (struct tdt_wait){ .kind = seen_kind(seen->record.wait_kind),
					.object = seen->record.wait_object,
					.owner = seen->record.wait_owner };
	if (task->member.info.state == TDT_TASK_WAITING && tdt__seen_waits(seen)) {
		task->member.info.n_waits = 1;
		task->member.info.waits = &task->wait;
	}
}

/* --- Locks -------------------------------------------------------------------------- */

static bool read_target(void *arg, uint64_t address, void *to, size_t size)
{
	const struct tdt__tasks *tasks = arg;

	return tdt__target_read(tasks->target, address, to, size);
}

static struct tdt__member *seen_member(void *arg, size_t index)
{
	const struct tdt__tasks *tasks = arg;

	return &tasks->task[index].member;
}

static struct tdt__lock_places seen_locks(struct tdt__tasks *tasks)
{
	return (struct tdt__lock_places){ .arg = tasks,
					  .read = read_target,
					  .member = seen_member,
					  .n = tasks->n,
					  .now = tasks->now };
}

/* A task that waits is not polled when its lock passes from one owner to the next. */
static void renew_waits(struct tdt__tasks *tasks)
{
	struct tdt__lock_places places = seen_locks(tasks);

	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->task[i].member.info.n_waits != 0)
			tdt__lock_renew(&places, &tasks->task[i].wait,
					tasks->task[i].member.info.id);
}

/* --- All tasks ---------------------------------------------------------------------- */

static int set_tasks(struct tdt__tasks *tasks)
{
	struct file_names names = { .tasks = tasks };

	tasks->now = target_now(tasks);
	tasks->n = tasks->records.n;
	tasks->task = malloc((tasks->n + 1) * sizeof tasks->task[0]);
	if (tasks->task == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt__seen *seen = &tasks->records.seen[i];

		set_task(&tasks->task[i], seen, file_name_at(&names, seen->record.file),
			 tasks->now);
	}
	free(names.entry);
	tdt__index_fini(&names.index);
	renew_waits(tasks);
	return names.failed ? -ENOMEM : name_waits(tasks);
}

int tdt__tasks_read(struct tdt__tasks *tasks, struct tdt__target *target,
		    struct tdt__images *images, const struct tdt__found *found)
{
	int error;

	*tasks = (struct tdt__tasks){ .target = target,
				      .images = images,
				      .registry = found->registry };
	tdt__history_counters(target, &found->registry, &tasks->counters);
	error = tdt__records_read(&tasks->records, target, &found->registry);
	if (error == 0)
		error = set_tasks(tasks);
	if (error != 0)
		tdt__tasks_fini(tasks);
	return error;
}

void tdt__tasks_fini(struct tdt__tasks *tasks)
{
	free(tasks->task);
	tdt__records_fini(&tasks->records);
	tdt__arena_fini(&tasks->arena);
	*tasks = (struct tdt__tasks){ 0 };
}

/* --- Proofs ------------------------------------------------------------------------- */

/* Whether `wait` is for the end of a task, or for a lock that its `owner` holds now. */
static bool is_owned_now(const struct tdt__target *target, const struct tdt_wait *wait)
{
	struct tdt_lock lock;

	if (wait->kind == TDT_WAIT_TASK)
		return true;
	return wait->kind == TDT_WAIT_MUTEX &&
	       tdt__target_read(target, wait->object, &lock, sizeof lock) &&
	       memcmp(lock.magic, TDT_LOCK_MAGIC, sizeof lock.magic) == 0 &&
	       lock.owner == wait->owner;
}

/*
 * Whether the runtime reports wake-ups, so that a task without one was not woken.  It did so once;
 * or the task was polled only once but for requests, and other wake-ups were reported.
 */
static bool reports_wake_ups(const struct tdt_task_record *record, bool others)
{
	uint64_t requested = record->own_bits / 2; /* modulo 128 */

	return record->woken != 0 ||
	       (others && record->polls < 128 && (record->polls - requested) % 128 == 1);
}

/*
 * A record proves for what the only leaf of its task waits.  How many leaves there are is known
 * from a tree of the last poll; otherwise leaves that report nothing are overlooked.  A task that
 * has answered a request counts also if its runtime reports no wake-ups, as in the process's own
 * dumps.
 */
static bool proves(const struct tdt__tasks *tasks, const struct tdt__seen_task *task, bool wakes)
{
	const struct tdt_trace_info *info = &task->member.info;
	bool tree = info->leaves + info->leaves_elsewhere + info->leaves_lost != 0;
	struct tdt_task_record later;

	if (info->n_waits == 0 || task->wait.owner == 0 || task->seen->record.wait_count != 1 ||
	    !(task->answered || reports_wake_ups(&task->seen->record, wakes)))
		return false;
	if (tree && info->polls_since == 0 && info->leaves + info->leaves_elsewhere != 1)
		return false;
	return tdt__target_read(tasks->target, task->seen->address, &later, sizeof later) &&
	       tdt__seen_unchanged(task->seen, &later) && is_owned_now(tasks->target, &task->wait);
}

/* Until when the task is known to have been polled after each wake-up: see struct tdt__member. */
static uint64_t settled_at(const struct tdt__tasks *tasks, const struct tdt__seen_task *task,
			   bool wakes)
{
	const struct tdt_task_record *record = &task->seen->record;

	if (task->member.info.state != TDT_TASK_WAITING || record->polls == 0)
		return 0;
	if (reports_wake_ups(record, wakes))
		return tasks->now;
	return later(task->answered_at, record->since);
}

void tdt__tasks_prove(struct tdt__tasks *tasks)
{
	struct tdt__lock_places places = seen_locks(tasks);
	bool wakes = false;

	for (size_t i = 0; i < tasks->n; i++)
		wakes = wakes || tasks->records.seen[i].record.woken != 0;
	for (size_t i = 0; i < tasks->n; i++)
		tasks->task[i].member.settled = settled_at(tasks, &tasks->task[i], wakes);
	tdt__futurelocks_find(&places);
	for (size_t i = 0; i < tasks->n; i++)
		if (proves(tasks, &tasks->task[i], wakes))
			tasks->task[i].member.proof =
				tasks->task[i].answered ? TDT__BY_POLL : TDT__BY_RECORD;
		else
			tasks->task[i].member.proof = TDT__UNSURE;
}

/* --- Rings -------------------------------------------------------------------------- */

static enum tdt__proof proof_of_task(const struct tdt_trace_info *info)
{
	return ((const struct tdt__member *)(const void *)info)->proof;
}

int tdt__tasks_rings(struct tdt__cycles *cycles, struct tdt__tasks *tasks)
{
	const struct tdt_trace_info **infos = malloc((tasks->n + 1) * sizeof *infos);
	size_t n = 0;

	if (infos == NULL)
		return -ENOMEM;
	if (tasks->target != NULL)
		tdt__tasks_prove(tasks);
	for (size_t i = 0; i < tasks->n; i++)
		if (tasks->task[i].outcome == NULL)
			infos[n++] = &tasks->task[i].member.info;
	tdt__cycles_find(cycles, infos, n, proof_of_task);
	free(infos);
	return 0;
}
