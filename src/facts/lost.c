// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Which lost wake-ups count, and which are certain: see lost.h. */

#include "facts/lost.h"

#include <stdlib.h>
#include <string.h>

#include "facts/record.h"

int tdt__by_note_number(const void *a, const void *b)
{
	const struct tdt_registry_holder *x = a, *y = b; /* all notes begin with the same words */

	return (x->number < y->number) - (x->number > y->number);
}

void tdt__losts_judge(struct tdt__losts *losts, size_t n, uint64_t counted, uint64_t now)
{
	losts->n = losts->n_unsure = 0;
	losts->total = counted;
	losts->sure_at = 0;
	for (size_t i = 0; i < n; i++) {
		struct tdt_registry_lost *lost = &losts->lost[i];

		lost->name[sizeof lost->name - 1] = '\0';
		lost->wait_name[sizeof lost->wait_name - 1] = '\0';
		if (lost->number == 0)
			continue;
		if (tdt__lost_is_sure(lost->when, now)) {
			losts->lost[losts->n++] = *lost;
			continue;
		}
		losts->n_unsure++;
		losts->total -= losts->total != 0;
		if (lost->when + TDT__SECOND > losts->sure_at)
			losts->sure_at = lost->when + TDT__SECOND;
	}
	if (losts->n != 0)
		qsort(losts->lost, losts->n, sizeof losts->lost[0], tdt__by_note_number);
}

static bool is_same_place(const struct tdt_registry_lost *a, const struct tdt_registry_lost *b)
{
	return a->waited >= TDT__SECOND && b->waited >= TDT__SECOND && a->tree.n != 0 &&
	       a->tree.n == b->tree.n && a->tree.n <= TDT_REGISTRY_PANIC_ENTRIES &&
	       a->tree.unloads == b->tree.unloads &&
	       a->poll == b->poll &&
	       memcmp(a->entry, b->entry, a->tree.n * sizeof a->entry[0]) == 0;
}

struct tdt_task_info tdt__lost_info(const struct tdt__losts *losts, size_t i, const char *file,
				    uint64_t now, struct tdt_wait *wait,
				    const struct tdt_wait *waits[1])
{
	const struct tdt_registry_lost *lost = &losts->lost[i];
	uint32_t times = 1;

	for (size_t k = 0; k < losts->n; k++)
		times += k != i && is_same_place(lost, &losts->lost[k]);
	*wait = (struct tdt_wait){ .size = sizeof *wait,
				   .kind = tdt__wait_kind(lost->wait_kind),
				   .object = lost->wait_object,
				   .owner = lost->wait_owner };
	memcpy(wait->name, lost->wait_name, sizeof wait->name);
	waits[0] = wait;
	return (struct tdt_task_info){ .size = sizeof(struct tdt_task_info),
					.id = lost->id,
					.name = lost->name[0] != '\0' ? lost->name : NULL,
					.file = file,
					.line = lost->line,
					.column = lost->column,
					.state = TDT_TASK_WAITING,
					.state_ns = lost->waited,
					.polls = lost->polls,
					.parent = lost->parent,
					.age_ns = tdt__time_since(now, lost->when),
					.n_waits = 1,
					.waits = waits,
					.lost_times = times };
}
