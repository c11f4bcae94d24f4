/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdint.h>

/*
 * Returns the whole path of the file that this process has mapped at `address`, as /proc/self/maps
 * gives it.  The caller frees the path.  NULL: no file is mapped there, or the path is not known.
 */
char *tdt__maps_path(uintptr_t address);
