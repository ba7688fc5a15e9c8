//! Inefficient directory access: listings, queries of every entry, change notifications.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{Pair, PathFacts, PathKey, bytes, named};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, span, thousands, unbroken};

pub(super) const LIST_THEN_STAT: Detector = Detector {
    id: "list-then-stat",
    culprit: Culprit::Application,
    title: "Each entry of a directory opened after listing it",
    condition: "After a listing, at least `entries` of its entries, and `share` of all, were opened and closed without a read or write.",
    advice: "The listing already contains sizes, times and attributes. Have the application use them (FindFirstFile instead of GetFileAttributes for each file); look for shell extensions and scanners that open every file to look at it.",
    source: "MS-FSCC 2.4: what a directory listing returns",
    thresholds: &[("entries", "50"), ("share", "80%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy", "slow-client-link"],
    detect: Detect::Path(list_then_stat),
};

/// Size of a listing entry: FileIdBothDirectoryInformation (MS-FSCC 2.4.17) plus a name of eight characters.
pub(super) const ENTRY_BYTES: u64 = 104 + 16;

fn list_then_stat(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "list-then-stat";
    let entries = (facts.list_bytes / facts.listings.max(1) / ENTRY_BYTES).max(1) as f64;
    let each = facts.looked_at as f64 / facts.listings.max(1) as f64;
    if each < pair.threshold(ID, "entries") || each < entries * pair.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "{} listed {} and then opened and closed {} in it one by one without reading them",
        pair.client,
        named(&key.path),
        counted(facts.looked_at, "entry", "entries"),
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::exactly(pair.once(Nanos(facts.looked_at_wait)))))
}

pub(super) const RELISTING: Detector = Detector {
    id: "relisting",
    culprit: Culprit::Application,
    title: "The same directory listed repeatedly",
    condition: "One directory was listed `listings` times within 10 s.",
    advice: "Find the application that lists it (a thumbnail view, a virus scanner, a backup agent) and have it use change notifications. On Windows clients DirectoryCacheLifetime and DirectoryCacheEntriesMax decide how long a listing is kept.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": client parameters",
    thresholds: &[("listings", "3")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "huge-directory", "small-list-buffer"],
    detect: Detect::Path(relisting),
};

fn relisting(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    if f64::from(facts.listings_window.most) < pair.threshold("relisting", "listings") {
        return None;
    }
    let what = format!(
        "{} listed {} {} times in {}, {} each",
        pair.client,
        named(&key.path),
        thousands(facts.listings),
        unbroken(span(facts.span())),
        bytes(facts.list_bytes / facts.listings.max(1)),
    );
    // One listing would be enough.
    let lost = pair.once(Nanos((facts.list_wait as f64 * (1.0 - 1.0 / facts.listings.max(1) as f64)) as i64));
    Some(Finding::new(Confidence::High, what).lost(LostTime::exactly(lost)))
}

pub(super) const SMALL_LIST_BUFFER: Detector = Detector {
    id: "small-list-buffer",
    culprit: Culprit::Application,
    title: "Directory listed in many small responses",
    condition: "Listings took more than `continuations` commands each, none with a response above `buffer`.",
    advice: "The client asks for listings in small buffers, so a large directory takes a round trip for each. Update the client, or raise its buffer; clients of SMB 3 ask for up to 1 MiB. Divide very large directories.",
    source: "MS-SMB2 3.3.5.18",
    thresholds: &[("buffer", "66KiB"), ("continuations", "5")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy"],
    detect: Detect::Path(small_list_buffer),
};

fn small_list_buffer(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    const ID: &str = "small-list-buffer";
    let each = facts.list_commands as f64 / facts.listings.max(1) as f64;
    let limit = pair.threshold(ID, "buffer");
    if facts.listings == 0 || each <= pair.threshold(ID, "continuations") || facts.list_bytes_max as f64 > limit {
        return None;
    }
    let what = format!(
        "{} listed {} with {each:.0} commands for each listing; the largest response was {}",
        pair.client,
        named(&key.path),
        bytes(facts.list_bytes_max),
    );
    // Two commands would be enough; transferring the data takes the same time.
    let trips = facts.list_commands.saturating_sub(2 * facts.listings) as i64;
    let trip = pair.round_trip().unwrap_or_default();
    let lost = pair.once(Nanos(trips.saturating_mul(trip.0).min(facts.list_wait)));
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(lost, lost, pair.once(Nanos(facts.list_wait)))))
}

pub(super) const HUGE_DIRECTORY: Detector = Detector {
    id: "huge-directory",
    culprit: Culprit::Application,
    title: "Very large directory",
    condition: "A listing was long enough for `entries` entries, estimated from its bytes.",
    advice: "Divide the directory: listing it takes long for every client, and many applications list what they open. Switch 8.3 names off on the server where it makes them.",
    source: "Microsoft, \"Performance tuning for SMB file servers\"",
    thresholds: &[("entries", "10000")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-list-buffer"],
    detect: Detect::Path(huge_directory),
};

fn huge_directory(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    let each = facts.list_bytes / facts.listings.max(1);
    let entries = each / ENTRY_BYTES;
    if facts.listings == 0 || (entries as f64) < pair.threshold("huge-directory", "entries") {
        return None;
    }
    let what = format!(
        "{} listed {}: {} in each listing, up to {} entries",
        pair.client,
        named(&key.path),
        bytes(each),
        thousands(entries),
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::exactly(pair.once(Nanos(facts.list_wait)))))
}

pub(super) const NOTIFY_STORM: Detector = Detector {
    id: "notify-storm",
    culprit: Culprit::Application,
    title: "Directory changes reported faster than they can be used",
    condition: "More than `rate` change notifications within a second. Always a note.",
    advice: "Each notification makes a client list the directory again. Watch fewer directories, or not whole trees; look for an application that writes into a watched directory all the time.",
    source: "MS-SMB2 3.3.5.19",
    thresholds: &[("rate", "10")],
    covers: &[],
    detect: Detect::Pair(notify_storm),
};

fn notify_storm(pair: &Pair<'_>) -> Option<Finding> {
    let most = f64::from(pair.facts.notified.most);
    if most <= pair.threshold("notify-storm", "rate") {
        return None;
    }
    let notified = pair.facts.counted(Fact::Notified);
    let path = notified.path();
    let first = path.as_deref().map_or_else(String::new, |path| format!(", first in {}", named(path)));
    let what = format!(
        "{} was notified of changes in directories {}, up to {most:.0} in a second{first}",
        pair.client,
        counted(notified.count, "time", "times"),
    );
    Some(
        Finding::new(Confidence::High, what)
            .first_of(notified)
            .on(&None, &path)
            .filter(" && (smb2.cmd == 15 || smb.nt.function == 4)"),
    )
}
