// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/user, tdt/probe.h.  When TDT_PROBE() evaluates its arguments, and what it
 * records.  A tracer's part is played by the test, which raises a semaphore as the kernel would.
 */

#include <tdt/layout/recording.h>

#include "lib/futures.h"
#include "lib/recorded.h"
#include "lib/test.h"

static int evaluated;

static int evaluate(int value)
{
	evaluated++;
	return value;
}

static void start(void)
{
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
}

static struct recorded last_event(void)
{
	return recorded_last(TDT_RING_OTHERS, TDT_EVENT_USER, 0);
}

static void fire(void)
{
	TDT_PROBE(shop, fired, evaluate(1));
}

CASE(when)

TEST(arguments_are_not_evaluated_while_nobody_wants_them)
{
	fire();
	start();
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	fire();
	ck_assert_int_eq(evaluated, 0);
	ck_assert_uint_eq(recorded_count(TDT_RING_OTHERS, TDT_EVENT_USER, 0), 0);
}

#ifdef TDT__PROBE_SITES
extern volatile uint16_t semaphore __asm__("tdt_semaphore.shop.fired");

TEST(arguments_are_evaluated_once_for_a_tracer_and_the_recorder)
{
	semaphore = 1;
	fire();
	ck_assert_int_eq(evaluated, 1);
	start();
	fire();
	ck_assert_int_eq(evaluated, 2);
	semaphore = 0;
	fire();
	ck_assert_int_eq(evaluated, 3);
	ck_assert_uint_eq(recorded_count(TDT_RING_OTHERS, TDT_EVENT_USER, 0), 2);
}
#endif

/* What the payload has at `*at`, which is moved behind it. */
static void expect(const struct recorded *event, size_t *at, const void *bytes, size_t n)
{
	ck_assert_uint_ge(event->size, *at + n);
	ck_assert_mem_eq(event->payload + *at, bytes, n);
	*at += n;
}

static void expect_text(const struct recorded *event, size_t *at, const char *text)
{
	expect(event, at, text, strlen(text) + 1);
}

static void expect_number(const struct recorded *event, size_t *at, enum tdt_user_type type,
			  uint64_t value)
{
	char typed[9] = { (char)type };

	memcpy(typed + 1, &value, 8);
	expect(event, at, typed, sizeof typed);
}

static void expect_typed_text(const struct recorded *event, size_t *at, const char *text)
{
	expect(event, at, "\4", 1);
	expect_text(event, at, text);
}

CASE(what)

TEST(an_event_has_its_names_and_its_arguments_with_their_types)
{
	const char *text = "text", *none = NULL;
	struct recorded event;
	double half = 0.5;
	uint64_t bits;
	size_t at = 0;

	memcpy(&bits, &half, 8);
	start();
	TDT_PROBE(shop, all, -1, 2u, half, text, none, &half, (short)-3, "last");
	event = last_event();
	ck_assert_uint_eq(event.event.detail, 8);
	expect_text(&event, &at, "shop");
	expect_text(&event, &at, "all");
	expect_number(&event, &at, TDT_USER_INT, UINT64_MAX);
	expect_number(&event, &at, TDT_USER_UINT, 2);
	expect_number(&event, &at, TDT_USER_DOUBLE, bits);
	expect_typed_text(&event, &at, "text");
	expect_typed_text(&event, &at, "");
	expect_number(&event, &at, TDT_USER_UINT, (uintptr_t)&half);
	expect_number(&event, &at, TDT_USER_INT, (uint64_t)-3);
	expect_typed_text(&event, &at, "last");
	ck_assert_uint_eq(event.size, at);
}

TEST(an_event_without_arguments_has_its_names)
{
	struct recorded event;

	start();
	TDT_PROBE(shop, none);
	event = last_event();
	ck_assert_uint_eq(event.event.detail, 0);
	ck_assert_uint_eq(event.size, sizeof "shop" + sizeof "none");
}

TEST(a_long_text_is_cut_and_leaves_room_for_the_arguments_behind_it)
{
	static char longest[2000];
	struct recorded event;
	size_t at = 0;

	memset(longest, 'x', sizeof longest - 1);
	start();
	TDT_PROBE(shop, long, longest, 7, longest, 8u);
	event = last_event();
	ck_assert_uint_eq(event.event.detail, 4);
	ck_assert_uint_le(event.size, (TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT);
	expect_text(&event, &at, "shop");
	expect_text(&event, &at, "long");
	expect(&event, &at, "\4xxxx", 5);
	at += strlen(event.payload + at) + 1;
	expect_number(&event, &at, TDT_USER_INT, 7);
	expect_typed_text(&event, &at, "xxxxxxx"); /* the room of a number */
	expect_number(&event, &at, TDT_USER_UINT, 8);
	ck_assert_uint_eq(event.size, at);
}

TEST(long_names_and_too_many_arguments_are_cut)
{
	static const uint8_t types[12] = { TDT_USER_TEXT };
	static char longest[2000];
	uint64_t values[12] = { (uintptr_t)longest };
	struct recorded event;

	memset(longest, 'x', sizeof longest - 1);
	start();
	tdt_record_event(longest, longest, 5, 12, types, values);
	event = last_event();
	ck_assert_uint_eq(event.event.task, 5);
	ck_assert_uint_eq(event.event.detail, 11);
	ck_assert_uint_eq(strlen(event.payload), 127);
	ck_assert_uint_eq(event.size, (TDT_EVENT_SLOTS_MAX - 1) * TDT_EVENT_TEXT);
	tdt_record_event(NULL, NULL, 0, 0, NULL, NULL);
	ck_assert_uint_eq(last_event().size, 2);
}

/* --- Where ---------------------------------------------------------------------------------- */

static tdt_poll_t probe_poll(void *state, struct tdt_context *cx)
{
	fire();
	return TDT_READY;
}

TEST(an_event_belongs_to_the_task_that_is_polled)
{
	struct tdt_task_attr attr = { .size = sizeof attr, .id = 4711 };
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	TRACED(task, tdt_traced_with((struct tdt_future){ NULL, probe_poll, drop_nothing }, &attr));

	test_waker_init(&waker);
	start();
	fire();
	ck_assert_uint_eq(last_event().event.task, 0);
	ck_assert_int_eq(tdt_future_poll(&task.future, &cx), TDT_READY);
	ck_assert_uint_eq(recorded_count(TDT_RING_POLLS, TDT_EVENT_USER, 4711), 1);
}
