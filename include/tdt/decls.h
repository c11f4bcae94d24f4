/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_DECLS_H
#define TDT_DECLS_H /* stable from 1.0: docs/compatibility.md */

/* What the other headers put around their declarations, which are C, and visible. */
#ifdef __cplusplus
#define TDT_DECLS_BEGIN _Pragma("GCC visibility push(default)") extern "C" {
#define TDT_DECLS_END } _Pragma("GCC visibility pop")
#else
#define TDT_DECLS_BEGIN _Pragma("GCC visibility push(default)")
#define TDT_DECLS_END _Pragma("GCC visibility pop")
#endif

#endif
