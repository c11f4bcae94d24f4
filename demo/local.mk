# SPDX-License-Identifier: Apache-2.0 OR MIT
# Small programs a newcomer reads first.  `make demo` runs the main one.
