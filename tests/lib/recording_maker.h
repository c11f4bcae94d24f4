/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_RECORDING_MAKER_H
#define TESTS_RECORDING_MAKER_H

/*
 * Makes recordings (tdt/layout/recording.h) of given events, for tests of what reads them.
 *
 *	struct maker *maker = maker_new();
 *	unsigned ring = maker_ring(maker, TDT_RING_POLLS, 1024, 4242);
 *
 *	maker_wake(maker, ring, 1000, 7, 0);
 *	maker_poll(maker, ring, 2000, 500, 7, TDT_PENDING);
 *	block = maker_block(maker, &size);
 *	...
 *	free(block);
 *	maker_free(maker);
 *
 * The clock is TDT_RECORDING_MONOTONIC, so that ticks are nanoseconds, unless the test changes
 * maker_header().  A call for which there is no memory ends the test program.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/recording.h>
#include <tdt/tree.h>

struct maker;

struct maker *maker_new(void);
void maker_free(struct maker *maker);

/* The header.  The fields that describe the layout are filled in by maker_block(). */
struct tdt_recording *maker_header(struct maker *maker);

/* Add a ring with `room` slots, a power of two, for the thread.  Returns its number, from 0. */
unsigned maker_ring(struct maker *maker, uint32_t kind, uint32_t room, uint32_t thread);
/* The entry of a ring.  `head` and `slots` are the maker's. */
struct tdt_recording_ring *maker_entry(struct maker *maker, unsigned ring);

/* Write an event with its payload; the newest slots overwrite the oldest, as in a real ring. */
void maker_add(struct maker *maker, unsigned ring, struct tdt_event event, const void *payload,
	       size_t n);

/* The same without a payload; the rest says what the event has. */
#define maker_event(maker, ring, ...)                                                              \
	maker_add(maker, ring, (struct tdt_event){ __VA_ARGS__ }, NULL, 0)

/* Events by kind.  Times are in ticks.  A poll is added when it ends. */
void maker_poll(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration,
		uint64_t task, uint8_t result);
/* `woken_by` and `cpu`, too. */
void maker_poll_on(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration,
		   uint64_t task, uint8_t result, uint64_t woken_by, uint16_t cpu);
void maker_wake(struct maker *maker, unsigned ring, uint64_t time, uint64_t task, uint64_t by);
void maker_park(struct maker *maker, unsigned ring, uint64_t begin, uint64_t duration);
/* What a leaf waits for, in the poll of `task` that is added next. `name` may be NULL. */
void maker_wait(struct maker *maker, unsigned ring, uint64_t task, enum tdt_wait_kind kind,
		uint64_t object, uint64_t owner, const char *name);
/* A stack of leaf `leaf` of `leaves`, in the poll of `task` that is added next. */
void maker_leaf(struct maker *maker, unsigned ring, uint64_t task, uint32_t stack, uint16_t leaf,
		uint64_t leaves);
/* SPAWN, END or TASK. `outcome` is for END. */
void maker_identity(struct maker *maker, unsigned ring, uint8_t kind, uint64_t time, uint64_t task,
		    uint8_t outcome, uint64_t parent, const char *name, const char *file,
		    uint32_t line);
void maker_thread(struct maker *maker, unsigned ring, uint64_t time, uint32_t thread,
		  uint32_t previous, int worker, const char *name);
void maker_clock(struct maker *maker, unsigned ring, uint64_t ticks, uint64_t monotonic,
		 uint64_t boot, uint64_t real);
void maker_module(struct maker *maker, unsigned ring, uint64_t time, uint64_t start, uint64_t end,
		  uint64_t bias, const char *build_id, uint8_t build_id_size, const char *path);
void maker_delay(struct maker *maker, unsigned ring, uint64_t begin, uint64_t task, uint64_t ns);
/* `arguments` is what follows provider and name in the payload: `n_arguments` in `n` bytes. */
void maker_user(struct maker *maker, unsigned ring, uint64_t time, uint64_t task,
		const char *provider, const char *name, uint8_t n_arguments, const void *arguments,
		size_t n);

/* The table of stacks.  All but `lost` is the maker's; valid until the next call. */
struct tdt_recording_stacks *maker_stacks(struct maker *maker);

/* Add a stack to the table of stacks.  Returns its number. */
uint32_t maker_stack(struct maker *maker, const uint64_t *pcs, uint16_t n, uint8_t cut);

/* The block.  The caller frees it. */
void *maker_block(struct maker *maker, size_t *size);

#endif
