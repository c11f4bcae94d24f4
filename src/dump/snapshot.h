/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DUMP_SNAPSHOT_H
#define TDT_SRC_DUMP_SNAPSHOT_H

#include <stdbool.h>

#include <tdt/dump.h>

/*
 * tdt_snapshot_take(), which also finds busy loops if `finds_busy` (facts/busy.h): that may take a
 * tenth of a second more.
 */
const struct tdt_snapshot *tdt__snapshot_take(const struct tdt_dump_options *options,
					      bool finds_busy);

#endif
