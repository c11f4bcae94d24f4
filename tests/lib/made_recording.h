/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_MADE_RECORDING_H
#define TESTS_MADE_RECORDING_H

/* A recording that the test makes, and then reads. */

#include "lib/recording_maker.h"
#include "lib/test.h"
#include "recording/read.h"

static struct maker *maker;
static void *block;
static size_t size;
static struct tdt__recording *recording;

static inline void close_block(void)
{
	tdt__recording_close(recording);
	free(block);
	recording = NULL;
	block = NULL;
}

/* What the maker has made so far. */
static inline void open_block(void)
{
	close_block();
	block = maker_block(maker, &size);
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), 0);
}

/* Free what there is. */
static inline void end(void)
{
	close_block();
	if (maker != NULL)
		maker_free(maker);
	maker = NULL;
}

#endif
