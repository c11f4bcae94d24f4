/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_FUTURE_FIBER_H
#define TDT_SRC_FUTURE_FIBER_H

/*
 * What sanitizers and valgrind have to know of stacks, and of switches between them: otherwise they
 * take a switch for a corruption of the stack.  Without these tools all functions here do nothing
 * (for valgrind: they take a few instructions per stack).
 */

#include <config.h>

#include <stddef.h>

#if defined(__has_feature)
#define TDT__HAS_FEATURE(feature) __has_feature(feature)
#else
#define TDT__HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TDT__HAS_FEATURE(address_sanitizer)
#define TDT__ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define TDT__ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || TDT__HAS_FEATURE(thread_sanitizer)
#define TDT__TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define TDT__TSAN 0
#endif
#if HAVE_VALGRIND_VALGRIND_H
#include <valgrind/valgrind.h>
#endif

/* A stack, as these tools know it. */
struct tdt__fiber {
#if TDT__ASAN
	void *fake;        /* the fake stack of the function that has left it */
	const void *low;
	size_t size;
#endif
#if TDT__TSAN
	void *tsan;
#endif
#if HAVE_VALGRIND_VALGRIND_H
	unsigned valgrind;
#endif
	char unused;
};

/* Register a stack of ours; tdt__fiber_fini() unregisters it. */
static inline void tdt__fiber_init(struct tdt__fiber *fiber, void *low, size_t size)
{
	(void)fiber;
	(void)low;
	(void)size;
#if TDT__ASAN
	fiber->low = low;
	fiber->size = size;
#endif
#if TDT__TSAN
	fiber->tsan = __tsan_create_fiber(0);
#endif
#if HAVE_VALGRIND_VALGRIND_H
	fiber->valgrind = VALGRIND_STACK_REGISTER(low, (char *)low + size);
#endif
}

static inline void tdt__fiber_fini(struct tdt__fiber *fiber)
{
	(void)fiber;
#if TDT__ASAN
	ASAN_UNPOISON_MEMORY_REGION(fiber->low, fiber->size);
#endif
#if TDT__TSAN
	__tsan_destroy_fiber(fiber->tsan);
#endif
#if HAVE_VALGRIND_VALGRIND_H
	VALGRIND_STACK_DEREGISTER(fiber->valgrind);
#endif
}

/* Call this on `from` before it switches to `to`, a stack of ours. */
static inline void tdt__fiber_enter(struct tdt__fiber *from, struct tdt__fiber *to)
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
static inline void tdt__fiber_entered(struct tdt__fiber *from, struct tdt__fiber *to)
{
	(void)from;
	(void)to;
#if TDT__ASAN
	__sanitizer_finish_switch_fiber(to->fake, &from->low, &from->size);
#endif
}

/* Call this on `to` before it switches back.  `ended`: it will never be entered again. */
static inline void tdt__fiber_leave(struct tdt__fiber *from, struct tdt__fiber *to, int ended)
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
static inline void tdt__fiber_left(struct tdt__fiber *from)
{
	(void)from;
#if TDT__ASAN
	__sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}

#endif
