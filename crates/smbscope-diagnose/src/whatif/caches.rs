//! Commands that a client cache or read-ahead would avoid.

use super::{EpisodeExchangeKey, key};
use crate::facts::{Fact, facts_of, is_close, is_open};
use smbscope_model::{CommandGroup, Exchange, FileId, FlowId, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns reads that continue a sequential pattern, from the third one on: by then a client has recognised it. Only
/// reads sent after the previous response count.
pub(super) fn read_in_sequence(exchanges: &[Exchange]) -> HashSet<EpisodeExchangeKey> {
    /// Number of reads that establish the pattern.
    const KNOWN_AFTER: u32 = 2;
    let mut in_order: Vec<&Exchange> =
        exchanges.iter().filter(|exchange| exchange.group == CommandGroup::Read).collect();
    in_order.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
    // By open: end offset of the last read, time of its response, and length of the sequence.
    let mut opens: HashMap<(FlowId, FileId), (u64, Timestamp, u32)> = HashMap::new();
    let mut ahead = HashSet::new();
    for read in in_order {
        let (Some(file), Some(key), Some(last)) = (read.file_id, key(read), read.response.last) else { continue };
        let (Some(offset), Some(length)) = (read.offset, read.length) else { continue };
        let known = opens.get(&(read.flow, file)).copied();
        let reads = match known {
            Some((next, answered, reads)) if next == offset && answered <= key.2 => reads,
            _ => 0,
        };
        if reads >= KNOWN_AFTER {
            ahead.insert(key);
        }
        opens.insert((read.flow, file), (offset.saturating_add(length), last.time, reads.saturating_add(1)));
    }
    ahead
}

/// Returns opens, reads, attribute queries and closes on files opened earlier in the episode and not modified since.
pub(super) fn cached(exchanges: &[Exchange]) -> HashSet<EpisodeExchangeKey> {
    type Name = (Option<Arc<str>>, Arc<str>);
    let mut in_order: Vec<&Exchange> = exchanges.iter().collect();
    in_order.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
    let mut known: HashSet<Name> = HashSet::new();
    let mut opens: HashMap<(FlowId, Option<FileId>), bool> = HashMap::new();
    let mut cached = HashSet::new();
    for exchange in in_order {
        let (Some(path), Some(key)) = (&exchange.path, key(exchange)) else { continue };
        let name = (exchange.share.clone(), Arc::clone(path));
        let open = (exchange.flow, exchange.file_id);
        let changes = match exchange.group {
            CommandGroup::Write => true,
            CommandGroup::Directory => !facts_of(exchange).has(Fact::List),
            _ => false,
        };
        if changes {
            known.remove(&name);
            opens.insert(open, false);
            continue;
        }
        let served = if is_open(exchange) {
            let again = !known.insert(name);
            opens.insert(open, again);
            again
        } else {
            opens.get(&open).copied().unwrap_or(false)
        };
        if served && matches!(exchange.group, CommandGroup::OpenClose | CommandGroup::Read | CommandGroup::Attributes) {
            cached.insert(key);
        }
        if is_close(exchange) {
            opens.remove(&open);
        }
    }
    cached
}
