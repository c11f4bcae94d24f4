// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Rings of tasks: Tarjan's strongly connected components, and in each of them a breadth-first
 * search for a short way back to its start.  Chains of tasks may be long, so nothing here recurses.
 *
 * The tasks of closed sets are found by taking away the tasks that can't be in one, then the tasks
 * that wait for those, and so on.
 */

#include "tree/cycles.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/index.h"

#define NONE TDT__INDEX_NONE

struct node {
	const struct tdt_task_info *info;
	uint32_t first_edge; /* of the edges that lead from it, which lie one after the other */
	uint32_t edges;
	bool named;  /* no other task has its id */
	bool closed; /* not known to be outside of all closed sets */
	bool by_record; /* of this task, or of one that it leads to, only the record is known */

	/* Of Tarjan's algorithm. */
	uint32_t order; /* in which it was first met; NONE: not yet */
	uint32_t low;   /* the lowest order of the nodes on the stack that it leads to */
	uint32_t at;    /* the edge to follow next */
	uint32_t up;    /* the node from which it was met */
	uint32_t component; /* NONE: on the stack, or not met */

	/* Of a breadth-first search. */
	uint32_t search; /* the number of the last search that met it; 0: none */
	uint32_t before; /* the node from which it was met */
};

struct graph {
	struct node *node; /* tasks that wait for tasks */
	uint32_t n;
	uint32_t *edge; /* the node to which each edge leads */
	struct tdt__index by_id; /* of the nodes */
	uint32_t *stack;     /* Tarjan's stack, and later the queue of searches */
	uint32_t *members;   /* nodes, component by component */
	uint32_t components;
	uint32_t searches;
	size_t effort; /* edges that may still be followed in search of shorter rings */
};

/* --- The graph ------------------------------------------------------------------ */

/* The node of a task with this id, or NONE. */
static uint32_t find_id(const struct graph *graph, uint64_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &graph->by_id, tdt__hash_id(id))
		if (graph->node[i].info->id == id)
			break;
	return i;
}

static bool waits_for_tasks(const struct tdt_task_info *info)
{
	if (info->state != TDT_TASK_WAITING)
		return false;
	for (uint32_t i = 0; i < info->n_waits; i++)
		if (info->waits[i]->owner != 0)
			return true;
	return false;
}

/* Make the nodes, and count in `*edges` how many edges there can be.  False: no memory. */
static bool add_nodes(struct graph *graph, const struct tdt_task_info *const *tasks, size_t n,
		      size_t *edges)
{
	size_t nodes = 0;

	*edges = 0;
	for (size_t i = 0; i < n; i++) {
		if (!waits_for_tasks(tasks[i]))
			continue;
		nodes++;
		*edges += tasks[i]->n_waits;
	}
	if (nodes >= NONE / 2 || *edges >= NONE)
		return false;
	graph->node = calloc(nodes + 1, sizeof graph->node[0]);
	if (graph->node == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		if (waits_for_tasks(tasks[i]))
			graph->node[graph->n++] = (struct node){ .info = tasks[i],
								 .order = NONE,
								 .component = NONE };
	return true;
}

/*
 * Find out which nodes are named.  An id of several tasks names none of them, even if only one of
 * them is a node, so this counts all tasks that have the id of a node.  If several nodes have one
 * id, one of them counts all these tasks, which are several, and the other nodes count none.
 */
static bool add_ids(struct graph *graph, const struct tdt_task_info *const *tasks, size_t n)
{
	uint32_t *times = calloc(graph->n + 1, sizeof *times);

	if (times == NULL || tdt__index_reserve(&graph->by_id, graph->n) != 0) {
		free(times);
		return false;
	}
	/* Many nodes with one id would make the index slow; the first one stands for them. */
	for (uint32_t i = 0; i < graph->n; i++)
		if (find_id(graph, graph->node[i].info->id) == NONE)
			tdt__index_add(&graph->by_id, tdt__hash_id(graph->node[i].info->id), i);
	for (size_t i = 0; i < n; i++) {
		uint32_t found = find_id(graph, tasks[i]->id);

		if (found != NONE)
			times[found]++;
	}
	for (uint32_t i = 0; i < graph->n; i++)
		graph->node[i].named = times[i] == 1;
	free(times);
	return true;
}

/* The node that an id names, or NONE. */
static uint32_t find_named_node(const struct graph *graph, uint64_t id)
{
	uint32_t found = find_id(graph, id);

	return found != NONE && graph->node[found].named ? found : NONE;
}

/* Whether each leaf of the task has reported what it waits for. */
static bool has_reported_all(const struct tdt_task_info *info, enum tdt__proof proof)
{
	if (proof == TDT__BY_RECORD || proof == TDT__BY_TREE)
		return info->n_waits == 1;
	return proof == TDT__BY_POLL && info->leaves > 0 && info->n_waits == info->leaves &&
	       info->leaves_elsewhere == 0 && info->leaves_lost == 0;
}

static bool add_edges(struct graph *graph, size_t most, tdt__proof_fn *proof_of)
{
	uint32_t n = 0;

	graph->edge = malloc((most + 1) * sizeof graph->edge[0]);
	if (graph->edge == NULL)
		return false;
	for (uint32_t i = 0; i < graph->n; i++) {
		struct node *node = &graph->node[i];
		const struct tdt_task_info *info = node->info;

		node->first_edge = n;
		for (uint32_t wait = 0; wait < info->n_waits; wait++) {
			uint32_t to = info->waits[wait]->owner != 0
					  ? find_named_node(graph, info->waits[wait]->owner)
					  : NONE;

			if (to != NONE)
				graph->edge[n++] = to;
		}
		node->edges = n - node->first_edge;
		if (node->edges == info->n_waits) {
			enum tdt__proof proof = proof_of(info);

			node->closed = has_reported_all(info, proof);
			node->by_record = proof == TDT__BY_RECORD;
		}
	}
	return true;
}

/*
 * Take out of the closed sets each task that waits for a task in none of them.  For that the edges
 * are reversed.
 */
static bool open_sets(struct graph *graph)
{
	uint32_t edges =
	    graph->n > 0 ? graph->node[graph->n - 1].first_edge + graph->node[graph->n - 1].edges
			 : 0;
	uint32_t *first = calloc((size_t)graph->n + 2, sizeof *first),
		 *from = malloc((edges + 1u) * sizeof *from);
	uint32_t todo = 0;

	if (first == NULL || from == NULL) {
		free(first);
		free(from);
		return false;
	}
	for (uint32_t i = 0; i < edges; i++)
		first[graph->edge[i] + 2]++;
	for (uint32_t i = 0; i < graph->n; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t i = 0; i < graph->n; i++)
		for (uint32_t edge = 0; edge < graph->node[i].edges; edge++)
			from[first[graph->edge[graph->node[i].first_edge + edge] + 1]++] = i;
	for (uint32_t i = 0; i < graph->n; i++)
		if (!graph->node[i].closed)
			graph->stack[todo++] = i;
	while (todo > 0) {
		uint32_t open = graph->stack[--todo];

		for (uint32_t i = first[open]; i < first[open + 1]; i++) {
			struct node *node = &graph->node[from[i]];

			if (node->closed)
				graph->stack[todo++] = from[i];
			node->closed = false;
		}
	}
	free(first);
	free(from);
	return true;
}

/* False: no memory, or no task waits for a task. */
static bool build(struct graph *graph, const struct tdt_task_info *const *tasks, size_t n,
		  tdt__proof_fn *proof)
{
	size_t edges;

	if (!add_nodes(graph, tasks, n, &edges) || graph->n == 0)
		return false;
	graph->stack = malloc((graph->n + 1u) * sizeof graph->stack[0]);
	graph->members = malloc((graph->n + 1u) * sizeof graph->members[0]);
	graph->effort = 8 * (edges + graph->n);
	return graph->stack != NULL && graph->members != NULL && add_ids(graph, tasks, n) &&
	       add_edges(graph, edges, proof) && open_sets(graph);
}

static void graph_fini(struct graph *graph)
{
	free(graph->members);
	free(graph->stack);
	tdt__index_fini(&graph->by_id);
	free(graph->edge);
	free(graph->node);
}

/* --- Components ------------------------------------------------------------------- */

/* All nodes from `node` to the top of the stack are a component. */
static void pop_component(struct graph *graph, uint32_t node, uint32_t *on_stack, uint32_t *done)
{
	uint32_t member;

	do {
		member = graph->stack[--*on_stack];
		graph->node[member].component = graph->components;
		graph->members[(*done)++] = member;
	} while (member != node);
	graph->components++;
}

static void find_components(struct graph *graph)
{
	uint32_t met = 0, on_stack = 0, done = 0;

	for (uint32_t start = 0; start < graph->n; start++) {
		uint32_t current = graph->node[start].order == NONE ? start : NONE;
		uint32_t from = NONE;

		while (current != NONE) {
			struct node *node = &graph->node[current];
			uint32_t to;

			if (node->order == NONE) {
				node->order = node->low = met++;
				node->up = from;
				graph->stack[on_stack++] = current;
			}
			if (node->at < node->edges) {
				to = graph->edge[node->first_edge + node->at++];
				if (graph->node[to].order == NONE) {
					from = current;
					current = to;
				} else if (graph->node[to].component == NONE &&
					   graph->node[to].order < node->low) {
					node->low = graph->node[to].order;
				}
				continue;
			}
			if (node->low == node->order)
				pop_component(graph, current, &on_stack, &done);
			current = node->up;
			if (current != NONE && node->low < graph->node[current].low)
				graph->node[current].low = node->low;
		}
	}
}

/* --- Rings -------------------------------------------------------------------------- */

/*
 * The length of the shortest ring through `start`, along which `before` then leads back.  0: none
 * is shorter than `limit`.
 */
static uint32_t search(struct graph *graph, uint32_t start, uint32_t limit)
{
	uint32_t number = ++graph->searches, head = 0, tail = 0, length = 1, end_of_level;

	graph->stack[tail++] = start;
	for (; head < tail && length < limit; length++) {
		for (end_of_level = tail; head < end_of_level; head++) {
			const struct node *node = &graph->node[graph->stack[head]];

			for (uint32_t i = 0; i < node->edges; i++) {
				uint32_t to = graph->edge[node->first_edge + i];

				graph->effort -= graph->effort > 0;
				if (to != start && (graph->node[to].search == number ||
						    graph->node[to].component != node->component))
					continue;
				graph->node[to].before = graph->stack[head];
				if (to == start)
					return length;
				graph->node[to].search = number;
				graph->stack[tail++] = to;
			}
		}
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = (*(const struct tdt_task_info *const *)a)->id,
		 y = (*(const struct tdt_task_info *const *)b)->id;

	return (x > y) - (x < y);
}

/*
 * Write the ring through `start` that the last search has found into `ring`, the smallest id first.
 */
static void write_ring(const struct graph *graph, const struct tdt_task_info **ring,
		       uint32_t start, uint32_t n)
{
	uint32_t node = start, smallest = start;

	for (uint32_t i = 0; i < n; i++) {
		node = graph->node[node].before;
		if (graph->node[node].info->id < graph->node[smallest].info->id)
			smallest = node;
	}
	node = smallest;
	ring[0] = graph->node[node].info;
	for (uint32_t i = n; i-- > 1;) {
		node = graph->node[node].before;
		ring[i] = graph->node[node].info;
	}
}

/*
 * A short ring of the component of the `n` nodes at `members`: the shortest ring through the first
 * node that has one; and then, as long as that does not take too much time for all components
 * together, the shortest of all.
 */
static uint32_t find_ring(struct graph *graph, const uint32_t *members, uint32_t n,
			  const struct tdt_task_info **ring)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < n && (best == 0 || (best > 1 && graph->effort > 0)); i++) {
		uint32_t length = search(graph, members[i], best != 0 ? best : n + 1);

		if (length == 0)
			continue;
		best = length;
		write_ring(graph, ring, members[i], length);
	}
	return best;
}

static int by_seriousness(const void *a, const void *b)
{
	const struct tdt_snapshot_cycle *x = a, *y = b;

	if (x->deadlock != y->deadlock || x->unproven != y->unproven)
		return x->deadlock || (x->unproven && !y->deadlock) ? -1 : 1;
	return by_id(&x->tasks[0], &y->tasks[0]);
}

/*
 * Whether the closed set that the component of these nodes leads to rests on a record.  The
 * components that it leads to are done before.
 */
static bool rests_on_records(struct graph *graph, const uint32_t *members, uint32_t n)
{
	bool by_record = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = &graph->node[members[i]];

		by_record |= node->by_record;
		for (uint32_t edge = 0; edge < node->edges; edge++)
			by_record |= graph->node[graph->edge[node->first_edge + edge]].by_record;
	}
	for (uint32_t i = 0; i < n; i++)
		graph->node[members[i]].by_record = by_record;
	return by_record;
}

/*
 * Find a ring in each component that has one.  All rings together have no more tasks than there are
 * nodes.
 */
static void find_rings(struct graph *graph, struct tdt__cycles *cycles)
{
	uint32_t n, begin = 0;
	size_t used = 0;
	bool closed, records;

	for (uint32_t end = 0; begin < graph->n; begin = end) {
		uint32_t component = graph->node[graph->members[begin]].component;

		for (end = begin;
		     end < graph->n && graph->node[graph->members[end]].component == component;
		     end++)
			;
		records = rests_on_records(graph, &graph->members[begin], end - begin);
		n = find_ring(graph, &graph->members[begin], end - begin, &cycles->tasks[used]);
		if (n == 0)
			continue;
		closed = graph->node[graph->members[begin]].closed;
		cycles->cycle[cycles->n++] = (struct tdt_snapshot_cycle){
			.size = sizeof(struct tdt_snapshot_cycle),
			.tasks = &cycles->tasks[used],
			.n = n,
			.deadlock = closed && !records,
			.unproven = closed && records,
		};
		used += n;
	}
	qsort(cycles->cycle, cycles->n, sizeof cycles->cycle[0], by_seriousness);
	for (size_t i = 0; i < cycles->n; i++)
		cycles->list[i] = &cycles->cycle[i];
}

void tdt__cycles_find(struct tdt__cycles *cycles, const struct tdt_task_info *const *tasks,
		      size_t n, tdt__proof_fn *proof)
{
	struct graph graph = { 0 };

	*cycles = (struct tdt__cycles){ 0 };
	if (build(&graph, tasks, n, proof)) {
		find_components(&graph);
		/* Each component has at most one ring here. */
		cycles->cycle = malloc(graph.components * sizeof cycles->cycle[0]);
		cycles->list = malloc(graph.components * sizeof(struct tdt_snapshot_cycle *));
		cycles->tasks = malloc(graph.n * sizeof(struct tdt_task_info *));
		if (cycles->cycle != NULL && cycles->list != NULL && cycles->tasks != NULL)
			find_rings(&graph, cycles);
	}
	graph_fini(&graph);
}

void tdt__cycles_fini(struct tdt__cycles *cycles)
{
	free(cycles->cycle);
	free(cycles->list);
	free(cycles->tasks);
}
