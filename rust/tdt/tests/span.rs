// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The id of a task is a field of its span.

use std::sync::{Arc, Mutex};

use tracing::field::{Empty, Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the numbers that fields named `task` have, in order, each with the name of its span or
/// event.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(&'static str, u64)>>>);

struct OfOne<'a>(&'a Seen, &'static str);

impl Visit for OfOne<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "task" {
            self.0 .0.lock().unwrap().push((self.1, value));
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Seen {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut OfOne(self, "new"));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut OfOne(self, "span"));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut OfOne(self, "event"));
    }

    fn enter(&self, _: &Id) {
        self.0.lock().unwrap().push(("enter", 0));
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().push(("exit", 0));
    }
}

fn run(seen: &Seen, test: impl std::future::Future) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tracing::subscriber::with_default(seen.clone(), || drop(runtime.block_on(test)));
}

#[test]
fn a_span_has_the_id_of_the_task_in_it() {
    let seen = Seen::default();
    run(&seen, async {
        let span = tracing::info_span!("serve", task = Empty);
        let work = async {
            tokio::task::yield_now().await;
            tdt::current_id().unwrap()
        };
        let id = tdt::spawn(tdt::in_span(span, work)).await.unwrap();
        let fields: Vec<_> = seen.0.lock().unwrap().drain(..).collect();
        let recorded: Vec<_> = fields.iter().filter(|field| field.1 != 0).collect();
        assert_eq!(recorded, [&("span", id)]);
        assert_eq!(fields[0], ("span", id), "it is there when the span is entered");
        assert!(fields.iter().filter(|field| field.0 == "enter").count() >= 2);
    });
}

#[test]
fn a_span_without_such_a_field_has_none() {
    let seen = Seen::default();
    run(&seen, async {
        let span = tracing::info_span!("serve", other = 1);
        tdt::spawn(tdt::in_span(span, async {})).await.unwrap();
    });
    assert!(seen.0.lock().unwrap().iter().all(|field| field.1 == 0));
}

#[test]
fn the_current_id_is_a_value_of_a_field() {
    let seen = Seen::default();
    run(&seen, async {
        tracing::info!(task = tdt::current_id(), "outside of tasks");
        assert!(seen.0.lock().unwrap().is_empty());
        let id = tdt::spawn(async {
            tracing::info!(task = tdt::current_id(), "inside of one");
            tdt::current_id().unwrap()
        });
        let id = id.await.unwrap();
        assert_eq!(*seen.0.lock().unwrap(), [("event", id)]);
    });
}
