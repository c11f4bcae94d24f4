/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_MAPS_H
#define TDT_SRC_SYMBOLIZE_MAPS_H

#include <stdint.h>

/*
 * The whole path, to be freed, of the file that this process has mapped at `address`, as /proc/self/maps has it; NULL:
 * none, or it can't be known.
 */
char *tdt__maps_path(uintptr_t address);

#endif
