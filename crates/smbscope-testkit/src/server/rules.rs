//! Selects the rule that applies to a command, and tracks the progress of each rule.

use super::script::{Fault, Rule};
use smbscope_model::Command;
use std::collections::HashMap;
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Rules {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    rule: Rule,
    since: Instant,
    /// Matching commands so far: in total (`None`), or by connection.
    seen: HashMap<Option<u64>, u64>,
    applied: HashMap<Option<u64>, u64>,
}

impl Rules {
    pub(super) fn new(rules: &[Rule], now: Instant) -> Rules {
        let mut all = Rules { running: Vec::new() };
        rules.iter().for_each(|rule| all.add(rule.clone(), now));
        all
    }

    pub(super) fn add(&mut self, rule: Rule, now: Instant) {
        self.running.push(Running { rule, since: now, seen: HashMap::new(), applied: HashMap::new() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the fault for this command. All rules count it; the first that applies decides.
    pub(super) fn decide(&mut self, command: Command, connection: u64, now: Instant) -> Option<Fault> {
        let mut decided = None;
        for running in &mut self.running {
            if running.counts(command, connection, now) && decided.is_none() {
                decided = running.apply(connection);
            }
        }
        decided
    }
}

impl Running {
    /// Counts the command if it matches. Returns true if the rule applies to it.
    fn counts(&mut self, command: Command, connection: u64, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.since);
        let rule = &self.rule;
        if rule.command.is_some_and(|of| of != command)
            || rule.connection.is_some_and(|number| number != connection)
            || age < rule.from
            || age >= rule.until
        {
            return false;
        }
        let seen = self.seen.entry(self.rule.each_connection.then_some(connection)).or_default();
        *seen += 1;
        // Spreads the share evenly: the n-th command is included if n × share passes a whole number.
        let position = seen.checked_sub(self.rule.after + 1);
        position.is_some_and(|n| ((n + 1) as f64 * self.rule.share).floor() > (n as f64 * self.rule.share).floor())
    }

    fn apply(&mut self, connection: u64) -> Option<Fault> {
        let applied = self.applied.entry(self.rule.each_connection.then_some(connection)).or_default();
        if *applied >= self.rule.times {
            return None;
        }
        *applied += 1;
        Some(self.rule.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Smb2Command as Smb2;
    use std::time::Duration;

    const READ: Command = Command::Smb2(Smb2::READ);

    fn positions(rule: Rule, commands: u64) -> Vec<u64> {
        let now = Instant::now();
        let mut rules = Rules::new(&[rule], now);
        (0..commands).filter(|_| rules.decide(READ, 0, now).is_some()).collect()
    }

    #[test]
    fn rules_skip_and_stop_by_count() {
        assert_eq!(positions(Fault::Drop.on(Smb2::READ).after(2).times(3), 10), [2, 3, 4]);
        assert_eq!(positions(Fault::Drop.on(Smb2::WRITE), 10), [] as [u64; 0]);
    }

    #[test]
    fn shares_are_spread_evenly() {
        // Every fourth command.
        assert_eq!(positions(Fault::Drop.always().share(0.25), 12), [3, 7, 11]);
    }

    #[test]
    fn each_connection_has_its_own_count() {
        let now = Instant::now();
        let mut rules = Rules::new(&[Fault::Drop.on(Smb2::READ).once().each_connection()], now);
        let mut hit = |connection| rules.decide(READ, connection, now).is_some();
        assert_eq!([hit(0), hit(0), hit(1), hit(1)], [true, false, true, false]);
    }

    #[test]
    fn rules_hold_in_their_time_only() {
        let start = Instant::now();
        let (from, until) = (Duration::from_secs(1), Duration::from_secs(2));
        let mut rules = Rules::new(&[Fault::Drop.always().between(from, until)], start);
        let mut hit = |millis| rules.decide(READ, 0, start + Duration::from_millis(millis)).is_some();
        assert_eq!([hit(999), hit(1000), hit(1999), hit(2000)], [false, true, true, false]);
    }
}
