// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reader of JSON, and all forms of output of what it accepts: traces of one task, and dumps of
 * many.  No text may harm a terminal.  JSON that was printed is read and printed once more, and
 * must be the same bytes.
 */

#include <config.h>

#include <string.h>

#include "cli/read_json.h"
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
	{ .format = TDT_PRINT_FOLDED },
	{ .format = TDT_PRINT_FOLDED, .utf8 = TDT_PRINT_YES, .addresses = 1, .max_depth = 2 },
	{ .format = TDT_PRINT_FOLDED, .full_paths = 1, .plumbing = 1 },
};

/* 1, 0 or -1, as reader_next_of_both(). */
static int read_next(struct reader *reader, struct answer *answer)
{
	int result = reader_next_of_both(reader, &answer->trace, &answer->dump);

	CLAIM(result >= -1 && result <= 1);
	CLAIM((result == 1) == (answer->trace != NULL || answer->dump != NULL));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader reader = { .file = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r")
						  : NULL };
	struct answer answer;

	if (reader.file == NULL)
		return 0;
	while (read_next(&reader, &answer) > 0) {
		print_forms(&answer);
		round_trip(&answer);
		free_answer(&answer);
	}
	fclose(reader.file);
	return 0;
}
