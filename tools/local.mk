# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts for tracers, in two versions each, for bpftrace (.bt) and DTrace (.d); and one for gdb.

toolsdir = $(pkgdatadir)/tools
dist_tools_SCRIPTS = \
	tools/count-spawns.bt \
	tools/count-spawns.d \
	tools/long-polls.bt \
	tools/long-polls.d \
	tools/oncpu-by-task.bt \
	tools/oncpu-by-task.d \
	tools/poll-stats.bt \
	tools/poll-stats.d \
	tools/print-all.bt \
	tools/print-all.d \
	tools/wait-stacks.bt \
	tools/wait-stacks.d \
	tools/worker-util.bt \
	tools/worker-util.d
dist_tools_DATA = tools/README.md tools/gdb/tdt.py

# gdb loads a script together with the library if it lies below auto-load/ where the library lies
# below /, and has the name of the library's file.  libtool makes that name; a static library has
# none.
gdb_name = sed -n "s/^library_names='\([^ ']\{1,\}\).*/\1-gdb.py/p" libtdt.la
gdb_folder = $(DESTDIR)$(datadir)/gdb/auto-load$(libdir)
install-data-hook:
	name=`$(gdb_name)`; test -z "$$name" || { $(MKDIR_P) "$(gdb_folder)" && \
		$(INSTALL_DATA) "$(srcdir)/tools/gdb/tdt.py" "$(gdb_folder)/$$name"; }
uninstall-gdb:
	name=`$(gdb_name)`; test -z "$$name" || rm -f "$(gdb_folder)/$$name"
