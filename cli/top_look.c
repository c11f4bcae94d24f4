// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * One look at the target: see top_look.h.  All tasks are read, as tdt bt --no-request does it, and
 * what is shown of them is put into the round.  Only the open task is requested, if at all.
 */

#include "cli/top_look.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/dump.h"
#include "reader/history.h"
#include "reader/recorded.h"
#include "reader/thread_table.h"
#include "recording/timeline.h"
#include "tree-printer/dumps.h"
#include "tree-printer/stuck_locks.h"
#include "tree-printer/names.h"
#include "tree-printer/words.h"
#include "tree/groups.h"
#include "tree/waits.h"

#define REQUEST_NS TDT__SECOND
#define TREE_TIME (5 * TDT__SECOND)
#define WATCH_NS (TDT__SECOND / 100) /* between the trees of a task */

struct round_look {
	const struct top_look *look;
	struct top_round *round;
	struct outside outside;
	struct tdt__answers answers;
	struct tdt__tasks tasks;
	struct tdt__findings *findings;
	struct top_places *places;
	struct tdt__names *names;
};

/* --- Texts -------------------------------------------------------------------------- */

static void keep_escaped(const struct round_look *looking, char to[TOP_TEXT], const char *text)
{
	struct tdt__string string = { .options = &looking->look->options->print };

	if (text != NULL)
		tdt__string_text(&string, text);
	top_keep_text(to, &string);
}

/* --- The process -------------------------------------------------------------------- */

static void look_at_process(struct round_look *looking)
{
	struct top_round *round = looking->round;
	struct tdt__seen_misuse seen;
	struct tdt__string string = { .options = &looking->look->options->print };

	round->pid = (uint32_t)looking->outside.target.pid;
	round->state = tdt__target_state(&looking->outside.target);
	round->copies = (uint32_t)looking->outside.n_found;
	keep_escaped(looking, round->library, looking->tasks.registry.library);
	if (!tdt__history_misuse(&looking->tasks, &seen))
		return;
	tdt__misuse_line(&string, &seen.misuse);
	if (string.n > 0)
		string.n--; /* the end of the line */
	top_keep_text(round->misuse, &string);
}

static void count_tasks(struct round_look *looking)
{
	const struct tdt_snapshot *snapshot = &looking->findings->public;

	tdt__history_counts(&looking->tasks, &looking->round->counts);
	looking->round->tasks = snapshot->tasks;
	looking->round->with_tree = snapshot->tasks - snapshot->unanswered;
}

/* --- Rings -------------------------------------------------------------------------- */

/* Keep a line, without its end.  `stuck`: it is of what cannot go on. */
static void keep_ring(struct round_look *looking, struct tdt__string *string, bool stuck)
{
	struct top_round *round = looking->round;

	if (string->n > 0 && string->bytes[string->n - 1] == '\n')
		string->n--;
	round->deadlocks += stuck;
	if (round->n_rings < TOP_RINGS)
		top_keep_text(round->ring[round->n_rings++], string);
	tdt__string_free(string);
}

static void show_rings(struct round_look *looking, struct tdt__string *string, bool deadlocks)
{
	const struct tdt_snapshot *snapshot = &looking->findings->public;

	for (size_t i = 0; i < snapshot->n_cycles; i++) {
		if ((snapshot->cycles[i]->deadlock != 0) != deadlocks)
			continue;
		tdt__ring_line(string, snapshot->cycles[i], TOP_TEXT);
		keep_ring(looking, string, deadlocks);
	}
}

/* Tasks that cannot go on come first.  The whole line has a colour, so its parts have none. */
static int look_at_waits(struct round_look *looking)
{
	const struct tdt_snapshot *snapshot = &looking->findings->public;
	struct tdt_print_options plain = looking->look->options->print;
	struct tdt__string string = { .options = &plain };
	struct tdt__stuck_locks locks;
	int error = tdt__stuck_locks_collect(&locks, snapshot);

	plain.color = TDT_PRINT_NO;
	show_rings(looking, &string, true);
	for (size_t i = 0; i < locks.n; i++) {
		tdt__stuck_lock_line(&string, &locks.lock[i], looking->names);
		keep_ring(looking, &string, true);
	}
	free(locks.lock);
	for (size_t i = 0; i < snapshot->n_lost_wakeups; i++) {
		tdt__lost_line(&string, snapshot->lost_wakeups[i]->tasks[0], 0, looking->names);
		keep_ring(looking, &string, true);
	}
	for (size_t i = 0; i < looking->tasks.n; i++) {
		if (looking->tasks.task[i].member.info.busy_polls == 0)
			continue;
		tdt__busy_line(&string, &looking->tasks.task[i].member.info);
		keep_ring(looking, &string, false);
	}
	show_rings(looking, &string, false);
	return error;
}

/* The first groups have the tasks that are in deadlocks. */
static size_t groups_of_deadlocks(const struct tdt_snapshot *snapshot)
{
	size_t n = 0;

	for (size_t i = 0; i < snapshot->n_cycles; i++)
		n += snapshot->cycles[i]->n_groups;
	return n;
}

/* --- Tasks -------------------------------------------------------------------------- */

/* A task of a group. */
struct chosen {
	const struct tdt_task_info *task;
	size_t group;
	unsigned rank; /* the smaller, the more suspicious */
};

static bool matches_question(const struct top_question *question, const struct tdt_task_info *info)
{
	enum { POLLED = 1 << TDT_TASK_RUNNING, RUNNABLE = 1 << TDT_TASK_RUNNABLE };
	static const int states[TOP_ONLYS] = { -1, ~(POLLED | RUNNABLE), RUNNABLE, POLLED };
	char pattern[sizeof question->filter + 2], id[24];

	if ((states[question->only] & 1 << info->state) == 0)
		return false;
	if (question->filter[0] == '\0')
		return true;
	snprintf(pattern, sizeof pattern, "*%s*", question->filter);
	snprintf(id, sizeof id, "%" PRIu64, info->id);
	return strcmp(question->filter, id) == 0 ||
	       (info->name != NULL && fnmatch(pattern, info->name, 0) == 0);
}

static int by_question(const void *x, const void *y, void *arg)
{
	static const enum task_key keys[TOP_SORTS] = {
		[TOP_BY_SUSPICION] = BY_FOR, [TOP_BY_FOR] = BY_FOR,   [TOP_BY_AGE] = BY_AGE,
		[TOP_BY_POLLS] = BY_POLLS,   [TOP_BY_NAME] = BY_NAME, [TOP_BY_ID] = BY_ID,
	};
	const struct top_question *question = arg;
	const struct chosen *a = x, *b = y;
	int order = question->sort == TOP_BY_SUSPICION ? (int)a->rank - (int)b->rank : 0;

	if (order == 0)
		order = compare_tasks(keys[question->sort], a->task, b->task);
	return question->reverse ? -order : order;
}

static void where_of(const struct round_look *looking, const struct chosen *chosen,
		     struct tdt__string *string)
{
	const struct tdt_task_info *info = chosen->task;
	const struct tdt_wait *wait = info->n_waits != 0 ? info->waits[0] : NULL;
	struct tdt_wait shown;

	if (wait == NULL || !tdt__wait_is_news(wait)) {
		tdt__string_puts(string, top_places_text(looking->places, chosen->group,
							  info));
		return;
	}
	shown = *wait;
	if (shown.name[0] != '\0')
		shown.object = 0; /* the name says which one */
	tdt__waited_for(string, &shown, info->id, tdt__names_owner(looking->names, wait));
}

static void show_task(const struct round_look *looking, const struct chosen *chosen,
		      struct top_task *to)
{
	const struct tdt_task_info *info = chosen->task;
	struct tdt__string string = { .options = &looking->look->options->print };

	*to = (struct top_task){
		.id = info->id,
		.parent = info->parent,
		.owner = info->n_waits != 0 ? info->waits[0]->owner : 0,
		.state_ns = info->state_ns,
		.age_ns = info->spawned_ns,
		.polls = info->polls,
		.state = info->state,
		.deadlock = chosen->rank == 0,
	};
	keep_escaped(looking, to->name, info->name);
	where_of(looking, chosen, &string);
	top_keep_text(to->where, &string);
}

/* Deadlocks and futurelocks come first, then polls, then runnable tasks. */
static unsigned rank_of_task(const struct tdt_task_info *task, bool deadlock)
{
	if (deadlock || tdt__waits_in_vain(task))
		return 0;
	if (task->state == TDT_TASK_RUNNING)
		return 1;
	return task->state == TDT_TASK_RUNNABLE ? 2 : 3;
}

static size_t list_matching(const struct round_look *looking, struct chosen *chosen)
{
	const struct tdt_snapshot *snapshot = &looking->findings->public;
	size_t n = 0, deadlocks = groups_of_deadlocks(snapshot);

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *task = snapshot->groups[i]->tasks[k];

			if (matches_question(&looking->look->question, task))
				chosen[n++] = (struct chosen){
					task, i, rank_of_task(task, i < deadlocks)
				};
		}
	return n;
}

static int choose_tasks(struct round_look *looking)
{
	struct top_question question = looking->look->question;
	struct top_round *round = looking->round;
	struct chosen *chosen = calloc(looking->findings->public.tasks + 1, sizeof *chosen);
	size_t n;

	if (chosen == NULL)
		return -ENOMEM;
	n = list_matching(looking, chosen);
	qsort_r(chosen, n, sizeof *chosen, by_question, &question);
	round->n_matching = n;
	round->n_tasks = n < TOP_TASKS ? n : TOP_TASKS;
	for (size_t i = 0; i < round->n_tasks; i++)
		show_task(looking, &chosen[i], &round->task[i]);
	free(chosen);
	return 0;
}

/* --- Threads ------------------------------------------------------------------------ */

/* The CPU time of a thread in nanoseconds; 0: unknown. */
static uint64_t cpu_ns_of(const struct tdt__target *target, uint32_t id)
{
	char text[128];

	tdt__thread_proc_text(target, tdt__thread_here(target, id), "schedstat", text, sizeof text);
	return strtoull(text, NULL, 10);
}

static void show_thread(const struct round_look *looking, const struct tdt__known_thread *known,
			struct top_thread *to)
{
	const struct tdt_task_info *task =
		known->polls != NULL ? &known->polls->member.info : NULL;

	*to = (struct top_thread){ .id = known->id,
				   .worker = known->worker,
				   .polls = task != NULL,
				   .parked = task == NULL && known->parked_ns != 0,
				   .ns = task != NULL ? task->state_ns : known->parked_ns,
				   .task = task != NULL ? task->id : 0,
				   .cpu_ns = cpu_ns_of(&looking->outside.target, known->id) };
	keep_escaped(looking, to->name, known->name);
	if (task != NULL)
		keep_escaped(looking, to->task_name, task->name);
}

/* The workers come first: if there are too many threads, others are left out. */
static int look_at_threads(struct round_look *looking)
{
	struct top_round *round = looking->round;
	struct tdt__thread_table table;
	int error = tdt__thread_table_read(&table, &looking->tasks);

	if (error != 0)
		return error;
	for (int worker = 1; worker >= 0; worker--)
		for (size_t i = 0; i < table.n; i++) {
			if (table.thread[i].worker != (worker != 0))
				continue;
			round->workers += worker != 0;
			round->workers_polling += worker != 0 && table.thread[i].polls != NULL;
			if (round->n_threads < TOP_THREADS)
				show_thread(looking, &table.thread[i],
					    &round->thread[round->n_threads++]);
		}
	tdt__thread_table_fini(&table);
	return 0;
}

/* --- The open task ------------------------------------------------------------------ */

/* Print the task as tdt bt prints it, with the names of those that it waits for. */
static int print_tree_of(struct round_look *looking, const struct tdt_snapshot_group *group,
			 const struct tdt_task_info *const *task)
{
	const struct tdt_snapshot_group one = { .size = sizeof one,
						.answer = group->answer,
						.trace = group->trace,
						.tasks = task,
						.n = 1 };
	const struct tdt_snapshot_group *const groups = &one;
	const struct tdt_snapshot snapshot = {
		.size = sizeof snapshot, .tasks = 1, .groups = &groups, .n_groups = 1, .outside = 1
	};
	const struct tdt__dump dump = { .snapshot = &snapshot,
					.names = looking->names,
					.options = &looking->look->options->print,
					.max_ids = 1 };
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	struct tdt__out out = { .file = file };
	uint64_t unnamed = 0;
	int error;

	if (file == NULL)
		return -ENOMEM;
	tdt__snapshot_name(&snapshot, tdt__clock() + TREE_TIME, &unnamed);
	tdt__dump_groups(&out, &dump);
	error = tdt__out_end(&out);
	if (fclose(file) == 0 && error == 0) {
		looking->round->tree_size = size < TOP_TREE ? size : TOP_TREE;
		memcpy(looking->round->tree, text, looking->round->tree_size);
	}
	free(text);
	return error;
}

static int look_at_open_task(struct round_look *looking)
{
	const struct tdt_snapshot *snapshot = &looking->findings->public;

	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *task = snapshot->groups[i]->tasks[k];

			if (task->id != looking->look->question.id)
				continue;
			looking->round->is_there = true;
			if (task->n_waits != 0)
				looking->round->holder = task->waits[0]->owner;
			return print_tree_of(looking, snapshot->groups[i],
					     &snapshot->groups[i]->tasks[k]);
		}
	return 0;
}

/* --- Times -------------------------------------------------------------------------- */

#define TIMES_WINDOW (10 * (uint64_t)TDT__SECOND)

/* The events since `from`, as far as they are not only remarkable. */
static void count_step(struct top_times *times, const struct tdt__step *step, uint64_t from)
{
	const struct tdt__recorded_item *item = &step->item;

	if (item->event.kind != TDT_EVENT_POLL || item->remarkable || item->ns < from)
		return;
	if (item->kind == TDT__RECORDED_END && item->end >= item->begin)
		top_histogram_add(&times->polls, item->end - item->begin);
	if (tdt__step_ends_latency(step) && item->ns >= step->before.since)
		top_histogram_add(&times->latencies, item->ns - step->before.since);
}

static int count_steps(struct top_times *times, const struct tdt__recording *recording)
{
	uint64_t until = recording->until;
	uint64_t from = recording->sure_from;
	struct tdt__timeline timeline;
	struct tdt__step step;
	int error = tdt__timeline_begin(&timeline, recording);

	if (error != 0)
		return error;
	if (until > TIMES_WINDOW && until - TIMES_WINDOW > from)
		from = until - TIMES_WINDOW;
	times->window_ns = tdt__recording_time(recording, from, until);
	while (tdt__timeline_next(&timeline, &step))
		count_step(times, &step, from);
	tdt__timeline_end(&timeline);
	return 0;
}

static void look_at_times(struct top_times *times, struct outside *outside)
{
	const struct tdt__found *found = outside_recorder(outside, NULL);
	struct tdt__string why = { 0 };
	struct tdt__recording *recording;
	struct tdt__trouble trouble;
	void *copy;
	int error;

	times->runs = tdt__recorded_runs(&outside->target, found);
	error = tdt__recorded_open(&outside->target, &outside->images, found, &copy, &recording,
				   &trouble);
	if (error == 0) {
		error = count_steps(times, recording);
		if (error != 0)
			tdt__trouble(&trouble, error, "there is not enough memory");
		tdt__recording_close(recording);
		free(copy);
	}
	if (error != 0)
		tdt__string_escape(&why, trouble.text, false, '\0');
	times->there = error == 0;
	top_keep_text(times->trouble, &why);
}

/* --- All of it ---------------------------------------------------------------------- */

/* A stopped process could not answer.  Without an answer, there is still what can be read. */
static void request_open_task(struct round_look *looking)
{
	const struct top_question *question = &looking->look->question;
	const struct tdt__task_choice choice = { &question->id, 1, true };
	struct outside *outside = &looking->outside;
	char state = tdt__target_state(&outside->target);
	struct tdt__trouble trouble;
	struct tdt__door door;

	if (!question->open || !question->requests || state == 'T' || state == 't' ||
	    tdt__door_open(&door, &outside->target, &outside->found[0], &trouble) != 0)
		return;
	tdt__answers_request(&looking->answers, &door, &choice, 1, REQUEST_NS, &trouble);
	tdt__door_close(&door);
}

static int fill_round(struct round_look *looking)
{
	const struct tdt__task_choice all = { 0 };
	const struct top_question *question = &looking->look->question;
	struct tdt__sampling sampling = { 0 };
	int error;

	tdt__tasks_name(&looking->tasks, tdt__clock() + TDT__SECOND);
	looking->findings = tdt__outside_dump(&looking->tasks, &all, &looking->answers, &sampling);
	if (looking->findings == NULL)
		return -ENOMEM;
	looking->round->refused = sampling.refused;
	look_at_process(looking);
	count_tasks(looking);
	looking->names = tdt__names_new(&looking->findings->public);
	looking->places = top_places_find(looking->look, &looking->outside,
					  &looking->findings->public);
	if (looking->names == NULL || looking->places == NULL)
		return -ENOMEM;
	error = look_at_waits(looking);
	if (error == 0)
		error = choose_tasks(looking);
	if (error == 0)
		error = look_at_threads(looking);
	if (error == 0 && question->open)
		error = look_at_open_task(looking);
	if (error == 0 && question->view == TOP_VIEW_TIMES)
		look_at_times(&looking->round->times, &looking->outside);
	return error;
}

static int look_at_tasks(struct round_look *looking)
{
	int status = outside_tasks(&looking->outside, &looking->tasks, 0, looking->look->options);

	if (status != PROGRAM_GOES_ON)
		return status;
	looking->round->when = tdt__clock();
	status = fill_round(looking) == 0 ? EXIT_SUCCESS : report_no_memory();
	if (!tdt__target_is_there(&looking->outside.target))
		status = report_ended();
	top_places_free(looking->places);
	tdt__names_free(looking->names);
	tdt__findings_free(looking->findings);
	tdt__tasks_fini(&looking->tasks);
	return status;
}

int top_look(FILE *out, void *arg)
{
	const struct top_look *look = arg;
	struct round_look looking = { .look = look, .round = look->round };
	int status;

	dup2(fileno(out), STDERR_FILENO);
	status = outside_open(&looking.outside, look->options);
	if (status != PROGRAM_GOES_ON)
		return status;
	request_open_task(&looking);
	status = look_at_tasks(&looking);
	tdt__answers_fini(&looking.answers);
	outside_close(&looking.outside);
	return status;
}

int top_watch(FILE *out, void *arg)
{
	struct tdt_outside_watch watch = { .interval_ns = WATCH_NS };
	struct tdt__trouble trouble;
	struct outside outside;
	struct tdt__door door;
	int status;

	dup2(fileno(out), STDERR_FILENO);
	status = outside_open(&outside, arg);
	if (status != PROGRAM_GOES_ON)
		return status;
	if (tdt__door_open(&door, &outside.target, &outside.found[0], &trouble) != 0 ||
	    tdt__door_request(&door, &watch.header, TDT_OUTSIDE_WATCH, sizeof watch,
			      &trouble) != 0)
		return report_trouble("%s", trouble.text);
	while (tdt__target_is_there(&outside.target))
		pause();
	return report_ended();
}
