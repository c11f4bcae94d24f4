// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Two profiles compared, as a table:
 *
 *	2 profiles: 12 stacks, 3 of them only in the first one, 1 only in the second one
 *
 *	 CHANGE  BEFORE   AFTER  STACK
 *	+12.3 %   4.0 %  16.3 %  conn *;waiting: mutex;conn_poll;tdt_mutex_lock
 *
 * The shares are of all counts of a profile, so that profiles of different lengths can be compared.
 */

#include "cli/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/text_table.h"
#include "tree-printer/forms.h"
#include "tree-printer/words.h"

#define MOST_STACKS 20 /* rows of the table */

/* Text of plain characters may have escapes already, and is not escaped again. */
static void add_harmless(struct tdt__string *string, const char *text,
			 const struct tdt_print_options *options)
{
	const char *at = text;

	while (*at >= ' ' && *at <= '~')
		at++;
	if (*at == '\0')
		tdt__string_puts(string, text);
	else
		tdt__string_escape(string, text, options->utf8 == TDT_PRINT_YES, '\0');
}

/* --- The table ---------------------------------------------------------------------- */

static double share_of(const struct stacks *stacks, const struct stack *stack, int side)
{
	return stacks->total[side] != 0
		       ? 100 * (double)stack->count[side] / (double)stacks->total[side]
		       : 0;
}

static double change_of(const struct stacks *stacks, const struct stack *stack)
{
	return share_of(stacks, stack, 1) - share_of(stacks, stack, 0);
}

static int by_change(const void *a, const void *b, void *arg)
{
	const struct stacks *stacks = arg;
	const struct stack *const *x = a, *const *y = b;
	double one = change_of(stacks, *x), other = change_of(stacks, *y);

	one = one < 0 ? -one : one;
	other = other < 0 ? -other : other;
	if (one != other)
		return one > other ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

static size_t count_only(const struct stacks *stacks, int side)
{
	size_t n = 0;

	for (size_t i = 0; i < stacks->n; i++)
		n += stacks->stack[i].count[side] != 0 && stacks->stack[i].count[!side] == 0;
	return n;
}

static void stacks_heading(struct tdt__string *string, const struct stacks *stacks)
{
	tdt__string_printf(
	    string,
	    "2 profiles: %s%s%s of them only in the first one, %s only in the second one\n\n",
	    TDT__NUMBER(stacks->n), stacks->n == 1 ? " stack, " : " stacks, ",
	    TDT__NUMBER(count_only(stacks, 0)), TDT__NUMBER(count_only(stacks, 1)));
}

static void add_stack_row(struct text_table *table, const struct stacks *stacks,
			  const struct stack *stack, const struct tdt_print_options *options)
{
	double change = change_of(stacks, stack);

	/* No zero has a sign. */
	if (change > -0.05 && change < 0.05)
		tdt__string_puts(&table->text, "0.0 %");
	else
		tdt__string_printf(&table->text, "%+.1f %%", change);
	text_table_cell(table);
	for (int side = 0; side < 2; side++) {
		tdt__string_printf(&table->text, "%.1f %%", share_of(stacks, stack, side));
		text_table_cell(table);
	}
	add_harmless(&table->text, stack->text, options);
	text_table_cell(table);
}

static int stacks_table(struct tdt__out *out, const struct stacks *stacks,
			const struct stack *const *sorted, size_t n,
			const struct tdt_print_options *options)
{
	static const struct text_column columns[] = {
		{ "CHANGE", true }, { "BEFORE", true }, { "AFTER", true }, { "STACK", false }
	};
	struct text_table table;

	text_table_begin(&table, columns, 4, n);
	for (size_t i = 0; i < n && !table.text.failed; i++)
		add_stack_row(&table, stacks, sorted[i], options);
	return text_table_end(&table, out);
}

int stacks_text(struct tdt__out *out, const struct stacks *stacks,
		const struct tdt_print_options *options)
{
	const struct stack **sorted = calloc(stacks->n + 1, sizeof *sorted);
	size_t n = stacks->n < MOST_STACKS ? stacks->n : MOST_STACKS;
	struct tdt__string string = { 0 };
	int error;

	stacks_heading(&string, stacks);
	error = tdt__out_take(out, &string);
	if (sorted == NULL)
		error = -ENOMEM;
	if (error == 0) {
		for (size_t i = 0; i < stacks->n; i++)
			sorted[i] = &stacks->stack[i];
		qsort_r(sorted, stacks->n, sizeof *sorted, by_change,
			(void *)(uintptr_t)stacks);
		error = stacks_table(out, stacks, sorted, n, options);
	}
	free(sorted);
	return error;
}

/* --- JSON --------------------------------------------------------------------------- */

static void json_counts(struct tdt__json *json, const uint64_t counts[2])
{
	tdt__json_u64(json, "before", counts[0]);
	tdt__json_u64(json, "after", counts[1]);
}

int stacks_json(struct tdt__out *out, const struct stacks *stacks)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_begin(&json, "diff", '{');
	json_counts(&json, stacks->total);
	tdt__json_end(&json, '}');
	tdt__json_begin(&json, "stacks", '[');
	for (size_t i = 0; i < stacks->n && out->error == 0; i++) {
		tdt__json_begin(&json, NULL, '{');
		json_counts(&json, stacks->stack[i].count);
		tdt__json_string(&json, "stack", stacks->stack[i].text);
		tdt__json_end(&json, '}');
	}
	tdt__json_end(&json, ']');
	return tdt__json_finish(&json);
}

/* --- Folded stacks ------------------------------------------------------------------ */

int stacks_folded(struct tdt__out *out, const struct stacks *stacks,
		  const struct tdt_print_options *options)
{
	struct tdt__string line = { 0 };
	int error = 0;

	for (size_t i = 0; i < stacks->n && error == 0 && out->error == 0; i++) {
		const struct stack *stack = &stacks->stack[i];

		add_harmless(&line, stack->text, options);
		tdt__string_printf(&line, " %" PRIu64 " %" PRIu64 "\n", stack->count[0],
				   stack->count[1]);
		error = tdt__out_take(out, &line);
	}
	return error;
}
