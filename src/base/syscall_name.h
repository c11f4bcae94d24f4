/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_SYSCALL_NAME_H
#define TDT_SRC_HOST_SYSCALL_NAME_H

#include <stdint.h>

/*
 * The name of a system call, which lives for ever.  NULL: no name was known when the library was
 * built.
 */
const char *tdt__syscall_name(int32_t number);

#endif
