// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The beginning of the loader's list.  The list has what the process began with, in the order that it was found in, and
 * the loader itself among it; what dlopen(3) loads comes behind all of that.  So whatever comes before the loader lasts.
 * Records behind it may be freed while the list is read: the kernel copies all of them (pages.h).
 */

#include <config.h>

#include "host/lasting.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "host/pages.h"

#define MODULES_MAX 512 /* others are not counted among those that last */

static const struct link_map *lasting[MODULES_MAX];
static size_t n;
static bool known;

/* Without the loader in the list (it may have been started as a program) it is not known where what lasts ends. */
static size_t list(uintptr_t loader)
{
	const struct link_map *map = _r_debug.r_map;
	struct link_map copy;

	for (size_t i = 0; loader != 0 && map != NULL && i < MODULES_MAX; map = copy.l_next) {
		lasting[i++] = map;
		if (tdt__pages_copy(&copy, (uintptr_t)map, sizeof copy) != sizeof copy)
			break;
		if (copy.l_addr == loader)
			return i;
	}
	return 0;
}

bool tdt__is_lasting(const struct link_map *map)
{
	if (!known)
		n = list(getauxval(AT_BASE));
	known = true;
	for (size_t i = 0; i < n; i++)
		if (lasting[i] == map)
			return true;
	return false;
}
