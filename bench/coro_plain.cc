// SPDX-License-Identifier: Apache-2.0 OR MIT
/* For coro.cc: Asio as it is without tdt/asio.hpp. */

#include <config.h>

#ifdef HAVE_ASIO
#include <asio.hpp>
#endif
#include "coro_asio.h"

double plain_asio(asio_loop loop)
{
#ifdef ASIO_HAS_CO_AWAIT
	return in_asio(loop);
#else
	(void)loop;
	return 0;
#endif
}
