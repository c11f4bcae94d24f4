// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * See calls.h.
 *
 * A definition in the executable comes before those of shared libraries, for calls from everywhere
 * but the inside of libc and of the dynamic loader.  Sanitizers call some of these functions before
 * they are ready for code that they instrument, so these functions are not instrumented.
 */

#include <config.h>

/* With it `open` would be another name of `open64`, which is defined here as well. */
#undef _FILE_OFFSET_BITS

#include "lib/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define RAW __attribute__((no_sanitize("address", "thread", "undefined")))

static _Atomic(call_fn *) seen_by;
static _Thread_local bool is_mine, is_inside;

void calls_seen_by(call_fn *fn)
{
	atomic_store(&seen_by, fn);
}

void calls_are_mine(bool mine)
{
	is_mine = mine;
}

static RAW void see(enum call call, const char *path, bool done)
{
	call_fn *fn = atomic_load_explicit(&seen_by, memory_order_relaxed);
	int saved = errno;

	if (fn == NULL || is_mine || is_inside)
		return;
	is_inside = true;
	fn(call, path, done);
	is_inside = false;
	errno = saved;
}

/* The same of an open file. */
static RAW void see_file(enum call call, int fd, bool done)
{
	char link[64], path[4096];
	int saved = errno;
	ssize_t n;

	if (atomic_load_explicit(&seen_by, memory_order_relaxed) == NULL || is_mine || is_inside)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	errno = saved;
	see(call, path, done);
}

/*
 * The real function.  dlsym() takes the loader's lock, so all are found before the test begins; but
 * for what is called earlier still.
 */
#define REAL(name) ((__typeof__(&name))real(&real_##name, #name))

static _Atomic(void *) real_dl_iterate_phdr, real_process_vm_readv, real_dlopen, real_open,
    real_open64, real_openat, real_openat64, real_pread, real_pread64, real_mmap, real_mmap64;

static RAW void *real(_Atomic(void *) *known, const char *name)
{
	void *function = atomic_load_explicit(known, memory_order_relaxed);

	if (function == NULL) {
		function = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, function, memory_order_relaxed);
	}
	return function;
}

static __attribute__((constructor)) void find_all(void)
{
	REAL(dl_iterate_phdr);
	REAL(process_vm_readv);
	REAL(dlopen);
	REAL(open);
	REAL(open64);
	REAL(openat);
	REAL(openat64);
	REAL(pread);
	REAL(pread64);
	REAL(mmap);
	REAL(mmap64);
}

RAW int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *info, size_t size, void *data),
			void *data)
{
	bool was_inside = is_inside;
	int result;

	see(CALL_ITERATE, NULL, false);
	is_inside = true; /* what is called in a callback holds the loader's lock */
	result = REAL(dl_iterate_phdr)(callback, data);
	is_inside = was_inside;
	see(CALL_ITERATE, NULL, true);
	return result;
}

RAW ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to,
			     const struct iovec *from, unsigned long n_from, unsigned long flags)
{
	ssize_t result;

	see(CALL_READV, NULL, false);
	result = REAL(process_vm_readv)(pid, to, n_to, from, n_from, flags);
	see(CALL_READV, NULL, true);
	return result;
}

RAW void *dlopen(const char *path, int flags)
{
	void *result;

	see(CALL_DLOPEN, path, false);
	result = REAL(dlopen)(path, flags);
	see(CALL_DLOPEN, path, true);
	return result;
}

/* The mode is there only if a file may be made.  To read it in vain does no harm on Linux. */
static RAW mode_t mode_of(va_list rest)
{
	return va_arg(rest, mode_t);
}

#define OPEN(call)                                                                                 \
	do {                                                                                       \
		va_list rest;                                                                      \
		mode_t mode;                                                                       \
		int fd;                                                                            \
                                                                                                   \
		va_start(rest, flags);                                                             \
		mode = mode_of(rest);                                                              \
		va_end(rest);                                                                      \
		see(CALL_OPEN, path, false);                                                       \
		fd = call;                                                                         \
		see(CALL_OPEN, path, true);                                                        \
		return fd;                                                                         \
	} while (0)

RAW int open(const char *path, int flags, ...)
{
	OPEN(REAL(open)(path, flags, mode));
}

RAW int open64(const char *path, int flags, ...)
{
	OPEN(REAL(open64)(path, flags, mode));
}

RAW int openat(int directory, const char *path, int flags, ...)
{
	OPEN(REAL(openat)(directory, path, flags, mode));
}

RAW int openat64(int directory, const char *path, int flags, ...)
{
	OPEN(REAL(openat64)(directory, path, flags, mode));
}

#define PREAD(name)                                                                                \
	do {                                                                                       \
		ssize_t n;                                                                         \
                                                                                                   \
		see_file(CALL_PREAD, fd, false);                                                   \
		n = REAL(name)(fd, to, size, offset);                                              \
		see_file(CALL_PREAD, fd, true);                                                    \
		return n;                                                                          \
	} while (0)

RAW ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	PREAD(pread);
}

RAW ssize_t pread64(int fd, void *to, size_t size, off64_t offset)
{
	PREAD(pread64);
}

#define MMAP(name)                                                                                 \
	do {                                                                                       \
		void *mapped;                                                                      \
                                                                                                   \
		if (fd >= 0)                                                                       \
			see_file(CALL_MMAP, fd, false);                                            \
		mapped = REAL(name)(address, size, protection, flags, fd, offset);                 \
		if (fd >= 0)                                                                       \
			see_file(CALL_MMAP, fd, true);                                             \
		return mapped;                                                                     \
	} while (0)

RAW void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	MMAP(mmap);
}

RAW void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
	MMAP(mmap64);
}
