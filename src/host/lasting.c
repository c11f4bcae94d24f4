// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The beginning of the loader's list.  The list starts with the modules that the process began
 * with, in the order in which the loader found them; one of these is the loader itself.  The
 * modules that dlopen(3) loads come after all of these.  So every module before the loader lasts.
 * Records behind the loader's may be freed while the list is read, so the kernel copies each record
 * (pages.h).
 */

#include "host/lasting.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "host/pages.h"

/* If the loader is not among the first so many modules, no module counts as lasting. */
#define MODULES_MAX 512

static const struct link_map *lasting[MODULES_MAX];
static size_t n;
static bool lasting_known;

/*
 * Fill in `lasting` and return the number of its modules.  If the loader is not in the list (it may
 * have been started as a program), nobody knows where the lasting modules end, and the result is 0.
 */
static size_t list_lasting(uintptr_t loader)
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
	if (!lasting_known)
		n = list_lasting(getauxval(AT_BASE));
	lasting_known = true;
	for (size_t i = 0; i < n; i++)
		if (lasting[i] == map)
			return true;
	return false;
}
