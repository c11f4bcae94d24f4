// SPDX-License-Identifier: Apache-2.0 OR MIT
#![doc = include_str!("../README.md")]
#![deny(unsafe_op_in_unsafe_fn)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations, missing_docs)]
// The lint of older clippys is about what `thread_local!` makes.
#![allow(clippy::declare_interior_mutable_const)]

#[cfg(feature = "tokio-hooks")]
mod adopt;
mod context;
mod dump;
mod error;
mod handle;
#[cfg(feature = "tokio-hooks")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio-hooks")))]
pub mod hooks;
mod info;
#[cfg(feature = "tracing")]
mod span;
#[cfg(feature = "tokio")]
mod spawn;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod sync;
mod text;
mod trace;
mod traced;
mod waker;

pub use context::{set_trace_context, TraceContext};
pub use dump::{
    current_id, dump, dump_json_to, dump_on_signal, dump_on_signal_to, dump_to, listen, tasks,
    watch, TaskEntry,
};
pub use error::Error;
pub use handle::{Backtrace, Handle};
#[cfg(feature = "tokio-hooks")]
pub use hooks::register_hooks;
pub use info::{State, TaskInfo, Wait, WaitKind};
#[cfg(feature = "tracing")]
pub use span::{in_span, InSpan};
#[cfg(feature = "tokio")]
pub use spawn::{spawn, spawn_local, JoinSetExt};
pub use trace::{Frame, Frames, Trace};
pub use traced::{child, traced, Builder, TraceExt, Traced};
