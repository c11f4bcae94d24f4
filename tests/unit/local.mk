# SPDX-License-Identifier: Apache-2.0 OR MIT
# One program for each suite; the folders are those of the sources.  The program of
# tests/unit/base/check_index.c is tests/unit/base/check_index: a line in the list below is all that
# it needs.  It gets main() and the helpers that it uses from tests/lib/, and links libtdt-core.la.
# What differs is said below the list.

tests_unit_core = \
	tests/unit/base/check_array \
	tests/unit/base/check_index \
	tests/unit/base/check_version \
	tests/unit/symbolize/check_folded \
	tests/unit/symbolize/check_modules \
	tests/unit/symbolize/check_namer \
	tests/unit/symbolize/check_naming \
	tests/unit/symbolize/check_symbolize \
	tests/unit/symbolize/check_symbolize_nomem \
	tests/unit/symbolize/check_symbolize_nomem_split \
	tests/unit/facts/check_busy \
	tests/unit/facts/check_proof \
	tests/unit/tree/check_cycles \
	tests/unit/tree/check_findings \
	tests/unit/tree/check_named \
	tests/unit/tree/check_over \
	tests/unit/tree/check_stacks \
	tests/unit/tree/check_tree \
	tests/unit/recording/check_copy \
	tests/unit/recording/check_read \
	tests/unit/recording/check_supplement \
	tests/unit/recording/check_timeline \
	tests/unit/recording/check_durations \
	tests/unit/recording/check_summary \
	tests/unit/tree-printer/check_dump_cost \
	tests/unit/tree-printer/check_dump_json \
	tests/unit/tree-printer/check_dump_text \
	tests/unit/tree-printer/check_fold \
	tests/unit/tree-printer/check_json \
	tests/unit/tree-printer/check_otlp \
	tests/unit/tree-printer/check_perfetto \
	tests/unit/tree-printer/check_summary_forms \
	tests/unit/tree-printer/check_perfetto_names \
	tests/unit/tree-printer/check_print \
	tests/unit/tree-printer/check_text \
	tests/unit/cli/check_apart \
	tests/unit/cli/check_metered \
	tests/unit/cli/check_metrics_page \
	tests/unit/cli/check_options \
	tests/unit/cli/check_pieces \
	tests/unit/cli/check_task_groups \
	tests/unit/cli/check_post \
	tests/unit/cli/check_report_page \
	tests/unit/cli/check_text_table \
	tests/unit/cli/check_compare \
	tests/unit/cli/check_serve \
	tests/unit/cli/check_two_profiles \
	tests/unit/cli/check_top \
	tests/unit/reader/check_door \
	tests/unit/reader/check_entered \
	tests/unit/reader/check_history \
	tests/unit/reader/check_images \
	tests/unit/reader/check_last_states \
	tests/unit/reader/check_profile \
	tests/unit/reader/check_profile_sum \
	tests/unit/reader/check_reader \
	tests/unit/reader/check_recorded \
	tests/unit/reader/check_stop \
	tests/unit/reader/check_target \
	tests/unit/reader/check_torn \
	tests/unit/reader/check_walk \
	tests/unit/host/check_barrier \
	tests/unit/host/check_host_fork \
	tests/unit/host/check_host_loader \
	tests/unit/host/check_host_naming \
	tests/unit/host/check_host_unload \
	tests/unit/host/check_limits \
	tests/unit/host/check_peek \
	tests/unit/host/check_stack \
	tests/unit/host/check_syscalls_refused \
	tests/unit/unwind/check_odd_frames \
	tests/unit/unwind/check_walk \
	tests/unit/registry/check_counters \
	tests/unit/registry/check_registry \
	tests/unit/registry/check_stepped \
	tests/unit/probes/check_probes \
	tests/unit/capture/check_capture \
	tests/unit/capture/check_counted \
	tests/unit/capture/check_ghosts \
	tests/unit/capture/check_handlers \
	tests/unit/capture/check_handlers_static \
	tests/unit/capture/check_odd_stacks \
	tests/unit/capture/check_plugins \
	tests/unit/capture/check_running \
	tests/unit/capture/check_running_odd \
	tests/unit/capture/check_running_races \
	tests/unit/capture/check_running_refused \
	tests/unit/capture/check_running_stacks \
	tests/unit/capture/check_shared_frames \
	tests/unit/capture/check_suspended \
	tests/unit/capture/check_switched \
	tests/unit/watch/check_watch \
	tests/unit/watch/check_watch_poll \
	tests/unit/watch/check_watch_races \
	tests/unit/recorder/check_files \
	tests/unit/recorder/check_footprint \
	tests/unit/recorder/check_record_stacks \
	tests/unit/recorder/check_recorder \
	tests/unit/recorder/check_rings \
	tests/unit/recorder/check_user \
	tests/unit/task/check_abort \
	tests/unit/task/check_context \
	tests/unit/task/check_label \
	tests/unit/task/check_attr \
	tests/unit/task/check_concurrent \
	tests/unit/task/check_fibers \
	tests/unit/task/check_handshake \
	tests/unit/task/check_hooked \
	tests/unit/task/check_reported \
	tests/unit/task/check_join \
	tests/unit/task/check_kept \
	tests/unit/task/check_kept_naive \
	tests/unit/task/check_leaf \
	tests/unit/task/check_leaves \
	tests/unit/task/check_refused \
	tests/unit/task/check_misuse \
	tests/unit/task/check_panics \
	tests/unit/task/check_requests \
	tests/unit/task/check_tasks \
	tests/unit/task/check_traced \
	tests/unit/task/check_traced_nomem \
	tests/unit/task/check_unwound \
	tests/unit/future/check_abi \
	tests/unit/future/check_async \
	tests/unit/future/check_combine \
	tests/unit/future/check_coroutine_trees \
	tests/unit/future/check_future \
	tests/unit/dump/check_recorder_summary \
	tests/unit/dump/check_dump_all \
	tests/unit/dump/check_dump_environment \
	tests/unit/dump/check_dump_file \
	tests/unit/dump/check_dump_signal \
	tests/unit/dump/check_dump_variable \
	tests/unit/dump/check_recorder_snapshot \
	tests/unit/dump/check_recorder_trigger \
	tests/unit/dump/check_snapshot \
	tests/unit/door/check_door \
	tests/unit/door/check_messages \
	tests/unit/door/check_trees \
	tests/unit/check_errno \
	tests/unit/check_fork

# Those that use libtdt-rt.
tests_unit_rt = \
	tests/unit/capture/check_ghosts_races \
	tests/unit/capture/check_waits \
	tests/unit/task/check_edges \
	tests/unit/task/check_enter \
	tests/unit/future/check_coroutine \
	tests/unit/dump/check_deadlock \
	tests/unit/dump/check_lost \
	tests/unit/dump/check_orphans \
	tests/unit/dump/check_futurelock \
	tests/unit/dump/check_dump_stuck \
	tests/unit/door/check_door_rt \
	tests/unit/dump/check_snapshot_rt \
	tests/unit/runtime/check_blocking \
	tests/unit/runtime/check_driver \
	tests/unit/runtime/check_gate \
	tests/unit/runtime/check_join_set \
	tests/unit/runtime/check_lookup \
	tests/unit/runtime/check_mutex \
	tests/unit/runtime/check_net \
	tests/unit/runtime/check_oneshot \
	tests/unit/runtime/check_ready \
	tests/unit/runtime/check_run_queue \
	tests/unit/runtime/check_refusals \
	tests/unit/runtime/check_rt \
	tests/unit/runtime/check_rt_block_on \
	tests/unit/runtime/check_rt_idle \
	tests/unit/runtime/check_rt_nomem \
	tests/unit/runtime/check_rt_races \
	tests/unit/runtime/check_rt_wakes \
	tests/unit/runtime/check_rt_workers \
	tests/unit/runtime/check_timeout \
	tests/unit/runtime/check_timers \
	tests/unit/runtime/check_yield \
	tests/unit/check_hot_paths \
	tests/unit/check_null
# These come first, as the slowest are among them: see TESTS.
tests_unit =
if RUNTIME
tests_unit += $(tests_unit_rt)
endif
tests_unit += $(tests_unit_core)
if X86_64
tests_unit += tests/unit/task/check_misuse_tls tests/unit/unwind/check_code
else
tests_unit += tests/unit/capture/check_interrupted_aarch64 tests/unit/unwind/check_code_aarch64
endif

# What suites are linked with: the library's own objects, which is the default; the library as
# installed; and so on.
tests_stuck = \
	tests/lib/libstuck_o0.la tests/lib/libstuck_o1.la tests/lib/libstuck_protected.la \
	tests/lib/libstuck_with_fp.la tests/lib/libstuck_without_fp.la
on_core = $(tests_helpers) $(tests_core) -lpthread -ldl
on_lib = $(tests_helpers) $(tests_lib) -lpthread -ldl
on_nothing = $(tests_helpers) $(CHECK_LIBS)
on_reader = $(tests_helpers) libtdt-reader.la $(tests_core) -lpthread
on_rt = $(tests_helpers) $(tests_rt)
on_rt_core = $(tests_helpers) libtdt-rt-core.la $(tests_lib) -lpthread

# Automake takes this for each program that has no _LDADD, here and elsewhere.
LDADD = $(on_core)

# A suite with flags of its own says all of them; all others have these, and may load modules.
tests_unit_objects = $(tests_unit:=.$(OBJEXT))
$(tests_unit_objects): AM_CPPFLAGS += $(tests_plugins_cppflags)
$(tests_unit_objects): AM_CFLAGS += $(CHECK_CFLAGS)
$(tests_unit): | $(tests_plugins)

# src/base/

tests_unit_base_check_array_LDADD = $(tests_memory) $(on_core)
tests_unit_base_check_index_LDADD = $(tests_memory) $(on_core)

# src/symbolize/

tests_unit_symbolize_check_folded_LDADD = $(on_lib)
tests_unit_symbolize_check_modules_LDFLAGS = \
	-Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_clockwait
# A look-up that stands still, threads that can't be had; and what libdw loads.
tests_unit_symbolize_check_namer_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
tests_unit_symbolize_check_namer_LDFLAGS = -Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__service_need
tests_unit_symbolize_check_naming_LDFLAGS = \
	-Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__symbol_known -Wl,--wrap=pthread_mutex_lock
tests_unit_symbolize_check_symbolize_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
# The same with functions in a file of their own.
tests_unit_symbolize_check_symbolize_nomem_split_SOURCES = \
	tests/unit/symbolize/check_symbolize_nomem.c
tests_unit_symbolize_check_symbolize_nomem_split_CFLAGS = $(tests_cflags) -gsplit-dwarf
CLEANFILES += tests/unit/symbolize/*.dwo

# src/tree/

tests_unit_tree_check_cycles_LDADD = $(tests_memory) $(on_core)
tests_unit_tree_check_findings_LDADD = $(tests_memory) $(on_core)
tests_unit_tree_check_over_LDADD = $(on_lib)
tests_unit_tree_check_named_LDADD = $(tests_memory) $(on_core)
tests_unit_tree_check_tree_LDADD = $(tests_memory) $(on_lib)

# src/recording/

tests_unit_recording_check_copy_LDADD = $(tests_memory) $(on_core)
tests_unit_recording_check_read_LDADD = $(tests_memory) $(on_core)
tests_unit_recording_check_supplement_LDADD = $(tests_memory) $(on_core)
tests_unit_recording_check_timeline_LDADD = $(tests_memory) $(on_core)
tests_unit_recording_check_summary_LDADD = $(tests_memory) $(on_core)
tests_unit_recording_check_durations_LDADD = $(tests_memory) $(on_core)

# tree-printer/

tests_unit_tree_printer_check_dump_cost_LDADD = $(tests_memory) $(on_lib)
tests_unit_tree_printer_check_dump_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_dump_json_LDADD = \
	$(tests_memory) cli/libcli.a $(on_core) $(JANSSON_LIBS)
tests_unit_tree_printer_check_dump_text_LDADD = $(tests_memory) $(on_lib)
tests_unit_tree_printer_check_summary_forms_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_summary_forms_LDADD = $(tests_memory) $(on_core) $(JANSSON_LIBS)
tests_unit_tree_printer_check_fold_LDADD = $(tests_memory) $(on_core)
tests_unit_tree_printer_check_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_json_LDADD = $(tests_memory) cli/libcli.a $(on_core) $(JANSSON_LIBS)
tests_unit_tree_printer_check_otlp_LDADD = $(tests_memory) cli/libcli.a $(on_core)
tests_unit_tree_printer_check_perfetto_CFLAGS = $(tests_cflags) $(ZLIB_CFLAGS)
tests_unit_tree_printer_check_perfetto_LDADD = $(tests_memory) $(on_core) $(ZLIB_LIBS)
tests_unit_tree_printer_check_print_LDADD = $(tests_memory) $(on_lib)
tests_unit_tree_printer_check_text_LDADD = $(on_lib)

# cli/

tests_unit_cli_check_apart_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_metrics_page_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_options_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_text_table_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_compare_LDADD = $(tests_memory) cli/libcli.a $(on_core)
tests_unit_cli_check_serve_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_metered_LDADD = $(tests_memory) cli/libcli.a $(on_core)
tests_unit_cli_check_pieces_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_post_LDADD = cli/libcli.a $(on_core)
tests_unit_cli_check_report_page_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_cli_check_report_page_LDADD = $(tests_memory) cli/libcli.a $(on_core) $(JANSSON_LIBS)
tests_unit_cli_check_task_groups_LDADD = $(tests_memory) cli/libcli.a $(on_core)
tests_unit_cli_check_two_profiles_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_cli_check_two_profiles_LDADD = $(tests_memory) cli/libcli.a $(on_core) $(JANSSON_LIBS)
tests_unit_cli_check_top_LDADD = $(tests_memory) cli/libcli.a $(on_reader)

# reader/

tests_unit_reader_check_door_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_entered_LDADD = $(on_reader)
tests_unit_reader_check_history_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_images_LDADD = $(on_reader)
tests_unit_reader_check_last_states_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_profile_CFLAGS = $(tests_cflags) $(ZLIB_CFLAGS)
tests_unit_reader_check_profile_LDADD = $(tests_memory) cli/libcli.a $(on_reader) $(ZLIB_LIBS)
tests_unit_reader_check_profile_sum_LDADD = $(on_reader) -lm
tests_unit_reader_check_reader_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_recorded_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_stop_LDADD = $(on_reader)
tests_unit_reader_check_target_LDADD = $(tests_memory) $(on_reader)
tests_unit_reader_check_torn_LDADD = $(on_reader)
tests_unit_reader_check_walk_LDADD = $(tests_stuck) $(on_reader)

# src/host/

tests_unit_host_check_host_fork_LDADD = $(tests_calls) $(on_lib)
tests_unit_host_check_host_loader_LDADD = $(on_lib)
tests_unit_host_check_host_naming_LDADD = $(tests_calls) $(on_lib)
tests_unit_host_check_host_unload_LDADD = $(tests_calls) $(on_lib)
tests_unit_host_check_syscalls_refused_LDADD = $(on_lib)

# src/unwind/

tests_unit_unwind_check_odd_frames_LDADD = \
	tests/lib/libodd_frames_o1.la tests/lib/libodd_frames_o2.la $(on_core)
tests_unit_unwind_check_walk_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CFLAGS)
tests_unit_unwind_check_walk_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_unwind_check_walk_LDADD = \
	tests/lib/libframes_plain.la tests/lib/libframes_with_fp.la \
	tests/lib/libframes_without_fp.la $(on_core)

# src/registry/

tests_unit_registry_check_registry_LDADD = $(tests_memory) $(on_core)

# src/probes/

# The probes, and what a poll must not do for their sake, seen by ld's --wrap.
tests_unit_probes_check_probes_SOURCES = tests/unit/probes/check_probes.c tests/lib/unwinding.cc
tests_unit_probes_check_probes_CFLAGS = $(tests_cflags) -fexceptions
if PROBES
tests_unit_probes_check_probes_LDFLAGS = \
	-Wl,--wrap=tdt_probe_task__spawn -Wl,--wrap=tdt_probe_task__poll__start \
	-Wl,--wrap=tdt_probe_task__poll__end -Wl,--wrap=tdt_probe_task__terminate \
	-Wl,--wrap=tdt_probe_task__wake -Wl,--wrap=tdt_probe_task__waker__clone \
	-Wl,--wrap=tdt_probe_worker__thread__start -Wl,--wrap=tdt_probe_worker__thread__stop \
	-Wl,--wrap=tdt_probe_worker__thread__park -Wl,--wrap=tdt_probe_worker__thread__unpark \
	-Wl,--wrap=pthread_mutex_lock -Wl,--wrap=clock_gettime
endif
tests_unit_probes_check_probes_LDADD = $(tests_memory) $(on_core)

# src/capture/

tests_unit_capture_check_capture_LDADD = $(tests_memory) $(on_lib)
tests_unit_capture_check_ghosts_LDADD = $(on_lib)
tests_unit_capture_check_ghosts_races_LDADD = $(on_rt)
tests_unit_capture_check_handlers_LDADD = $(on_lib)
tests_unit_capture_check_handlers_static_SOURCES = tests/unit/capture/check_handlers.c
tests_unit_capture_check_handlers_static_LDFLAGS = -static-libtool-libs -Wl,-z,lazy
tests_unit_capture_check_handlers_static_LDADD = $(on_lib)
tests_unit_capture_check_odd_stacks_LDADD = $(on_lib)
tests_unit_capture_check_plugins_LDADD = $(tests_memory) $(on_lib)
tests_unit_capture_check_running_LDADD = $(tests_stuck) $(on_lib)
tests_unit_capture_check_running_odd_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_capture_check_running_refused_LDFLAGS = -Wl,--wrap=tdt__peek
tests_unit_capture_check_running_refused_LDADD = $(tests_memory) $(on_core)
tests_unit_capture_check_running_stacks_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_capture_check_suspended_LDADD = \
	tests/lib/libframes_plain.la tests/lib/libframes_with_fp.la \
	tests/lib/libframes_without_fp.la $(on_core)
tests_unit_capture_check_switched_LDADD = $(on_lib)
tests_unit_capture_check_waits_LDADD = $(on_rt)

# src/watch/

tests_unit_watch_check_watch_poll_LDFLAGS = -Wl,--wrap=pthread_mutex_lock \
	-Wl,--wrap=pthread_create -Wl,--wrap=tdt__capture_clear
tests_unit_watch_check_watch_poll_LDADD = $(tests_memory) $(on_core)

# src/recorder/

tests_unit_recorder_check_record_stacks_LDFLAGS = -Wl,--wrap=tdt__capture_clear
tests_unit_recorder_check_recorder_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_recorder_check_recorder_LDADD = $(tests_memory) $(on_core)

# src/task/

tests_unit_task_check_concurrent_LDADD = $(on_lib)
tests_unit_task_check_context_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_edges_LDADD = $(on_rt)
tests_unit_task_check_fibers_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_handshake_LDFLAGS = -Wl,--wrap=tdt__barrier_heavy
tests_unit_task_check_handshake_LDADD = libtdt-core.la
# It raises semaphores, and wraps the functions that fire.
if PROBES
tests_unit_task_check_hooked_LDFLAGS = \
	-Wl,--wrap=tdt_probe_task__spawn -Wl,--wrap=tdt_probe_task__poll__start \
	-Wl,--wrap=tdt_probe_task__poll__end -Wl,--wrap=tdt_probe_task__terminate
endif
tests_unit_task_check_hooked_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_reported_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_join_LDADD = $(tests_memory) $(on_lib)
tests_unit_task_check_kept_naive_SOURCES = tests/unit/task/check_kept.c src/task/wrapper.c
tests_unit_task_check_kept_naive_CFLAGS = \
	$(tests_cflags) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) \
	-include $(srcdir)/tests/lib/naive_kept.h
tests_unit_task_check_label_LDADD = $(on_lib)
tests_unit_task_check_leaf_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_leaves_LDADD = $(on_lib)
tests_unit_task_check_attr_LDADD = $(tests_memory) $(on_lib)
tests_unit_task_check_misuse_LDADD = $(on_lib)
# The same with a compiler that keeps the addresses of thread-locals, as those for aarch64 do.
tests_unit_task_check_misuse_tls_SOURCES = \
	tests/unit/task/check_misuse.c \
	src/future/coroutine.c src/task/request.c src/task/wrapper.c
tests_unit_task_check_misuse_tls_CFLAGS = \
	$(tests_cflags) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) -mno-tls-direct-seg-refs
tests_unit_task_check_panics_LDADD = $(tests_memory) $(on_core)
tests_unit_task_check_tasks_LDADD = $(on_lib)
tests_unit_task_check_traced_LDADD = $(on_lib)
tests_unit_task_check_traced_nomem_LDADD = $(tests_memory) $(on_lib)
tests_unit_task_check_unwound_SOURCES = tests/unit/task/check_unwound.c tests/lib/unwinding.cc
tests_unit_task_check_unwound_CFLAGS = $(tests_cflags) -fexceptions

# src/future/

tests_unit_future_check_abi_LDADD = $(on_nothing)
tests_unit_future_check_async_LDADD = $(on_nothing)
tests_unit_future_check_combine_LDADD = $(tests_memory) $(on_lib)
tests_unit_future_check_coroutine_LDADD = $(on_rt)
tests_unit_future_check_coroutine_trees_LDADD = $(on_lib)
tests_unit_future_check_future_LDADD = $(on_nothing)

# src/dump/

tests_unit_dump_check_recorder_summary_LDADD = $(tests_memory) $(on_core)
tests_unit_dump_check_deadlock_LDADD = $(on_rt)
tests_unit_dump_check_lost_LDADD = $(on_rt)
tests_unit_dump_check_orphans_LDADD = $(on_rt)
tests_unit_dump_check_futurelock_LDADD = $(on_rt)
tests_unit_dump_check_dump_all_LDADD = $(on_lib)
# Whether the process is a set-user-ID program, and whether there may be threads, by ld's --wrap.
tests_unit_dump_check_dump_environment_LDFLAGS = -Wl,--wrap=secure_getenv -Wl,--wrap=pthread_create
# What is dumped, by ld's --wrap.
tests_unit_dump_check_dump_file_LDFLAGS = -Wl,--wrap=tdt__dump
tests_unit_dump_check_dump_file_LDADD = $(tests_memory) $(on_core)
# What the thread dumps, and that there may be no thread, by ld's --wrap.
tests_unit_dump_check_dump_signal_LDFLAGS = -Wl,--wrap=tdt__dump -Wl,--wrap=pthread_create
tests_unit_dump_check_dump_stuck_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_dump_check_dump_stuck_LDADD = $(on_rt)
tests_unit_dump_check_recorder_snapshot_LDADD = $(tests_memory) $(on_core)
tests_unit_dump_check_snapshot_CPPFLAGS = $(AM_CPPFLAGS) $(tests_plugins_cppflags)
tests_unit_dump_check_snapshot_CFLAGS = $(tests_cflags) -fexceptions
tests_unit_dump_check_snapshot_LDADD = $(tests_memory) $(on_core)
tests_unit_dump_check_snapshot_rt_LDADD = $(on_rt)

# src/runtime/

tests_unit_runtime_check_blocking_LDFLAGS = \
	-Wl,--wrap=pthread_create -Wl,--wrap=pthread_cond_clockwait
tests_unit_runtime_check_blocking_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_driver_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_runtime_check_driver_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_gate_LDADD = $(tests_memory) $(on_rt)
tests_unit_runtime_check_join_set_LDADD = $(tests_memory) $(on_rt)
tests_unit_runtime_check_lookup_LDFLAGS = -Wl,--wrap=pthread_create -Wl,--wrap=getaddrinfo \
	-Wl,--wrap=freeaddrinfo -Wl,--wrap=connect
tests_unit_runtime_check_lookup_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_mutex_LDADD = $(tests_memory) $(on_rt)
tests_unit_runtime_check_net_LDFLAGS = -Wl,--wrap=epoll_ctl
tests_unit_runtime_check_net_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_oneshot_LDADD = $(tests_memory) $(on_rt)
tests_unit_runtime_check_ready_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_run_queue_LDADD = $(on_rt_core)
tests_unit_runtime_check_refusals_LDFLAGS = -Wl,--wrap=socket -Wl,--wrap=bind \
	-Wl,--wrap=listen -Wl,--wrap=setsockopt -Wl,--wrap=getsockopt -Wl,--wrap=getsockname \
	-Wl,--wrap=getpeername -Wl,--wrap=accept4 -Wl,--wrap=connect -Wl,--wrap=recv \
	-Wl,--wrap=sendmsg -Wl,--wrap=shutdown -Wl,--wrap=poll -Wl,--wrap=read \
	-Wl,--wrap=signalfd -Wl,--wrap=epoll_create1 -Wl,--wrap=epoll_wait -Wl,--wrap=eventfd \
	-Wl,--wrap=timerfd_create -Wl,--wrap=sched_getaffinity -Wl,--wrap=syscall
tests_unit_runtime_check_refusals_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_rt_LDADD = $(on_rt)
tests_unit_runtime_check_rt_block_on_LDADD = $(on_rt)
tests_unit_runtime_check_rt_idle_LDADD = $(on_rt)
tests_unit_runtime_check_rt_nomem_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_runtime_check_rt_nomem_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_rt_races_LDADD = $(on_rt)
tests_unit_runtime_check_rt_wakes_LDADD = libtdt-rt-core.la $(on_core)
# What workers tell, and the moment before they sleep, seen by ld's --wrap.
tests_unit_runtime_check_rt_workers_LDFLAGS = \
	-Wl,--wrap=tdt__idle_park -Wl,--wrap=tdt_task_woken -Wl,--wrap=tdt_worker_now \
	-Wl,--wrap=tdt_worker_thread_park -Wl,--wrap=tdt_worker_thread_start \
	-Wl,--wrap=tdt_worker_thread_stop -Wl,--wrap=tdt_worker_thread_unpark
tests_unit_runtime_check_rt_workers_LDADD = $(on_rt_core)
tests_unit_runtime_check_timeout_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_timers_LDADD = $(tests_memory) $(on_rt_core)
tests_unit_runtime_check_yield_LDADD = $(tests_memory) $(on_rt)

# src/door/

# Whether there may be threads, by ld's --wrap.
tests_unit_door_check_door_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_door_check_door_rt_LDADD = $(on_rt)
tests_unit_door_check_messages_LDADD = $(tests_memory) $(on_core)
tests_unit_door_check_trees_LDADD = $(tests_memory) $(on_core)

# The library as a whole

tests_unit_check_errno_LDADD = $(on_lib)
tests_unit_check_hot_paths_LDADD = $(tests_helpers) libtdt-rt-core.la $(tests_core) -ldl
tests_unit_check_null_LDADD = $(on_rt)
