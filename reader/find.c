// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The search for registries.  Each lies in the data of a module, so where a file is mapped and may
 * be written to.  Usual mappings are searched first, and larger ones only if no registry lies
 * there: to read them could take long, and could make the kernel read a database from its disk.
 */

#include "reader/find.h"

#include <stdlib.h>
#include <string.h>

#include "reader/core.h"

#define MOST_SEARCHED (UINT64_C(1) << 30) /* bytes in all */
#define USUAL_SIZE (UINT64_C(16) << 20)   /* of a mapping that may have a registry */
#define MOST_STRIDE 65536

struct registry_search {
	const struct tdt__target *target;
	struct tdt__found *found;
	size_t n;
	uint64_t most; /* bytes that may still be searched */
};

/* Later releases append fields. */
static bool is_known_layout(const struct tdt_registry *registry)
{
	return registry->version == TDT_REGISTRY_VERSION && registry->size >= sizeof *registry &&
	       registry->record_size >= sizeof(struct tdt_task_record) &&
	       registry->stride >= registry->record_size && registry->stride <= MOST_STRIDE;
}

/* A struct that says another address of itself is a copy of a registry. */
static void look_for_registry(struct registry_search *search, uint64_t address)
{
	struct tdt__found *found = &search->found[search->n];

	if (search->n == TDT__REGISTRIES_MAX ||
	    !tdt__target_read(search->target, address, &found->registry, sizeof found->registry) ||
	    found->registry.self != address)
		return;
	found->address = address;
	found->registry.library[sizeof found->registry.library - 1] = '\0';
	found->known = is_known_layout(&found->registry);
	search->n++;
}

/* The registry lies at a multiple of 64. */
static void search_range(struct registry_search *search, uint64_t start, uint64_t size)
{
	static char part[1 << 18];
	uint64_t end = start + (size < search->most ? size : search->most);

	search->most -= end - start;
	for (uint64_t at = (start + 63) & ~UINT64_C(63); at < end; at += sizeof part) {
		size_t n = end - at < sizeof part ? (size_t)(end - at) : sizeof part;

		if (!tdt__target_read(search->target, at, part, n))
			return;
		for (size_t i = 0; i + sizeof TDT_REGISTRY_MAGIC <= n; i += 64)
			if (memcmp(&part[i], TDT_REGISTRY_MAGIC, sizeof TDT_REGISTRY_MAGIC) == 0)
				look_for_registry(search, at + i);
	}
}

/* `large`: search the mappings of no usual size, instead of the others. */
static void search_process(struct registry_search *search, bool large)
{
	const struct tdt__target *target = search->target;

	for (size_t i = 0; i < target->n_mappings; i++) {
		const struct tdt__mapping *mapping = &target->mapping[i];
		uint64_t size = mapping->end - mapping->start;

		if (mapping->is_file && mapping->readable && mapping->writable &&
		    !mapping->shared && (size > USUAL_SIZE) == large)
			search_range(search, mapping->start, size);
	}
}

/* `files`: search only where files are mapped, which spares the heap. */
static void search_core(struct registry_search *search, bool files, bool large)
{
	const struct tdt__core *core = search->target->core;

	for (size_t i = 0; i < core->n_segments; i++) {
		const struct tdt__segment *segment = &core->segment[i];
		bool is_file = tdt__target_mapping(search->target, segment->start) != NULL;

		if (segment->writable && is_file == files && (segment->size > USUAL_SIZE) == large)
			search_range(search, segment->start, segment->size);
	}
}

static void search_all(struct registry_search *search)
{
	bool is_core = search->target->core != NULL;

	for (int large = 0; large < 2 && search->n == 0; large++)
		if (is_core)
			search_core(search, true, large);
		else
			search_process(search, large);
	for (int large = 0; is_core && large < 2 && search->n == 0; large++)
		search_core(search, false, large);
}

static int rank_of_found(const struct tdt__found *found)
{
	return found->known + (found->known && found->registry.slabs != 0);
}

static int by_use(const void *a, const void *b)
{
	const struct tdt__found *x = a, *y = b;

	if (rank_of_found(x) != rank_of_found(y))
		return rank_of_found(y) - rank_of_found(x);
	return (x->address > y->address) - (x->address < y->address);
}

size_t tdt__find(const struct tdt__target *target, struct tdt__found found[TDT__REGISTRIES_MAX])
{
	struct registry_search search = { target, found, 0, MOST_SEARCHED };

	search_all(&search);
	qsort(found, search.n, sizeof found[0], by_use);
	return search.n;
}
