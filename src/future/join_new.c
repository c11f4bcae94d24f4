// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The public name of what join.c does, which has given it to its poll. */

#include <config.h>

#include <tdt/join.h>

#include "task/join.h"

struct tdt_future tdt_join(struct tdt_handle *handle, int *outcome)
{
	return tdt__join_new(handle, outcome);
}
