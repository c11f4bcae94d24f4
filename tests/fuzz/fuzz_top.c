// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A round of tdt top: the look at the target, what is made of the round, what keys do, and the
 * lines that are shown.  The target is the core file of core_image.h.  The input has
 *
 *	one byte each: the width and the height of the screen, flags, and how many keys follow
 *	a byte for each key
 *	what is damaged, as in core_image.h; if the first byte of a damage has its highest bit set,
 *	it damages the round, which a child process fills in, and the place counts words of 8 bytes
 *
 * No line may harm a terminal, and no more lines are shown than there are.
 */

#include <config.h>

#define NCURSES_NOMACROS 1
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/top_look.h"
#include "cli/top_screen.h"
#include "core_image.h"
#include "fuzz.h"

enum { WHOLE = 1, UTF8 = 2, COLOR = 4, HEAD = 4 };

/* What the user sees, and does. */
struct session {
	struct top_choice choice;
	struct top_size size;
	struct tdt_print_options print;
};

/* --- Looks -------------------------------------------------------------------------------- */

/* What is wrong is reported as text.  Returns the exit status. */
static int look_at(struct top_look *look)
{
	FILE *own = stderr;
	char *text = NULL;
	size_t n = 0;
	int status;

	stderr = open_memstream(&text, &n);
	CLAIM(stderr != NULL);
	status = top_look(own, look);
	fclose(stderr);
	stderr = own;
	CLAIM(status == 0 || n > 0);
	claim_harmless(text, n, false, false);
	free(text);
	return status;
}

/* Fill in the round by a look at the core file as it is now.  Returns the exit status. */
static int read_round(struct top_round *round, const struct session *session,
		      const struct top_round *last)
{
	char path[CORE_IMAGE_PATH];
	const struct options options = { .core = path,
						 .no_files = true,
						 .print = session->print };
	struct top_look look = { .options = &options,
				 .question = session->choice.question,
				 .last = last,
				 .round = round };
	int file = core_image_open(path), status;

	memset(round, 0, sizeof *round);
	status = look_at(&look);
	close(file);
	return status;
}

/* The round of a core file without damage, as the child fills it in. */
static const struct top_round *sound_round(void)
{
	static const struct session plain = { .print = { .size = sizeof plain.print,
							 .utf8 = TDT_PRINT_NO,
							 .color = TDT_PRINT_NO } };
	static struct top_round round;

	if (round.when != 0)
		return &round;
	core_image_make();
	CLAIM(read_round(&round, &plain, NULL) == 0);
	CLAIM(round.tasks == 4 && round.n_tasks == 4 && round.n_places > 0);
	return &round;
}

/* --- What is shown ------------------------------------------------------------------------ */

static void draw(const struct session *session, const struct top_round *round)
{
	bool color = session->print.color == TDT_PRINT_YES || session->size.screen;
	struct tdt__string text = { 0 };
	size_t lines = 0;

	top_draw(&text, &session->choice, round, &session->size, &session->print);
	CLAIM(!text.failed);
	tdt__string_add(&text, "", 1);
	claim_harmless(text.bytes, text.n - 1, session->print.utf8 == TDT_PRINT_YES, color);
	for (size_t i = 0; i < text.n; i++)
		lines += text.bytes[i] == '\n';
	CLAIM(lines <= session->size.height || (lines == 1 && session->size.screen));
	tdt__string_free(&text);
}

static void press(struct session *session, const struct top_round *round, const uint8_t *keys,
		  size_t n)
{
	static const char characters[] = "1234\t/w><rso +-?hkjq";

	for (size_t i = 0; i < n; i++) {
		bool is_character = keys[i] % 32 < sizeof characters - 1;

		top_press(&session->choice,
			  is_character ? characters[keys[i] % 32]
				       : KEY_DOWN + (int)(keys[i] % 32 - sizeof characters + 1),
			  round);
	}
}

/* --- All of it ---------------------------------------------------------------------------- */

static void begin_session(struct session *session, const uint8_t *head)
{
	unsigned flags = head[2];

	*session = (struct session){
		.size = { head[0], head[1], (flags & WHOLE) != 0 },
		.print = { .size = sizeof session->print,
			   .utf8 = flags & UTF8 ? TDT_PRINT_YES : TDT_PRINT_NO,
			   .color = flags & COLOR ? TDT_PRINT_YES : TDT_PRINT_NO },
	};
}

static void damage_core(const uint8_t *data, size_t size)
{
	struct damage damage;

	core_image_make();
	while (damage_next(&damage, &data, &size))
		if (damage.kind < 0x80)
			core_image_damage(&damage);
}

static void damage_round(struct top_round *round, const uint8_t *data, size_t size)
{
	struct damage damage;

	while (damage_next(&damage, &data, &size))
		if (damage.kind >= 0x80 && damage.at * 8 <= sizeof *round - damage.length)
			memcpy((char *)round + damage.at * 8, damage.bytes, damage.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct top_round last, next;
	struct session session;
	const uint8_t *keys;
	size_t n;

	if (size < HEAD)
		return 0;
	begin_session(&session, data);
	n = data[3] % 32 < size - HEAD ? data[3] % 32 : size - HEAD;
	keys = data + HEAD;
	data += HEAD + n;
	size -= HEAD + n;

	last = *sound_round();
	top_round_take(&last, NULL);
	draw(&session, NULL);
	press(&session, &last, keys, n);
	draw(&session, &last);

	damage_core(data, size);
	if (read_round(&next, &session, &last) != 0)
		next = *sound_round();
	damage_round(&next, data, size);
	top_round_take(&next, &last);
	top_follow(&session.choice, &next);
	draw(&session, &next);
	press(&session, &next, keys, n);
	draw(&session, &next);

	/* The damaged round as the one before. */
	last = *sound_round();
	last.when = next.when + TDT__SECOND;
	top_round_take(&last, &next);
	top_follow(&session.choice, &last);
	draw(&session, &last);
	return 0;
}
