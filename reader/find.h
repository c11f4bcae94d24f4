/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Finding the registries of a target by their magic (<tdt/layout/registry.h>).  There is one for
 * each copy of the library in the target.
 */

#include <tdt/layout/registry.h>

#include "reader/target.h"

#define TDT__REGISTRIES_MAX 16

struct tdt__found {
	uint64_t address;
	struct tdt_registry registry;
	bool known; /* the layout is ours; otherwise only `version` and `library` have a meaning */
};

/*
 * Find the registries, those with tasks first, and those with an unknown layout last.  Returns how
 * many there are, TDT__REGISTRIES_MAX at most.
 */
size_t tdt__find(const struct tdt__target *target, struct tdt__found found[TDT__REGISTRIES_MAX]);
