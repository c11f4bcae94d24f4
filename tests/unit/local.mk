# SPDX-License-Identifier: Apache-2.0 OR MIT
# One program for each suite; the folders are those of the sources.  What they share is in
# tests/local.mk.

tests_unit = \
	tests/unit/base/check_index \
	tests/unit/symbolize/check_folded \
	tests/unit/symbolize/check_modules \
	tests/unit/symbolize/check_namer \
	tests/unit/symbolize/check_naming \
	tests/unit/symbolize/check_symbolize \
	tests/unit/symbolize/check_symbolize_nomem \
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
	tests/unit/tree-printer/check_perfetto \
	tests/unit/tree-printer/check_summary_forms \
	tests/unit/tree-printer/check_perfetto_names \
	tests/unit/tree-printer/check_print \
	tests/unit/tree-printer/check_text \
	tests/unit/cli/check_apart \
	tests/unit/cli/check_metrics_page \
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
	tests/unit/host/check_peek \
	tests/unit/host/check_stack \
	tests/unit/host/check_syscalls_refused \
	tests/unit/unwind/check_code \
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
	tests/unit/recorder/check_record_stacks \
	tests/unit/recorder/check_recorder \
	tests/unit/recorder/check_rings \
	tests/unit/recorder/check_user \
	tests/unit/task/check_attr \
	tests/unit/task/check_concurrent \
	tests/unit/task/check_fibers \
	tests/unit/task/check_handshake \
	tests/unit/task/check_hooked \
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
	tests/unit/future/check_coroutine \
	tests/unit/dump/check_deadlock \
	tests/unit/dump/check_futurelock \
	tests/unit/dump/check_dump_stuck \
	tests/unit/door/check_door_rt \
	tests/unit/dump/check_snapshot_rt \
	tests/unit/runtime/check_driver \
	tests/unit/runtime/check_mutex \
	tests/unit/runtime/check_net \
	tests/unit/runtime/check_oneshot \
	tests/unit/runtime/check_ring \
	tests/unit/runtime/check_rt \
	tests/unit/runtime/check_rt_block_on \
	tests/unit/runtime/check_rt_idle \
	tests/unit/runtime/check_rt_nomem \
	tests/unit/runtime/check_rt_races \
	tests/unit/runtime/check_rt_workers \
	tests/unit/runtime/check_timeout \
	tests/unit/runtime/check_timers \
	tests/unit/runtime/check_yield \
	tests/unit/check_hot_paths \
	tests/unit/check_null
if RUNTIME
tests_unit += $(tests_unit_rt)
endif

# src/base/

tests_unit_base_check_index_SOURCES = \
	tests/unit/base/check_index.c tests/lib/test.h $(tests_no_memory)
tests_unit_base_check_index_CFLAGS = $(tests_cflags)
tests_unit_base_check_index_LDADD = $(tests_core)

# src/symbolize/

tests_unit_symbolize_check_folded_SOURCES = \
	tests/unit/symbolize/check_folded.c tests/lib/test.h $(tests_poll_now)
tests_unit_symbolize_check_folded_CFLAGS = $(tests_cflags)
tests_unit_symbolize_check_folded_LDADD = $(tests_lib)

tests_unit_symbolize_check_modules_SOURCES = \
	tests/unit/symbolize/check_modules.c tests/lib/must.h tests/lib/test.h
tests_unit_symbolize_check_modules_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_symbolize_check_modules_CFLAGS = $(tests_cflags)
tests_unit_symbolize_check_modules_LDADD = $(tests_core) -ldl
tests_unit_symbolize_check_modules_LDFLAGS = \
	-Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_clockwait
EXTRA_tests_unit_symbolize_check_modules_DEPENDENCIES = tests/lib/plugin_a.la tests/lib/plugin_b.la

# A look-up that stands still, threads that can't be had; and what libdw loads.
tests_unit_symbolize_check_namer_SOURCES = \
	tests/unit/symbolize/check_namer.c tests/lib/must.h tests/lib/sanitized.h tests/lib/test.h
tests_unit_symbolize_check_namer_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
tests_unit_symbolize_check_namer_LDFLAGS = -Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__service_start
tests_unit_symbolize_check_namer_LDADD = $(tests_core) -ldl

tests_unit_symbolize_check_naming_SOURCES = \
	tests/unit/symbolize/check_naming.c tests/lib/must.h tests/lib/sanitized.h \
	tests/lib/test.h
tests_unit_symbolize_check_naming_CFLAGS = $(tests_cflags)
tests_unit_symbolize_check_naming_LDFLAGS = -Wl,--wrap=tdt__symbolize -Wl,--wrap=tdt__symbol_known \
	-Wl,--wrap=pthread_mutex_lock
tests_unit_symbolize_check_naming_LDADD = $(tests_core)

tests_unit_symbolize_check_symbolize_SOURCES = \
	tests/unit/symbolize/check_symbolize.c tests/lib/must.h tests/lib/self.h
tests_unit_symbolize_check_symbolize_CFLAGS = $(tests_cflags) $(LIBDW_CFLAGS)
tests_unit_symbolize_check_symbolize_LDADD = $(tests_core)

tests_unit_symbolize_check_symbolize_nomem_SOURCES = \
	tests/unit/symbolize/check_symbolize_nomem.c tests/lib/self.h
tests_unit_symbolize_check_symbolize_nomem_CFLAGS = $(tests_cflags)
tests_unit_symbolize_check_symbolize_nomem_LDADD = $(tests_core)

# src/tree/

tests_unit_tree_check_cycles_SOURCES = \
	tests/unit/tree/check_cycles.c tests/lib/test.h $(tests_no_memory)
tests_unit_tree_check_cycles_CFLAGS = $(tests_cflags)
tests_unit_tree_check_cycles_LDADD = $(tests_core)

tests_unit_tree_check_findings_SOURCES = \
	tests/unit/tree/check_findings.c tests/lib/test.h $(tests_no_memory)
tests_unit_tree_check_findings_CFLAGS = $(tests_cflags)
tests_unit_tree_check_findings_LDADD = $(tests_core)

tests_unit_cli_check_apart_SOURCES = \
	tests/unit/cli/check_apart.c tests/lib/test.h cli/apart.c cli/apart.h
tests_unit_cli_check_apart_CFLAGS = $(tests_cflags)
tests_unit_cli_check_apart_LDADD = $(CHECK_LIBS)

tests_unit_cli_check_metrics_page_SOURCES = \
	tests/unit/cli/check_metrics_page.c tests/lib/test.h cli/metrics_page.c cli/metrics_page.h
tests_unit_cli_check_metrics_page_CFLAGS = $(tests_cflags)
tests_unit_cli_check_metrics_page_LDADD = $(tests_core)

tests_unit_cli_check_compare_SOURCES = \
	tests/unit/cli/check_compare.c \
	$(tests_dumped) \
	$(tests_no_memory) \
	cli/compare.c \
	cli/compare.h
tests_unit_cli_check_compare_CFLAGS = $(tests_cflags)
tests_unit_cli_check_compare_LDADD = $(tests_core)

tests_unit_cli_check_serve_SOURCES = \
	tests/unit/cli/check_serve.c tests/lib/test.h cli/serve.c cli/serve.h
tests_unit_cli_check_serve_CFLAGS = $(tests_cflags)
tests_unit_cli_check_serve_LDADD = $(CHECK_LIBS)

tests_unit_cli_check_two_profiles_SOURCES = \
	tests/unit/cli/check_two_profiles.c \
	tests/lib/test.h \
	$(tests_no_memory) \
	cli/read_dump.c \
	cli/read_dump.h \
	cli/read_json.c \
	cli/read_json.h \
	cli/read_parts.c \
	cli/read_parts.h \
	cli/stacks.c \
	cli/stacks.h \
	cli/stacks_print.c \
	cli/text_table.c \
	cli/text_table.h
tests_unit_cli_check_two_profiles_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_cli_check_two_profiles_LDADD = $(tests_core) $(JANSSON_LIBS)

tests_unit_cli_check_top_SOURCES = \
	tests/unit/cli/check_top.c tests/lib/test.h $(tests_no_memory) \
	cli/top_lines.c cli/top_lines.h cli/top_press.c cli/top_round.c cli/top_round.h \
	cli/top_screen.c cli/top_screen.h cli/top_views.c cli/top_views.h
tests_unit_cli_check_top_CFLAGS = $(tests_cflags)
tests_unit_cli_check_top_LDADD = $(tests_core)

tests_unit_reader_check_door_SOURCES = \
	tests/unit/reader/check_door.c tests/lib/must.h tests/lib/refuse_call.h \
	tests/lib/sanitized.h tests/lib/test.h $(tests_no_memory)
tests_unit_reader_check_door_CFLAGS = $(tests_cflags)
tests_unit_reader_check_door_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_entered_SOURCES = \
	tests/unit/reader/check_entered.c tests/lib/test.h $(tests_stuck_task)
tests_unit_reader_check_entered_CFLAGS = $(tests_cflags)
tests_unit_reader_check_entered_LDADD = libtdt-reader.la $(tests_core) -lpthread

tests_unit_reader_check_history_SOURCES = \
	tests/unit/reader/check_history.c tests/lib/test.h $(tests_poll_now) $(tests_no_memory)
tests_unit_reader_check_history_CFLAGS = $(tests_cflags)
tests_unit_reader_check_history_LDADD = libtdt-reader.la $(tests_core) -lpthread

tests_unit_reader_check_images_SOURCES = tests/unit/reader/check_images.c tests/lib/test.h
tests_unit_reader_check_images_CFLAGS = $(tests_cflags)
tests_unit_reader_check_images_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_last_states_SOURCES = \
	tests/unit/reader/check_last_states.c tests/lib/test.h $(tests_no_memory) \
	$(tests_recording_maker)
tests_unit_reader_check_last_states_CFLAGS = $(tests_cflags)
tests_unit_reader_check_last_states_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_profile_SOURCES = \
	tests/unit/reader/check_profile.c tests/lib/test.h $(tests_no_memory) \
	$(tests_recording_maker) \
	tree-printer/pprof.c tree-printer/pprof.h
tests_unit_reader_check_profile_CFLAGS = $(tests_cflags) $(ZLIB_CFLAGS)
tests_unit_reader_check_profile_LDADD = libtdt-reader.la $(tests_core) $(ZLIB_LIBS)

tests_unit_reader_check_profile_sum_SOURCES = \
	tests/unit/reader/check_profile_sum.c tests/lib/test.h
tests_unit_reader_check_profile_sum_CFLAGS = $(tests_cflags)
tests_unit_reader_check_profile_sum_LDADD = libtdt-reader.la $(tests_core) -lm

tests_unit_reader_check_reader_SOURCES = \
	tests/unit/reader/check_reader.c tests/lib/test.h $(tests_poll_now) $(tests_no_memory)
tests_unit_reader_check_reader_CFLAGS = $(tests_cflags)
tests_unit_reader_check_reader_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_recorded_SOURCES = \
	tests/unit/reader/check_recorded.c tests/lib/sanitized.h tests/lib/test.h \
	$(tests_poll_now) $(tests_no_memory)
tests_unit_reader_check_recorded_CFLAGS = $(tests_cflags)
tests_unit_reader_check_recorded_LDADD = libtdt-reader.la $(tests_core) -lpthread

tests_unit_reader_check_stop_SOURCES = \
	tests/unit/reader/check_stop.c tests/lib/must.h tests/lib/sanitized.h tests/lib/test.h
tests_unit_reader_check_stop_CFLAGS = $(tests_cflags)
tests_unit_reader_check_stop_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_target_SOURCES = \
	tests/unit/reader/check_target.c tests/lib/test.h $(tests_no_memory)
tests_unit_reader_check_target_CFLAGS = $(tests_cflags)
tests_unit_reader_check_target_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_torn_SOURCES = tests/unit/reader/check_torn.c tests/lib/test.h
tests_unit_reader_check_torn_CFLAGS = $(tests_cflags)
tests_unit_reader_check_torn_LDADD = libtdt-reader.la $(tests_core)

tests_unit_reader_check_walk_SOURCES = \
	tests/unit/reader/check_walk.c tests/lib/seeded.h tests/lib/test.h $(tests_poll_now)
tests_unit_reader_check_walk_CFLAGS = $(tests_cflags)
tests_unit_reader_check_walk_LDADD = libtdt-reader.la $(tests_core) -lpthread

tests_unit_tree_check_over_SOURCES = \
	tests/unit/tree/check_over.c tests/lib/seeded.h tests/lib/test.h $(tests_poll_now)
tests_unit_tree_check_over_CFLAGS = $(tests_cflags)
tests_unit_tree_check_over_LDADD = $(tests_lib)

tests_unit_tree_check_named_SOURCES = \
	tests/unit/tree/check_named.c tests/lib/must.h $(tests_printed) $(tests_no_memory)
tests_unit_tree_check_named_CFLAGS = $(tests_cflags)
tests_unit_tree_check_named_LDADD = $(tests_core)

tests_unit_tree_check_stacks_SOURCES = \
	tests/unit/tree/check_stacks.c tests/lib/must.h tests/lib/test.h
tests_unit_tree_check_stacks_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_tree_check_stacks_CFLAGS = $(tests_cflags)
tests_unit_tree_check_stacks_LDADD = $(tests_core)
EXTRA_tests_unit_tree_check_stacks_DEPENDENCIES = tests/lib/plugin_a.la

tests_unit_tree_check_tree_SOURCES = tests/unit/tree/check_tree.c $(tests_no_memory)
tests_unit_tree_check_tree_CFLAGS = $(tests_cflags)
tests_unit_tree_check_tree_LDADD = $(tests_lib)

# src/recording/

tests_unit_recording_check_copy_SOURCES = \
	tests/unit/recording/check_copy.c tests/lib/test.h \
	$(tests_no_memory) $(tests_recording_maker)
tests_unit_recording_check_copy_CFLAGS = $(tests_cflags)
tests_unit_recording_check_copy_LDADD = $(tests_core) -lpthread

tests_unit_recording_check_read_SOURCES = \
	tests/unit/recording/check_read.c tests/lib/seeded.h tests/lib/test.h \
	$(tests_no_memory) $(tests_recording_maker)
tests_unit_recording_check_read_CFLAGS = $(tests_cflags)
tests_unit_recording_check_read_LDADD = $(tests_core)

tests_unit_recording_check_supplement_SOURCES = \
	tests/unit/recording/check_supplement.c tests/lib/test.h \
	$(tests_no_memory) $(tests_recording_maker)
tests_unit_recording_check_supplement_CFLAGS = $(tests_cflags)
tests_unit_recording_check_supplement_LDADD = $(tests_core)

tests_unit_recording_check_timeline_SOURCES = \
	tests/unit/recording/check_timeline.c tests/lib/test.h \
	$(tests_no_memory) $(tests_recording_maker)
tests_unit_recording_check_timeline_CFLAGS = $(tests_cflags)
tests_unit_recording_check_timeline_LDADD = $(tests_core)

# tree-printer/

tests_unit_dump_check_recorder_summary_SOURCES = \
	tests/unit/dump/check_recorder_summary.c tests/lib/test.h $(tests_recording_maker) \
	$(tests_no_memory)
tests_unit_dump_check_recorder_summary_CFLAGS = $(tests_cflags)
tests_unit_dump_check_recorder_summary_LDADD = $(tests_core) -lpthread

tests_unit_recording_check_summary_SOURCES = \
	tests/unit/recording/check_summary.c tests/lib/test.h $(tests_recording_maker) \
	$(tests_no_memory)
tests_unit_recording_check_summary_CFLAGS = $(tests_cflags)
tests_unit_recording_check_summary_LDADD = $(tests_core)

tests_unit_recording_check_durations_SOURCES = \
	tests/unit/recording/check_durations.c tests/lib/test.h $(tests_recording_maker) \
	$(tests_no_memory)
tests_unit_recording_check_durations_CFLAGS = $(tests_cflags)
tests_unit_recording_check_durations_LDADD = $(tests_core)

tests_unit_tree_printer_check_dump_cost_SOURCES = \
	tests/unit/tree-printer/check_dump_cost.c $(tests_dumped) $(tests_no_memory)
tests_unit_tree_printer_check_dump_cost_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_dump_cost_LDADD = $(tests_lib)

tests_unit_tree_printer_check_dump_json_SOURCES = \
	tests/unit/tree-printer/check_dump_json.c \
	$(tests_dumped) \
	$(tests_no_memory) \
	cli/read_dump.c \
	cli/read_dump.h \
	cli/read_json.c \
	cli/read_json.h \
	cli/read_parts.c \
	cli/read_parts.h
tests_unit_tree_printer_check_dump_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_dump_json_LDADD = $(tests_lib) $(JANSSON_LIBS)

tests_unit_tree_printer_check_dump_text_SOURCES = \
	tests/unit/tree-printer/check_dump_text.c $(tests_dumped) $(tests_no_memory)
tests_unit_tree_printer_check_dump_text_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_dump_text_LDADD = $(tests_lib)

tests_unit_tree_printer_check_summary_forms_SOURCES = \
	tests/unit/tree-printer/check_summary_forms.c tests/lib/test.h $(tests_recording_maker) \
	$(tests_no_memory)
tests_unit_tree_printer_check_summary_forms_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_summary_forms_LDADD = $(tests_core) $(JANSSON_LIBS)

tests_unit_tree_printer_check_perfetto_names_SOURCES = \
	tests/unit/tree-printer/check_perfetto_names.c tests/lib/must.h tests/lib/test.h
tests_unit_tree_printer_check_perfetto_names_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_perfetto_names_LDADD = $(tests_core)

tests_unit_tree_printer_check_fold_SOURCES = \
	tests/unit/tree-printer/check_fold.c \
	$(tests_no_memory) \
	$(tests_printed)
tests_unit_tree_printer_check_fold_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_fold_LDADD = $(tests_core)

tests_unit_tree_printer_check_json_SOURCES = \
	tests/unit/tree-printer/check_json.c \
	$(tests_no_memory) \
	$(tests_printed) \
	cli/read_dump.c \
	cli/read_dump.h \
	cli/read_json.c \
	cli/read_json.h \
	cli/read_parts.c \
	cli/read_parts.h
tests_unit_tree_printer_check_json_CFLAGS = $(tests_cflags) $(JANSSON_CFLAGS)
tests_unit_tree_printer_check_json_LDADD = $(tests_lib) $(JANSSON_LIBS)

tests_unit_tree_printer_check_perfetto_SOURCES = \
	tests/unit/tree-printer/check_perfetto.c tests/lib/seeded.h tests/lib/test.h \
	$(tests_no_memory) $(tests_recording_maker)
tests_unit_tree_printer_check_perfetto_CFLAGS = $(tests_cflags) $(ZLIB_CFLAGS)
tests_unit_tree_printer_check_perfetto_LDADD = $(tests_core) $(ZLIB_LIBS)

tests_unit_tree_printer_check_print_SOURCES = \
	tests/unit/tree-printer/check_print.c $(tests_no_memory) $(tests_printed)
tests_unit_tree_printer_check_print_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_print_LDADD = $(tests_lib)

tests_unit_tree_printer_check_text_SOURCES = tests/unit/tree-printer/check_text.c $(tests_printed)
tests_unit_tree_printer_check_text_CFLAGS = $(tests_cflags)
tests_unit_tree_printer_check_text_LDADD = $(tests_lib)

# src/host/

tests_unit_host_check_barrier_SOURCES = \
	tests/unit/host/check_barrier.c tests/lib/refuse_call.h $(tests_requester)
tests_unit_host_check_barrier_CFLAGS = $(tests_cflags)
tests_unit_host_check_barrier_LDADD = $(tests_core)

tests_unit_host_check_host_fork_SOURCES = \
	tests/unit/host/check_host_fork.c \
	tests/lib/must.h \
	tests/lib/sanitized.h \
	tests/lib/test.h \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_poll_now)
tests_unit_host_check_host_fork_CPPFLAGS = $(tests_host_cppflags)
tests_unit_host_check_host_fork_CFLAGS = $(tests_cflags)
tests_unit_host_check_host_fork_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_unit_host_check_host_fork_DEPENDENCIES = $(tests_host_plugins_la)

tests_unit_host_check_host_loader_SOURCES = \
	tests/unit/host/check_host_loader.c \
	tests/lib/apart.c \
	tests/lib/apart.h \
	$(tests_host_plugins) \
	$(tests_poll_now) \
	$(tests_stuck_task)
tests_unit_host_check_host_loader_CPPFLAGS = $(tests_host_cppflags)
tests_unit_host_check_host_loader_CFLAGS = $(tests_cflags)
tests_unit_host_check_host_loader_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_unit_host_check_host_loader_DEPENDENCIES = $(tests_host_plugins_la)

tests_unit_host_check_host_naming_SOURCES = \
	tests/unit/host/check_host_naming.c \
	tests/lib/must.h \
	tests/lib/test.h \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_poll_now)
tests_unit_host_check_host_naming_CPPFLAGS = $(tests_host_cppflags)
tests_unit_host_check_host_naming_CFLAGS = $(tests_cflags)
tests_unit_host_check_host_naming_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_unit_host_check_host_naming_DEPENDENCIES = $(tests_host_plugins_la)

tests_unit_host_check_host_unload_SOURCES = \
	tests/unit/host/check_host_unload.c \
	$(tests_calls) \
	$(tests_host_plugins) \
	$(tests_stuck_task)
tests_unit_host_check_host_unload_CPPFLAGS = $(tests_host_cppflags)
tests_unit_host_check_host_unload_CFLAGS = $(tests_cflags)
tests_unit_host_check_host_unload_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_unit_host_check_host_unload_DEPENDENCIES = $(tests_host_plugins_la)

tests_unit_host_check_peek_SOURCES = \
	tests/unit/host/check_peek.c tests/lib/must.h tests/lib/refuse_call.h tests/lib/test.h
tests_unit_host_check_peek_CFLAGS = $(tests_cflags)
tests_unit_host_check_peek_LDADD = $(tests_core)

tests_unit_host_check_stack_SOURCES = \
	tests/unit/host/check_stack.c tests/lib/must.h tests/lib/sanitized.h tests/lib/test.h
tests_unit_host_check_stack_CFLAGS = $(tests_cflags)
tests_unit_host_check_stack_LDADD = $(tests_core) -lpthread

# What a filter refuses.
tests_unit_host_check_syscalls_refused_SOURCES = \
	tests/unit/host/check_syscalls_refused.c tests/lib/must.h tests/lib/sanitized.h \
	tests/lib/test.h
tests_unit_host_check_syscalls_refused_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_host_check_syscalls_refused_CFLAGS = $(tests_cflags)
tests_unit_host_check_syscalls_refused_LDADD = $(tests_lib) -ldl -lpthread
EXTRA_tests_unit_host_check_syscalls_refused_DEPENDENCIES = tests/lib/plugin_a.la

# src/unwind/

tests_unit_unwind_check_code_SOURCES = \
	tests/unit/unwind/check_code.c tests/lib/must.h tests/lib/test.h
tests_unit_unwind_check_code_CFLAGS = $(tests_cflags)
tests_unit_unwind_check_code_LDADD = $(tests_core)

tests_unit_unwind_check_odd_frames_SOURCES = \
	tests/unit/unwind/check_odd_frames.c \
	tests/lib/odd_frames.h \
	tests/lib/steps.c \
	tests/lib/steps.h \
	tests/lib/sanitized.h \
	tests/lib/must.h \
	tests/lib/test.h \
	$(tests_poll_now)
tests_unit_unwind_check_odd_frames_CFLAGS = $(tests_cflags)
tests_unit_unwind_check_odd_frames_LDADD = \
	tests/lib/libodd_frames_o1.la \
	tests/lib/libodd_frames_o2.la \
	$(tests_core) -ldl

tests_unit_unwind_check_walk_SOURCES = \
	tests/unit/unwind/check_walk.c tests/lib/frames.h $(tests_poll_now)
tests_unit_unwind_check_walk_CPPFLAGS = $(AM_CPPFLAGS) $(LIBUNWIND_CFLAGS)
tests_unit_unwind_check_walk_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_unwind_check_walk_LDADD = \
	tests/lib/libframes_plain.la \
	tests/lib/libframes_with_fp.la \
	tests/lib/libframes_without_fp.la \
	$(tests_core) -ldl

# src/registry/

tests_unit_registry_check_counters_SOURCES = \
	tests/unit/registry/check_counters.c tests/lib/must.h tests/lib/test.h
tests_unit_registry_check_counters_CFLAGS = $(tests_cflags)
tests_unit_registry_check_counters_LDADD = $(tests_core)
tests_unit_registry_check_registry_SOURCES = \
	tests/unit/registry/check_registry.c tests/lib/find_registry.h tests/lib/must.h \
	tests/lib/test.h $(tests_no_memory)
tests_unit_registry_check_registry_CFLAGS = $(tests_cflags)
tests_unit_registry_check_registry_LDADD = $(tests_core)

tests_unit_registry_check_stepped_SOURCES = \
	tests/unit/registry/check_stepped.c tests/lib/must.h tests/lib/test.h
tests_unit_registry_check_stepped_CFLAGS = $(tests_cflags)
tests_unit_registry_check_stepped_LDADD = $(tests_core)

# src/probes/

# The probes, and what a poll must not do for their sake, seen by ld's --wrap.
tests_unit_probes_check_probes_SOURCES = \
	tests/unit/probes/check_probes.c \
	tests/lib/must.h \
	tests/lib/unwinding.cc \
	tests/lib/unwinding.h \
	$(tests_requester) \
	$(tests_no_memory)
tests_unit_probes_check_probes_CFLAGS = $(tests_cflags) -fexceptions
if PROBES
tests_unit_probes_check_probes_LDFLAGS = \
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
tests_unit_probes_check_probes_LDADD = $(tests_core)

# src/capture/

tests_unit_capture_check_capture_SOURCES = \
	tests/unit/capture/check_capture.c $(tests_expected) $(tests_no_memory)
tests_unit_capture_check_capture_CFLAGS = $(tests_cflags)
tests_unit_capture_check_capture_LDADD = $(tests_lib)

tests_unit_capture_check_counted_SOURCES = \
	tests/unit/capture/check_counted.c tests/lib/seeded.h $(tests_requester)
tests_unit_capture_check_counted_CFLAGS = $(tests_cflags)
tests_unit_capture_check_counted_LDADD = $(tests_core)

tests_unit_capture_check_ghosts_SOURCES = \
	tests/unit/capture/check_ghosts.c tests/lib/must.h $(tests_futures)
tests_unit_capture_check_ghosts_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_capture_check_ghosts_CFLAGS = $(tests_cflags)
tests_unit_capture_check_ghosts_LDADD = $(tests_lib) -ldl
EXTRA_tests_unit_capture_check_ghosts_DEPENDENCIES = tests/lib/ghost_plugin.la

tests_unit_capture_check_ghosts_races_SOURCES = \
	tests/unit/capture/check_ghosts_races.c tests/lib/must.h tests/lib/sanitized.h \
	tests/lib/test.h
tests_unit_capture_check_ghosts_races_CFLAGS = $(tests_cflags)
tests_unit_capture_check_ghosts_races_LDADD = $(tests_rt)

# The static one as in a program that binds late, which tests the library's objects alone.
tests_unit_capture_check_handlers_SOURCES = \
	tests/unit/capture/check_handlers.c tests/lib/test.h $(tests_stuck_task)
tests_unit_capture_check_handlers_CFLAGS = $(tests_cflags)
tests_unit_capture_check_handlers_LDADD = $(tests_lib) -lpthread

tests_unit_capture_check_handlers_static_SOURCES = $(tests_unit_capture_check_handlers_SOURCES)
tests_unit_capture_check_handlers_static_CFLAGS = $(tests_cflags)
tests_unit_capture_check_handlers_static_LDFLAGS = -static-libtool-libs -Wl,-z,lazy
tests_unit_capture_check_handlers_static_LDADD = $(tests_lib) -lpthread

tests_unit_capture_check_odd_stacks_SOURCES = \
	tests/unit/capture/check_odd_stacks.c $(tests_expected)
tests_unit_capture_check_odd_stacks_CFLAGS = $(tests_cflags)
tests_unit_capture_check_odd_stacks_LDADD = $(tests_lib)

tests_unit_capture_check_plugins_SOURCES = \
	tests/unit/capture/check_plugins.c $(tests_expected) $(tests_no_memory)
tests_unit_capture_check_plugins_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_capture_check_plugins_CFLAGS = $(tests_cflags)
tests_unit_capture_check_plugins_LDADD = $(tests_lib) -ldl
EXTRA_tests_unit_capture_check_plugins_DEPENDENCIES = tests/lib/plugin_a.la tests/lib/plugin_b.la

tests_unit_capture_check_running_SOURCES = \
	tests/unit/capture/check_running.c tests/lib/stuck.h $(tests_stuck_task)
tests_unit_capture_check_running_CFLAGS = $(tests_cflags)
tests_unit_capture_check_running_LDADD = \
	tests/lib/libstuck_o0.la \
	tests/lib/libstuck_o1.la \
	tests/lib/libstuck_protected.la \
	tests/lib/libstuck_with_fp.la \
	tests/lib/libstuck_without_fp.la \
	$(tests_lib) -lpthread

tests_unit_capture_check_running_odd_SOURCES = \
	tests/unit/capture/check_running_odd.c tests/lib/seeded.h $(tests_gate)
tests_unit_capture_check_running_odd_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_capture_check_running_odd_LDADD = $(tests_core) -lpthread

tests_unit_capture_check_running_races_SOURCES = \
	tests/unit/capture/check_running_races.c tests/lib/seeded.h $(tests_stuck_task)
tests_unit_capture_check_running_races_CFLAGS = $(tests_cflags)
tests_unit_capture_check_running_races_LDADD = $(tests_core) -lpthread

tests_unit_capture_check_running_refused_SOURCES = \
	tests/unit/capture/check_running_refused.c $(tests_gate) $(tests_no_memory)
tests_unit_capture_check_running_refused_CFLAGS = $(tests_cflags)
tests_unit_capture_check_running_refused_LDFLAGS = -Wl,--wrap=tdt__peek
tests_unit_capture_check_running_refused_LDADD = $(tests_core) -lpthread

tests_unit_capture_check_running_stacks_SOURCES = \
	tests/unit/capture/check_running_stacks.c $(tests_gate) $(tests_switched)
tests_unit_capture_check_running_stacks_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_capture_check_running_stacks_LDADD = $(tests_core) -lpthread

tests_unit_capture_check_shared_frames_SOURCES = \
	tests/unit/capture/check_shared_frames.c tests/lib/must.h tests/lib/seeded.h \
	tests/lib/test.h
tests_unit_capture_check_shared_frames_CFLAGS = $(tests_cflags)
tests_unit_capture_check_shared_frames_LDADD = $(tests_core)

tests_unit_capture_check_suspended_SOURCES = \
	tests/unit/capture/check_suspended.c tests/lib/seeded.h tests/lib/test.h \
	tests/lib/frames.h $(tests_fibered)
tests_unit_capture_check_suspended_CFLAGS = $(tests_cflags)
tests_unit_capture_check_suspended_LDADD = \
	tests/lib/libframes_plain.la tests/lib/libframes_with_fp.la \
	tests/lib/libframes_without_fp.la $(tests_core) -lpthread

tests_unit_capture_check_switched_SOURCES = \
	tests/unit/capture/check_switched.c $(tests_switched) $(tests_requester)
tests_unit_capture_check_switched_CFLAGS = $(tests_cflags)
tests_unit_capture_check_switched_LDADD = $(tests_lib)

tests_unit_capture_check_waits_SOURCES = \
	tests/unit/capture/check_waits.c tests/lib/request_waiting.h $(tests_poll_now) \
	$(tests_printed)
tests_unit_capture_check_waits_CFLAGS = $(tests_cflags)
tests_unit_capture_check_waits_LDADD = $(tests_rt)

# src/watch/

tests_unit_watch_check_watch_SOURCES = \
	tests/unit/watch/check_watch.c $(tests_requester) $(tests_leaf) $(tests_threads)
tests_unit_watch_check_watch_CFLAGS = $(tests_cflags)
tests_unit_watch_check_watch_LDADD = $(tests_core)

tests_unit_watch_check_watch_poll_SOURCES = \
	tests/unit/watch/check_watch_poll.c tests/lib/must.h tests/lib/test.h $(tests_no_memory)
tests_unit_watch_check_watch_poll_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_watch_check_watch_poll_CFLAGS = $(tests_cflags)
tests_unit_watch_check_watch_poll_LDFLAGS = -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_create
tests_unit_watch_check_watch_poll_LDADD = $(tests_core) -ldl
EXTRA_tests_unit_watch_check_watch_poll_DEPENDENCIES = tests/lib/plugin_a.la tests/lib/plugin_b.la

tests_unit_watch_check_watch_races_SOURCES = \
	tests/unit/watch/check_watch_races.c tests/lib/must.h tests/lib/seeded.h tests/lib/test.h
tests_unit_watch_check_watch_races_CFLAGS = $(tests_cflags)
tests_unit_watch_check_watch_races_LDADD = $(tests_core)

# src/recorder/

tests_unit_recorder_check_recorder_SOURCES = \
	tests/unit/recorder/check_recorder.c tests/lib/must.h tests/lib/test.h \
	tests/lib/hand.h $(tests_recorded) $(tests_futures) $(tests_no_memory)
tests_unit_recorder_check_recorder_CFLAGS = $(tests_cflags)
tests_unit_recorder_check_recorder_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_recorder_check_recorder_LDADD = $(tests_core)

tests_unit_recorder_check_files_SOURCES = \
	tests/unit/recorder/check_files.c tests/lib/must.h tests/lib/test.h \
	tests/lib/hand.h $(tests_recorded) $(tests_futures)
tests_unit_recorder_check_files_CFLAGS = $(tests_cflags)
tests_unit_recorder_check_files_LDADD = $(tests_core)

tests_unit_recorder_check_record_stacks_SOURCES = \
	tests/unit/recorder/check_record_stacks.c tests/lib/must.h tests/lib/test.h \
	tests/lib/hand.h $(tests_recorded) $(tests_futures)
tests_unit_recorder_check_record_stacks_CFLAGS = $(tests_cflags)
tests_unit_recorder_check_record_stacks_LDADD = $(tests_core)

tests_unit_recorder_check_rings_SOURCES = \
	tests/unit/recorder/check_rings.c tests/lib/must.h tests/lib/test.h \
	tests/lib/hand.h $(tests_recorded) $(tests_futures)
tests_unit_recorder_check_rings_CFLAGS = $(tests_cflags)
tests_unit_recorder_check_rings_LDADD = $(tests_core)

tests_unit_recorder_check_user_SOURCES = \
	tests/unit/recorder/check_user.c tests/lib/must.h tests/lib/test.h \
	$(tests_recorded) $(tests_futures)
tests_unit_recorder_check_user_CFLAGS = $(tests_cflags)
tests_unit_recorder_check_user_LDADD = $(tests_core)

# src/task/

tests_unit_task_check_concurrent_SOURCES = \
	tests/unit/task/check_concurrent.c tests/lib/seeded.h tests/lib/test.h $(tests_bell)
tests_unit_task_check_concurrent_CFLAGS = $(tests_cflags)
tests_unit_task_check_concurrent_LDADD = $(tests_lib)

tests_unit_task_check_edges_SOURCES = \
	tests/unit/task/check_edges.c tests/lib/request_waiting.h tests/lib/test.h $(tests_poll_now)
tests_unit_task_check_edges_CFLAGS = $(tests_cflags)
tests_unit_task_check_edges_LDADD = $(tests_rt)

tests_unit_task_check_fibers_SOURCES = \
	tests/unit/task/check_fibers.c $(tests_fibered) $(tests_gate) $(tests_no_memory)
tests_unit_task_check_fibers_CFLAGS = $(tests_cflags)
tests_unit_task_check_fibers_LDADD = $(tests_core) -lpthread

tests_unit_task_check_handshake_SOURCES = tests/unit/task/check_handshake.c tests/lib/seeded.h
tests_unit_task_check_handshake_CFLAGS = $(tests_cflags)
tests_unit_task_check_handshake_LDFLAGS = -Wl,--wrap=tdt__barrier_heavy
tests_unit_task_check_handshake_LDADD = libtdt-core.la

# It raises semaphores, and wraps the functions that fire.
tests_unit_task_check_hooked_SOURCES = \
	tests/unit/task/check_hooked.c tests/lib/hand.h tests/lib/must.h tests/lib/test.h \
	$(tests_futures) $(tests_no_memory) $(tests_recorded)
tests_unit_task_check_hooked_CFLAGS = $(tests_cflags)
if PROBES
tests_unit_task_check_hooked_LDFLAGS = \
	-Wl,--wrap=tdt_probe_task__spawn \
	-Wl,--wrap=tdt_probe_task__poll__start \
	-Wl,--wrap=tdt_probe_task__poll__end \
	-Wl,--wrap=tdt_probe_task__terminate
endif
tests_unit_task_check_hooked_LDADD = $(tests_core)

tests_unit_task_check_join_SOURCES = \
	tests/unit/task/check_join.c tests/lib/seeded.h $(tests_requester) $(tests_bell) \
	$(tests_no_memory)
tests_unit_task_check_join_CFLAGS = $(tests_cflags)
tests_unit_task_check_join_LDADD = $(tests_lib)

tests_unit_task_check_kept_SOURCES = tests/unit/task/check_kept.c $(tests_requester)
tests_unit_task_check_kept_CFLAGS = $(tests_cflags)
tests_unit_task_check_kept_LDADD = $(tests_core)

tests_unit_task_check_kept_naive_SOURCES = \
	tests/unit/task/check_kept.c src/task/wrapper.c tests/lib/naive_kept.h $(tests_requester)
tests_unit_task_check_kept_naive_CFLAGS = \
	$(tests_cflags) $(LIB_CFLAGS) $(LIBUNWIND_CFLAGS) -include \
	$(srcdir)/tests/lib/naive_kept.h
tests_unit_task_check_kept_naive_LDADD = $(tests_core)

tests_unit_task_check_leaf_SOURCES = \
	tests/unit/task/check_leaf.c tests/lib/must.h $(tests_requester) $(tests_printed) \
	$(tests_no_memory)
tests_unit_task_check_leaf_CFLAGS = $(tests_cflags)
tests_unit_task_check_leaf_LDADD = $(tests_core) -lpthread

tests_unit_task_check_leaves_SOURCES = tests/unit/task/check_leaves.c $(tests_requester)
tests_unit_task_check_leaves_CFLAGS = $(tests_cflags)
tests_unit_task_check_leaves_LDADD = $(tests_lib)

tests_unit_task_check_attr_SOURCES = \
	tests/unit/task/check_attr.c $(tests_no_memory) tests/lib/test.h
tests_unit_task_check_attr_CFLAGS = $(tests_cflags)
tests_unit_task_check_attr_LDADD = $(tests_lib)

tests_unit_task_check_refused_SOURCES = \
	tests/unit/task/check_refused.c tests/lib/listed.h $(tests_requester)
tests_unit_task_check_refused_CFLAGS = $(tests_cflags)
tests_unit_task_check_refused_LDADD = $(tests_core)

tests_unit_task_check_misuse_SOURCES = \
	tests/unit/task/check_misuse.c tests/lib/must.h $(tests_switched) $(tests_requester)
tests_unit_task_check_misuse_CFLAGS = $(tests_cflags)
tests_unit_task_check_misuse_LDADD = $(tests_lib) -lpthread

tests_unit_task_check_panics_SOURCES = \
	tests/unit/task/check_panics.c tests/lib/must.h tests/lib/test.h $(tests_no_memory)
tests_unit_task_check_panics_CFLAGS = $(tests_cflags)
tests_unit_task_check_panics_LDADD = $(tests_core)
tests_unit_task_check_requests_SOURCES = \
	tests/unit/task/check_requests.c tests/lib/listed.h $(tests_requester)
tests_unit_task_check_requests_CFLAGS = $(tests_cflags)
tests_unit_task_check_requests_LDADD = $(tests_core)

tests_unit_task_check_tasks_SOURCES = \
	tests/unit/task/check_tasks.c tests/lib/must.h tests/lib/seeded.h $(tests_requester)
tests_unit_task_check_tasks_CFLAGS = $(tests_cflags)
tests_unit_task_check_tasks_LDADD = $(tests_lib)

tests_unit_task_check_traced_SOURCES = tests/unit/task/check_traced.c $(tests_requester)
tests_unit_task_check_traced_CFLAGS = $(tests_cflags)
tests_unit_task_check_traced_LDADD = $(tests_lib)

tests_unit_task_check_traced_nomem_SOURCES = \
	tests/unit/task/check_traced_nomem.c $(tests_no_memory) tests/lib/test.h
tests_unit_task_check_traced_nomem_CFLAGS = $(tests_cflags)
tests_unit_task_check_traced_nomem_LDADD = $(tests_lib)

tests_unit_task_check_unwound_SOURCES = \
	tests/unit/task/check_unwound.c tests/lib/unwinding.cc tests/lib/unwinding.h \
	$(tests_requester)
tests_unit_task_check_unwound_CFLAGS = $(tests_cflags) -fexceptions
tests_unit_task_check_unwound_LDADD = $(tests_core)

# src/future/

tests_unit_future_check_abi_SOURCES = tests/unit/future/check_abi.c tests/lib/test.h
tests_unit_future_check_abi_CFLAGS = $(tests_cflags)
tests_unit_future_check_abi_LDADD = $(CHECK_LIBS)

tests_unit_future_check_async_SOURCES = tests/unit/future/check_async.c $(tests_futures)
tests_unit_future_check_async_CFLAGS = $(tests_cflags)
tests_unit_future_check_async_LDADD = $(CHECK_LIBS)

tests_unit_future_check_combine_SOURCES = tests/unit/future/check_combine.c $(tests_futures)
tests_unit_future_check_combine_CFLAGS = $(tests_cflags)
tests_unit_future_check_combine_LDADD = $(tests_lib)

tests_unit_future_check_coroutine_SOURCES = \
	tests/unit/future/check_coroutine.c tests/lib/must.h $(tests_futures)
tests_unit_future_check_coroutine_CFLAGS = $(tests_cflags)
tests_unit_future_check_coroutine_LDADD = $(tests_rt)

tests_unit_future_check_coroutine_trees_SOURCES = \
	tests/unit/future/check_coroutine_trees.c tests/lib/seeded.h tests/lib/test.h \
	$(tests_poll_now)
tests_unit_future_check_coroutine_trees_CFLAGS = $(tests_cflags)
tests_unit_future_check_coroutine_trees_LDADD = $(tests_lib)

tests_unit_future_check_future_SOURCES = tests/unit/future/check_future.c $(tests_futures)
tests_unit_future_check_future_CFLAGS = $(tests_cflags)
tests_unit_future_check_future_LDADD = $(CHECK_LIBS)

# src/dump/

tests_unit_dump_check_deadlock_SOURCES = \
	tests/unit/dump/check_deadlock.c tests/lib/must.h tests/lib/seeded.h tests/lib/test.h
tests_unit_dump_check_deadlock_CFLAGS = $(tests_cflags)
tests_unit_dump_check_deadlock_LDADD = $(tests_rt)

tests_unit_dump_check_futurelock_SOURCES = \
	tests/unit/dump/check_futurelock.c tests/lib/must.h tests/lib/test.h
tests_unit_dump_check_futurelock_CFLAGS = $(tests_cflags)
tests_unit_dump_check_futurelock_LDADD = $(tests_rt)

tests_unit_dump_check_dump_all_SOURCES = tests/unit/dump/check_dump_all.c $(tests_printed)
tests_unit_dump_check_dump_all_CFLAGS = $(tests_cflags)
tests_unit_dump_check_dump_all_LDADD = $(tests_lib)

# Whether the process is a set-user-ID program, and whether there may be threads, by ld's --wrap.
tests_unit_dump_check_dump_environment_SOURCES = \
	tests/unit/dump/check_dump_environment.c \
	tests/lib/must.h \
	tests/lib/sanitized.h \
	tests/lib/test.h \
	$(tests_threads)
tests_unit_dump_check_dump_environment_CFLAGS = $(tests_cflags)
tests_unit_dump_check_dump_environment_LDFLAGS = -Wl,--wrap=secure_getenv -Wl,--wrap=pthread_create
tests_unit_dump_check_dump_environment_LDADD = $(tests_core)

# What is dumped, by ld's --wrap.
tests_unit_dump_check_dump_file_SOURCES = \
	tests/unit/dump/check_dump_file.c \
	tests/lib/test.h \
	$(tests_no_memory)
tests_unit_dump_check_dump_file_CFLAGS = $(tests_cflags)
tests_unit_dump_check_dump_file_LDFLAGS = -Wl,--wrap=tdt_dump
tests_unit_dump_check_dump_file_LDADD = $(tests_core)

# What the thread dumps, and that there may be no thread, by ld's --wrap.
tests_unit_dump_check_dump_signal_SOURCES = \
	tests/unit/dump/check_dump_signal.c tests/lib/must.h tests/lib/test.h $(tests_threads)
tests_unit_dump_check_dump_signal_CFLAGS = $(tests_cflags)
tests_unit_dump_check_dump_signal_LDFLAGS = -Wl,--wrap=tdt_dump -Wl,--wrap=pthread_create
tests_unit_dump_check_dump_signal_LDADD = $(tests_core)

tests_unit_dump_check_dump_stuck_SOURCES = \
	tests/unit/dump/check_dump_stuck.c $(tests_stuck_task) $(tests_leaf)
tests_unit_dump_check_dump_stuck_CFLAGS = $(tests_cflags) -fno-omit-frame-pointer
tests_unit_dump_check_dump_stuck_LDADD = $(tests_rt)

tests_unit_dump_check_recorder_snapshot_SOURCES = \
	tests/unit/dump/check_recorder_snapshot.c tests/lib/hand.h tests/lib/must.h \
	tests/lib/test.h $(tests_futures) $(tests_no_memory)
tests_unit_dump_check_recorder_snapshot_CFLAGS = $(tests_cflags)
tests_unit_dump_check_recorder_snapshot_LDADD = $(tests_core)

tests_unit_dump_check_recorder_trigger_SOURCES = \
	tests/unit/dump/check_recorder_trigger.c tests/lib/hand.h tests/lib/must.h \
	tests/lib/sanitized.h tests/lib/test.h $(tests_futures)
tests_unit_dump_check_recorder_trigger_CFLAGS = $(tests_cflags)
tests_unit_dump_check_recorder_trigger_LDADD = $(tests_core)

tests_unit_dump_check_dump_variable_SOURCES = tests/unit/dump/check_dump_variable.c tests/lib/test.h
tests_unit_dump_check_dump_variable_CFLAGS = $(tests_cflags)
tests_unit_dump_check_dump_variable_LDADD = $(tests_core)

tests_unit_dump_check_snapshot_SOURCES = \
	tests/unit/dump/check_snapshot.c \
	tests/lib/listed.h \
	tests/lib/must.h \
	$(tests_requester) \
	$(tests_no_memory) \
	$(tests_poll_now)
tests_unit_dump_check_snapshot_CPPFLAGS = \
	$(AM_CPPFLAGS) -DPLUGINS='"$(abs_top_builddir)/tests/lib/.libs"'
tests_unit_dump_check_snapshot_CFLAGS = $(tests_cflags) -fexceptions
tests_unit_dump_check_snapshot_LDADD = $(tests_core) -ldl
EXTRA_tests_unit_dump_check_snapshot_DEPENDENCIES = tests/lib/plugin_a.la tests/lib/plugin_b.la

tests_unit_dump_check_snapshot_rt_SOURCES = \
	tests/unit/dump/check_snapshot_rt.c tests/lib/sanitized.h tests/lib/seeded.h $(tests_leaf)
tests_unit_dump_check_snapshot_rt_CFLAGS = $(tests_cflags)
tests_unit_dump_check_snapshot_rt_LDADD = $(tests_rt)

# src/runtime/

tests_unit_runtime_check_driver_SOURCES = \
	tests/unit/runtime/check_driver.c tests/lib/test.h $(tests_driver_thread) \
	$(tests_no_memory)
tests_unit_runtime_check_driver_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_unit_runtime_check_driver_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_runtime_check_driver_LDADD = $(tests_rt_core)

tests_unit_runtime_check_mutex_SOURCES = \
	tests/unit/runtime/check_mutex.c tests/lib/seeded.h \
	$(tests_bell) \
	$(tests_futures) \
	$(tests_no_memory)
tests_unit_runtime_check_mutex_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_mutex_LDADD = $(tests_rt)

tests_unit_runtime_check_net_SOURCES = \
	tests/unit/runtime/check_net.c tests/lib/seeded.h $(tests_driven) $(tests_no_memory)
tests_unit_runtime_check_net_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_unit_runtime_check_net_LDFLAGS = -Wl,--wrap=poll -Wl,--wrap=uv_poll_init
tests_unit_runtime_check_net_LDADD = $(tests_rt_core)

tests_unit_runtime_check_oneshot_SOURCES = \
	tests/unit/runtime/check_oneshot.c tests/lib/seeded.h \
	$(tests_bell) \
	$(tests_futures) \
	$(tests_no_memory)
tests_unit_runtime_check_oneshot_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_oneshot_LDADD = $(tests_rt)

tests_unit_runtime_check_ring_SOURCES = \
	tests/unit/runtime/check_ring.c tests/lib/must.h tests/lib/test.h
tests_unit_runtime_check_ring_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_ring_LDADD = libtdt-rt-core.la $(tests_lib)

tests_unit_runtime_check_rt_SOURCES = \
	tests/unit/runtime/check_rt.c tests/lib/request_waiting.h $(tests_leaf) $(tests_threads)
tests_unit_runtime_check_rt_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_LDADD = $(tests_rt)

tests_unit_runtime_check_rt_block_on_SOURCES = \
	tests/unit/runtime/check_rt_block_on.c tests/lib/request_waiting.h $(tests_leaf)
tests_unit_runtime_check_rt_block_on_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_block_on_LDADD = $(tests_rt)

tests_unit_runtime_check_rt_idle_SOURCES = \
	tests/unit/runtime/check_rt_idle.c tests/lib/request_waiting.h $(tests_leaf) \
	$(tests_threads)
tests_unit_runtime_check_rt_idle_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_idle_LDADD = $(tests_rt)

tests_unit_runtime_check_rt_nomem_SOURCES = \
	tests/unit/runtime/check_rt_nomem.c $(tests_leaf) $(tests_no_memory) $(tests_threads)
tests_unit_runtime_check_rt_nomem_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_nomem_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_runtime_check_rt_nomem_LDADD = libtdt-rt-core.la $(tests_lib)

tests_unit_runtime_check_rt_races_SOURCES = \
	tests/unit/runtime/check_rt_races.c tests/lib/request_waiting.h tests/lib/seeded.h \
	$(tests_leaf)
tests_unit_runtime_check_rt_races_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_races_LDADD = $(tests_rt)

# What workers tell, and the moment before they sleep, seen by ld's --wrap.
tests_unit_runtime_check_rt_workers_SOURCES = tests/unit/runtime/check_rt_workers.c $(tests_leaf)
tests_unit_runtime_check_rt_workers_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_rt_workers_LDFLAGS = \
	-Wl,--wrap=tdt__idle_park \
	-Wl,--wrap=tdt_task_woken \
	-Wl,--wrap=tdt_worker_now \
	-Wl,--wrap=tdt_worker_thread_park \
	-Wl,--wrap=tdt_worker_thread_start \
	-Wl,--wrap=tdt_worker_thread_stop \
	-Wl,--wrap=tdt_worker_thread_unpark
tests_unit_runtime_check_rt_workers_LDADD = libtdt-rt-core.la $(tests_lib)

tests_unit_runtime_check_timeout_SOURCES = \
	tests/unit/runtime/check_timeout.c $(tests_driven) $(tests_no_memory)
tests_unit_runtime_check_timeout_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_timeout_LDADD = $(tests_rt_core)

tests_unit_runtime_check_timers_SOURCES = \
	tests/unit/runtime/check_timers.c tests/lib/seeded.h $(tests_driven) \
	$(tests_driver_thread) $(tests_no_memory)
tests_unit_runtime_check_timers_CFLAGS = $(tests_cflags) $(LIBUV_CFLAGS)
tests_unit_runtime_check_timers_LDADD = $(tests_rt_core)

tests_unit_runtime_check_yield_SOURCES = \
	tests/unit/runtime/check_yield.c $(tests_futures) $(tests_no_memory)
tests_unit_runtime_check_yield_CFLAGS = $(tests_cflags)
tests_unit_runtime_check_yield_LDADD = $(tests_rt)

# src/door/

# Whether there may be threads, by ld's --wrap.
tests_unit_door_check_door_SOURCES = \
	tests/unit/door/check_door.c tests/lib/sanitized.h tests/lib/seeded.h tests/lib/test.h \
	$(tests_threads) $(tests_visitor)
tests_unit_door_check_door_CFLAGS = $(tests_cflags)
tests_unit_door_check_door_LDFLAGS = -Wl,--wrap=pthread_create
tests_unit_door_check_door_LDADD = $(tests_core)

tests_unit_door_check_door_rt_SOURCES = \
	tests/unit/door/check_door_rt.c tests/lib/test.h $(tests_visitor)
tests_unit_door_check_door_rt_CFLAGS = $(tests_cflags)
tests_unit_door_check_door_rt_LDADD = $(tests_rt)

tests_unit_door_check_messages_SOURCES = \
	tests/unit/door/check_messages.c tests/lib/test.h $(tests_no_memory) $(tests_visitor)
tests_unit_door_check_messages_CFLAGS = $(tests_cflags)
tests_unit_door_check_messages_LDADD = $(tests_core)

tests_unit_door_check_trees_SOURCES = \
	tests/unit/door/check_trees.c tests/lib/listed.h tests/lib/test.h $(tests_no_memory) \
	$(tests_poll_now) $(tests_stuck_task) $(tests_visitor)
tests_unit_door_check_trees_CFLAGS = $(tests_cflags)
tests_unit_door_check_trees_LDADD = $(tests_core) -lpthread

# The library as a whole

tests_unit_check_errno_SOURCES = tests/unit/check_errno.c tests/lib/test.h $(tests_poll_now)
tests_unit_check_errno_CFLAGS = $(tests_cflags)
tests_unit_check_errno_LDADD = $(tests_lib) -lpthread

tests_unit_check_fork_SOURCES = \
	tests/unit/check_fork.c tests/lib/must.h tests/lib/sanitized.h tests/lib/test.h \
	$(tests_futures)
tests_unit_check_fork_CFLAGS = $(tests_cflags)
tests_unit_check_fork_LDADD = $(tests_core)

# What is executed, instruction by instruction.
tests_unit_check_hot_paths_SOURCES = \
	tests/unit/check_hot_paths.c \
	tests/lib/must.h \
	tests/lib/sanitized.h \
	tests/lib/stepped.c \
	tests/lib/stepped.h \
	tests/lib/test.h
tests_unit_check_hot_paths_CFLAGS = $(tests_cflags)
tests_unit_check_hot_paths_LDADD = libtdt-rt-core.la $(tests_core) -ldl

tests_unit_check_null_SOURCES = tests/unit/check_null.c tests/lib/test.h $(tests_poll_now)
tests_unit_check_null_CFLAGS = $(tests_cflags)
tests_unit_check_null_LDADD = $(tests_rt)
