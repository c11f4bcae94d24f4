# SPDX-License-Identifier: Apache-2.0 OR MIT
# The crates tdt-sys and tdt.  Cargo builds them; tests/outside/crates.sh tests them.

EXTRA_DIST += \
	rust/Cargo.toml \
	rust/rustfmt.toml \
	rust/served/Cargo.toml \
	rust/served/src/main.rs \
	rust/tdt-sys/Cargo.toml \
	rust/tdt-sys/README.md \
	rust/tdt-sys/build.rs \
	rust/tdt-sys/src/lib.rs \
	rust/tdt-sys/tests/layout.rs \
	rust/tdt/Cargo.toml \
	rust/tdt/README.md \
	rust/tdt/benches/cost.rs \
	rust/tdt/build.rs \
	rust/tdt/examples/futurelock.rs \
	rust/tdt/examples/hooked.rs \
	rust/tdt/examples/taskdump.rs \
	rust/tdt/src/adopt.rs \
	rust/tdt/src/dump.rs \
	rust/tdt/src/error.rs \
	rust/tdt/src/handle.rs \
	rust/tdt/src/hooks.rs \
	rust/tdt/src/info.rs \
	rust/tdt/src/lib.rs \
	rust/tdt/src/span.rs \
	rust/tdt/src/spawn.rs \
	rust/tdt/src/sync.rs \
	rust/tdt/src/sync/guard.rs \
	rust/tdt/src/sync/ledger.rs \
	rust/tdt/src/sync/mutex.rs \
	rust/tdt/src/sync/name.rs \
	rust/tdt/src/sync/rwlock.rs \
	rust/tdt/src/sync/semaphore.rs \
	rust/tdt/src/text.rs \
	rust/tdt/src/trace.rs \
	rust/tdt/src/traced.rs \
	rust/tdt/src/waker.rs \
	rust/tdt/tests/behaviour.rs \
	rust/tdt/tests/hostile.rs \
	rust/tdt/tests/hooks.rs \
	rust/tdt/tests/locks.rs \
	rust/tdt/tests/outside.rs \
	rust/tdt/tests/random/mod.rs \
	rust/tdt/tests/span.rs \
	rust/tdt/tests/stress.rs \
	rust/tdt/tests/tokio_test/mod.rs \
	rust/tdt/tests/trees.rs \
	rust/tdt/tests/wakers.rs \
	rust/tdt/tests/zoo/kinds.rs \
	rust/tdt/tests/zoo/late.rs \
	rust/tdt/tests/zoo/main.rs
