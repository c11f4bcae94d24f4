// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding, listing and reading recordings of the flight recorder: see recordings.h. */

#include "cli/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tdt/layout/recording.h>

#include "base/array.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cli/tdt.h"
#include "recording/copy.h"
#include "recording/module_table.h"
#include "recording/process.h"
#include "recording/read.h"
#include "symbolize/modules.h"
#include "tree-printer/forms.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

#define OWNER_WORDS 64

static int recording_failed(const char *path, const char *message)
{
	fprintf(stderr, "%s: %s: %s\n", program_name, path, message);
	return EXIT_BAD_INPUT;
}

static const char *error_text(int err)
{
	switch (err) {
	case -EINVAL:
		return "not a recording of tdt, or a damaged one";
	case -ENOTSUP:
		return "a recording of another version of tdt";
	default:
		return strerror(-err);
	}
}

/* Read the header of the file, and its owner.  False: it is no recording that can be read. */
static bool read_header(const char *path, struct tdt_recording *header, uid_t *owner)
{
	/* A link may be another user's, though it leads to a file of this one. */
	int fd = tdt__regular_open_found(open(path, TDT__LOOK_FLAGS | O_NOFOLLOW));
	struct stat status = { 0 };
	bool whole;

	if (fd < 0)
		return false;
	whole = read(fd, header, sizeof(*header)) == (ssize_t)sizeof(*header) &&
		fstat(fd, &status) == 0;
	close(fd);
	*owner = status.st_uid;
	return whole && memcmp(header->magic, TDT_RECORDING_MAGIC, sizeof(header->magic)) == 0;
}

/* Look at one file of the directory.  Returns 0 or -ENOMEM. */
static int add_file(struct recording_files *files, const char *dir, const char *name)
{
	struct recording_file file = { 0 };
	struct tdt_recording header;
	uint64_t start;
	bool enough;
	int end = 0;

	if (sscanf(name, "tdt-%" SCNu32 "-%" SCNu64 ".rec%n", &file.pid, &start, &end) != 2 ||
	    end == 0 || name[end] != '\0')
		return 0;
	if (asprintf(&file.path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	enough = tdt__array_grow(&files->file, files->n, &files->room, sizeof file);
	if (!enough || !read_header(file.path, &header, &file.owner)) {
		free(file.path);
		return enough ? 0 : -ENOMEM;
	}
	memcpy(file.program, header.program, sizeof(file.program) - 1);
	file.started = header.start_real;
	file.runs = !tdt__recorded_process_gone(&header, file.pid, start);
	file.exited = header.end == TDT_RECORDING_END_EXIT;
	file.strange = file.owner != geteuid() && file.owner != 0 && file.owner != files->owner;
	files->file[files->n++] = file;
	return 0;
}

static int compare_files(const void *a, const void *b)
{
	const struct recording_file *left = a, *right = b;

	if (left->started != right->started)
		return left->started < right->started ? 1 : -1;
	return strcmp(left->path, right->path);
}

/* The less, the more the file is what one looks for after a crash; -1: it is a strange one. */
static int crash_rank(const struct recording_file *file)
{
	return file->strange ? -1 : file->runs ? 2 : file->exited ? 1 : 0;
}

/* False: there are only strange ones. */
static bool choose_file(struct recording_files *files)
{
	int best = -1;

	/* qsort() takes no NULL, not even for nothing. */
	if (files->n > 0)
		qsort(files->file, files->n, sizeof(*files->file), compare_files);
	for (size_t i = 0; i < files->n; i++) {
		int rank = crash_rank(&files->file[i]);

		if (rank < 0 || (best >= 0 && rank >= best))
			continue;
		best = rank;
		files->chosen = i;
	}
	return best >= 0;
}

static int list_directory(const char *path, DIR *dir, struct recording_files *files)
{
	const char *wrong = "there is no recording here";
	const struct dirent *entry;
	struct stat status;
	int err = fstat(dirfd(dir), &status) == 0 ? 0 : -errno;

	files->owner = status.st_uid;
	while (err == 0 && (entry = readdir(dir)) != NULL)
		err = add_file(files, path, entry->d_name);
	if (err == 0 && choose_file(files))
		return PROGRAM_GOES_ON;
	if (files->n > 0)
		wrong = "there are recordings of other users only: name one of the files";
	recordings_free(files);
	return recording_failed(path, err != 0 ? strerror(-err) : wrong);
}

int recordings_list(const char *path, struct recording_files *files)
{
	DIR *dir = opendir(path);
	int status;

	*files = (struct recording_files){ 0 };
	if (dir != NULL) {
		status = list_directory(path, dir, files);
		closedir(dir);
		return status;
	}
	if (errno != ENOTDIR)
		return recording_failed(path, strerror(errno));
	files->file = calloc(1, sizeof(*files->file));
	if (files->file != NULL)
		files->file->path = strdup(path);
	files->n = 1;
	if (files->file != NULL && files->file->path != NULL)
		return PROGRAM_GOES_ON;
	recordings_free(files);
	return recording_failed(path, strerror(ENOMEM));
}

/* Whose the file is, unless it is the reader's own. */
static const char *owner_words(const struct recording_file *file, char words[OWNER_WORDS])
{
	const struct passwd *user = getpwuid(file->owner);

	if (file->owner == geteuid())
		return "";
	if (user != NULL)
		snprintf(words, OWNER_WORDS, ", of user %s", user->pw_name);
	else
		snprintf(words, OWNER_WORDS, ", of user %" PRIu32, (uint32_t)file->owner);
	return words;
}

void recordings_free(struct recording_files *files)
{
	for (size_t i = 0; i < files->n && files->file != NULL; i++)
		free(files->file[i].path);
	free(files->file);
	*files = (struct recording_files){ 0 };
}

static void file_line(struct tdt__string *line, const struct recording_file *file, bool chosen)
{
	char words[OWNER_WORDS];

	tdt__string_printf(line, "%s %.19s  ", chosen ? "->" : "  ",
			   TDT__WALL_CLOCK(file->started, true));
	tdt__string_text(line, file->program);
	tdt__string_printf(line, "[%" PRIu32 "], %s%s%s", file->pid,
			   file->runs	  ? "which runs"
			   : file->exited ? "which has exited"
					  : "which has ended, not by exit()",
			   owner_words(file, words), file->strange ? ", passed over: " : ": ");
	tdt__string_text(line, tdt__file_name(file->path));
	tdt__string_puts(line, "\n");
}

static void list_text(struct tdt__out *out, const struct recording_files *files,
		      const struct tdt_print_options *options)
{
	struct tdt__string line = { .options = options };

	for (size_t i = 0; i < files->n; i++)
		file_line(&line, &files->file[i], i == files->chosen);
	tdt__string_puts(&line, "\n");
	tdt__out_take(out, &line);
}

static void list_json(struct tdt__out *out, const struct recording_files *files)
{
	struct tdt__json json = tdt__json_document(out);

	tdt__json_begin(&json, "recordings", '[');
	for (size_t i = 0; i < files->n; i++) {
		const struct recording_file *file = &files->file[i];

		tdt__json_begin(&json, NULL, '{');
		tdt__json_string(&json, "file", file->path);
		tdt__json_string(&json, "program", file->program);
		tdt__json_u64(&json, "pid", file->pid);
		tdt__json_u64(&json, "start_real_ns", file->started);
		tdt__json_u64(&json, "uid", file->owner);
		tdt__json_true(&json, "passed_over", file->strange);
		tdt__json_true(&json, "runs", file->runs);
		tdt__json_true(&json, "exited", file->exited);
		tdt__json_true(&json, "chosen", i == files->chosen);
		tdt__json_end(&json, '}');
	}
	tdt__json_end(&json, ']');
	tdt__json_finish(&json);
}

int recordings_print(const struct recording_files *files,
		     const struct tdt_print_options *options)
{
	struct tdt_print_options chosen = *options;
	struct tdt__out out = { .file = stdout };

	tdt__terminal_choose(&chosen, stdout);
	if (options->format == TDT_PRINT_JSON)
		list_json(&out, files);
	else
		list_text(&out, files, &chosen);
	return tdt__out_end(&out);
}

void recordings_say_chosen(const struct recording_files *files)
{
	const struct recording_file *chosen = &files->file[files->chosen];
	char words[OWNER_WORDS];

	if (files->n > 1)
		fprintf(stderr, "%s: of %zu recordings, this one is read: %s%s\n", program_name,
			files->n, chosen->path, owner_words(chosen, words));
}

/* Copy from the file.  What lies beyond its end is missing. */
static int read_recording_file(void *data, uint64_t address, void *to, size_t n)
{
	const int *fd = data;
	char *bytes = to;

	while (n > 0) {
		ssize_t got = pread(*fd, bytes, n, (off_t)address);

		if (got < 0)
			return -errno;
		if (got == 0)
			return -EINVAL;
		bytes += got;
		address += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int read_opened(int fd, struct recording_read *read)
{
	struct tdt__recording_source source = { .read = read_recording_file, .data = &fd };
	int err = tdt__recording_copy(&source, &read->block, &read->size);

	if (err == 0)
		err = tdt__recording_open(&read->recording, read->block, read->size);
	if (err != 0)
		return err;
	read->modules = tdt__recorded_module_table(read->recording);
	return read->modules != NULL ? 0 : -ENOMEM;
}

int recording_read(const char *path, struct recording_read *read)
{
	int fd = tdt__regular_open(AT_FDCWD, path), err = fd;

	*read = (struct recording_read){ 0 };
	if (fd >= 0) {
		err = read_opened(fd, read);
		close(fd);
	}
	if (err >= 0)
		return PROGRAM_GOES_ON;
	recording_read_free(read);
	return recording_failed(path, error_text(err));
}

int recording_read_chosen(const char *path, struct recording_read *read)
{
	struct recording_files files;
	char **chosen;
	int status = recordings_list(path, &files);

	if (status != PROGRAM_GOES_ON)
		return status;
	recordings_say_chosen(&files);
	chosen = &files.file[files.chosen].path;
	status = recording_read(*chosen, read);
	if (status == PROGRAM_GOES_ON) {
		read->path = *chosen;
		*chosen = NULL;
	}
	recordings_free(&files);
	return status;
}

void recording_name_tasks(const struct recording_read *read, const struct options *options)
{
	if (!options->no_symbols)
		tdt__recorded_tasks_name(read->recording, read->modules, naming_until());
}

void recording_read_free(struct recording_read *read)
{
	free(read->path);
	tdt__modules_unref(read->modules);
	tdt__recording_close(read->recording);
	free(read->block);
}
