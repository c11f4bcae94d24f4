// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading .dwo files and packages of them: see dwo.h. */

#include "symbolize/dwo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>

#include "base/regular_file.h"
#include "symbolize/debuginfo.h"

enum { STR_OFFSETS, STRINGS, INFO, TYPES, ABBREV, RNGLISTS, INDEX, N_SECTIONS, N_NAMES };

/* The names of the sections.  These bytes are also the names of an image. */
static const char section_names[N_NAMES][24] = {
	[STR_OFFSETS] = ".debug_str_offsets.dwo",
	[STRINGS] = ".debug_str.dwo",
	[INFO] = ".debug_info.dwo",
	[TYPES] = ".debug_types.dwo",
	[ABBREV] = ".debug_abbrev.dwo",
	[RNGLISTS] = ".debug_rnglists.dwo",
	[INDEX] = ".debug_cu_index",
	[N_SECTIONS] = ".shstrtab", /* an image's alone */
};

/* The numbers of their columns in the index of a package.  Its units share their strings. */
static const uint32_t columns_of[N_SECTIONS] = {
	[STR_OFFSETS] = DW_SECT_STR_OFFSETS,
	[INFO] = DW_SECT_INFO,
	[ABBREV] = DW_SECT_ABBREV,
	[RNGLISTS] = DW_SECT_RNGLISTS,
};

/* A part of the file: a section, or what belongs to the unit of a section. */
struct part {
	uint64_t at, size, flags;
};

struct dwo {
	int fd;
	uint16_t machine;
	struct part part[N_SECTIONS];
	uint32_t version; /* of the index; 0: the file is no package */
};

/* A file in memory that is being made. */
struct image {
	char *bytes;
	size_t n, room;
	Elf64_Shdr header[N_SECTIONS + 1]; /* the first one is empty */
	unsigned n_headers;
	int error;
};

#define IMAGES_MOST ((size_t)256 << 20) /* of the process: those that are used are never freed */

/* With what lies behind the end of each.  Under tdt__symbol_lock. */
static size_t images_size;

/* Append `size` bytes, which are 0.  NULL: image->error says why not. */
static char *image_extend(struct image *image, size_t size)
{
	size_t most = images_size < IMAGES_MOST ? IMAGES_MOST - images_size : 0;
	size_t room = image->room;
	void *bytes = image->bytes;

	if (image->n > most || size > most - image->n) {
		image->error = -EFBIG;
		return NULL;
	}
	if (size > room - image->n) {
		room = (image->n + size) * 2 / 65536 * 65536 + 65536;
		bytes = bytes != NULL ? mremap(bytes, image->room, room, MREMAP_MAYMOVE)
				      : mmap(NULL, room, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (bytes == MAP_FAILED) {
			image->error = -ENOMEM;
			return NULL;
		}
		image->bytes = bytes;
		image->room = room;
	}
	image->n += size;
	return image->bytes + image->n - size;
}

static bool dwo_read_at(int fd, void *to, size_t size, uint64_t at)
{
	ssize_t got = 1;
	size_t n = 0;

	while (n < size && got > 0) {
		got = pread(fd, (char *)to + n, size - n, (off_t)(at + n));
		n += got > 0 ? (size_t)got : 0;
	}
	return n == size;
}

/* Begin a section, which has what is appended until end_section(). */
static void begin_section(struct image *image, unsigned kind, uint64_t flags)
{
	image_extend(image, -image->n % 16);
	image->header[++image->n_headers] =
	    (Elf64_Shdr){ .sh_name = (Elf64_Word)(kind * sizeof section_names[0]),
			  .sh_type = SHT_PROGBITS,
			  .sh_flags = flags,
			  .sh_offset = image->n,
			  .sh_addralign = 1 };
}

static void end_section(struct image *image)
{
	Elf64_Shdr *header = &image->header[image->n_headers];

	header->sh_size = image->n - header->sh_offset;
}

static void copy_part(struct image *image, const struct dwo *dwo, unsigned kind)
{
	const struct part *part = &dwo->part[kind];
	char *to;

	begin_section(image, kind, part->flags);
	to = image_extend(image, part->size);
	if (to == NULL || !dwo_read_at(dwo->fd, to, part->size, part->at))
		image->error = image->error != 0 ? image->error : -ENODATA;
	end_section(image);
}

/* Append the string at `offset` of those of the package. */
static void copy_string(struct image *image, const struct dwo *dwo, uint64_t offset)
{
	const struct part *strings = &dwo->part[STRINGS];
	char piece[256], *to;
	size_t n, most;
	ssize_t got;

	do {
		most = offset < strings->size ? strings->size - offset : 0;
		most = most < sizeof piece ? most : sizeof piece;
		got = pread(dwo->fd, piece, most, (off_t)(strings->at + offset));
		n = got > 0 ? strnlen(piece, (size_t)got) : 0;
		to = image_extend(image, n + (n < sizeof piece));
		if (to != NULL)
			memcpy(to, piece, n);
		offset += n;
	} while (to != NULL && n == sizeof piece);
}

/*
 * Copy the strings of a unit of a package, which are a small part of all, and set the offsets at
 * which the unit finds them.
 */
static void copy_strings(struct image *image, const struct dwo *dwo)
{
	const Elf64_Shdr *offsets = &image->header[image->n_headers];
	size_t at = offsets->sh_offset + (dwo->version >= 5 ? 8 : 0); /* a head */
	size_t end = offsets->sh_offset + offsets->sh_size;
	uint32_t offset, copied;

	begin_section(image, STRINGS, 0);
	for (; at + sizeof offset <= end && image->error == 0; at += sizeof offset) {
		memcpy(&offset, image->bytes + at, sizeof offset);
		copied = (uint32_t)(image->n - image->header[image->n_headers].sh_offset);
		memcpy(image->bytes + at, &copied, sizeof copied);
		copy_string(image, dwo, offset);
	}
	end_section(image);
}

static void add_headers(struct image *image, const struct dwo *dwo)
{
	Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_REL,
			    .e_machine = dwo->machine,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof head,
			    .e_shentsize = sizeof(Elf64_Shdr) };
	char *to;

	begin_section(image, N_SECTIONS, 0);
	image->header[image->n_headers].sh_type = SHT_STRTAB;
	to = image_extend(image, sizeof section_names);
	if (to != NULL)
		memcpy(to, section_names, sizeof section_names);
	end_section(image);
	image_extend(image, -image->n % 16);
	head.e_shoff = image->n;
	head.e_shnum = (Elf64_Half)(image->n_headers + 1);
	head.e_shstrndx = (Elf64_Half)image->n_headers;
	to = image_extend(image, head.e_shnum * sizeof image->header[0]);
	if (to == NULL)
		return;
	memcpy(to, image->header, head.e_shnum * sizeof image->header[0]);
	memcpy(image->bytes, &head, sizeof head);
}

static void make_image(struct image *image, const struct dwo *dwo)
{
	image_extend(image, sizeof(Elf64_Ehdr));
	for (unsigned i = 0; i < N_SECTIONS && image->error == 0; i++) {
		if (dwo->part[i].size == 0 || i == INDEX)
			continue;
		if (i == STRINGS && dwo->version != 0)
			copy_strings(image, dwo);
		else
			copy_part(image, dwo, i);
	}
	if (image->error == 0)
		add_headers(image, dwo);
}

/* The DWARF of an image, which it takes over.  NULL: there is none. */
static Dwarf *dwarf_of(struct image *image)
{
	size_t room = image->n / 65536 * 65536 + 65536;
	Dwarf *dwarf;
	Elf *elf;

	if (room < image->room &&
	    mremap(image->bytes, image->room, room, 0) != MAP_FAILED) /* in place */
		image->room = room;
	elf = elf_memory(image->bytes, image->room);
	dwarf = elf != NULL ? tdt__debuginfo_begin(elf) : NULL;
	if (dwarf == NULL) {
		elf_end(elf);
	} else {
		images_size += image->room;
		image->bytes = NULL;
	}
	return dwarf;
}

Elf_Scn *tdt__dwo_section(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL, *last = NULL;
	const char *found;
	GElf_Shdr any;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		found = gelf_getshdr(section, &any) != NULL ? elf_strptr(elf, strings, any.sh_name)
							    : NULL;
		if (found == NULL || strcmp(found, name) != 0)
			continue;
		last = section;
		*header = any;
	}
	return last;
}

/* Find the sections.  False: there are none of a machine that is known. */
static bool find_parts(struct dwo *dwo, Elf *elf)
{
	GElf_Ehdr head;
	GElf_Shdr header;

	if (gelf_getehdr(elf, &head) == NULL || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	dwo->machine = head.e_machine;
	for (unsigned i = 0; i < N_SECTIONS; i++)
		if (tdt__dwo_section(elf, section_names[i], &header) != NULL)
			dwo->part[i] =
			    (struct part){ header.sh_offset, header.sh_size, header.sh_flags };
	return dwo->part[INFO].size != 0;
}

/*
 * Leave only what belongs to the unit, by an index of `n` words: version, and the numbers of
 * columns, units and slots; for each slot an id and the number of a row; the columns' numbers; the
 * rows' offsets; and the rows' sizes.  False: the unit is not there.
 */
static bool narrow(struct dwo *dwo, const uint32_t *word, uint64_t n, uint64_t id)
{
	uint64_t columns = n >= 4 ? word[1] : 0, units = n >= 4 ? word[2] : 0;
	uint64_t slots = n >= 4 ? word[3] : 0, row = 0, slot;
	const uint32_t *numbers = word + 4 + 3 * slots, *offsets, *sizes;

	if (columns > N_SECTIONS + 2 || 4 + 3 * slots + columns + 2 * columns * units > n)
		return false;
	for (slot = 0; slot < slots && row == 0; slot++)
		if (memcmp(word + 4 + 2 * slot, &id, sizeof id) == 0)
			row = word[4 + 2 * slots + slot];
	if (row == 0 || row > units)
		return false;
	offsets = numbers + row * columns;
	sizes = offsets + units * columns;
	dwo->version = word[0] & 0xffff;
	dwo->part[TYPES].size = 0;
	for (unsigned i = 0; i < N_SECTIONS; i++) {
		struct part *part = &dwo->part[i];

		for (unsigned column = 0; column < columns; column++) {
			if (columns_of[i] == 0 || numbers[column] != columns_of[i] ||
			    part->size == 0)
				continue;
			if ((part->flags & SHF_COMPRESSED) != 0 || offsets[column] > part->size ||
			    sizes[column] > part->size - offsets[column])
				return false;
			part->at += offsets[column];
			part->size = sizes[column];
			break;
		}
	}
	return (dwo->part[STRINGS].flags & SHF_COMPRESSED) == 0;
}

/* Find the unit by the index, if there is one.  Returns 0; -ENOMEM; -EFBIG; -ENOENT. */
static int find_in_index(struct dwo *dwo, uint64_t id)
{
	const struct part *index = &dwo->part[INDEX];
	struct image copy = { .error = 0 };
	void *word;
	bool found;

	if (index->size == 0)
		return 0;
	/* Freeing a large block would raise the host's M_MMAP_THRESHOLD. */
	word = image_extend(&copy, index->size);
	found = word != NULL && dwo_read_at(dwo->fd, word, index->size, index->at) &&
		narrow(dwo, word, index->size / sizeof(uint32_t), id);
	if (copy.bytes != NULL)
		munmap(copy.bytes, copy.room);
	return found ? 0 : copy.error != 0 ? copy.error : -ENOENT;
}

/* Whether nobody else may have written the file. */
static bool is_trusted(int fd, uid_t owner)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_mode & S_IWOTH) == 0 &&
	       (status.st_uid == 0 || status.st_uid == geteuid() || status.st_uid == owner);
}

int tdt__dwo_read(Dwarf **dwarf, const char *path, uid_t owner, uint64_t id)
{
	struct dwo dwo = { .fd = tdt__regular_open(AT_FDCWD, path) };
	struct image image = { .error = 0 };
	Elf *elf;

	*dwarf = NULL;
	if (dwo.fd < 0)
		return dwo.fd == -EMFILE || dwo.fd == -ENFILE ? dwo.fd : 0;
	elf = is_trusted(dwo.fd, owner) ? elf_begin(dwo.fd, ELF_C_READ, NULL) : NULL;
	if (elf == NULL || !find_parts(&dwo, elf))
		image.error = -ENOENT;
	elf_end(elf);
	if (image.error == 0)
		image.error = find_in_index(&dwo, id);
	if (image.error == 0)
		make_image(&image, &dwo);
	if (image.error == 0 && !tdt__debuginfo_reserve())
		image.error = -ENOMEM;
	if (image.error == 0)
		*dwarf = dwarf_of(&image);
	if (image.bytes != NULL)
		munmap(image.bytes, image.room);
	close(dwo.fd);
	return image.error == -ENOMEM ? -ENOMEM : 0;
}

void tdt__dwo_free(Dwarf *dwarf)
{
	Elf *elf = dwarf_getelf(dwarf);
	size_t size;
	char *bytes = elf_rawfile(elf, &size); /* with all that was mapped */

	dwarf_end(dwarf);
	elf_end(elf);
	munmap(bytes, size);
	images_size -= size;
}
