// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The mark that programs have compiled into each await of <tdt/async.h>.  Nothing uses it yet: it
 * is there so that programs that are compiled today can report later that an await became ready.
 */

#include <tdt/async.h>

tdt__await_fn *volatile tdt__await_ready;
