/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Busy loops: tasks that are polled again and again because they wake themselves.
 *
 * Records are looked at over a tenth of a second, several times.  A task is in a busy loop if at
 * each look it was itself that woke it last, and if it was polled at least 1,000 times a second,
 * not counting polls that were made for requests.  Of a runtime that reports no wake-ups it is only
 * known how often a task is polled; so that tasks with much to do are not named, they must be
 * polled 100,000 times a second.
 *
 * Two tasks that wake each other without progress look like two that pass work to each other, and
 * are not named.
 */

#include "tree/futurelocks.h"

/*
 * Set `busy_polls` and `busy_ns` of the members in busy loops.  If some member may be in one, this
 * takes a tenth of a second; otherwise it only looks at the members.
 */
void tdt__busy_find(const struct tdt__lock_places *places);
