// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The answer to a request.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ptr;

use tdt_sys as sys;

use crate::text::{known, printed, text};
use crate::{Error, TaskInfo};

/// Where a task waited: the answer to a request.
///
/// `{}` prints the tree as text; `{:#}` with the frames of libraries, of libtdt and of this crate
/// that are otherwise left out.  Names are looked up when they are first wanted, which takes some
/// milliseconds, and five seconds at most.
pub struct Trace(*mut sys::tdt_trace);

// SAFETY: any thread may use and free a trace.
unsafe impl Send for Trace {}
// SAFETY: several threads may read a trace at a time; it is changed and freed by its owner only.
unsafe impl Sync for Trace {}

impl Trace {
    /// # Safety
    /// `trace` is a trace that the caller gives away.
    pub(crate) unsafe fn from_raw(trace: *mut sys::tdt_trace) -> Trace {
        Trace(trace)
    }

    /// The answer of a call that returns a trace, or null and errno.
    ///
    /// # Safety
    /// `trace` is the answer of the last call of C on this thread.
    pub(crate) unsafe fn from_answer(trace: *mut sys::tdt_trace) -> Result<Trace, Error> {
        if trace.is_null() {
            Err(Error::last())
        } else {
            Ok(Trace(trace))
        }
    }

    /// The facts that the trace has of its task.
    pub fn info(&self) -> TaskInfo {
        // SAFETY: the facts live as long as the trace.
        unsafe { TaskInfo::of(&*sys::tdt_trace_info(self.0)) }
    }

    /// The frames of the tree, depth first, each before those that it waits for.
    ///
    /// ```
    /// # use tdt::TraceExt;
    /// # async fn answer() { std::future::pending().await }
    /// # let mut future = Box::pin(answer().traced());
    /// # let handle = future.handle();
    /// # let waker = futures::task::noop_waker();
    /// # let mut cx = std::task::Context::from_waker(&waker);
    /// # let asked = std::thread::spawn(move || handle.backtrace_blocking());
    /// # let trace = loop {
    /// #     use std::future::Future;
    /// #     let _ = future.as_mut().poll(&mut cx);
    /// #     if asked.is_finished() { break asked.join().unwrap().unwrap(); }
    /// # };
    /// for frame in trace.frames() {
    ///     println!("{:width$}{}", "", frame, width = frame.depth());
    /// }
    /// ```
    pub fn frames(&self) -> Frames<'_> {
        // SAFETY: the trace is valid.
        let root = unsafe { sys::tdt_trace_root(self.0) };
        // SAFETY: a node, or null; the first node after the root is the first frame.
        Frames { next: unsafe { next(root) }, trace: PhantomData }
    }

    /// The frames in which the leaves wait.
    pub fn leaves(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames().filter(|frame| frame.leaves() > 0)
    }

    /// The trace as one JSON object on one line, with all frames: the manual page tdt-trace(5) has
    /// the schema.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn to_json(&self) -> io::Result<String> {
        let options = print_options(sys::TDT_PRINT_JSON, true);
        self.print(options)
    }

    fn print(&self, options: sys::tdt_print_options) -> io::Result<String> {
        // SAFETY: trace and options are valid; the options say where the text goes.
        let text = printed(options, |print| unsafe {
            sys::tdt_trace_print_with(self.0, ptr::null_mut(), print)
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

pub(crate) fn print_options(
    format: sys::tdt_print_format,
    plumbing: bool,
) -> sys::tdt_print_options {
    sys::tdt_print_options {
        size: mem::size_of::<sys::tdt_print_options>(),
        format,
        utf8: sys::TDT_PRINT_YES, // as strings of Rust are
        color: sys::TDT_PRINT_NO,
        addresses: 0,
        full_paths: 0,
        plumbing: plumbing.into(),
        full: plumbing.into(),
        max_depth: 0,
        reserved: 0,
        write: None, // text::printed() sets it
        arg: ptr::null_mut(),
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = print_options(sys::TDT_PRINT_TEXT, f.alternate());
        let text = self.print(options).map_err(|_| fmt::Error)?;
        f.write_str(text.trim_end_matches('\n'))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("info", &self.info()).finish_non_exhaustive()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // SAFETY: it belongs to this value.
        unsafe { sys::tdt_trace_free(self.0) }
    }
}

/// The iterator of [`Trace::frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    next: *const sys::tdt_node,
    trace: PhantomData<&'a Trace>,
}

/// # Safety
/// `node` is null or a node of a live trace.
unsafe fn next(node: *const sys::tdt_node) -> *const sys::tdt_node {
    if node.is_null() {
        node
    } else {
        // SAFETY: the caller's contract.
        unsafe { sys::tdt_node_next(node) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let node = self.next;
        // SAFETY: the nodes live as long as the trace, which is borrowed.
        unsafe {
            self.next = next(node);
            node.as_ref().map(|_| Frame { node, frame: &*sys::tdt_node_frame(node) })
        }
    }
}

/// A function in a tree, or a gap where frames are missing.
///
/// It prints as `function at file:line:column`.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    node: *const sys::tdt_node,
    frame: &'a sys::tdt_frame,
}

// SAFETY: several threads may read a trace at a time.
unsafe impl Send for Frame<'_> {}
// SAFETY: the same.
unsafe impl Sync for Frame<'_> {}
// SAFETY: the same.
unsafe impl Send for Frames<'_> {}
// SAFETY: the same.
unsafe impl Sync for Frames<'_> {}

impl<'a> Frame<'a> {
    /// The name of the function, demangled; `None` if it is unknown, or for a gap.
    pub fn function(&self) -> Option<Cow<'a, str>> {
        // SAFETY: the strings live as long as the trace.
        unsafe { text(self.frame.function) }
    }

    /// The full path of the source file.
    pub fn file(&self) -> Option<Cow<'a, str>> {
        // SAFETY: the same.
        unsafe { text(self.frame.file) }
    }

    /// The line in the file.
    pub fn line(&self) -> Option<u32> {
        known(self.frame.line)
    }

    /// The column in the line, from 1.
    pub fn column(&self) -> Option<u32> {
        known(self.frame.column)
    }

    /// The path of the program or library.
    pub fn module(&self) -> Option<Cow<'a, str>> {
        // SAFETY: the same.
        unsafe { text(self.frame.module) }
    }

    /// The address of the frame in its module.
    pub fn module_offset(&self) -> u64 {
        self.frame.module_offset
    }

    /// Whether the function was inlined into that of the frame outside.
    pub fn is_inlined(&self) -> bool {
        self.frame.inlined != 0
    }

    /// Whether this is a gap: frames are missing here.
    pub fn is_gap(&self) -> bool {
        self.frame.kind == sys::TDT_NODE_CUT
    }

    /// How many frames are outside of this one.
    pub fn depth(&self) -> usize {
        let parents = std::iter::successors(Some(self.node), |&node| {
            // SAFETY: the nodes live as long as the trace.
            let parent = unsafe { sys::tdt_node_parent(node) };
            Some(parent).filter(|parent| !parent.is_null())
        });
        parents.count().saturating_sub(2) // without this one and the root
    }

    /// How many leaves wait exactly here.
    pub fn leaves(&self) -> u32 {
        // SAFETY: the same.
        unsafe { sys::tdt_node_leaves(self.node) }
    }
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_gap() {
            return f.write_str("(frames are missing)");
        }
        match self.function() {
            Some(function) => f.write_str(&function)?,
            None => {
                let module = self.module().unwrap_or(Cow::Borrowed("?"));
                write!(f, "{}+{:#x}", module, self.module_offset())?;
            }
        }
        if let (Some(file), Some(line)) = (self.file(), self.line()) {
            write!(f, " at {file}:{line}")?;
            if let Some(column) = self.column() {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({self})")
    }
}

#[cfg(feature = "serde")]
mod serialize {
    use super::{Frame, Trace};
    use crate::TaskInfo;
    use serde::ser::{Serialize, SerializeStruct, Serializer};

    /// The task, and the frames in the order of [`Trace::frames`], each with its depth.
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl Serialize for Trace {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let frames: Vec<Frame<'_>> = self.frames().collect();
            let info: TaskInfo = self.info();
            let mut fields = serializer.serialize_struct("Trace", 2)?;
            fields.serialize_field("task", &info)?;
            fields.serialize_field("frames", &frames)?;
            fields.end()
        }
    }

    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl Serialize for Frame<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut fields = serializer.serialize_struct("Frame", 8)?;
            fields.serialize_field("depth", &self.depth())?;
            fields.serialize_field("function", &self.function())?;
            fields.serialize_field("file", &self.file())?;
            fields.serialize_field("line", &self.line())?;
            fields.serialize_field("column", &self.column())?;
            fields.serialize_field("module", &self.module())?;
            fields.serialize_field("module_offset", &self.module_offset())?;
            fields.serialize_field("leaves", &self.leaves())?;
            fields.end()
        }
    }
}
