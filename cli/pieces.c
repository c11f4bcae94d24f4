// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Work in many pieces: see pieces.h.  The children take the pieces from a common counter.  Usually
 * there is one child: a fork for each piece would cost more than most pieces do.
 */

#include "cli/pieces.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define CREW_MAX 16 /* children at a time */
#define PATIENCE (TDT__SECOND / 10) /* until another child goes on with the rest */
#define TICK_MS 20
#define NO_PIECE SIZE_MAX

/*
 * What the children share with the parent.  Sequentially consistent: the parent reads a result when
 * the child that wrote it has ended, and what else it reads may be of a moment ago.
 */
struct crew_board {
	atomic_size_t next; /* the first piece that nobody has taken */
	struct {
		_Atomic uint64_t since; /* when the child has begun its piece, or its life */
		atomic_size_t piece;    /* NO_PIECE: it is between two */
	} child[CREW_MAX];
	struct result {
		atomic_bool done; /* all else of it is written */
		int status;
		uint32_t child;
		off_t from, to; /* in the child's file */
	} result[];
};

struct crew {
	struct crew_board *board;
	size_t n;
	piece_fn *work;
	void *arg;
	struct work_piece *piece;
	const struct piece_limits *limits;
	uint64_t deadline;
	uint32_t self; /* in a child: its number */
	int error; /* why no other child could be started */
	bool alive[CREW_MAX];
	struct apart apart[CREW_MAX];
};

/* An apart_fn: do pieces until none is left. */
static int do_pieces(FILE *out, void *arg)
{
	struct crew *crew = arg;
	struct crew_board *board = crew->board;
	int error = 0;
	size_t i;

	while (error == 0 && (i = atomic_fetch_add(&board->next, 1)) < crew->n) {
		struct result *result = &board->result[i];

		board->child[crew->self].since = tdt__clock();
		board->child[crew->self].piece = i;
		result->child = crew->self;
		result->from = lseek(fileno(out), 0, SEEK_CUR);
		result->status = crew->work(out, crew->arg, i);
		if (fflush(out) != 0)
			error = -errno;
		result->to = lseek(fileno(out), 0, SEEK_CUR);
		result->done = error == 0;
		if (error == 0)
			board->child[crew->self].piece = NO_PIECE;
	}
	return error;
}

static void start_child(struct crew *crew)
{
	uint32_t i = 0;

	while (i < CREW_MAX && crew->alive[i])
		i++;
	if (i == CREW_MAX)
		return;
	crew->self = i;
	crew->board->child[i].since = tdt__clock();
	crew->board->child[i].piece = NO_PIECE;
	crew->error = apart_start(&crew->apart[i], do_pieces, crew,
				  (unsigned)(crew->limits->all_ns / TDT__SECOND) + 2);
	crew->alive[i] = crew->error == 0;
}

static void read_written(struct work_piece *piece, int file, const struct result *result)
{
	size_t length = (size_t)(result->to - result->from);

	piece->text = length != 0 ? calloc(length + 1, 1) : NULL;
	if (piece->text != NULL &&
	    pread(file, piece->text, length, result->from) == (ssize_t)length)
		piece->length = length;
}

/* Take over what the child has done. */
static void end_child(struct crew *crew, uint32_t number, bool too_long)
{
	const char *why = "";
	int status = apart_end(&crew->apart[number], too_long, &why);
	size_t last = crew->board->child[number].piece;

	for (size_t i = 0; i < crew->n; i++) {
		struct result *result = &crew->board->result[i];

		if (!result->done || result->child != number)
			continue;
		crew->piece[i].status = result->status;
		read_written(&crew->piece[i], crew->apart[number].file, result);
		result->done = false; /* the number may be that of another child next */
	}
	if (last < crew->n && crew->piece[last].status == -ETIME)
		crew->piece[last] = (struct work_piece){ .status = status, .why = why };
	close(crew->apart[number].file);
	crew->alive[number] = false;
}

/* Whether a child has ended: set by poll(2). */
static void wait_for_children(const struct crew *crew, bool ended[CREW_MAX])
{
	struct pollfd event[CREW_MAX];

	for (size_t i = 0; i < CREW_MAX; i++)
		event[i] = (struct pollfd){ .fd = crew->alive[i] ? crew->apart[i].pipe : -1,
					    .events = POLLIN };
	if (poll(event, CREW_MAX, TICK_MS) < 0)
		memset(event, 0, sizeof event);
	for (size_t i = 0; i < CREW_MAX; i++)
		ended[i] = event[i].revents != 0;
}

/* End the children that have ended, or have to.  Returns whether one gets on with its piece. */
static bool look_at_children(struct crew *crew)
{
	bool ended[CREW_MAX], moves = false;
	uint64_t now;

	wait_for_children(crew, ended);
	now = tdt__clock();
	if (now >= crew->deadline)
		crew->board->next = crew->n;
	for (uint32_t i = 0; i < CREW_MAX; i++) {
		bool begun = crew->board->child[i].piece != NO_PIECE; /* since then, or longer */
		uint64_t since = crew->board->child[i].since, age = tdt__clock() - since;
		bool overdue = (begun && age > crew->limits->each_ns) ||
			       now > crew->deadline + TDT__SECOND;

		if (crew->alive[i] && (ended[i] || overdue))
			end_child(crew, i, !ended[i]);
		else
			moves |= crew->alive[i] && age < PATIENCE;
	}
	return moves;
}

static bool crew_works(const struct crew *crew)
{
	for (size_t i = 0; i < CREW_MAX; i++)
		if (crew->alive[i])
			return true;
	return false;
}

static void lead(struct crew *crew)
{
	start_child(crew);
	while (crew_works(crew))
		if (!look_at_children(crew) && crew->board->next < crew->n)
			start_child(crew);
}

struct work_piece *pieces_do(size_t n, piece_fn *work, void *arg,
			     const struct piece_limits *limits)
{
	size_t size = sizeof(struct crew_board) + n * sizeof(struct result);
	struct crew crew = { .n = n, .work = work, .arg = arg, .limits = limits };

	crew.deadline = tdt__clock() + limits->all_ns;
	crew.board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew.board == MAP_FAILED)
		return NULL;
	crew.piece = calloc(n + 1, sizeof *crew.piece);
	for (size_t i = 0; crew.piece != NULL && i < n; i++)
		crew.piece[i].status = -ETIME;
	if (crew.piece != NULL)
		lead(&crew);
	for (size_t i = 0; crew.piece != NULL && i < n && crew.error != 0; i++)
		if (crew.piece[i].status == -ETIME)
			crew.piece[i].status = crew.error;
	munmap(crew.board, size);
	return crew.piece;
}

void pieces_free(struct work_piece *piece, size_t n)
{
	for (size_t i = 0; piece != NULL && i < n; i++)
		free(piece[i].text);
	free(piece);
}
