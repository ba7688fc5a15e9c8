//! Runs work in parallel, or sequentially where the system refuses to start threads.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

pub fn beside<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    let mut work = Some(one);
    let mut done = None;
    let other = thread::scope(|scope| {
        // The scope re-raises a panic of the thread.
        let _ = Builder::new().spawn_scoped(scope, || done = work.take().map(|work| work()));
        other()
    });
    let one = done.or_else(|| work.map(|work| work()));
    (one.expect("one of the two is complete"), other)
}

pub fn each_beside<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let slots: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let take = |slot: &Mutex<Option<T>>| {
        let item = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        item.into_iter().for_each(&work);
    };
    thread::scope(|scope| {
        for slot in &slots {
            if Builder::new().spawn_scoped(scope, || take(slot)).is_err() {
                take(slot);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once() {
        let mut numbers = [1, 2, 3];
        each_beside(numbers.iter_mut(), |number| *number *= 10);
        assert_eq!(numbers, [10, 20, 30]);
    }

    #[test]
    fn both_are_done_and_may_use_what_is_here() {
        let (mut here, there) = (Vec::new(), [1, 2, 3]);
        let (sum, length) = beside(|| there.iter().sum::<i32>(), || here.extend(there));
        assert_eq!((sum, length, here), (6, (), vec![1, 2, 3]));
    }

    #[test]
    #[should_panic(expected = "scoped thread panicked")]
    fn a_panic_is_passed_on() {
        beside(|| panic!("there"), || ());
    }
}
