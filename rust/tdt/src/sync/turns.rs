// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who has the permits of a semaphore of tokio, and who stands in its line.
//!
//! Each lock of this module is a semaphore: a mutex has one permit, and a writer needs all permits
//! of an [`RwLock`](super::RwLock).  Tokio hands permits that are given back to the first future in
//! its line, as soon as there are enough of them.  [`Line`] follows that:
//!
//!  - A future enters both lines under the lock of `line`, so that they have the same order.
//!  - A future leaves `line` first, and permits are given back in `line` first.  Until tokio has
//!    followed, a future that enters finds too few permits; `line` already knows who gets them.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::unconstrained;

use super::{current_task, Head};

/// On whom those in the line depend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DependsOn {
    /// All that have permits must give them back: the first of them is reported.
    All,
    /// Any of them may give permits back: a task is reported if it is the only one.
    Any,
}

#[derive(Debug)]
pub(super) struct Turns {
    head: Head,
    depends_on: DependsOn,
    semaphore: Semaphore,
    line: std::sync::Mutex<Line>, // no waker is called under this lock, only cloned, by tokio
}

#[derive(Debug)]
struct Line {
    free: usize, // permits that nobody has, and that are not handed to anybody
    holders: Vec<Holder>,
    waiting: VecDeque<Place>,
    handed: usize,       // so many futures, the first ones, were handed their permits
    told: Option<u64>,   // the place that `head` names as the one that the lock was handed to
    next: u64,           // the number of the next place
    unaccountable: bool, // permits came from nowhere, or were lost
}

#[derive(Debug)]
struct Holder {
    task: u64, // 0: none, or unknown
    permits: usize,
}

/// A future in the line.
#[derive(Debug)]
struct Place {
    number: u64, // they increase
    task: u64,   // 0: none
    needs: usize,
}

impl Line {
    /// Hand the permits that are free to those that are first in the line.
    fn hand_on(&mut self) {
        while let Some(place) = self.waiting.get(self.handed) {
            if place.needs > self.free {
                break;
            }
            self.free -= place.needs;
            self.handed += 1;
        }
    }

    /// The place with this number, counted from the first one.
    fn position(&self, number: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&number, |place| place.number).ok()
    }

    fn is_handed(&self, number: u64) -> bool {
        self.position(number).map_or(false, |at| at < self.handed)
    }

    /// The future with this number goes.  The permits that it was handed are free then.
    fn leave(&mut self, number: u64) {
        let at = match self.position(number) {
            Some(at) => at,
            None => return,
        };
        let place = self.waiting.remove(at);
        if at < self.handed {
            self.handed -= 1;
            self.free += place.map_or(0, |place| place.needs);
        }
    }

    /// The task that the others depend on; and the number of its place, if it was handed its
    /// permits and has not taken them.
    fn owner(&self, depends_on: DependsOn) -> (u64, Option<u64>) {
        let handed = self.waiting.front().filter(|_| self.handed != 0);
        match (self.holders.first(), handed, depends_on) {
            (None, Some(place), DependsOn::All) => (place.task, Some(place.number)),
            (_, _, DependsOn::All) => {
                let known = self.holders.iter().find(|holder| holder.task != 0);
                (known.map_or(0, |holder| holder.task), None)
            }
            _ if self.unaccountable => (0, None),
            (None, Some(place), _) if self.handed == 1 => (place.task, Some(place.number)),
            (Some(first), None, _) if self.holders.iter().all(|h| h.task == first.task) => {
                (first.task, None)
            }
            _ => (0, None),
        }
    }
}

impl Turns {
    /// `name` is that of the lock, or of its type.
    pub(super) fn new(name: super::Name, permits: usize, depends_on: DependsOn) -> Self {
        Turns {
            head: Head::new(name),
            depends_on,
            semaphore: Semaphore::new(permits),
            line: std::sync::Mutex::new(Line {
                free: permits,
                holders: Vec::new(),
                waiting: VecDeque::new(),
                handed: 0,
                told: None,
                next: 0,
                unaccountable: false,
            }),
        }
    }

    pub(super) fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }

    /// Change the line, and then tell whom it depends on.  A panic of a waker's clone leaves the
    /// line as it was.
    fn change<R>(&self, change: impl FnOnce(&mut Line) -> R) -> R {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut line);
        let (task, handed) = line.owner(self.depends_on);
        match handed {
            Some(number) if line.told == Some(number) => {} // since when it is so does not change
            Some(_) => self.head.hand(task),
            None => self.head.take(task),
        }
        line.told = handed;
        result
    }

    /// The caller has got permits, which are not handed to anybody.  Returns the task that has them
    /// by that; 0 if that shall not be told.
    fn hold(line: &mut Line, permits: usize, told: bool) -> u64 {
        let task = if told { current_task() } else { 0 };
        line.free = line.free.saturating_sub(permits);
        if permits != 0 {
            line.holders.push(Holder { task, permits });
        }
        task
    }

    // --- What locks do. ---

    /// Await so many permits.  Returns the task that has them by then; 0 if that shall not be told.
    pub(super) async fn acquire(&self, permits: u32, told: bool) -> Result<u64, AcquireError> {
        if let Ok(task) = self.try_acquire(permits, told) {
            return Ok(task);
        }
        let inner = unconstrained(self.semaphore.acquire_many(permits));
        tokio::pin!(inner);
        Waiting { turns: self, inner, permits: permits as usize, told, number: None }.await
    }

    /// The same if there are so many permits.
    pub(super) fn try_acquire(&self, permits: u32, told: bool) -> Result<u64, TryAcquireError> {
        self.change(|line| {
            self.semaphore.try_acquire_many(permits)?.forget();
            Ok(Self::hold(line, permits as usize, told))
        })
    }

    /// Give back permits that `task` has got.
    pub(super) fn release(&self, permits: usize, task: u64) {
        self.exchange(permits, 0, task);
    }

    /// Give back permits that `task` has got, and keep some of them.
    pub(super) fn exchange(&self, permits: usize, kept: usize, task: u64) {
        self.change(|line| {
            if let Some(holder) = Self::holder(line, permits, task) {
                line.holders[holder].permits = kept;
                if kept == 0 {
                    line.holders.remove(holder);
                }
            }
            line.free = line.free.saturating_add(permits - kept);
            line.hand_on();
        });
        self.semaphore.add_permits(permits - kept); // outside of the lock: this may wake tasks
    }

    fn holder(line: &Line, permits: usize, task: u64) -> Option<usize> {
        line.holders.iter().position(|holder| holder.task == task && holder.permits == permits)
    }

    /// The running task has the permits by now.  Returns that task.
    pub(super) fn adopt(&self, permits: usize, task: u64) -> u64 {
        let current = current_task();
        self.change(|line| {
            if let Some(holder) = Self::holder(line, permits, task) {
                line.holders[holder].task = current;
            }
        });
        current
    }

    /// Permits that `task` has got are never given back.
    pub(super) fn forget(&self, permits: usize, task: u64) {
        self.change(|line| {
            if let Some(holder) = Self::holder(line, permits, task) {
                line.holders.remove(holder);
            }
            line.unaccountable = true;
        });
    }

    /// Add permits that nobody had.
    pub(super) fn add(&self, permits: usize) {
        self.change(|line| {
            line.free = line.free.saturating_add(permits);
            line.unaccountable = true;
            line.hand_on();
        });
        self.semaphore.add_permits(permits);
    }
}

// --- Waiting for one's turn. ---

/// Polls `inner`, the future of tokio's semaphore, and follows it.
struct Waiting<'a, 'b, F> {
    turns: &'a Turns,
    inner: Pin<&'b mut F>,
    permits: usize,
    told: bool,
    number: Option<u64>, // in the line
}

type Acquired<'a> = Result<SemaphorePermit<'a>, AcquireError>;

impl<'a, F: Future<Output = Acquired<'a>>> Waiting<'a, '_, F> {
    /// Bring the line up to date with what `inner` has returned.
    fn follow(
        &mut self,
        line: &mut Line,
        polled: Poll<Acquired<'a>>,
    ) -> Poll<Result<u64, AcquireError>> {
        let acquired = match polled {
            Poll::Pending => {
                self.stand_in(line);
                return Poll::Pending;
            }
            Poll::Ready(acquired) => acquired,
        };
        if let Some(number) = self.number.take() {
            line.leave(number);
        }
        let result = acquired.map(|permit| {
            permit.forget();
            Turns::hold(line, self.permits, self.told)
        });
        line.hand_on();
        Poll::Ready(result)
    }

    /// Stand in the line, for the task that has polled the future last.
    fn stand_in(&mut self, line: &mut Line) {
        let task = current_task();
        if let Some(place) = self.number.and_then(|number| line.position(number)) {
            line.waiting[place].task = task;
            return;
        }
        self.number = Some(line.next);
        line.waiting.push_back(Place { number: line.next, task, needs: self.permits });
        line.next += 1;
        line.hand_on(); // the permits may be given back at this moment
    }
}

impl<'a, F: Future<Output = Acquired<'a>>> Future for Waiting<'a, '_, F> {
    type Output = Result<u64, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (turns, this) = (self.turns, &mut *self);
        let polled = if this.number.is_some() {
            let polled = this.inner.as_mut().poll(cx);
            turns.change(|line| this.follow(line, polled))
        } else {
            turns.change(|line| {
                let polled = this.inner.as_mut().poll(cx);
                this.follow(line, polled)
            })
        };
        if let (Poll::Pending, Some(number)) = (&polled, this.number) {
            turns.report(number);
        }
        polled
    }
}

impl Turns {
    /// Report what the future with this number waits for, from its poll.
    fn report(&self, number: u64) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        // If the permits are being handed to this very future, it waits for no task.
        if line.is_handed(number) {
            self.head.report_unowned();
        } else {
            self.head.report();
        }
    }
}

impl<F> Drop for Waiting<'_, '_, F> {
    /// Leaves the line.  `inner` is dropped afterwards, and leaves that of tokio.
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.turns.change(|line| {
                line.leave(number);
                line.hand_on();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{select, Either};
    use std::sync::Arc;

    /// A sequence of numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % n
        }
    }

    /// Gets permits, and gives some of them back early; sometimes the future is dropped in the
    /// line, when the permits were handed to it, or is moved out of the way for a while.
    async fn use_permits(turns: Arc<Turns>, most: u64, times: u64, mut random: Random) {
        for _ in 0..times {
            let n = 1 + random.below(most) as usize;
            let acquiring = turns.acquire(n as u32, true);
            tokio::pin!(acquiring);
            let patience = random.below(4);
            let impatient = async {
                for _ in 0..patience {
                    tokio::task::yield_now().await;
                }
                if patience == 3 {
                    futures::future::pending::<()>().await;
                }
            };
            tokio::pin!(impatient);
            let task = match select(acquiring, impatient).await {
                Either::Left((task, _)) => task.unwrap(),
                Either::Right(_) => continue,
            };
            if random.below(3) == 0 {
                tokio::task::yield_now().await;
            }
            let kept = random.below(n as u64) as usize;
            turns.exchange(n, kept, task);
            if kept != 0 {
                turns.release(kept, task);
            }
        }
    }

    fn line_follows(runtime: &tokio::runtime::Runtime, permits: usize, depends_on: DependsOn) {
        let seed = std::process::id() as u64 + 1;
        println!("seed {seed}");
        let turns = Arc::new(Turns::new(super::super::Name::new(""), permits, depends_on));
        let times = if cfg!(miri) { 5 } else { 300 };
        let tasks: Vec<_> = (0..6)
            .map(|i| {
                let random = Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(i) | 1);
                let future = use_permits(turns.clone(), permits as u64, times, random);
                runtime.spawn(crate::traced(future).0)
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        let line = turns.line.lock().unwrap();
        assert_eq!((line.free, line.holders.len(), line.waiting.len()), (permits, 0, 0));
        assert_eq!((line.handed, line.told), (0, None));
        assert_eq!(turns.semaphore.available_permits(), permits);
        assert_eq!(turns.head.owner.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert_eq!(turns.head.handed.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn the_line_follows_that_of_tokio() {
        let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let two = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        for runtime in [one, two] {
            for permits in [1, 3, 5] {
                line_follows(&runtime, permits, DependsOn::All);
                line_follows(&runtime, permits, DependsOn::Any);
            }
        }
    }
}
