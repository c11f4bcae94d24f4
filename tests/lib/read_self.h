/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_READ_SELF_H
#define TESTS_READ_SELF_H

/* This process as the target of a reader, for suites that compare with what the library says. */

#include "lib/test.h"
#include "reader/find.h"
#include "reader/images.h"
#include "reader/target.h"

static struct tdt__target target;
static struct tdt__images images;
static struct tdt__found found[TDT__REGISTRIES_MAX];
static struct tdt__trouble trouble;

/* Returns how many registries there are. */
static inline size_t open_self(void)
{
	const struct tdt__places places = { 0 };
	size_t n;

	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
	ck_assert_int_eq(tdt__images_init(&images, &target, &places), 0);
	n = tdt__find(&target, found);
	ck_assert_uint_ge(n, 1);
	return n;
}

static inline void close_self(void)
{
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

#endif
