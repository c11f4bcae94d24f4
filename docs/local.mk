# SPDX-License-Identifier: Apache-2.0 OR MIT
nobase_dist_doc_DATA = docs/last-trees.gdb docs/waiting.svg
EXTRA_DIST += docs/picture.awk docs/picture.sh

# The picture in README.md.
.PHONY: picture
picture: demo/taskdump demo/stuck
	@$(SHELL) $(srcdir)/docs/picture.sh demo >picture.tmp
	@mv picture.tmp $(srcdir)/docs/waiting.svg
