// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Asking a target for the trees of its tasks: see answer.h. */

#include "cli/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "facts/traceparent.h"

void read_choice(struct tdt__task_choice *choice, int argc, char **argv)
{
	uint64_t *ids = calloc((size_t)argc + 1, sizeof *ids);

	if (ids == NULL)
		exit(report_no_memory());
	for (int i = 0; i < argc; i++)
		if (!program_number(argv[i], &ids[i]))
			bad_usage("not the id of a task: ", argv[i]);
	tdt__choose_ids(choice, ids, (size_t)argc);
}

bool choose_trace(struct tdt__task_choice *choice, const struct tdt__tasks *tasks,
		  const char *trace)
{
	uint64_t *ids = calloc(tasks->n + 1, sizeof *ids);
	size_t n = 0;

	free((void *)(uintptr_t)choice->ids);
	for (size_t i = 0; i < tasks->n && ids != NULL; i++)
		if (tdt__is_of_trace(&tasks->task[i].member.info.context, trace))
			ids[n++] = tasks->task[i].member.info.id;
	/* No task has the id 0, so it stands for none. */
	tdt__choose_ids(choice, ids, ids != NULL && n == 0 ? 1 : n);
	return ids != NULL;
}

#define REQUEST_TIME TDT__SECOND

/* While one copy of the library is asked. */
struct question {
	const struct options *options;
	const struct tdt__task_choice *choice;
	struct outside *outside;
	size_t registry;
	struct tdt__answers answers;
	struct tdt__trouble refused; /* why there are no answers; "": there are */
	struct answer before;	     /* before the requests; `findings` is NULL: none was made */
};

static void report_not_requested(const struct question *question)
{
	if (question->answers.left_out == 0)
		return;
	report_trouble("%" PRIu64 " tasks were only read, not requested: each request wakes a "
		       "task, so tdt makes %" PRIu64 " at most (--max-requests)",
		       question->answers.left_out, question->options->max_requests);
}

/* Whether the tree of each task was read as it is now. */
static bool were_all_read(const struct tdt_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_groups; i++)
		if (snapshot->groups[i]->n != 0 &&
		    snapshot->groups[i]->answer != TDT_ANSWER_FRESH &&
		    snapshot->groups[i]->answer != TDT_ANSWER_RUNNING)
			return false;
	return true;
}

/* Nothing is missing if all trees could be read, as those of fibers can. */
static void report_refused(const struct tdt__trouble *trouble, const struct tdt_snapshot *snapshot)
{
	if (trouble->text[0] != '\0' && !were_all_read(snapshot))
		report_trouble("%s.  So there are only the trees that can be read, as with "
			       "--no-request", trouble->text);
}

/* Request the trees.  If that fails, there is still what can be read. */
static void request_trees(struct question *question, const struct tdt__task_choice *choice)
{
	const struct options *options = question->options;
	uint64_t start = tdt__clock();
	struct tdt__door door;
	int error =
	    tdt__door_open(&door, &question->outside->target,
			   &question->outside->found[question->registry], &question->refused);

	report_time(options, "going through the door", start);
	if (error == 0) {
		start = tdt__clock();
		error = tdt__answers_request(&question->answers, &door, choice,
					     (uint32_t)options->max_requests, REQUEST_TIME,
					     &question->refused);
		tdt__door_close(&door);
		report_time(options, "requesting the trees", start);
	}
	if (error == 0)
		question->refused.text[0] = '\0';
	report_not_requested(question);
}

/* The ids of the tasks whose rings are unproven.  Returns 0 or -ENOMEM. */
static int unproven_ids(struct tdt__task_choice *choice, uint64_t **ids, struct tdt__tasks *tasks)
{
	struct tdt__outside_found found;
	int error = tdt__outside_found(&found, tasks);
	const struct tdt_snapshot *snapshot = &found.snapshot;

	*ids = error == 0 ? malloc((tasks->n + 1) * sizeof **ids) : NULL;
	for (size_t i = 0; i < snapshot->n_cycles && *ids != NULL; i++)
		for (size_t k = 0; k < snapshot->cycles[i]->n && snapshot->cycles[i]->unproven; k++)
			(*ids)[choice->n_ids++] = snapshot->cycles[i]->tasks[k]->id;
	tdt__outside_found_fini(&found);
	choice->ids = *ids;
	return *ids != NULL ? 0 : -ENOMEM;
}

static int read_tasks_for(struct question *question, struct tdt__tasks *tasks)
{
	return outside_tasks(question->outside, tasks, question->registry, question->options);
}

/*
 * A check may run every minute, and must not wake tasks: it requests only those of which an answer
 * tells whether they are in a deadlock.
 */
static int request_unproven(struct question *question)
{
	struct tdt__task_choice choice = { 0 };
	struct tdt__tasks tasks;
	uint64_t *ids = NULL;
	int status = read_tasks_for(question, &tasks);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (unproven_ids(&choice, &ids, &tasks) != 0)
		status = report_no_memory();
	else if (choice.n_ids != 0)
		request_trees(question, &choice);
	free(ids);
	tdt__tasks_fini(&tasks);
	return status;
}

/* Say once why the stacks of running threads are missing, and what helps. */
static void report_sampling(const struct tdt__sampling *sampling)
{
	if (sampling->refused == 0)
		return;
	report_trouble("stacks of running threads could not be read: %s: %s.  %s",
		       sampling->stops ? "ptrace(2)" : "perf_event_open(2)",
		       strerror(sampling->refused),
		       sampling->stops ? "Without --ptrace samples are taken"
				       : "What helps: sysctl kernel.perf_event_paranoid=2, to run "
					 "tdt as root, or --ptrace");
}

/* Make the requests.  They may change the tasks, so these are looked at before. */
static int make_answer_requests(struct question *question)
{
	static const struct tdt__answers none;
	const struct options *options = question->options;
	struct tdt__task_choice asked = *question->choice;
	struct tdt__sampling sampling = { .stops = options->ptrace };
	struct answer *before = &question->before;
	int status;

	if (options->core != NULL || options->max_requests == 0 ||
	    question->outside->found[question->registry].registry.slabs == 0)
		return PROGRAM_GOES_ON;
	if (options->check.on)
		return request_unproven(question);
	status = read_tasks_for(question, &before->tasks);
	if (status != PROGRAM_GOES_ON)
		return status;
	before->findings = tdt__outside_dump(&before->tasks, question->choice, &none, &sampling);
	if (before->findings == NULL)
		return report_no_memory();
	asked.unseen = !options->request;
	request_trees(question, &asked);
	return PROGRAM_GOES_ON;
}

/*
 * Choose also the tasks of the rings that a chosen task is in: only whole rings are shown.  The
 * caller frees `ids` of the new choice.  Returns 0 or -ENOMEM.
 */
static int choose_rings(struct tdt__task_choice *chosen, const struct tdt__task_choice *choice,
			struct tdt__tasks *tasks)
{
	struct tdt__cycles cycles = { 0 };
	int error = choice->n_ids != 0 ? tdt__tasks_cycles(&cycles, tasks) : 0;
	uint64_t *ids = malloc((choice->n_ids + tasks->n + 1) * sizeof *ids);
	size_t n = choice->n_ids;

	*chosen = *choice;
	for (size_t i = 0; i < choice->n_ids && ids != NULL; i++)
		ids[i] = choice->ids[i];
	for (size_t i = 0; i < cycles.n && ids != NULL; i++) {
		const struct tdt_snapshot_cycle *cycle = &cycles.cycle[i];
		bool wanted = false;

		for (size_t k = 0; k < cycle->n; k++)
			wanted = wanted || tdt__is_chosen_id(choice, cycle->tasks[k]->id);
		for (size_t k = 0; k < cycle->n && wanted; k++)
			ids[n++] = cycle->tasks[k]->id;
	}
	tdt__cycles_fini(&cycles);
	tdt__choose_ids(chosen, ids, ids != NULL ? n : 0);
	return ids != NULL ? error : -ENOMEM;
}

/* Read what there is now.  `start` is when the requests began. */
static int read_answer(struct answer *answer, struct question *question, uint64_t start)
{
	struct tdt__sampling sampling = { .stops = question->options->ptrace };
	int status = read_tasks_for(question, &answer->tasks);
	uint64_t now = tdt__clock();
	struct tdt__task_choice chosen;

	if (status != PROGRAM_GOES_ON)
		return status;
	answer->findings =
		choose_rings(&chosen, question->choice, &answer->tasks) == 0
			? tdt__outside_dump(&answer->tasks, &chosen, &question->answers, &sampling)
			: NULL;
	free((void *)(uintptr_t)chosen.ids);
	answer->ended = !tdt__target_is_there(&question->outside->target);
	report_time(question->options, "reading the trees", now);
	report_sampling(&sampling);
	if (answer->findings == NULL) {
		tdt__tasks_fini(&answer->tasks);
		return report_no_memory();
	}
	answer->findings->public.took_ns = tdt__clock() - start;
	report_refused(&question->refused, &answer->findings->public);
	if (question->before.findings != NULL)
		tdt__outside_keep(answer->findings, question->before.findings, &question->answers);
	return PROGRAM_GOES_ON;
}

int answer_take(struct answer *answer, const struct options *options,
		const struct tdt__task_choice *choice, struct outside *outside, size_t registry)
{
	struct question question = {
		.options = options, .choice = choice, .outside = outside, .registry = registry
	};
	uint64_t start = tdt__clock();
	int status = make_answer_requests(&question);

	if (status == PROGRAM_GOES_ON)
		status = read_answer(answer, &question, start);
	if (status == PROGRAM_GOES_ON)
		answer->before = question.before.tasks;
	else
		tdt__tasks_fini(&question.before.tasks);
	tdt__findings_free(question.before.findings);
	tdt__answers_fini(&question.answers);
	return status;
}

void answer_fini(struct answer *answer)
{
	tdt__findings_free(answer->findings);
	tdt__tasks_fini(&answer->tasks);
	tdt__tasks_fini(&answer->before);
}
