// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A small cache of pages: each page can be in one slot only. */

#include "host/pages.h"

#include <string.h>

#include "host/peek.h"

/*
 * The size of the kernel's pages, or a part of it: so many aligned bytes can be read whole, or not
 * at all.
 */
#define CACHED_PAGE ((uintptr_t)4096)
#define CACHE_BITS 5

/* The kernel maps nothing below this address (vm.mmap_min_addr). */
#define LOWEST ((uintptr_t)1 << 16)

static struct {
	uintptr_t start; /* 0: the slot is empty */
	unsigned char bytes[CACHED_PAGE];
} slots[1 << CACHE_BITS];

/* A copy of the page that begins at `start`; NULL: the page can't be read. */
static const unsigned char *page_at(uintptr_t start)
{
	size_t slot = start / CACHED_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CACHE_BITS);

	if (slots[slot].start != start)
		slots[slot].start =
		    tdt__peek(slots[slot].bytes, start, CACHED_PAGE) == CACHED_PAGE ? start : 0;
	return slots[slot].start != 0 ? slots[slot].bytes : NULL;
}

size_t tdt__pages_copy(void *to, uintptr_t address, size_t size)
{
	size_t done = 0;

	if (address < LOWEST || address > UINTPTR_MAX - size)
		return 0;
	while (done < size) {
		uintptr_t in = (address + done) % CACHED_PAGE;
		size_t part = size - done < CACHED_PAGE - in ? size - done : CACHED_PAGE - in;
		const unsigned char *page = page_at(address + done - in);

		if (page == NULL)
			break;
		memcpy((unsigned char *)to + done, page + in, part);
		done += part;
	}
	return done;
}

void tdt__pages_forget(void)
{
	for (size_t slot = 0; slot < sizeof slots / sizeof slots[0]; slot++)
		slots[slot].start = 0;
}
