// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers facts/proof.  What a task of a ring proves that has answered with all its waits. */

#include <tdt/integrate/hooks.h>

#include "facts/proof.h"
#include "lib/test.h"

/* Two locks of tasks 7 and 8, and a task that waits for both. */
static struct tdt_lock locks[2];
static struct tdt_wait waits[2];
static const struct tdt_wait *const wait_list[2] = { &waits[0], &waits[1] };
static struct tdt_task_info info;
static struct tdt_task_record record;

static bool read_here(void *arg, uint64_t address, void *to, size_t size)
{
	memcpy(to, (const void *)(uintptr_t)address, size);
	return true;
}

static void begin(void)
{
	for (unsigned i = 0; i < 2; i++) {
		memcpy(locks[i].magic, TDT_LOCK_MAGIC, sizeof locks[i].magic);
		tdt_lock_take(&locks[i], 7 + i);
		waits[i] = (struct tdt_wait){ .kind = TDT_WAIT_MUTEX,
					      .object = (uintptr_t)&locks[i],
					      .owner = 7 + i };
	}
	info = (struct tdt_task_info){ .leaves = 2, .n_waits = 2, .waits = wait_list };
	record = (struct tdt_task_record){ .state = TDT_TASK_RECORD_IDLE,
					   .polls = 3,
					   .wait_polls = 3,
					   .wait_count = 2,
					   .wait_kind = TDT_WAIT_MUTEX,
					   .wait_object = waits[0].object,
					   .wait_owner = waits[0].owner };
}

static enum tdt__proof proof_of(uint64_t answered_at)
{
	const struct tdt__lock_places places = { .read = read_here };
	const struct tdt__witness witness = {
		.info = &info, .now = &record, .stood_still = true, .answered_at = answered_at
	};

	return tdt__prove(&places, &witness);
}

CASE(several, .setup = begin)

TEST(an_answer_proves_all_its_waits_if_the_locks_are_held_still)
{
	ck_assert_int_eq(proof_of(5), TDT__BY_POLL);
	tdt_lock_take(&locks[1], 9);
	ck_assert_int_eq(proof_of(5), TDT__UNSURE);
}

TEST(an_answer_that_lacks_a_wait_proves_nothing)
{
	info.n_waits = 1;
	ck_assert_int_eq(proof_of(5), TDT__UNSURE);
}

TEST(without_an_answer_several_waits_prove_nothing)
{
	record.woken = 1;
	info.n_waits = 1;
	ck_assert_int_eq(proof_of(0), TDT__UNSURE);
}

/* As with tokio: bt --check then requests the tasks of the ring. */
TEST(where_wake_ups_are_not_reported_a_wait_is_not_proven_before_an_answer, .to = 2)
{
	record.woken = (uint64_t)_i;
	record.wait_count = info.n_waits = 1;
	info.leaves = 0;
	ck_assert_int_eq(proof_of(0), TDT__BY_RECORD);
	info.leaves = 1; /* of a watched tree */
	ck_assert_int_eq(proof_of(0), _i == 0 ? TDT__BY_RECORD : TDT__BY_TREE);
	info.leaves = 2;
	ck_assert_int_eq(proof_of(0), TDT__UNSURE);
	ck_assert_int_eq(proof_of(5), TDT__BY_POLL);
}
