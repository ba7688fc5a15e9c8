//! The commands of an episode that a page draws on a time axis: the longest, as far as there is room.

use serde::{Deserialize, Serialize};
use smbscope_model::{CUT_NAME_MARK, Exchange};
use smbscope_stats::Slowest;
use std::sync::Arc;

/// Commands kept per episode, the longest; others are counted only.
pub const EPISODE_COMMANDS_MAX: usize = 250;
/// Commands kept of all episodes; clients share them equally, and so do the episodes of a client.
pub const ALL_EPISODE_COMMANDS_MAX: usize = 16_384;
/// Bytes of a path, a share or a user of such a command.
pub(crate) const EPISODE_NAME_MAX: usize = 1_024;

/// Returns the number of commands that the episodes of each client may keep. Falls only when clients double, so that
/// there is little to trim.
pub(super) fn room(clients: usize) -> usize {
    ALL_EPISODE_COMMANDS_MAX / clients.max(1).next_power_of_two()
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct LongestCommands(Slowest);

impl LongestCommands {
    #[inline]
    pub(super) fn record(&mut self, exchange: &Exchange, max: usize) {
        if max > 0 && self.0.takes(exchange) {
            self.0.add(with_short_names(exchange), max);
        }
    }

    /// Adds the commands of another episode. The caller trims.
    pub(super) fn merge(&mut self, other: &LongestCommands) {
        self.0.merge(&other.0, EPISODE_COMMANDS_MAX);
    }

    pub(super) fn trim(&mut self, max: usize) {
        self.0.trim(max);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn finish(&self, max: usize) -> Vec<Exchange> {
        self.0.finish(max)
    }
}

fn with_short_names(exchange: &Exchange) -> Exchange {
    let mut kept = exchange.clone();
    [&mut kept.path, &mut kept.share, &mut kept.user].into_iter().flatten().for_each(shorten);
    kept
}

/// Keeps the end of a long name, which tells files apart.
fn shorten(name: &mut Arc<str>) {
    if name.len() > EPISODE_NAME_MAX {
        let room = EPISODE_NAME_MAX - CUT_NAME_MARK.len_utf8();
        let end = (name.len() - room..name.len()).find_map(|start| name.get(start..)).unwrap_or_default();
        *name = format!("{CUT_NAME_MARK}{end}").into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    #[test]
    fn a_name_of_64_kib_keeps_its_end() {
        let mut exchange = read(0, 1);
        exchange.path = Some(format!("{}{}", "ä\\".repeat(20_000), "report.docx").into());
        exchange.user = Some("ann".into());
        let mut longest = LongestCommands::default();
        longest.record(&exchange, 1);
        let kept = longest.finish(1).remove(0);
        let path = kept.path.expect("it has one");
        assert!((1_000..=EPISODE_NAME_MAX).contains(&path.len()), "{}", path.len());
        assert!(path.starts_with(CUT_NAME_MARK) && path.ends_with(r"ä\report.docx"), "{path}");
        assert_eq!(kept.user.as_deref(), Some("ann"));
    }

    #[test]
    fn all_clients_together_have_one_room() {
        for clients in 0..=super::super::EPISODE_CLIENTS_MAX {
            assert!(room(clients) * clients <= ALL_EPISODE_COMMANDS_MAX, "{clients}");
        }
        assert_eq!((room(1), room(3), room(512)), (16_384, 4_096, 32));
    }
}
