/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The measurements of Asio.  coro.cc includes them behind tdt/asio.hpp, and coro_plain.cc without
 * it: so their awaitables are different types.
 */

#include <cstdint>

extern "C" {
#define _Noreturn __attribute__((noreturn))
#include "report.h"
}

constexpr int TIMES = 20000;

enum asio_loop { ASIO_HOP, ASIO_POST, ASIO_ECHO };

double plain_asio(asio_loop loop);

#ifdef ASIO_HAS_CO_AWAIT

namespace
{

asio::io_context io(1);

__attribute__((noinline)) asio::awaitable<void> asio_hop(int levels)
{
	if (levels > 0)
		co_await asio_hop(levels - 1);
}

asio::awaitable<void> asio_hop_often(double *took)
{
	int64_t start = now();

	for (int i = 0; i < TIMES / 10; i++)
		co_await asio_hop(9);
	*took = static_cast<double>(now() - start) / TIMES;
}

asio::awaitable<void> asio_post_often(double *took)
{
	int64_t start = now();

	for (int i = 0; i < TIMES; i++)
		co_await asio::post(io, asio::use_awaitable);
	*took = static_cast<double>(now() - start) / TIMES;
}

asio::awaitable<void> asio_echo(asio::local::stream_protocol::socket &peer, int times)
{
	char byte;

	for (int i = 0; i < times; i++) {
		co_await peer.async_read_some(asio::buffer(&byte, 1), asio::use_awaitable);
		co_await asio::async_write(peer, asio::buffer(&byte, 1), asio::use_awaitable);
	}
}

asio::awaitable<void> asio_echo_often(double *took)
{
	asio::local::stream_protocol::socket a(io), b(io);
	char byte = 1;
	int64_t start;

	asio::local::connect_pair(a, b);
	asio::co_spawn(io, asio_echo(b, TIMES / 10), asio::detached);
	start = now();
	for (int i = 0; i < TIMES / 10; i++) {
		co_await asio::async_write(a, asio::buffer(&byte, 1), asio::use_awaitable);
		co_await a.async_read_some(asio::buffer(&byte, 1), asio::use_awaitable);
	}
	*took = static_cast<double>(now() - start) / (TIMES / 10);
}

double in_asio(asio_loop loop)
{
	double took = 0;

	asio::co_spawn(io,
		       loop == ASIO_HOP    ? asio_hop_often(&took)
		       : loop == ASIO_POST ? asio_post_often(&took)
					   : asio_echo_often(&took),
		       asio::detached);
	io.restart();
	io.run();
	return took;
}

} // namespace

#endif
