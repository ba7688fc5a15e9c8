//! Response sizes by request size, learnt from the certain pairs of a connection.
//!
//! Most request sizes fit several commands, but a client uses few of them. If all requests of a size had responses of
//! one size so far, a response of another size probably belongs to another request. Errors are ignored, because any
//! request may fail.

use super::sizes;

const MAX_HABITS: usize = 24;
/// Maximum number of response sizes per request size. If there are more, the size is not predictive.
const MAX_ANSWERS: usize = 2;
const LEAST_TIMES: u32 = 3;

#[derive(Debug, Clone, Copy)]
struct Habit {
    request: u64,
    responses: [u64; MAX_ANSWERS],
    times: u32,
    /// There were more than [`MAX_ANSWERS`] response sizes.
    varies: bool,
}

impl Habit {
    fn note(&mut self, response: u64) {
        self.times = self.times.saturating_add(1);
        match self.responses.iter_mut().find(|known| **known == response || **known == 0) {
            Some(known) => *known = response,
            None => self.varies = true,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Habits {
    known: Vec<Habit>,
}

impl Habits {
    pub(super) fn note(&mut self, request: u64, response: u64) {
        if sizes::may_be_error(response) {
            return;
        }
        let request = sizes::alike(request);
        if let Some(habit) = self.known.iter_mut().find(|habit| habit.request == request) {
            return habit.note(response);
        }
        if self.known.len() == MAX_HABITS {
            let rarest = (0..MAX_HABITS).min_by_key(|index| self.known[*index].times);
            rarest.map(|index| self.known.swap_remove(index));
        }
        let mut responses = [0; MAX_ANSWERS];
        responses[0] = response;
        self.known.push(Habit { request, responses, times: 1, varies: false });
    }

    /// Returns true if requests of this size usually get responses of this size. `None` if there is no prediction.
    pub(super) fn is_usual(&self, request: u64, response: u64) -> Option<bool> {
        let habit = self.known.iter().find(|habit| habit.request == sizes::alike(request))?;
        let is_habit = habit.times >= LEAST_TIMES && !habit.varies;
        is_habit.then(|| habit.responses.contains(&response))
    }

    /// Returns true if a response of this size fits the latest request but not an earlier one.
    pub(super) fn prefer(&self, latest: u64, earlier: u64, response: u64) -> bool {
        self.is_usual(latest, response) == Some(true) && self.is_usual(earlier, response) == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: u64 = 73;

    fn told(pairs: &[(u64, u64)]) -> Habits {
        let mut habits = Habits::default();
        (0..LEAST_TIMES).flat_map(|_| pairs).for_each(|(request, response)| habits.note(*request, *response));
        habits
    }

    #[test]
    fn an_answer_is_that_of_the_request_which_is_always_answered_like_this() {
        let habits = told(&[(140, 152), (88, 124), (140, ERROR)]);
        assert!(habits.prefer(140, 88, 152) && habits.prefer(88, 140, 124));
        assert!(!habits.prefer(140, 88, ERROR), "anything may fail");
        assert!(!habits.prefer(140, 113, 152), "nobody knows how 113 bytes are answered");
    }

    #[test]
    fn requests_that_are_answered_in_many_sizes_tell_nothing() {
        let habits = told(&[(98, 292), (98, 404), (98, 526), (88, 124)]);
        assert_eq!((habits.is_usual(98, 124), habits.is_usual(88, 124)), (None, Some(true)));
    }

    #[test]
    fn a_size_seen_once_is_no_habit() {
        let mut habits = Habits::default();
        habits.note(88, 124);
        assert_eq!(habits.is_usual(88, 124), None);
    }

    #[test]
    fn writes_of_any_length_are_answered_alike() {
        let mut habits = Habits::default();
        [20_000, 65_000, 31_638].into_iter().for_each(|request| habits.note(request, 80));
        assert_eq!((habits.is_usual(9_000, 80), habits.is_usual(9_000, 124)), (Some(true), Some(false)));
    }

    #[test]
    fn the_rarest_of_too_many_is_forgotten() {
        let mut habits = told(&[(88, 124)]);
        (0..10 * MAX_HABITS as u64).for_each(|other| habits.note(1000 + other, 80));
        assert_eq!(habits.known.len(), MAX_HABITS);
        assert_eq!(habits.is_usual(88, 124), Some(true));
    }
}
