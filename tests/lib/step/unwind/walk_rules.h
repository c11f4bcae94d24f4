/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What --with-walk=step compiles in the place of src/unwind/walk_rules.h: the library's walk is the
 * tests' reference.
 */

#include "lib/walk_step.h"
