// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The line of leaves at a gate (gate.h). */

#include "runtime/gate.h"

#include "base/result.h"

void tdt__gate_init(struct tdt__gate *gate, size_t permits)
{
	gate->permits = permits;
	gate->hand = NULL;
	gate->line.previous = gate->line.next = &gate->line;
}

static void take_place(struct tdt__gate_place *place)
{
	place->previous->next = place->next;
	place->next->previous = place->previous;
}

bool tdt__gate_pass(struct tdt__gate *gate, struct tdt__gate_place *place)
{
	switch (place->at) {
	case TDT__PLACE_IN_LINE:
		return false;
	case TDT__PLACE_OUTSIDE:
		if (gate->permits == 0) {
			place->at = TDT__PLACE_IN_LINE;
			place->next = &gate->line;
			place->previous = gate->line.previous;
			place->previous->next = gate->line.previous = place;
			return false;
		}
		gate->permits--;
		break;
	case TDT__PLACE_ADMITTED:
	case TDT__PLACE_RELEASED:
		break;
	}
	place->at = TDT__PLACE_OUTSIDE;
	return true;
}

/* Take the first place out of the line.  NULL: there is none. */
static struct tdt__gate_place *take_first(struct tdt__gate *gate, int at)
{
	struct tdt__gate_place *first = tdt__gate_first(gate);

	if (first != NULL) {
		take_place(first);
		first->at = at;
	}
	return first;
}

const struct tdt_waker *tdt__gate_admit(struct tdt__gate *gate)
{
	struct tdt__gate_place *first = take_first(gate, TDT__PLACE_ADMITTED);

	if (gate->hand != NULL)
		gate->hand(gate, first);
	gate->permits += first == NULL;
	return first != NULL ? tdt__slot_take(&first->slot) : NULL;
}

bool tdt__gate_take_out(struct tdt__gate_place *place)
{
	bool admitted = place->at == TDT__PLACE_ADMITTED;

	if (place->at == TDT__PLACE_IN_LINE)
		take_place(place);
	place->at = TDT__PLACE_OUTSIDE;
	return admitted;
}

struct tdt_future tdt__gate_leaf_new(atomic_uint *refs, const void *fields, size_t size,
				     tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
				     void (*drop)(void *state))
{
	struct tdt_future future = refs != NULL ? tdt__future_new(fields, size, poll, drop)
						: tdt__no_future(-EINVAL);

	if (!tdt_future_is_none(&future))
		atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
	return future;
}

void tdt__gate_leave(struct tdt__gate_leaf *leaf, struct tdt__gate *gate, pthread_mutex_t *lock)
{
	const struct tdt_waker *waker = NULL;

	if (!leaf->ended) {
		pthread_mutex_lock(lock);
		if (tdt__gate_take_out(&leaf->place))
			waker = tdt__gate_admit(gate);
		pthread_mutex_unlock(lock);
		tdt_waker_wake(waker);
	}
	tdt__slot_clear(&leaf->place.slot);
}

/* Move the line of `from` to `to`, which has none. */
static void move_line(struct tdt__gate *from, struct tdt__gate *to)
{
	if (tdt__gate_first(from) == NULL)
		return;
	to->line.next = from->line.next;
	to->line.previous = from->line.previous;
	to->line.next->previous = to->line.previous->next = &to->line;
	from->line.previous = from->line.next = &from->line;
}

void tdt__gate_release(struct tdt__gate *gate, pthread_mutex_t *lock)
{
	struct tdt__gate present; /* a leaf that is woken may wait again before the last one is */
	struct tdt__gate_place *first;
	const struct tdt_waker *waker;
	bool more;

	tdt__gate_init(&present, 0);
	pthread_mutex_lock(lock);
	move_line(gate, &present);
	do {
		first = take_first(&present, TDT__PLACE_RELEASED);
		waker = first != NULL ? tdt__slot_take(&first->slot) : NULL;
		more = tdt__gate_first(&present) != NULL;
		pthread_mutex_unlock(lock);
		tdt_waker_wake(waker);
		if (more)
			pthread_mutex_lock(lock);
	} while (more);
}
