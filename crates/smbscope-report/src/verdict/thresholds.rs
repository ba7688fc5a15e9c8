//! What counts as slow: the thresholds of the verdict, in one place, and how `--slow` changes them.

use smbscope_model::units;
use smbscope_model::{Group, Nanos};
use std::fmt;
use std::str::FromStr;

const MS: i64 = 1_000_000;

/// A group is slow when its 95th percentile is longer. At 20 ms, 50 commands one after the other (a folder that is
/// opened) take a second. A listing carries many names, a logon happens once, and control codes do work of their own.
const P95: [(Group, Nanos); 8] = [
    (Group::OpenClose, Nanos(20 * MS)),
    (Group::Attributes, Nanos(20 * MS)),
    (Group::Directory, Nanos(50 * MS)),
    (Group::Locking, Nanos(20 * MS)),
    (Group::Read, Nanos(20 * MS)),
    (Group::Write, Nanos(20 * MS)),
    (Group::Session, Nanos(500 * MS)),
    (Group::Control, Nanos(100 * MS)),
];
/// A single command is slow when it takes longer: people lose their train of thought (Miller, "Response time in
/// man-computer conversational transactions", AFIPS 1968).
const LONGEST: Nanos = Nanos(1_000 * MS);
/// A client is slow when it waits for at least this percentage of its active time …
const SHARE: u32 = 50;
/// … and for at least this long in all.
const TOTAL: Nanos = Nanos(2_000 * MS);

/// What counts as slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thresholds {
    p95: [(Group, Nanos); 8],
    /// The longest response time of a single command.
    pub longest: Nanos,
    /// Percent of its active time that a client waits.
    pub share: u32,
    /// How long it waits in all, at least; and how long a client thinks in all, at least, to be called busy itself.
    pub total: Nanos,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { p95: P95, longest: LONGEST, share: SHARE, total: TOTAL }
    }
}

impl Thresholds {
    /// The longest 95th percentile of a group; none of groups that nobody waits for.
    pub fn p95(&self, group: Group) -> Option<Nanos> {
        self.p95.iter().find(|(known, _)| *known == group).map(|(_, time)| *time)
    }

    /// All of them by the name that `--slow` knows them by.
    fn named(&self) -> impl Iterator<Item = (&'static str, String)> {
        let groups = self.p95.iter().map(|(group, time)| (name(*group), time.to_string()));
        let others = [
            ("longest", self.longest.to_string()),
            ("share", format!("{}%", self.share)),
            ("total", self.total.to_string()),
        ];
        groups.chain(others).collect::<Vec<_>>().into_iter()
    }
}

/// The name of a group's threshold.
fn name(group: Group) -> &'static str {
    match group {
        Group::OpenClose => "open",
        Group::Attributes => "attributes",
        Group::Directory => "directory",
        Group::Locking => "locking",
        Group::Read => "read",
        Group::Write => "write",
        Group::Session => "session",
        Group::Control => "control",
        Group::Waiting => "waiting",
        Group::Encrypted => "encrypted",
    }
}

/// `read=50ms,longest=5s,share=80%`: what is not named keeps its default. `p95=…` sets all groups.
impl FromStr for Thresholds {
    type Err = String;

    fn from_str(text: &str) -> Result<Thresholds, String> {
        let mut result = Thresholds::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found '{part}'"))?;
            let (key, value) = (key.trim(), value.trim());
            let time = || match units::duration(value) {
                Ok(time) if time.0 > 0 => Ok(time),
                Ok(_) => Err(format!("{key}: expected a time above 0")),
                Err(error) => Err(format!("{key}: {error}")),
            };
            match key {
                "longest" => result.longest = time()?,
                "total" => result.total = time()?,
                "share" => {
                    let percent = value.strip_suffix('%').unwrap_or(value).trim().parse();
                    let expected = || format!("share: expected 1% to 100%, found '{value}'");
                    result.share = percent.ok().filter(|percent| (1..=100).contains(percent)).ok_or_else(expected)?;
                }
                "p95" => {
                    let time = time()?;
                    result.p95.iter_mut().for_each(|(_, known)| *known = time);
                }
                _ => {
                    let found = result.p95.iter_mut().find(|(group, _)| name(*group) == key);
                    let names: Vec<&str> = Thresholds::default().named().map(|(name, _)| name).collect();
                    let unknown = || format!("'{key}' is no threshold; there are p95, {}", names.join(", "));
                    found.ok_or_else(unknown)?.1 = time()?;
                }
            }
        }
        Ok(result)
    }
}

/// As `--slow` takes it.
impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.named().map(|(name, value)| format!("{name}={}", value.replace(' ', ""))).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_keeps_its_default() {
        let thresholds: Thresholds = "read=50ms, share=80%".parse().unwrap();
        assert_eq!(
            (thresholds.p95(Group::Read), thresholds.p95(Group::Write)),
            (Some(Nanos(50 * MS)), Some(Nanos(20 * MS)))
        );
        assert_eq!((thresholds.share, thresholds.longest), (80, LONGEST));
        assert_eq!(thresholds.to_string().parse::<Thresholds>(), Ok(thresholds));
        assert_eq!("p95=3ms".parse::<Thresholds>().unwrap().p95(Group::Session), Some(Nanos(3 * MS)));
        assert_eq!("".parse(), Ok(Thresholds::default()));
    }

    #[test]
    fn every_group_that_somebody_waits_for_has_a_threshold() {
        for group in Group::ALL {
            assert_eq!(Thresholds::default().p95(group).is_some(), group.in_headline(), "{group}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_is_expected() {
        let error = |text: &str| text.parse::<Thresholds>().unwrap_err();
        assert_eq!(error("reed=1ms").split(';').next(), Some("'reed' is no threshold"));
        assert_eq!(error("share=0%"), "share: expected 1% to 100%, found '0%'");
        assert_eq!(error("longest"), "expected NAME=VALUE, found 'longest'");
        assert_eq!(error("read=0ms"), "read: expected a time above 0");
    }

    #[test]
    fn the_page_states_the_defaults() {
        let page = include_str!("../../../../docs/figures.md");
        for (name, value) in Thresholds::default().named() {
            assert!(page.contains(&format!("| `{name}` | {value} |")), "docs/figures.md lacks {name} {value}");
        }
    }
}
