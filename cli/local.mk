# SPDX-License-Identifier: Apache-2.0 OR MIT
# The programs.

# What the programs are made of, compiled once for these, for tests and for fuzzing: the linker
# takes what each of them refers to.
noinst_LIBRARIES += cli/libcli.a
cli_libcli_a_SOURCES = \
	cli/answer.c \
	cli/answer.h \
	cli/apart.c \
	cli/apart.h \
	cli/bound.c \
	cli/bound.h \
	cli/bt.c \
	cli/bt.h \
	cli/compare.c \
	cli/compare.h \
	cli/diff.c \
	cli/diff_print.c \
	cli/join.c \
	cli/join.h \
	cli/join_print.c \
	cli/last.c \
	cli/last.h \
	cli/metered.c \
	cli/metered.h \
	cli/metrics.c \
	cli/metrics_page.c \
	cli/metrics_page.h \
	cli/metrics_profile.c \
	cli/metrics_profile.h \
	cli/named.c \
	cli/option_table.c \
	cli/options.c \
	cli/options.h \
	cli/otlp.c \
	cli/outside.c \
	cli/pieces.c \
	cli/pieces.h \
	cli/post.c \
	cli/post.h \
	cli/print.c \
	cli/processes.c \
	cli/processes.h \
	cli/profile.c \
	cli/profile.h \
	cli/profile_print.c \
	cli/profile_text.c \
	cli/program.c \
	cli/program.h \
	cli/ps.c \
	cli/ps.h \
	cli/ps_graph.c \
	cli/ps_table.c \
	cli/read_dump.c \
	cli/read_json.c \
	cli/read_json.h \
	cli/read_parts.c \
	cli/read_parts.h \
	cli/record.c \
	cli/record_write.c \
	cli/recordings.c \
	cli/recordings.h \
	cli/report.c \
	cli/report.h \
	cli/report_page.c \
	cli/report_redact.c \
	cli/report_timeline.c \
	cli/scrape.c \
	cli/scrape.h \
	cli/serve.c \
	cli/serve.h \
	cli/set.c \
	cli/stacks.c \
	cli/stacks.h \
	cli/task_groups.c \
	cli/task_groups.h \
	cli/tdt.h \
	cli/text_table.c \
	cli/text_table.h \
	cli/top.c \
	cli/top_json.c \
	cli/top_lines.c \
	cli/top_lines.h \
	cli/top_look.c \
	cli/top_look.h \
	cli/top_places.c \
	cli/top_press.c \
	cli/top_round.c \
	cli/top_round.h \
	cli/top_screen.c \
	cli/top_screen.h \
	cli/top_terminal.c \
	cli/ustack.c \
	cli/ustack.h \
	cli/wait.c \
	cli/wait.h \
	tree-printer/otlp.c \
	tree-printer/otlp.h \
	tree-printer/pprof.c \
	tree-printer/pprof.h
cli_cflags = $(AM_CFLAGS) $(INSTALLED_CFLAGS) $(JANSSON_CFLAGS) $(LIBDW_CFLAGS) \
	$(NCURSES_CFLAGS) $(ZLIB_CFLAGS)
cli_libcli_a_CFLAGS = $(cli_cflags)

# Both programs take from libtdt-core.la what runs in no target: names, trees and printers.
bin_PROGRAMS += tdt-join-ustack tdt
tdt_join_ustack_SOURCES = cli/join-ustack.c
tdt_join_ustack_CFLAGS = $(cli_cflags)
tdt_join_ustack_LDADD = cli/libcli.a libtdt-core.la $(JANSSON_LIBS) $(IBERTY_LIBS)
tdt_SOURCES = cli/tdt.c
tdt_CFLAGS = $(cli_cflags)
tdt_LDADD = cli/libcli.a libtdt-reader.la libtdt-core.la $(JANSSON_LIBS) $(NCURSES_LIBS) \
	$(ZLIB_LIBS)

# What a page of tdt report has besides its data, as C.
page_files = $(srcdir)/cli/report.html $(srcdir)/cli/report.css $(srcdir)/cli/report.js
$(cli_libcli_a_OBJECTS): cli/report.inc
cli/report.inc: $(srcdir)/cli/embed.awk $(page_files)
	$(AM_V_GEN)$(MKDIR_P) cli && $(AWK) -f $(srcdir)/cli/embed.awk $(page_files) >$@.new && \
		mv $@.new $@
CLEANFILES += cli/report.inc cli/report.inc.new
EXTRA_DIST += cli/embed.awk cli/report.html cli/report.css cli/report.js

# The old name of tdt print.
CLEANFILES += tdt-tree
all-local: tdt-tree
tdt-tree: tdt$(EXEEXT)
	$(AM_V_GEN)rm -f $@ && $(LN_S) tdt$(EXEEXT) $@

install-exec-hook:
	cd '$(DESTDIR)$(bindir)' && new=`echo tdt | sed '$(transform)'`$(EXEEXT) && \
		old=`echo tdt-tree | sed '$(transform)'` && rm -f "$$old" && \
		$(LN_S) "$$new" "$$old"

uninstall-tdt-tree:
	rm -f "$(DESTDIR)$(bindir)/`echo tdt-tree | sed '$(transform)'`"

# Completion of its options, for the shells.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = cli/completions/tdt.bash
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = cli/completions/_tdt
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = cli/completions/tdt.fish
