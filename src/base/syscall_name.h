/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdint.h>

/*
 * The name of a system call, which lives for ever.  NULL: no name was known when the library was
 * built.
 */
const char *tdt__syscall_name(int32_t number);
