/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Whether this code is built with AddressSanitizer or ThreadSanitizer, by GCC or Clang: 1 or 0. */

#if defined(__has_feature)
#define TDT__HAS_FEATURE(feature) __has_feature(feature)
#else
#define TDT__HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TDT__HAS_FEATURE(address_sanitizer)
#define TDT__ASAN 1
#else
#define TDT__ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || TDT__HAS_FEATURE(thread_sanitizer)
#define TDT__TSAN 1
#else
#define TDT__TSAN 0
#endif
