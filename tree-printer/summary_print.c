// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Prints the summary of a recording: reads the options, and looks up the names in its stacks. */

#include "summaries.h"

#include <errno.h>
#include <stdlib.h>

#include "forms.h"

#include "recording/read.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

/* While the stacks that a summary shows are collected. */
struct shown_stacks {
	struct tdt__summary_stack *entry;
	size_t n;
};

static void want_stack(struct shown_stacks *shown, uint32_t number)
{
	size_t i = 0;

	while (i < shown->n && shown->entry[i].number != number)
		i++;
	if (number != 0 && i == shown->n)
		shown->entry[shown->n++].number = number;
}

static int list_stacks(struct shown_stacks *shown, const struct tdt__summary *summary)
{
	size_t most = summary->slow.n + summary->locks.n + summary->waits.n;

	shown->entry = calloc(most + 1, sizeof(*shown->entry));
	if (shown->entry == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summary->slow.n; i++)
		want_stack(shown, summary->slow.entry[i].stack);
	for (size_t i = 0; i < summary->locks.n; i++)
		want_stack(shown, summary->locks.entry[i].stack);
	for (size_t i = 0; i < summary->waits.n; i++)
		want_stack(shown, summary->waits.entry[i].stack);
	return 0;
}

/* `n` return addresses, as the stack of one leaf.  NULL: no memory. */
static struct tdt__stacks *make_stack(const uint64_t *pcs, size_t n, enum tdt_cut cut,
				      struct tdt__modules *modules)
{
	struct tdt__stacks *stacks = tdt__stacks_new((uint32_t)n);

	if (stacks == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		stacks->frames[i] = (struct tdt__recorded){ .frame.pc = (uintptr_t)pcs[i],
							    .parent = i + 1 };
	stacks->frames[n - 1].parent = TDT__PARENT_CUT(cut); /* for no cut it is TDT__PARENT_TOP */
	stacks->frames[0].leaves = 1;
	stacks->n = (uint32_t)n;
	stacks->leaves = 1;
	stacks->modules = tdt__modules_ref(modules);
	return stacks;
}

/* Make the trace of a stack, and look up its names.  Returns 0 or -ENOMEM. */
static int name_stack(struct tdt__summary_stack *stack, const struct tdt__recording *recording,
		      struct tdt__modules *modules, uint64_t deadline)
{
	const uint64_t *pcs;
	enum tdt_cut cut;
	size_t n = tdt__recording_stack(recording, stack->number, &pcs, &cut);

	if (n == 0)
		return 0; /* the recording is damaged */
	stack->trace = tdt__trace_bare(make_stack(pcs, n, cut, modules));
	if (stack->trace == NULL || tdt__trace_root_by(stack->trace, deadline) == NULL)
		return -ENOMEM;
	return 0;
}

static void print_summary_form(struct tdt__out *out, const void *arg)
{
	const struct tdt__summary_form *form = arg;

	if (form->options->format == TDT_PRINT_TEXT)
		tdt__summary_text(out, form);
	else
		tdt__summary_json(out, form);
}

/* Text goes on without the stacks for which there was no memory; JSON without them is of no use. */
static int print_with_stacks(struct shown_stacks *shown, FILE *out, struct tdt__summary_form *form,
			     struct tdt__modules *modules, uint64_t deadline)
{
	int named = 0, printed;

	for (size_t i = 0; i < shown->n; i++)
		if (name_stack(&shown->entry[i], form->summary->recording, modules, deadline) != 0)
			named = -ENOMEM;
	if (named != 0 && form->options->format == TDT_PRINT_JSON)
		return named;
	form->stack = shown->entry;
	form->n_stacks = shown->n;
	printed = tdt__print_locked(out, form->options, print_summary_form, form);
	return printed != 0 ? printed : named;
}

int tdt__summary_print(const struct tdt__summary *summary, FILE *out,
		       const struct tdt_print_options *options, bool full,
		       struct tdt__modules *modules, uint64_t deadline)
{
	struct tdt_print_options ours;
	struct tdt__summary_form form = { .summary = summary, .options = &ours, .full = full };
	struct shown_stacks shown = { 0 };
	int err = tdt__print_options_read(&ours, options, out);

	if (err == 0 && ours.format == TDT_PRINT_FOLDED)
		err = -EINVAL;

	if (err == 0)
		err = list_stacks(&shown, summary);
	if (err == 0)
		err = print_with_stacks(&shown, out, &form, modules, deadline);
	for (size_t i = 0; i < shown.n; i++)
		tdt_trace_free(shown.entry[i].trace);
	free(shown.entry);
	return err;
}
