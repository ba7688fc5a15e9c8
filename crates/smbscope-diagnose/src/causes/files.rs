//! Inefficient access to files and directories by applications: repeated opens, lookups, listings, notifications.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{DiagnosisFacts, Pair, PathFacts, PathKey, bytes, named, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, span, thousands, unbroken};

pub(super) const DETECTORS: &[&Detector] = &[
    &INI_PATTERN,
    &MISSING_FILE_PROBES,
    &MAC_METADATA,
    &OFFICE_SLOW_OPEN,
    &ROAMING_PROFILE,
    &SMALL_FILE_COPY,
    &SMALL_IO,
    &LIST_THEN_STAT,
    &RELISTING,
    &SMALL_LIST_BUFFER,
    &HUGE_DIRECTORY,
    &NOTIFY_STORM,
];

const INI_PATTERN: Detector = Detector {
    id: "ini-pattern",
    culprit: Culprit::Application,
    title: "The same file opened repeatedly",
    condition: "One file was opened `opens` times within `window` on a connection, and read or written.",
    advice: "Have the application read the file once and keep it, or keep the file on the local disk: an INI file that is read setting by setting costs an open, a read and a close each. A lease does not help where the client closes the file at once; a shorter round trip does.",
    source: "docs/studies.md: an article on an INI file of 3,000 settings, opened 3,000 times",
    thresholds: &[("opens", "20"), ("window", "10s")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy", "small-io", "slow-client-link"],
    detect: Detect::Path(ini_pattern),
};

/// Maximum mean number of outstanding commands for a path to count as accessed serially.
const ONE_AT_A_TIME: f64 = 1.2;

fn ini_pattern(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    let most = f64::from(facts.opens_window.most);
    // Directories are opened for every listing and every query of their entries.
    let moves = facts.bytes_read + facts.bytes_written > 0;
    if most < pair.threshold("ini-pattern", "opens") || facts.list_commands > 0 || !moves {
        return None;
    }
    let depth = facts.response_time as f64 / facts.outstanding.max(1) as f64;
    let serial = if depth <= ONE_AT_A_TIME { ", one at a time" } else { "" };
    let each = (facts.commands as f64 / facts.opens as f64).round() as u64;
    let moved = match (facts.bytes_read, facts.bytes_written) {
        (read, 0) => format!(", and read {} of a {} file", bytes(read), bytes(facts.extent)),
        (0, written) => format!(", and wrote {} of a {} file", bytes(written), bytes(facts.extent)),
        (read, written) => {
            format!(", read {} and wrote {} of a {} file", bytes(read), bytes(written), bytes(facts.extent))
        }
    };
    let what = format!(
        "{} opened {} {} times in {}{serial}, {} each{moved}",
        pair.client,
        named(&key.path),
        thousands(facts.opens),
        unbroken(span(facts.span())),
        counted(each, "command", "commands"),
    );
    // One open would be enough.
    let waited = pair.once(Nanos(facts.outstanding));
    let lost = Nanos((waited.0 as f64 * (1.0 - 1.0 / facts.opens.max(1) as f64)) as i64);
    Some(Finding::new(Confidence::High, what).lost(LostTime::between(Nanos(lost.0 * 9 / 10), lost, waited)))
}

const MISSING_FILE_PROBES: Detector = Detector {
    id: "missing-file-probes",
    culprit: Culprit::Application,
    title: "Lookups of files that don't exist",
    condition: "`share` of at least `lookups` opens and path queries found nothing.",
    advice: "Applications search their paths for libraries, settings and language files. Shorten the search path, install the application locally, or put a share last in it. Windows clients remember missing names for FileNotFoundCacheLifetime.",
    source: "Microsoft, \"Performance tuning for SMB file servers\": FileNotFoundCacheEntriesMax",
    thresholds: &[("lookups", "50"), ("share", "30%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "slow-client-link"],
    detect: Detect::Pair(missing_file_probes),
};

fn missing_file_probes(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "missing-file-probes";
    let (missing, lookups) = (pair.facts.counted(Fact::Missing), pair.facts.counted(Fact::Lookup));
    let share = pair.facts.share(Fact::Missing, Fact::Lookup);
    if (lookups.count as f64) < pair.threshold(ID, "lookups") || share < pair.threshold(ID, "share") {
        return None;
    }
    let path = missing.path();
    let first = path.as_deref().map_or_else(String::new, |path| format!(", first for {}", named(path)));
    let what = format!(
        "{} looked for files that do not exist: {} of {} lookups ({}){first}",
        pair.client,
        thousands(missing.count),
        thousands(lookups.count),
        percent(share),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(missing.outstanding))))
            .first_of(missing)
            .on(&None, &path)
            .filter(
                " && (smb2.nt_status == 0xc0000034 || smb2.nt_status == 0xc000003a || smb.nt_status == 0xc0000034)",
            ),
    )
}

const MAC_METADATA: Detector = Detector {
    id: "mac-metadata",
    culprit: Culprit::Application,
    title: "macOS metadata files",
    condition: "`share` of at least `opens` opens were for `._*` or `.DS_Store`.",
    advice: "Serve macOS clients with vfs_fruit (Samba), which keeps this metadata in streams; or switch it off on the clients: defaults write com.apple.desktopservices DSDontWriteNetworkStores -bool TRUE.",
    source: "Samba, vfs_fruit(8)",
    thresholds: &[("opens", "50"), ("share", "10%")],
    covers: &["missing-file-probes", "metadata-heavy"],
    detect: Detect::Pair(mac_metadata),
};

fn mac_metadata(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "mac-metadata";
    let share = pair.facts.share(Fact::MacName, Fact::Open);
    let opens = pair.facts.count(Fact::Open) as f64;
    if opens < pair.threshold(ID, "opens") || share < pair.threshold(ID, "share") {
        return None;
    }
    let names = pair.facts.counted(Fact::MacName);
    let what = format!(
        "{} opened names that only macOS uses (._* and .DS_Store): {} of its opens ({})",
        pair.client,
        thousands(names.count),
        percent(share)
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(Nanos(names.outstanding))))
            .first_of(names),
    )
}

const OFFICE_SLOW_OPEN: Detector = Detector {
    id: "office-slow-open",
    culprit: Culprit::Server,
    title: "Office documents open slowly",
    condition: "An open of an Office document or its owner file (`~$`) took `longest`.",
    advice: "See what the slow open waited for: another user's lock on the owner file (~$), a lease break, or a virus scanner on the server. Compare with the same document on the local disk.",
    source: "Microsoft, \"Slow SMB file transfer speed\": slow open of Office documents",
    thresholds: &[("longest", "2s")],
    covers: &[],
    detect: Detect::Pair(office_slow_open),
};

fn office_slow_open(pair: &Pair<'_>) -> Option<Finding> {
    let opens = pair.facts.counted(Fact::OfficeOpen);
    if Nanos(opens.longest) < pair.time("office-slow-open", "longest") {
        return None;
    }
    let what = format!(
        "{} opened Office documents and their owner files (~$) {}; the slowest open took {}",
        pair.client,
        counted(opens.count, "time", "times"),
        unbroken(Nanos(opens.longest)),
    );
    Some(
        Finding::new(Confidence::Low, what)
            .lost(LostTime::between(Nanos(opens.longest), Nanos(opens.longest), pair.once(Nanos(opens.outstanding))))
            .longest(Nanos(opens.longest))
            .first_of(opens),
    )
}

const ROAMING_PROFILE: Detector = Detector {
    id: "roaming-profile",
    culprit: Culprit::Application,
    title: "User profile copied file by file",
    condition: "The registry hive of a profile (NTUSER.DAT) was read or written, and beside or below it `files` files of at most 64 KiB, which took `share` of the client's waits.",
    advice: "Keep caches and temporary files out of the profile, redirect its large folders, or use a profile container (one disk image per user, such as FSLogix): the number of files decides how long a logon takes, not their size.",
    source: "docs/studies.md: logons that copy 18,460 files",
    thresholds: &[("files", "100"), ("share", "40%")],
    covers: &["small-file-copy", "rtt-bound", "serial-client", "metadata-heavy", "small-io"],
    detect: Detect::Peer(roaming_profile),
};

fn roaming_profile(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "roaming-profile";
    let small = pair.facts.counted(Fact::SmallFile);
    let waited = pair.once(Nanos(small.outstanding));
    let share = waited.0 as f64 / pair.whole.waited.0.max(1) as f64;
    if (small.count as f64) < pair.threshold(ID, "files") || share < pair.threshold(ID, "share") {
        return None;
    }
    let first = small.path()?;
    let mut files = facts.context.aggregate.files.entries.iter();
    let (hive, folder, figures) = files.find_map(|(key, figures)| {
        let (folder, name) = key.path.rsplit_once('\\').unwrap_or(("", &key.path));
        (name.eq_ignore_ascii_case("ntuser.dat") && is_below(&first, folder)).then_some((key, folder, figures))
    })?;
    let (verb, when) = if figures.bytes_written > figures.bytes_read { ("wrote", "logoff") } else { ("read", "logon") };
    let what = format!(
        "{} {verb} the user profile in {} at {when}: {} of at most 64 KiB ({} in all) took {}",
        pair.client,
        named(folder),
        counted(small.count, "file", "files"),
        bytes(small.bytes),
        unbroken(span(small.span())),
    );
    let low = Nanos(waited.0 * 9 / 10);
    let found = Finding::new(Confidence::Medium, what).lost(LostTime::between(low, waited, waited)).first_of(small);
    Some(found.on(&hive.share, &Some(folder.into())))
}

fn is_below(path: &str, folder: &str) -> bool {
    let path = path.trim_start_matches('\\');
    let folder = folder.trim_start_matches('\\');
    let begins = path.get(..folder.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(folder));
    begins && (folder.is_empty() || path[folder.len()..].starts_with('\\'))
}

const SMALL_FILE_COPY: Detector = Detector {
    id: "small-file-copy",
    culprit: Culprit::Application,
    title: "Many small files, one after the other",
    condition: "`files` different files of at most 64 KiB were read or written within a minute, with at most `outstanding` commands outstanding, and took `share` of the waits, at least `each` for each file.",
    advice: "Copy with several files at a time (robocopy /MT, rsync in parallel), or pack the files into one archive or disk image: each file costs several round trips whatever its size. For profiles: keep caches and temporary files out of redirected folders.",
    source: "Microsoft, \"Slow SMB file transfer speed\": small files; docs/studies.md: logons that copy 18,460 files",
    thresholds: &[("files", "100"), ("outstanding", "12"), ("share", "40%"), ("each", "4ms")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-io"],
    detect: Detect::Pair(small_file_copy),
};

fn small_file_copy(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "small-file-copy";
    let small = pair.facts.counted(Fact::SmallFile);
    let depth = pair.depth();
    let per_minute = f64::from(pair.facts.small_files.most);
    let waited = pair.once(Nanos(small.outstanding));
    let share = waited.0 as f64 / pair.whole.waited.0.max(1) as f64;
    let each = Nanos(waited.0 / small.count.max(1) as i64);
    if per_minute < pair.threshold(ID, "files")
        // Fast enough: copying could not be much faster.
        || each < pair.time(ID, "each")
        || depth > pair.threshold(ID, "outstanding")
        || share < pair.threshold(ID, "share")
    {
        return None;
    }
    let what = format!(
        "{} read or wrote {} of at most 64 KiB ({} in all) in {}, with {depth:.1} commands outstanding",
        pair.client,
        counted(small.count, "file", "files"),
        bytes(small.bytes),
        unbroken(span(small.span())),
    );
    // One archive would need a few commands. Part of the server's own time would remain.
    let busy = (pair.split.waited().0 as f64).max(1.0);
    let server = pair.split.server_ns.0 as f64 / busy;
    let low = Nanos((waited.0 as f64 * (1.0 - server.min(0.9))) as i64);
    Some(Finding::new(Confidence::High, what).lost(LostTime::between(low, waited, waited)).first_of(small))
}

const SMALL_IO: Detector = Detector {
    id: "small-io",
    culprit: Culprit::Application,
    title: "Data in small blocks",
    condition: "Of at least `transfers` reads and writes, `share` carried 8 KiB or less. Files of 8 KiB or less do not count.",
    advice: "Have the application or copy tool use larger blocks (64 KiB to 1 MiB): each block costs a round trip. Buffered I/O of the client does it where leases allow it.",
    source: "docs/studies.md: DiskSpd from 4 KiB to 8 MiB",
    thresholds: &[("transfers", "200"), ("share", "80%")],
    covers: &["rtt-bound", "serial-client", "slow-client-link", "metadata-heavy"],
    detect: Detect::Pair(small_io),
};

fn small_io(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "small-io";
    let small = pair.facts.counted(Fact::SmallTransfer);
    let share = pair.facts.share(Fact::SmallTransfer, Fact::Transfer);
    let in_small_files = pair.facts.count(Fact::SmallFile) + pair.facts.count(Fact::SmallFileAgain);
    // A small file has no larger block.
    let counted_ones = small.count.saturating_sub(2 * in_small_files);
    if (counted_ones as f64) < pair.threshold(ID, "transfers") || share < pair.threshold(ID, "share") {
        return None;
    }
    let each = small.bytes as f64 / small.count.max(1) as f64;
    let what = format!(
        "{} moved file data in blocks of at most 8 KiB: {} of {} reads and writes ({}), {} each",
        pair.client,
        thousands(small.count),
        thousands(pair.facts.count(Fact::Transfer)),
        percent(share),
        bytes(each as u64),
    );
    // Blocks of 64 KiB would take fewer commands, saving their round trips and some server time.
    let fewer = (1.0 - each / 65_536.0).max(0.0);
    let trip = pair.round_trip().unwrap_or_default();
    let trips = pair.once(Nanos((trip.0 as f64 * small.count as f64 * fewer) as i64));
    let all = pair.once(Nanos((small.outstanding as f64 * fewer) as i64));
    let best = Nanos((trips.0 + all.0) / 2);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(trips, best, all)).first_of(small))
}

const LIST_THEN_STAT: Detector = Detector {
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

const RELISTING: Detector = Detector {
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

const SMALL_LIST_BUFFER: Detector = Detector {
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

const HUGE_DIRECTORY: Detector = Detector {
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

const NOTIFY_STORM: Detector = Detector {
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
