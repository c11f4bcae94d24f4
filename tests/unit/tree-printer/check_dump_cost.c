// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/dump, tree-printer/frames.  What it costs to print a dump, counted: in pieces
 * that are written, and in allocations.
 */

#include "lib/dumped.h"
#include "lib/test.h"

#define MANY 2000
#define DEPTH 30

static struct tdt_task_info tasks[MANY];
static const struct tdt_task_info *pointers[MANY];
static struct tdt_snapshot_group groups[MANY];
static const struct tdt_snapshot_group *list[MANY];

/* All in groups of `each` tasks, which have a tree of one stack. */
static struct tdt_snapshot snapshot_of(size_t n, size_t each, const struct tdt_trace *trace)
{
	struct tdt_snapshot snapshot = { .size = sizeof(snapshot), .tasks = n, .groups = list,
					 .n_groups = n / each };

	for (size_t i = 0; i < n; i++) {
		tasks[i] = (struct tdt_task_info)TASK(.id = i + 1, .name = "x");
		pointers[i] = &tasks[i];
	}
	for (size_t i = 0; i < n / each; i++) {
		groups[i] = (struct tdt_snapshot_group){
			.trace = trace, .tasks = &pointers[i * each], .n = each
		};
		list[i] = &groups[i];
	}
	return snapshot;
}

static struct tdt_trace *deep(void)
{
	char tree[16 * DEPTH] = "";
	size_t n = 0;

	for (int i = 0; i < DEPTH; i++)
		n += (size_t)sprintf(tree + n, "f%d:%d%s", i, i + 1, i < DEPTH - 1 ? "(" : "*");
	memset(tree + n, ')', DEPTH - 1);
	return grow(tree);
}

/* A stream without a buffer, that counts. */
struct sink {
	size_t bytes;
	size_t pieces;
};

static ssize_t count_piece(void *cookie, const char *bytes, size_t n)
{
	struct sink *sink = cookie;

	sink->bytes += n;
	sink->pieces++;
	return (ssize_t)n;
}

static FILE *sink_open(struct sink *sink)
{
	FILE *file = fopencookie(sink, "w", (cookie_io_functions_t){ .write = count_piece });

	*sink = (struct sink){ 0 };
	ck_assert_ptr_nonnull(file);
	setvbuf(file, NULL, _IONBF, 0);
	return file;
}

static int allocations(const struct tdt_snapshot *snapshot, const struct tdt_dump_options *options)
{
	struct sink sink;
	FILE *file = sink_open(&sink);
	int n, result;

	no_memory_begin(-1);
	result = tdt_snapshot_print(snapshot, file, options);
	n = no_memory_end(); /* a claim allocates, too */
	ck_assert_int_eq(result, 0);
	fclose(file);
	return n;
}

CASE(pieces)

TEST(a_dump_is_written_in_large_pieces, .from = TDT_PRINT_TEXT, .to = TDT_PRINT_FOLDED + 1)
{
	const struct tdt_dump_options *options =
	    DUMP(.print = OPTIONS(.format = (enum tdt_print_format)_i));
	TRACE(trace, deep());
	struct tdt_snapshot snapshot = snapshot_of(MANY, 1, trace);
	struct sink sink;
	STREAM(file, sink_open(&sink));

	ck_assert_int_eq(tdt_snapshot_print(&snapshot, file, options), 0);
	ck_assert_uint_gt(sink.bytes, 100 * (size_t)MANY);
	ck_assert_uint_le(sink.pieces, sink.bytes / 2048 + 2);
}

CASE(memory)

TEST(more_tasks_of_a_group_take_no_more_allocations, .from = TDT_PRINT_TEXT,
     .to = TDT_PRINT_FOLDED + 1)
{
	const struct tdt_dump_options *options =
	    DUMP(.print = OPTIONS(.format = (enum tdt_print_format)_i));
	TRACE(trace, deep());
	struct tdt_snapshot snapshot = snapshot_of(20, 20, trace);
	int few = allocations(&snapshot, options);

	snapshot = snapshot_of(MANY, MANY, trace);
	ck_assert_int_eq(allocations(&snapshot, options), few);
}

TEST(the_frames_of_a_tree_are_not_written_anew_for_the_next, .from = TDT_PRINT_TEXT,
     .to = TDT_PRINT_FOLDED + 1)
{
	const struct tdt_dump_options *options =
	    DUMP(.print = OPTIONS(.format = (enum tdt_print_format)_i));
	TRACE(trace, deep());
	struct tdt_snapshot snapshot = snapshot_of(1, 1, trace);
	int one = allocations(&snapshot, options);

	snapshot = snapshot_of(MANY, 1, trace);
	ck_assert_int_lt((allocations(&snapshot, options) - one) / (MANY - 1), DEPTH);
}
