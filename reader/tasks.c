// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From records to tasks: times, names, and what a task waits for. */

#include "reader/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/name.h"
#include "facts/busy.h"
#include "facts/proof.h"
#include "facts/record.h"
#include "facts/task.h"
#include "reader/fresh.h"
#include "reader/history.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"
#include "tree/futurelocks.h"
#include "tree/waits.h"

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
	TDT__TABLE(struct file_name, entry, n);
	size_t bytes; /* that the names take */
	uint64_t deadline; /* of functions */
	bool failed; /* there was no memory */
};

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

/* What `read` finds at an address of the target.  NULL: it is unknown. */
static const char *name_at(struct file_names *names, uint64_t address,
			   const char *(*read)(struct file_names *names, uint64_t address))
{
	struct file_name entry = { .address = address };
	uint32_t hash = tdt__hash_id(address), i;

	if (address == 0)
		return NULL;
	TDT__INDEX_EACH (i, &names->entry_table.index, hash)
		if (names->entry[i].address == address)
			return names->entry[i].name;
	entry.name = read(names, address);
	if (tdt__table_add(&names->entry_table, hash, &entry, sizeof entry) == TDT__INDEX_NONE)
		names->failed = true;
	return entry.name;
}

/* --- Names of what tasks wait for --------------------------------------------------- */

#define NAMES_AT_ONCE 256

/* Names to read, and the records of their tasks to read after them. */
struct wait_names {
	struct tdt__images *images;
	struct tdt__seen_task *task[NAMES_AT_ONCE];
	char name[NAMES_AT_ONCE][TDT_TASK_RECORD_NAME_SIZE];
	struct tdt_task_record after[NAMES_AT_ONCE];
	size_t n;
};

/* Memory may end within the room for a name, and a core file may lack what a file has. */
static bool read_alone(struct wait_names *names, size_t i)
{
	const struct tdt__seen *seen = names->task[i]->seen;

	return tdt__images_string(names->images, seen->record.wait_name, names->name[i],
				  sizeof names->name[i]) &&
	       tdt__target_read(names->images->target, seen->address, &names->after[i],
				sizeof names->after[i]);
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
						sizeof names->name[i] - 1, false };
		range[n + i] = (struct tdt__memory_range){ seen->address, &names->after[i],
						    sizeof names->after[i], false };
	}
	tdt__target_read_ranges(names->images->target, range, 2 * n);
	for (size_t i = 0; i < n; i++)
		if (((range[i].read && range[n + i].read) || read_alone(names, i)) &&
		    tdt__seen_unchanged(names->task[i]->seen, &names->after[i]))
			tdt__name_copy(names->task[i]->wait.name, names->name[i]);
	names->n = 0;
}

static int name_waits(const struct tdt__tasks *tasks, struct tdt__seen_task *task, size_t n)
{
	struct wait_names *names = malloc(sizeof *names);

	if (names == NULL)
		return -ENOMEM;
	names->images = tasks->images;
	names->n = 0;
	for (; n > 0; n--, task++) {
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

#define MOST_THREADS 65536

static uint64_t latest_of_threads(const struct tdt__tasks *tasks)
{
	const struct tdt_registry *registry = &tasks->registry;
	struct tdt_registry_thread thread;
	uint64_t latest = 0, address;

	for (uint32_t i = 0; i < registry->n_threads && i < MOST_THREADS; i++)
		if (tdt__target_read(tasks->target, registry->threads + i * sizeof address,
				     &address, sizeof address) &&
		    address != 0 &&
		    tdt__target_read(tasks->target, address, &thread, sizeof thread) &&
		    thread.id % registry->n_threads == i)
			latest = later(latest, later(thread.now, thread.parked));
	return latest;
}

/* A core file has no clock: the time is at least the latest time in it. */
static uint64_t target_now(const struct tdt__tasks *tasks)
{
	uint64_t now = tasks->registry.now;

	if (tasks->target->core == NULL)
		return tdt__clock() + (uint64_t)tasks->target->clock_offset;
	now = later(now, latest_of_threads(tasks));
	for (size_t i = 0; i < tasks->records.n; i++) {
		const struct tdt_task_record *record = &tasks->records.seen[i].record;

		now = later(now, later(record->since, later(record->woken, record->spawned)));
	}
	return now;
}

static const char *seen_outcome(const struct tdt_task_record *record,
				const struct tdt_task_info *info)
{
	if (record->state != TDT_TASK_RECORD_ENDED)
		return NULL;
	return record->outcome == TDT_READY	? "ready"
	       : info->aborted != 0		? "aborted"
	       : record->outcome == TDT_PENDING ? "dropped"
						: "panicked";
}

static void set_task(const struct tdt__tasks *tasks, struct tdt__seen_task *task,
		     const struct tdt__seen *seen, const char *file)
{
	uint64_t now = tasks->now;
	const struct tdt_task_record *record = &seen->record;
	const struct tdt__task_said said = {
		.record = record, .name = record->name, .file = file, .still = seen->still
	};
	struct tdt_task_info *info = &task->member.info;

	*task = (struct tdt__seen_task){ .seen = seen };
	task->member.group = TDT__LEFT_OUT;
	tdt__task_by_record(info, &said, now, &task->wait, &task->main_wait);
	info->requested = tdt__requested_polls(record);
	info->spawned_ns = tdt__time_since(now, record->spawned);
	info->polled_ns = tdt__time_since(now, record->since);
	task->outcome = seen_outcome(record, info);
	tdt__seen_context(tasks->target, seen, &info->context);
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

static bool read_record(void *arg, size_t index, struct tdt_task_record *record)
{
	const struct tdt__tasks *tasks = arg;

	return tdt__target_read(tasks->target, tasks->task[index].seen->address, record,
				sizeof *record);
}

/* The registry is read anew, since it has the address of the first slab. */
static bool each_holder(void *arg, void (*see)(void *to, uint64_t id), void *to)
{
	const struct tdt__tasks *tasks = arg;
	struct tdt_registry registry;
	struct tdt__records records;
	bool all;

	if (!tdt__target_read(tasks->target, tasks->registry.self, &registry, sizeof registry) ||
	    tdt__records_read(&records, tasks->target, &registry) != 0)
		return false;
	for (size_t i = 0; i < records.n; i++)
		if (tdt__record_may_hold(&records.seen[i].record))
			see(to, records.seen[i].record.id);
	all = !records.damaged;
	tdt__records_fini(&records);
	return all;
}

struct tdt__lock_places tdt__tasks_locks(struct tdt__tasks *tasks)
{
	return (struct tdt__lock_places){ .arg = tasks,
					  .read = read_target,
					  .member = seen_member,
					  .record = read_record,
					  .each_holder = each_holder,
					  .find_ended = tdt__history_ended,
					  .n = tasks->n,
					  .now = tasks->now };
}

static void renew_waits(struct tdt__tasks *tasks, struct tdt__seen_task *task, size_t n)
{
	struct tdt__lock_places places = tdt__tasks_locks(tasks);

	for (; n > 0; n--, task++)
		tdt__task_renew_holder(&places, &task->member.info);
}

void tdt__task_set_waits(struct tdt__tasks *tasks, struct tdt__seen_task *task,
			 const struct tdt_wait *from, uint32_t n)
{
	struct tdt__lock_places places = tdt__tasks_locks(tasks);
	struct tdt_task_info *info = &task->member.info;
	void *block = n != 0 ? tdt__arena_take(&tasks->arena, n * TDT__LISTED_WAIT) : NULL;
	struct tdt_wait *waits;

	info->n_waits = block != NULL ? n : 0;
	info->waits = block != NULL ? tdt__waits_in(block, n, &waits) : NULL;
	for (uint32_t i = 0; i < info->n_waits; i++) {
		waits[i] = from[i];
		tdt__lock_renew(&places, &waits[i], info->id);
	}
}

/* --- Names of functions -------------------------------------------------------------- */

/* The name of the function at `address` of the target.  NULL: it is unknown. */
static const char *function_name_at(struct file_names *names, uint64_t address)
{
	struct tdt__images *images = names->tasks->images;

	tdt__images_open(images, address);
	return tdt__namer_function(images->table, address, names->deadline);
}

uint64_t tdt__seen_entry(struct tdt__tasks *tasks, const struct tdt_task_record *record)
{
	const struct tdt__lock_places view = tdt__tasks_locks(tasks);

	return tasks->registry.fiber_size >= sizeof(struct tdt_registry_fiber)
		       ? tdt__task_entry(&view, record, tasks->registry.callback_poll)
		       : 0;
}

void tdt__tasks_name(struct tdt__tasks *tasks, uint64_t deadline)
{
	struct file_names names = { .tasks = tasks, .deadline = deadline };

	for (size_t i = 0; i < tasks->n; i++) {
		struct tdt_task_info *info = &tasks->task[i].member.info;
		uint64_t entry = info->name == NULL
				     ? tdt__seen_entry(tasks, &tasks->task[i].seen->record)
				     : 0;

		if (entry != 0)
			info->name = name_at(&names, entry, function_name_at);
	}
	tdt__table_fini(&names.entry_table);
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

		set_task(tasks, &tasks->task[i], seen,
			 name_at(&names, seen->record.file, read_file_name));
	}
	tdt__table_fini(&names.entry_table);
	renew_waits(tasks, tasks->task, tasks->n);
	return names.failed ? -ENOMEM : name_waits(tasks, tasks->task, tasks->n);
}

bool tdt__task_renew(struct tdt__tasks *tasks, struct tdt__seen_task *task)
{
	struct tdt__seen *seen = &tasks->records.seen[task->seen - tasks->records.seen];
	const struct tdt_task_info before = task->member.info;
	struct tdt_task_record now[2];
	struct tdt__memory_range range[] = { { seen->address, &now[0], sizeof now[0], false },
					     { seen->address, &now[1], sizeof now[1], false } };

	if (tdt__target_read_ranges(tasks->target, range, 2) != 2 ||
	    now[1].seq != seen->record.seq || now[1].id != seen->record.id ||
	    now[1].state > TDT_TASK_RECORD_POLLING ||
	    (seen->still && tdt__seen_unchanged(seen, &now[1])))
		return false;
	seen->record = now[1];
	seen->record.name[TDT_TASK_RECORD_NAME_SIZE - 1] = '\0';
	seen->still = memcmp(&now[0], &now[1], sizeof now[0]) == 0;
	set_task(tasks, task, seen, before.file);
	task->member.info.asked = before.asked;
	renew_waits(tasks, task, 1);
	return name_waits(tasks, task, 1) == 0;
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
	if (error == 0)
		tdt__history_losts(target, &found->registry, tasks->counters.lost, tasks->now,
				   &tasks->losts);
	if (error != 0)
		tdt__tasks_fini(tasks);
	return error;
}

void tdt__tasks_fini(struct tdt__tasks *tasks)
{
	free(tasks->task);
	free(tasks->orphans.lock);
	free(tasks->losts.lost);
	tdt__records_fini(&tasks->records);
	tdt__arena_fini(&tasks->arena);
	*tasks = (struct tdt__tasks){ 0 };
}

bool tdt__tasks_note_process(const struct tdt__tasks *tasks, struct tdt__findings *findings)
{
	struct tdt_snapshot_process *process = tdt__arena_take(&findings->arena, sizeof *process);

	if (process == NULL)
		return false;
	*process = tdt__tasks_process(tasks);
	findings->public.process = process;
	findings->public.outside = 1;
	return true;
}

static int by_task_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void tdt__choose_ids(struct tdt__task_choice *choice, uint64_t *ids, size_t n)
{
	if (n != 0)
		qsort(ids, n, sizeof *ids, by_task_id);
	choice->ids = ids;
	choice->n_ids = n;
}

bool tdt__is_chosen_id(const struct tdt__task_choice *choice, uint64_t id)
{
	return choice->n_ids == 0 ||
	       bsearch(&id, choice->ids, choice->n_ids, sizeof id, by_task_id) != NULL;
}

bool tdt__task_is_chosen(const struct tdt__seen_task *task, const struct tdt__task_choice *choice)
{
	return task->outcome == NULL && tdt__is_chosen_id(choice, task->member.info.id);
}

/* --- Proofs ------------------------------------------------------------------------- */

static struct tdt__witness seen_witness(const struct tdt__tasks *tasks,
					const struct tdt__seen_task *task)
{
	return (struct tdt__witness){ .info = &task->member.info,
				      .now = &task->seen->record,
				      .others_woken = tasks->woken,
				      .answered_at = task->answered_at };
}

void tdt__tasks_settle(struct tdt__tasks *tasks)
{
	struct tdt__lock_places places = tdt__tasks_locks(tasks);

	for (size_t i = 0; i < tasks->n && !tasks->woken; i++)
		tasks->woken = tasks->records.seen[i].record.woken != 0;
	for (size_t i = 0; i < tasks->n; i++) {
		const struct tdt__witness witness = seen_witness(tasks, &tasks->task[i]);

		tasks->task[i].member.settled = tdt__settled(&places, &witness);
	}
	tdt__futurelocks_find(&places);
	free(tasks->orphans.lock);
	tdt__orphans_find(&places, &tasks->orphans);
}

void tdt__tasks_busy(struct tdt__tasks *tasks)
{
	const struct tdt__lock_places places = tdt__tasks_locks(tasks);

	if (tasks->target != NULL && tasks->target->core == NULL)
		tdt__busy_find(&places);
}

/* A group of one task, without a trace. */
struct found_group {
	struct tdt_snapshot_group group;
	struct tdt_task_info info;
	const struct tdt_task_info *infos[1];
	struct tdt_wait wait;
	const struct tdt_wait *waits[1];
};

/* Make such groups, and a list of them.  NULL: no memory, and `*n` is 0. */
static struct found_group *found_groups(struct tdt__tasks *tasks, size_t *n,
					const struct tdt_snapshot_group *const **list)
{
	struct found_group *of = tdt__arena_take(&tasks->arena, *n * sizeof *of);
	const struct tdt_snapshot_group **groups =
		tdt__arena_take(&tasks->arena, *n * sizeof(struct tdt_snapshot_group *));

	if (of == NULL || groups == NULL)
		*n = 0;
	for (size_t i = 0; i < *n; i++) {
		of[i].infos[0] = &of[i].info;
		of[i].group = (struct tdt_snapshot_group){ .size = sizeof of[i].group,
							    .answer = TDT_ANSWER_NONE,
							    .tasks = of[i].infos,
							    .n = 1 };
		groups[i] = &of[i].group;
	}
	*list = groups;
	return of;
}

void tdt__tasks_found(struct tdt__tasks *tasks, struct tdt_snapshot *found)
{
	struct found_group *of;

	found->n_orphans = tasks->orphans.n;
	of = found_groups(tasks, &found->n_orphans, &found->orphans);
	for (size_t i = 0; i < found->n_orphans; i++)
		of[i].info = tdt__orphan_info(&tasks->orphans.lock[i]);
	found->n_lost_wakeups = tasks->losts.n;
	of = found_groups(tasks, &found->n_lost_wakeups, &found->lost_wakeups);
	for (size_t i = 0; i < found->n_lost_wakeups; i++)
		of[i].info = tdt__lost_info(&tasks->losts, i, NULL, tasks->now, &of[i].wait,
					    of[i].waits);
}

void tdt__task_prove(struct tdt__tasks *tasks, struct tdt__seen_task *task)
{
	const struct tdt__lock_places places = tdt__tasks_locks(tasks);
	struct tdt__witness witness = seen_witness(tasks, task);
	struct tdt_task_record later;

	if (!tdt__target_read(tasks->target, task->seen->address, &later, sizeof later))
		return;
	witness.now = &later;
	witness.stood_still = !task->went_on && tdt__seen_unchanged(task->seen, &later);
	task->member.proof = tdt__prove(&places, &witness);
}

/* --- Rings -------------------------------------------------------------------------- */

const struct tdt_task_info **tdt__tasks_live(const struct tdt__tasks *tasks, size_t *n)
{
	const struct tdt_task_info **infos = malloc((tasks->n + 1) * sizeof *infos);

	*n = 0;
	for (size_t i = 0; i < tasks->n && infos != NULL; i++)
		if (tasks->task[i].outcome == NULL)
			infos[(*n)++] = &tasks->task[i].member.info;
	return infos;
}

int tdt__tasks_cycles(struct tdt__cycles *cycles, struct tdt__tasks *tasks)
{
	size_t n;
	const struct tdt_task_info **infos = tdt__tasks_live(tasks, &n);

	if (infos == NULL)
		return -ENOMEM;
	tdt__cycles_find(cycles, infos, n, tdt__member_proof);
	free(infos);
	return 0;
}
