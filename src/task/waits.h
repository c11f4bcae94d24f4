/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a leaf of a task waits for, in the task's record. */

#include <stdint.h>

#include <tdt/layout/registry.h>
#include <tdt/tree.h>

#include "facts/wait.h"
#include "registry/registry.h"

/*
 * `outcome` of the record of a task that has not ended: whether some leaf of the last poll reported
 * a wait whose end can be seen before the waker is called, or may be such a one.
 */
#define TDT__WAIT_UNSURE 1

static inline uint8_t tdt__wait_is_unsure(enum tdt_wait_kind kind)
{
	return kind == TDT_WAIT_TASK || kind == TDT_WAIT_MUTEX || kind == TDT_WAIT_CHANNEL
		       ? 0
		       : TDT__WAIT_UNSURE;
}

/*
 * Note a wait of a leaf.  The main wait since the task went on is kept, and the others are counted.
 */
static inline void tdt__note_wait(struct tdt_task_record *record, enum tdt_wait_kind kind,
				    const void *object, uint64_t owner, const char *name)
{
	uint32_t polls = (uint32_t)record->polls;
	uint8_t count = 1, unsure = tdt__wait_is_unsure(kind);

	if (record->wait_count != 0 && record->wait_polls == polls) {
		if (record->wait_count < UINT8_MAX)
			TDT__POKE(record->wait_count, record->wait_count + 1);
		unsure |= record->outcome;
		TDT__POKE(record->outcome, unsure);
		if (tdt__wait_weight(kind, owner) <=
		    tdt__wait_weight(record->wait_kind, record->wait_owner))
			return;
		count = record->wait_count;
	}
	TDT__POKE(record->outcome, unsure);
	/*
	 * Release: a reader that sees one of these values sees that this poll began, and a reader
	 * that sees the last one sees all of them.  Pairs with tdt__registry_read().
	 */
	__atomic_store_n(&record->wait_kind, (uint8_t)kind, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_object, (uintptr_t)object, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_owner, owner, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_name, (uintptr_t)name, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_count, count, __ATOMIC_RELEASE);
	__atomic_store_n(&record->wait_polls, polls, __ATOMIC_RELEASE);
}
