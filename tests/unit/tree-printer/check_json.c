// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/json, tree-printer/json_writer.  The JSON of a trace, compared with the whole
 * text; and read back, by the reader of tdt print.
 */

#include "cli/read_json.h"
#include "lib/printed.h"
#include "lib/says.h"
#include "lib/test.h"

static struct tdt_trace *everything(void)
{
	static const struct tdt_wait waits[2] = {
		{ .size = sizeof waits[0],
		  .kind = TDT_WAIT_MUTEX,
		  .object = UINT64_MAX,
		  .owner = UINT64_MAX,
		  .name = "room \"1\"",
		  .owner_name = "o" },
		{ .size = sizeof waits[0], .kind = TDT_WAIT_TIMER, .name = "\xff" }
	};
	static const struct tdt_wait *const list[] = { &waits[0], &waits[1] };
	struct tdt_task_info info = { .size = sizeof(info),
				       .id = UINT64_MAX,
				       .name = "n\"é",
				       .file = "f.c",
				       .line = 1,
				       .column = 2,
				       .state = TDT_TASK_RUNNING,
				       .leaves = 3,
				       .leaves_elsewhere = 4,
				       .leaves_lost = 5,
				       .leaves_unsure = 2,
				       .state_ns = (UINT64_C(1) << 53) - 1,
				       .polls = UINT64_C(1) << 53,
				       .parent = UINT64_MAX,
				       .woken_ns = 6,
				       .woken_by = 7,
				       .age_ns = 8,
				       .polls_since = 9,
				       .thread = UINT32_MAX,
				       .syscall = "read",
				       .unknown_stack = 1,
				       .blocking = 1,
				       .leaves_known = TDT_LEAVES_UNKNOWN,
				       .context = { .trace_id = { 0x4b, [15] = 0x36 },
						    .span_id = { [7] = 0xb7 },
						    .valid = 1,
						    .flags = 1 },
				       .waits = list,
				       .n_waits = 2 };
	struct tdt_trace *trace = tdt_trace_new(&info);
	const struct tdt_frame cut = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_NO_INFO };
	const struct tdt_node *node = add(trace, NULL, cut, 0);

	add(trace, NULL, (struct tdt_frame)FRAME(.pc = 255), UINT32_MAX);
	add(trace, node,
	    (struct tdt_frame)FRAME(.pc = UINT64_MAX, .function = "f", .file = "/b/f.c",
				    .directory = "/b", .line = 6, .column = 7, .module = "/l/m.so",
				    .module_offset = 8, .symbol = "_Zf", .symbol_offset = 9,
				    .build_id = "ab12", .inlined = 1, .guessed = 1),
	    1);
	return trace;
}

static const char everything_json[] =
    "{\"tdt\":1,\"task\":{\"id\":\"18446744073709551615\","
    "\"name\":\"n\\\"\\u00E9\",\"file\":\"f.c\",\"line\":1,"
    "\"column\":2,\"state\":\"running\",\"state_ns\":9007199254740991,"
    "\"polls\":\"9007199254740992\",\"leaves\":3,"
    "\"leaves_known\":\"unknown\","
    "\"leaves_unsure\":2,\"leaves_elsewhere\":4,\"leaves_lost\":5,"
    "\"parent\":\"18446744073709551615\",\"woken_ns\":6,\"woken_by\":7,"
    "\"age_ns\":8,\"polls_since\":9,\"thread\":4294967295,\"syscall\":\"read\","
    "\"unknown_stack\":1,\"blocking\":1,"
    "\"traceparent\":\"00-4b000000000000000000000000000036-00000000000000b7-01\",\"waits\":["
    "{\"kind\":\"mutex\",\"object\":\"0xffffffffffffffff\",\"owner\":\"18446744073709551615\","
    "\"owner_name\":\"o\",\"name\":\"room \\\"1\\\"\"},"
    "{\"kind\":\"timer\",\"name\":\"\\uFFFD\"}]},\"nodes\":[{\"id\":0,\"kind\":\"task\"},"
    "{\"id\":1,\"parent\":0,\"kind\":\"cut\",\"cut\":\"no-info\"},"
    "{\"id\":2,\"parent\":0,\"kind\":\"frame\",\"pc\":\"0xff\",\"leaves\":4294967295},"
    "{\"id\":3,\"parent\":1,\"kind\":\"frame\","
    "\"pc\":\"0xffffffffffffffff\",\"function\":\"f\","
    "\"file\":\"/b/f.c\",\"directory\":\"/b\",\"line\":6,\"column\":7,"
    "\"module\":\"/l/m.so\",\"module_offset\":\"0x8\","
    "\"symbol\":\"_Zf\",\"symbol_offset\":\"0x9\","
    "\"build_id\":\"ab12\",\"inlined\":true,\"guessed\":true,"
    "\"leaves\":1}]}\n";

/* Read the next trace of `text`; NULL: none. */
static struct tdt_trace *read_back(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct reader reader = { .file = file };
	struct tdt_trace *trace;

	reader_next(&reader, &trace, NULL);
	ck_assert_str_eq(reader.message, "");
	fclose(file);
	return trace;
}

CASE(json)

TEST(json_tells_all_and_reads_back_the_same)
{
	struct tdt_trace *trace = everything(), *again;

	expect_trace(trace, OPTIONS(JSON), everything_json);
	tdt_trace_free(trace);
	again = read_back(everything_json);
	expect_trace(again, OPTIONS(JSON), everything_json);
	tdt_trace_free(again);
}

TEST(json_has_the_plumbing_too)
{
	TRACE(trace, grow("a:1(tdt_b:2(c:3*))"));

	SAYS(print(trace, OPTIONS(JSON, .max_depth = 1)), "\"tdt_b\"", "\"id\":3");
}

TEST(every_word_of_the_json_reads_back)
{
	for (int state = TDT_TASK_WAITING; state <= TDT_TASK_UNKNOWN; state++) {
		struct tdt_task_info info = { .size = sizeof(info),
					       .state = (enum tdt_task_state)state };
		struct tdt_trace *trace = tdt_trace_new(&info), *again;
		TEXT(text, print(trace, OPTIONS(JSON)));

		again = read_back(text);
		ck_assert_int_eq(tdt_trace_info(again)->state, state);
		tdt_trace_free(trace);
		tdt_trace_free(again);
	}
	for (int kind = TDT_WAIT_UNKNOWN; kind <= TDT_WAIT_NOTIFICATION; kind++) {
		const struct tdt_wait wait = { .size = sizeof wait,
					       .kind = (enum tdt_wait_kind)kind };
		const struct tdt_wait *const list[] = { &wait };
		struct tdt_task_info info = { .size = sizeof(info), .waits = list, .n_waits = 1 };
		struct tdt_trace *trace = tdt_trace_new(&info), *again;
		TEXT(text, print(trace, OPTIONS(JSON)));

		again = read_back(text);
		ck_assert_uint_eq(tdt_trace_info(again)->n_waits, 1);
		ck_assert_int_eq(tdt_trace_info(again)->waits[0]->kind, kind);
		tdt_trace_free(trace);
		tdt_trace_free(again);
	}
	for (int cut = TDT_CUT_LIMIT; cut <= TDT_CUT_UNSUPPORTED; cut++) {
		struct tdt_trace *trace = new_trace(0), *again;
		const struct tdt_frame frame = { .kind = TDT_NODE_CUT, .cut = (enum tdt_cut)cut };

		add(trace, NULL, frame, 0);
		TEXT(text, print(trace, OPTIONS(JSON)));
		again = read_back(text);
		ck_assert_int_eq(tdt_node_frame(tdt_node_next(tdt_trace_root(again)))->cut, cut);
		tdt_trace_free(trace);
		tdt_trace_free(again);
	}
}

TEST(json_is_ascii_and_valid_whatever_a_name_holds)
{
	struct tdt_task_info info = { .size = sizeof(info),
				       .name = "\xff\xe9t\xc3\xa9\xed\xa0\x80\x1b" };
	struct tdt_trace *trace = tdt_trace_new(&info), *again;
	TEXT(text, print(trace, OPTIONS(JSON)));

	for (const char *at = text; *at != '\0'; at++)
		ck_assert(*at == '\n' || (*at >= ' ' && *at <= '~'));
	again = read_back(text);
	ck_assert_str_eq(tdt_trace_info(again)->name, "\xef\xbf\xbd\xef\xbf\xbdt\xc3\xa9"
						      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\x1b");
	tdt_trace_free(trace);
	tdt_trace_free(again);
}

TEST(strings_are_escaped_as_json_wants_it)
{
	static const char name[] = "\x01\b\t\n\f\r\x1f \"\\/\x7f\xc2\x80\xe2\x80\xa8\xef\xbf\xbf"
				   "\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"
				   "\xf4\x90\x80\x80\xc0\x80\xe2\x80";
	struct tdt_task_info info = { .size = sizeof(info), .name = name };
	TRACE(trace, tdt_trace_new(&info));

	SAYS(print(trace, OPTIONS(JSON)), "\"name\":\"\\u0001\\b\\t\\n\\f\\r\\u001F \\\"\\\\/\x7f"
					  "\\u0080\\u2028\\uFFFF\\uD800\\uDC00\\uD83D\\uDE00"
					  "\\uDBFF\\uDFFF\\uFFFD\\uFFFD\\uFFFD\\uFFFD\\uFFFD"
					  "\\uFFFD\\uFFFD\\uFFFD\",");
}

#define TASK "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\"},\"nodes\":"
#define ROOT "{\"id\":0,\"kind\":\"task\"}"

TEST(json_that_is_no_trace_is_refused_with_the_place_and_reason)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "x", "1:1: '[' or '{' expected near 'x'" },
		{ "\n\n [1]",
		  "3:2: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{}",
		  "1:1: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{\"tdt\":2}", "1:1: schema version 2: this program knows version 1" },
		{ "{\"tdt\":1.0}",
		  "1:1: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{\"tdt\":1,\n\"tdt\":1}", "2:5: duplicate object key near '\"tdt\"'" },
		{ "{\"tdt\":1,", "1:9: string or '}' expected near end of file" },
		{ "{\"tdt\":1}", "1:1: task: not an object" },
		{ "{\"tdt\":1,\"task\":[]}", "1:1: task: not an object" },
		{ "{\"tdt\":1,\"task\":{}}", "1:1: task.id: is missing" },
		{ "{\"tdt\":1,\"task\":{\"id\":-1}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":1.5}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":null}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"18446744073709551616\"}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"-1\"}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"\"}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":99999999999999999999}}",
		  "1:43: too big integer near '99999999999999999999'" },
		{ "{\"tdt\":1,\"task\":{\"id\":1}}", "1:1: task.state: is missing" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"x\"}}",
		  "1:1: task.state: not a word that this version knows" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":0}}",
		  "1:1: task.state: not a word that this version knows" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\",\"line\":4294967296}}",
		  "1:1: task.line: not a whole number from 0 to 2^32 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"name\":1}}", "1:1: task.name: not a string" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\",\"waits\":{}}}",
		  "1:1: task.waits: not an array" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\",\"waits\":[{\"kind\":\"x\"}]}"
		  "}",
		  "1:1: task.waits[0].kind: not a word that this version knows" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\",\"thread\":-1}}",
		  "1:1: task.thread: not a whole number from 0 to 2^32 - 1" },
		{ "{\"tdt\":1,\"dump\":{}}", "1:1: a dump of many tasks, not a trace of one" },
		{ TASK "1}", "1:1: nodes: not an array with the task as its first node" },
		{ TASK "[]}", "1:1: nodes: not an array with the task as its first node" },
		{ TASK "[1]}", "1:1: nodes[0].id: is missing" },
		{ TASK "[{\"id\":1,\"kind\":\"task\"}]}",
		  "1:1: nodes[0].id: not the node's index" },
		{ TASK "[{\"id\":0,\"kind\":\"frame\"}]}",
		  "1:1: nodes[0].kind: the first node and no other is the task" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"task\"}]}",
		  "1:1: nodes[1].kind: the first node and no other is the task" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\"}]}",
		  "1:1: nodes[1].parent: is missing" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":1}]}",
		  "1:1: nodes[1].parent: not the id of a node before this one" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":2},"
		       "{\"id\":2,\"kind\":\"frame\",\"parent\":1}]}",
		  "1:1: nodes[1].parent: not the id of a node before this one" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":-1}]}",
		  "1:1: nodes[1].parent: not a whole number from 0 to 2^64 - 1" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"cut\",\"parent\":0}]}",
		  "1:1: nodes[1].cut: is missing" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"cut\",\"parent\":0,\"cut\":\"x\"}]}",
		  "1:1: nodes[1].cut: not a word that this version knows" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":1}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x0x1\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK
		  "[" ROOT
		  ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x10000000000000000\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"inlined\":1}]}",
		  "1:1: nodes[1].inlined: not true or false" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		STREAM(file,
		       fmemopen((void *)(uintptr_t)cases[i].text, strlen(cases[i].text), "r"));
		struct reader reader = { .file = file };
		struct tdt_trace *trace;
		char message[600];

		ck_assert_int_eq(reader_next(&reader, &trace, NULL), -1);
		ck_assert_ptr_null(trace);
		snprintf(message, sizeof(message), "%lu:%lu: %s", reader.line, reader.column,
			 reader.message);
		ck_assert_str_eq(message, cases[i].message);
	}
}

TEST(json_of_a_later_version_may_have_more_members)
{
	struct tdt_trace *trace =
	    read_back("{\"tdt\":1,\"new\":{},\"task\":{\"id\":1,\"state\":\"ready\",\"new\":[1]},"
		      "\"nodes\":[{\"id\":0,\"kind\":\"task\",\"new\":null}]}");

	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
}

TEST(objects_follow_one_another)
{
	static const char text[] =
	    " \n" TASK "[" ROOT "]}" TASK "[" ROOT "]}\t\r\n" TASK "[" ROOT "]}\n\n";
	STREAM(file, fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r"));
	struct reader reader = { .file = file };
	struct tdt_trace *trace;

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(reader_next(&reader, &trace, NULL), 1);
		tdt_trace_free(trace);
	}
	ck_assert_int_eq(reader_next(&reader, &trace, NULL), 0);
	ck_assert_int_eq(reader_next(&reader, &trace, NULL), 0);
	ck_assert_ptr_null(trace);
}

static uint32_t random_state;

static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static void mutate(char *text, size_t *n)
{
	static const char bits[] = "{}[]\",:0123456789-.ex\\ \n\x80\xff";
	size_t at = next_random() % *n, length = next_random() % 8;

	switch (next_random() % 5) {
	case 0:
		text[at] = bits[next_random() % (sizeof(bits) - 1)];
		break;
	case 1:
		text[at] ^= (char)(1 << next_random() % 8);
		break;
	case 2: /* cut */
		*n = at + 1;
		break;
	case 3: /* take some out */
		length = length < *n - at ? length : *n - at - 1;
		memmove(text + at, text + at + length, *n - at - length);
		*n -= length;
		break;
	default: /* write one part over another */
		length = length * 16 < *n - at ? length * 16 : *n - at;
		memmove(text + at, text + next_random() % (*n - length + 1), length);
	}
}

TEST(damaged_json_never_does_damage)
{
	static const char *const seed_text = "TDT_TEST_SEED";
	const char *seed = getenv(seed_text);
	const int rounds = in_valgrind() ? 300 : 2000;
	int read = 0;

	random_state = seed != NULL ? (uint32_t)strtoul(seed, NULL, 0) | 1 : 0x7d7;
	printf("# %s=%u\n", seed_text, random_state);
	for (int i = 0; i < rounds; i++) {
		char text[sizeof(everything_json)];
		size_t n = sizeof(text) - 1;
		struct reader reader = { 0 };
		struct tdt_trace *trace;
		int result;

		memcpy(text, everything_json, sizeof(text));
		for (uint32_t times = 1 + next_random() % 3; times > 0; times--)
			mutate(text, &n);
		reader.file = fmemopen(text, n, "r");
		while ((result = reader_next(&reader, &trace, NULL)) > 0) {
			for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++)
				free(print(trace, OPTIONS(.format = (enum tdt_print_format)form)));
			tdt_trace_free(trace);
			read++;
		}
		ck_assert_ptr_null(trace);
		ck_assert(result == 0 || reader.message[0] != '\0');
		fclose(reader.file);
	}
	ck_assert_int_gt(read, 10); /* some still were traces */
	ck_assert_int_lt(read, rounds - 10);
}

CASE(size)

TEST(a_stack_of_20000_frames_is_printed_in_every_form)
{
	struct tdt_trace *trace = new_trace(1), *again;
	const struct tdt_node *node = NULL;
	char *text, *json;

	for (uint32_t i = 1; i <= 20000; i++)
		node = add(trace, node,
			   (struct tdt_frame)FRAME(.function = "f", .file = "/x.c", .line = i),
			   i == 20000);
	text = print(trace, OPTIONS(UTF8));
	ck_assert_ptr_nonnull(strstr(text, "└╼ f at /x.c:100\n"));
	ck_assert_ptr_nonnull(strstr(text, "  [101] f at /x.c:101\n"));
	ck_assert_ptr_nonnull(strstr(text, "  [20000] f at /x.c:20000\n"));
	ck_assert_uint_lt(strlen(text), 20000 * 500);
	free(text);
	text = print(trace, OPTIONS(FOLDED));
	ck_assert_uint_eq(strlen(text), 6 + 2 * 20000 + 3);
	free(text);
	json = print(trace, OPTIONS(JSON));
	again = read_back(json);
	expect_trace(again, OPTIONS(JSON), json);
	free(json);
	tdt_trace_free(again);
	tdt_trace_free(trace);
}

/* ---- What may go wrong ---- */

static int read_once(void *argument)
{
	struct reader reader = { .file = argument };
	struct tdt_trace *trace;
	int result;

	rewind(argument);
	result = reader_next(&reader, &trace, NULL);
	tdt_trace_free(trace);
	/* jansson has words for it, but no code */
	if (result == 1)
		return 0;
	return result == -1 && reader.message[0] != '\0' && trace == NULL ? -ENOMEM : -EPROTO;
}

CASE(errors)

TEST(every_allocation_may_fail_while_reading)
{
	STREAM(file,
	       fmemopen((void *)(uintptr_t)everything_json, sizeof(everything_json) - 1, "r"));
	char buffer[512];

	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	no_memory_each(read_once, file, 50);
}
