// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Address spaces with accessors of ours. */

#include <config.h>

#include "unwinder.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "fork.h"

/* The kernel maps nothing below (vm.mmap_min_addr). */
#define LOWEST ((uintptr_t)1 << 16)

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

static int read_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *data)
{
	(void)space;
	(void)data;
	if (write || address < LOWEST)
		return -UNW_EINVAL;
	memcpy(value, (const void *)address, sizeof *value); /* unwind information: the stack is not looked at */
	return 0;
}

static int read_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *data)
{
	const uintptr_t *pc = data;

	(void)space;
	if (write)
		return -UNW_EREADONLYREG;
	*value = number == UNW_REG_IP ? *pc : 0;
	return 0;
}

uintptr_t tdt__unwinder_function(uintptr_t pc, uintptr_t *end)
{
	static unw_addr_space_t space; /* under tdt__unwind_lock; NULL: not made */
	uintptr_t start = 0;
	unw_cursor_t cursor;
	unw_proc_info_t info;

	pthread_mutex_lock(&tdt__unwind_lock);
	if (space == NULL)
		space = tdt__unwinder_new(read_memory, read_register, UNW_CACHE_NONE);
	if (space != NULL && unw_init_remote(&cursor, space, &pc) >= 0 && tdt__unwinder_knows(&cursor) &&
	    unw_get_proc_info(&cursor, &info) == 0) {
		start = info.start_ip;
		*end = info.end_ip;
	}
	pthread_mutex_unlock(&tdt__unwind_lock);
	return start;
}
