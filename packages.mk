# SPDX-License-Identifier: Apache-2.0 OR MIT
# Packages, and releases.

EXTRA_DIST += \
	.ci/packages \
	.ci/release \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/libtdt-dev.install \
	debian/libtdt-rt0.install \
	debian/libtdt-rt0.symbols \
	debian/libtdt0.install \
	debian/libtdt0.symbols \
	debian/rules \
	debian/source/format \
	debian/tdt-tools.install \
	debian/tdt-tools.lintian-overrides \
	debian/tests/bt \
	debian/tests/control \
	fedora/tdt.spec

.PHONY: check-packages release
check-packages: dist
	@$(SHELL) $(srcdir)/.ci/packages $(distdir).tar.xz build-packages

# Its commands are those of a clone: see there.
release:
	@cd $(srcdir) && VERSION='$(if $(filter command,$(origin VERSION)),$(VERSION))' CHECKS='$(CHECKS)' \
		$(SHELL) .ci/release
