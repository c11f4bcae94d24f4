// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/dump_json, tree-printer/kin.  The JSON of a dump, compared with the whole
 * text; and read back, by the reader of tdt print.
 */

#include "cli/read_json.h"
#include "lib/dumped.h"
#include "lib/says.h"
#include "lib/test.h"

#define PRINT(...) DUMP(.print = OPTIONS(__VA_ARGS__))

/* Everything, but less of it. */
static struct dumped *some(void)
{
	static const struct tdt_wait waits[2] = {
		{ .kind = TDT_WAIT_MUTEX, .object = 0x7f10, .owner = 2 },
		{ .kind = TDT_WAIT_IO, .object = 7 },
	};
	static const struct tdt_wait *const list[] = { &waits[0], &waits[1] };
	static const struct tdt_task_info tasks[2] = {
		TASK(.id = 1, .name = "a", .state_ns = 5, .waits = list, .n_waits = 2, .parent = 9,
		     .woken_ns = 10, .woken_by = UINT64_MAX),
		TASK(.id = 2, .polls_since = 3, .age_ns = 4, .asked = 1, .requested = 127,
		     .spawned_ns = 60, .polled_ns = 50),
	};
	static const struct tdt_task_info silent =
	    BARE(.id = 3, .state = TDT_TASK_RUNNING, .thread = 6, .syscall = "read");
	static const struct tdt_misuse misuse = {
		.size = sizeof misuse, .kind = TDT_MISUSE_ORDER, .name = "\xff", .reason = "b"
	};
	static const struct tdt_snapshot_process process = {
		.pid = 4711, .registry = 0x7f00, .now_ns = 70,
		.start_real_ns = 1 + (UINT64_C(1) << 53)
	};
	struct dumped *dumped = dumped_new();

	dumped_group(dumped, TDT_ANSWER_FRESH, "f:1*", tasks, 2);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &silent, 1);
	dumped_cycle(dumped, true, tasks, 2);
	dumped_cycle(dumped, true, &tasks[1], 1);
	dumped->cycles[1].n_groups = 1;
	dumped_cycle(dumped, false, tasks, 1);
	dumped->cycles[2].unproven = 1;
	dumped_cycle(dumped, false, &silent, 1);
	dumped->snapshot.lost = 8;
	dumped->snapshot.n_unsure_lost = 3;
	dumped->snapshot.outside = dumped->snapshot.recorded = dumped->snapshot.at_least = 1;
	dumped->snapshot.took_ns = UINT64_MAX;
	dumped->snapshot.misuse = &misuse;
	dumped->snapshot.process = &process;
	return dumped;
}

#define COUNTS "\"leaves_elsewhere\":0,\"leaves_lost\":0"

static const char some_json[] =
	"{\"tdt\":1,\"dump\":{\"took_ns\":\"18446744073709551615\","
	"\"tasks\":3,\"fresh\":2,\"running\":0,\"last\":0,"
	"\"none\":1,\"lost\":8,\"unsure_lost_wakeups\":3,\"outside\":true,"
	"\"recorded\":true,\"at_least\":true,"
	"\"process\":{\"pid\":4711,\"registry\":\"0x7f00\","
	"\"start_real_ns\":\"9007199254740993\",\"now_ns\":70}},"
	"\"misuse\":{\"kind\":\"order\",\"name\":\"\\uFFFD\",\"reason\":\"b\"},"
	"\"deadlocks\":[[1,2],[2]],"
	"\"unproven\":[[1]],\"rings\":[[3]],\"groups\":["
	"{\"answer\":\"fresh\",\"deadlock\":1,\"tasks\":["
	"{\"id\":1,\"name\":\"a\",\"state\":\"waiting\",\"state_ns\":5,"
	"\"polls\":0,\"leaves\":1," COUNTS ",\"parent\":9,"
	"\"woken_ns\":10,\"woken_by\":\"18446744073709551615\","
	"\"waits\":[{\"kind\":\"mutex\",\"object\":\"0x7f10\","
	"\"owner\":2},{\"kind\":\"io\",\"object\":\"0x7\"}]},"
	"{\"id\":2,\"state\":\"waiting\",\"state_ns\":0,"
	"\"polls\":0,\"leaves\":1," COUNTS ",\"spawned_ns\":60,\"polled_ns\":50,"
	"\"requested\":127,\"age_ns\":4,"
	"\"polls_since\":3,\"asked\":1}],\"nodes\":[{\"id\":0,\"kind\":\"task\"},{\"id\":1,"
	"\"parent\":0,\"kind\":\"frame\","
	"\"pc\":\"0x0\",\"function\":\"f\",\"file\":\"/b/x.c\","
	"\"directory\":\"/b\",\"line\":1,\"leaves\":1}]},"
	"{\"answer\":\"none\",\"tasks\":[{\"id\":3,\"state\":\"running\","
	"\"state_ns\":0,\"polls\":0,\"leaves\":0," COUNTS
	",\"thread\":6,\"syscall\":\"read\"}]}]}\n";

CASE(json)

TEST(json_tells_all_in_the_snapshot_s_order)
{
	dumped_expect(some(), PRINT(JSON), some_json);
}

/* Read the dump in `text`. */
static struct dump *read_back(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct reader reader = { .file = file };
	struct tdt_trace *trace;
	struct dump *dump;
	int result = reader_next(&reader, &trace, &dump);

	ck_assert_str_eq(reader.message, "");
	ck_assert_int_eq(result, 1);
	ck_assert_ptr_null(trace);
	fclose(file);
	return dump;
}

/* The text form tells more of families: check_dump_text. */
TEST(json_says_which_group_stands_below_which)
{
	static const struct tdt_task_info child = TASK(.id = 2, .parent = 1, .child = 1),
					  parent = TASK(.id = 1);
	struct dumped *dumped = dumped_new();

	dumped_group(dumped, TDT_ANSWER_FRESH, "c:1*", &child, 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "p:1*", &parent, 1);
	SAYS(dumped_text(&dumped->snapshot, PRINT(JSON)),
	     "{\"answer\":\"fresh\",\"below\":1,"
	     "\"tasks\":[{\"id\":2",
	     "{\"answer\":\"fresh\",\"children\":1,"
	     "\"children_shown\":1,\"tasks\":[{\"id\":1");
	dumped_free(dumped);
}

TEST(it_reads_back_the_same_in_every_form)
{
	struct dumped *dumps[] = { dumped_everything(), some(), dumped_new() };

	for (size_t i = 0; i < 3; i++) {
		TEXT(json, dumped_text(&dumps[i]->snapshot, PRINT(JSON)));
		struct dump *again = read_back(json);

		for (int format = TDT_PRINT_TEXT; format <= TDT_PRINT_FOLDED; format++) {
			const struct tdt_dump_options *options =
			    PRINT(.format = (enum tdt_print_format)format);
			TEXT(first, dumped_text(&dumps[i]->snapshot, options));
			TEXT(second, dumped_text(dump_snapshot(again), options));

			ck_assert_str_eq(first, second);
		}
		dump_free(again);
		dumped_free(dumps[i]);
	}
}

TEST(dumps_and_traces_may_follow_one_another)
{
	static const char trace_json[] = "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\"},"
					 "\"nodes\":[{\"id\":0,\"kind\":\"task\"}]}\n";
	char text[2 * sizeof(some_json) + sizeof(trace_json)];
	struct reader reader = { 0 };
	struct tdt_trace *trace;
	struct dump *dump;

	snprintf(text, sizeof(text), "%s%s%s", some_json, trace_json, some_json);
	reader.file = fmemopen(text, strlen(text), "r");
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(reader_next(&reader, &trace, &dump), 1);
		ck_assert((trace != NULL) == (i == 1) && (dump != NULL) == (i != 1));
		tdt_trace_free(trace);
		dump_free(dump);
	}
	ck_assert_int_eq(reader_next(&reader, &trace, &dump), 0);
	rewind(reader.file);
	ck_assert_int_eq(reader_next(&reader, &trace, NULL), -1);
	ck_assert_str_eq(reader.message, "a dump of many tasks, not a trace of one");
	fclose(reader.file);
}

#define D "{\"tdt\":1,\"dump\":{},"
#define T "{\"id\":1,\"state\":\"ready\"}"
#define N "\"nodes\":[{\"id\":0,\"kind\":\"task\"}]"
#define G "\"groups\":[{\"answer\":\"fresh\",\"tasks\":[" T "]," N "}]"

TEST(what_is_no_dump_is_refused_with_the_place_and_reason)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"tdt\":1,\"dump\":1}", "dump: not an object" },
		{ "{\"tdt\":1,\"dump\":{\"tasks\":-1}}",
		  "dump.tasks: not a whole number from 0 to 2^64 - 1" },
		{ D "\"x\":1}", "groups: not an array" },
		{ D "\"groups\":[1]}", "groups[0].group.answer: is missing" },
		{ D "\"groups\":[{\"answer\":\"no\"}]}",
		  "groups[0].group.answer: not a word that this version knows" },
		{ D "\"groups\":[{\"answer\":\"none\"}]}",
		  "groups[0].group.tasks: not an array with a task at least" },
		{ D "\"groups\":[{\"answer\":\"none\",\"tasks\":[]}]}",
		  "groups[0].group.tasks: not an array with a task at least" },
		{ D "\"groups\":[{\"answer\":\"none\",\"tasks\":[" T ",1]}]}",
		  "groups[0].tasks[1].id: is missing" },
		{ D "\"groups\":[{\"answer\":\"fresh\",\"tasks\":[" T "]}]}",
		  "groups[0].group.nodes: is missing" },
		{ D "\"groups\":[{\"answer\":\"fresh\",\"tasks\":[" T "],\"nodes\":[]}]}",
		  "groups[0].nodes: not an array with the task as its first node" },
		{ D "\"groups\":[{\"answer\":\"fresh\",\"tasks\":[" T "]," N
		    "},{\"answer\":\"last\",\"tasks\":[" T "],\"nodes\":[{\"id\":1}]}]}",
		  "groups[1].nodes[0].kind: is missing" },
		{ D "\"groups\":[{\"answer\":\"none\",\"tasks\":[{\"id\":1,\"state\":\"ready\","
		    "\"waits\":1}]}]}",
		  "groups[0].tasks[0].waits: not an array" },
		{ D "\"groups\":[{\"answer\":\"none\",\"tasks\":[{\"id\":1,\"state\":\"ready\","
		    "\"waits\":[{}]}]}]}",
		  "groups[0].tasks[0].waits[0].kind: is missing" },
		{ D "\"groups\":[{\"answer\":\"none\",\"tasks\":[{\"id\":1,\"state\":\"ready\","
		    "\"waits\":[{\"kind\":"
		    "\"io\",\"object\":7}]}]}]}",
		  "groups[0].tasks[0].waits[0].object: not a string of a 64-bit hexadecimal number "
		  "as \"0x1f\"" },
		{ "{\"tdt\":1,\"dump\":{\"process\":1}}", "process: not an object" },
		{ "{\"tdt\":1,\"dump\":{\"process\":{\"pid\":4294967296}}}",
		  "process.pid: not a whole number from 0 to 2^32 - 1" },
		{ "{\"tdt\":1,\"dump\":{\"process\":{\"registry\":1}}}",
		  "process.registry: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ D G ",\"misuse\":1}", "misuse: not an object" },
		{ D G ",\"misuse\":{\"kind\":\"none\",\"reason\":\"\"}}",
		  "misuse.kind: not a word that this version knows" },
		{ D G ",\"misuse\":{\"kind\":\"order\"}}", "misuse.reason: is missing" },
		{ D G ",\"misuse\":{\"kind\":\"order\",\"reason\":1}}",
		  "misuse.reason: not a string" },
		{ D G ",\"deadlocks\":1}", "deadlocks, unproven, rings: not arrays" },
		{ D G ",\"deadlocks\":[[1],[]]}",
		  "deadlocks[1]: not an array of ids of tasks in the groups" },
		{ D G ",\"deadlocks\":[1]}",
		  "deadlocks[0]: not an array of ids of tasks in the groups" },
		{ D "\"deadlocks\":[[1]],\"groups\":[{\"answer\":\"none\",\"deadlock\":1,"
		    "\"tasks\":[" T "]}]}",
		  "groups[0].deadlock: not the next deadlock's number" },
		{ D G ",\"unproven\":[[1],[2]]}",
		  "unproven[1]: not an array of ids of tasks in the groups" },
		{ D "\"rings\":[[1]],\"groups\":[{\"answer\":\"none\",\"deadlock\":0,"
		    "\"tasks\":[" T "]}]}",
		  "groups[0].deadlock: not the next deadlock's number" },
		{ D "\"deadlocks\":[[1],[1]],\"groups\":[{\"answer\":\"none\",\"deadlock\":1,"
		    "\"tasks\":[" T "]},{\"answer\":\"none\",\"deadlock\":0,\"tasks\":[" T "]}]}",
		  "groups[1].deadlock: not the next deadlock's number" },
		{ D G ",\"rings\":[[1,2]]}",
		  "rings[0]: not an array of ids of tasks in the groups" },
		{ D G ",\"rings\":[[1,\"x\"]]}",
		  "rings[0]: not an array of ids of tasks in the groups" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		STREAM(file,
		       fmemopen((void *)(uintptr_t)cases[i].text, strlen(cases[i].text), "r"));
		struct reader reader = { .file = file };
		struct tdt_trace *trace;
		struct dump *dump;

		ck_assert_int_eq(reader_next(&reader, &trace, &dump), -1);
		ck_assert(trace == NULL && dump == NULL);
		ck_assert_str_eq(reader.message, cases[i].message);
	}
}

TEST(a_dump_of_a_later_version_may_have_more_members)
{
	dump_free(read_back(
	    "{\"tdt\":1,\"dump\":{\"new\":1},\"new\":[],\"groups\":[{\"answer\":\"none\",\"new\":1,"
	    "\"tasks\":[{\"id\":1,\"state\":\"ready\",\"new\":1,"
	    "\"waits\":[{\"kind\":\"other\",\"new\":1}]}]}]}"));
}

TEST(damaged_dumps_never_do_damage)
{
	const int rounds = in_valgrind() ? 300 : 3000;
	unsigned random = seed_of_run();
	int read = 0;

	for (int i = 0; i < rounds; i++) {
		char text[sizeof(some_json)];
		struct reader reader = { 0 };
		struct tdt_trace *trace;
		struct dump *dump;
		size_t n = sizeof(text) - 1;

		memcpy(text, some_json, sizeof(text));
		for (int times = 1 + (int)random_below(&random, 3); times > 0; times--) {
			size_t at = random_below(&random, (unsigned)n);

			if (random_below(&random, 4) == 0)
				n = n > 1 ? n - 1 : n;
			else
				text[at] = "{}[]\",:0123456789-n"[random_below(&random, 19)];
		}
		reader.file = fmemopen(text, n, "r");
		while (reader_next(&reader, &trace, &dump) > 0) {
			for (int form = TDT_PRINT_TEXT; dump != NULL && form <= TDT_PRINT_FOLDED;
			     form++)
				free(dumped_text(dump_snapshot(dump),
						 PRINT(.format = (enum tdt_print_format)form)));
			tdt_trace_free(trace);
			dump_free(dump);
			read++;
		}
		ck_assert(trace == NULL && dump == NULL);
		fclose(reader.file);
	}
	ck_assert_int_gt(read, 10); /* some still were dumps */
	ck_assert_int_lt(read, rounds - 10);
}

/* Read a list.  Returns 1, 0 or -1, as the reader does. */
static int read_as_list(const char *text, struct reader *reader, struct dump **dump)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct tdt_trace *trace;
	int result;

	*reader = (struct reader){ .file = file, .lists = true };
	result = reader_next(reader, &trace, dump);
	ck_assert_ptr_null(trace);
	fclose(file);
	return result;
}

#define L "{\"tdt\":1,\"ps\":{\"process\":{\"pid\":7,\"now_ns\":9}},\"tasks\":["

TEST(a_list_is_a_dump_of_tasks_without_trees)
{
	const struct tdt_snapshot *snapshot;
	struct reader reader;
	struct dump *dump;

	ck_assert_int_eq(read_as_list(L "{\"task\":" T "},{\"task\":{},\"outcome\":\"ready\"}]}",
				   &reader, &dump), 1);
	snapshot = dump_snapshot(dump);
	ck_assert(snapshot->tasks == 1 && snapshot->n_groups == 1);
	ck_assert(snapshot->groups[0]->n == 1 && snapshot->groups[0]->trace == NULL);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->id, 1);
	ck_assert_uint_eq(snapshot->process->now_ns, 9);
	dump_free(dump);
	ck_assert_int_eq(read_as_list(L "]}", &reader, &dump), 1);
	ck_assert_uint_eq(dump_snapshot(dump)->n_groups, 0);
	dump_free(dump);
}

TEST(what_is_no_list_is_refused_with_the_place_and_reason)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"tdt\":1,\"ps\":1}", "ps: not an object" },
		{ "{\"tdt\":1,\"ps\":{}}", "tasks: not an array" },
		{ L "1]}", "tasks: not objects with a task" },
		{ L "{\"task\":{}}]}", "tasks[0].task.id: is missing" },
		{ L "{\"task\":" T "},{\"task\":{\"id\":\"x\"}}]}",
		  "tasks[1].task.id: not a whole number from 0 to 2^64 - 1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reader reader;
		struct dump *dump;

		ck_assert_int_eq(read_as_list(cases[i].text, &reader, &dump), -1);
		ck_assert_ptr_null(dump);
		ck_assert_str_eq(reader.message, cases[i].message);
	}
}

static int read_once(void *argument)
{
	struct reader reader = { .file = argument };
	struct tdt_trace *trace;
	struct dump *dump;
	int result;

	rewind(argument);
	result = reader_next(&reader, &trace, &dump);
	dump_free(dump);
	/* jansson has words for it, but no code */
	if (result == 1)
		return 0;
	return result == -1 && reader.message[0] != '\0' && dump == NULL ? -ENOMEM : -EPROTO;
}

TEST(every_allocation_may_fail_while_reading)
{
	STREAM(file, fmemopen((void *)(uintptr_t)some_json, sizeof(some_json) - 1, "r"));
	char buffer[512];

	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	no_memory_each(read_once, file, 50);
}
