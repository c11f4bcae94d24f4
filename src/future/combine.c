// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Join and select. */

#include <errno.h>
#include <stdbool.h>

#include <tdt/combine.h>

#include "base/leaf_poll.h"
#include "base/result.h"

/* The state of both futures.  A child that has ended is TDT_FUTURE_NONE. */
struct combined {
	bool ended;
	size_t *winner; /* of a select; may be NULL */
	size_t n;
	struct tdt_future children[];
};

static void drop_children(struct combined *combined)
{
	for (size_t i = 0; i < combined->n; i++)
		tdt_future_drop(&combined->children[i]);
}

static tdt_poll_t end_combined(struct combined *combined, tdt_poll_t result)
{
	combined->ended = true;
	drop_children(combined);
	return result;
}

TDT__LEAF_POLL(tdt_join_all);

tdt_poll_t tdt_join_all_poll(void *state, struct tdt_context *cx)
{
	struct combined *combined = state;
	bool pending = false;

	if (combined->ended)
		return TDT_PANICKED;
	for (size_t i = 0; i < combined->n; i++) {
		struct tdt_future *child = &combined->children[i];
		tdt_poll_t result;

		if (tdt_future_is_none(child))
			continue;
		result = tdt_future_poll(child, cx);
		if (result == TDT_PENDING) {
			pending = true;
			continue;
		}
		tdt_future_drop(child);
		if (result != TDT_READY)
			return end_combined(combined, TDT_PANICKED);
	}
	return pending ? TDT_PENDING : end_combined(combined, TDT_READY);
}

TDT__LEAF_POLL(tdt_select);

tdt_poll_t tdt_select_poll(void *state, struct tdt_context *cx)
{
	struct combined *combined = state;

	if (combined->ended)
		return TDT_PANICKED;
	for (size_t i = 0; i < combined->n; i++) {
		tdt_poll_t result = tdt_future_poll(&combined->children[i], cx);

		if (result == TDT_PENDING)
			continue;
		if (result != TDT_READY)
			return end_combined(combined, TDT_PANICKED);
		if (combined->winner != NULL)
			*combined->winner = i;
		return end_combined(combined, TDT_READY);
	}
	return TDT_PENDING;
}

static void drop_combined(void *state)
{
	drop_children(state);
	free(state);
}

/* The state, with a copy of `futures`; NULL and errno. */
static struct combined *combined_new(const struct tdt_future *futures, size_t n)
{
	struct combined *combined;
	size_t size;

	if (futures == NULL && n > 0)
		return tdt__nothing(-EINVAL);
	if (__builtin_mul_overflow(n, sizeof(*futures), &size) ||
	    __builtin_add_overflow(size, sizeof(*combined), &size))
		return tdt__nothing(-ENOMEM);
	for (size_t i = 0; i < n; i++) {
		if (futures[i].poll == NULL || futures[i].drop == NULL)
			return tdt__nothing(-EINVAL);
	}
	combined = malloc(size);
	if (combined == NULL)
		return NULL;
	combined->ended = false;
	combined->winner = NULL;
	combined->n = n;
	if (n > 0)
		memcpy(combined->children, futures, n * sizeof(*futures));
	return combined;
}

struct tdt_future tdt_join_all(const struct tdt_future *futures, size_t n)
{
	struct combined *combined = combined_new(futures, n);

	if (combined == NULL)
		return TDT_FUTURE_NONE;
	return (struct tdt_future){ combined, tdt_join_all_poll, drop_combined };
}

struct tdt_future tdt_select(const struct tdt_future *futures, size_t n, size_t *winner)
{
	struct combined *combined;

	if (n == 0)
		return tdt__no_future(-EINVAL);
	combined = combined_new(futures, n);
	if (combined == NULL)
		return TDT_FUTURE_NONE;
	combined->winner = winner;
	return (struct tdt_future){ combined, tdt_select_poll, drop_combined };
}

struct keeping {
	struct tdt_future *futures; /* the caller's; NULL: it has ended */
	size_t n, *winner;	    /* `winner` may be NULL */
};

TDT__LEAF_POLL(tdt_select_keep);

tdt_poll_t tdt_select_keep_poll(void *state, struct tdt_context *cx)
{
	struct keeping *keeping = state;
	struct tdt_future *futures = keeping->futures;
	bool pending = false;

	for (size_t i = 0; futures != NULL && i < keeping->n; i++) {
		tdt_poll_t result;

		if (tdt_future_is_none(&futures[i]))
			continue;
		result = tdt_future_poll(&futures[i], cx);
		pending = true;
		if (result == TDT_PENDING)
			continue;
		keeping->futures = NULL;
		tdt_future_drop(&futures[i]);
		if (keeping->winner != NULL)
			*keeping->winner = i;
		return result == TDT_READY ? TDT_READY : TDT_PANICKED;
	}
	return pending ? TDT_PENDING : TDT_PANICKED;
}

struct tdt_future tdt_select_keep(struct tdt_future *futures, size_t n, size_t *winner)
{
	const struct keeping keeping = { futures, n, winner };

	if (futures == NULL || n == 0)
		return tdt__no_future(-EINVAL);
	return tdt__future_new(&keeping, sizeof keeping, tdt_select_keep_poll, free);
}
