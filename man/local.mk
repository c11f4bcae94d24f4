# SPDX-License-Identifier: Apache-2.0 OR MIT
dist_man_MANS += \
	man/tdt-coroutines.7 \
	man/tdt-join-ustack.1 \
	man/tdt-languages.7 \
	man/tdt-print.1 \
	man/tdt-probes.7 \
	man/tdt-rt.3 \
	man/tdt-trace.5 \
	man/tdt-tree.1 \
	man/tdt.1 \
	man/tdt.3

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
