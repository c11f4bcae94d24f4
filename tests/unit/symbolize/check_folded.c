// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/elfsym, symbolize/diename.  Functions that share their code with others have
 * further names at one address, as compilers and linkers make them.
 */

#include "lib/poll_now.h"
#include "lib/test.h"

#define ALIAS(name, of, ...)                                                                       \
	tdt_poll_t name(void *state, struct tdt_context *cx)                                       \
	    __attribute__((alias(#of), used, ##__VA_ARGS__))
#define POLL(name)                                                                                 \
	tdt_poll_t name(void *state, struct tdt_context *cx);                                      \
	POLL_BODY(name)
#define POLL_BODY(name)                                                                            \
	tdt_poll_t name(void *state, struct tdt_context *cx)                                       \
	{                                                                                          \
		(void)state;                                                                       \
		tdt_waker_drop(tdt_waker_clone(cx->waker));                                        \
		TDT_KEEP_FRAME();                                                                  \
		return TDT_PENDING;                                                                \
	}

POLL(folded_poll)
ALIAS(folded_other_poll, folded_poll);
ALIAS(folded_weak_poll, folded_poll, weak);
ALIAS(__folded_poll, folded_poll);

POLL(many_poll)
ALIAS(many_b_poll, many_poll);
ALIAS(many_c_poll, many_poll);
ALIAS(many_d_poll, many_poll);
ALIAS(many_e_poll, many_poll);
ALIAS(many_f_poll, many_poll);
ALIAS(many_g_poll, many_poll);

POLL(single_poll)

/* Symbols name the alias first, because the function is not exported. */
static tdt_poll_t plain_a_poll(void *state, struct tdt_context *cx) __attribute__((used, noinline));
static POLL_BODY(plain_a_poll)
ALIAS(plain_b_poll, plain_a_poll);

static struct poll_now task;

/* The only frame of the program. */
static const struct tdt_frame *frame_of(const struct tdt_trace *trace)
{
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);

		if (frame->function != NULL && strstr(frame->function, "_poll") != NULL &&
		    !frame->inlined)
			return frame;
	}
	ck_abort_msg("no frame");
}

static struct tdt_trace *ask(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	poll_now_start(&task, future_of(poll, NULL));
	return poll_now_ask(&task, 0);
}

static void end(struct tdt_trace *trace)
{
	tdt_trace_free(trace);
	poll_now_end(&task);
}

CASE(functions)

/* Which of several names is the function's is the debug information's choice. */
TEST(a_folded_function_says_what_else_it_may_be)
{
	struct tdt_trace *trace = ask(folded_poll);
	const struct tdt_frame *frame = frame_of(trace);

	ck_assert_str_eq(frame->function, "folded_poll");
	ck_assert_ptr_nonnull(frame->also);
	ck_assert_str_eq(frame->also[0], "folded_other_poll");
	ck_assert_ptr_null(frame->also[1]);
	end(trace);
}

/* Whichever of the symbols is found first. */
TEST(the_other_name_is_that_of_the_other_function)
{
	struct tdt_trace *trace = ask(plain_a_poll);
	const struct tdt_frame *frame = frame_of(trace);

	ck_assert_str_eq(frame->function, "plain_a_poll");
	ck_assert_ptr_nonnull(frame->also);
	ck_assert_str_eq(frame->also[0], "plain_b_poll");
	ck_assert_ptr_null(frame->also[1]);
	end(trace);
}

TEST(four_other_names_are_the_most)
{
	struct tdt_trace *trace = ask(many_poll);
	const struct tdt_frame *frame = frame_of(trace);
	int n = 0;

	ck_assert_ptr_nonnull(frame->also);
	while (frame->also[n] != NULL)
		ck_assert_ptr_nonnull(strstr(frame->also[n++], "many_"));
	ck_assert_int_eq(n, 4);
	end(trace);
}

TEST(a_function_alone_says_nothing)
{
	struct tdt_trace *trace = ask(single_poll);

	ck_assert_ptr_null(frame_of(trace)->also);
	end(trace);
}

/* `trace` printed in that form; for the caller to free. */
static char *printed(const struct tdt_trace *trace, enum tdt_print_format format)
{
	struct tdt_print_options options = { .size = sizeof options, .format = format };

	return TEXT_WRITTEN(out, ck_assert_int_eq(tdt_trace_print_with(trace, out, &options), 0));
}

TEST(text_and_json_have_the_other_names)
{
	struct tdt_trace *trace = ask(folded_poll);
	char *text = printed(trace, TDT_PRINT_TEXT), *json = printed(trace, TDT_PRINT_JSON);

	ck_assert_ptr_nonnull(strstr(text, " (also folded_other_poll)\n"));
	ck_assert_ptr_nonnull(strstr(json, "\"also\":[\"folded_other_poll\"]"));
	free(json);
	free(text);
	end(trace);
}

TEST(a_built_trace_keeps_its_own_copy)
{
	char name[] = "b";
	const char *also[] = { name, NULL };
	struct tdt_task_info info = { .size = sizeof info };
	struct tdt_frame frame = {
		.size = sizeof frame, .kind = TDT_NODE_FRAME, .function = "a", .also = also
	};
	TRACE(trace, tdt_trace_new(&info));
	const struct tdt_node *node = tdt_trace_add(trace, NULL, &frame, 1);

	ck_assert_ptr_nonnull(node);
	name[0] = 'x';
	ck_assert_str_eq(tdt_node_frame(node)->also[0], "b");
	ck_assert_ptr_null(tdt_node_frame(node)->also[1]);
}
