// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Requesting trees.  The answers are kept as they came.  When the records have been read, too, each
 * task is looked up among the answers by the address of its record.
 */

#include "reader/fresh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/array.h"

struct tree_request {
	struct tdt__answers *answers;
	struct tdt__door *door;
	uint32_t most; /* answers that may still come */
	bool unseen;   /* as in struct tdt__task_choice */
	struct tdt__trouble *trouble;
};

static int bad_answer(struct tdt__trouble *trouble)
{
	return tdt__trouble(trouble, -EPROTO,
			    "the process sends trees that make no sense, or too many of them");
}

/* Whether the message is a tree that has its entries and waits in it, where it says. */
static bool is_whole_tree(const struct tdt_outside_tree *tree)
{
	return tree->header.size >= sizeof *tree && tree->header.error == 0 &&
	       tree->answer >= TDT_OUTSIDE_FRESH && tree->answer <= TDT_OUTSIDE_ENDED &&
	       tree->entries >= sizeof *tree && tree->entries % 8 == 0 &&
	       tree->wait_size >= sizeof(struct tdt_outside_wait) && tree->wait_size % 8 == 0 &&
	       tree->header.size ==
		       tree->entries +
			       (uint64_t)tree->tree.n * sizeof(struct tdt_registry_entry) +
			       (uint64_t)tree->n_waits * tree->wait_size;
}

static int keep_answer(struct tree_request *request)
{
	const struct tdt_outside_tree *tree = (const void *)request->door->message;
	struct tdt__answers *answers = request->answers;
	struct tdt_outside_tree *copy;

	if (!is_whole_tree(tree) || request->most == 0 ||
	    answers->bytes > TDT__ANSWERS_MAX)
		return bad_answer(request->trouble);
	request->most--;
	answers->bytes += tree->header.size;
	copy = tdt__arena_take(&answers->arena, tree->header.size);
	if (copy == NULL || tdt__table_add(&answers->answer_table, tdt__hash_id(tree->record),
					   &copy, sizeof copy) == TDT__INDEX_NONE)
		return tdt__trouble(request->trouble, -ENOMEM,
				    "there is not enough memory for all answers");
	memcpy(copy, tree, tree->header.size);
	return 0;
}

static int take_end(struct tree_request *request)
{
	const struct tdt_outside_done *done = (const void *)request->door->message;

	if (done->header.size < sizeof *done)
		return bad_answer(request->trouble);
	request->answers->left_out += done->left_out;
	if (done->header.error != 0)
		return tdt__trouble(request->trouble, -done->header.error,
				    "not all trees were received: %s",
				    strerror(done->header.error));
	return 0;
}

static int receive_trees(struct tree_request *request)
{
	int kind = TDT_OUTSIDE_TREE, error = 0;

	while (error == 0 && kind != TDT_OUTSIDE_TREES) {
		kind = tdt__door_receive(request->door, request->trouble);
		if (kind == TDT_OUTSIDE_TREE)
			error = keep_answer(request);
		else if (kind == TDT_OUTSIDE_TREES)
			error = take_end(request);
		else
			error = kind < 0 ? kind : bad_answer(request->trouble);
	}
	return error;
}

/* Make one request: for `n_ids` tasks, or for all if that is 0. */
static int request_some(struct tree_request *request, const uint64_t *ids, size_t n_ids,
			uint64_t ns)
{
	struct tdt_outside_trees trees = { .timeout_ns = ns,
					   .most = request->most,
					   .n_ids = (uint16_t)n_ids,
					   .unseen = request->unseen };
	int error;

	if (n_ids != 0)
		memcpy(trees.ids, ids, n_ids * sizeof ids[0]);
	error = tdt__door_send(request->door, &trees.header, TDT_OUTSIDE_TREES, sizeof trees, ns,
			       request->trouble);
	return error == 0 ? receive_trees(request) : error;
}

int tdt__answers_request(struct tdt__answers *answers, struct tdt__door *door,
			 const struct tdt__task_choice *choice, uint32_t most, uint64_t ns,
			 struct tdt__trouble *trouble)
{
	struct tree_request request = {
		.answers = answers,
		.door = door,
		.most = most,
		.unseen = choice->unseen,
		.trouble = trouble,
	};
	size_t chosen = choice->n_ids < most ? choice->n_ids : most;
	int error = 0;

	if (choice->n_ids == 0)
		return request_some(&request, NULL, 0, ns);
	answers->left_out += choice->n_ids - chosen;
	for (size_t at = 0; at < chosen && error == 0; at += TDT_OUTSIDE_IDS) {
		size_t n = chosen - at < TDT_OUTSIDE_IDS ? chosen - at : TDT_OUTSIDE_IDS;

		error = request_some(&request, choice->ids + at, n, ns);
	}
	return error;
}

void tdt__answers_fini(struct tdt__answers *answers)
{
	tdt__table_fini(&answers->answer_table);
	tdt__arena_fini(&answers->arena);
	*answers = (struct tdt__answers){ 0 };
}

const struct tdt_outside_tree *tdt__answers_find(const struct tdt__answers *answers,
						 const struct tdt__seen *seen)
{
	uint32_t hash = tdt__hash_id(seen->address), i;

	TDT__INDEX_EACH (i, &answers->answer_table.index, hash)
		if (answers->answer[i]->record == seen->address &&
		    answers->answer[i]->id == seen->record.id)
			return answers->answer[i];
	return NULL;
}

int tdt__answer_tree(const struct tdt_outside_tree *answer, struct tdt__tree_reader *reader,
		     struct tdt__read_tree *to)
{
	const struct tdt_registry_entry *entry = tdt__answer_entries(answer);

	if (answer->answer != TDT_OUTSIDE_FRESH || answer->outcome != TDT_PENDING)
		return -ENODATA;
	for (uint32_t i = 0; i < answer->tree.n; i++)
		if (entry[i].pc == 0)
			return -ENODATA;
	return tdt__tree_take(reader, &answer->tree, entry, answer->tree.n, to);
}
