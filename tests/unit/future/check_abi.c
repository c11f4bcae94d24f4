// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tdt/future.h.  The ABI of futures, field by field, as async-ffi relies on it on the other
 * side.
 */

#include "lib/test.h"

#define POINTER sizeof(void *)

/* A field stands at `offset`, is a pointer wide, and has the type. */
#define ck_assert_field(type, field, offset, ...)                                                  \
	do {                                                                                       \
		ck_assert_uint_eq(offsetof(type, field), (offset));                                \
		ck_assert_uint_eq(sizeof(((type *)NULL)->field), POINTER);                         \
		ck_assert(_Generic(((type *)NULL)->field, __VA_ARGS__ : 1, default : 0));          \
	} while (0)

CASE(layout)

TEST(a_poll_says_one_of_three_in_a_byte)
{
	ck_assert_uint_eq(sizeof(tdt_poll_t), 1);
	ck_assert(_Generic((tdt_poll_t)0, uint8_t : 1, default : 0));
	ck_assert_int_eq(TDT_READY, 0);
	ck_assert_int_eq(TDT_PENDING, 1);
	ck_assert_int_eq(TDT_PANICKED, 2);
}

TEST(a_waker_is_a_pointer_to_its_vtable)
{
	ck_assert_uint_eq(sizeof(struct tdt_waker), POINTER);
	ck_assert_uint_eq(_Alignof(struct tdt_waker), _Alignof(void *));
	ck_assert_field(struct tdt_waker, vtable, 0, const struct tdt_waker_vtable *);
}

TEST(a_vtable_is_clone_wake_wake_by_ref_drop)
{
	ck_assert_uint_eq(sizeof(struct tdt_waker_vtable), 4 * POINTER);
	ck_assert_field(struct tdt_waker_vtable, clone, 0,
			const struct tdt_waker *(*)(const struct tdt_waker *));
	ck_assert_field(struct tdt_waker_vtable, wake, POINTER, void (*)(const struct tdt_waker *));
	ck_assert_field(struct tdt_waker_vtable, wake_by_ref, 2 * POINTER,
			void (*)(const struct tdt_waker *));
	ck_assert_field(struct tdt_waker_vtable, drop, 3 * POINTER,
			void (*)(const struct tdt_waker *));
}

TEST(a_context_is_a_pointer_to_a_waker)
{
	ck_assert_uint_eq(sizeof(struct tdt_context), POINTER);
	ck_assert_field(struct tdt_context, waker, 0, const struct tdt_waker *);
}

TEST(a_future_is_state_poll_drop)
{
	ck_assert_uint_eq(sizeof(struct tdt_future), 3 * POINTER);
	ck_assert_uint_eq(_Alignof(struct tdt_future), _Alignof(void *));
	ck_assert_field(struct tdt_future, state, 0, void *);
	ck_assert_field(struct tdt_future, poll, POINTER,
			tdt_poll_t(*)(void *, struct tdt_context *));
	ck_assert_field(struct tdt_future, drop, 2 * POINTER, void (*)(void *));
}

#ifdef __x86_64__
TEST(on_x86_64_offsets_are_these)
{
	ck_assert_uint_eq(sizeof(struct tdt_future), 24);
	ck_assert_uint_eq(offsetof(struct tdt_future, state), 0);
	ck_assert_uint_eq(offsetof(struct tdt_future, poll), 8);
	ck_assert_uint_eq(offsetof(struct tdt_future, drop), 16);
	ck_assert_uint_eq(sizeof(struct tdt_waker_vtable), 32);
	ck_assert_uint_eq(offsetof(struct tdt_waker_vtable, clone), 0);
	ck_assert_uint_eq(offsetof(struct tdt_waker_vtable, wake), 8);
	ck_assert_uint_eq(offsetof(struct tdt_waker_vtable, wake_by_ref), 16);
	ck_assert_uint_eq(offsetof(struct tdt_waker_vtable, drop), 24);
	ck_assert_uint_eq(sizeof(struct tdt_waker), 8);
	ck_assert_uint_eq(sizeof(struct tdt_context), 8);
}
#endif
