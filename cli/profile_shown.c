// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The frames of a profile's stacks that are shown: the same that a dump shows. */

#include <errno.h>
#include <stdlib.h>

#include "cli/profile.h"
#include "tree-printer/view.h"

int profile_shown_init(struct profile_shown *shown, const struct profile_result *result, bool folds)
{
	*shown = (struct profile_shown){ .result = result,
					 .folds = folds,
					 .frames.options = result->print };
	shown->tree = calloc(result->profile->sum.trees.n + 1, sizeof shown->tree[0]);
	return shown->tree != NULL ? 0 : -ENOMEM;
}

void profile_shown_fini(struct profile_shown *shown)
{
	for (size_t i = 0; shown->tree != NULL && i < shown->result->profile->sum.trees.n; i++) {
		free(shown->tree[i].shown);
		free(shown->tree[i].folded);
	}
	free(shown->tree);
	tdt__frames_fini(&shown->frames);
}

static const struct tdt_node *root_of(const struct tdt_node *node)
{
	while (tdt_node_parent(node) != NULL)
		node = tdt_node_parent(node);
	return node;
}

static uint32_t count_nodes(const struct tdt_node *root)
{
	uint32_t n = 0;

	for (const struct tdt_node *node = root; node != NULL; node = tdt_node_next(node))
		n++;
	return n;
}

/* Mark the nodes that have a row in the view. */
static int mark_rows(struct profile_tree *tree, const struct tdt_node *root,
		      const struct tdt_print_options *options)
{
	struct tdt__view view;
	int error = tdt__view_make(&view, root, options, tree->folded);

	if (error != 0)
		return error;
	tree->shown = calloc(count_nodes(root), sizeof tree->shown[0]);
	for (uint32_t i = 1; i < view.n && tree->shown != NULL; i++)
		if (view.row[i].node != NULL)
			tree->shown[tdt_node_id(view.row[i].node)] = true;
	free(view.row);
	return tree->shown != NULL ? 0 : -ENOMEM;
}

int profile_shown_tree(struct profile_shown *shown, const struct tdt__profile_place *place,
		       const struct profile_tree **tree)
{
	struct profile_tree *own = &shown->tree[place->group->tree];
	const struct tdt_node *root = root_of(place->leaf);

	*tree = own;
	if (own->shown != NULL)
		return 0;
	if (shown->folds && own->folded == NULL) {
		own->folded = tdt__fold(root, &shown->frames, shown->result->print->full);
		if (own->folded == NULL)
			return -ENOMEM;
	}
	return mark_rows(own, root, shown->result->print);
}

const struct tdt_node *profile_next_shown(const struct profile_tree *tree,
					  const struct tdt_node *node)
{
	while (node != NULL && !tree->shown[tdt_node_id(node)])
		node = tdt_node_parent(node);
	return node;
}
