// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Folding: of the code that is not the program's own, the reader sees what the program called.
 *
 *	serve::{async} at src/main.rs:21:20
 *	 core::future::poll_fn::PollFn::poll ...          hidden: of the language
 *	  serve::{async}::{closure} at .../select.rs ...  hidden: its lines are those of a macro
 *	   serve::greet::{async} at src/main.rs:17:63
 *	    tokio::time::Sleep at tokio-1.24.2/src/time/sleep.rs:433:36
 *	     tokio::time::sleep::Sleep::poll_elapsed ...  hidden: of the operation above
 *	      core::task::wake::Waker::clone ...          hidden: every leaf does that
 *
 * Own code is kept.  A *region* is a part of the tree without own code, below own code or the task.
 * On each way through a region, its first function of a package is the operation that the program
 * called.  It is shown if no own code is below, or if it leads on to several places: then it gives
 * the tree its shape, as a join does.  (The functions that a macro calls do not count, nor do the
 * futures in which it wraps those of the program, as join! does.)  A function
 * of another module is also shown if it leads to own code alone: sqlite3_exec() to a callback.
 * A package may itself wait for operations of other packages.  The first one of these is shown,
 * too, if the operation above has several leaves: a join of sleeps is a join and a sleep.  (Types
 * that only keep wakers, such as AtomicWaker, do not count: every leaf has one.)  If own
 * code reaches its leaves through several calls that one function makes, such as Timeout::poll,
 * the futures that these calls poll are shown, also those of the same package.
 *
 * Adapters of a package wait for an object that the program gave them: Read for a TcpStream.  The
 * object of an operation with one leaf is the outermost type below it that a trait polls, such as
 * `<TcpStream as AsyncRead>::poll_read`; types that are made of others, such as BufReader<R>, count
 * only if there is no other one.
 *
 * A task may run code of packages only, such as a connection of hyper.  Then its outermost function
 * of a package is shown, and the first one of another package below.
 *
 * If a way has no function of a package, its operation is the first function of the language, such
 * as std::thread::sleep or read(), unless it only clones the waker, or leads to a call of tdt.
 * view.c decides on plumbing of tdt.
 *
 * Without debug information nothing tells own code.  Then only the wrappers of the crate are
 * hidden, which their names tell.
 *
 * The ids of a node's children are greater than the node's own id: see view.c.
 */

#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "origin.h"
#include "tree/tree.h"

enum {
	BUILDS = 8, /* in so many directories the program may be built: a tree has few */
	CALLED = 1, /* the operation that the program called */
	INNER = 2   /* an operation of another package that it waits for */
};

struct knot {
	const struct tdt_frame *frame;
	uint32_t parent;
	uint32_t children;
	uint32_t first_child;
	uint64_t leaves;     /* here and below */
	uint32_t ways;       /* that lead on in the region: to own code or to leaves */
	uint32_t above;      /* the nearest own code above; 0: the task */
	uint32_t operation;  /* of a node in a region: the innermost operation above or here */
	uint32_t level;      /* of that operation; 0: none */
	enum tdt__origin origin;
	uint32_t twin;       /* the first child of the parent, if it is of the same function */
	uint64_t twin_leaves; /* of all children of that function without own code below */
	bool own;
	bool macro;          /* a closure in own code that a macro of a package wrote */
	bool own_below;
	bool package_below;  /* in the region */
	bool future_below;   /* in the region, below here, a package polls a future */
	bool clone_below;    /* in the region, the waker is cloned here or below */
	bool tdt_below;      /* in the region */
};

struct folding {
	struct knot *knot;
	struct tdt__folded *folded;
	uint32_t n;
	/* Frames of the program that were compiled in different directories. */
	const struct tdt_frame *built[BUILDS];
	uint32_t builds;
	bool packages_only; /* none of the tree is own code, and the origin of all is known */
};

/* --- Own code ------------------------------------------------------------------------------ */

static void note_build(struct folding *folding, const struct tdt_frame *frame)
{
	for (uint32_t i = 0; i < folding->builds; i++)
		if (tdt__same_text(folding->built[i]->directory, frame->directory))
			return;
	if (folding->builds < BUILDS)
		folding->built[folding->builds++] = frame;
}

static bool lies_with_program(const struct folding *folding, const struct tdt_frame *frame)
{
	for (uint32_t i = 0; i < folding->builds; i++)
		if (tdt__lies_with(frame, folding->built[i]))
			return true;
	return false;
}

static bool is_own(const struct folding *folding, const struct knot *knot)
{
	switch (knot->origin) {
	case TDT__ORIGIN_PROGRAM:
	case TDT__ORIGIN_UNKNOWN:
		return true;
	case TDT__ORIGIN_LIBRARY:
		return lies_with_program(folding, knot->frame);
	default:
		return false;
	}
}

/* Whether the function of `knot` is in the function of own code above: `serve` + `::{closure}`. */
static bool is_in_own_function(const struct folding *folding, const struct knot *knot)
{
	const char *outer = folding->knot[knot->above].frame->function;
	const char *inner = knot->frame->function;
	size_t n = outer != NULL ? strlen(outer) : 0;

	return n != 0 && inner != NULL && strncmp(inner, outer, n) == 0 &&
	       strncmp(inner + n, "::", 2) == 0;
}

/* A function without a source that the language's own code calls is of the language, too. */
static void inherit_language(const struct folding *folding, struct knot *knot)
{
	const struct knot *parent = &folding->knot[knot->parent];

	if (knot->origin == TDT__ORIGIN_PACKAGE && knot->frame->file == NULL &&
	    parent->origin == TDT__ORIGIN_LANGUAGE && parent->frame->module != NULL &&
	    knot->frame->module != NULL &&
	    strcmp(parent->frame->module, knot->frame->module) == 0)
		knot->origin = TDT__ORIGIN_LANGUAGE;
}

/* Returns whether there is own code. */
static bool find_own(const struct folding *folding)
{
	bool any = false;

	for (uint32_t i = 1; i < folding->n; i++) {
		struct knot *knot = &folding->knot[i];
		const struct knot *parent = &folding->knot[knot->parent];

		knot->above = parent->own && !parent->macro ? knot->parent : parent->above;
		inherit_language(folding, knot);
		knot->own = is_own(folding, knot);
		knot->macro = knot->origin == TDT__ORIGIN_PACKAGE && knot->above != 0 &&
			      is_in_own_function(folding, knot);
		any |= knot->own && knot->origin <= TDT__ORIGIN_LIBRARY;
		knot->own |= knot->macro;
	}
	return any;
}

/*
 * Whether nothing of a tree without own code may be own code after all: libraries may be the
 * program's, and code without debug information may be anybody's.
 */
static bool is_of_packages_only(const struct folding *folding)
{
	for (uint32_t i = 1; i < folding->n; i++) {
		const struct knot *knot = &folding->knot[i];

		if (knot->origin == TDT__ORIGIN_LIBRARY || knot->origin == TDT__ORIGIN_UNKNOWN ||
		    (knot->origin == TDT__ORIGIN_PACKAGE && knot->frame->file == NULL))
			return false;
	}
	return true;
}

/* --- Regions ------------------------------------------------------------------------------- */

static bool is_of_package(const struct knot *knot)
{
	return knot->origin == TDT__ORIGIN_PACKAGE || knot->origin == TDT__ORIGIN_LIBRARY;
}

static bool polls_future(const struct knot *knot)
{
	return knot->frame->function != NULL && tdt__polls_future(knot->frame->function);
}

static void look_down(const struct folding *folding)
{
	for (uint32_t i = folding->n; i-- > 1;) {
		struct knot *knot = &folding->knot[i], *parent = &folding->knot[knot->parent];

		parent->leaves += knot->leaves;
		parent->own_below |= knot->own || knot->own_below;
		knot->clone_below |= tdt__clones_waker(knot->frame);
		if (knot->children == 0 && knot->ways == 0)
			knot->ways = 1;
		parent->ways += knot->own ? 1 : knot->ways;
		if (knot->own)
			continue;
		parent->package_below |= is_of_package(knot) || knot->package_below;
		parent->future_below |=
		    (is_of_package(knot) && polls_future(knot)) || knot->future_below;
		parent->clone_below |= knot->clone_below;
		parent->tdt_below |= knot->origin == TDT__ORIGIN_TDT || knot->tdt_below;
	}
}

static bool has_function_of(const struct knot *a, const struct knot *b)
{
	return a->frame->function != NULL && tdt__same_text(a->frame->function, b->frame->function);
}

static void find_twins(const struct folding *folding)
{
	for (uint32_t i = folding->n; i-- > 1;)
		folding->knot[folding->knot[i].parent].first_child = i;
	for (uint32_t i = 1; i < folding->n; i++) {
		struct knot *knot = &folding->knot[i];
		uint32_t first = folding->knot[knot->parent].first_child;

		knot->twin = has_function_of(knot, &folding->knot[first]) ? first : i;
		if (!knot->own_below)
			folding->knot[knot->twin].twin_leaves += knot->leaves;
	}
}

/* Whether an operation that is part of the operation `above` begins. */
static bool begins_inner_operation(const struct folding *folding, const struct knot *knot,
				   const struct knot *above)
{
	const char *function = knot->frame->function;

	if (!is_of_package(knot) || (function != NULL && tdt__keeps_wakers(function)))
		return false;
	/* The operation above waits at several places for one thing each. */
	if (folding->knot[above->twin].twin_leaves > above->leaves && polls_future(knot))
		return true;
	return (above->leaves > 1 || folding->packages_only) &&
	       !tdt__same_package(tdt__package(knot->frame), tdt__package(above->frame));
}

/* Whether a macro of a package wrapped a future of the program in this one. */
static bool is_wrapped_by_macro(const struct folding *folding, const struct knot *knot)
{
	return folding->knot[knot->parent].macro && knot->future_below &&
	       knot->frame->function != NULL && tdt__wraps_future(knot->frame->function);
}

static bool begins_operation(const struct folding *folding, const struct knot *knot)
{
	if (knot->level == CALLED)
		return begins_inner_operation(folding, knot, &folding->knot[knot->operation]);
	if (knot->level == INNER)
		return false;
	if (knot->origin == TDT__ORIGIN_BINDING)
		return knot->package_below;
	if (knot->origin == TDT__ORIGIN_LANGUAGE)
		return !knot->package_below && !knot->own_below && !knot->clone_below &&
		       !knot->tdt_below;
	return is_of_package(knot) && !is_wrapped_by_macro(folding, knot);
}

/*
 * Whether an operation is shown between own functions: one that branches, or a function of another
 * module that own code called, not one that was compiled into its own.
 */
static bool matters_between(const struct folding *folding, const struct knot *knot)
{
	const char *module = knot->frame->module;
	const char *own = folding->knot[knot->above].frame->module;

	return !folding->knot[knot->parent].macro &&
	       (knot->ways > 1 || (module != NULL && own != NULL && strcmp(module, own) != 0));
}

static enum tdt__fold fold_knot(const struct folding *folding, struct knot *knot, uint32_t id)
{
	const struct knot *parent = &folding->knot[knot->parent];

	if (!parent->own) {
		knot->operation = parent->operation;
		knot->level = parent->level;
	}
	if (knot->origin == TDT__ORIGIN_TDT)
		return TDT__FOLD_KEEP;
	if (!begins_operation(folding, knot))
		return TDT__FOLD_HIDE;
	knot->operation = id;
	knot->level++;
	return !knot->own_below || matters_between(folding, knot) ? TDT__FOLD_OPERATION
								   : TDT__FOLD_HIDE;
}

static void note_object(const struct folding *folding, const struct knot *knot, uint32_t id)
{
	struct tdt__folded *operation = &folding->folded[knot->operation];
	const struct tdt__folded *here = &folding->folded[id];

	if (operation->fold == TDT__FOLD_OPERATION && knot->operation != id &&
	    folding->knot[knot->operation].leaves == 1 && is_of_package(knot) &&
	    here->polled > operation->has) {
		operation->has = here->polled;
		operation->object = here->frame;
	}
}

static void fold_regions(const struct folding *folding)
{
	for (uint32_t i = 1; i < folding->n; i++) {
		struct knot *knot = &folding->knot[i];

		if (knot->macro) {
			folding->folded[i].fold = TDT__FOLD_HIDE;
		} else if (!knot->own) {
			folding->folded[i].fold = fold_knot(folding, knot, i);
			note_object(folding, knot, i);
		}
	}
}

/* --- All of a tree ------------------------------------------------------------------------- */

static bool fill_knots(struct folding *folding, const struct tdt_node *root)
{
	folding->knot = calloc(folding->n, sizeof(*folding->knot));
	if (folding->knot == NULL)
		return false;
	folding->knot[0].frame = tdt_node_frame(root);
	for (const struct tdt_node *node = tdt_node_next(root); node != NULL;
	     node = tdt_node_next(node)) {
		struct knot *knot = &folding->knot[tdt_node_id(node)];

		knot->frame = tdt_node_frame(node);
		knot->parent = tdt_node_id(tdt_node_parent(node));
		knot->leaves = tdt_node_leaves(node);
		knot->ways = knot->leaves != 0;
		knot->origin = folding->folded[tdt_node_id(node)].origin;
		folding->knot[knot->parent].children++;
		if (knot->origin == TDT__ORIGIN_PROGRAM)
			note_build(folding, knot->frame);
	}
	return true;
}

/* A library counts as own if there is no program, as in a plugin's task. */
static void note_own(const struct folding *folding, bool any_own)
{
	for (uint32_t i = 1; i < folding->n; i++) {
		const struct knot *knot = &folding->knot[i];

		folding->folded[i].own = knot->own || knot->origin == TDT__ORIGIN_TDT ||
					 (!any_own && knot->origin == TDT__ORIGIN_LIBRARY);
	}
}

static bool fold_tree(struct folding *folding, const struct tdt_node *root, bool full)
{
	bool enough = fill_knots(folding, root), any_own;

	if (enough) {
		any_own = find_own(folding);
		folding->packages_only = !any_own && is_of_packages_only(folding);
		note_own(folding, any_own);
		if ((any_own || folding->packages_only) && !full) {
			look_down(folding);
			find_twins(folding);
			fold_regions(folding);
		} else if (!full) {
			for (uint32_t i = 1; i < folding->n; i++)
				if (tdt__is_crates_wrapper(folding->knot[i].frame))
					folding->folded[i].fold = TDT__FOLD_HIDE;
		}
	}
	free(folding->knot);
	return enough;
}

/* Find out whose code each node is, and whether all is own.  False: no memory. */
static bool find_origins(struct tdt__folded *folded, const struct tdt_node *root,
			 struct tdt__frames *frames, bool *all_own)
{
	*all_own = true;
	for (const struct tdt_node *node = tdt_node_next(root); node != NULL;
	     node = tdt_node_next(node)) {
		struct tdt__folded *its = &folded[tdt_node_id(node)];

		its->frame = tdt__frames_note(frames, tdt_node_frame(node));
		if (its->frame == UINT32_MAX)
			return false;
		its->origin = frames->seen[its->frame].origin;
		its->polled = frames->seen[its->frame].polled;
		its->hides_futures = frames->seen[its->frame].hides_futures;
		its->own = its->origin == TDT__ORIGIN_PROGRAM || its->origin == TDT__ORIGIN_TDT ||
			   its->origin == TDT__ORIGIN_UNKNOWN;
		*all_own = *all_own && its->own;
	}
	return true;
}

struct tdt__folded *tdt__fold(const struct tdt_node *root, struct tdt__frames *frames, bool full)
{
	struct folding folding = { .n = root->tree->n };
	bool all_own;

	folding.folded = calloc(folding.n, sizeof(*folding.folded));
	if (folding.folded != NULL && find_origins(folding.folded, root, frames, &all_own) &&
	    (all_own || fold_tree(&folding, root, full)))
		return folding.folded;
	free(folding.folded);
	return NULL;
}
