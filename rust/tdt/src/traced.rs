// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A traced future.
//!
//! libtdt's wrapper calls a function of C, `poll_future`, to poll the user's future, which lies in
//! `Traced`, not in a box.  A `Call` on the stack of the poll says where it lies; the thread has a
//! pointer to the innermost one.

use std::any::{type_name, Any};
use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe, Location};
use std::pin::Pin;
use std::ptr::{self, addr_of_mut};
use std::task::{Context, Poll, Waker};

use tdt_sys as sys;

use crate::dump::listen_once;
use crate::waker::{substitute, Borrowed, OwnedWaker};
use crate::Handle;

// --- A poll. ---

/// What `poll_future` is to do.  The pointers are valid as long as the call.
struct Call {
    future: *mut c_void,
    cx: *mut c_void,
    outcome: *mut c_void,
    given: *const sys::tdt_waker, // the waker that stands for that of `cx`
    substituted: Cell<*const sys::tdt_waker>, // libtdt's waker, in a captured poll
    borrowed: *const Borrowed<'static>, // the same, unless it is a saved one; or null
    outer: *const Call,
}

thread_local! {
    /// The innermost call of this thread, or null.
    static CALL: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// What became of the user's future in a poll.
enum Outcome<T> {
    NotPolled,
    Pending,
    Ready(T),
    Panicked(Box<dyn Any + Send>),
}

/// The poll of the user's future, as a function of C.  It does not unwind.  If `LETS_GO`, libtdt
/// gets no clone of the waker to save.
///
/// # Safety
/// `CALL` is that of a poll of a `Traced<F>` on this thread, which waits for this function.
unsafe extern "C" fn poll_future<F: Future, const LETS_GO: bool>(
    _state: *mut c_void,
    cx: *mut sys::tdt_context,
) -> sys::tdt_poll_t {
    // SAFETY: `Traced::poll` set the pointer, its `Call` lives until this function has returned,
    // and polls inside have restored the pointer.  The future is pinned, since `Traced::poll` was
    // given it so; it, the context and the outcome were borrowed exclusively for the call.
    let (call, future, own, outcome, given) = unsafe {
        let call = &*CALL.with(Cell::get);
        (
            call,
            Pin::new_unchecked(&mut *call.future.cast::<F>()),
            &mut *call.cx.cast::<Context<'_>>(),
            &mut *call.outcome.cast::<Outcome<F::Output>>(),
            (*cx).waker,
        )
    };
    let polled = catch_unwind(AssertUnwindSafe(|| {
        if ptr::eq(given, call.given) {
            return future.poll(own);
        }
        call.substituted.set(given);
        // SAFETY: libtdt's waker is valid during the poll.
        let waker = unsafe { substitute(given) };
        future.poll(&mut Context::from_waker(&waker))
    }));
    // SAFETY: it lives as long as the call.
    if let (true, Some(borrowed)) = (LETS_GO, unsafe { call.borrowed.as_ref() }) {
        borrowed.close();
    }
    let (now, result) = match polled {
        Ok(Poll::Pending) => (Outcome::Pending, sys::TDT_PENDING),
        Ok(Poll::Ready(output)) => (Outcome::Ready(output), sys::TDT_READY),
        Err(payload) => (Outcome::Panicked(payload), sys::TDT_PANICKED),
    };
    *outcome = now;
    result
}

// --- The wrapper. ---

/// libtdt's part of a traced future.
struct Task {
    wrapper: sys::tdt_future,
    handle: Handle,
    saved: Option<OwnedWaker>, // of the last pending poll
    #[cfg(feature = "tokio-hooks")]
    newest_task: Option<u64>, // see `adopt::settle`; `None`: that was done, or there are no hooks
}

// SAFETY: by the rules of the ABI, any thread may poll and drop the wrapper, one at a time.
unsafe impl Send for Task {}
// SAFETY: a shared reference gives access to the handle only.
unsafe impl Sync for Task {}

impl Task {
    fn new<F: Future>(builder: &Builder<'_>, place: &'static Location<'static>) -> Task {
        listen_once();
        let future = sys::tdt_future {
            state: ptr::null_mut(),
            poll: Some(if builder.lets_go {
                poll_future::<F, true>
            } else {
                poll_future::<F, false>
            }),
            drop: None, // the user's future is dropped by Rust
        };
        #[cfg(feature = "tokio-hooks")]
        let newest_task = crate::adopt::newest_task().filter(|_| builder.id == 0);
        #[cfg(feature = "tokio-hooks")]
        let id_later = newest_task.is_some().into();
        #[cfg(not(feature = "tokio-hooks"))]
        let id_later = 0;
        let (name, default) = (builder.name.unwrap_or(""), function_of(type_name::<F>()));
        let (file, file_length) = file_of(place);
        let attr = sys::tdt_task_attr {
            size: mem::size_of::<sys::tdt_task_attr>(),
            id: builder.id,
            name: if name.is_empty() { ptr::null() } else { name.as_ptr().cast() },
            file,
            line: place.line(),
            column: place.column(),
            file_length,
            name_length: name.len(),
            default_name: default.as_ptr().cast(),
            default_name_length: default.len(),
            id_later,
            reserved: [0; 3],
            flags: if builder.is_child { sys::TDT_ATTR_CHILD } else { 0 },
            parent: 0,
            entry: 0,
        };
        // SAFETY: the strings are as long as it is said, and the functions keep the ABI's rules.
        // If there is no memory for a task, the result is `future`, with a null handle.
        let traced = unsafe { sys::tdt_traced_with(future, &attr) };
        // SAFETY: the handle belongs to this function.
        let handle = unsafe { Handle::from_raw(traced.handle) };
        Task {
            wrapper: traced.future,
            handle,
            saved: None,
            #[cfg(feature = "tokio-hooks")]
            newest_task,
        }
    }

    /// Before the first poll, or before the end if there is none: the task gets its last id.
    fn settle(&mut self) {
        #[cfg(feature = "tokio-hooks")]
        if let Some(newest) = self.newest_task.take() {
            crate::adopt::settle(&self.handle, newest, CALL.with(Cell::get).is_null());
        }
    }

    /// Have libtdt make the call.  `waker` is that of the call's context.
    #[inline]
    unsafe fn poll(&mut self, call: &mut Call, waker: &Waker) {
        if let Some(saved) = &self.saved {
            if saved.will_wake(waker) {
                let given = saved.as_tdt();
                // SAFETY: the caller's contract.
                return unsafe { self.make(call, given) };
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.poll_first(call, waker) }
    }

    /// With a waker that the task did not have in the last poll.
    #[inline(never)]
    unsafe fn poll_first(&mut self, call: &mut Call, waker: &Waker) {
        self.settle();
        if let Some(given) = substituted(waker) {
            // SAFETY: the caller's contract.
            return unsafe { self.make(call, given) };
        }
        let borrowed = Borrowed::new(waker);
        call.borrowed = ptr::addr_of!(borrowed).cast();
        // SAFETY: the caller's contract.
        unsafe { self.make(call, borrowed.as_tdt()) };
        if let Some(owned) = borrowed.into_owned() {
            self.saved = Some(owned);
        }
    }

    #[inline]
    unsafe fn make(&self, call: &mut Call, given: *const sys::tdt_waker) {
        let outer = CALL.with(Cell::get);
        call.given = given;
        call.outer = outer;
        let mut cx = sys::tdt_context { waker: given };
        CALL.with(|innermost| innermost.set(call));
        if let Some(poll) = self.wrapper.poll {
            // SAFETY: the wrapper has not been dropped, and the waker is valid.
            unsafe { poll(self.wrapper.state, &mut cx) };
        }
        CALL.with(|innermost| innermost.set(outer));
    }
}

/// The file of a place, and its length, or 0 if it ends with a NUL: then libtdt looks for no copy.
#[cfg(file_as_c_str)]
#[allow(clippy::incompatible_msrv)] // build.rs asks the compiler
pub(crate) fn file_of(place: &'static Location<'static>) -> (*const sys::c_char, usize) {
    (place.file_as_c_str().as_ptr().cast(), 0)
}

#[cfg(not(file_as_c_str))]
pub(crate) fn file_of(place: &'static Location<'static>) -> (*const sys::c_char, usize) {
    (place.file().as_ptr().cast(), place.file().len())
}

/// The function that a future is of, by the name of its type: that of an async function is its
/// closure, which rustc wraps before 1.64.
fn function_of(name: &str) -> &str {
    let name = match name.strip_prefix("core::future::from_generator::GenFuture<") {
        Some(inner) => inner.strip_suffix('>').unwrap_or(inner),
        None => name,
    };
    name.strip_suffix("::{{closure}}").unwrap_or(name)
}

/// If `waker` is the one that an outer poll of this thread was given by libtdt, that one.  libtdt
/// recognizes it, and so knows that the one task is polled inside the other.
pub(crate) fn substituted(waker: &Waker) -> Option<*const sys::tdt_waker> {
    let mut call = CALL.with(Cell::get);
    // SAFETY: the calls that this thread is in are alive.
    while let Some(outer) = unsafe { call.as_ref() } {
        let given = outer.substituted.get();
        // SAFETY: it is valid as long as the call.
        if !given.is_null() && unsafe { substitute(given) }.will_wake(waker) {
            return Some(given);
        }
        call = outer.outer;
    }
    None
}

impl Drop for Task {
    fn drop(&mut self) {
        self.settle();
        if let Some(drop) = self.wrapper.drop {
            // SAFETY: once, and not during a poll, which has a `&mut self`.
            unsafe { drop(self.wrapper.state) }
        }
    }
}

// --- What users see. ---

/// A future that can be asked where it waits.  [`traced`] and [`TraceExt::traced`] make it.
///
/// It is ready when the user's future is, and is woken when it is.  A panic of the user's future
/// leaves its poll as ever.  The future lies in it, not in a box.
///
/// [`TraceExt::traced`]: crate::TraceExt::traced
#[must_use = "futures do nothing unless they are polled"]
pub struct Traced<F> {
    task: Task, // before `future`: the task ends first
    future: F,
}

impl<F> Traced<F> {
    /// The handle, for requests from any thread.
    pub fn handle(&self) -> Handle {
        self.task.handle.clone()
    }

    /// Whether the task may yet get the id of tokio's task.
    #[cfg(feature = "tokio-hooks")]
    pub(crate) fn gets_id_later(&self) -> bool {
        self.task.newest_task.is_some()
    }

    /// The id of the task; 0 if there was no memory to trace it.
    pub fn id(&self) -> u64 {
        self.task.handle.id()
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of `this`, and is only polled as pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let mut outcome = Outcome::NotPolled;
        let waker = cx.waker();
        let mut call = Call {
            future: addr_of_mut!(this.future).cast(),
            cx: (cx as *mut Context<'_>).cast(),
            outcome: addr_of_mut!(outcome).cast(),
            given: ptr::null(),
            substituted: Cell::new(ptr::null()),
            borrowed: ptr::null(),
            outer: ptr::null(),
        };
        // SAFETY: the call is that of a `Traced<F>`, for which the task was made, and all that it
        // points to is borrowed until the task has made it.
        unsafe { this.task.poll(&mut call, waker) };
        match outcome {
            Outcome::Pending => Poll::Pending,
            Outcome::Ready(output) => Poll::Ready(output),
            Outcome::Panicked(payload) => resume_unwind(payload),
            Outcome::NotPolled => panic!("a traced future was polled after its end"),
        }
    }
}

impl<F> fmt::Debug for Traced<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Trace a future: returns it with the handle that can be asked where it waits.
///
/// The task is named after the type of the future, and is said to be spawned where this function is
/// called; [`Builder`] chooses.  If there is no memory for the task, the future works untraced, and
/// the handle answers [`Error::Untraced`].
///
/// ```
/// let (future, handle) = tdt::traced(async { 42 });
/// assert_ne!(handle.id(), 0);
/// assert_eq!(futures::executor::block_on(future), 42);
/// ```
///
/// [`Error::Untraced`]: crate::Error::Untraced
#[track_caller]
pub fn traced<F: Future>(future: F) -> (Traced<F>, Handle) {
    let traced = Builder::new().trace(future);
    let handle = traced.handle();
    (traced, handle)
}

/// Trace a future that is a part of the task that calls this function: a dump shows its tree below
/// that task, whose line says how many of its children are shown.
///
/// Some combinators poll their futures with wakers of their own, so that these are in no tree of
/// the task: `FuturesUnordered`, `join_all` of more than 30, `buffer_unordered`, `Shared`.  The
/// tasks of a `JoinSet` are tasks of their own.  Each of them is requested for itself, and has a
/// state, a time and waits of its own.
///
/// ```
/// # use futures::stream::{FuturesUnordered, StreamExt};
/// # async fn fetch(_: usize) {}
/// # futures::executor::block_on(tdt::traced(async {
/// let mut all: FuturesUnordered<_> = (0..100).map(|page| tdt::child(fetch(page))).collect();
/// while all.next().await.is_some() {}
/// # }).0);
/// ```
///
/// Call it in the task that awaits the future, which is traced, or known by hooks.
#[track_caller]
pub fn child<F: Future>(future: F) -> Traced<F> {
    Builder::new().child().trace(future)
}

/// `.traced()` for every future.
pub trait TraceExt: Future + Sized {
    /// Trace the future, as [`traced`](crate::traced) does; [`Traced::handle`] gives the handle.
    ///
    /// ```
    /// use tdt::TraceExt;
    ///
    /// let future = async { 42 }.traced();
    /// println!("task {}", future.id());
    /// ```
    #[track_caller]
    fn traced(self) -> Traced<Self> {
        Builder::new().trace(self)
    }
}

impl<F: Future> TraceExt for F {}

/// The attributes of a task.
///
/// ```
/// let future = tdt::Builder::new().name("accept").trace(async {});
/// # drop(future);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Builder<'a> {
    name: Option<&'a str>,
    id: u64,
    lets_go: bool,
    is_child: bool,
}

impl<'a> Builder<'a> {
    /// No name but that of the future's type, and an id that the library picks.
    pub fn new() -> Self {
        Self::default()
    }

    /// A name.  Its first 63 bytes are copied, up to a NUL.
    pub fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// An id, for tasks that have one already.  0: the library picks it.
    pub fn id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    /// Keep no clone of the runtime's waker between polls.
    ///
    /// A traced future keeps one, so that a request can wake its task.  On an executor whose wakers
    /// own their tasks that is a cycle: a task that the executor and everything that could wake it
    /// have dropped never ends, and its future is never dropped.  (Tokio drops the future of a task
    /// that is aborted, and those of all tasks when it shuts down.)
    ///
    /// A request to such a task is answered by its next poll, or else by the tree that the watch
    /// recorded last ([`watch`](crate::watch)).
    pub fn without_waker(mut self) -> Self {
        self.lets_go = true;
        self
    }

    /// Trace a part of the task that traces it: see [`child`](crate::child).
    pub fn child(mut self) -> Self {
        self.is_child = true;
        self
    }

    /// Trace a future.
    #[track_caller]
    pub fn trace<F: Future>(self, future: F) -> Traced<F> {
        Traced { task: Task::new::<F>(&self, Location::caller()), future }
    }
}

#[cfg(test)]
mod tests {
    use super::function_of;

    #[test]
    fn a_future_has_the_name_of_its_function() {
        assert_eq!(function_of("shop::order::{{closure}}"), "shop::order");
        assert_eq!(
            function_of("shop::Sell::sell::{{closure}}::{{closure}}"),
            "shop::Sell::sell::{{closure}}"
        );
        let old = "core::future::from_generator::GenFuture<shop::order::{{closure}}>";
        assert_eq!(function_of(old), "shop::order");
        assert_eq!(function_of("tokio::time::sleep::Sleep"), "tokio::time::sleep::Sleep");
    }
}
