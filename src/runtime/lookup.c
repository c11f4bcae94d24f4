// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Looking up names by getaddrinfo(3), on a blocking thread. */

#include "runtime/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/blocking.h"

#define LOOKING_UP "looking up "

/* tdt/rt/net.h lists them. */
static int errno_of(int error)
{
	switch (error) {
	case 0:
		return 0;
	case EAI_NONAME:
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return -ENOENT;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno != 0 ? -errno : -EIO;
	default:
		return -EIO;
	}
}

/* The job. */
static void look_up_host(void *arg)
{
	/* Addresses that this host has no route to fail at once, and the next one is tried. */
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct tdt__lookup *lookup = arg;
	const char *host = lookup->words + strlen(LOOKING_UP);

	lookup->error = errno_of(getaddrinfo(host, NULL, &hints, &lookup->found));
}

struct tdt_future tdt__lookup_new(const char *host, struct tdt__lookup **lookup)
{
	size_t size = sizeof LOOKING_UP + strlen(host);
	struct tdt__lookup *made = calloc(1, sizeof *made + size);
	struct tdt_future future;

	if (made == NULL)
		return TDT_FUTURE_NONE;
	snprintf(made->words, size, LOOKING_UP "%s", host);
	*lookup = made;
	future = tdt__blocking_new(look_up_host, made, tdt__lookup_free, made->words);
	if (tdt_future_is_none(&future)) {
		*lookup = NULL;
		free(made);
	}
	return future;
}

void tdt__lookup_free(void *lookup)
{
	if (lookup != NULL && ((struct tdt__lookup *)lookup)->found != NULL)
		freeaddrinfo(((struct tdt__lookup *)lookup)->found);
	free(lookup);
}
