// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The reader of core files, from the headers to the printed trees and the recording.  The input
 * says what is damaged in a sound core file (core_image.h).  What is printed may not harm a
 * terminal.
 */

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core_image.h"
#include "fuzz.h"
#include "reader/dump.h"
#include "reader/elf_facts.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "recording/summary.h"
#include "recording/supplement.h"
#include "symbolize/modules.h"
#include "tree-printer/dumps.h"
#include "tree-printer/summaries.h"

/* --- Reading it --------------------------------------------------------------------------- */

static void print_findings(const struct tdt__findings *findings, enum tdt_print_format format)
{
	const struct tdt_print_options print = { .size = sizeof print,
						 .format = format,
						 .utf8 = TDT_PRINT_NO,
						 .color = TDT_PRINT_NO };
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	CLAIM(out != NULL);
	CLAIM(tdt__snapshot_print_by(&findings->public, out, &options,
				     tdt__clock() + TDT__SECOND) == 0);
	fclose(out);
	if (format == TDT_PRINT_JSON)
		claim_json(text, n);
	else
		claim_harmless(text, n, false, false);
	free(text);
}

static void count_code(void *data, uint64_t address)
{
	*(uint64_t *)data += address != 0;
}

/* What was copied is a recording, whatever the target has.  Modules may name any file. */
static void print_recording(const void *block, size_t size)
{
	const struct tdt_print_options options = { .size = sizeof options, .utf8 = TDT_PRINT_NO };
	const struct tdt__summary_limits limits = { .rows = 5 };
	struct tdt__modules *none = tdt__modules_new(0);
	struct tdt__recording *recording;
	struct tdt__summary *summary;
	uint64_t addresses = 0;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	CLAIM(tdt__recording_open(&recording, block, size) == 0);
	tdt__recording_visit_code(block, count_code, &addresses);
	summary = tdt__summary_new(recording, &limits);
	CLAIM(out != NULL && none != NULL && summary != NULL);
	CLAIM(tdt__summary_print(summary, out, &options, true, none, 0) == 0);
	fclose(out);
	claim_harmless(text, n, false, false);
	free(text);
	tdt__summary_free(summary);
	tdt__recording_close(recording);
	tdt__modules_unref(none);
}

static void read_recording(struct tdt__target *target, struct tdt__images *images,
			   const struct tdt__found *found)
{
	struct tdt__trouble trouble = { "" };
	size_t size;
	void *copy;

	if (tdt__recorded_copy(target, images, found, &copy, &size, &trouble) != 0) {
		CLAIM(trouble.text[0] != '\0');
		return;
	}
	print_recording(copy, size);
	free(copy);
}

static void read_registry(struct tdt__target *target, struct tdt__images *images,
			  const struct tdt__found *found)
{
	const struct tdt__task_choice all = { .n_ids = 0 };
	const struct tdt__answers none = { 0 };
	struct tdt__sampling sampling = { 0 };
	struct tdt__findings *findings;
	struct tdt__tasks tasks;

	if (!found->known)
		return;
	CLAIM(tdt__tasks_read(&tasks, target, images, found) == 0);
	findings = tdt__outside_dump(&tasks, &all, &none, &sampling);
	CLAIM(findings != NULL);
	print_findings(findings, TDT_PRINT_TEXT);
	print_findings(findings, TDT_PRINT_JSON);
	tdt__findings_free(findings);
	tdt__tasks_fini(&tasks);
	read_recording(target, images, found);
}

/* --- The module as a file, too ------------------------------------------------------------ */

/* What is in memory is in the file, as the headers stand.  Returns whether they are sound. */
static bool read_facts(bool loaded)
{
	struct tdt__elf_facts facts;

	if (!tdt__elf_facts(&facts, core_image_read_module, NULL, loaded))
		return false;
	CLAIM(facts.end > facts.start);
	CLAIM(strspn(facts.build_id, "0123456789abcdef") == strlen(facts.build_id));
	return facts.build_id[0] != '\0';
}

static void read_core(const char *path)
{
	const struct tdt__places places = { .no_files = true };
	struct tdt__found found[TDT__REGISTRIES_MAX];
	struct tdt__trouble trouble;
	struct tdt__images images;
	struct tdt__target target;
	size_t n;

	if (tdt__target_open_core(&target, path, &trouble) != 0)
		return;
	CLAIM(tdt__images_init(&images, &target, &places) == 0);
	n = tdt__find(&target, found);
	for (size_t i = 0; i < n; i++)
		read_registry(&target, &images, &found[i]);
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[CORE_IMAGE_PATH];
	struct damage damage;
	int file;

	core_image_make();
	CLAIM(read_facts(true) && read_facts(false));
	while (damage_next(&damage, &data, &size))
		core_image_damage(&damage);
	read_facts(true);
	read_facts(false);
	file = core_image_open(path);
	read_core(path);
	close(file);
	return 0;
}
