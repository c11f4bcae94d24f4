// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading two profiles into one table.  The files may hold anything. */

#include "cli/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/read_parts.h"
#include "cli/text_table.h"
#include "tree-printer/forms.h"
#include "tree-printer/words.h"

void stacks_fini(struct stacks *stacks)
{
	free(stacks->stack);
	tdt__texts_fini(&stacks->texts);
	*stacks = (struct stacks){ 0 };
}

/* The stack, found or made.  NULL: no memory. */
static struct stack *find_or_add(struct stacks *stacks, const char *text, size_t n)
{
	uint32_t i;

	if (!tdt__array_grow(&stacks->stack, stacks->n, &stacks->room, sizeof *stacks->stack))
		return NULL;
	i = tdt__texts_number(&stacks->texts, text, n);
	if (i == TDT__INDEX_NONE)
		return NULL;
	if (i == stacks->n)
		stacks->stack[stacks->n++] = (struct stack){ .text = stacks->texts.text[i].bytes };
	return &stacks->stack[i];
}

int stacks_add(const struct stacks_side *to, const char *text, size_t n, uint64_t count)
{
	uint64_t *total = &to->stacks->total[to->side];
	struct stack *stack;

	if (__builtin_add_overflow(*total, count, total))
		return -EOVERFLOW;
	stack = find_or_add(to->stacks, text, n);
	if (stack == NULL)
		return -ENOMEM;
	stack->count[to->side] += count; /* which is not more than the total */
	return 0;
}

/* Read the number at the end of a line.  Returns the length of the stack before it, or 0. */
static size_t split_line(const char *line, size_t length, uint64_t *count)
{
	const char *space = memchr(line, '\0', length) == NULL ? strrchr(line, ' ') : NULL;
	char *end;

	if (space == NULL || space == line || space[1] < '0' || space[1] > '9')
		return 0;
	errno = 0;
	*count = strtoull(space + 1, &end, 10);
	return *end == '\0' && errno == 0 ? (size_t)(space - line) : 0;
}

static int add_line_of_stack(const struct stacks_side *to, char *line, size_t length)
{
	uint64_t count;
	size_t n;

	while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
		line[--length] = '\0';
	if (length == 0)
		return 0;
	n = split_line(line, length, &count);
	return n != 0 ? stacks_add(to, line, n, count) : -EINVAL;
}

int stacks_read_folded(const struct stacks_side *to, FILE *file, unsigned long *line)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t length;
	int error = 0;

	*line = 0;
	while (error == 0 && (errno = 0, length = getline(&text, &room, file)) >= 0) {
		++*line;
		error = add_line_of_stack(to, text, (size_t)length);
	}
	if (error == 0 && !feof(file))
		error = errno != 0 ? -errno : -EIO;
	free(text);
	return error;
}

/* Add a frame.  A `;` or an end of line in its name would end it. */
static void add_frame_name(struct tdt__string *stack, const char *name)
{
	size_t at = stack->n + 1;

	tdt__string_printf(stack, ";%s", name);
	tdt__string_protect(stack, at);
}

static int add_frames(const struct json_place *place, struct tdt__string *stack)
{
	const json_t *frames = json_object_get(place->object, "frames");
	size_t n = json_array_size(frames);

	if (frames != NULL && !json_is_array(frames))
		return reader_fail_at(place, "frames", "not an array");
	if (n == 0)
		tdt__string_puts(stack, ";(unknown)");
	while (n-- > 0) {
		const struct json_place frame = { .reader = place->reader,
						  .object = json_array_get(frames, n),
						  .name = "frame" };
		const char *function, *module, *pc;

		if (reader_string(&frame, "function", &function) ||
		    reader_string(&frame, "module", &module) || reader_string(&frame, "pc", &pc))
			return -1;
		add_frame_name(stack, function != NULL ? function
				      : module != NULL ? module
				      : pc != NULL     ? pc
						       : "?");
	}
	return 0;
}

static int stack_of_place(const struct json_place *place, struct tdt__string *stack, uint64_t *ns)
{
	const char *state, *kind, *task;

	if (reader_string(place, "state", &state) || reader_string(place, "kind", &kind) ||
	    reader_string(place, "task", &task) || reader_require(place, "ns") ||
	    reader_number(place, "ns", UINT64_MAX, ns))
		return -1;
	add_frame_name(stack, task != NULL && task[0] != '\0' ? task : "(no name)");
	add_frame_name(stack, state != NULL ? state : "?");
	if (kind != NULL)
		tdt__string_printf(stack, ": %s", kind);
	return add_frames(place, stack);
}

static int add_place_of_profile(const struct json_place *place)
{
	const struct stacks_side *to = place->reader->arg;
	struct tdt__string stack = { 0 };
	uint64_t ns;
	int result = stack_of_place(place, &stack, &ns);

	if (result == 0 && stack.failed)
		result = reader_no_memory(place->reader);
	else if (result == 0 && stacks_add(to, stack.bytes + 1, stack.n - 1, ns) != 0)
		result = reader_fail(place->reader, "times that are too long, or too much of it");
	tdt__string_free(&stack);
	return result;
}

int stacks_read_profile(struct reader *reader, const struct json_t *object)
{
	const json_t *places = json_object_get(object, "places");
	int result = 0;

	if (!json_is_array(places))
		return reader_fail(reader, "places: not an array");
	for (size_t i = 0; i < json_array_size(places) && result == 0; i++) {
		struct json_place place = { .reader = reader,
					    .object = json_array_get(places, i) };

		snprintf(place.name, sizeof place.name, "places[%zu]", i);
		result = add_place_of_profile(&place);
	}
	return result == 0 ? 1 : result;
}

#define MOST_STACKS 20 /* rows of the table */

/* Text of plain characters may have escapes already, and is not escaped again. */
static void add_harmless(struct tdt__string *string, const char *text)
{
	const char *at = text;

	while (*at >= ' ' && *at <= '~')
		at++;
	if (*at == '\0')
		tdt__string_puts(string, text);
	else
		tdt__string_text(string, text);
}

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
			  const struct stack *stack)
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
	add_harmless(&table->text, stack->text);
	text_table_cell(table);
}

void stacks_text(struct tdt__out *out, const struct stacks *stacks,
		 const struct tdt_print_options *options)
{
	static const struct text_column columns[] = {
		{ "CHANGE", true }, { "BEFORE", true }, { "AFTER", true }, { "STACK", false }
	};
	const struct stack **sorted = calloc(stacks->n + 1, sizeof *sorted);
	size_t rows = stacks->n < MOST_STACKS ? stacks->n : MOST_STACKS;
	struct tdt__string string = { 0 };
	struct text_table table;

	stacks_heading(&string, stacks);
	tdt__out_take(out, &string);
	if (sorted == NULL) {
		out->no_memory = true;
		return;
	}
	for (size_t i = 0; i < stacks->n; i++)
		sorted[i] = &stacks->stack[i];
	qsort_r(sorted, stacks->n, sizeof *sorted, by_change, (void *)(uintptr_t)stacks);
	text_table_begin(&table, columns, 4, rows);
	table.text.options = options;
	for (size_t i = 0; i < rows && !table.text.failed; i++)
		add_stack_row(&table, stacks, sorted[i]);
	text_table_end(&table, out);
	free(sorted);
}

static void count_members(struct tdt__json *json, const uint64_t counts[2])
{
	tdt__json_u64(json, "before", counts[0]);
	tdt__json_u64(json, "after", counts[1]);
}

static void stack_members(struct tdt__json *json, const struct stack *stack)
{
	count_members(json, stack->count);
	tdt__json_string(json, "stack", stack->text);
}

void stacks_json(struct tdt__out *out, const struct stacks *stacks)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_begin(&json, "diff", '{');
	count_members(&json, stacks->total);
	tdt__json_end(&json, '}');
	TDT__JSON_LIST(&json, "stacks", stacks->stack, stacks->n, stack_members, &json);
	tdt__json_finish(&json);
}

void stacks_folded(struct tdt__out *out, const struct stacks *stacks,
		   const struct tdt_print_options *options)
{
	struct tdt__string line = { .options = options };

	for (size_t i = 0; i < stacks->n && out->error == 0; i++) {
		const struct stack *stack = &stacks->stack[i];

		add_harmless(&line, stack->text);
		tdt__string_printf(&line, " %" PRIu64 " %" PRIu64 "\n", stack->count[0],
				   stack->count[1]);
		tdt__out_take(out, &line);
	}
}
