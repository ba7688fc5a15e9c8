//! Limits above which a wait counts as slow, with the defaults that `--slow` overrides.

use smbscope_model::units;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::filter::did_you_mean;
use std::fmt;
use std::str::FromStr;

const MS: i64 = 1_000_000;

/// A wait of this length in one episode is slow: people lose their train of thought (Miller, "Response time in
/// man-computer conversational transactions", AFIPS 1968).
const WAIT: Nanos = Nanos(1_000 * MS);
/// Waits that add up to [`WAIT`] count only with this much per episode: above what feels instantaneous (Miller).
const EACH: Nanos = Nanos(200 * MS);
/// Losses below this percentage of a client's active time are not slow, however long it was active.
const SHARE: u32 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slow {
    pub wait: Nanos,
    /// Mean lost time per episode, required if no single episode loses [`Slow::wait`].
    pub each: Nanos,
    pub share: u32,
    /// Limits for the 95th percentile of response time, by group. Set only by the user.
    p95: [Option<Nanos>; CommandGroup::ALL.len()],
    pub longest: Option<Nanos>,
}

impl Default for Slow {
    fn default() -> Slow {
        Slow { wait: WAIT, each: EACH, share: SHARE, p95: [None; CommandGroup::ALL.len()], longest: None }
    }
}

/// Name of a group on the command line.
pub(crate) fn group_name(group: CommandGroup) -> &'static str {
    match group {
        CommandGroup::OpenClose => "open",
        CommandGroup::Attributes => "attributes",
        CommandGroup::Directory => "directory",
        CommandGroup::Locking => "locking",
        CommandGroup::Read => "read",
        CommandGroup::Write => "write",
        CommandGroup::Session => "session",
        CommandGroup::Control => "control",
        CommandGroup::Waiting => "waiting",
        CommandGroup::Encrypted => "encrypted",
    }
}

/// Groups whose commands a user waits for, with their positions among all groups.
pub(crate) fn groups() -> impl Iterator<Item = (usize, CommandGroup)> {
    CommandGroup::ALL.into_iter().enumerate().filter(|(_, group)| group.in_headline())
}

impl Slow {
    pub fn p95(&self, group: CommandGroup) -> Option<Nanos> {
        groups().find(|(_, known)| *known == group).and_then(|(at, _)| self.p95[at])
    }
}

/// Parses `wait=2s,read=50ms,longest=5s,share=10%`. Omitted keys keep their defaults; `p95=…` sets all groups.
impl FromStr for Slow {
    type Err = String;

    fn from_str(text: &str) -> Result<Slow, String> {
        let mut result = Slow::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, found '{part}'"))?;
            let (key, value) = (key.trim(), value.trim());
            let time = || match units::duration(value) {
                Ok(time) if time.0 > 0 => Ok(time),
                Ok(_) => Err(format!("{key}: expected a time above 0")),
                Err(error) => Err(format!("{key}: {error}")),
            };
            match key {
                "wait" => result.wait = time()?,
                "each" => result.each = time()?,
                "longest" => result.longest = Some(time()?),
                "share" => {
                    let percent = value.strip_suffix('%').unwrap_or(value).trim().parse();
                    let expected = || format!("share: expected 1% to 100%, found '{value}'");
                    result.share = percent.ok().filter(|percent| (1..=100).contains(percent)).ok_or_else(expected)?;
                }
                "p95" => {
                    let time = time()?;
                    groups().for_each(|(at, _)| result.p95[at] = Some(time));
                }
                _ => {
                    let at = groups().find(|(_, group)| group_name(*group) == key).map(|(at, _)| at);
                    let names: Vec<&str> = groups().map(|(_, group)| group_name(group)).collect();
                    let unknown = || {
                        let all = ["wait", "each", "share", "longest", "p95"].into_iter().chain(names.iter().copied());
                        let near = did_you_mean(key, all).map_or_else(String::new, |near| format!("{near} "));
                        let names = names.join(", ");
                        format!("unknown limit '{key}'; {near}expected wait, each, share, longest, p95, {names}")
                    };
                    result.p95[at.ok_or_else(unknown)?] = Some(time()?);
                }
            }
        }
        Ok(result)
    }
}

impl fmt::Display for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |time: Nanos| units::exact_duration(time);
        let mut parts = vec![
            format!("wait={}", exact(self.wait)),
            format!("each={}", exact(self.each)),
            format!("share={}%", self.share),
        ];
        parts.extend(self.longest.map(|time| format!("longest={}", exact(time))));
        parts
            .extend(groups().filter_map(|(at, group)| Some(format!("{}={}", group_name(group), exact(self.p95[at]?)))));
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_keeps_its_default() {
        let slow: Slow = "read=50ms, share=80%".parse().unwrap();
        assert_eq!((slow.p95(CommandGroup::Read), slow.p95(CommandGroup::Write)), (Some(Nanos(50 * MS)), None));
        assert_eq!((slow.share, slow.wait, slow.longest), (80, WAIT, None));
        assert_eq!(slow.to_string().parse::<Slow>(), Ok(slow));
        assert_eq!("p95=3ms".parse::<Slow>().unwrap().p95(CommandGroup::Session), Some(Nanos(3 * MS)));
        assert_eq!("".parse(), Ok(Slow::default()));
    }

    #[test]
    fn errors_name_what_is_expected() {
        let error = |text: &str| text.parse::<Slow>().unwrap_err();
        assert_eq!(error("reed=1ms").split(';').next(), Some("unknown limit 'reed'"));
        assert_eq!(error("share=0%"), "share: expected 1% to 100%, found '0%'");
        assert_eq!(error("longest"), "expected NAME=VALUE, found 'longest'");
        assert_eq!(error("read=0ms"), "read: expected a time above 0");
    }
}
