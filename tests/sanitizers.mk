# SPDX-License-Identifier: Apache-2.0 OR MIT
# The tests once more, under the sanitizers, with the slow walk of stacks, which is the reference,
# and to see what they cover: each in a build of its own below the build directory.  Such a build is
# made from a copy of the distributed files, since a source tree that is configured can't serve
# another build; what has not changed is not built again.  Under valgrind and with random delays the
# tests of this build are run.

.PHONY: check-aarch64 check-emulated check-sanitizers check-asan check-clang check-tsan \
	check-valgrind check-bare check-step check-that-walk check-threads check-delays \
	check-fibers check-flaky check-soak check-full \
	check-flags check-instrumentation \
	check-host check-host-asan check-host-tsan coverage coverage-report

# One after the other, and all of them.
check-sanitizers:
	@status=0; \
	for goal in check-asan check-clang check-tsan check-valgrind; do \
		$(MAKE) $(AM_MAKEFLAGS) $$goal || status=1; \
	done; \
	exit $$status

# Whether dependencies are tracked, as in this build.
if !AMDEP
own_flags = --disable-dependency-tracking
endif

# Shell text that takes `name`, the `flags` of configure, and `goal`; and `cc` and `cxx`, if the
# compilers are others.  What configure has found in another build with the same compilers, as its
# config.log says, it need not try again.  A cache of its own would not do: configure refuses it if
# CFLAGS differ.
in_own_build = \
	cc=$${cc-'$(CC)'} cxx=$${cxx-'$(CXX)'} && \
	mkdir -p build-$$name && \
	$(MAKE) $(AM_MAKEFLAGS) distdir distdir=build-$$name/source >/dev/null && \
	log=`grep -lsx "CC='$$cc'" config.log build-*/config.log | \
		xargs grep -lx "CXX='$$cxx'" /dev/null | head -n 1` && \
	cd build-$$name && \
	{ test -f libtool || { \
		test -z "$$log" || \
			sed -n '/^ac_cv_env_/d; /^[a-z]*_cv_[a-zA-Z0-9_]*=/p' "../$$log" \
				>config.cache; \
		source/configure -q -C CC="$$cc" CXX="$$cxx" $(own_flags) $$flags; \
	}; } && \
	echo "== $$name: $$goal" && \
	$(MAKE) $(AM_MAKEFLAGS) $$goal

check-asan:
	+@name=asan; flags=--with-sanitizers=address,undefined; goal=check; $(in_own_build)

# The same by Clang, whose UBSan finds what GCC's does not (a number added to NULL, a function
# called by another type).
check-clang:
	+@if test -n '$(TEST_CLANG)' && test -n '$(TEST_CLANGXX)'; then \
		cc='$(TEST_CLANG)' cxx='$(TEST_CLANGXX)'; name=clang; \
		flags=--with-sanitizers=address,undefined; goal=check; $(in_own_build); \
	else \
		echo 'check-clang: skipped: there is no clang'; \
	fi

check-tsan:
	+@name=tsan; flags=--with-sanitizers=thread; goal=check-threads; $(in_own_build)

# Neither run nor built for ThreadSanitizer: what has no second thread.  A process that is only read
# from outside runs nothing for its reader; the threads of those that are asked are in tdt_bt.sh,
# tdt_record.sh, tdt_requests.sh and tdt_top.sh.
without_threads = \
	tests/fuzz/% \
	$(addprefix tests/outside/, \
		alerts.sh damaged_dwarf.sh evolve.sh fuzz.sh help.sh join_ustack.sh leaves liar \
		registry_image registry_reader summary.sh symbolize_pcs symbolize_variants.sh \
		tdt_diff.sh tdt_examples.sh tdt_hostile.sh tdt_last.sh tdt_processes.sh tdt_ps.sh \
		tdt_report.sh tdt_targets.sh tdt_trace.sh tdt_tree.sh copies diff_tasks \
		outside_busy outside_futurelock spans without_call) \
	$(addprefix tests/unit/, \
		base/% cli/% facts/% tree/% tree-printer/% unwind/% recording/check_durations \
		recording/check_read recording/check_summary recording/check_supplement \
		recording/check_timeline reader/check_images reader/check_last_states \
		reader/check_profile reader/check_profile_sum reader/check_reader \
		reader/check_torn)
check-threads:
	@echo 'check-tsan: skipped: $(without_threads)'
	+@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out $(without_threads),$(TESTS))' \
		check_PROGRAMS='$(filter-out $(without_threads),$(check_PROGRAMS))'

check-step:
	+@name=step; flags=--with-walk=step; goal=check-that-walk; $(in_own_build)

# Neither run nor built: what walks no stack by the library's rules, or builds programs in many ways
# (walk.sh compares all ways to walk, compiler by compiler).  Callbacks and C++ coroutines are
# listed in their tasks' records; and tracers, gdb and tdt ps find their own way.
without_walks = \
	tests/fuzz/% \
	tests/project/% \
	$(addprefix tests/outside/, \
		alerts.sh bench.sh callbacks.sh callbacks compare.sh completions.sh coro.sh coro \
		coro_asio coro_boost crates.sh crates_race.sh cxx.sh damaged_dwarf.sh evolve.sh \
		fences.sh fuzz.sh gdb_script.sh without_call help.sh join_ustack.sh lines.sh \
		liar make_trace metered \
		otlp.sh patched perfetto.sh planted probed probes.sh recorded registry.sh \
		registry_image registry_reader summary.sh \
		symbolize_pcs symbolize_variants.sh tdt_diff.sh diff_tasks tdt_examples.sh \
		tdt_hostile.sh tdt_last.sh tdt_metrics.sh tdt_processes.sh tdt_ps.sh \
		outside_busy outside_futurelock tdt_record.sh tdt_report.sh tdt_targets.sh copies \
		tdt_top.sh tdt_trace.sh spans traced tdt_tree.sh tools.sh tools_echo.sh busy \
		trace_bpftrace.sh trace_gdb.sh \
		trace_patched.sh trace_perf.sh trace_user_probes.sh user_probes.sh \
		variants.sh wrong_code.sh) \
	$(addprefix tests/unit/, \
		base/% cli/% probes/% reader/% recording/% registry/% symbolize/% tree/% \
		tree-printer/%)
check-that-walk:
	@echo 'check-step: skipped: $(without_walks)'
	+@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out $(without_walks),$(TESTS))' \
		check_PROGRAMS='$(filter-out $(without_walks) $(BENCHES),$(check_PROGRAMS))'

# The unit programs for aarch64, by a cross compiler and Debian's libraries, emulated.
check-aarch64:
	+@root=$(abs_top_builddir)/build-aarch64/sysroot; \
	for program in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64 apt-get; do \
		command -v $$program >/dev/null || \
			{ echo "check-aarch64: skipped: there is no $$program"; exit 0; }; \
	done; \
	mkdir -p build-aarch64 && $(SHELL) $(srcdir)/tests/lib/sysroot.sh $$root || { \
		test $$? = 77 || exit 1; \
		echo 'check-aarch64: skipped: the network does not give the libraries'; exit 0; \
	}; \
	PKG_CONFIG_LIBDIR=$$root/usr/lib/aarch64-linux-gnu/pkgconfig:$$root/usr/share/pkgconfig; \
	PKG_CONFIG_SYSROOT_DIR=$$root; export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR; \
	cc="aarch64-linux-gnu-gcc --sysroot=$$root" cxx="aarch64-linux-gnu-g++ --sysroot=$$root"; \
	name=aarch64; flags=--host=aarch64-linux-gnu; goal=check-emulated; $(in_own_build)

# What qemu-user cannot do, and so is neither run nor built.  It has no process_vm_readv(2), and
# refuses rt_tgsigqueueinfo(2) for the library's signal; /proc/PID/task/TID/syscall has registers of
# qemu's own; a child of a process with threads cannot make threads (qemu's assertion fails); it
# executes no program without binfmt_misc; limits of memory are qemu's; some tests take too long.
# Tests that read a poll in progress skip themselves.
not_emulated = \
	$(addprefix tests/unit/, \
		check_errno check_fork cli/check_apart cli/check_pieces door/check_door \
		dump/check_dump_environment dump/check_dump_signal dump/check_recorder_snapshot \
		dump/check_recorder_trigger host/check_host_fork host/check_limits \
		recorder/check_files recorder/check_footprint recorder/check_record_stacks \
		recorder/check_recorder recording/check_read runtime/check_driver \
		runtime/check_timers symbolize/check_modules symbolize/check_namer \
		symbolize/check_naming tree-printer/check_fold)
emulated_tests = $(filter-out $(not_emulated),$(tests_unit))
check-emulated:
	@echo 'check-aarch64: skipped: $(not_emulated)'
	+@TDT_TEST_EMULATED=1; export TDT_TEST_EMULATED; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(emulated_tests)' \
		check_PROGRAMS='$(emulated_tests)' noinst_PROGRAMS= \
		LOG_COMPILER='$(TEST_TIMEOUT) bash $(srcdir)/tests/lib/emulated.sh \
			$(abs_top_builddir)/sysroot'

# What is left without the runtime and the probes.
check-bare:
	+@name=bare; flags='--without-runtime --without-probes'; goal=check; $(in_own_build)

# The stress of a host, by Clang's sanitizers and by ThreadSanitizer.
check-host-asan:
	+@cc='$(TEST_CLANG)' cxx='$(TEST_CLANGXX)'; \
	name=clang; flags=--with-sanitizers=address,undefined; goal=check-host; $(in_own_build)

check-host-tsan:
	+@name=tsan; flags=--with-sanitizers=thread; goal=check-host; $(in_own_build)

# Only the unit tests: under a script valgrind would look at the shell.  Each test case is a process
# of its own, so that errors and leaks are found, and named, case by case.  Not check_fork and
# check_host_fork: a child has lost the threads that would free what it inherits.  Not
# check_symbolize_nomem: valgrind has the allocator.  Not check_walk: it walks by libunwind's local
# cursor, too, which probes memory with system calls.  Not check_limits: valgrind takes memory, too.
# Not races, as valgrind runs one thread at a time; no statistics of many made-up looks; and no
# suite once more that differs by flags alone.  --fair-sched, as a thread that computes until
# another one has done something would otherwise seldom let it.
# Valgrind before 3.20 gives up at Clang's DWARF 5: a build by Clang needs CFLAGS='-O2 -gdwarf-4'.
not_under_valgrind = \
	tests/unit/check_fork tests/unit/host/check_host_fork tests/unit/host/check_limits \
	tests/unit/symbolize/check_symbolize_nomem \
	tests/unit/symbolize/check_symbolize_nomem_split tests/unit/unwind/check_walk \
	tests/stress/recorder tests/stress/recorder_killed \
	tests/unit/capture/check_ghosts_races tests/unit/capture/check_handlers_static \
	tests/unit/capture/check_running_races tests/unit/reader/check_profile_sum \
	tests/unit/runtime/check_rt_races \
	tests/unit/task/check_handshake tests/unit/task/check_kept_naive \
	tests/unit/task/check_misuse_tls tests/unit/watch/check_watch_races
under_valgrind = \
	valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite --show-leak-kinds=definite --max-stackframe=33554432 \
	--suppressions=$(abs_top_srcdir)/tests/lib/valgrind.supp

check-valgrind: all
	+@test '$(SANITIZERS)' = no || \
		{ echo 'check-valgrind: skipped: it needs a plain build'; exit 0; }; \
	command -v valgrind >/dev/null || \
		{ echo 'check-valgrind: skipped: there is no valgrind'; exit 0; }; \
	CK_TIMEOUT_MULTIPLIER=20; export CK_TIMEOUT_MULTIPLIER; \
	echo 'check-valgrind: skipped: the scripts, and $(not_under_valgrind)'; \
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out %.sh $(not_under_valgrind),$(TESTS))' \
		LOG_COMPILER='$(TEST_TIMEOUT) $(LIBTOOL) --mode=execute $(under_valgrind)'

# With delays at random (tests/lib/delays.c), for tests that take for granted what is only likely.
# It takes a while; a seed may be given.  Not in a sanitized build, whose allocator and locks come
# first.  Not the two that take a lock hundreds of thousands of times, nor two that try the same at
# very many moments.
not_delayed = \
	tests/unit/tree/check_tree tests/unit/unwind/check_walk \
	tests/unit/host/check_host_unload tests/unit/host/check_syscalls_refused
check-delays: all
	+@test '$(SANITIZERS)' = no || \
		{ echo 'check-delays: skipped: a plain build is delayed'; exit 0; }; \
	TDT_TEST_SEED=$${TDT_TEST_SEED-`date +%s`}; export TDT_TEST_SEED; \
	CK_TIMEOUT_MULTIPLIER=5; export CK_TIMEOUT_MULTIPLIER; \
	echo "check-delays: TDT_TEST_SEED=$$TDT_TEST_SEED;" \
		'skipped: the scripts, and $(not_delayed) $(without_threads)'; \
	delays='$(abs_builddir)/tests/lib/.libs/delays.so'; \
	$(MAKE) $(AM_MAKEFLAGS) tests/lib/delays.la && \
	$(MAKE) $(AM_MAKEFLAGS) check \
		TESTS='$(filter-out %.sh $(not_delayed) $(without_threads),$(TESTS))' \
		LOG_COMPILER="$(TEST_TIMEOUT) $(LIBTOOL) --mode=execute env LD_PRELOAD=$$delays"

# Which lines of the library and of the programs the tests run: a table, and pages below
# build-coverage/.  A process that ends by _exit() does not write what it has counted, and children
# in tests do so: here they end by exit().  GCC puts a function of its own in place of fork(), which
# forgets what the handlers of pthread_atfork() have counted in the child: not here.
coverage:
	+@if command -v lcov >/dev/null; then \
		CFLAGS='-O1 -g --coverage -D_exit=exit -fno-builtin-fork'; \
		CXXFLAGS='-O1 -g --coverage'; export CFLAGS CXXFLAGS; \
		name=coverage; flags=; goal=coverage-report; $(in_own_build); \
	else \
		echo 'coverage: there is no lcov (Debian: lcov)' >&2; \
		exit 1; \
	fi

# Tests that fail do not spoil the figures: some count instructions, or link a program with nothing
# but libtdt.a.  The benchmarks are left out: in this build bench/probes waits for bpftrace until it
# is stopped, ten minutes later.
coverage-report: all
	@find . -name '*.gcda' -exec rm {} +
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(filter-out tests/outside/bench.sh,$(TESTS))' || \
		echo 'coverage: some tests failed'
	@lcov -q --capture --directory . --base-directory . --output-file coverage.all \
		2>coverage.log || { cat coverage.log; exit 1; }
	@lcov -q --output-file coverage.info --extract coverage.all \
		$(foreach folder,include src tree-printer cli,'$(abs_top_srcdir)/$(folder)/*')
	@genhtml -q --output-directory coverage --prefix '$(abs_top_srcdir)' coverage.info
	@$(AWK) -v root='$(abs_top_srcdir)/' -f $(srcdir)/tests/lib/coverage.awk coverage.info
	@echo; echo 'each file and line: $(abs_builddir)/coverage/index.html'

EXTRA_DIST += tests/lib/coverage.awk tests/lib/valgrind.supp

distclean-local:
	rm -rf build-asan build-bare build-clang build-coverage build-fuzz build-step build-tsan \
		tests/outside/trace_processor
