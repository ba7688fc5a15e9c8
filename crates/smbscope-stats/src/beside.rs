//! Two pieces of work at the same time.

use std::thread::{self, Builder};

/// Does `one` on a thread of its own while this one does `other`; one after the other where no thread can be started.
pub fn beside<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    let mut work = Some(one);
    let mut done = None;
    let other = thread::scope(|scope| {
        // A panic there is one of the scope.
        let _started = Builder::new().spawn_scoped(scope, || done = work.take().map(|work| work()));
        other()
    });
    let one = done.or_else(|| work.map(|work| work()));
    (one.expect("it was done there or is done here"), other)
}

#[cfg(test)]
mod tests {
    use super::*;

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
