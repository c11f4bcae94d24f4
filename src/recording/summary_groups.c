// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The groups of a summary: families of tasks with their latencies, and waits. */

#include "recording/summary_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "recording/read.h"

enum {
	LATENCY_BITS = 44, /* of a latency: 4 hours and 53 minutes at most */
	FAMILIES_MAX = 1 << (64 - LATENCY_BITS),
	FAMILY_KEY = TDT__PAYLOAD_MAX + 32
};

#define LATENCY_MAX ((UINT64_C(1) << LATENCY_BITS) - 1)

/* A text that all tasks of the family have, and no others. */
static void family_key(char key[FAMILY_KEY], const struct tdt__recorded_task *task)
{
	if (task->name[0] != '\0')
		tdt__text_without_numbers(key, FAMILY_KEY, task->name, '\1');
	else
		snprintf(key, FAMILY_KEY, "\2%" PRIu32 ":%" PRIu32 ":%s", task->line, task->column,
			 task->file);
}

/* The number of the family of a task; TDT__NO_GROUP: no memory. */
static uint32_t find_family(struct tdt__summary_groups *groups, uint32_t task)
{
	const struct tdt__recorded_task *own = &groups->task[task];
	char key[FAMILY_KEY], other[FAMILY_KEY];
	uint32_t hash, i;

	family_key(key, own);
	hash = tdt__hash_fold(tdt__hash_bytes(TDT__HASH_START, key, strlen(key)));
	TDT__INDEX_EACH (i, &groups->family_table.index, hash) {
		const struct tdt__recorded_task *first = &groups->task[groups->family[i].task];

		family_key(other, first);
		if (strcmp(key, other) != 0)
			continue;
		groups->family[i].several |= strcmp(first->name, own->name) != 0;
		return i;
	}
	if (groups->n_families == FAMILIES_MAX)
		return FAMILIES_MAX - 1;
	return tdt__table_add(&groups->family_table, hash,
			      &(struct tdt__summary_latency){ .task = task },
			      sizeof(struct tdt__summary_latency));
}

static uint32_t family_of(struct tdt__summary_groups *groups, uint32_t task)
{
	uint32_t family;

	if (groups->family_of[task] != 0)
		return groups->family_of[task] - 1;
	family = find_family(groups, task);
	if (family != TDT__NO_GROUP)
		groups->family_of[task] = family + 1;
	return family;
}

int tdt__summary_groups_add_latency(struct tdt__summary_groups *groups, uint32_t task, uint64_t at,
			    uint64_t ns)
{
	uint32_t number = family_of(groups, task);
	struct tdt__summary_latency *family;

	if (number == TDT__NO_GROUP ||
	    !tdt__array_grow(&groups->latency, groups->n_latencies, &groups->latencies_room,
			     sizeof(*groups->latency)))
		return -ENOMEM;
	groups->latency[groups->n_latencies++] =
	    (uint64_t)number << LATENCY_BITS | (ns < LATENCY_MAX ? ns : LATENCY_MAX);
	family = &groups->family[number];
	if (family->n++ == 0 || ns > family->most) {
		family->most = ns;
		family->slowest = task;
		family->at = at;
	}
	return 0;
}

/* Move the numbers to `to`, in the order of the byte at `shift`, else in the order they had. */
static void sort_by_byte(const uint64_t *from, uint64_t *to, size_t n, unsigned shift)
{
	size_t at[257] = { 0 };

	for (size_t i = 0; i < n; i++)
		at[(from[i] >> shift & 0xff) + 1]++;
	for (unsigned i = 1; i < 256; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < n; i++)
		to[at[from[i] >> shift & 0xff]++] = from[i];
}

/* There are many: qsort() takes several times as long. */
static int sort_latencies(uint64_t *latency, size_t n)
{
	uint64_t *other = malloc(n * sizeof(*other));

	if (other == NULL)
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += 16) {
		sort_by_byte(latency, other, n, shift);
		sort_by_byte(other, latency, n, shift + 8);
	}
	free(other);
	return 0;
}

int tdt__summary_groups_find_quantiles(struct tdt__summary_groups *groups)
{
	const uint64_t *sorted = groups->latency;

	if (groups->n_latencies == 0)
		return 0;
	if (sort_latencies(groups->latency, groups->n_latencies) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < groups->n_families; i++) {
		struct tdt__summary_latency *family = &groups->family[i];

		if (family->n == 0)
			continue;
		family->median = sorted[(family->n - 1) / 2] & LATENCY_MAX;
		family->p99 = sorted[(family->n * 99 + 99) / 100 - 1] & LATENCY_MAX;
		sorted += family->n;
	}
	return 0;
}

/* Whether it makes a difference which object of its kind is waited for. */
static bool tells_object(const struct tdt_wait *wait)
{
	return wait->kind != TDT_WAIT_TIMER && wait->kind != TDT_WAIT_IO &&
	       wait->kind != TDT_WAIT_TASK;
}

static bool same_waits(const struct tdt__summary_waits *waits, const struct tdt_wait *wait,
		       uint32_t stack, uint32_t family)
{
	const struct tdt_wait *what = &waits->wait.what;

	return what->kind == wait->kind && waits->stack == stack &&
	       waits->family == family && strcmp(what->name, wait->name) == 0 &&
	       (!tells_object(wait) ||
		(what->object == wait->object && what->owner == wait->owner &&
		 what->orphaned == wait->orphaned));
}

static uint32_t waits_hash(const struct tdt_wait *wait, uint32_t stack, uint32_t family)
{
	uint64_t hash = tdt__hash_bytes(TDT__HASH_START, wait->name, strlen(wait->name));

	hash = tdt__mix(hash, (uint64_t)wait->kind << 32 | stack);
	hash = tdt__mix(hash, family);
	if (tells_object(wait))
		hash = tdt__mix(tdt__mix(hash, wait->object), wait->owner);
	return tdt__hash_fold(hash);
}

uint32_t tdt__summary_groups_wait(struct tdt__summary_groups *groups, uint32_t task,
				  const struct tdt_wait *wait, uint32_t stack)
{
	uint32_t place = tdt__is_lock_wait(wait) ? 0 : stack, family = 0, hash, i;

	if (!tdt__is_lock_wait(wait) && stack == 0)
		family = family_of(groups, task);
	if (family == TDT__NO_GROUP)
		return TDT__NO_GROUP;
	hash = waits_hash(wait, place, family);
	TDT__INDEX_EACH (i, &groups->waits_table.index, hash)
		if (same_waits(&groups->waits[i], wait, place, family))
			return i;
	return tdt__table_add(
	    &groups->waits_table, hash,
	    &(struct tdt__summary_waits){ .wait.what = *wait, .stack = place, .family = family },
	    sizeof(struct tdt__summary_waits));
}

void tdt__summary_groups_add_wait(struct tdt__summary_groups *groups, uint32_t group,
				  uint32_t task, uint32_t stack, uint64_t start, uint64_t ns,
				  bool going_on)
{
	struct tdt__summary_wait *wait = &groups->waits[group].wait;

	wait->total += ns;
	if (wait->n++ > 0 && ns <= wait->ns)
		return;
	wait->task = task;
	wait->stack = stack;
	wait->start = start;
	wait->ns = ns;
	wait->going_on = going_on;
}

void tdt__summary_groups_fini(struct tdt__summary_groups *groups)
{
	tdt__table_fini(&groups->family_table);
	tdt__table_fini(&groups->waits_table);
	free(groups->latency);
}
