// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Small futures and wakers for tests. */

#include <config.h>

#include "lib/futures.h"

#include <check.h>
#include <string.h>

char test_events[1024];

void test_events_clear(void)
{
	test_events[0] = '\0';
}

static void note(char name, char event)
{
	size_t length = strlen(test_events);

	ck_assert_uint_lt(length, sizeof(test_events) - 3);
	memcpy(&test_events[length], (char[]){ name, event, ' ', '\0' }, 4);
}

static struct test_waker *of(const struct tdt_waker *waker)
{
	return (struct test_waker *)(uintptr_t)waker;
}

static const struct tdt_waker *clone(const struct tdt_waker *waker)
{
	if (of(waker)->in_clone != NULL)
		of(waker)->in_clone();
	if (of(waker)->fail_clone)
		return NULL;
	of(waker)->clones++;
	of(waker)->alive++;
	return waker;
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	of(waker)->wakes++;
	if (of(waker)->in_wake != NULL)
		of(waker)->in_wake();
}

static void drop(const struct tdt_waker *waker)
{
	ck_assert_int_gt(of(waker)->alive--, 0);
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop(waker);
}

void test_waker_init(struct test_waker *waker)
{
	static const struct tdt_waker_vtable vtable = { clone, wake, wake_by_ref, drop };

	*waker = (struct test_waker){ .waker = { &vtable } };
}

static tdt_poll_t stay_pending(struct test_future *future, struct tdt_context *cx)
{
	if (future->yield) {
		tdt_waker_wake_by_ref(cx->waker);
	} else if (!tdt_waker_will_wake(future->waker, cx->waker)) {
		tdt_waker_drop(future->waker);
		future->waker = tdt_waker_clone(cx->waker);
	}
	return TDT_PENDING;
}

static tdt_poll_t test_future_poll(void *state, struct tdt_context *cx)
{
	struct test_future *future = state;
	tdt_poll_t result = future->result;

	ck_assert_msg(future->drops == 0, "%c is polled after its drop", future->name);
	ck_assert_msg(!future->ended, "%c is polled after its end", future->name);
	ck_assert_msg(!future->polled, "%c is polled during its poll", future->name);
	future->polled = true;
	future->polls++;
	if (future->pending > 0) {
		future->pending--;
		result = stay_pending(future, cx);
	}
	future->ended = result != TDT_PENDING;
	note(future->name, ".!#"[result == TDT_PENDING ? 0 : result == TDT_READY ? 1 : 2]);
	future->polled = false;
	return result;
}

static void test_future_drop(void *state)
{
	struct test_future *future = state;

	ck_assert_msg(future->drops == 0, "%c is dropped twice", future->name);
	ck_assert_msg(!future->polled, "%c is dropped during its poll", future->name);
	future->drops++;
	tdt_waker_drop(future->waker);
	future->waker = NULL;
	note(future->name, '~');
}

struct tdt_future test_future(struct test_future *future)
{
	return (struct tdt_future){ future, test_future_poll, test_future_drop };
}

void test_future_wake(struct test_future *future)
{
	const struct tdt_waker *waker = future->waker;

	future->waker = NULL;
	tdt_waker_wake(waker);
}
