# SPDX-License-Identifier: Apache-2.0 OR MIT
# Rendering of a trace: part of libtdt, by its public headers only; and tdt-tree.
