// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree/tree, tree/trace, tree/call_tree, base/arena.  The call tree: what is merged, in
 * which order it is walked, and what happens without memory.
 */

#include "lib/test.h"

static struct tdt_trace *new_trace(void)
{
	struct tdt_task_info info = { .size = sizeof(info), .id = 7 };
	struct tdt_trace *trace = tdt_trace_new(&info);

	ck_assert_ptr_nonnull(trace);
	return trace;
}

static struct tdt_frame frame_of(const char *function, uint32_t line, uint64_t pc)
{
	return (struct tdt_frame){ .size = sizeof(struct tdt_frame),
				   .kind = TDT_NODE_FRAME,
				   .pc = pc,
				   .function = function,
				   .file = "/src/a.c",
				   .line = line,
				   .column = 3,
				   .module = "/bin/a" };
}

static const struct tdt_node *add(struct tdt_trace *trace, const struct tdt_node *parent,
				  struct tdt_frame frame, uint32_t leaves)
{
	const struct tdt_node *node;

	frame.size = sizeof(frame);
	node = tdt_trace_add(trace, parent, &frame, leaves);
	ck_assert_ptr_nonnull(node);
	return node;
}

CASE(tree)

TEST(a_new_trace_is_its_root_and_info)
{
	char name[] = "bar";
	struct tdt_task_info info = { .size = sizeof(info),
				       .id = UINT64_MAX,
				       .name = name,
				       .file = "x.c",
				       .line = 3,
				       .column = 4,
				       .state = TDT_TASK_READY,
				       .leaves = 2,
				       .leaves_elsewhere = 5,
				       .leaves_lost = 6,
				       .state_ns = 9,
				       .polls = 8 };
	TRACE(trace, tdt_trace_new(&info));
	const struct tdt_node *root = tdt_trace_root(trace);
	const struct tdt_task_info *got = tdt_trace_info(trace);

	name[0] = 'X';
	ck_assert_str_eq(got->name, "bar");
	ck_assert_uint_eq(got->size, sizeof(info));
	ck_assert(got->id == UINT64_MAX && got->line == 3 && got->column == 4 &&
		  got->state == TDT_TASK_READY);
	ck_assert(got->leaves == 2 && got->leaves_elsewhere == 5 && got->leaves_lost == 6);
	ck_assert(got->state_ns == 9 && got->polls == 8);
	ck_assert_int_eq(tdt_node_frame(root)->kind, TDT_NODE_TASK);
	ck_assert_uint_eq(tdt_node_id(root), 0);
	ck_assert_uint_eq(tdt_node_leaves(root), 0);
	ck_assert_ptr_null(tdt_node_parent(root));
	ck_assert_ptr_null(tdt_node_first_child(root));
	ck_assert_ptr_null(tdt_node_next_sibling(root));
	ck_assert_ptr_null(tdt_node_next(root));
	tdt_trace_free(NULL);
}

TEST(a_built_trace_has_no_raw_stacks)
{
	TRACE(trace, new_trace());
	enum tdt_cut cut = TDT_CUT_LIMIT;
	uint64_t pc;

	ck_assert_uint_eq(tdt_trace_stacks(trace), 0);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, &pc, 1, &cut), 0);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, NULL), 0);
}

TEST(info_of_another_size_follows_the_size_rules)
{
	struct {
		struct tdt_task_info info;
		unsigned char more[8];
	} large = { .info = { .size = sizeof(large), .id = 5 } };
	struct tdt_task_info info = { .size = offsetof(struct tdt_task_info, line),
				       .id = 5,
				       .line = 77 };
	struct tdt_trace *trace = tdt_trace_new(&info);

	ck_assert_ptr_nonnull(trace);
	ck_assert_uint_eq(tdt_trace_info(trace)->line, 0);
	tdt_trace_free(trace);

	trace = tdt_trace_new(&large.info);
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
	large.more[7] = 1;
	ck_assert_ptr_fails(tdt_trace_new(&large.info), E2BIG);

	for (size_t size = 0; size < sizeof(size_t); size++) {
		info.size = size;
		ck_assert_ptr_fails(tdt_trace_new(&info), EINVAL);
	}
	ck_assert_ptr_fails(tdt_trace_new(NULL), EINVAL);
	info = (struct tdt_task_info){ .size = sizeof(info), .state = (enum tdt_task_state)6 };
	ck_assert_ptr_fails(tdt_trace_new(&info), EINVAL);
}

TEST(strings_are_copied)
{
	TRACE(trace, new_trace());
	char function[] = "foo", file[] = "/src/a.c", directory[] = "/src", module[] = "/bin/a",
	     symbol[] = "foo.cold", build_id[] = "abcd";
	const struct tdt_frame frame = { .size = sizeof(frame),
					 .kind = TDT_NODE_FRAME,
					 .pc = 1,
					 .function = function,
					 .file = file,
					 .directory = directory,
					 .line = 2,
					 .column = 3,
					 .module = module,
					 .module_offset = 4,
					 .symbol = symbol,
					 .symbol_offset = 5,
					 .build_id = build_id,
					 .inlined = 1,
					 .guessed = 1 };
	const struct tdt_frame *got;

	got =
	    tdt_node_frame(tdt_trace_add(trace, tdt_trace_add(trace, NULL, &frame, 0), &frame, 1));
	function[0] = file[0] = directory[0] = module[0] = symbol[0] = build_id[0] = 'X';
	ck_assert_str_eq(got->function, "foo");
	ck_assert_str_eq(got->file, "/src/a.c");
	ck_assert_str_eq(got->directory, "/src");
	ck_assert_str_eq(got->module, "/bin/a");
	ck_assert_str_eq(got->symbol, "foo.cold");
	ck_assert_str_eq(got->build_id, "abcd");
	ck_assert(got->pc == 1 && got->line == 2 && got->column == 3 && got->module_offset == 4);
	ck_assert(got->symbol_offset == 5 && got->inlined == 1 && got->guessed == 1);
}

TEST(what_leaves_wait_for_is_copied)
{
	struct tdt_wait waits[] = {
		{ .size = sizeof *waits, .kind = TDT_WAIT_MUTEX, .object = 0x1000, .owner = 7 },
		{ .size = sizeof *waits, .kind = TDT_WAIT_IO, .object = 3 },
	};
	const struct tdt_wait *const list[] = { &waits[0], &waits[1] };
	struct tdt_task_info info = { .size = sizeof(info), .n_waits = 2, .waits = list };
	struct tdt_trace *trace = tdt_trace_new(&info);

	ck_assert_ptr_nonnull(trace);
	memset(waits, 0xff, sizeof(waits));
	ck_assert_uint_eq(tdt_trace_info(trace)->n_waits, 2);
	ck_assert_int_eq(tdt_trace_info(trace)->waits[0]->kind, TDT_WAIT_MUTEX);
	ck_assert_uint_eq(tdt_trace_info(trace)->waits[0]->object, 0x1000);
	ck_assert_uint_eq(tdt_trace_info(trace)->waits[0]->owner, 7);
	ck_assert_int_eq(tdt_trace_info(trace)->waits[1]->kind, TDT_WAIT_IO);
	ck_assert_uint_eq(tdt_trace_info(trace)->waits[1]->object, 3);
	tdt_trace_free(trace);
	/* A number of none, and none of them. */
	for (int i = 0; i < 2; i++) {
		info.n_waits = i == 0 ? 5 : 0;
		info.waits = i == 0 ? NULL : list;
		trace = tdt_trace_new(&info);
		ck_assert_ptr_nonnull(trace);
		ck_assert_uint_eq(tdt_trace_info(trace)->n_waits, 0);
		ck_assert_ptr_null(tdt_trace_info(trace)->waits);
		tdt_trace_free(trace);
	}
}

TEST(the_same_call_is_one_node_and_keeps_its_first_pc)
{
	TRACE(trace, new_trace());
	const struct tdt_node *foo = add(trace, NULL, frame_of("foo", 10, 0x100), 1);
	struct tdt_frame guessed = frame_of("foo", 10, 0x200);

	guessed.guessed = 1;
	ck_assert_ptr_eq(add(trace, NULL, guessed, 2), foo);
	ck_assert_uint_eq(tdt_node_leaves(foo), 3);
	ck_assert_uint_eq(tdt_node_frame(foo)->pc, 0x100);
	ck_assert_uint_eq(tdt_node_frame(foo)->guessed, 1);
}

TEST(frames_that_differ_are_nodes_of_their_own)
{
	TRACE(trace, new_trace());
	const struct tdt_frame foo = frame_of("foo", 10, 0x100);
	struct tdt_frame other[7];
	const struct tdt_node *node[8];

	for (int i = 0; i < 7; i++)
		other[i] = foo;
	other[0].function = "bar";
	other[1].file = "/src/b.c";
	other[2].line = 11;
	other[3].column = 0;
	other[4].module = "/bin/b";
	other[5].module = NULL;
	other[6].inlined = 1;
	node[7] = add(trace, NULL, foo, 1);
	for (int i = 0; i < 7; i++) {
		node[i] = add(trace, NULL, other[i], 1);
		ck_assert_uint_eq(tdt_node_id(node[i]), (unsigned int)i + 2);
	}
	for (int i = 0; i < 7; i++)
		ck_assert_ptr_eq(add(trace, NULL, other[i], 0), node[i]);
	ck_assert_ptr_eq(add(trace, NULL, foo, 0), node[7]);
	ck_assert_ptr_ne(add(trace, node[7], foo, 0), node[7]); /* recursion is no repeat */
}

TEST(without_a_function_or_line_only_the_pc_tells)
{
	TRACE(trace, new_trace());
	struct tdt_frame nameless = { .kind = TDT_NODE_FRAME, .pc = 0x10, .module = "/bin/a" };
	struct tdt_frame symbol_only = {
		.kind = TDT_NODE_FRAME, .pc = 0x10, .function = "f", .module = "/bin/a"
	};
	const struct tdt_node *a = add(trace, NULL, nameless, 1),
			      *b = add(trace, NULL, symbol_only, 1);

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(add(trace, NULL, nameless, 1), a);
	ck_assert_ptr_eq(add(trace, NULL, symbol_only, 1), b);
	nameless.pc = symbol_only.pc = 0x11;
	ck_assert_ptr_ne(add(trace, NULL, nameless, 1), a);
	ck_assert_ptr_ne(add(trace, NULL, symbol_only, 1), b);
}

TEST(cuts_are_one_node_a_reason)
{
	TRACE(trace, new_trace());
	const struct tdt_frame limit = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_LIMIT };
	const struct tdt_frame stack = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_STACK };
	const struct tdt_node *a = add(trace, NULL, limit, 0), *b = add(trace, NULL, stack, 0);

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(add(trace, NULL, limit, 0), a);
	ck_assert_ptr_eq(add(trace, NULL, stack, 0), b);
}

/* root: a (b, c (d)), e */
TEST(the_walk_is_depth_first_in_the_order_of_first_sight)
{
	TRACE(trace, new_trace());
	const struct tdt_node *a = add(trace, NULL, frame_of("a", 1, 1), 0);
	const struct tdt_node *e = add(trace, tdt_trace_root(trace), frame_of("e", 1, 1), 1);
	const struct tdt_node *b = add(trace, a, frame_of("b", 1, 1), 1);
	const struct tdt_node *c = add(trace, a, frame_of("c", 1, 1), 0);
	const struct tdt_node *d = add(trace, c, frame_of("d", 1, 1), 1);
	const struct tdt_node *expected[] = { tdt_trace_root(trace), a, b, c, d, e, NULL };
	const struct tdt_node *node = tdt_trace_root(trace);

	for (int i = 0; i < 7; i++) {
		ck_assert_ptr_eq(node, expected[i]);
		if (node != NULL)
			node = tdt_node_next(node);
	}
	ck_assert_ptr_eq(tdt_node_parent(d), c);
	ck_assert_ptr_eq(tdt_node_parent(a), tdt_trace_root(trace));
	ck_assert_ptr_eq(tdt_node_first_child(a), b);
	ck_assert_ptr_eq(tdt_node_next_sibling(b), c);
	ck_assert_ptr_null(tdt_node_next_sibling(e));
	ck_assert_uint_eq(tdt_node_id(a), 1);
	ck_assert_uint_eq(tdt_node_id(e), 2);
	ck_assert_uint_eq(tdt_node_id(d), 5);
}

TEST(what_is_no_frame_is_refused)
{
	struct tdt_trace *trace = new_trace(), *other = new_trace();
	const struct tdt_frame good = frame_of("a", 1, 1);
	const struct tdt_frame bad[] = {
		{ .size = sizeof(bad[0]), .kind = TDT_NODE_TASK },
		{ .size = sizeof(bad[0]), .kind = (enum tdt_node_kind)3 },
		{ .size = sizeof(bad[0]), .kind = TDT_NODE_CUT },
		{ .size = sizeof(bad[0]), .kind = TDT_NODE_CUT, .cut = (enum tdt_cut)7 },
		{ .size = sizeof(bad[0]), .kind = TDT_NODE_FRAME, .cut = TDT_CUT_LIMIT },
		{ .size = 0, .kind = TDT_NODE_FRAME },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_ptr_fails(tdt_trace_add(trace, NULL, &bad[i], 0), EINVAL);
	}
	ck_assert_ptr_fails(tdt_trace_add(trace, tdt_trace_root(other), &good, 0), EINVAL);
	ck_assert_ptr_null(tdt_trace_add(NULL, NULL, &good, 0));
	ck_assert_ptr_null(tdt_trace_add(trace, NULL, NULL, 0));
	ck_assert_ptr_null(tdt_node_next(tdt_trace_root(trace)));
	tdt_trace_free(trace);
	tdt_trace_free(other);
}

TEST(leaves_never_wrap_round)
{
	TRACE(trace, new_trace());
	const struct tdt_frame frame = frame_of("a", 1, 1);
	const struct tdt_node *node = add(trace, NULL, frame, UINT32_MAX);

	ck_assert_ptr_fails(tdt_trace_add(trace, NULL, &frame, 1), EOVERFLOW);
	ck_assert_uint_eq(tdt_node_leaves(node), UINT32_MAX);
}

TEST(a_stack_of_100000_frames_is_a_tree_as_deep)
{
	TRACE(trace, new_trace());
	const struct tdt_node *node = NULL;
	uint32_t n = 0, depth = times_here(100000);

	for (uint32_t i = 0; i < depth; i++)
		node = add(trace, node, frame_of("deep", 7, i), i == depth - 1);
	for (node = tdt_trace_root(trace); node != NULL; node = tdt_node_next(node))
		ck_assert_uint_eq(tdt_node_id(node), n++);
	ck_assert_uint_eq(n, depth + 1);
}

/* A linear search among the siblings takes minutes, and so runs into the test's timeout. */
TEST(many_siblings_are_found_as_fast_as_few)
{
	TRACE(trace, new_trace());
	unsigned n = times_here(400000);

	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < n; i++)
			add(trace, NULL, (struct tdt_frame){ .kind = TDT_NODE_FRAME, .pc = i }, 1);
	ck_assert_uint_eq(
	    tdt_node_id(add(trace, NULL, (struct tdt_frame){ .kind = TDT_NODE_FRAME, .pc = 0 }, 0)),
	    1);
	ck_assert_uint_eq(tdt_node_id(add(trace, NULL, frame_of("last", 1, 1), 0)), n + 1);
}

static int build(void *argument)
{
	static char long_name[20000];
	const struct tdt_wait wait = { .size = sizeof wait,
				       .kind = TDT_WAIT_TASK,
				       .object = 1,
				       .owner = 2,
				       .owner_name = "owner" };
	const struct tdt_wait *const waits[] = { &wait };
	struct tdt_task_info info = { .size = sizeof(info),
				       .name = "name",
				       .file = "file",
				       .syscall = "read",
				       .n_waits = 1,
				       .waits = waits };
	struct tdt_trace *trace = tdt_trace_new(&info);
	const struct tdt_node *node = NULL;
	int err = 0;

	if (trace == NULL)
		return -errno;
	memset(long_name, 'x', sizeof(long_name) - 1);
	for (uint32_t i = 0; i < 200 && err == 0; i++) {
		struct tdt_frame frame = frame_of(i == 100 ? long_name : "f", i + 1, i);
		const struct tdt_node *added = tdt_trace_add(trace, node, &frame, 1);
		uint32_t n = 0;

		err = added == NULL ? -errno : 0;
		if (added != NULL)
			node = added;
		for (const struct tdt_node *at = tdt_trace_root(trace); at != NULL;
		     at = tdt_node_next(at))
			n++;
		if (n != i + 1 + (added != NULL))
			err = -EPROTO; /* a failed add left something behind */
	}
	tdt_trace_free(trace);
	return err;
}

TEST(every_allocation_may_fail)
{
	no_memory_each(build, NULL, 8);
}
