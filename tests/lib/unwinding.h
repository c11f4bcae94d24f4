/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_UNWINDING_H
#define TESTS_UNWINDING_H

/*
 * Futures in C++ that break the rule that nothing leaves a poll but its result, and a runtime that
 * lives on.
 */

#include <tdt/future.h>
#include <tdt/trace.h>
#include <tdt/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A poll that clones the waker and drops the clone, then throws. */
tdt_poll_t test_throwing_poll(void *state, struct tdt_context *cx);

/* A waker's clone, drop and wake that throw. */
const struct tdt_waker *test_throwing_clone(const struct tdt_waker *waker);
void test_throwing_drop(const struct tdt_waker *waker);
void test_throwing_wake(const struct tdt_waker *waker);

/* Ask for a backtrace, and return 1 if an exception came out, else 0. */
int test_requester_throws(struct tdt_handle *handle);

/* Poll, and return 1 if an exception came out, else 0. */
int test_throws(const struct tdt_future *future, struct tdt_context *cx);

#ifdef __cplusplus
}
#endif

#endif
