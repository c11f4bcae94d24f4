// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Whose code a frame is.  This needs no list of libraries, because tools put what is not the
 * program's own into places of their own:
 *
 *	/home/me/.cargo/registry/src/mirror-1949cf8c6b5b557f/tokio-1.24.2/src/lib.rs
 *	/usr/share/cargo/registry/tokio-1.24.2/src/lib.rs          Debian's packages of crates
 *	/home/me/.cargo/git/checkouts/mio-1ab2/5f3e/src/lib.rs
 *	/home/me/app/vendor/tokio/src/lib.rs                       cargo vendor
 *	/deps/index.crates.io-1949cf8c6b5b557f/tokio-1.24.2/src/lib.rs        --remap-path-prefix
 *	/home/me/app/build/_deps/fmt-src/src/format.cc             CMake's FetchContent
 *	/usr/include/boost/asio/post.hpp
 *	/rustc/4b91a6ea7258a947e59c6522cd5898e7c0a6a88f/library/core/src/future/mod.rs
 *	/usr/include/c++/12/coroutine
 *
 * The rest of the main program is its own: modules whose file name has no ".so".  The rest of a
 * library is the program's own if its sources lie with the program's.  Code without debug
 * information has no source, and counts as a dependency's.
 */

#include "origin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Returns what follows `components` more components of `path`; NULL: there are not so many. */
static const char *skip_components(const char *path, int components)
{
	for (; components > 0 && path != NULL; components--) {
		path = strchr(path, '/');
		path = path != NULL ? path + 1 : NULL;
	}
	return path;
}

/* Where packages lie: so many components behind a mark in the path. */
struct place {
	const char *mark;
	int components;
};

/* Returns what lies at the first of these places that `path` has; NULL: it has none. */
static const char *find_place(const char *path, const struct place *places, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(places[i].mark);
		const char *found = strstr(path, places[i].mark);

		if (found != NULL)
			found += length;
		else if (tdt__starts_with(path, places[i].mark + 1)) /* --remap-path-prefix */
			found = path + length - 1;
		found = skip_components(found, places[i].components);
		if (found != NULL)
			return found;
	}
	return NULL;
}

/* The standard library of Rust: `library/core/src/future/mod.rs`. */
static const char *in_rust_library(const char *file)
{
	static const struct place places[] = {
		{ "/rustc/", 1 },
		{ "/rustc-", 1 },
		{ "/rustlib/src/rust/", 0 },
	};
	const char *found = find_place(file, places, sizeof places / sizeof places[0]);

	return found != NULL && tdt__starts_with(found, "library/") ? found : NULL;
}

bool tdt__is_below(const char *path, const char *directory, size_t n)
{
	return n > 1 && strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* What `cargo vendor` made: NAME/src/..., which a directory of the program's own hardly has. */
static const char *in_vendor(const char *file)
{
	static const struct place places[] = {
		{ "/vendor/", 0 }, { "/third_party/rust/", 0 }, { "/third-party/rust/", 0 }
	};
	const char *package = find_place(file, places, sizeof places / sizeof places[0]);
	const char *rest = package != NULL ? skip_components(package, 1) : NULL;

	return rest != NULL && tdt__starts_with(rest, "src/") ? package : NULL;
}

/*
 * A registry of cargo, wherever it lies and whatever rustc was told to call it: a directory whose
 * name ends with the hash of its index (index.crates.io-1949cf8c6b5b557f) has those of packages.
 */
static const char *in_registry(const char *file)
{
	const char *next;

	for (const char *part = file; (next = skip_components(part, 1)) != NULL; part = next) {
		size_t n = (size_t)(next - 1 - part), hash = 16;

		if (n > hash && part[n - hash - 1] == '-' &&
		    strspn(next - 1 - hash, "0123456789abcdef") == hash &&
		    strchr(next, '/') != NULL)
			return next;
	}
	return NULL;
}

/* Where the user says that packages lie: TDT_FOLD=/path:/path, as it was when tdt was loaded. */
static char *folded_paths;

static __attribute__((constructor)) void read_folded_paths(void)
{
	const char *paths = secure_getenv("TDT_FOLD");

	folded_paths = paths != NULL ? strdup(paths) : NULL;
}

static const char *in_folded_path(const char *file)
{
	size_t n;

	for (const char *path = folded_paths; path != NULL && *path != '\0';
	     path += n + (path[n] == ':')) {
		size_t length = n = strcspn(path, ":");

		while (length > 1 && path[length - 1] == '/')
			length--;
		if (tdt__is_below(file, path, length))
			return file + length + 1;
	}
	return NULL;
}

const char *tdt__in_package(const char *file)
{
	static const struct place places[] = {
		{ "/registry/src/", 1 }, { "/cargo/registry/", 0 }, { "/git/checkouts/", 0 },
		{ "/rust/deps/", 0 },	 { "/_deps/", 0 },
	};
	const char *found = in_folded_path(file);

	if (found == NULL)
		found = find_place(file, places, sizeof places / sizeof places[0]);
	if (found == NULL)
		found = in_registry(file);
	if (found == NULL)
		found = in_rust_library(file);
	return found != NULL ? found : in_vendor(file);
}

/* Whether the system installed the source, as it does headers: it was not compiled in its place. */
static bool is_of_system(const struct tdt_frame *frame)
{
	const char *directory = frame->directory != NULL ? frame->directory : "";

	return tdt__starts_with(frame->file, "/usr/") &&
	       !tdt__is_below(frame->file, directory, strlen(directory));
}

struct tdt__package tdt__package(const struct tdt_frame *frame)
{
	static const struct place headers = { "/include/", 0 };
	const char *name = frame->file != NULL ? tdt__in_package(frame->file) : NULL;

	if (name == NULL && frame->file != NULL)
		name = find_place(frame->file, &headers, 1);
	if (name != NULL)
		return (struct tdt__package){ name, strcspn(name, "/") };
	name = frame->module;
	return (struct tdt__package){ name, name != NULL ? strlen(name) : 0 };
}

bool tdt__same_package(struct tdt__package a, struct tdt__package b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.name, b.name, a.n) == 0);
}

/* The libraries that the standard libraries are made of. */
static bool is_language_module(const char *module)
{
	static const char *const names[] = { "libc.so",   "libc-2",       "libc++",
					     "libm.so",   "libstdc++.so", "libgcc_s.so",
					     "ld-linux",  "libpthread",   "ld-musl",
					     "[vdso]" };
	const char *name = tdt__file_name(module);

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (tdt__starts_with(name, names[i]))
			return true;
	return false;
}

/* Rust's library has its dependencies at hand. */
static bool is_language(const struct tdt_frame *frame)
{
	const char *file = frame->file;

	return (frame->module != NULL && is_language_module(frame->module)) ||
	       (file != NULL &&
		(in_rust_library(file) != NULL || strstr(file, "/rust/deps/") != NULL ||
		 strstr(file, "/include/c++/") != NULL));
}

bool tdt__clones_waker(const struct tdt_frame *frame)
{
	return frame->file != NULL && strstr(frame->file, "/core/src/task/wake.rs") != NULL;
}

bool tdt__is_plumbing(const struct tdt_frame *frame)
{
	const char *name = tdt__file_name(frame->module == NULL ? "" : frame->module);

	if (frame->kind != TDT_NODE_FRAME)
		return false;
	if (frame->function != NULL && tdt__starts_with(frame->function, "tdt_"))
		return true;
	return tdt__starts_with(name, "libtdt.so") || tdt__starts_with(name, "libtdt-rt.so");
}

/* The namespace of C++, the crate, and the module that programs without the crate copy. */
static bool is_binding(const struct tdt_frame *frame)
{
	const char *function = frame->function != NULL ? frame->function : "";

	return tdt__starts_with(function, "tdt::") || tdt__starts_with(function, "<tdt::") ||
	       (frame->file != NULL && strcmp(tdt__file_name(frame->file), "tdt.rs") == 0);
}

bool tdt__is_crates_wrapper(const struct tdt_frame *frame)
{
	const char *function = frame->function != NULL ? frame->function : "";

	function += function[0] == '<';
	return tdt__starts_with(function, "tdt::traced::") ||
	       tdt__starts_with(function, "tdt::waker::");
}

enum tdt__origin tdt__origin(const struct tdt_frame *frame)
{
	if (tdt__is_plumbing(frame))
		return TDT__ORIGIN_TDT;
	if (frame->unnamed ||
	    (frame->function == NULL && frame->module == NULL && frame->file == NULL))
		return TDT__ORIGIN_UNKNOWN;
	if (is_language(frame))
		return TDT__ORIGIN_LANGUAGE;
	if (is_binding(frame))
		return TDT__ORIGIN_BINDING;
	if (frame->file == NULL) /* a frame without a module was reported by name */
		return frame->module == NULL ? TDT__ORIGIN_PROGRAM : TDT__ORIGIN_PACKAGE;
	if (tdt__in_package(frame->file) != NULL || is_of_system(frame))
		return TDT__ORIGIN_PACKAGE;
	return frame->module != NULL && strstr(tdt__file_name(frame->module), ".so") != NULL
		   ? TDT__ORIGIN_LIBRARY
		   : TDT__ORIGIN_PROGRAM;
}

/* The length of the path of the innermost directory in which both paths lie. */
static size_t shared_length(const char *a, const char *b)
{
	size_t length = 0;

	for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
		if ((a[i + 1] == '/' || a[i + 1] == '\0') && (b[i + 1] == '/' || b[i + 1] == '\0'))
			length = i + 1;
	return length;
}

static int count_components(const char *path, size_t n)
{
	int components = 0;

	for (size_t i = 0; i < n; i++)
		components += path[i] == '/';
	return components;
}

/*
 * The length of the directory in `path` that holds the program: where the source was compiled, or a
 * directory that has that and the source.  The latter must not be a home directory or the like,
 * where all kinds of sources lie.
 */
static size_t home_of_program(const char *path, const char *compiled_in)
{
	size_t length = shared_length(path, compiled_in);

	if (compiled_in[length] == '\0' || count_components(path, length) > 2)
		return length;
	return 0;
}

static size_t append_component(char *path, size_t n, const char *component, size_t length)
{
	if (n > 0 && path[n - 1] != '/')
		path[n++] = '/';
	memmove(path + n, component, length);
	return n + length;
}

void tdt__normalize(char *path)
{
	const bool absolute = path[0] == '/';
	size_t root = absolute; /* the length that no `..` removes: the root, or leading `..` */
	size_t n = root;
	size_t length;

	for (const char *in = path + root; *in != '\0'; in += length, in += *in == '/') {
		length = strcspn(in, "/");
		if (length == 0 || (length == 1 && in[0] == '.'))
			continue;
		if (length != 2 || in[0] != '.' || in[1] != '.') {
			n = append_component(path, n, in, length);
		} else if (n > root) {
			while (n > root && path[n - 1] != '/')
				n--;
			n -= n > root; /* the slash */
		} else if (!absolute) {
			root = n = append_component(path, n, in, length);
		}
	}
	path[n] = '\0';
}

static bool read_path(char path[PATH_MAX], const char *from)
{
	size_t n = from != NULL && from[0] == '/' ? strlen(from) : PATH_MAX;

	if (n >= PATH_MAX)
		return false;
	memcpy(path, from, n + 1);
	tdt__normalize(path);
	return true;
}

bool tdt__lies_with(const struct tdt_frame *frame, const struct tdt_frame *own)
{
	char path[PATH_MAX], own_path[PATH_MAX], compiled_in[PATH_MAX];

	return read_path(path, frame->file) && read_path(own_path, own->file) &&
	       read_path(compiled_in, own->directory) &&
	       tdt__is_below(path, own_path, home_of_program(own_path, compiled_in));
}
