// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Publishing a process context: see process_context.h. */

#include "host/process_context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"

/* Linux 5.17 and 6.3 */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define PROCESS_CONTEXT_NAME "OTEL_CTX"

struct process_context {
	char signature[8];
	uint32_t version;
	uint32_t payload_size;
	uint64_t published_at_ns; /* of CLOCK_BOOTTIME; written last.  0: it cannot be read yet */
	uint64_t payload;	  /* its address */
};

/*
 * A message opentelemetry.proto.processcontext.v1development.ProcessContext: an empty resource (1),
 * and two attributes (2), which are pairs of a key (1) and a value (2): a string (1), and an empty
 * array (5).
 */
static const char payload[] = "\x0a\x00"
			      "\x12\x2e"
			      "\x0a\x1a"
			      "threadlocal.schema_version"
			      "\x12\x10\x0a\x0e"
			      "tlsdesc_v1_dev"
			      "\x12\x23"
			      "\x0a\x1d"
			      "threadlocal.attribute_key_map"
			      "\x12\x02\x2a";

_Static_assert(sizeof payload == 2 + 2 + 0x2e + 2 + 0x23, "the NUL is the size of the array");

static atomic_bool claimed; /* relaxed: whoever sets it publishes, and nobody waits for that */
static atomic_bool published; /* by this library; relaxed, too */

/* Whether a mapping has the name: /memfd:NAME, [anon_shmem:NAME] or [anon:NAME]. */
static bool is_published(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	bool found = false;
	size_t size = 0;

	while (maps != NULL && !found && getline(&line, &size, maps) >= 0)
		found = strstr(line, ":" PROCESS_CONTEXT_NAME) != NULL;
	free(line);
	if (maps != NULL)
		fclose(maps);
	return found;
}

/* A page that `maps` shows by the name.  MAP_FAILED: errno is set. */
static void *map_named(size_t size)
{
	int fd = memfd_create(PROCESS_CONTEXT_NAME, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	void *page;

	if (fd < 0) /* an older kernel */
		fd = memfd_create(PROCESS_CONTEXT_NAME, MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	else
		page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd >= 0)
		close(fd);
	return page;
}

static int publish(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct process_context *context = map_named(size);

	if (context == MAP_FAILED)
		return -errno;
	if (madvise(context, size, MADV_DONTFORK) != 0) {
		munmap(context, size);
		return -EINVAL;
	}
	memcpy(context->signature, PROCESS_CONTEXT_NAME, sizeof context->signature);
	context->version = 2;
	context->payload_size = sizeof payload;
	context->payload = (uintptr_t)payload;
	/* Release the fields to a reader that finds the time. */
	__atomic_store_n(&context->published_at_ns, tdt__clock_of(CLOCK_BOOTTIME),
			 __ATOMIC_RELEASE);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, context, size, PROCESS_CONTEXT_NAME);
	atomic_store_explicit(&published, true, memory_order_relaxed);
	return 0;
}

int tdt__process_context_publish(void)
{
	int saved = errno, error = 0;

	if (!atomic_exchange_explicit(&claimed, true, memory_order_relaxed) && !is_published())
		error = publish();
	if (error != 0)
		atomic_store_explicit(&claimed, false, memory_order_relaxed);
	errno = saved;
	return error;
}

void tdt__process_context_forked(void)
{
	int saved = errno;

	/* A thread that was about to publish is gone; and the mapping of an SDK may be. */
	if (atomic_load_explicit(&published, memory_order_relaxed))
		publish();
	else
		atomic_store_explicit(&claimed, false, memory_order_relaxed);
	errno = saved;
}
