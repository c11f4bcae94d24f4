// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Address spaces with accessors of ours. */

#include <config.h>

#include "unwinder.h"

#include <stddef.h>

unw_addr_space_t tdt__unwinder_new(tdt__unwinder_memory_fn *memory, tdt__unwinder_register_fn *registers,
				   unw_caching_policy_t caching)
{
	unw_accessors_t accessors = { 0 };
	unw_addr_space_t space = unw_create_addr_space(&accessors, 0);

	if (space == NULL)
		return NULL;
	/* This makes libunwind initialize itself, before which its local accessors aren't there. */
	unw_set_caching_policy(space, caching);
	accessors = *unw_get_accessors(unw_local_addr_space);
	accessors.access_mem = memory;
	accessors.access_reg = registers;
	*unw_get_accessors(space) = accessors;
	return space;
}

int tdt__unwinder_knows(unw_cursor_t *cursor)
{
	unw_proc_info_t info;

	/* For a PC it knows nothing of it gives success too, and a function of one byte. */
	return unw_get_proc_info(cursor, &info) == 0 && info.end_ip - info.start_ip > 1;
}
