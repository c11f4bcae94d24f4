/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Sending messages to a server near by, each as one POST of HTTP/1.1 over a connection of its own:
 * without TLS, proxies, redirections and authentication.
 */

#include <stdbool.h>
#include <stddef.h>

#include <netdb.h>

#define POST_ANSWER_MAX 65536 /* bytes; the rest of a longer one is not read */

struct post_place {
	char authority[256]; /* "localhost:4318", as in the URL */
	char path[512];
	unsigned silence; /* seconds that the server may do nothing: 10, unless it is changed */
	struct addrinfo *addresses;
};

/* The server's answer.  Its text may hold anything. */
struct post_answer {
	int status;	    /* 200 */
	const char *reason; /* "OK" */
	const char *body;   /* `n` bytes, and a NUL behind them */
	size_t n;
	char bytes[POST_ANSWER_MAX + 1]; /* private */
};

/*
 * Read `url`, which begins with "http://", and find the addresses of its host.  A URL without a
 * port stands for `port`, and one without a path for `path`.  Returns NULL, or what is wrong with
 * the URL; then nothing need be freed.
 */
const char *post_place_init(struct post_place *place, const char *url, const char *port,
			    const char *path);
void post_place_fini(struct post_place *place);

/*
 * Send the message of this type.  Returns 0 when the server has answered, whatever it says, or a
 * negative errno: -ETIMEDOUT if it does nothing for too long, -EPROTO if its answer is not HTTP.
 */
int post(const struct post_place *place, const char *type, const void *message, size_t n,
	 struct post_answer *answer);
