/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TRACE_H
#define TDT_SRC_TRACE_H

/* An answer: what is said of the task, and the tree. */

#include "tree.h"

struct tdt_trace {
	struct tdt_trace_info info; /* its strings are in the tree's storage */
	struct tdt__tree tree;
};

#endif
