// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The public call of <tdt/join.h>.  It is not in join.c, where the poll has its name. */

#include <tdt/join.h>

#include "task/join.h"

struct tdt_future tdt_join(struct tdt_handle *handle, int *outcome)
{
	return tdt__join_new(handle, outcome);
}
