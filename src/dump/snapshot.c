// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Taking a snapshot: list the live tasks from the registry, and request a trace of each
 * (request_all.c).  What the tasks have answered goes to the findings (findings.c), which sort the
 * tasks, and find out which of them wait for each other.
 *
 * The snapshot keeps the info of each task, but a tree only once per group.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "capture/judge.h"
#include "capture/leaf_list.h"
#include "dump/request_all.h"
#include "dump/snapshot.h"
#include "facts/busy.h"
#include "facts/past.h"
#include "facts/proof.h"
#include "facts/record.h"
#include "facts/task.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "symbolize/modules.h"
#include "task/lost.h"
#include "task/panics.h"
#include "tree/findings.h"
#include "tree/futurelocks.h"
#include "tree/trace.h"
#include "tree/waits.h"
#include "watch/last_tree.h"

struct member {
	struct tdt__member recorded; /* first */
	/*
	 * `info.waits` points here if there is one wait.  NULL: there was none yet.  The wait is
	 * not in this struct, because most tasks need none, and its name is long.
	 */
	const struct tdt_wait *wait;
	struct tdt_handle *task;     /* a reference, until the snapshot is taken */
	/*
	 * It waits for the same object as when it was listed: in the poll that answered, or, if it
	 * did not answer, by its record.
	 */
	bool waits_still;
	bool answered; /* by a poll */
	uint8_t own_polls; /* when it was listed: see tdt__own_polls() */
};

struct taking {
	struct tdt__findings *findings;
	struct tdt_task_filter filter;
	uint64_t start;
	uint64_t deadline; /* of the whole */
	size_t watched;    /* tasks that have a watched tree */
	size_t unanswered; /* tasks without an answer so far */
	bool late;
	bool wakes; /* the wake-up of a task was reported */
	struct tdt__snapshot_how how;
	size_t lost;     /* tasks that are left out for lack of memory */
	size_t unlisted; /* tasks that are left out for lack of time */

	TDT__TABLE(const char *, name, n_names); /* each once, in the arena of the findings */
	const char *last_name;
	struct tdt__modules *modules; /* for names of functions */
};

static struct member *member_at(const struct taking *taking, size_t index)
{
	return (struct member *)tdt__findings_member(taking->findings, index);
}

static size_t members(const struct taking *taking)
{
	return taking->findings != NULL ? taking->findings->n : 0;
}

/* Runs also if a waker unwinds, or the thread is cancelled. */
static void taking_fini(struct taking *taking)
{
	for (size_t i = 0; i < members(taking); i++)
		tdt_handle_unref(member_at(taking, i)->task);
	tdt__table_fini(&taking->name_table);
	tdt__modules_unref(taking->modules);
	tdt__findings_free(taking->findings);
}

/* --- The list ------------------------------------------------------------------ */

/*
 * The copy of `name` that lives as long as the findings.  NULL: no memory.  A name that is kept
 * already needs none.
 */
static const char *keep_name(struct taking *taking, const char *name)
{
	size_t size = strlen(name) + 1;
	uint32_t hash, i;
	char *copy;

	if (taking->last_name != NULL && strcmp(taking->last_name, name) == 0)
		return taking->last_name;
	hash = tdt__hash_fold(tdt__hash_bytes(TDT__HASH_START, name, size));
	TDT__INDEX_EACH (i, &taking->name_table.index, hash)
		if (strcmp(taking->name[i], name) == 0)
			return taking->last_name = taking->name[i];
	copy = tdt__arena_take(&taking->findings->arena, size);
	if (copy == NULL || tdt__table_add(&taking->name_table, hash, &copy, sizeof copy) ==
				    TDT__INDEX_NONE)
		return NULL;
	return taking->last_name = memcpy(copy, name, size);
}

/* Note what the task waits for.  Without memory that is not known. */
static void note_waits(struct taking *taking, struct member *member, const struct tdt_wait *waits,
		       uint32_t n)
{
	struct tdt_task_info *info = &member->recorded.info;
	struct tdt__arena *arena = &taking->findings->arena;
	struct tdt_wait *copy = NULL;
	void *block;

	info->waits = NULL;
	if (n == 1) {
		if (member->wait == NULL)
			member->wait = tdt__arena_take(arena, sizeof *member->wait);
		copy = (struct tdt_wait *)(uintptr_t)member->wait;
		info->waits = &member->wait;
	} else if (n > 1 && (block = tdt__arena_take(arena, n * TDT__LISTED_WAIT)) != NULL) {
		info->waits = tdt__waits_in(block, n, &copy);
	}
	info->n_waits = copy != NULL ? n : 0;
	if (copy != NULL)
		memcpy(copy, waits, n * sizeof *waits);
}

/*
 * Copy what the record says of the task.  Without memory for a wait, the wait is not known.  False:
 * there is no memory for the name.
 */
static bool note_record(struct taking *taking, struct member *member,
			const struct tdt__task_info *said)
{
	const char *name = said->info.name;

	if (name != NULL)
		name = keep_name(taking, name);
	if (name == NULL && said->info.name != NULL)
		return false;
	member->recorded.info = said->info;
	member->recorded.info.name = name;
	note_waits(taking, member, &said->wait, said->info.n_waits);
	return true;
}

/* List a task.  False: there is no memory for it. */
static bool list(struct taking *taking, struct tdt_handle *task, const struct tdt__task_info *said,
		 const struct tdt_task_record *record)
{
	struct member *member = tdt__arena_take(&taking->findings->arena, sizeof *member);

	if (member == NULL)
		return false;
	member->wait = NULL;
	if (!note_record(taking, member, said))
		return false;
	member->recorded.group = TDT__LEFT_OUT;
	member->recorded.proof = TDT__UNSURE;
	member->recorded.settled = 0;
	member->waits_still = false;
	member->answered = false;
	member->own_polls = tdt__own_polls(record);
	member->task = task;
	if (!tdt__findings_add(taking->findings, &member->recorded))
		return false;
	taking->watched += record->tree != 0;
	taking->wakes |= record->woken != 0;
	return true;
}

/*
 * Sorting and printing take about as long as the listing, also on a busy machine.  So many records
 * are read in any case, which takes a few milliseconds.
 */
#define READ_AT_LEAST 16384

/* Whether there is no time to list more.  One reading of the clock serves 1,024 records. */
static bool is_list_late(const struct taking *taking, size_t read)
{
	return read >= READ_AT_LEAST && read % 1024 == 0 &&
	       tdt__clock() >= taking->start + (taking->deadline - taking->start) / 5 * 2;
}

static void list_all(struct taking *taking)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_handle *task;

	for (size_t read = 0;
	     (task = tdt__registry_next(&cursor)) != NULL && !is_list_late(taking, read); read++) {
		struct tdt__task_info said;
		struct tdt_task_record record;

		if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_FREE ||
		    !tdt__registry_read(task, &record))
			continue;
		taking->findings->public.held += record.state == TDT_TASK_RECORD_ENDED;
		if (!tdt__record_is_live(&record))
			continue;
		tdt__task_info(&said, task, &record, taking->start);
		if (said.info.name == NULL)
			said.info.name = tdt__entry_name(
				&task->record, &taking->modules,
				taking->start + (taking->deadline - taking->start) / 8);
		if (!tdt__filter_lets(&taking->filter, &said.info) ||
		    !tdt__handle_ref_if_same(task, record.seq))
			continue;
		if (!list(taking, task, &said, &record)) {
			tdt_handle_unref(task);
			taking->lost++;
		}
	}
	for (; task != NULL; task = tdt__registry_next(&cursor)) {
		uint32_t state = TDT__PEEK(task->record.state);

		taking->unlisted +=
			state == TDT_TASK_RECORD_IDLE || state == TDT_TASK_RECORD_POLLING;
		taking->findings->public.held += state == TDT_TASK_RECORD_ENDED;
	}
}

/* --- Locks ----------------------------------------------------------------------- */

static struct tdt__member *recorded_at(void *arg, size_t index)
{
	return &member_at(arg, index)->recorded;
}

static bool record_now(void *arg, size_t index, struct tdt_task_record *record)
{
	return tdt__registry_read(member_at(arg, index)->task, record);
}

/* Where the tasks of the snapshot and their locks are. */
static struct tdt__lock_places lock_places(struct taking *taking)
{
	struct tdt__lock_places places = tdt__locks_here(taking->start);

	places.arg = taking;
	places.member = recorded_at;
	places.record = record_now;
	places.n = members(taking);
	return places;
}

/* --- Answers --------------------------------------------------------------------- */

/* Whether a task that was listed with `info` still waits, and first of all for the same object. */
static bool waits_still(const struct tdt_task_info *info, enum tdt_task_state state,
			uint64_t polls, const struct tdt_wait *wait, uint32_t n)
{
	if (info->state != TDT_TASK_WAITING || state != TDT_TASK_WAITING ||
	    polls - info->polls >= TDT__REQUESTED_POLLS / 2)
		return false;
	if (info->n_waits == 0 || n == 0)
		return info->n_waits == n;
	return tdt__same_wait(info->waits[0], wait);
}

static void note_poll(struct taking *taking, struct member *member,
		      const struct tdt__capture *capture)
{
	struct tdt_task_info *info = &member->recorded.info;
	/*
	 * The captured poll is the one that came after the listed wait; or, of a fiber, the
	 * captured run is the one that came before it.
	 */
	bool same_wait = info->state == TDT_TASK_WAITING &&
			 capture->facts.state == TDT_TASK_WAITING &&
			 capture->facts.polls - info->polls <= 1;
	uint64_t state_ns = info->state_ns;

	member->answered = !capture->facts.recorded;
	member->waits_still = waits_still(info, capture->facts.state, capture->facts.polls,
					  capture->facts.waits, capture->facts.n_waits);
	tdt__facts_say(&capture->facts, info);
	/*
	 * The age is as of the start of the snapshot, whenever the task answered: so tasks of the
	 * same age show the same age.
	 */
	if (same_wait)
		info->state_ns = state_ns;
	tdt__stacks_count(&capture->stacks, info);
	note_waits(taking, member, capture->facts.waits, capture->facts.n_waits);
}

/* Copy what the task's record says by now.  False: the task has ended. */
static bool note_record_again(struct taking *taking, struct member *member)
{
	struct tdt__task_info said;
	struct tdt_task_record record;

	if (!tdt__registry_read(member->task, &record) || !tdt__record_is_live(&record))
		return false;
	/*
	 * A wait is shown as of the start of the snapshot, like those of tasks that answer.  A poll
	 * may have begun since.
	 */
	tdt__task_info(&said, member->task, &record,
		       record.state == TDT_TASK_RECORD_POLLING ? tdt__clock() : taking->start);
	member->waits_still = waits_still(&member->recorded.info, said.info.state, said.info.polls,
					  &said.wait, said.info.n_waits);
	/* The name is kept already: only a wait where there was none needs memory. */
	said.info.name = member->recorded.info.name;
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
	uint64_t rest = quarter + members(taking) * TASK_NS + taking->watched * TREE_NS;

	return rest < 3 * quarter ? rest : 3 * quarter;
}

/* The part of that time which is for names and for printing. */
static uint64_t end_of(const struct taking *taking)
{
	uint64_t rest = rest_of(taking),
		 end = (taking->deadline - taking->start) / 8 + members(taking) * TASK_NS;

	return end < rest ? end : rest;
}

/* Whether it is too late to look for watched trees.  One reading of the clock serves 64 tasks. */
static bool is_late(struct taking *taking)
{
	if (!taking->late && taking->unanswered++ % 64 == 0)
		taking->late = tdt__clock() >= taking->deadline - end_of(taking);
	return taking->late;
}

/* The list of the task's last poll; NULL: it has none, or there is no memory. */
static struct tdt__capture *last_list(struct tdt_handle *task)
{
	struct tdt__unloads count = { 0 };
	struct tdt__capture *capture = NULL;
	int saved = errno;

	if (TDT__PEEK(task->record.leaf) != 0)
		capture = tdt__capture_new(TDT__FIRST_FRAMES, TDT_MAX_FRAMES);
	if (capture == NULL)
		return NULL;
	if (!tdt__leaf_list_capture(capture, task)) {
		tdt__capture_unref(capture);
		return NULL;
	}
	tdt__judge(&capture->stacks, &count);
	errno = saved;
	return capture;
}

/* `unknown_stack`: see tdt__answer_fn. */
static void no_answer(struct taking *taking, struct member *member, bool unknown_stack)
{
	struct tdt__capture *list = NULL;
	struct tdt_trace *last = NULL;
	struct tdt__stacks *tree = NULL;
	bool late = is_late(taking);

	if (!late && !note_record_again(taking, member))
		return;
	if (late) /* what was listed may be true still */
		member->waits_still = member->recorded.info.state == TDT_TASK_WAITING;
	/* Old reports of several tasks may make a ring that there never was. */
	if (member->recorded.info.n_waits != 0) {
		struct tdt__lock_places places = lock_places(taking);

		tdt__task_renew_holder(&places, &member->recorded.info);
	}
	member->recorded.info.unknown_stack =
		unknown_stack && member->recorded.info.state == TDT_TASK_RUNNING &&
		!tdt__is_callback_task(member->task);
	/* The tree's age is as of the same time as the length of the wait. */
	if (!late && !tdt__polled_here(member->task))
		last = tdt__last_trace(
		    member->task,
		    member->recorded.info.state == TDT_TASK_RUNNING ? 0 : taking->start);
	/* A tree of the last poll has all its leaves; of an older tree nothing may be true. */
	if (!late && (last == NULL || tdt_trace_info(last)->polls_since != 0))
		list = last_list(member->task);
	if (list != NULL) {
		tree = &list->stacks;
	} else if (last != NULL) {
		tree = last->stacks;
		member->recorded.info.age_ns = tdt_trace_info(last)->age_ns;
		member->recorded.info.polls_since = tdt_trace_info(last)->polls_since;
	}
	if (tree != NULL)
		tdt__stacks_count(tree, &member->recorded.info);
	member->recorded.group = tdt__groups_add(&taking->findings->groups,
						 tree != NULL ? TDT_ANSWER_LAST : TDT_ANSWER_NONE,
						 member->recorded.info.state,
						 tdt__child_place(&member->recorded.info), tree);
	tdt_trace_free(last);
	tdt__capture_unref(list);
}

static void answer(void *arg, size_t index, enum tdt_answer answer, struct tdt__capture *capture,
		   bool unknown_stack)
{
	struct taking *taking = arg;
	struct member *member = member_at(taking, index);

	if (answer == TDT_ANSWER_NONE) {
		no_answer(taking, member, unknown_stack);
	} else if (capture != NULL) {
		note_poll(taking, member, capture);
		member->recorded.group = tdt__groups_add(&taking->findings->groups, answer,
							 capture->facts.state,
							 tdt__child_place(&member->recorded.info),
							 &capture->stacks);
	}
}

static struct tdt_handle *task_of(void *arg, size_t index)
{
	const struct taking *taking = arg;
	struct tdt_handle *task = member_at(taking, index)->task;

	return taking->how.only_unseen && tdt__last_tree_shows(task) ? NULL : task;
}

static void request_all(struct taking *taking, const struct tdt_dump_options *options)
{
	const struct tdt__requests requests = {
		.n = members(taking),
		.task = task_of,
		.answer = answer,
		.arg = taking,
		.deadline = taking->deadline - rest_of(taking),
		.max_frames = options->max_frames != 0 ? options->max_frames : TDT_MAX_FRAMES,
	};

	tdt__request_all(&requests);
}

/* --- The result ---------------------------------------------------------------------- */

/*
 * Find out what the task proves.  Since all tasks were listed it may have been polled for this
 * snapshot and for other requests; if it was not woken, and still waits for the same object, then
 * what all such tasks say is true of one moment: when the first request was made.
 */
static void prove(struct taking *taking, const struct tdt__lock_places *places,
		  struct member *member)
{
	const struct tdt_task_info *info = &member->recorded.info;
	struct tdt_task_record record = { 0 };
	bool read = tdt__registry_read(member->task, &record);
	const struct tdt__witness witness = {
		.info = info,
		.now = &record,
		.stood_still = read && member->waits_still &&
			       record.polls - info->polls < TDT__REQUESTED_POLLS / 2 &&
			       tdt__own_polls(&record) == member->own_polls,
		.others_woken = taking->wakes,
		.answered_since = member->answered,
		.answered_at = member->answered ? taking->start : 0,
	};

	member->recorded.proof = tdt__prove(places, &witness);
	member->recorded.settled = tdt__settled(places, &witness);
}

/* Whether some wait names a task: only then is there anything to prove. */
static bool is_any_waited_for(const struct taking *taking)
{
	for (size_t i = 0; i < members(taking); i++) {
		const struct tdt_task_info *info = &member_at(taking, i)->recorded.info;

		for (uint32_t k = 0; k < info->n_waits; k++)
			if (info->waits[k]->owner != 0)
				return true;
	}
	return false;
}

/* Note which tasks have stood still, and give back the references to all of them. */
static void release_all(struct taking *taking)
{
	const struct tdt__lock_places places = lock_places(taking);
	bool waited_for = is_any_waited_for(taking);

	for (size_t i = 0; waited_for && i < members(taking); i++)
		prove(taking, &places, member_at(taking, i));
	/* Busy loops, if there is time: also in a second in which some task did not answer. */
	if (taking->how.finds_busy && taking->deadline > tdt__clock() + TDT__SECOND / 5)
		tdt__busy_find(&places);
	for (size_t i = 0; i < members(taking); i++) {
		tdt_handle_unref(member_at(taking, i)->task);
		member_at(taking, i)->task = NULL;
	}
}

/* Add the last tasks that panicked, as far as there is memory. */
static void note_panics(struct tdt__findings *findings, uint64_t now)
{
	struct tdt_trace *trace;

	findings->public.panicked = tdt__panic_count();
	for (uint64_t back = 0; back < TDT__PANICS && back < findings->public.panicked; back++)
		if (tdt__panic_trace(back, now, &trace) == 0)
			tdt__findings_add_lone(findings, TDT__PANICKED, TDT_ANSWER_FRESH, trace);
}

static void note_orphans(struct taking *taking, const struct tdt__past_view *view)
{
	struct tdt__lock_places places = lock_places(taking);
	struct tdt__orphans orphans;

	tdt__orphans_find(&places, &orphans);
	for (size_t i = 0; i < orphans.n; i++)
		tdt__findings_add_lone(taking->findings, TDT__ORPHANED, TDT_ANSWER_FRESH,
				       tdt__past_orphan(view, &orphans.lock[i]));
	free(orphans.lock);
}

static void note_lost(struct tdt__findings *findings, const struct tdt__past_view *view)
{
	struct tdt__losts losts;

	tdt__losts_here(&losts, view->now);
	findings->public.n_unsure_lost = losts.n_unsure;
	for (size_t i = 0; i < losts.n; i++)
		tdt__findings_add_lone(findings, TDT__LOST_WAKEUP, TDT_ANSWER_LAST,
				       tdt__past_lost(view, &losts, i));
	free(losts.lost);
}

/*
 * Complete the snapshot.  This needs no memory except for the cycles and panics, which are left out
 * without it.
 */
static const struct tdt_snapshot *conclude(struct taking *taking)
{
	struct tdt__lock_places places = lock_places(taking);
	struct tdt__findings *findings = taking->findings;
	struct tdt__past_view past;

	findings->public.took_ns = tdt__clock() - taking->start;
	findings->public.lost = taking->lost + taking->unlisted;
	findings->public.unseen = taking->how.only_unseen;
	release_all(taking);
	tdt__futurelocks_find(&places);
	past = tdt__past_here(tdt__clock());
	note_orphans(taking, &past);
	note_panics(findings, past.now);
	note_lost(findings, &past);
	findings->public.misuse = tdt_misused();
	taking->findings = NULL;
	tdt__findings_conclude(findings);
	return &findings->public;
}

static int read_options(struct tdt_dump_options *ours, struct tdt_task_filter *filter,
			const struct tdt_dump_options *theirs)
{
	int error = tdt__options_read(ours, sizeof *ours, theirs);

	if (error == 0 && ours->timeout_ns < 0)
		error = -EINVAL;
	return error != 0 ? error : tdt__filter_read(filter, ours->filter);
}

const struct tdt_snapshot *tdt__snapshot_take(const struct tdt_dump_options *options,
					      struct tdt__snapshot_how how)
{
	struct taking taking
	    __attribute__((cleanup(taking_fini))) = { .start = tdt__clock(),
						      .how = how };
	struct tdt_dump_options ours;
	int error = read_options(&ours, &taking.filter, options);

	if (error != 0)
		return tdt__nothing(error);
	taking.findings = tdt__findings_new();
	if (taking.findings == NULL)
		goto no_memory;
	taking.deadline =
	    taking.start + (uint64_t)(ours.timeout_ns != 0 ? ours.timeout_ns : TDT__SECOND);
	list_all(&taking);
	if (!tdt__findings_sort(taking.findings) || (members(&taking) == 0 && taking.lost > 0))
		goto no_memory;
	TDT__COUNT(dumps);
	TDT__POKE(tdt__registry.now, taking.start);
	request_all(&taking, &ours);
	return conclude(&taking);

no_memory:
	return tdt__nothing(-ENOMEM);
}

const struct tdt_snapshot *tdt_snapshot_take(const struct tdt_dump_options *options)
{
	return tdt__snapshot_take(options, (struct tdt__snapshot_how){ .finds_busy = false });
}

void tdt_snapshot_free(const struct tdt_snapshot *snapshot)
{
	tdt__findings_free((struct tdt__findings *)(uintptr_t)snapshot);
}
