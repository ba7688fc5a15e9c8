//! Responses with randomly changed bytes: any outcome is fine, as long as it comes in time and without a panic.

use crate::faults::malformed::outcomes;
use crate::faults::support::{DIALECTS, Step, assert_clear};
use smbscope_testkit::server::Malformed;

/// Number of responses to change, per command.
const SEEDS: u64 = 12;

#[test]
fn no_change_of_a_good_answer_makes_a_client_panic_or_hang() {
    let mut cases = Vec::new();
    for (dialect, kind) in DIALECTS.into_iter().zip(0..) {
        for (step, number) in Step::ALL.into_iter().zip(0..) {
            let first = SEEDS * (number + Step::ALL.len() as u64 * kind);
            cases.extend((first..first + SEEDS).map(|seed| (dialect, step, Malformed::Random(seed))));
        }
    }
    let outcomes = outcomes(&cases);
    assert_eq!(outcomes.len(), cases.len());
    let errors: Vec<_> = outcomes.iter().filter_map(|(.., result)| result.as_ref().err()).collect();
    errors.iter().for_each(|error| assert_clear(error));
    // Headers and bodies are small, so most changes are noticed.
    assert!(errors.len() > cases.len() / 4, "{} errors in {} cases", errors.len(), cases.len());
}
