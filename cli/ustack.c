// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reads what tracers print; each form is recognized by how its entries begin.  The scripts for
 * bpftrace in tools/ print:
 *
 * 	@oncpu[7,                                    a map whose key ends with a stack
 * 	    parse+99                                 function+offset (decimal), or 0x55d0c0de1234
 * 	    tdt__traced_poll+195
 * 	]: 37
 * 	@waits[7, 0]:                                a map whose value is a stack, which ends
 * 	                                             with a blank line or another map
 * 	        tdt_probe_task__waker__clone+31
 * 	task 7 polled for 62.390 ms on thread 9, spawned at x.c:12; in task 7:
 * 	        parse+99
 *
 * The scripts for DTrace print, with offsets in hex:
 *
 * 	task 7                                       a sample; its stack is not indented, and
 * 	busy`parse+0x63                              a number ends it: how often it was seen
 * 	37
 * 	task 7, spawned at x.c:12                    where a waker was cloned, in the same form
 * 	task 7 has been polled for 30 ms on thread 9; in task 7:
 *
 * 	              busy`parse+0x63
 * 	task 7 polled for 62390 us on thread 9, spawned at x.c:12
 *
 * perf script prints the events sdt_tdt:task__poll__start and sdt_tdt:task__poll__end (from which
 * we know the task that a thread polls), sdt_tdt:task__waker__clone, and any other events with
 * stacks:
 *
 * 	busy 21346 [000] 14097.385: sdt_tdt:task__poll__start: (7ff5b3baa1ff) arg1=3 arg2=94582500433941 arg3=480
 * 	busy 21346 14097.386:     250000 cpu-clock:
 * 	            1f03 parse+0x63 (/usr/bin/busy)
 *
 * Other maps and messages of bpftrace and DTrace are ignored; any other line is an error.
 */

#include "cli/ustack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int fail_reading(struct ustack_reader *reader, const char *message)
{
	reader->message = message;
	return -1;
}

/* --- Lines ----------------------------------------------------------------- */

/* Read the next line, without its end.  Returns 1; 0: there is no more; or -1. */
static int next_line(struct ustack_reader *reader)
{
	size_t n = 0;
	int c;

	if (reader->again) {
		reader->again = false;
		return 1;
	}
	reader->line++;
	while ((c = getc_unlocked(reader->file)) != EOF && c != '\n') {
		if (c == '\0')
			return fail_reading(reader, "a NUL byte: this is no text");
		if (n == USTACK_LINE_MAX)
			return fail_reading(reader, "a line without end");
		reader->text[n++] = (char)c;
	}
	if (ferror(reader->file))
		return fail_reading(reader, strerror(errno));
	if (c == EOF && n == 0)
		return 0;
	while (n > 0 && (reader->text[n - 1] == ' ' || reader->text[n - 1] == '\t' ||
			 reader->text[n - 1] == '\r'))
		n--;
	reader->text[n] = '\0';
	return 1;
}

static const char *skip_space(const char *text)
{
	return text + strspn(text, " \t");
}

/*
 * Read the number at `*at`, and move `*at` behind it.  A sign or a space before it, or a number
 * that does not fit, is refused.
 */
static bool take_number(const char **at, int base, uint64_t *value)
{
	char *end;

	if (!tdt__is_digit(**at) &&
	    (base != 16 || strchr("abcdefABCDEF", **at) == NULL || **at == '\0'))
		return false;
	errno = 0;
	*value = strtoull(*at, &end, base);
	*at = end;
	return errno == 0;
}

static bool take_text(const char **at, const char *text)
{
	if (!tdt__starts_with(*at, text))
		return false;
	*at += strlen(text);
	return true;
}

/* --- Frames ---------------------------------------------------------------- */

static void clear_stack(struct ustack *stack)
{
	while (stack->n > 0)
		free(stack->frame[--stack->n].name);
}

/* Split `name+offset`, of `*n` bytes.  If there is an offset, `*n` becomes the name's length. */
static bool split_offset(const char *text, size_t *n, int base, uint64_t *offset)
{
	const char *plus = memrchr(text, '+', *n), *at;

	if (plus == NULL || plus == text)
		return false;
	at = plus + 1;
	if (!take_number(&at, base, offset) || at != text + *n)
		return false;
	*n = (size_t)(plus - text);
	return true;
}

static int push_frame(struct ustack_reader *reader, struct ustack *stack, const char *name,
		      size_t n, struct ustack_frame frame)
{
	if (stack->n == USTACK_FRAMES_MAX)
		return fail_reading(reader, "a stack without end");
	if (n > 0 && !(n == strlen("[unknown]") && strncmp(name, "[unknown]", n) == 0)) {
		frame.name = strndup(name, n);
		if (frame.name == NULL)
			return fail_reading(reader, strerror(ENOMEM));
	}
	stack->frame[stack->n++] = frame;
	return 0;
}

/*
 * Read `1f03 parse+0x63 (/usr/bin/busy)`, as perf and bpftrace's ustack(perf) print it; `text`
 * begins at the name.  Frames of the kernel are left out.
 */
static int read_perf_frame(struct ustack_reader *reader, struct ustack *stack, const char *text)
{
	struct ustack_frame frame = { 0 };
	const char *module = NULL;
	size_t n;

	for (const char *at = text; (at = strstr(at, " (")) != NULL; at += 2)
		module = at;
	if (module == NULL)
		return fail_reading(reader, "a frame without a module");
	if (tdt__starts_with(module, " ([") && !tdt__starts_with(module, " ([vdso]") &&
	    !tdt__starts_with(module, " ([unknown]"))
		return 0;
	n = (size_t)(module - text);
	split_offset(text, &n, 16, &frame.offset);
	return push_frame(reader, stack, text, n, frame);
}

static int read_ustack_frame(struct ustack_reader *reader, struct ustack *stack)
{
	const char *text = skip_space(reader->text), *tick = strchr(text, '`'), *at;
	struct ustack_frame frame = { 0 };
	size_t n;

	text = tick != NULL ? tick + 1 : text; /* behind DTrace's name of the module */
	at = text;
	n = strlen(text);
	if (take_text(&at, "0x") && take_number(&at, 16, &frame.address) && *at == '\0')
		return push_frame(reader, stack, "", 0, frame);
	frame.address = 0;
	if (tick != NULL) {
		split_offset(text, &n, 16, &frame.offset);
		return push_frame(reader, stack, text, n, frame);
	}
	if (split_offset(text, &n, 10, &frame.offset))
		return push_frame(reader, stack, text, n, frame);
	at = text;
	if (take_number(&at, 16, &frame.address) && *at == ' ')
		return read_perf_frame(reader, stack, at + 1);
	return strcmp(text, "[unknown]") == 0
		   ? push_frame(reader, stack, "", 0, (struct ustack_frame){ 0 })
		   : fail_reading(reader, "not a frame (function+123)");
}

/*
 * Read frames up to the end, or up to a line that is not a frame, which the next call of
 * next_line() returns again.
 */
static int read_frames(struct ustack_reader *reader, struct ustack *stack)
{
	int result;

	while ((result = next_line(reader)) > 0) {
		if (reader->text[0] != ' ' && reader->text[0] != '\t') {
			reader->again = true;
			return 1;
		}
		if (read_ustack_frame(reader, stack) != 0)
			return -1;
	}
	return result < 0 ? -1 : 1;
}

/* --- bpftrace -------------------------------------------------------------- */

static int read_key_stack(struct ustack_reader *reader, struct ustack *stack)
{
	const char *at;

	if (read_frames(reader, stack) < 0)
		return -1;
	at = reader->text;
	if (!reader->again || !take_text(&at, "]: ") || !take_number(&at, 10, &stack->count) ||
	    *at != '\0')
		return fail_reading(reader, "a stack must end with how often it was seen");
	reader->again = false;
	return 1;
}

/* Returns 1; 0: the map has no stacks; or -1. */
static int read_map(struct ustack_reader *reader, struct ustack *stack)
{
	const char *text = reader->text, *bracket = text + strcspn(text, "[:"), *at = bracket;
	const char *empty = strstr(text, ", ]: "); /* bpftrace could not read the stack */
	size_t n = strlen(text);

	if (empty == NULL &&
	    (strstr(text, "]: ") != NULL || (*bracket == ':' && bracket[1] == ' ')))
		return 0;
	stack->kind = tdt__starts_with(text, "@waits[") ? USTACK_WAITED : USTACK_ON_CPU;
	stack->count = 1;
	if (!take_text(&at, "[") || !take_number(&at, 10, &stack->task))
		return fail_reading(reader,
			      "a map that doesn't begin with the id of a task: @name[7, ...]");
	if (empty == at && take_text(&at, ", ]: ") && take_number(&at, 10, &stack->count) &&
	    *at == '\0')
		return 1;
	if (at[0] == ',' && at[1] == '\0')
		return read_key_stack(reader, stack);
	if (n >= 2 && strcmp(text + n - 2, "]:") == 0)
		return read_frames(reader, stack);
	return fail_reading(reader,
				    "neither a map nor a stack");
}

/*
 * Read `task 7 polled for ...; in task 9:` and the stack below it, between which DTrace leaves a
 * line empty.  Returns 1; 0: the line is the second of DTrace, without a stack; or -1.
 */
static int read_long_poll(struct ustack_reader *reader, struct ustack *stack)
{
	const char *at = strstr(reader->text, "; in task ");
	int result;

	if (at == NULL && strstr(reader->text, " us on thread ") != NULL)
		return 0;
	if (at == NULL || !take_text(&at, "; in task ") || !take_number(&at, 10, &stack->task) ||
	    strcmp(at, ":") != 0)
		return fail_reading(reader, "a long poll must end with \"; in task 7:\"");
	stack->kind = USTACK_LATE;
	stack->count = 1;
	result = next_line(reader);
	reader->again = result > 0 && reader->text[0] != '\0';
	return result < 0 ? -1 : read_frames(reader, stack);
}

/* --- DTrace ---------------------------------------------------------------- */

/* Whether `text` is `task 7` or `task 7, spawned at x.c:12`; sets what it says of the stack. */
static bool begins_counted(const char *text, struct ustack *stack)
{
	if (!take_text(&text, "task ") || !take_number(&text, 10, &stack->task))
		return false;
	stack->kind = *text == '\0' ? USTACK_ON_CPU : USTACK_WAITED;
	return *text == '\0' || tdt__starts_with(text, ", spawned at ");
}

static int read_counted(struct ustack_reader *reader, struct ustack *stack)
{
	int result;

	while ((result = next_line(reader)) > 0) {
		const char *at = reader->text;

		if (take_number(&at, 10, &stack->count) && *at == '\0')
			return 1;
		if (read_ustack_frame(reader, stack) != 0)
			return -1;
	}
	return result < 0 ? -1
			  : fail_reading(reader, "a stack must end with how often it was seen");
}

/* --- perf script ----------------------------------------------------------- */

static struct ustack_thread *thread_of(struct ustack_reader *reader, uint64_t tid)
{
	if (reader->thread == NULL)
		reader->thread = calloc(USTACK_THREADS_MAX, sizeof(*reader->thread));
	if (reader->thread == NULL)
		return NULL;
	for (size_t i = 0; i < reader->threads; i++)
		if (reader->thread[i].tid == tid)
			return &reader->thread[i];
	if (reader->threads == USTACK_THREADS_MAX)
		return NULL;
	reader->thread[reader->threads].tid = tid;
	return &reader->thread[reader->threads++];
}

/*
 * Parse `busy 21346/21347 [000] 14097.385722: rest`, where the name of the thread may have any
 * characters.  Returns the rest, or NULL.
 */
static const char *parse_header(const char *text, uint64_t *tid)
{
	for (const char *at = text; (at = strchr(at, ' ')) != NULL;) {
		const char *field;
		uint64_t number;

		at = skip_space(at);
		field = at;
		if (!take_number(&at, 10, tid) ||
		    (take_text(&at, "/") && !take_number(&at, 10, tid)) || *at != ' ') {
			at = field;
			continue;
		}
		field = skip_space(at);
		if (take_text(&field, "[") && take_number(&field, 10, &number) &&
		    take_text(&field, "]"))
			field = skip_space(field);
		if (take_number(&field, 10, &number) && take_text(&field, ".") &&
		    take_number(&field, 10, &number) && take_text(&field, ":"))
			return skip_space(field);
	}
	return NULL;
}

/* Read an event of our own.  Returns 1: its stack is kept; 0: it is not; or -1. */
static int read_own_event(struct ustack *stack, struct ustack_thread *thread, const char *event)
{
	const char *at = strstr(event, " arg1=");
	uint64_t task;

	if (at == NULL || !take_text(&at, " arg1=") ||
	    !(take_text(&at, "0x") ? take_number(&at, 16, &task) : take_number(&at, 10, &task)))
		return tdt__starts_with(event, "sdt_tdt:worker__") ? 0 : -1;
	if (tdt__starts_with(event, "sdt_tdt:task__waker__clone")) {
		stack->kind = USTACK_WAITED;
		stack->task = task;
		return 1;
	}
	if (tdt__starts_with(event, "sdt_tdt:task__poll__start") &&
	    thread->depth < USTACK_NESTED_MAX)
		thread->task[thread->depth++] = task;
	else if (tdt__starts_with(event, "sdt_tdt:task__poll__end") && thread->depth > 0)
		thread->depth--;
	return 0;
}

static int read_perf_event(struct ustack_reader *reader, struct ustack *stack)
{
	uint64_t tid = 0, period;
	const char *event = parse_header(reader->text, &tid);
	struct ustack_thread *thread;
	int keep = 0;

	if (event == NULL)
		return fail_reading(reader,
				    "no output of bpftrace, DTrace or perf script: neither a map, "
				    "a stack nor an event");
	thread = thread_of(reader, tid);
	if (thread == NULL)
		return fail_reading(reader, "too many threads");
	if (take_number(&event, 10, &period))
		event = skip_space(event);
	if (strchr(event, ':') == NULL)
		return fail_reading(reader, "an event without a name");
	stack->count = 1;
	if (tdt__starts_with(event, "sdt_tdt:")) {
		keep = read_own_event(stack, thread, event);
		if (keep < 0)
			return fail_reading(reader, "an event without the id of a task (arg1=7)");
	} else if (thread->depth > 0) {
		stack->kind = USTACK_ON_CPU;
		stack->task = thread->task[thread->depth - 1];
		keep = 1;
	}
	if (read_frames(reader, stack) < 0)
		return -1;
	return keep;
}

/* --- All forms ------------------------------------------------------------- */

static bool is_message(const char *text)
{
	return text[0] == '\0' || text[0] == '#' || tdt__starts_with(text, "Attaching ") ||
	       tdt__starts_with(text, "Interrupted: ") ||
	       (tdt__starts_with(text, "Lost ") && strstr(text, " events") != NULL);
}

int ustack_next(struct ustack_reader *reader, struct ustack *stack)
{
	int result;

	while ((result = next_line(reader)) > 0) {
		clear_stack(stack);
		if (is_message(reader->text))
			continue;
		if (reader->text[0] == '@')
			result = read_map(reader, stack);
		else if (tdt__starts_with(reader->text, "task ") &&
			 strstr(reader->text, " polled for ") != NULL)
			result = read_long_poll(reader, stack);
		else if (begins_counted(reader->text, stack))
			result = read_counted(reader, stack);
		else
			result = read_perf_event(reader, stack);
		if (result != 0)
			return result;
	}
	clear_stack(stack);
	return result;
}

void ustack_end(struct ustack_reader *reader, struct ustack *stack)
{
	clear_stack(stack);
	free(reader->thread);
	*reader = (struct ustack_reader){ 0 };
}
