// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The public calls of <tdt/combine.h>.  They are not in combine.c, where the polls have their
 * names.
 */

#include <tdt/combine.h>

#include "future/combine.h"

struct tdt_future tdt_join_all(const struct tdt_future *futures, size_t n)
{
	return tdt__join_all_new(futures, n);
}

struct tdt_future tdt_select(const struct tdt_future *futures, size_t n, size_t *winner)
{
	return tdt__select_new(futures, n, winner);
}
