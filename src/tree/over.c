// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Which leaves are over, as shown by the names of the functions between them and the traced future.
 *
 * Recorded stacks are merged to a tree of *levels*.  A level is a function of a stack, inlined or
 * not.  Three things distinguish it from others: the level outside of it, the *site* from which it
 * is called there, and the function itself.  The site of an inlined function is its instance in the
 * debug information; that of any other function is the return address.  A leaf is a level too, the
 * innermost one, whose site is the return address of its call of clone.  So two leaves part at one
 * level, and there they part either by two sites, or by two functions that were called from one
 * site.
 *
 * There are three kinds of functions:
 *
 *   sequential   polls one thing after the other, and goes on to the next only when the one before
 *                has ended: an async function.
 *   transparent  polls one child, once.
 *   unknown      all others: it may poll several children side by side.
 *
 * The rule.  If all levels from the traced future to the level where two leaves part are sequential
 * or transparent, and the leaves part by two sites, then the earlier leaf is over.  The proof: the
 * outermost level is one activation.  Let a level be one activation for both leaves.  If it is
 * transparent, the next level is one activation too.  If it is sequential, then either the next
 * level is one activation too, or the earlier leaf is over.  And where the leaves part, the same
 * activation has gone on from one site to the other.
 *
 * One site that leads to two functions proves nothing.  It may be a loop that awaits one thing
 * after the other.  But a combinator whose last child's poll is a sibling call has no frame in that
 * child's stack; then two children that both wait seem to be called by the function that polls the
 * combinator.
 *
 * The name of a function says how it behaves only if no unseen function is inlined into it.  So
 * functions without debug information are unknown, except those in libtdt itself.
 *
 * A leaf that clones the waker twice, to be woken by either of two things, is one leaf: if all
 * levels outside of the function that clones are sequential or transparent, then its earlier clone
 * is over, or belongs to the same activation.
 *
 * Where leaves part at a sequential function below an unknown one, or where several leaves wait at
 * one place, nothing is known: they may belong to one activation that has gone on, or to several
 * that wait side by side.  These leaves are kept and counted as unsure.  That the counted clone of
 * a leaf is still held proves nothing here: a resource may keep the waker of a leaf that has
 * finished.
 */

#include "tree/over.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/text.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"
#include "tree/stacks.h"

/*
 * Numbers with a special meaning: no level; the level outside of whole stacks; the level outside of
 * stacks that were cut.
 */
enum { NONE, ROOT, CUT, FIRST };

enum kind { UNKNOWN, TRANSPARENT, SEQUENTIAL };

/* What the name of a function says of it. */
enum role {
	PLAIN,
	PASSES,    /* it polls one child, once */
	AWAITS,    /* the same; its caller awaits one thing after the other */
	CO_AWAITS, /* the same; all its callers on a coroutine's stack do so too */
	CO_MAIN,   /* polls one child; the outermost function on a coroutine's stack */
	TRIES,     /* passes on to CALLS, if nothing is inlined there */
	CALLS,
	CLONES, /* clones the waker for its caller */
	BODY    /* of a Rust async function */
};

struct level {
	uint32_t outer;
	uint64_t site;
	/* In `module`: the offset of its DIE, or its symbol's address.  0: unknown, or a leaf. */
	uint64_t function;
	const struct tdt__module *module;
	const struct tdt__place *place; /* NULL: unknown, or a leaf */
	enum role role;
	bool described; /* all that is inlined into it is known */
	bool leaf;

	/* Of the levels within. */
	bool only_awaits;
	bool only_co_awaits;
	bool only_calls;
	uint32_t last;       /* when the last leaf came */
	uint64_t last_site;  /* the site from which it came */
	uint32_t last_other; /* when the last leaf from another site came; 0: none */
	uint32_t last_own;   /* when the function itself last cloned the waker; 0: it has not */

	/* Of the levels outside, and of this one. */
	enum kind kind;
	bool on_coroutine; /* between the outermost function of a coroutine and its await */
	bool known;        /* all these levels are sequential or transparent */
	/*
	 * It is sequential, or it is transparent and its first caller that is not transparent is
	 * sequential.
	 */
	bool follows;
	uint32_t after; /* leaves that came earlier than this are over */

	/* Of leaves that are not known to be over. */
	uint32_t left;        /* of a leaf */
	uint32_t left_within; /* levels directly within that have such leaves */
	uint32_t left_last;   /* when the last of them came */
	/* Leaves that came earlier than this may be over; 0: no leaf is in doubt. */
	uint32_t doubt;
};

struct levels {
	const struct tdt__stacks *stacks;
	const struct tdt__name *names;
	struct level *level;
	uint32_t n;
	uint32_t *at;            /* of each frame, its innermost level; NONE: not yet */
	struct tdt__index index; /* of the levels; has room for all */
	uint32_t *path;
};

/* --- Names ---------------------------------------------------------------------- */

/* The roles of functions of the headers, and of the library. */
static enum role our_role(const char *name)
{
	static const struct {
		const char *name;
		enum role role;
	} ours[] = {
		{ "tdt_waker_clone", CLONES },       { "tdt_future_poll", PASSES },
		{ "tdt_async_await", AWAITS },       { "tdt__co_poll_from", AWAITS },
		{ "tdt__co_poll_awaited", AWAITS },  { "tdt_co_await", CO_AWAITS },
		{ "tdt__coroutine_await", PASSES },  { "tdt__coroutine_main", CO_MAIN },
		{ "tdt__coroutine_resume", PASSES }, { "tdt__coroutine_poll", PASSES },
		{ "tdt__traced_poll", PASSES },      { "tdt__observed_poll", PASSES },
		{ "tdt__child_poll", PASSES },       { "tdt__recorded_poll", PASSES },
	};

	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strcmp(name, ours[i].name) == 0)
			return ours[i].role;
	return PLAIN;
}

/* Whether `part` occurs in `name` where a word begins. */
static bool has_path(const char *name, const char *part)
{
	const char *at = strstr(name, part);

	return at != NULL && (at == name || at[-1] == ':' || at[-1] == '<');
}

/*
 * The roles of functions of Rust's libraries, and of the code that binds Rust to this library
 * (demo/tdt.rs).  The file is compared as well, since a program may implement the same trait for a
 * type of its own.
 */
static enum role rust_role(const char *name, const char *file)
{
	static const struct {
		const char *name, *file;
		enum role role;
	} std[] = {
		{ "<core::pin::Pin<", "/core/src/future/future.rs", PASSES },
		{ "<&mut ", "/core/src/future/future.rs", PASSES },
		{ "<alloc::boxed::Box<", "/alloc/src/boxed.rs", PASSES },
		{ "<core::panic::unwind_safe::AssertUnwindSafe<", "/core/src/panic/unwind_safe.rs",
		  PASSES },
		{ "core::ops::function::", "/core/src/ops/function.rs", PASSES },
		{ "std::panic::catch_unwind", "/std/src/panic.rs", PASSES },
		{ "std::panicking::", "/std/src/panicking.rs", CALLS },
		{ "<core::task::wake::Waker as core::clone::Clone>::clone",
		  "/core/src/task/wake.rs", CLONES },
	};

	if (file == NULL)
		return PLAIN;
	for (size_t i = 0; i < sizeof std / sizeof std[0]; i++)
		if (tdt__starts_with(name, std[i].name) && tdt__ends_with(file, std[i].file))
			return std[i].role;
	if (!tdt__ends_with(file, "/tdt.rs"))
		return PLAIN;
	if (has_path(name, "tdt::poll_rust") || has_path(name, "tdt::TdtFuture"))
		return PASSES;
	return has_path(name, "tdt::rust_clone") ? CLONES : PLAIN;
}

static bool is_library(const struct tdt__module *module)
{
	return tdt__starts_with(tdt__file_name(tdt__module_path(module)), "libtdt.so");
}

/*
 * Whether debug information describes the call.  Without a line, the compiler may have merged this
 * call with that of another function.
 */
static bool is_described(const struct tdt__place *place)
{
	return place->die != 0 && place->line != 0;
}

static enum role role_of(const struct tdt__module *module, const struct tdt__place *place,
			 enum role outer)
{
	const char *name = place->function;

	if (name == NULL)
		return PLAIN;
	if (!is_described(place)) {
		if (strcmp(name, "__rust_try") == 0)
			return TRIES; /* rustc describes it nowhere */
		if (strcmp(name, "tdt__co_poll_from") == 0)
			return AWAITS; /* assembly of tdt/coroutine.hpp: nothing is inlined there */
		return is_library(module) ? our_role(name) : PLAIN;
	}
	if (place->body)
		return BODY;
	if (strcmp(name, "plain_poll") == 0 && outer == PASSES && is_library(module))
		return PASSES;
	return tdt__starts_with(name, "tdt_") ? our_role(name) : rust_role(name, place->file);
}

/* --- The tree of levels ----------------------------------------------------------- */

static bool is_same_level(const struct level *a, const struct level *b)
{
	return a->outer == b->outer && a->site == b->site && a->function == b->function &&
	       a->module == b->module && a->leaf == b->leaf;
}

static uint32_t hash_level(const struct level *level)
{
	uint64_t hash = tdt__mix(tdt__mix(level->outer, level->site), level->function);

	return (uint32_t)tdt__mix(hash, (uintptr_t)level->module);
}

/* The level that is the same as `sought`; a new one if there is none. */
static uint32_t find_level(struct levels *levels, const struct level *sought)
{
	uint32_t hash = hash_level(sought), i;

	TDT__INDEX_EACH (i, &levels->index, hash)
		if (is_same_level(&levels->level[i], sought))
			break;
	if (i == TDT__INDEX_NONE) {
		i = levels->n++;
		levels->level[i] = *sought;
		tdt__index_add(&levels->index, hash, i);
	} else if (sought->place != NULL && !is_described(sought->place)) {
		/* One unknown line makes the level doubtful. */
		levels->level[i].place = sought->place;
	}
	return i;
}

/* Find the role of each level by its name. */
static void find_roles(struct levels *levels)
{
	for (uint32_t i = FIRST; i < levels->n; i++) {
		struct level *level = &levels->level[i];

		if (level->place == NULL)
			continue;
		level->described = is_described(level->place);
		level->role =
		    role_of(level->module, level->place, levels->level[level->outer].role);
	}
}

/* Add the levels of a frame that was called from `site`.  Returns the innermost one. */
static uint32_t add_levels(struct levels *levels, uint32_t outer, uint64_t site, uint32_t index)
{
	const struct tdt__name *name = &levels->names[index];
	const struct tdt__symbol *symbol = name->symbol;
	size_t n = symbol != NULL ? symbol->n : 0;
	struct level level = { .outer = outer, .site = site, .module = name->module };

	/*
	 * Callers may be missing between a guessed frame and the next outer one, so nothing is
	 * known of the guessed frame's function.
	 */
	if (levels->stacks->frames[index].frame.guessed)
		n = 0;
	if (n == 0)
		return find_level(levels, &level);
	for (size_t i = n; i-- > 0;) {
		const struct tdt__place *place = &symbol->place[i];

		level.function = place->die != 0 ? place->die : name->pc - symbol->symbol_offset;
		if (i + 1 < n)
			level.site = place->die;
		level.place = place;
		level.outer = find_level(levels, &level);
	}
	return level.outer;
}

/*
 * Add the levels of the frames from `leaf` outwards that have none yet, and the level of the leaf.
 * Returns the latter.
 */
static uint32_t add_leaf(struct levels *levels, uint32_t leaf)
{
	const struct tdt__recorded *frames = levels->stacks->frames;
	struct level level = { .site = frames[leaf].frame.pc, .leaf = true };
	uint32_t n = 0, index = leaf, outer;
	uint64_t site = 0;

	for (; tdt__is_frame(index) && levels->at[index] == NONE; index = frames[index].parent)
		levels->path[n++] = index;
	if (tdt__is_frame(index)) {
		outer = levels->at[index];
		site = frames[index].frame.pc;
	} else {
		outer = index == TDT__PARENT_TOP ? ROOT : CUT;
	}
	while (n > 0) {
		index = levels->path[--n];
		outer = add_levels(levels, outer, site, index);
		levels->at[index] = outer;
		site = frames[index].frame.pc;
	}
	level.outer = levels->at[leaf];
	return find_level(levels, &level);
}

/*
 * The level that the leaf belongs to: functions that only clone the waker for their caller are
 * skipped.
 */
static uint32_t owner_of(const struct levels *levels, uint32_t leaf)
{
	uint32_t index = levels->level[leaf].outer;

	while (levels->level[index].role == CLONES)
		index = levels->level[index].outer;
	return index;
}

/*
 * Make the tree of levels.  `leaf[i]` becomes the level of the leaves at frame i, or NONE.  Frames
 * come in the order of their leaves.
 */
static void make_levels(struct levels *levels, uint32_t *leaf)
{
	const struct tdt__stacks *stacks = levels->stacks;
	bool astray = atomic_load_explicit(&stacks->astray, memory_order_relaxed);

	levels->n = FIRST;
	/* If modules were unloaded meanwhile, names may be wrong: then nothing is known. */
	levels->level[ROOT] =
	    (struct level){ .kind = astray ? UNKNOWN : TRANSPARENT, .known = !astray };
	for (uint32_t i = 0; i < stacks->n; i++) {
		struct level *level;

		if (stacks->frames[i].leaves == 0)
			continue;
		leaf[i] = add_leaf(levels, i);
		level = &levels->level[leaf[i]];
		level->last = i + 1;
		level->last_site = level->site;
	}
	find_roles(levels);
	for (uint32_t i = 0; i < stacks->n; i++)
		if (leaf[i] != NONE)
			levels->level[owner_of(levels, leaf[i])].last_own = i + 1;
}

/* --- What is over ------------------------------------------------------------------- */

/* Note in the outer level when leaves came, and from which of its sites. */
static void note_last(struct level *outer, const struct level *level)
{
	if (level->site == outer->last_site || outer->last == 0) {
		outer->last_site = level->site;
		if (level->last > outer->last)
			outer->last = level->last;
	} else if (level->last > outer->last) {
		outer->last_other = outer->last;
		outer->last = level->last;
		outer->last_site = level->site;
	} else if (level->last > outer->last_other) {
		outer->last_other = level->last;
	}
}

/* From the innermost level outwards: find what is within each level. */
static void look_within(struct levels *levels)
{
	for (uint32_t i = FIRST; i < levels->n; i++)
		levels->level[i].only_awaits = levels->level[i].only_co_awaits =
		    levels->level[i].only_calls = !levels->level[i].leaf;
	for (uint32_t i = levels->n; i-- > FIRST;) {
		const struct level *level = &levels->level[i];
		struct level *outer = &levels->level[level->outer];

		outer->only_awaits =
		    outer->only_awaits && (level->role == AWAITS || level->role == CO_AWAITS);
		outer->only_co_awaits =
		    outer->only_co_awaits && (level->role == CO_AWAITS || level->only_co_awaits);
		outer->only_calls = outer->only_calls && level->role == CALLS;
		note_last(outer, level);
	}
}

static enum kind kind_of(const struct level *level)
{
	if (level->role == BODY || (level->on_coroutine && level->only_co_awaits) ||
	    (level->described && level->only_awaits))
		return SEQUENTIAL;
	switch (level->role) {
	case PLAIN:
	case CLONES:
		return UNKNOWN;
	case TRIES:
		return level->only_calls ? TRANSPARENT : UNKNOWN;
	default:
		return TRANSPARENT;
	}
}

/*
 * Leaves of `level` that came earlier than the returned time are over: within `outer`, or further
 * outside, a leaf from another site has followed them.
 */
static uint32_t over_before(const struct level *outer, const struct level *level)
{
	uint32_t other = level->site == outer->last_site ? outer->last_other : outer->last;

	return outer->known && outer->follows && other > outer->after ? other : outer->after;
}

/* From the outermost level inwards: find which leaves are over. */
static void look_outside(struct levels *levels)
{
	for (uint32_t i = FIRST; i < levels->n; i++) {
		struct level *level = &levels->level[i];
		const struct level *outer = &levels->level[level->outer];

		level->on_coroutine =
		    (outer->role == CO_MAIN || outer->on_coroutine) && level->role != CO_AWAITS;
		level->kind = level->leaf ? UNKNOWN : kind_of(level);
		level->known = outer->known && level->kind != UNKNOWN;
		level->follows =
		    level->kind == SEQUENTIAL || (level->kind == TRANSPARENT && outer->follows);
		level->after = over_before(outer, level);
	}
}

/*
 * How many of the leaves at frame `index` are not known to be over.  Of several clones by one
 * activation only one counts as a leaf.
 */
static uint32_t count_left(const struct levels *levels, uint32_t index, uint32_t leaf)
{
	const struct level *owner = &levels->level[owner_of(levels, leaf)];
	uint32_t came = index + 1;

	if (came < levels->level[leaf].after)
		return 0;
	if (!owner->described || !levels->level[owner->outer].known)
		return levels->stacks->frames[index].leaves;
	return came == owner->last_own;
}

/* --- What is in doubt ------------------------------------------------------------------ */

static void note_left(struct levels *levels)
{
	for (uint32_t i = levels->n; i-- > FIRST;) {
		const struct level *level = &levels->level[i];
		struct level *outer = &levels->level[level->outer];

		if (level->left_last == 0)
			continue;
		outer->left_within++;
		if (level->left_last > outer->left_last)
			outer->left_last = level->left_last;
	}
}

/* Whether the leaves within may belong to one activation that has gone on. */
static bool is_ambiguous(const struct level *level)
{
	return level->leaf ? level->left > 1 : level->follows && level->left_within > 1;
}

static void note_doubt(struct levels *levels)
{
	for (uint32_t i = FIRST; i < levels->n; i++) {
		struct level *level = &levels->level[i];

		level->doubt = levels->level[level->outer].doubt;
		if (is_ambiguous(level) && level->left_last + level->leaf > level->doubt)
			level->doubt = level->left_last + level->leaf;
	}
}

/* How many leaves wait at places where some may be over. */
static uint32_t count_unsure(struct levels *levels, const uint32_t *leaf, const uint32_t *left)
{
	const struct tdt__stacks *stacks = levels->stacks;
	bool doubtful = false;
	uint32_t n = 0;

	note_left(levels);
	note_doubt(levels);
	for (uint32_t i = 0; i < stacks->n; i++) {
		if (left[i] == 0 || levels->level[leaf[i]].doubt == 0)
			continue;
		n += left[i];
		doubtful = doubtful || i + 1 < levels->level[leaf[i]].doubt;
	}
	return doubtful ? n : 0;
}

/* ------------------------------------------------------------------------------------------ */

static void find_over(struct levels *levels, uint32_t *leaf, uint32_t *left, struct tdt__over *over)
{
	make_levels(levels, leaf);
	look_within(levels);
	look_outside(levels);
	over->left = 0;
	for (uint32_t i = 0; i < levels->stacks->n; i++) {
		struct level *level = &levels->level[leaf[i]];

		left[i] = leaf[i] != NONE ? count_left(levels, i, leaf[i]) : 0;
		if (left[i] == 0)
			continue;
		level->left += left[i];
		level->left_last = i + 1;
		over->left += left[i];
	}
	over->unsure = count_unsure(levels, leaf, left);
}

/* The most levels that there can be: of frames, of leaves, and those with a special meaning. */
static size_t most_levels(const struct tdt__stacks *stacks, const struct tdt__name *names)
{
	size_t n = FIRST + 2 * (size_t)stacks->n;

	for (uint32_t i = 0; i < stacks->n; i++)
		if (names[i].symbol != NULL)
			n += names[i].symbol->n;
	return n;
}

int tdt__over_find(const struct tdt__stacks *stacks, const struct tdt__name *names,
		   uint32_t *left, struct tdt__over *over)
{
	struct levels levels = { .stacks = stacks, .names = names };
	size_t most = most_levels(stacks, names);
	uint32_t *leaf;

	if (tdt__index_reserve(&levels.index, most) != 0)
		return -ENOMEM;
	levels.level = calloc(most, sizeof levels.level[0]);
	levels.at = calloc(3 * ((size_t)stacks->n + 1), sizeof levels.at[0]);
	if (levels.level != NULL && levels.at != NULL) {
		levels.path = levels.at + stacks->n;
		leaf = levels.path + stacks->n;
		find_over(&levels, leaf, left, over);
	}
	free(levels.at);
	free(levels.level);
	tdt__index_fini(&levels.index);
	return levels.path != NULL ? 0 : -ENOMEM;
}
