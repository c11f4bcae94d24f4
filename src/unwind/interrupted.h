/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The registers of an interrupted thread.  tdt__interrupted() has those of its frame; there `pc` is
 * where the thread was interrupted.  tdt__interrupted_all() has all general registers, by their
 * DWARF numbers.
 */

#include <ucontext.h>

#include "unwind/registers.h"

#if defined(__x86_64__)
#include "unwind/x86_64/interrupted.h"
#elif defined(__aarch64__)
#include "unwind/aarch64/interrupted.h"
#endif
