# SPDX-License-Identifier: Apache-2.0 OR MIT
# Installed with README.md, in the folder that its links name.
dist_doc_DATA += README.md SECURITY.md NEWS LICENSE-APACHE LICENSE-MIT NOTICE
nobase_dist_doc_DATA = \
	docs/architecture.md \
	docs/benchmarks.md \
	docs/compatibility.md \
	docs/decisions.md \
	docs/hang.md \
	docs/how-it-works.md \
	docs/install.md \
	docs/languages.md \
	docs/last-trees.gdb \
	docs/limits.md \
	docs/metrics.md \
	docs/outside.md \
	docs/recorder.md \
	docs/runtimes.md \
	docs/top.md \
	docs/waiting.svg
EXTRA_DIST += docs/picture.awk docs/picture.sh

# The picture in README.md.
.PHONY: picture
picture: demo/taskdump demo/stuck
	@$(SHELL) $(srcdir)/docs/picture.sh demo >picture.tmp
	@mv picture.tmp $(srcdir)/docs/waiting.svg
