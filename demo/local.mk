# SPDX-License-Identifier: Apache-2.0 OR MIT
# Small programs that a newcomer reads first.  `make demo` runs them.

noinst_PROGRAMS += demo/fibers demo/foreign-runtime demo/taskdump
if RUNTIME
noinst_PROGRAMS += demo/coroutines demo/echo-client demo/echo-server demo/server demo/stuck
endif
if HAVE_BOOST
noinst_PROGRAMS += demo/fibers-boost
endif
if HAVE_PTH
noinst_PROGRAMS += demo/fibers-pth
endif
EXTRA_DIST += demo/echo-demo.sh demo/fibers-demo.sh demo/wait.sh
# For users of event loops, to read and to build; tests/outside/callbacks.sh does.
EXTRA_DIST += demo/callbacks-event.c demo/callbacks-gio.c demo/callbacks-uv.c demo/chat.c \
	demo/chat.diff demo/fiber-boost.cc

# What programs copy: the declarations for Rust (tdt-languages(7)), and the adapters of coroutine
# libraries.
dist_doc_DATA += demo/boost_fiber.hpp demo/boost_fibers.hpp demo/pth_fibers.c demo/tdt.rs

# The trees need names and lines (-g); the stacks of tracers need frame pointers.
demo_cflags = $(AM_CFLAGS) -g -fno-omit-frame-pointer
demo_cppflags = $(AM_CPPFLAGS) -DTDT_DEMO_VERSION='"$(PACKAGE_VERSION)"'

their_runtime = demo/their_runtime.c demo/their_runtime.h

demo_coroutines_SOURCES = demo/coroutines.c demo/help.h
demo_coroutines_CFLAGS = $(demo_cflags)
demo_coroutines_LDADD = libtdt-rt.la libtdt.la -lpthread

demo_echo_client_SOURCES = demo/echo-client.c demo/number.h
demo_echo_client_CPPFLAGS = $(demo_cppflags)
demo_echo_client_CFLAGS = $(demo_cflags)
demo_echo_client_LDADD =

demo_echo_server_SOURCES = \
	demo/echo-server.c \
	demo/echo.c \
	demo/echo.h \
	demo/metrics.c \
	demo/metrics.h \
	demo/number.h
demo_echo_server_CPPFLAGS = $(demo_cppflags)
demo_echo_server_CFLAGS = $(demo_cflags)
demo_echo_server_LDADD = libtdt-rt.la libtdt.la -lpthread

# A function that ends in a tail call is in no tree.
fibers_flags = -fno-optimize-sibling-calls

demo_fibers_SOURCES = demo/fibers.c demo/help.h
demo_fibers_CFLAGS = $(demo_cflags) $(fibers_flags)
demo_fibers_LDADD = libtdt.la

demo_fibers_boost_SOURCES = demo/fibers-boost.cc demo/boost_fibers.hpp demo/help.h
demo_fibers_boost_CXXFLAGS = $(AM_CXXFLAGS) -g -fno-omit-frame-pointer $(fibers_flags)
demo_fibers_boost_LDADD = libtdt.la $(BOOST_LIBS)

demo_fibers_pth_SOURCES = demo/fibers-pth.c demo/pth_fibers.c demo/help.h
demo_fibers_pth_CFLAGS = $(demo_cflags) $(fibers_flags)
demo_fibers_pth_LDADD = libtdt.la $(PTH_LIBS) -ldl

demo_foreign_runtime_SOURCES = demo/foreign-runtime.c demo/help.h $(their_runtime)
demo_foreign_runtime_CFLAGS = $(demo_cflags)
demo_foreign_runtime_LDADD = libtdt.la -lpthread

demo_server_SOURCES = demo/server.c
demo_server_CFLAGS = $(demo_cflags)
demo_server_LDADD = libtdt-rt.la libtdt.la -lpthread

demo_stuck_SOURCES = demo/stuck.c demo/help.h
demo_stuck_CFLAGS = $(demo_cflags)
demo_stuck_LDADD = libtdt-rt.la libtdt.la -lpthread

demo_taskdump_SOURCES = demo/taskdump.c demo/help.h $(their_runtime)
demo_taskdump_CFLAGS = $(demo_cflags)
demo_taskdump_LDADD = libtdt.la -lpthread

.PHONY: demo
if RUNTIME
demo: $(noinst_PROGRAMS)
	@echo 'A task waits; its tree, asked for from another thread (demo/taskdump.c):'
	@demo/taskdump
	@echo
	@echo 'A bank stands still; all of its tasks at once (demo/stuck.c):'
	@demo/stuck
	@echo 'Coroutines wait, on stacks of their own (demo/coroutines.c):'
	@demo/coroutines
	@echo
	@$(SHELL) $(srcdir)/demo/fibers-demo.sh demo
	@echo
	@$(SHELL) $(srcdir)/demo/echo-demo.sh demo
else
demo: $(noinst_PROGRAMS)
	@echo 'A task waits; its tree, asked for from another thread (demo/taskdump.c):'
	@demo/taskdump
	@echo
	@echo 'A task of a runtime that is not part of tdt (demo/foreign-runtime.c):'
	@demo/foreign-runtime
	@echo
	@$(SHELL) $(srcdir)/demo/fibers-demo.sh demo
endif
