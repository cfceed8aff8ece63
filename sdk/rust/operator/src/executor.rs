//! Tasks of one thread. They run when the host wakes the module and until all of them wait; then the host
//! may suspend the module, so no task ever blocks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::process;
use std::ptr;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

type Task = Pin<Box<dyn Future<Output = ()>>>;

enum Slot {
    Free,
    Running,
    Waiting(Task),
}

thread_local! {
    static SLOTS: RefCell<Vec<Slot>> = const { RefCell::new(Vec::new()) };
    static READY: RefCell<VecDeque<usize>> = const { RefCell::new(VecDeque::new()) };
}

/// Runs a controller: all that `main` has to do.
///
/// Returns when every task waits for the host, which resumes them later. When `main` ends, the module
/// exits: with code 0, or after printing the error, with code 1.
pub fn run<E: fmt::Display>(main: impl Future<Output = Result<(), E>> + 'static) {
    spawn(async {
        match main.await {
            Ok(()) => process::exit(0),
            Err(error) => {
                eprintln!("{error}");
                process::exit(1);
            }
        }
    });
    run_until_stalled();
}

/// Starts a task beside the running one. It begins once this one waits.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    let task = Slot::Waiting(Box::pin(task));
    let index = SLOTS.with_borrow_mut(|slots| {
        if let Some(index) = slots.iter().position(|slot| matches!(slot, Slot::Free)) {
            slots[index] = task;
            index
        } else {
            slots.push(task);
            slots.len() - 1
        }
    });
    make_ready(index);
}

pub(crate) fn run_until_stalled() {
    while let Some(index) = READY.with_borrow_mut(VecDeque::pop_front) {
        // Taken out of its slot while it runs, because it may start others.
        let slot = SLOTS.with_borrow_mut(|slots| match slots[index] {
            Slot::Waiting(_) => std::mem::replace(&mut slots[index], Slot::Running),
            Slot::Free | Slot::Running => Slot::Free,
        });
        let Slot::Waiting(mut task) = slot else { continue };
        let waker = waker_of(index);
        let next = match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            std::task::Poll::Pending => Slot::Waiting(task),
            std::task::Poll::Ready(()) => {
                drop(task);
                Slot::Free
            }
        };
        SLOTS.with_borrow_mut(|slots| slots[index] = next);
    }
}

fn make_ready(index: usize) {
    READY.with_borrow_mut(|ready| {
        if !ready.contains(&index) {
            ready.push_back(index);
        }
    });
}

/// A waker is the number of a slot and owns nothing. One that outlives its task may wake the slot's next
/// task needlessly, which futures have to expect anyway.
fn waker_of(index: usize) -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |index| RawWaker::new(index, &TABLE),
        |index| make_ready(index.addr()),
        |index| make_ready(index.addr()),
        |_| {},
    );
    // SAFETY: the functions treat the pointer as a number. They touch thread-local state only, so a waker
    // that was sent to another thread wakes nothing here and harms nothing there.
    unsafe { Waker::from_raw(RawWaker::new(ptr::without_provenance(index), &TABLE)) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future;
    use std::rc::Rc;
    use std::task::Poll;

    use super::*;

    #[test]
    fn a_task_runs_until_it_waits_and_goes_on_when_woken() {
        let waker = Rc::new(RefCell::new(None::<Waker>));
        let polls = Rc::new(Cell::new(0));
        spawn({
            let (waker, polls) = (waker.clone(), polls.clone());
            future::poll_fn(move |context| {
                polls.set(polls.get() + 1);
                *waker.borrow_mut() = Some(context.waker().clone());
                if polls.get() < 2 {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
        });

        run_until_stalled();
        assert_eq!(polls.get(), 1);
        run_until_stalled();
        assert_eq!(polls.get(), 1);
        waker.borrow().as_ref().unwrap().wake_by_ref();
        run_until_stalled();
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn a_task_may_start_tasks_and_slots_are_used_again() {
        let ran = Rc::new(Cell::new(0));
        for _ in 0..100 {
            let ran = ran.clone();
            spawn(async move {
                let ran_inside = ran.clone();
                spawn(async move { ran_inside.set(ran_inside.get() + 1) });
                ran.set(ran.get() + 1);
            });
            run_until_stalled();
        }
        assert_eq!(ran.get(), 200);
        assert!(SLOTS.with_borrow(Vec::len) <= 2);
    }

    #[test]
    fn a_waker_of_an_ended_task_does_nothing() {
        let waker = Rc::new(RefCell::new(None::<Waker>));
        spawn({
            let waker = waker.clone();
            future::poll_fn(move |context| {
                *waker.borrow_mut() = Some(context.waker().clone());
                Poll::Ready(())
            })
        });
        run_until_stalled();
        waker.borrow_mut().take().unwrap().wake();
        run_until_stalled();
    }
}
