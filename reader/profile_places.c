// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the trees of a profile to its places. */

#include "reader/profile_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "facts/family.h"
#include "reader/trees.h"
#include "symbolize/namer.h"
#include "tree/stacks.h"
#include "tree/trace.h"

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return text != NULL ? tdt__hash_bytes(hash, text, strlen(text)) : hash;
}

static uint32_t hash_place(const struct tdt__profile_place *place)
{
	const struct tdt__profile_group *group = place->group;
	uint64_t hash = TDT__HASH_START;

	hash = tdt__mix(hash, (uint64_t)group->state << 8 | (uint64_t)group->kind);
	hash = tdt__mix(hash, group->name);
	for (const struct tdt_node *node = place->leaf; node != NULL;
	     node = tdt_node_parent(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);

		hash = mix_text(tdt__mix(hash, frame->line), frame->function);
	}
	return tdt__hash_fold(hash);
}

/* Frames without a function and a line are known by their addresses alone. */
static bool reads_the_same(const struct tdt_frame *a, const struct tdt_frame *b)
{
	return a->kind == b->kind && a->cut == b->cut && a->line == b->line &&
	       a->column == b->column && a->inlined == b->inlined &&
	       tdt__same_text(a->function, b->function) && tdt__same_text(a->file, b->file) &&
	       tdt__same_text(a->module, b->module) &&
	       ((a->function != NULL && a->line != 0) || a->pc == b->pc);
}

static bool same_stack(const struct tdt_node *a, const struct tdt_node *b)
{
	while (a != NULL && b != NULL && reads_the_same(tdt_node_frame(a), tdt_node_frame(b))) {
		a = tdt_node_parent(a);
		b = tdt_node_parent(b);
	}
	return a == NULL && b == NULL;
}

static bool same_place(const struct tdt__profile_place *a, const struct tdt__profile_place *b)
{
	return a->group->state == b->group->state && a->group->kind == b->group->kind &&
	       a->group->name == b->group->name && same_stack(a->leaf, b->leaf);
}

static int merge_place(struct tdt__profile_places *places, const struct tdt__profile_place *place)
{
	uint32_t hash = hash_place(place), i;

	TDT__INDEX_EACH (i, &places->place_table.index, hash) {
		if (!same_place(&places->place[i], place))
			continue;
		places->place[i].ns += place->ns;
		places->place[i].looks += place->looks;
		return 0;
	}
	i = tdt__table_add(&places->place_table, hash, place, sizeof *place);
	return i != TDT__INDEX_NONE ? 0 : -ENOMEM;
}

/* The leaves of a tree that are left when its names are known. */
static uint64_t leaves_left(const struct tdt_node *root)
{
	uint64_t leaves = 0;

	for (const struct tdt_node *node = root; node != NULL; node = tdt_node_next(node))
		leaves += tdt_node_leaves(node);
	return leaves;
}

static int add_leaves(struct tdt__profile_places *places, const struct tdt__profile_group *group,
		      const struct tdt_node *root)
{
	double each = group->ns / (double)leaves_left(root);
	int error = 0;

	for (const struct tdt_node *node = root; node != NULL && error == 0;
	     node = tdt_node_next(node)) {
		const struct tdt__profile_place place = { .group = group,
							  .leaf = node,
							  .ns = each * tdt_node_leaves(node),
							  .looks = group->looks };

		if (tdt_node_leaves(node) != 0)
			error = merge_place(places, &place);
	}
	return error;
}

static int add_group(struct tdt__profile_places *places, const struct tdt__profile_sum *sum,
		     const struct tdt__profile_group *group, uint64_t deadline)
{
	const struct tdt__profile_place unknown = {
		.group = group, .ns = group->ns, .looks = group->looks
	};
	const struct tdt_node *root;

	if (group->tree == TDT__PROFILE_NONE)
		return merge_place(places, &unknown);
	root = tdt__trace_root_by(sum->trees.group[group->tree].trace, deadline);
	if (root == NULL)
		return -ENOMEM;
	return leaves_left(root) != 0 ? add_leaves(places, group, root)
				       : merge_place(places, &unknown);
}

static int by_time_spent(const void *a, const void *b)
{
	const struct tdt__profile_place *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

int tdt__profile_places_find(struct tdt__profile_places *places, const struct tdt__profile_sum *sum,
			     uint64_t deadline)
{
	int error = 0;

	*places = (struct tdt__profile_places){ 0 };
	for (size_t i = 0; i < sum->n && error == 0; i++)
		error = add_group(places, sum, &sum->group[i], deadline);
	if (error != 0)
		tdt__profile_places_fini(places);
	else if (places->n > 1)
		qsort(places->place, places->n, sizeof places->place[0], by_time_spent);
	return error;
}

void tdt__profile_places_fini(struct tdt__profile_places *places)
{
	tdt__table_fini(&places->place_table);
}

void tdt__profile_name_entries(struct tdt__profile_sum *sum, struct tdt__modules *modules,
			       uint64_t deadline)
{
	for (uint32_t i = 0; i < sum->n_names; i++) {
		struct tdt__profile_name *name = &sum->name[i];
		const char *function = name->entry != 0
					       ? tdt__namer_function(modules, name->entry, deadline)
					       : NULL;

		if (function != NULL)
			tdt__family_name(name->text, sizeof name->text, function, NULL, 0, '*');
	}
}

void tdt__profile_open_images(const struct tdt__profile_sum *sum, struct tdt__images *images)
{
	for (uint32_t i = 0; i < sum->n_names; i++)
		if (sum->name[i].entry != 0)
			tdt__images_open(images, sum->name[i].entry);
	for (size_t i = 0; i < sum->trees.n; i++)
		tdt__trace_open_images(sum->trees.group[i].trace, images);
}
