// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Requests to the server of metrics.  Each complete one has an answer, whose head has the length of
 * its body.  The end of the input is also an address to listen at, which is only read.
 */

#include <config.h>

#include "fuzz.h"

#include "cli/serve.c"

static const char page[] = "tdt_up 1\n";

static int make_page(void *arg, bool open_metrics, char **text, size_t *length)
{
	(void)arg;
	(void)open_metrics;
	*length = strlen(page);
	*text = strdup(page);
	return *text != NULL ? 0 : -ENOMEM;
}

static int refuse_profile(void *arg, const char *query, struct apart *apart)
{
	(void)arg;
	(void)apart;
	return query[0] == 'x' ? -EPERM : -EINVAL;
}

/* An answer with status 200 has the page, or nothing after HEAD. */
static void claim_answer(const struct client *client)
{
	const char *end = memmem(client->answer, client->length, "\r\n\r\n", 4);
	const char *length = memmem(client->answer, client->length, "Content-Length: ", 16);
	size_t body;

	CLAIM(end != NULL && length != NULL && length < end);
	CLAIM(client->length >= 13 && memcmp(client->answer, "HTTP/1.1 ", 9) == 0);
	body = (size_t)(client->answer + client->length - (end + 4));
	CLAIM(body == strtoul(length + 16, NULL, 10) || (body == 0 && client->request[0] == 'H'));
	CLAIM(client->answer[9] != '2' || body == 0 || memcmp(end + 4, page, body) == 0);
}

/* The bytes come in pieces, as they do from a socket. */
static void take_request(const uint8_t *data, size_t size)
{
	static const struct serve_limits limits = { TDT__SECOND, TDT__SECOND };
	static const struct serve_names names = { "node7", "node7.example" };
	static const struct serve_pages pages = { make_page, refuse_profile, NULL };
	static struct server server = { .names = &names, .limits = &limits, .pages = &pages };
	static struct client client;

	client = (struct client){ .connection = -1 };
	while (client.received < size && !is_complete(client.request)) {
		client.request[client.received] = (char)data[client.received];
		client.request[++client.received] = '\0';
	}
	if (!is_complete(client.request))
		return;
	answer_request(&server, &client);
	CLAIM(client.answer != NULL);
	claim_answer(&client);
	free(client.answer);
}

static void take_place(const uint8_t *data, size_t size)
{
	size_t n = size < 100 ? size : 100;
	const char *host, *port = NULL;
	char where[101];

	memcpy(where, data + size - n, n);
	where[n] = '\0';
	host = program_split_host(where, &port);
	CLAIM(strlen(host) <= n);
	CLAIM(port == NULL || !tdt__is_port(port) || atoi(port) <= 65535);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	take_request(data, size < MOST_REQUEST ? size : MOST_REQUEST);
	take_place(data, size);
	return 0;
}
