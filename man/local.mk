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
