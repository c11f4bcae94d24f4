// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reader of JSON, and all forms of output of what it accepts: traces of one task, and dumps and
 * lists of many.  No text may harm a terminal.  JSON that was printed is read and printed once
 * more, and must be the same bytes.  Dumps and lists are compared with themselves, and with what
 * came before them.  Profiles, and the bytes as folded stacks, go to a table of stacks.
 */

#include <config.h>

#include <string.h>

#include "cli/compare.h"
#include "cli/read_json.h"
#include "cli/stacks.h"
#include "fuzz.h"

/* What was read: one of them, the other is NULL. */
struct answer {
	struct tdt_trace *trace;
	struct dump *dump;
};

struct text {
	char *bytes; /* with a NUL behind them */
	size_t n;
};

/* Each option on and off, with each form, but not all combinations of them. */
static const struct tdt_print_options forms[] = {
	{ .format = TDT_PRINT_TEXT },
	{ .format = TDT_PRINT_TEXT, .utf8 = TDT_PRINT_YES, .color = TDT_PRINT_YES },
	{ .format = TDT_PRINT_TEXT, .utf8 = TDT_PRINT_YES, .addresses = 1, .max_depth = 1 },
	{ .format = TDT_PRINT_TEXT,
	  .color = TDT_PRINT_YES,
	  .full_paths = 1,
	  .plumbing = 1,
	  .max_depth = 3 },
	{ .format = TDT_PRINT_TEXT, .full = 1 },
	{ .format = TDT_PRINT_FOLDED },
	{ .format = TDT_PRINT_FOLDED, .utf8 = TDT_PRINT_YES, .addresses = 1, .max_depth = 2 },
	{ .format = TDT_PRINT_FOLDED, .full_paths = 1, .plumbing = 1 },
};

/* 1, 0 or -1, as reader_next(). */
static int read_next(struct reader *reader, struct answer *answer)
{
	int result = reader_next(reader, &answer->trace, &answer->dump);

	CLAIM(result >= -1 && result <= 1);
	CLAIM(result == 1 || (answer->trace == NULL && answer->dump == NULL));
	CLAIM(answer->trace == NULL || answer->dump == NULL);
	return result;
}

static void free_answer(struct answer *answer)
{
	tdt_trace_free(answer->trace);
	dump_free(answer->dump);
}

static struct text print(const struct answer *answer, const struct tdt_print_options *options)
{
	struct tdt_dump_options dump = { .size = sizeof(dump),
					 .print = options,
					 .max_ids = options->max_depth };
	struct text text = { 0 };
	FILE *out = open_memstream(&text.bytes, &text.n);
	int err;

	CLAIM(out != NULL);
	if (answer->trace != NULL)
		err = tdt_trace_print_with(answer->trace, out, options);
	else
		err = tdt_snapshot_print(dump_snapshot(answer->dump), out, &dump);
	CLAIM(fclose(out) == 0 && err == 0);
	return text;
}

static void print_forms(const struct answer *answer)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tdt_print_options options = forms[i];
		struct text text;

		options.size = sizeof(options);
		text = print(answer, &options);
		claim_harmless(text.bytes, text.n, options.utf8 == TDT_PRINT_YES,
			       options.color == TDT_PRINT_YES);
		free(text.bytes);
	}
}

/* What was printed as JSON, printed once more. */
static struct text print_again(const struct text *json, const struct tdt_print_options *options)
{
	struct reader reader = { .file = fmemopen(json->bytes, json->n, "r") };
	struct answer answer, next;
	struct text again;

	CLAIM(reader.file != NULL && read_next(&reader, &answer) == 1);
	again = print(&answer, options);
	free_answer(&answer);
	CLAIM(read_next(&reader, &next) == 0);
	fclose(reader.file);
	return again;
}

static void round_trip(const struct answer *answer)
{
	const struct tdt_print_options options = { .size = sizeof(options),
						   .format = TDT_PRINT_JSON };
	struct text json = print(answer, &options), again;

	claim_json(json.bytes, json.n);
	CLAIM(json.n > 0 && memchr(json.bytes, '\n', json.n) == json.bytes + json.n - 1);
	again = print_again(&json, &options);
	CLAIM(again.n == json.n && memcmp(again.bytes, json.bytes, json.n) == 0);
	free(json.bytes);
	free(again.bytes);
}

/* A comparison as text, or as JSON. */
static struct text print_comparison(const struct comparison *comparison, bool json)
{
	const struct tdt_print_options options = { .size = sizeof(options),
						   .utf8 = TDT_PRINT_NO,
						   .color = TDT_PRINT_NO };
	struct text text = { 0 };
	struct tdt__out out = { .file = open_memstream(&text.bytes, &text.n) };

	CLAIM(out.file != NULL);
	if (json)
		diff_json(&out, comparison);
	else
		diff_text(&out, comparison, &options);
	CLAIM(tdt__out_end(&out) == 0 && fclose(out.file) == 0);
	return text;
}

static void compare_dumps(const struct dump *before, const struct dump *after)
{
	struct comparison comparison;
	struct text text, json;

	if (before == NULL || after == NULL ||
	    compare(&comparison, dump_snapshot(before), dump_snapshot(after)) != 0)
		return;
	text = print_comparison(&comparison, false);
	claim_harmless(text.bytes, text.n, false, false);
	json = print_comparison(&comparison, true);
	claim_json(json.bytes, json.n);
	free(text.bytes);
	free(json.bytes);
	comparison_fini(&comparison);
}

static void print_stacks(const struct stacks *stacks)
{
	const struct tdt_print_options options = { .size = sizeof(options),
						   .utf8 = TDT_PRINT_NO,
						   .color = TDT_PRINT_NO };
	struct text text = { 0 };
	struct tdt__out out = { .file = open_memstream(&text.bytes, &text.n) };

	CLAIM(out.file != NULL);
	stacks_text(&out, stacks, &options);
	stacks_folded(&out, stacks, &options);
	CLAIM(tdt__out_end(&out) == 0 && fclose(out.file) == 0);
	claim_harmless(text.bytes, text.n, false, false);
	free(text.bytes);
	text = (struct text){ 0 };
	out = (struct tdt__out){ .file = open_memstream(&text.bytes, &text.n) };
	CLAIM(out.file != NULL);
	stacks_json(&out, stacks);
	CLAIM(tdt__out_end(&out) == 0);
	CLAIM(fclose(out.file) == 0);
	claim_json(text.bytes, text.n);
	free(text.bytes);
}

/* Read JSON, and compare what is read with what came before. */
static void read_json(FILE *file, const struct stacks_side *to)
{
	struct reader reader = { .file = file,
				 .lists = true,
				 .profile = stacks_read_profile,
				 .arg = (void *)(uintptr_t)to };
	struct answer answer, before = { 0 };

	while (read_next(&reader, &answer) > 0) {
		if (answer.trace == NULL && answer.dump == NULL)
			continue; /* a profile */
		print_forms(&answer);
		round_trip(&answer);
		compare_dumps(answer.dump, answer.dump);
		compare_dumps(before.dump, answer.dump);
		free_answer(&before);
		before = answer;
	}
	free_answer(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *file = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct stacks stacks = { 0 };
	unsigned long line;

	if (file == NULL)
		return 0;
	read_json(file, &(struct stacks_side){ &stacks, 0 });
	rewind(file);
	stacks_read_folded(&(struct stacks_side){ &stacks, 1 }, file, &line);
	print_stacks(&stacks);
	stacks_fini(&stacks);
	fclose(file);
	return 0;
}
