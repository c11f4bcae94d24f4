// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What throws, and what catches. */

#include "lib/unwinding.h"

#include <stdexcept>

tdt_poll_t test_throwing_poll(void *, tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	throw std::runtime_error("out of a poll");
}

const tdt_waker *test_throwing_clone(const tdt_waker *)
{
	throw std::runtime_error("out of a clone");
}

void test_throwing_drop(const tdt_waker *)
{
	throw std::runtime_error("out of a drop");
}

void test_throwing_wake(const tdt_waker *)
{
	throw std::runtime_error("out of a wake");
}

int test_requester_throws(tdt_handle *handle)
{
	try {
		tdt_trace_free(tdt_backtrace(handle));
	} catch (const std::runtime_error &) {
		return 1;
	}
	return 0;
}

int test_throws(const tdt_future *future, tdt_context *cx)
{
	try {
		tdt_future_poll(future, cx);
	} catch (const std::runtime_error &) {
		return 1;
	}
	return 0;
}
