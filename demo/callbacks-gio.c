// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Callbacks of GLib and GIO: each request connects, writes, and reads an answer that does not come;
 * then all is dumped.  What was added for tdt are the lines with TDT_ or tdt_.  They cost a
 * callback some 30 ns, of the 2 us and more that an event takes.
 *
 *	callbacks-gio [REQUESTS]         prints where they wait (3)
 */

#include <stdio.h>
#include <stdlib.h>

#include <gio/gio.h>

#include <tdt/callback.h>
#include <tdt/trace.h>

/* All callbacks of GIO have one type: this one stands before those of the program. */
static void ready(GObject *object, GAsyncResult *result, gpointer op)
{
	TDT_RUNS((struct tdt_op *)op);
	TDT_BOXED_CALLBACK(op, GAsyncReadyCallback)(object, result, TDT_BOXED_DATA(op));
}

struct request {
	struct tdt_op op;
	GSocketConnection *connection;
	char answer[64];
};

static GMainLoop *loop;
static int reading, requests;

static gboolean dump(gpointer nothing)
{
	(void)nothing;
	tdt_dump(stdout);
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void end(struct request *request)
{
	tdt_op_end(&request->op);
	g_clear_object(&request->connection);
	g_free(request);
}

static void got(GObject *stream, GAsyncResult *result, gpointer data)
{
	g_input_stream_read_finish(G_INPUT_STREAM(stream), result, NULL);
	end(data);
}

static void wrote(GObject *stream, GAsyncResult *result, gpointer data)
{
	struct request *request = data;
	GInputStream *in = g_io_stream_get_input_stream(G_IO_STREAM(request->connection));

	g_output_stream_write_finish(G_OUTPUT_STREAM(stream), result, NULL);
	TDT_AWAITS(&request->op,
		   g_input_stream_read_async(in, request->answer, sizeof request->answer, 0, NULL,
					     ready, TDT_BOX(&request->op, got, request)),
		   "g_input_stream_read_async");
	if (++reading == requests)
		g_timeout_add(100, dump, NULL);
}

static void connected(GObject *client, GAsyncResult *result, gpointer data)
{
	struct request *request = data;
	GOutputStream *out;

	request->connection =
		g_socket_client_connect_to_host_finish(G_SOCKET_CLIENT(client), result, NULL);
	if (request->connection == NULL) {
		end(request);
		return;
	}
	out = g_io_stream_get_output_stream(G_IO_STREAM(request->connection));
	TDT_AWAITS(&request->op,
		   g_output_stream_write_async(out, "hello", 5, 0, NULL, ready,
					       TDT_BOX(&request->op, wrote, request)),
		   "g_output_stream_write_async");
}

static void fetch(GSocketClient *client, guint16 port)
{
	struct request *request = g_new0(struct request, 1);

	tdt_op_begin(&request->op, TDT_TASK_ATTR(.name = "fetch"));
	TDT_AWAITS(&request->op,
		   g_socket_client_connect_to_host_async(client, "127.0.0.1", port, NULL, ready,
							 TDT_BOX(&request->op, connected, request)),
		   "g_socket_client_connect_to_host_async");
}

static gboolean incoming(GSocketService *service, GSocketConnection *connection, GObject *source,
			 gpointer nothing)
{
	(void)service;
	(void)source;
	(void)nothing;
	g_object_ref(connection); /* it never answers */
	return TRUE;
}

int main(int argc, char **argv)
{
	GSocketService *service = g_socket_service_new();
	GSocketClient *client = g_socket_client_new();
	guint16 port =
		g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(service), NULL, NULL);

	requests = argc > 1 ? atoi(argv[1]) : 3;
	loop = g_main_loop_new(NULL, FALSE);
	g_signal_connect(service, "incoming", G_CALLBACK(incoming), NULL);
	g_socket_service_start(service);
	for (int i = 0; i < requests; i++)
		fetch(client, port);
	g_main_loop_run(loop);
	return EXIT_SUCCESS;
}
