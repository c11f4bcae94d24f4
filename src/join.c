// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include <tdt/join.h>

struct tdt_future tdt_join(struct tdt_handle *handle, int *outcome)
{
	(void)handle;
	(void)outcome;
	return TDT_FUTURE_NONE;
}
