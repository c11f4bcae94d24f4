/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_ASYNC_H
#define TDT_ASYNC_H
#include <tdt/future.h>
#endif
