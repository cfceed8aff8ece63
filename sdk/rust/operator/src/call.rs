//! Calls to the host that are not finished.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::abi;

struct Entry {
    id: u64,
    is_finished: bool,
    answers: VecDeque<Vec<u8>>,
    waker: Option<Waker>,
}

thread_local! {
    /// Only few at a time: a watch or two, and a request per object in progress.
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// A call to the host. Dropping it forgets the call; the host cannot cancel one, so later answers
/// are dropped.
pub(crate) struct Call {
    id: u64,
}

impl Call {
    pub(crate) fn new(id: u64) -> Self {
        ENTRIES.with_borrow_mut(|entries| {
            entries.push(Entry {
                id,
                is_finished: false,
                answers: VecDeque::new(),
                waker: None,
            });
        });
        Call { id }
    }

    /// The next answer that has bytes; `None` when no more come.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        ENTRIES.with_borrow_mut(|entries| {
            let Some(entry) = entries.iter_mut().find(|entry| entry.id == self.id) else {
                return Poll::Ready(None);
            };
            if let Some(answer) = entry.answers.pop_front() {
                return Poll::Ready(Some(answer));
            }
            if entry.is_finished {
                return Poll::Ready(None);
            }
            entry.waker = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // At the end of a thread, tasks and their calls may be dropped after the list.
        let _ = ENTRIES.try_with(|entries| entries.borrow_mut().retain(|entry| entry.id != self.id));
    }
}

/// Records an answer of the host. Answers to calls that no task waits for are dropped.
pub(crate) fn answered(id: u64, bytes: Option<Vec<u8>>, is_finished: bool) {
    let waker = ENTRIES.with_borrow_mut(|entries| {
        let entry = entries.iter_mut().find(|entry| entry.id == id)?;
        entry.answers.extend(bytes);
        entry.is_finished |= is_finished;
        entry.waker.take()
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Waits for at least `duration`, rounded up to whole milliseconds. The timer is the host's: meanwhile the
/// module may be suspended.
pub async fn sleep(duration: Duration) {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    let mut call = Call::new(abi::delay(u64::try_from(milliseconds).unwrap_or(u64::MAX)));
    while call.next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::testing::Host;
    use crate::{executor, spawn};

    #[test]
    fn sleep_ends_when_the_host_says_so() {
        let host = Host::new();
        let is_over = Rc::new(Cell::new(false));
        spawn({
            let is_over = is_over.clone();
            async move {
                sleep(Duration::from_micros(1500)).await;
                is_over.set(true);
            }
        });
        executor::run_until_stalled();

        let delay = host.delay().unwrap();
        assert_eq!(delay.milliseconds(), 2);
        assert!(!is_over.get());
        delay.elapse();
        assert!(is_over.get());
        assert_eq!(ENTRIES.with_borrow(Vec::len), 0);
    }

    #[test]
    fn answers_that_come_together_are_all_there() {
        let mut call = Call::new(7);
        answered(7, Some(b"a".to_vec()), false);
        answered(7, Some(b"b".to_vec()), true);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(call.poll_next(&mut context), Poll::Ready(Some(b"a".to_vec())));
        assert_eq!(call.poll_next(&mut context), Poll::Ready(Some(b"b".to_vec())));
        assert_eq!(call.poll_next(&mut context), Poll::Ready(None));
    }

    #[test]
    fn answers_to_a_forgotten_call_are_dropped() {
        drop(Call::new(8));
        answered(8, Some(b"late".to_vec()), false);
        answered(8, None, true);
        assert_eq!(ENTRIES.with_borrow(Vec::len), 0);
    }
}
