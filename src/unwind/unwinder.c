// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making address spaces for libunwind, with accessors of ours. */

#include "unwind/unwinder.h"

#include <stddef.h>

#include "host/pages.h"
#include "unwind/cfi.h"

pthread_mutex_t tdt__unwind_lock = PTHREAD_MUTEX_INITIALIZER;

/* libunwind exports this function, but declares it in a private header. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
					      unw_dyn_info_t *table, unw_proc_info_t *info,
					      int need_unwind_info, void *data);

int tdt__unwinder_word(uintptr_t address, unw_word_t *value)
{
	return tdt__pages_copy(value, address, sizeof *value) == sizeof *value ? 0 : -UNW_EINVAL;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *data)
{
	unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	struct dl_find_object module;
	uint32_t entries;

	if (!tdt__cfi_table(ip, &module, &entries))
		return -UNW_ENOINFO;
	table.start_ip = (unw_word_t)module.dlfo_map_start;
	table.end_ip = (unw_word_t)module.dlfo_map_end;
	table.u.rti.segbase = (unw_word_t)module.dlfo_eh_frame;
	table.u.rti.table_data = table.u.rti.segbase + TDT__CFI_HEAD;
	table.u.rti.table_len = (unw_word_t)entries * 8 / sizeof(unw_word_t);
	return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_unwind_info, data);
}

unw_addr_space_t tdt__unwinder_new(tdt__unwinder_memory_fn *memory,
				   tdt__unwinder_register_fn *registers,
				   unw_caching_policy_t caching)
{
	unw_accessors_t accessors = { 0 };
	unw_addr_space_t space = unw_create_addr_space(&accessors, 0);

	if (space == NULL)
		return NULL;
	/* This call makes libunwind initialize itself, and with that its local accessors. */
	unw_set_caching_policy(space, caching);
	accessors = *unw_get_accessors(unw_local_addr_space);
	accessors.find_proc_info = find_proc_info;
	accessors.access_mem = memory;
	accessors.access_reg = registers;
	*unw_get_accessors(space) = accessors;
	return space;
}

int tdt__unwinder_knows(unw_cursor_t *cursor)
{
	unw_proc_info_t info;

	/* For an unknown PC libunwind returns success too, with a function of one byte. */
	return unw_get_proc_info(cursor, &info) == 0 && info.end_ip - info.start_ip > 1;
}

/*
 * The PC may lie in a module that no table has (modules.h), and that may be unloaded unnoticed.  So
 * pages that were cached before are not used, and none is left in the cache.
 */
uintptr_t tdt__unwinder_function(uintptr_t pc, uintptr_t *end)
{
	uintptr_t start;

	pthread_mutex_lock(&tdt__unwind_lock);
	tdt__pages_forget();
	start = tdt__cfi_function(pc, end);
	tdt__pages_forget();
	pthread_mutex_unlock(&tdt__unwind_lock);
	return start;
}
