# SPDX-License-Identifier: Apache-2.0 OR MIT
dist_man_MANS += \
	man/tdt-coroutines.7 \
	man/tdt-join-ustack.1 \
	man/tdt-languages.7 \
	man/tdt-probes.7 \
	man/tdt-rt.3 \
	man/tdt-trace.5 \
	man/tdt-tree.1 \
	man/tdt.3

# These have the options of tdt's commands, from their table.
man_MANS = man/tdt.1 man/tdt-print.1 man/tdt-report.1
EXTRA_DIST += man/options.awk man/tdt.1.in man/tdt-print.1.in man/tdt-report.1.in
CLEANFILES += $(man_MANS)
man_options = $(srcdir)/man/options.awk $(srcdir)/cli/option_table.c
man/tdt.1: $(srcdir)/man/tdt.1.in $(man_options)
man/tdt-print.1: $(srcdir)/man/tdt-print.1.in $(man_options)
man/tdt-report.1: $(srcdir)/man/tdt-report.1.in $(man_options)
$(man_MANS):
	$(AM_V_GEN)$(MKDIR_P) man && $(AWK) -f $(man_options) '$(srcdir)/$@.in' >$@.tmp && \
		mv $@.tmp $@

# A page for each function, made from the headers.
EXTRA_DIST += man/functions.awk
CLEANFILES += man/functions.stamp
man_functions = $(srcdir)/man/functions.awk $(public_headers)
all-local: man/functions.stamp
man/functions.stamp: $(man_functions)
	$(AM_V_GEN)rm -rf man/man3 && $(MKDIR_P) man/man3 && cd $(srcdir) && \
		$(AWK) -v out='$(abs_builddir)/man/man3' -v version='$(PACKAGE_VERSION)' \
			-f man/functions.awk $(public_headers) && touch '$(abs_builddir)/$@'

install-data-local: man/functions.stamp
	@$(MKDIR_P) '$(DESTDIR)$(man3dir)'
	$(INSTALL_DATA) man/man3/*.3 '$(DESTDIR)$(man3dir)'

uninstall-local: man/functions.stamp
	for page in man/man3/*.3; do rm -f "$(DESTDIR)$(man3dir)/$${page##*/}"; done

clean-man:
	rm -rf man/man3
