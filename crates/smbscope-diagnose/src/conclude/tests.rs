//! Ranking, overlap and grouping, on hand-made causes.

use super::{absorbed, grouped, rank};
use crate::answer::{Cause, Confidence, Culprit, LostTime, Subject};
use smbscope_model::Nanos;

const S: i64 = 1_000_000_000;

fn cause(id: &str, client: &str, lost: i64) -> Cause {
    Cause {
        id: id.to_owned(),
        culprit: Culprit::Network,
        title: id.to_owned(),
        sentence: format!("{client} waited."),
        cost: String::new(),
        subject: Subject {
            client: Some(client.to_owned()),
            clients: 1,
            server: Some("10.0.0.9:445".to_owned()),
            ..Subject::default()
        },
        lost_ns: Some(LostTime::exactly(Nanos(lost * S))),
        active_ns: Nanos(10 * S),
        share: None,
        confidence: Confidence::High,
        evidence: Vec::new(),
        wireshark: String::new(),
        advice: String::new(),
        source: String::new(),
        also: Vec::new(),
        longest: None,
        failed: false,
        waited: Nanos(9 * S),
    }
    .settle()
}

fn ids(causes: &[Cause]) -> Vec<&str> {
    causes.iter().map(|cause| cause.id.as_str()).collect()
}

#[test]
fn a_specific_cause_absorbs_a_general_one_that_explains_the_same_seconds() {
    let causes = absorbed(vec![cause("rtt-bound", "10.0.0.1", 8), cause("ini-pattern", "10.0.0.1", 7)]);
    assert_eq!(ids(&causes), ["ini-pattern"]);
    assert_eq!(causes[0].also, ["rtt-bound"]);
}

#[test]
fn a_general_cause_of_much_more_time_stays() {
    let causes = absorbed(vec![cause("rtt-bound", "10.0.0.1", 8), cause("ini-pattern", "10.0.0.1", 3)]);
    assert_eq!(ids(&causes), ["rtt-bound", "ini-pattern"]);
}

#[test]
fn a_cause_of_another_client_is_not_absorbed() {
    let causes = absorbed(vec![cause("rtt-bound", "10.0.0.2", 8), cause("ini-pattern", "10.0.0.1", 8)]);
    assert_eq!(ids(&causes), ["rtt-bound", "ini-pattern"]);
}

#[test]
fn clients_that_suffer_alike_are_one_subject() {
    let same: Vec<Cause> = (1..=3).map(|n| cause("slow-storage", &format!("10.0.0.{n}"), 4)).collect();
    let causes = grouped(same);
    let [all] = causes.as_slice() else { panic!("{causes:?}") };
    assert_eq!((all.subject.clients, all.best(), all.active_ns), (3, Nanos(12 * S), Nanos(30 * S)));
    assert_eq!(all.sentence, "10.0.0.1 waited. The same happened to 2 other clients in 10.0.0.0/24.");
    assert!(all.cost.starts_with("3 clients lost"), "{}", all.cost);
}

#[test]
fn a_client_that_waits_twice_as_long_as_the_next_is_named_alone() {
    let causes = grouped(vec![cause("rtt-bound", "10.0.0.1", 2), cause("rtt-bound", "10.0.0.2", 5)]);
    assert_eq!(causes.iter().map(|cause| cause.subject.clients).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(causes[0].subject.client.as_deref(), Some("10.0.0.2"));
}

#[test]
fn the_largest_share_of_active_time_comes_first_and_specific_before_general() {
    let mut long = cause("rtt-bound", "10.0.0.1", 9);
    long.active_ns = Nanos(100 * S);
    let mut causes = vec![long.settle(), cause("rtt-bound", "10.0.0.3", 5), cause("ini-pattern", "10.0.0.2", 5)];
    rank(&mut causes);
    let order: Vec<_> = causes.iter().map(|cause| cause.subject.client.as_deref().unwrap_or_default()).collect();
    assert_eq!(order, ["10.0.0.2", "10.0.0.3", "10.0.0.1"]);
}

#[test]
fn a_wide_interval_is_told_and_a_narrow_one_is_not() {
    let mut wide = cause("rtt-bound", "10.0.0.1", 4);
    wide.lost_ns = Some(LostTime::between(Nanos(2 * S), Nanos(4 * S), Nanos(6 * S)));
    let told = |cause: Cause| cause.settle().cost.replace('\u{a0}', " ");
    assert_eq!(told(wide), "10.0.0.1 lost 4.00 s (2.00 s to 6.00 s) of 10.0 s (40%).");
    assert_eq!(told(cause("rtt-bound", "10.0.0.1", 4)), "10.0.0.1 lost 4.00 s of 10.0 s (40%).");
}
