/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What sanitizers and valgrind have to know of stacks, and of switches between them: otherwise they
 * take a switch for a corruption of the stack.  Without these tools all functions here do nothing
 * (for valgrind: they take a few instructions per stack).
 */

#include <config.h>

#include <stddef.h>

#include "base/sanitized.h"

#if TDT__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if TDT__TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifdef HAVE_VALGRIND_VALGRIND_H
#include <valgrind/valgrind.h>
#endif

/* A stack, as these tools know it. */
struct tdt__san {
#if TDT__ASAN
	void *fake;        /* the fake stack of the function that has left it */
	const void *low;
	size_t size;
#endif
#if TDT__TSAN
	void *tsan;
#endif
#ifdef HAVE_VALGRIND_VALGRIND_H
	unsigned valgrind;
#endif
	char unused;
};

/* Register a stack of ours; tdt__san_fini() unregisters it. */
static inline void tdt__san_init(struct tdt__san *san, void *low, size_t size)
{
	(void)san;
	(void)low;
	(void)size;
#if TDT__ASAN
	san->low = low;
	san->size = size;
#endif
#if TDT__TSAN
	san->tsan = __tsan_create_fiber(0);
#endif
#ifdef HAVE_VALGRIND_VALGRIND_H
	san->valgrind = VALGRIND_STACK_REGISTER(low, (char *)low + size);
#endif
}

static inline void tdt__san_fini(struct tdt__san *san)
{
	(void)san;
#if TDT__ASAN
	ASAN_UNPOISON_MEMORY_REGION(san->low, san->size);
#endif
#if TDT__TSAN
	__tsan_destroy_fiber(san->tsan);
#endif
#ifdef HAVE_VALGRIND_VALGRIND_H
	VALGRIND_STACK_DEREGISTER(san->valgrind);
#endif
}

/* Call this on `from` before it switches to `to`, a stack of ours. */
static inline void tdt__san_enter(struct tdt__san *from, struct tdt__san *to)
{
	(void)from;
	(void)to;
#if TDT__ASAN
	__sanitizer_start_switch_fiber(&from->fake, to->low, to->size);
#endif
#if TDT__TSAN
	from->tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
}

/* Call this on `to`, first of all, whenever it was entered. */
static inline void tdt__san_entered(struct tdt__san *from, struct tdt__san *to)
{
	(void)from;
	(void)to;
#if TDT__ASAN
	__sanitizer_finish_switch_fiber(to->fake, &from->low, &from->size);
#endif
}

/* Call this on `to` before it switches back.  `ended`: it will never be entered again. */
static inline void tdt__san_leave(struct tdt__san *from, struct tdt__san *to, int ended)
{
	(void)from;
	(void)to;
	(void)ended;
#if TDT__ASAN
	__sanitizer_start_switch_fiber(ended ? NULL : &to->fake, from->low, from->size);
#endif
#if TDT__TSAN
	__tsan_switch_to_fiber(from->tsan, 0);
#endif
}

/* Call this on `from`, first of all, when it is entered again. */
static inline void tdt__san_left(struct tdt__san *from)
{
	(void)from;
#if TDT__ASAN
	__sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}
