// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Snapshots: list the live tasks from the registry, request a trace of each (request_all.c), sort
 * them into groups (groups.c), and see which tasks wait for each other (cycles.c).
 *
 * The snapshot keeps the info of each task, but a tree only once per group.
 */

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/hashtab.h>

#include <tdt/dump.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/options.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "dump/request_all.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "tree/cycles.h"
#include "tree/groups.h"
#include "tree/trace.h"
#include "watch/last_tree.h"

#define SECOND INT64_C(1000000000)
#define LEFT_OUT UINT32_MAX

/* A task. */
struct member {
	struct tdt_trace_info info; /* first: a pointer to it is a pointer to its member */
	struct tdt_wait wait;       /* what `info.waits` points to if there is one wait */
	struct tdt_handle *task;    /* a reference, until the snapshot is taken */
	uint32_t group;             /* LEFT_OUT: none */
	/* Since it was listed it was polled for this snapshot, and waits for the same object. */
	bool sure;
	uint8_t own_polls; /* when it was listed: see own_polls() */
};

/* An entry of the list, with the keys by which it is sorted. */
struct entry {
	uint64_t state_ns;
	uint64_t id;
	struct member *member;
};

struct snapshot {
	struct tdt_snapshot public; /* first */
	struct tdt__arena arena;
	struct tdt__groups groups;
	struct tdt__cycles cycles;
	const struct tdt_trace_info **tasks; /* group by group */
};

/* A snapshot that is being taken. */
struct taking {
	struct snapshot *snapshot;
	struct tdt_task_filter filter;
	uint64_t start;
	uint64_t deadline; /* of the whole */
	size_t watched;    /* tasks that have a watched tree */
	size_t unanswered; /* tasks without an answer so far */
	bool late;
	size_t lost;

	struct entry *entry;
	size_t n;
	size_t room;

	/* Of char *: each name once, in the arena of the snapshot.  NULL: not created yet. */
	htab_t names;
	const char *last_name;
};

static void snapshot_free(struct snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	tdt__cycles_fini(&snapshot->cycles);
	tdt__groups_fini(&snapshot->groups);
	tdt__arena_fini(&snapshot->arena);
	free(snapshot->tasks);
	free(snapshot);
}

/* Runs also if a waker unwinds, or the thread is cancelled. */
static void taking_fini(struct taking *taking)
{
	for (size_t i = 0; i < taking->n; i++)
		tdt_handle_unref(taking->entry[i].member->task);
	free(taking->entry);
	if (taking->names != NULL)
		htab_delete(taking->names);
	snapshot_free(taking->snapshot);
}

/* --- The list ------------------------------------------------------------------ */

static int same_name(const void *left, const void *right)
{
	return strcmp(left, right) == 0;
}

/* False: no memory. */
static bool create_names(struct taking *taking)
{
	if (taking->names == NULL)
		taking->names =
			htab_create_alloc(64, htab_hash_string, same_name, NULL, calloc, free);
	return taking->names != NULL;
}

/* Copy `name`, which is not kept yet.  NULL: no memory. */
static const char *new_name(struct taking *taking, const char *name)
{
	char *copy = tdt__arena_take(&taking->snapshot->arena, strlen(name) + 1);
	void **slot = copy != NULL ? htab_find_slot(taking->names, name, INSERT) : NULL;

	if (slot == NULL)
		return NULL;
	*slot = strcpy(copy, name);
	return copy;
}

/*
 * The copy of `name` that lives as long as the snapshot.  NULL: no memory.  A name that is kept
 * already needs none.
 */
static const char *keep_name(struct taking *taking, const char *name)
{
	const char *kept;

	if (taking->last_name != NULL && strcmp(taking->last_name, name) == 0)
		return taking->last_name;
	if (!create_names(taking))
		return NULL;
	kept = htab_find(taking->names, name);
	if (kept == NULL)
		kept = new_name(taking, name);
	if (kept != NULL)
		taking->last_name = kept;
	return kept;
}

/* Copy what the record says of the task.  False: no memory. */
static bool note_record(struct taking *taking, struct member *member,
			const struct tdt__task_info *said)
{
	const char *name = said->info.name;

	if (name != NULL)
		name = keep_name(taking, name);
	if (name == NULL && said->info.name != NULL)
		return false;
	member->info = said->info;
	member->info.name = name;
	member->wait = said->wait;
	if (member->info.n_waits != 0)
		member->info.waits = &member->wait;
	return true;
}

static bool grow_list(struct taking *taking)
{
	size_t room = taking->room == 0 ? 64 : 2 * taking->room;
	struct entry *entry;

	if (taking->n < taking->room)
		return true;
	entry = realloc(taking->entry, room * sizeof *entry);
	if (entry == NULL)
		return false;
	taking->entry = entry;
	taking->room = room;
	return true;
}

/* How many polls were not made for requests alone, modulo TDT__ASKED_POLLS. */
static uint8_t own_polls(const struct tdt_record *record)
{
	return (uint8_t)((record->polls - record->own_bits / TDT__ASKED_POLL) % TDT__ASKED_POLLS);
}

/* List a task.  False: there is no memory for it. */
static bool list(struct taking *taking, struct tdt_handle *task, const struct tdt__task_info *said,
		 const struct tdt_record *record)
{
	struct member *member;

	if (!grow_list(taking))
		return false;
	member = tdt__arena_take(&taking->snapshot->arena, sizeof *member);
	if (member == NULL || !note_record(taking, member, said))
		return false;
	member->group = LEFT_OUT;
	member->sure = false;
	member->own_polls = own_polls(record);
	member->task = task;
	taking->watched += record->tree != 0;
	taking->entry[taking->n++] = (struct entry){ said->info.state_ns, said->info.id, member };
	return true;
}

static void list_all(struct taking *taking)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_handle *task;

	while ((task = tdt__registry_next(&cursor)) != NULL) {
		struct tdt__task_info said;
		struct tdt_record record;

		if (TDT__PEEK(task->record.state) == TDT_RECORD_FREE ||
		    !tdt__registry_read(task, &record) || !tdt__record_is_live(&record))
			continue;
		tdt__task_info(&said, &record, taking->start);
		if (!tdt__filter_lets(&taking->filter, &said.info) ||
		    !tdt__handle_ref_if_same(task, record.seq))
			continue;
		if (!list(taking, task, &said, &record)) {
			tdt_handle_unref(task);
			taking->lost++;
		}
	}
}

/*
 * The task that has been in its state for longest comes first; of equals, the one with the smallest
 * id.
 */
static int by_suspicion(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->state_ns != y->state_ns)
		return x->state_ns > y->state_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void sort_list(struct taking *taking)
{
	size_t sorted = 1;

	/* When it is sorted again, it has changed little. */
	while (sorted < taking->n &&
	       by_suspicion(&taking->entry[sorted - 1], &taking->entry[sorted]) <= 0)
		sorted++;
	if (sorted < taking->n)
		qsort(taking->entry, taking->n, sizeof taking->entry[0], by_suspicion);
}

/* --- Answers --------------------------------------------------------------------- */

static bool same_waits(const struct tdt_trace_info *a, const struct tdt__facts *b)
{
	if (a->n_waits == 0 || b->n_waits == 0)
		return a->n_waits == b->n_waits;
	return tdt__same_wait(&a->waits[0], &b->waits[0]);
}

/* Note what the task's leaves wait for.  Without memory that is not known. */
static void note_waits(struct taking *taking, struct member *member,
		       const struct tdt__capture *capture)
{
	struct tdt_wait *waits = &member->wait;

	if (capture->facts.n_waits > 1)
		waits = tdt__arena_take(&taking->snapshot->arena,
					capture->facts.n_waits * sizeof *waits);
	member->info.n_waits = waits != NULL ? capture->facts.n_waits : 0;
	member->info.waits = member->info.n_waits != 0 ? waits : NULL;
	if (member->info.n_waits != 0)
		memcpy(waits, capture->facts.waits, capture->facts.n_waits * sizeof *waits);
}

/* Copy what the captured poll says of the task. */
static void note_poll(struct taking *taking, struct member *member,
		      const struct tdt__capture *capture)
{
	struct tdt_trace_info *info = &member->info;
	/* The captured poll is the one that came after the listed wait. */
	bool waits_still = info->state == TDT_TASK_WAITING &&
			   capture->facts.state == TDT_TASK_WAITING &&
			   capture->facts.polls == info->polls + 1;
	uint64_t state_ns = info->state_ns;

	member->sure = info->state == TDT_TASK_WAITING &&
		       capture->facts.state == TDT_TASK_WAITING &&
		       capture->facts.polls - info->polls < TDT__ASKED_POLLS / 2 &&
		       same_waits(info, &capture->facts);
	tdt__facts_say(&capture->facts, info);
	/*
	 * The age is as of the start of the snapshot, whenever the task answered: so tasks of the
	 * same age show the same age.
	 */
	if (waits_still && capture->facts.polls != 1)
		info->state_ns = state_ns;
	info->leaves = capture->stacks.leaves;
	info->leaves_elsewhere = capture->stacks.elsewhere;
	info->leaves_lost = capture->stacks.lost;
	note_waits(taking, member, capture);
}

/* Copy what the task's record says by now.  False: the task has ended. */
static bool note_record_again(struct taking *taking, struct member *member)
{
	struct tdt__task_info said;
	struct tdt_record record;

	if (!tdt__registry_read(member->task, &record) || !tdt__record_is_live(&record))
		return false;
	/*
	 * A wait is shown as of the start of the snapshot, like those of tasks that answer.  A poll
	 * may have begun since.
	 */
	tdt__task_info(&said, &record,
		       record.state == TDT_RECORD_POLLING ? tdt__clock() : taking->start);
	/* The name is kept already: this needs no memory. */
	return note_record(taking, member, &said);
}

/* The time that it takes to sort and print a task, and to read a watched tree. */
#define TASK_NS UINT64_C(300)
#define TREE_NS UINT64_C(3000)

/*
 * The time that is kept back from the requests: a quarter of the whole, and what so many tasks
 * need; but no more than three quarters.
 */
static uint64_t rest_of(const struct taking *taking)
{
	uint64_t quarter = (taking->deadline - taking->start) / 4;
	uint64_t rest = quarter + taking->n * TASK_NS + taking->watched * TREE_NS;

	return rest < 3 * quarter ? rest : 3 * quarter;
}

/* The part of that time which is for names and for printing. */
static uint64_t end_of(const struct taking *taking)
{
	uint64_t rest = rest_of(taking),
		 end = (taking->deadline - taking->start) / 8 + taking->n * TASK_NS;

	return end < rest ? end : rest;
}

/* Whether it is too late to look for watched trees.  One reading of the clock serves 64 tasks. */
static bool is_late(struct taking *taking)
{
	if (!taking->late && taking->unanswered++ % 64 == 0)
		taking->late = tdt__clock() >= taking->deadline - end_of(taking);
	return taking->late;
}

static void no_answer(struct taking *taking, struct member *member)
{
	struct tdt_trace *last = NULL;
	struct tdt__stacks *tree = NULL;
	bool late = is_late(taking);

	if (!late && !note_record_again(taking, member))
		return;
	/* The tree's age is as of the same time as the length of the wait. */
	if (!late && !tdt__polled_here(member->task))
		last = tdt__watched_trace(
		    member->task, member->info.state == TDT_TASK_RUNNING ? 0 : taking->start);
	if (last != NULL) {
		const struct tdt_trace_info *info = tdt_trace_info(last);

		tree = last->stacks;
		member->info.leaves = info->leaves;
		member->info.leaves_elsewhere = info->leaves_elsewhere;
		member->info.leaves_lost = info->leaves_lost;
		member->info.age_ns = info->age_ns;
		member->info.polls_since = info->polls_since;
	}
	member->group = tdt__groups_add(&taking->snapshot->groups,
					tree != NULL ? TDT_ANSWER_LAST : TDT_ANSWER_NONE,
					member->info.state, tree);
	tdt_trace_free(last);
}

static void answer(void *arg, size_t index, enum tdt_answer answer, struct tdt__capture *capture)
{
	struct taking *taking = arg;
	struct member *member = taking->entry[index].member;

	if (answer == TDT_ANSWER_NONE) {
		no_answer(taking, member);
	} else if (capture != NULL) {
		note_poll(taking, member, capture);
		member->group = tdt__groups_add(&taking->snapshot->groups, answer,
						capture->facts.state, &capture->stacks);
	}
}

static struct tdt_handle *task_of(void *arg, size_t index)
{
	const struct taking *taking = arg;

	return taking->entry[index].member->task;
}

static void request_all(struct taking *taking, const struct tdt_dump_options *options)
{
	const struct tdt__requests requests = {
		.n = taking->n,
		.task = task_of,
		.answer = answer,
		.arg = taking,
		.deadline = taking->deadline - rest_of(taking),
		.max_frames = options->max_frames != 0 ? options->max_frames : TDT_MAX_FRAMES,
	};

	tdt__request_all(&requests);
}

/* --- The result ---------------------------------------------------------------------- */

/* Leave out the tasks that had ended, and sort the others by what is known now. */
static void sort_again(struct taking *taking)
{
	size_t n = 0;

	for (size_t i = 0; i < taking->n; i++) {
		struct member *member = taking->entry[i].member;

		if (member->group == LEFT_OUT)
			tdt_handle_unref(member->task);
		else
			taking->entry[n++] =
			    (struct entry){ member->info.state_ns, member->info.id, member };
	}
	taking->n = n;
	sort_list(taking);
}

static int by_oldest(const void *a, const void *b)
{
	const struct tdt_snapshot_group *x = a, *y = b;

	if (x->tasks[0]->state_ns != y->tasks[0]->state_ns)
		return x->tasks[0]->state_ns > y->tasks[0]->state_ns ? -1 : 1;
	return (x->tasks[0]->id > y->tasks[0]->id) - (x->tasks[0]->id < y->tasks[0]->id);
}

/* Divide the one list of all tasks among the groups. */
static void fill_groups(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;
	struct tdt__groups *groups = &snapshot->groups;
	const struct tdt_trace_info **next = snapshot->tasks;
	size_t n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		groups->public[i] = (struct tdt_snapshot_group){
			.answer = groups->group[i].answer,
			.trace = groups->group[i].trace,
			.tasks = next,
		};
		next += groups->group[i].n;
	}
	for (size_t i = 0; i < taking->n; i++) {
		struct member *member = taking->entry[i].member;
		struct tdt_snapshot_group *group = &groups->public[member->group];

		snapshot->tasks[(size_t)(group->tasks - snapshot->tasks) + group->n++] =
		    &member->info;
		snapshot->public.answers[group->answer]++;
	}
	for (size_t i = 0; i < groups->n; i++) {
		if (groups->public[i].n == 0)
			continue;
		if (groups->group[i].trace != NULL)
			groups->group[i].trace->info = *groups->public[i].tasks[0];
		groups->public[n++] = groups->public[i];
	}
	qsort(groups->public, n, sizeof groups->public[0], by_oldest);
	snapshot->public.groups = groups->public;
	snapshot->public.n_groups = n;
	snapshot->public.tasks = taking->n;
}

/* Whether the record of a task that is not being polled names `wait` as its first wait. */
static bool waits_still_for(const struct tdt_record *record, const struct tdt_wait *wait)
{
	const struct tdt_wait now = { record->wait_kind, record->wait_object, record->wait_owner };

	return record->wait_count != 0 && record->wait_polls == (uint32_t)record->polls &&
	       tdt__same_wait(&now, wait);
}

/*
 * Whether the task has stood still all the time.  Since all tasks were listed it has been polled
 * for this snapshot, and otherwise only for other requests; it still waits for the same object, and
 * it was not woken since.  So what all such tasks say is true of one moment: when the first request
 * was made.
 *
 * It must be certain that the task was not woken: a task that was handed a lock, and has not been
 * polled since, still says that it waits for the lock.
 */
static bool is_sure(const struct tdt_trace_info *info)
{
	const struct member *member = (const struct member *)info;
	struct tdt_record record;

	return member->sure && tdt__registry_read(member->task, &record) &&
	       record.state == TDT_RECORD_IDLE &&
	       record.polls - info->polls < TDT__ASKED_POLLS / 2 &&
	       own_polls(&record) == member->own_polls &&
	       !tdt__was_woken(member->task, record.polls) &&
	       waits_still_for(&record, &info->waits[0]);
}

static void find_cycles(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;

	tdt__cycles_find(&snapshot->cycles, snapshot->tasks, taking->n, is_sure);
	snapshot->public.cycles = snapshot->cycles.cycle;
	snapshot->public.n_cycles = snapshot->cycles.n;
}

/*
 * Complete the snapshot.  This needs no memory except for the cycles, which are left out without
 * it.
 */
static void conclude(struct taking *taking)
{
	struct snapshot *snapshot = taking->snapshot;

	snapshot->public.size = sizeof snapshot->public;
	snapshot->public.took_ns = tdt__clock() - taking->start;
	snapshot->public.lost = taking->lost;
	sort_again(taking);
	fill_groups(taking);
	find_cycles(taking);
}

static int read_options(struct tdt_dump_options *ours, struct tdt_task_filter *filter,
			const struct tdt_dump_options *theirs)
{
	int error = tdt__options_read(ours, sizeof *ours, theirs);

	if (error == 0 && ours->timeout_ns < 0)
		error = -EINVAL;
	return error != 0 ? error : tdt__filter_read(filter, ours->filter);
}

const struct tdt_snapshot *tdt_snapshot_take(const struct tdt_dump_options *options)
{
	struct taking taking __attribute__((cleanup(taking_fini))) = { .start = tdt__clock() };
	struct tdt_dump_options ours;
	struct snapshot *snapshot;
	int error = read_options(&ours, &taking.filter, options);

	if (error != 0) {
		errno = -error;
		return NULL;
	}
	snapshot = taking.snapshot = calloc(1, sizeof *snapshot);
	if (snapshot == NULL || !tdt__groups_init(&snapshot->groups))
		goto no_memory;
	taking.deadline =
	    taking.start + (uint64_t)(ours.timeout_ns != 0 ? ours.timeout_ns : SECOND);
	list_all(&taking);
	snapshot->tasks = malloc((taking.n + 1) * sizeof(struct tdt_trace_info *));
	if (snapshot->tasks == NULL || (taking.n == 0 && taking.lost > 0))
		goto no_memory;
	sort_list(&taking);
	request_all(&taking, &ours);
	conclude(&taking);
	taking.snapshot = NULL;
	return &snapshot->public;

no_memory:
	errno = ENOMEM;
	return NULL;
}

void tdt_snapshot_free(const struct tdt_snapshot *snapshot)
{
	snapshot_free((struct snapshot *)(uintptr_t)snapshot);
}
