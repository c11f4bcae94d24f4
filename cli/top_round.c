// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The figures of a round of tdt top, compared with those of the round before: see top_round.h. */

#include "cli/top_round.h"

#include <string.h>

#include "base/clock.h"
#include "tree-printer/strings.h"

uint64_t top_bucket_ns(unsigned i)
{
	return i < TOP_BUCKETS - 1 ? UINT64_C(1000) << i : UINT64_MAX;
}

void top_histogram_add(struct top_histogram *histogram, uint64_t ns)
{
	unsigned i = 0;

	while (i < TOP_BUCKETS - 1 && ns >= top_bucket_ns(i))
		i++;
	histogram->n[i]++;
	histogram->total++;
	if (ns > histogram->most)
		histogram->most = ns;
}

uint64_t top_histogram_share(const struct top_histogram *histogram, double share)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < TOP_BUCKETS; i++) {
		below += histogram->n[i];
		if (below != 0 && (double)below >= share * (double)histogram->total)
			return top_bucket_ns(i) < histogram->most ? top_bucket_ns(i)
								  : histogram->most;
	}
	return 0;
}

static void clamp_count(uint64_t *n, uint64_t most)
{
	if (*n > most)
		*n = most;
}

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
}

/* A text of TOP_TEXT bytes ends, and has no control characters. */
#define END_TEXT(text) end_text(text, sizeof(text))

static void check_texts(struct top_round *round)
{
	END_TEXT(round->library);
	END_TEXT(round->misuse);
	END_TEXT(round->times.trouble);
	for (uint64_t i = 0; i < round->n_rings; i++)
		END_TEXT(round->ring[i]);
	for (uint64_t i = 0; i < round->n_tasks; i++) {
		END_TEXT(round->task[i].name);
		END_TEXT(round->task[i].where);
	}
	for (uint64_t i = 0; i < round->n_places; i++)
		END_TEXT(round->place[i].text);
	for (uint64_t i = 0; i < round->n_threads; i++) {
		END_TEXT(round->thread[i].name);
		END_TEXT(round->thread[i].task_name);
	}
	for (uint64_t i = 0; i < round->n_known; i++)
		END_TEXT(round->known[i].text);
}

static void check_round(struct top_round *round)
{
	clamp_count(&round->n_tasks, TOP_TASKS);
	clamp_count(&round->n_places, TOP_PLACES);
	clamp_count(&round->n_threads, TOP_THREADS);
	clamp_count(&round->n_known, TOP_PLACES);
	clamp_count(&round->n_rings, TOP_RINGS);
	clamp_count(&round->tree_size, TOP_TREE);
	for (uint64_t i = 0; i < round->n_tasks; i++)
		if ((unsigned)round->task[i].state > TDT_TASK_RUNNABLE)
			round->task[i].state = TDT_TASK_WAITING;
	check_texts(round);
}

/* Per second; 0 if the count went back, which only a damaged target lets it do. */
static double rate_of(uint64_t now, uint64_t before, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* The entry of a list of the last round with that key; NULL: there is none.  The lists are short.
 */
#define FIND_IN(list, n, key, wanted)                                                              \
	({                                                                                         \
		__typeof__(&(list)[0]) found = NULL;                                               \
		for (uint64_t at = 0; at < (n) && found == NULL; at++)                             \
			found = (list)[at].key == (wanted) ? &(list)[at] : NULL;                   \
		found;                                                                             \
	})

static void compare_last(struct top_round *round, const struct top_round *last, double seconds)
{
	for (uint64_t i = 0; i < round->n_tasks; i++) {
		struct top_task *task = &round->task[i];
		const struct top_task *before = FIND_IN(last->task, last->n_tasks, id, task->id);

		task->rate = before != NULL ? rate_of(task->polls, before->polls, seconds) : -1;
	}
	/* A place that was not in the last round, since it had too few tasks, had none. */
	for (uint64_t i = 0; i < round->n_places; i++) {
		struct top_place *place = &round->place[i];
		const struct top_place *before =
		    FIND_IN(last->place, last->n_places, key, place->key);

		place->more =
		    round->has_rates ? (int64_t)(place->n - (before != NULL ? before->n : 0)) : 0;
	}
	for (uint64_t i = 0; i < round->n_threads; i++) {
		struct top_thread *thread = &round->thread[i];
		const struct top_thread *before =
		    FIND_IN(last->thread, last->n_threads, id, thread->id);

		thread->cpu = -1;
		if (before != NULL && before->cpu_ns != 0 && thread->cpu_ns != 0)
			thread->cpu = rate_of(thread->cpu_ns, before->cpu_ns, seconds) / 1e9;
	}
}

void top_round_take(struct top_round *round, const struct top_round *last)
{
	static const struct top_round none;
	double seconds;

	check_round(round);
	round->has_rates = last != NULL && round->when > last->when;
	if (!round->has_rates)
		last = &none;
	seconds = round->has_rates ? (double)(round->when - last->when) / (double)TDT__SECOND : 0;
	round->spawn_rate = rate_of(round->counts.spawned, last->counts.spawned, seconds);
	round->end_rate = rate_of(round->counts.ended, last->counts.ended, seconds);
	round->poll_rate = rate_of(round->counts.polls, last->counts.polls, seconds);
	compare_last(round, last, seconds);
}

void top_keep_text(char to[TOP_TEXT], struct tdt__string *string)
{
	size_t n = string->failed ? 0 : string->n;

	if (n > TOP_TEXT - 1)
		n = TOP_TEXT - 1;
	while (n > 0 && n < string->n && ((unsigned char)string->bytes[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	if (n > 0)
		memcpy(to, string->bytes, n);
	to[n] = '\0';
	tdt__string_free(string);
}
