#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Puts what the crates need of the rest of the repository into them, so that `cargo package` makes
# crates that build alone: the licences, and libtdt's sources for the feature `vendored`.
#
#	REPOSITORY=https://... rust/package.sh && cargo publish -p tdt-sys && cargo publish -p tdt
#
# The sources do not know at which address they are public.  Without one the crates name none.
set -e
cd "$(dirname "$0")"
root=${1:-..}
for crate in tdt-sys tdt; do
	cp "$root/LICENSE-APACHE" "$root/LICENSE-MIT" "$root/NOTICE" "$crate"
	sed -i '/^repository = /d' "$crate/Cargo.toml"
	test -z "${REPOSITORY-}" ||
		sed -i "s|^documentation = .*|&\\nrepository = \"$REPOSITORY\"|" "$crate/Cargo.toml"
done
rm -rf tdt-sys/libtdt
mkdir tdt-sys/libtdt
(
	cd "$root"
	find include src tree-printer -path src/runtime -prune -o -type f \
		\( -name '*.[chS]' -o -name '*.hpp' -o -name local.mk -o -name libtdt.map \) -print
) | while read -r file; do
	mkdir -p "tdt-sys/libtdt/$(dirname "$file")"
	cp "$root/$file" "tdt-sys/libtdt/$file"
done
