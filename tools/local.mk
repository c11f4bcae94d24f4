# SPDX-License-Identifier: Apache-2.0 OR MIT
# Scripts for tracers, in two versions each: for bpftrace (.bt) and for DTrace (.d).

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
dist_tools_DATA = tools/README.md
