/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The names of operations. */

#include <stdbool.h>

#include "strings.h"

/*
 * Add the name of the operation that the function of this name belongs to, and a NUL:
 *
 *	<tokio::time::sleep::Sleep as core::future::future::Future>::poll
 *	                tokio::time::Sleep
 *	tokio::sync::mpsc::bounded::Receiver<T>::recv::{async}
 *	                tokio::sync::mpsc::Receiver::recv
 *	tokio::fs::read::read::{async}
 *	                tokio::fs::read
 *	boost::asio::async_read<boost::asio::ip::tcp::socket>
 *	                boost::asio::async_read
 *	read            read
 *
 * Left out are template arguments; the trait, and its `poll`; closures; modules whose name the type
 * repeats, and those between the second module of the crate and a type, which users hardly write;
 * repetitions; and functions that poll what their type says.  A name that cannot be read is added
 * as it is.
 */
void tdt__operation_name(struct tdt__string *string, const char *function);

/* Which type's part of a trait a function is, if it polls that: `<T as AsyncRead>::poll_read`. */
enum tdt__polled {
	TDT__POLLED_NOTHING,
	TDT__POLLED_ADAPTER, /* of a type that is made of others: BufReader<R> */
	TDT__POLLED_OBJECT   /* of another type: TcpStream */
};

enum tdt__polled tdt__polled(const char *function);

/* Add the name of that type, as the name of an operation has it, and a NUL. */
void tdt__polled_name(struct tdt__string *string, const char *function);

/* Whether the function polls a future, or is the body of an async function. */
bool tdt__polls_future(const char *function);

/* Whether the function polls a future that is made of others: `<MaybeDone<F> as Future>::poll`. */
bool tdt__wraps_future(const char *function);

/* Whether the function is of a type that keeps wakers, such as AtomicWaker.  Leaves use these. */
bool tdt__keeps_wakers(const char *function);

/*
 * Whether the function polls futures that have wakers of their own.  They clone these, not the
 * waker that tdt substitutes, so their stacks are in no tree.
 *
 * Nothing but the name tells such a type from one that has no futures, such as a channel: both
 * clone the waker of the task once.  So this is a list.  A type that is missing in it looks like a
 * leaf.
 */
bool tdt__hides_futures(const char *function);
