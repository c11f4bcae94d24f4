// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trace contexts.

use std::future::{pending, Future};
use std::io::ErrorKind;
use std::task::{Context, Poll};

use futures::task::noop_waker_ref;
use tdt::TraceContext;

const ONE: TraceContext = TraceContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 };

fn context_of(handle: &tdt::Handle) -> Option<TraceContext> {
    let tasks = tdt::tasks();
    tasks.iter().find(|task| task.info.id == handle.id()).unwrap().info.trace_context
}

#[test]
fn a_task_has_the_context_that_it_was_given() {
    let (_future, handle) = tdt::traced(pending::<()>());
    assert_eq!(context_of(&handle), None);
    handle.set_trace_context(Some(ONE)).unwrap();
    assert_eq!(context_of(&handle), Some(ONE));
    let wrong = TraceContext { span_id: [0; 8], ..ONE };
    let error = handle.set_trace_context(Some(wrong)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(context_of(&handle), Some(ONE));
    handle.set_trace_context(None).unwrap();
    assert_eq!(context_of(&handle), None);
}

#[test]
fn what_it_spawns_inherits_the_context() {
    let mut child = None;
    let spawns = std::future::poll_fn(|_| {
        tdt::set_trace_context(Some(ONE)).unwrap();
        child = Some(tdt::traced(pending::<()>()));
        Poll::<()>::Pending
    });
    let (future, handle) = tdt::traced(spawns);
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(noop_waker_ref())).is_pending());
    assert_eq!(context_of(&handle), Some(ONE));
    drop(future);
    assert_eq!(context_of(&child.as_ref().unwrap().1), Some(ONE));
    assert!(tdt::set_trace_context(Some(ONE)).is_err());
}
