# SPDX-License-Identifier: Apache-2.0 OR MIT
# Check speaks TAP to automake, so that each test case is named in the log.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; \
	CK_VERBOSITY=silent; export CK_VERBOSITY; \
	CK_DEFAULT_TIMEOUT=60; export CK_DEFAULT_TIMEOUT; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	MAKE='$(MAKE)'; export MAKE; \
	CC='$(CC)'; export CC; \
	CXX='$(CXX)'; export CXX; \
	PKG_CONFIG='$(PKG_CONFIG)'; export PKG_CONFIG; \
	SANITIZERS='$(SANITIZERS)'; export SANITIZERS; \
	TEST_GCC='$(TEST_GCC)'; export TEST_GCC; \
	TEST_CLANG='$(TEST_CLANG)'; export TEST_CLANG; \
	TEST_GXX='$(TEST_GXX)'; export TEST_GXX; \
	TEST_CLANGXX='$(TEST_CLANGXX)'; export TEST_CLANGXX; \
	BENCHES='$(BENCHES)'; export BENCHES; \
	$(sanitizer_environment)

# What an environment sets already stays.  AddressSanitizer makes no signal stacks: a thread that was cancelled leaves its
# stack marked as in use, and Clang's runtime, which takes the signal stack down in such a thread, reports itself.
# ThreadSanitizer would sleep for a second at the end of each process that has threads: of most test cases, that is.
if SANITIZED
sanitizer_environment = \
	CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER-3}; export CK_TIMEOUT_MULTIPLIER; \
	ASAN_OPTIONS=$${ASAN_OPTIONS-detect_leaks=1:strict_string_checks=1:use_sigaltstack=0}; export ASAN_OPTIONS; \
	UBSAN_OPTIONS=$${UBSAN_OPTIONS-print_stacktrace=1}; export UBSAN_OPTIONS; \
	TSAN_OPTIONS=$${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:atexit_sleep_ms=0}; export TSAN_OPTIONS;
endif

# Tests that look inside link libtdt-core.la, all others the library as installed.
tests_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_core = libtdt-core.la $(CHECK_LIBS)
tests_lib = libtdt.la $(CHECK_LIBS)
tests_rt = libtdt-rt.la $(tests_lib) -lpthread

# Small futures and wakers; and a malloc that fails when told to.
tests_futures = tests/futures.c tests/futures.h tests/test.h
tests_threads = tests/threads.c tests/threads.h
tests_leaf = tests/leaf.c tests/leaf.h tests/must.h tests/test.h
tests_no_memory = tests/no_memory.c tests/no_memory.h tests/sanitized.h

# A waker for a thread that waits.
tests_bell = tests/bell.c tests/bell.h tests/must.h

# A task on the thread that asks; and what its captures are compared with.
tests_poll_now = tests/poll_now.c tests/poll_now.h
tests_expected = tests/expected.c tests/expected.h tests/test.h $(tests_poll_now)

# Traces to be printed.
tests_printed = tests/printed.c tests/printed.h tests/test.h
tests_dumped = tests/dumped.c tests/dumped.h $(tests_printed)

# A driver, and tasks on the thread of the test; and what the kernel says of the driver's thread.
tests_driven = tests/driven.c tests/driven.h tests/must.h $(tests_futures)
tests_driver_thread = tests/driver_thread.c tests/driver_thread.h
tests_rt_core = libtdt-rt-core.la libtdt.la $(CHECK_LIBS)

tests_asking = tests/asking.c tests/asking.h $(tests_futures)

tests_programs = \
	tests/check_abi \
	tests/check_async \
	tests/check_barrier \
	tests/check_capture \
	tests/check_code \
	tests/check_counted \
	tests/check_combine \
	tests/check_concurrent \
	tests/check_cycles \
	tests/check_coroutine \
	tests/check_coroutine_trees \
	tests/check_deadlock \
	tests/check_driver \
	tests/check_dump_all \
	tests/check_dump_cost \
	tests/check_dump_json \
	tests/check_dump_signal \
	tests/check_dump_stuck \
	tests/check_dump_text \
	tests/check_edges \
	tests/check_errno \
	tests/check_folded \
	tests/check_fork \
	tests/check_future \
	tests/check_ghosts \
	tests/check_ghosts_races \
	tests/check_handlers \
	tests/check_handlers_static \
	tests/check_handshake \
	tests/check_host_fork \
	tests/check_host_loader \
	tests/check_host_naming \
	tests/check_host_unload \
	tests/check_hot_paths \
	tests/check_index \
	tests/check_join \
	tests/check_json \
	tests/check_kept \
	tests/check_kept_naive \
	tests/check_leaves \
	tests/check_modules \
	tests/check_mutex \
	tests/check_namer \
	tests/check_naming \
	tests/check_net \
	tests/check_null \
	tests/check_odd_frames \
	tests/check_odd_stacks \
	tests/check_oneshot \
	tests/check_over \
	tests/check_peek \
	tests/check_plugins \
	tests/check_print \
	tests/check_probes \
	tests/check_refused \
	tests/check_registry \
	tests/check_requests \
	tests/check_ring \
	tests/check_rt \
	tests/check_rt_block_on \
	tests/check_rt_idle \
	tests/check_rt_nomem \
	tests/check_rt_races \
	tests/check_rt_workers \
	tests/check_running \
	tests/check_running_odd \
	tests/check_running_races \
	tests/check_running_refused \
	tests/check_running_stacks \
	tests/check_stack \
	tests/check_stacks \
	tests/check_stepped \
	tests/check_symbolize \
	tests/check_symbolize_nomem \
	tests/check_switched \
	tests/check_syscalls_refused \
	tests/check_shared_frames \
	tests/check_snapshot \
	tests/check_snapshot_rt \
	tests/check_tasks \
	tests/check_text \
	tests/check_timeout \
	tests/check_timers \
	tests/check_traced \
	tests/check_traced_nomem \
	tests/check_tree \
	tests/check_unwound \
	tests/check_waits \
	tests/check_walk \
	tests/check_watch \
	tests/check_watch_poll \
	tests/check_watch_races \
	tests/check_yield \
	tests/descriptors

tests_check_abi_SOURCES = tests/check_abi.c tests/test.h
tests_check_abi_CFLAGS = $(tests_cflags)
tests_check_abi_LDADD = $(CHECK_LIBS)

tests_check_async_SOURCES = tests/check_async.c $(tests_futures)
tests_check_async_CFLAGS = $(tests_cflags)
tests_check_async_LDADD = $(CHECK_LIBS)

tests_check_barrier_SOURCES = tests/check_barrier.c tests/refuse_call.h $(tests_asking)
tests_check_barrier_CFLAGS = $(tests_cflags)
tests_check_barrier_LDADD = $(tests_core)

tests_check_capture_SOURCES = tests/check_capture.c $(tests_expected) $(tests_no_memory)
tests_check_capture_CFLAGS = $(tests_cflags)
tests_check_capture_LDADD = $(tests_lib)

tests_check_mutex_SOURCES = \
	tests/check_mutex.c tests/seeded.h \
	$(tests_bell) \
	$(tests_futures) \
	$(tests_no_memory)
tests_check_mutex_CFLAGS = $(tests_cflags)
tests_check_mutex_LDADD = $(tests_rt)

tests_check_modules_SOURCES = tests/check_modules.c tests/must.h tests/test.h
tests_check_modules_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_modules_CFLAGS = $(tests_cflags)
tests_check_modules_LDADD = $(tests_core) -ldl
tests_check_modules_LDFLAGS = -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_clockwait
EXTRA_tests_check_modules_DEPENDENCIES = tests/plugin_a.la tests/plugin_b.la

# A look-up that stands still, threads that can't be had; and what libdw loads.
tests_check_namer_SOURCES = tests/check_namer.c tests/must.h tests/sanitized.h tests/test.h
tests_check_namer_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
tests_check_namer_LDFLAGS = -Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__service_start
tests_check_namer_LDADD = $(tests_core) -ldl

tests_check_naming_SOURCES = tests/check_naming.c tests/must.h tests/sanitized.h tests/test.h
tests_check_naming_CFLAGS = $(tests_cflags)
tests_check_naming_LDFLAGS = -Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__symbol_known \
	-Wl,--wrap=pthread_mutex_lock
tests_check_naming_LDADD = $(tests_core)

tests_check_net_SOURCES = tests/check_net.c tests/seeded.h $(tests_driven) $(tests_no_memory)
tests_check_net_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_check_net_LDFLAGS = -Wl,--wrap=poll -Wl,--wrap=uv_poll_init
tests_check_net_LDADD = $(tests_rt_core)

tests_check_null_SOURCES = tests/check_null.c tests/test.h $(tests_poll_now)
tests_check_null_CFLAGS = $(tests_cflags)
tests_check_null_LDADD = $(tests_rt)

tests_check_odd_stacks_SOURCES = tests/check_odd_stacks.c $(tests_expected)
tests_check_odd_stacks_CFLAGS = $(tests_cflags)
tests_check_odd_stacks_LDADD = $(tests_lib)

tests_check_oneshot_SOURCES = \
	tests/check_oneshot.c tests/seeded.h \
	$(tests_bell) \
	$(tests_futures) \
	$(tests_no_memory)
tests_check_oneshot_CFLAGS = $(tests_cflags)
tests_check_oneshot_LDADD = $(tests_rt)

tests_check_over_SOURCES = tests/check_over.c tests/seeded.h tests/test.h $(tests_poll_now)
tests_check_over_CFLAGS = $(tests_cflags)
tests_check_over_LDADD = $(tests_lib)

tests_check_peek_SOURCES = tests/check_peek.c tests/must.h tests/refuse_call.h tests/test.h
tests_check_peek_CFLAGS = $(tests_cflags)
tests_check_peek_LDADD = $(tests_core)

tests_check_plugins_SOURCES = tests/check_plugins.c $(tests_expected) $(tests_no_memory)
tests_check_plugins_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_plugins_CFLAGS = $(tests_cflags)
tests_check_plugins_LDADD = $(tests_lib) -ldl
EXTRA_tests_check_plugins_DEPENDENCIES = tests/plugin_a.la tests/plugin_b.la

tests_check_ghosts_SOURCES = tests/check_ghosts.c tests/must.h $(tests_futures)
tests_check_ghosts_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_ghosts_CFLAGS = $(tests_cflags)
tests_check_ghosts_LDADD = $(tests_lib) -ldl
EXTRA_tests_check_ghosts_DEPENDENCIES = tests/ghost_plugin.la

check_LTLIBRARIES = tests/ghost_plugin.la
tests_ghost_plugin_la_SOURCES = tests/ghost_plugin.c
tests_ghost_plugin_la_LDFLAGS = $(tests_plugin_ldflags)

tests_check_ghosts_races_SOURCES = tests/check_ghosts_races.c tests/must.h tests/sanitized.h tests/test.h
tests_check_ghosts_races_CFLAGS = $(tests_cflags)
tests_check_ghosts_races_LDADD = $(tests_rt)

# Modules that check_plugins loads; -rpath makes libtool build them shared.
check_LTLIBRARIES += tests/plugin_a.la tests/plugin_b.la
tests_plugin_ldflags = -module -avoid-version -shared -rpath /nowhere
tests_plugin_a_la_SOURCES = tests/plugin.c
tests_plugin_a_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=a -DPLUGIN_FRAME=1024
tests_plugin_a_la_LDFLAGS = $(tests_plugin_ldflags)
tests_plugin_b_la_SOURCES = tests/plugin.c
tests_plugin_b_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=b -DPLUGIN_FRAME=2048
tests_plugin_b_la_LDFLAGS = $(tests_plugin_ldflags)

# Plugins of the tests of hosts: b has larger frames than a, c has those of a; d has a constructor that takes its time,
# e no debug information.
check_LTLIBRARIES += $(tests_host_plugins_la)
tests_host_plugin_a_la_SOURCES = tests/host_plugin.c tests/host_plugin.h
tests_host_plugin_a_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=a -DPLUGIN_FRAME=1024
tests_host_plugin_a_la_LDFLAGS = $(tests_plugin_ldflags)
tests_host_plugin_b_la_SOURCES = tests/host_plugin.c tests/host_plugin.h
tests_host_plugin_b_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=b -DPLUGIN_FRAME=2048 -DPLUGIN_BACKWARDS
tests_host_plugin_b_la_LDFLAGS = $(tests_plugin_ldflags)
tests_host_plugin_c_la_SOURCES = tests/host_plugin.c tests/host_plugin.h
tests_host_plugin_c_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=c -DPLUGIN_FRAME=1024 -DPLUGIN_BACKWARDS
tests_host_plugin_c_la_LDFLAGS = $(tests_plugin_ldflags)
tests_host_plugin_d_la_SOURCES = tests/host_plugin.c tests/host_plugin.h
tests_host_plugin_d_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=d -DPLUGIN_FRAME=1024 -DPLUGIN_CONSTRUCTOR_MS=50
tests_host_plugin_d_la_LDFLAGS = $(tests_plugin_ldflags)
tests_host_plugin_e_la_SOURCES = tests/host_plugin.c tests/host_plugin.h
tests_host_plugin_e_la_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGIN_NAME=e -DPLUGIN_FRAME=1024
tests_host_plugin_e_la_LDFLAGS = $(tests_plugin_ldflags) -Wl,-s
tests_check_code_SOURCES = tests/check_code.c tests/must.h tests/test.h
tests_check_code_CFLAGS = $(tests_cflags)
tests_check_code_LDADD = $(tests_core)

tests_check_combine_SOURCES = tests/check_combine.c $(tests_futures)
tests_check_combine_CFLAGS = $(tests_cflags)
tests_check_combine_LDADD = $(tests_lib)

tests_check_counted_SOURCES = tests/check_counted.c tests/seeded.h $(tests_asking)
tests_check_counted_CFLAGS = $(tests_cflags)
tests_check_counted_LDADD = $(tests_core)

tests_check_cycles_SOURCES = tests/check_cycles.c tests/test.h $(tests_no_memory)
tests_check_cycles_CFLAGS = $(tests_cflags)
tests_check_cycles_LDADD = $(tests_core)
tests_check_coroutine_SOURCES = tests/check_coroutine.c tests/must.h $(tests_futures)
tests_check_coroutine_CFLAGS = $(tests_cflags)
tests_check_coroutine_LDADD = $(tests_rt)

tests_check_coroutine_trees_SOURCES = tests/check_coroutine_trees.c tests/seeded.h tests/test.h $(tests_poll_now)
tests_check_coroutine_trees_CFLAGS = $(tests_cflags)
tests_check_coroutine_trees_LDADD = $(tests_lib)

tests_check_deadlock_SOURCES = tests/check_deadlock.c tests/must.h tests/seeded.h tests/test.h
tests_check_deadlock_CFLAGS = $(tests_cflags)
tests_check_deadlock_LDADD = $(tests_rt)

tests_check_driver_SOURCES = tests/check_driver.c tests/test.h $(tests_driver_thread) $(tests_no_memory)
tests_check_driver_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_check_driver_LDFLAGS = -Wl,--wrap=pthread_create
tests_check_driver_LDADD = $(tests_rt_core)

tests_check_dump_all_SOURCES = tests/check_dump_all.c $(tests_printed)
tests_check_dump_all_CFLAGS = $(tests_cflags)
tests_check_dump_all_LDADD = $(tests_lib)

tests_check_dump_json_SOURCES = \
	tests/check_dump_json.c \
	$(tests_dumped) \
	$(tests_no_memory) \
	cli/read_json.c \
	cli/read_json.h
tests_check_dump_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_check_dump_json_LDADD = $(tests_lib) $(JANSSON_LIBS)

# What the thread dumps, and that there may be no thread, by ld's --wrap.
tests_check_dump_signal_SOURCES = tests/check_dump_signal.c tests/must.h tests/test.h $(tests_threads)
tests_check_dump_signal_CFLAGS = $(tests_cflags)
tests_check_dump_signal_LDFLAGS = -Wl,--wrap=tdt_dump -Wl,--wrap=pthread_create
tests_check_dump_signal_LDADD = $(tests_core)

tests_check_dump_stuck_SOURCES = tests/check_dump_stuck.c $(tests_stuck_task) $(tests_leaf)
tests_check_dump_stuck_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_check_dump_stuck_LDADD = $(tests_rt)

tests_check_dump_cost_SOURCES = tests/check_dump_cost.c $(tests_dumped) $(tests_no_memory)
tests_check_dump_cost_CFLAGS = $(tests_cflags)
tests_check_dump_cost_LDADD = $(tests_lib)

tests_check_dump_text_SOURCES = tests/check_dump_text.c $(tests_dumped) $(tests_no_memory)
tests_check_dump_text_CFLAGS = $(tests_cflags)
tests_check_dump_text_LDADD = $(tests_lib)

tests_check_edges_SOURCES = tests/check_edges.c tests/ask_waiting.h tests/test.h $(tests_poll_now)
tests_check_edges_CFLAGS = $(tests_cflags)
tests_check_edges_LDADD = $(tests_rt)

tests_check_errno_SOURCES = tests/check_errno.c tests/test.h $(tests_poll_now)
tests_check_errno_CFLAGS = $(tests_cflags)
tests_check_errno_LDADD = $(tests_lib) -lpthread

tests_check_future_SOURCES = tests/check_future.c $(tests_futures)
tests_check_future_CFLAGS = $(tests_cflags)
tests_check_future_LDADD = $(CHECK_LIBS)

# The static one as in a program that binds late, which tests the library's objects alone.
tests_check_handlers_SOURCES = tests/check_handlers.c tests/test.h $(tests_stuck_task)
tests_check_handlers_CFLAGS = $(tests_cflags)
tests_check_handlers_LDADD = $(tests_lib) -lpthread

tests_check_handlers_static_SOURCES = $(tests_check_handlers_SOURCES)
tests_check_handlers_static_CFLAGS = $(tests_cflags)
tests_check_handlers_static_LDFLAGS = -static-libtool-libs -Wl,-z,lazy
tests_check_handlers_static_LDADD = $(tests_lib) -lpthread

tests_check_handshake_SOURCES = tests/check_handshake.c tests/seeded.h
tests_check_handshake_CFLAGS = $(tests_cflags)
tests_check_handshake_LDFLAGS = -Wl,--wrap=tdt__barrier_heavy
tests_check_handshake_LDADD = libtdt-core.la

# Hosts whose plugins come and go, whose loader is busy, whose files can't be read: in calls of libc that tests
# hold up, since tests/calls.c defines them in the executable.
tests_calls = tests/calls.c tests/calls.h tests/apart.c tests/apart.h
tests_host_plugins = tests/host_plugins.c tests/host_plugins.h tests/host_plugin.h
tests_host_cppflags = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_host_plugins_la = \
	tests/host_plugin_a.la \
	tests/host_plugin_b.la \
	tests/host_plugin_c.la \
	tests/host_plugin_d.la \
	tests/host_plugin_e.la

tests_check_host_fork_SOURCES = \
	tests/check_host_fork.c \
	tests/must.h \
	tests/sanitized.h \
	tests/test.h \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_poll_now)
tests_check_host_fork_CPPFLAGS = $(tests_host_cppflags)
tests_check_host_fork_CFLAGS = $(tests_cflags)
tests_check_host_fork_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_check_host_fork_DEPENDENCIES = $(tests_host_plugins_la)

tests_check_host_loader_SOURCES = \
	tests/check_host_loader.c \
	tests/apart.c \
	tests/apart.h \
	$(tests_host_plugins) \
	$(tests_poll_now) \
	$(tests_stuck_task)
tests_check_host_loader_CPPFLAGS = $(tests_host_cppflags)
tests_check_host_loader_CFLAGS = $(tests_cflags)
tests_check_host_loader_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_check_host_loader_DEPENDENCIES = $(tests_host_plugins_la)

tests_check_host_naming_SOURCES = \
	tests/check_host_naming.c \
	tests/must.h \
	tests/test.h \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_poll_now)
tests_check_host_naming_CPPFLAGS = $(tests_host_cppflags)
tests_check_host_naming_CFLAGS = $(tests_cflags)
tests_check_host_naming_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_check_host_naming_DEPENDENCIES = $(tests_host_plugins_la)

tests_check_host_unload_SOURCES = \
	tests/check_host_unload.c \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_stuck_task)
tests_check_host_unload_CPPFLAGS = $(tests_host_cppflags)
tests_check_host_unload_CFLAGS = $(tests_cflags)
tests_check_host_unload_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_check_host_unload_DEPENDENCIES = $(tests_host_plugins_la)

# What is executed, instruction by instruction.
tests_check_hot_paths_SOURCES = \
	tests/check_hot_paths.c \
	tests/must.h \
	tests/sanitized.h \
	tests/stepped.c \
	tests/stepped.h \
	tests/test.h
tests_check_hot_paths_CFLAGS = $(tests_cflags)
tests_check_hot_paths_LDADD = libtdt-rt-core.la $(tests_core) -ldl

tests_check_stacks_SOURCES = tests/check_stacks.c tests/must.h tests/test.h
tests_check_stacks_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_stacks_CFLAGS = $(tests_cflags)
tests_check_stacks_LDADD = $(tests_core)
EXTRA_tests_check_stacks_DEPENDENCIES = tests/plugin_a.la

tests_check_index_SOURCES = tests/check_index.c tests/test.h $(tests_no_memory)
tests_check_index_CFLAGS = $(tests_cflags)
tests_check_index_LDADD = $(tests_core)

tests_check_join_SOURCES = tests/check_join.c tests/seeded.h $(tests_asking) $(tests_bell) $(tests_no_memory)
tests_check_join_CFLAGS = $(tests_cflags)
tests_check_join_LDADD = $(tests_lib)

tests_check_json_SOURCES = \
	tests/check_json.c \
	$(tests_no_memory) \
	$(tests_printed) \
	cli/read_json.c \
	cli/read_json.h
tests_check_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_check_json_LDADD = $(tests_lib) $(JANSSON_LIBS)

tests_check_print_SOURCES = tests/check_print.c $(tests_no_memory) $(tests_printed)
tests_check_print_CFLAGS = $(tests_cflags)
tests_check_print_LDADD = $(tests_lib)

# The probes, and what a poll must not do for their sake, seen by ld's --wrap.
tests_check_probes_SOURCES = \
	tests/check_probes.c \
	tests/must.h \
	tests/unwinding.cc \
	tests/unwinding.h \
	$(tests_asking) \
	$(tests_no_memory)
tests_check_probes_CFLAGS = $(tests_cflags) -fexceptions
if PROBES
tests_check_probes_LDFLAGS = \
	-Wl,--wrap=tdt_probe_task__spawn \
	-Wl,--wrap=tdt_probe_task__poll__start \
	-Wl,--wrap=tdt_probe_task__poll__end \
	-Wl,--wrap=tdt_probe_task__terminate \
	-Wl,--wrap=tdt_probe_task__wake \
	-Wl,--wrap=tdt_probe_task__waker__clone \
	-Wl,--wrap=tdt_probe_worker__thread__start \
	-Wl,--wrap=tdt_probe_worker__thread__stop \
	-Wl,--wrap=tdt_probe_worker__thread__park \
	-Wl,--wrap=tdt_probe_worker__thread__unpark \
	-Wl,--wrap=pthread_mutex_lock \
	-Wl,--wrap=clock_gettime
endif
tests_check_probes_LDADD = $(tests_core)

tests_check_tasks_SOURCES = tests/check_tasks.c tests/must.h tests/seeded.h $(tests_asking)
tests_check_tasks_CFLAGS = $(tests_cflags)
tests_check_tasks_LDADD = $(tests_lib)

tests_check_text_SOURCES = tests/check_text.c $(tests_printed)
tests_check_text_CFLAGS = $(tests_cflags)
tests_check_text_LDADD = $(tests_lib)

tests_check_timeout_SOURCES = tests/check_timeout.c $(tests_driven) $(tests_no_memory)
tests_check_timeout_CFLAGS = $(tests_cflags)
tests_check_timeout_LDADD = $(tests_rt_core)

tests_check_timers_SOURCES = tests/check_timers.c tests/seeded.h $(tests_driven) $(tests_driver_thread) $(tests_no_memory)
tests_check_timers_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_check_timers_LDADD = $(tests_rt_core)

tests_check_stack_SOURCES = tests/check_stack.c tests/must.h tests/sanitized.h tests/test.h
tests_check_stack_CFLAGS = $(tests_cflags)
tests_check_stack_LDADD = $(tests_core) -lpthread

tests_check_stepped_SOURCES = tests/check_stepped.c tests/must.h tests/test.h
tests_check_stepped_CFLAGS = $(tests_cflags)
tests_check_stepped_LDADD = $(tests_core)

tests_check_symbolize_SOURCES = tests/check_symbolize.c tests/must.h tests/self.h
tests_check_symbolize_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
tests_check_symbolize_LDADD = $(tests_core)

tests_check_symbolize_nomem_SOURCES = tests/check_symbolize_nomem.c tests/self.h
tests_check_symbolize_nomem_CFLAGS = $(tests_cflags)
tests_check_symbolize_nomem_LDADD = $(tests_core)

tests_switched = tests/switched.c tests/switched.h tests/must.h src/future/fiber.h

tests_check_switched_SOURCES = tests/check_switched.c $(tests_switched) $(tests_asking)
tests_check_switched_CFLAGS = $(tests_cflags)
tests_check_switched_LDADD = $(tests_lib)

# What a filter refuses.
tests_check_syscalls_refused_SOURCES = tests/check_syscalls_refused.c tests/must.h tests/sanitized.h tests/test.h
tests_check_syscalls_refused_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_syscalls_refused_CFLAGS = $(tests_cflags)
tests_check_syscalls_refused_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_check_syscalls_refused_DEPENDENCIES = tests/plugin_a.la

tests_check_shared_frames_SOURCES = tests/check_shared_frames.c tests/must.h tests/seeded.h tests/test.h
tests_check_shared_frames_CFLAGS = $(tests_cflags)
tests_check_shared_frames_LDADD = $(tests_core)

tests_check_snapshot_SOURCES = \
	tests/check_snapshot.c \
	tests/listed.h \
	tests/must.h \
	$(tests_asking) \
	$(tests_no_memory) \
	$(tests_poll_now)
tests_check_snapshot_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_snapshot_CFLAGS = $(tests_cflags) -fexceptions
tests_check_snapshot_LDADD = $(tests_core) -ldl
EXTRA_tests_check_snapshot_DEPENDENCIES = tests/plugin_a.la tests/plugin_b.la

tests_check_snapshot_rt_SOURCES = tests/check_snapshot_rt.c tests/sanitized.h tests/seeded.h $(tests_leaf)
tests_check_snapshot_rt_CFLAGS = $(tests_cflags)
tests_check_snapshot_rt_LDADD = $(tests_rt)

tests_check_tree_SOURCES = tests/check_tree.c $(tests_no_memory)
tests_check_tree_CFLAGS = $(tests_cflags)
tests_check_tree_LDADD = $(tests_lib)

tests_check_traced_SOURCES = tests/check_traced.c $(tests_asking)
tests_check_traced_CFLAGS = $(tests_cflags)
tests_check_traced_LDADD = $(tests_lib)

tests_check_kept_SOURCES = tests/check_kept.c $(tests_asking)
tests_check_kept_CFLAGS = $(tests_cflags)
tests_check_kept_LDADD = $(tests_core)

tests_check_kept_naive_SOURCES = tests/check_kept.c src/task/wrapper.c tests/naive_kept.h $(tests_asking)
tests_check_kept_naive_CFLAGS = $(tests_cflags) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) -include $(srcdir)/tests/naive_kept.h
tests_check_kept_naive_LDADD = $(tests_core)

tests_check_unwound_SOURCES = tests/check_unwound.c tests/unwinding.cc tests/unwinding.h $(tests_asking)
tests_check_unwound_CFLAGS = $(tests_cflags) -fexceptions
tests_check_unwound_LDADD = $(tests_core)

tests_check_refused_SOURCES = tests/check_refused.c tests/listed.h $(tests_asking)
tests_check_refused_CFLAGS = $(tests_cflags)
tests_check_refused_LDADD = $(tests_core)

tests_check_registry_SOURCES = tests/check_registry.c tests/must.h tests/test.h $(tests_no_memory)
tests_check_registry_CFLAGS = $(tests_cflags)
tests_check_registry_LDADD = $(tests_core)

tests_check_requests_SOURCES = tests/check_requests.c tests/listed.h $(tests_asking)
tests_check_requests_CFLAGS = $(tests_cflags)
tests_check_requests_LDADD = $(tests_core)

tests_check_rt_SOURCES = tests/check_rt.c tests/ask_waiting.h $(tests_leaf) $(tests_threads)
tests_check_rt_CFLAGS = $(tests_cflags)
tests_check_rt_LDADD = $(tests_rt)

tests_check_ring_SOURCES = tests/check_ring.c tests/must.h tests/test.h
tests_check_ring_CFLAGS = $(tests_cflags)
tests_check_ring_LDADD = libtdt-rt-core.la $(tests_lib)

tests_check_rt_block_on_SOURCES = tests/check_rt_block_on.c tests/ask_waiting.h $(tests_leaf)
tests_check_rt_block_on_CFLAGS = $(tests_cflags)
tests_check_rt_block_on_LDADD = $(tests_rt)

tests_check_rt_idle_SOURCES = tests/check_rt_idle.c tests/ask_waiting.h $(tests_leaf) $(tests_threads)
tests_check_rt_idle_CFLAGS = $(tests_cflags)
tests_check_rt_idle_LDADD = $(tests_rt)

tests_check_rt_nomem_SOURCES = tests/check_rt_nomem.c $(tests_leaf) $(tests_no_memory) $(tests_threads)
tests_check_rt_nomem_CFLAGS = $(tests_cflags)
tests_check_rt_nomem_LDFLAGS = -Wl,--wrap=pthread_create
tests_check_rt_nomem_LDADD = libtdt-rt-core.la $(tests_lib)

tests_check_rt_races_SOURCES = tests/check_rt_races.c tests/ask_waiting.h tests/seeded.h $(tests_leaf)
tests_check_rt_races_CFLAGS = $(tests_cflags)
tests_check_rt_races_LDADD = $(tests_rt)

# What workers tell, and the moment before they sleep, seen by ld's --wrap.
tests_check_rt_workers_SOURCES = tests/check_rt_workers.c $(tests_leaf)
tests_check_rt_workers_CFLAGS = $(tests_cflags)
tests_check_rt_workers_LDFLAGS = \
	-Wl,--wrap=tdt__idle_park \
	-Wl,--wrap=tdt_task_woken \
	-Wl,--wrap=tdt_worker_now \
	-Wl,--wrap=tdt_worker_thread_park \
	-Wl,--wrap=tdt_worker_thread_start \
	-Wl,--wrap=tdt_worker_thread_stop \
	-Wl,--wrap=tdt_worker_thread_unpark
tests_check_rt_workers_LDADD = libtdt-rt-core.la $(tests_lib)

# Preloaded by make check-delays.
check_LTLIBRARIES += tests/delays.la
tests_delays_la_SOURCES = tests/delays.c
tests_delays_la_CFLAGS = $(AM_CFLAGS)
tests_delays_la_LDFLAGS = $(tests_plugin_ldflags)

# Polls that get stuck, compiled in several ways.
check_LTLIBRARIES += \
	tests/libstuck_o0.la \
	tests/libstuck_o1.la \
	tests/libstuck_protected.la \
	tests/libstuck_with_fp.la \
	tests/libstuck_without_fp.la
tests_libstuck_o0_la_SOURCES = tests/stuck.c tests/stuck.h
tests_libstuck_o0_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_o0 -U_FORTIFY_SOURCE
tests_libstuck_o0_la_CFLAGS = $(AM_CFLAGS)
$(tests_libstuck_o0_la_OBJECTS): CFLAGS += -O0
tests_libstuck_o1_la_SOURCES = tests/stuck.c tests/stuck.h
tests_libstuck_o1_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_o1
tests_libstuck_o1_la_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
$(tests_libstuck_o1_la_OBJECTS): CFLAGS += -O1
tests_libstuck_protected_la_SOURCES = tests/stuck.c tests/stuck.h
tests_libstuck_protected_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_protected
tests_libstuck_protected_la_CFLAGS = $(AM_CFLAGS) \
	-O2 -fno-omit-frame-pointer -fstack-protector-all -fstack-clash-protection
tests_libstuck_with_fp_la_SOURCES = tests/stuck.c tests/stuck.h
tests_libstuck_with_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_with_fp
tests_libstuck_with_fp_la_CFLAGS = $(AM_CFLAGS) -O2 -fno-omit-frame-pointer
tests_libstuck_without_fp_la_SOURCES = tests/stuck.c tests/stuck.h
tests_libstuck_without_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTUCK_TABLE=stuck_without_fp
tests_libstuck_without_fp_la_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer

# Frames of unusual shapes, compiled in two ways.
check_LTLIBRARIES += \
	tests/libodd_frames_o1.la \
	tests/libodd_frames_o2.la
tests_libodd_frames_o1_la_SOURCES = tests/odd_frames.c tests/odd_frames.h
tests_libodd_frames_o1_la_CPPFLAGS = $(AM_CPPFLAGS) -DODD_FRAMES=odd_frames_o1
tests_libodd_frames_o1_la_CFLAGS = $(AM_CFLAGS)
$(tests_libodd_frames_o1_la_OBJECTS): CFLAGS += -O1
tests_libodd_frames_o2_la_SOURCES = tests/odd_frames.c tests/odd_frames.h
tests_libodd_frames_o2_la_CPPFLAGS = $(AM_CPPFLAGS) -DODD_FRAMES=odd_frames_o2
tests_libodd_frames_o2_la_CFLAGS = $(AM_CFLAGS)
$(tests_libodd_frames_o2_la_OBJECTS): CFLAGS += -O2

tests_check_odd_frames_SOURCES = \
	tests/check_odd_frames.c \
	tests/odd_frames.h \
	tests/steps.c \
	tests/steps.h \
	tests/sanitized.h \
	tests/must.h \
	tests/test.h \
	$(tests_poll_now)
tests_check_odd_frames_CFLAGS = $(tests_cflags)
tests_check_odd_frames_LDADD = \
	tests/libodd_frames_o1.la \
	tests/libodd_frames_o2.la \
	$(tests_core) -ldl

tests_stuck_task = tests/stuck_task.c tests/stuck_task.h tests/must.h tests/sanitized.h tests/test.h

tests_check_running_SOURCES = tests/check_running.c tests/stuck.h $(tests_stuck_task)
tests_check_running_CFLAGS = $(tests_cflags)
tests_check_running_LDADD = \
	tests/libstuck_o0.la \
	tests/libstuck_o1.la \
	tests/libstuck_protected.la \
	tests/libstuck_with_fp.la \
	tests/libstuck_without_fp.la \
	$(tests_lib) -lpthread

tests_gate = tests/gate.c tests/gate.h $(tests_stuck_task)

tests_check_running_odd_SOURCES = tests/check_running_odd.c tests/seeded.h $(tests_gate)
tests_check_running_odd_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_check_running_odd_LDADD = $(tests_core) -lpthread

tests_check_running_races_SOURCES = tests/check_running_races.c tests/seeded.h $(tests_stuck_task)
tests_check_running_races_CFLAGS = $(tests_cflags)
tests_check_running_races_LDADD = $(tests_core) -lpthread

tests_check_running_refused_SOURCES = tests/check_running_refused.c $(tests_gate) $(tests_no_memory)
tests_check_running_refused_CFLAGS = $(tests_cflags)
tests_check_running_refused_LDFLAGS = -Wl,--wrap=tdt__peek
tests_check_running_refused_LDADD = $(tests_core) -lpthread

tests_check_running_stacks_SOURCES = tests/check_running_stacks.c $(tests_gate) $(tests_switched)
tests_check_running_stacks_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_check_running_stacks_LDADD = $(tests_core) -lpthread

tests_check_leaves_SOURCES = tests/check_leaves.c $(tests_asking)
tests_check_leaves_CFLAGS = $(tests_cflags)
tests_check_leaves_LDADD = $(tests_lib)

tests_check_traced_nomem_SOURCES = tests/check_traced_nomem.c $(tests_no_memory) tests/test.h
tests_check_traced_nomem_CFLAGS = $(tests_cflags)
tests_check_traced_nomem_LDADD = $(tests_lib)

tests_check_folded_SOURCES = tests/check_folded.c tests/test.h $(tests_poll_now)
tests_check_folded_CFLAGS = $(tests_cflags)
tests_check_folded_LDADD = $(tests_lib)

tests_check_fork_SOURCES = tests/check_fork.c tests/must.h tests/sanitized.h tests/test.h $(tests_futures)
tests_check_fork_CFLAGS = $(tests_cflags)
tests_check_fork_LDADD = $(tests_core)

tests_check_concurrent_SOURCES = tests/check_concurrent.c tests/seeded.h tests/test.h $(tests_bell)
tests_check_concurrent_CFLAGS = $(tests_cflags)
tests_check_concurrent_LDADD = $(tests_lib)

# Functions with frames of all kinds, compiled in several ways.
check_LTLIBRARIES += tests/libframes_plain.la tests/libframes_with_fp.la tests/libframes_without_fp.la
tests_libframes_plain_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_plain_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_plain
tests_libframes_plain_la_CFLAGS = $(AM_CFLAGS)
tests_libframes_with_fp_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_with_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_with_fp
tests_libframes_with_fp_la_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer -fexceptions
tests_libframes_without_fp_la_SOURCES = tests/frames.c tests/frames.h
tests_libframes_without_fp_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAMES_TABLE=frames_without_fp
tests_libframes_without_fp_la_CFLAGS = $(AM_CFLAGS) -fomit-frame-pointer

tests_check_walk_SOURCES = tests/check_walk.c tests/frames.h $(tests_poll_now)
tests_check_walk_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CFLAGS)
tests_check_walk_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_check_walk_LDADD = \
	tests/libframes_plain.la \
	tests/libframes_with_fp.la \
	tests/libframes_without_fp.la \
	$(tests_core) -ldl

tests_check_waits_SOURCES = tests/check_waits.c tests/ask_waiting.h $(tests_poll_now) $(tests_printed)
tests_check_waits_CFLAGS = $(tests_cflags)
tests_check_waits_LDADD = $(tests_rt)

tests_check_watch_SOURCES = tests/check_watch.c $(tests_asking) $(tests_leaf) $(tests_threads)
tests_check_watch_CFLAGS = $(tests_cflags)
tests_check_watch_LDADD = $(tests_core)

tests_check_watch_poll_SOURCES = tests/check_watch_poll.c tests/must.h tests/test.h $(tests_no_memory)
tests_check_watch_poll_CPPFLAGS = $(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/.libs"'
tests_check_watch_poll_CFLAGS = $(tests_cflags)
tests_check_watch_poll_LDFLAGS = -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_create
tests_check_watch_poll_LDADD = $(tests_core) -ldl
EXTRA_tests_check_watch_poll_DEPENDENCIES = tests/plugin_a.la tests/plugin_b.la

tests_check_watch_races_SOURCES = tests/check_watch_races.c tests/must.h tests/seeded.h tests/test.h
tests_check_watch_races_CFLAGS = $(tests_cflags)
tests_check_watch_races_LDADD = $(tests_core)

tests_check_yield_SOURCES = tests/check_yield.c $(tests_futures) $(tests_no_memory)
tests_check_yield_CFLAGS = $(tests_cflags)
tests_check_yield_LDADD = $(tests_rt)

tests_descriptors_SOURCES = tests/descriptors.c
tests_descriptors_LDADD = libtdt.la

# What the scripts trace.
# Tasks of all kinds that churn while they are dumped, asked, watched, signalled and forked: some seconds of it with the
# other tests, two minutes by `make check-soak`.
check_PROGRAMS += tests/soak
tests_soak_SOURCES = tests/soak.c tests/soak_tasks.c tests/soak_tasks.h tests/must.h tests/sanitized.h tests/seeded.h
tests_soak_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_soak_LDADD = libtdt-rt.la libtdt.la -lpthread

check-soak: tests/soak
	tests/soak $(SOAK_SECONDS)
SOAK_SECONDS = 120

# A host that does all at once what may harm it while it is traced: `make check-host`.
check_PROGRAMS += tests/host
tests_host_SOURCES = \
	tests/host.c \
	tests/host_ops.c \
	tests/host_ops.h \
	tests/host_tasks.c \
	tests/host_tasks.h \
	tests/must.h \
	tests/sanitized.h \
	tests/seeded.h \
	$(tests_host_plugins)
tests_host_CPPFLAGS = $(tests_host_cppflags)
tests_host_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_host_LDADD = libtdt.la -ldl -lpthread
EXTRA_tests_host_DEPENDENCIES = $(tests_host_plugins_la)

check-host: tests/host
	tests/host $(HOSTFLAGS) $(SECONDS)
HOSTFLAGS =

check_PROGRAMS += tests/busy
tests_busy_SOURCES = tests/busy.c
tests_busy_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_busy_LDADD = libtdt.la -lpthread

# What the scripts run.
check_PROGRAMS += tests/symbolize_pcs
tests_symbolize_pcs_SOURCES = tests/symbolize_pcs.c tests/self.h
tests_symbolize_pcs_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
tests_symbolize_pcs_LDADD = libtdt-core.la

check_PROGRAMS += tests/probed
tests_probed_SOURCES = tests/probed.c tests/must.h
tests_probed_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer
tests_probed_LDADD = libtdt.la -lpthread

check_PROGRAMS += tests/patched
tests_patched_SOURCES = tests/patched.c tests/must.h
tests_patched_CFLAGS = $(AM_CFLAGS)
tests_patched_LDADD = libtdt-core.la

# All that the library does, for strace to look at.
check_PROGRAMS += tests/syscalls
tests_syscalls_SOURCES = tests/syscalls.c tests/must.h
tests_syscalls_CFLAGS = $(AM_CFLAGS)
tests_syscalls_LDADD = libtdt.la -ldl -lpthread
EXTRA_tests_syscalls_DEPENDENCIES = tests/plugin_a.la

# Benchmarks, and what looks at what they print.
check_PROGRAMS += $(BENCHES) tests/bench_line
tests_bench_line_SOURCES = tests/bench_line.c
tests_bench_line_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_bench_line_LDADD = $(JANSSON_LIBS)

# A reader that has nothing of ours, and what it reads, with libtdt in both ways.
check_PROGRAMS += tests/registry_image tests/registry_reader
check_PROGRAMS += tests/registry_tasks tests/registry_tasks_static
tests_registry_image_SOURCES = tests/registry_image.c tests/must.h
tests_registry_image_CFLAGS = $(AM_CFLAGS)
tests_registry_reader_SOURCES = tests/registry_reader.c
tests_registry_reader_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
tests_registry_reader_LDADD = -lelf
tests_registry_tasks_SOURCES = tests/registry_tasks.c tests/must.h
tests_registry_tasks_CFLAGS = $(AM_CFLAGS)
tests_registry_tasks_LDADD = libtdt.la -lpthread
tests_registry_tasks_static_SOURCES = tests/registry_tasks.c tests/must.h
tests_registry_tasks_static_CFLAGS = $(AM_CFLAGS)
tests_registry_tasks_static_LDFLAGS = -static-libtool-libs
tests_registry_tasks_static_LDADD = libtdt.la -lpthread

EXTRA_DIST += \
	tests/aarch64/libunwind.h \
	tests/fixtures/blocked.c \
	tests/fixtures/chain.c \
	tests/fixtures/coroutines.cc \
	tests/fixtures/damaged.S \
	tests/fixtures/hooks.c \
	tests/fixtures/names.cc \
	tests/fixtures/names.rs \
	tests/fixtures/runner.c \
	tests/fixtures/split.c \
	tests/fixtures/trail.h \
	tests/fixtures/tree.c \
	tests/fixtures/tree.cc \
	tests/fixtures/tree_coroutine.cc \
	tests/fixtures/over.c \
	tests/fixtures/over.cc \
	tests/fixtures/over.h \
	tests/fixtures/over.rs \
	tests/fixtures/over_main.c \
	tests/fixtures/tree_main.c \
	tests/fixtures/tree_stack.c \
	tests/fixtures/wrong_echo.c \
	tests/ghosts/harness.c \
	tests/ghosts/shapes.c \
	tests/ghosts/shapes.cc \
	tests/ghosts/shapes.h \
	tests/ghosts/shapes.rs \
	tests/rust/tree.rs \
	tests/headers.c \
	tests/headers.cc \
	tests/instrumentation.sh \
	tests/lines.c \
	tests/tap.sh \
	tests/tracers.sh \
	tests/tracing.sh

dist_check_SCRIPTS += \
	tests/aarch64.sh \
	tests/bench.sh \
	tests/blocked.sh \
	tests/bootstrap.sh \
	tests/columns.sh \
	tests/cxx.sh \
	tests/damaged_dwarf.sh \
	tests/demo.sh \
	tests/docs.sh \
	tests/exports.sh \
	tests/failures.sh \
	tests/fences.sh \
	tests/ghosts.sh \
	tests/gnumakefile.sh \
	tests/headers.sh \
	tests/install.sh \
	tests/join_ustack.sh \
	tests/layers.sh \
	tests/lines.sh \
	tests/odd_frames.sh \
	tests/probes.sh \
	tests/registry.sh \
	tests/over.sh \
	tests/rust.sh \
	tests/skips.sh \
	tests/soak.sh \
	tests/switch.sh \
	tests/symbolize_variants.sh \
	tests/syscalls.sh \
	tests/tdt_tree.sh \
	tests/tools.sh \
	tests/tools_echo.sh \
	tests/trace_bpftrace.sh \
	tests/trace_gdb.sh \
	tests/trace_patched.sh \
	tests/trace_perf.sh \
	tests/unwinder.sh \
	tests/variants.sh \
	tests/walk.sh \
	tests/warm.sh

check_PROGRAMS += $(tests_programs)
TESTS += $(tests_programs) $(dist_check_SCRIPTS)

# The trees of programs that are compiled with each option of tests/instrumentation.sh, at each
# level.  It takes some 15 minutes.
check-instrumentation: all
	@INSTRUMENTATION=each; export INSTRUMENTATION; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='tests/variants.sh tests/cxx.sh'
.PHONY: check-instrumentation

# Alone, after all others: for a moment of an installation libtool has no libtdt-rt.so where it was built.
tests/install.log: $(TEST_LOGS:tests/install.log=)
