//! The list of causes in docs/causes.md. Titles, culprits, thresholds, advice and sources are the program's; the
//! condition of each cause is here.

use smbscope_diagnose::{Catalogue, Culprit, Entry};
use std::fmt::Write;

/// Heading of the list, and the heading that follows it.
const FROM: &str = "\n## The causes\n";
const TO: &str = "\n## Episodes\n";

/// The page with its list of causes as the program has it.
pub(crate) fn updated(page: &str) -> String {
    let (before, rest) = page.split_once(FROM).expect("docs/causes.md has the heading of the list");
    let (_, after) = rest.split_once(TO).expect("docs/causes.md has the heading after the list");
    format!("{before}{FROM}{}{TO}{after}", list())
}

/// The condition of a cause; thresholds stand in it by their names.
pub(crate) fn condition(id: &str) -> &'static str {
    let found = CONDITIONS.iter().find(|(known, _)| *known == id);
    found.map_or_else(|| panic!("examples/causes/page.rs lacks the condition of {id}"), |(_, condition)| condition)
}

/// Describes a culprit in words.
fn described(culprit: Culprit) -> &'static str {
    match culprit {
        Culprit::Server => "the server, its storage, or software on it",
        Culprit::Network => "distance, bandwidth or loss",
        Culprit::Client => "a client machine: its network stack, its processor, or a file or lock that it holds",
        Culprit::Application => "the way a program uses the share",
        Culprit::Capture => "the capture hides what would tell",
        Culprit::Nothing => "nobody",
    }
}

fn list() -> String {
    let catalogue = Catalogue::default();
    let ids: Vec<&str> = catalogue.entries().map(|(id, _)| id).collect();
    assert_eq!(CONDITIONS.map(|(id, _)| id).as_slice(), ids, "conditions in page.rs, and causes of the program");
    let of = |culprit: Culprit| catalogue.entries().filter(move |(_, entry)| entry.culprit == culprit);
    let mut text = String::from("\n| culprit | causes |\n|---|---|\n");
    let groups = Culprit::ALL.into_iter().filter(|culprit| of(*culprit).next().is_some());
    for culprit in groups.clone() {
        let links: Vec<String> = of(culprit).map(|(id, _)| format!("[`{id}`](#{id})")).collect();
        let _ = writeln!(text, "| `{}`: {} | {} |", culprit.key(), described(culprit), links.join(", "));
    }
    for culprit in groups {
        for (id, entry) in of(culprit) {
            text += &section(id, entry);
        }
    }
    text
}

fn section(id: &str, entry: &Entry) -> String {
    let mut text = format!("\n### {id}\n\n**{}** (`{}`). {}\n\n", entry.title, entry.culprit.key(), condition(id));
    let thresholds: Vec<String> = entry.thresholds().map(|(name, value)| format!("`{name} = {value}`")).collect();
    if !thresholds.is_empty() {
        let _ = writeln!(text, "- Thresholds: {}", thresholds.join(", "));
    }
    let _ = writeln!(text, "- What to do: {}\n- Source: {}", linked(entry.advice), linked(entry.source));
    text
}

/// Links to pages of the book instead of their paths, and nothing that Markdown would read as a mark.
fn linked(text: &str) -> String {
    let escaped = text.replace('*', "\\*").replace('<', "\\<").replace(" ~$", " `~$`");
    let words: Vec<String> = escaped.split(' ').map(link).collect();
    words.join(" ").replace("(~$)", "(`~$`)")
}

fn link(word: &str) -> String {
    let path = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
    let (folder, title) = match path.strip_prefix("docs/") {
        Some("causes.md") => return word.replace(path, "own rule"),
        Some(page) => (page.to_owned(), page.trim_end_matches(".md").to_owned()),
        None if path.starts_with("studies/") && path.ends_with(".toml") => (format!("../{path}"), path.to_owned()),
        None => return word.to_owned(),
    };
    word.replace(path, &format!("[{title}]({folder})"))
}

const CONDITIONS: [(&str, &str); 53] = [
    (
        "async-limit",
        "`commands` commands were pending (STATUS_PENDING) at once on a connection; servers allow 512 by default. Always a note.",
    ),
    (
        "bandwidth-limited",
        "At least `bytes` went in one direction, the part `flat` of them at about the same rate (±30%) of at most `rate`, and transfers took `transfer` of the waits. Not where the receive window or packet loss sets the rate.",
    ),
    ("break-storm", "`breaks` oplock or lease breaks, and more than `share` of the number of opens. Always a note."),
    (
        "break-timeout",
        "An open took `wait` while another client was asked to give back an oplock or lease, or it took 29 to 37 s: then servers stop waiting.",
    ),
    (
        "client-bound",
        "Pauses below 100 ms between a response and the next request took `time`, and `share` of the client's active time: a person needs longer. Not where several connections overlap, or where the client also pauses like a person.",
    ),
    (
        "conflicts",
        "Opens failed with STATUS_SHARING_VIOLATION and were tried again, `attempts` times in `wait`: from the first refusal until success or the last attempt.",
    ),
    (
        "credit-limited",
        "The client waited for credits for `share` of its active time: each next request followed at once the grant that it needed.",
    ),
    ("dfs-referral", "A DFS referral took `longest`."),
    (
        "disk-full",
        "Writes failed with STATUS_DISK_FULL, STATUS_QUOTA_EXCEEDED or STATUS_DISK_QUOTA_EXCEEDED. It is a cause even if no time was lost, since operations failed; retries count as lost time if they took `wait`.",
    ),
    ("encrypted", "Any encrypted request. Always a note."),
    (
        "fast-then-slow",
        "Within writes of `bytes` or more without a pause of 2 s, throughput fell by the factor `throughput`, and a write took `write_time` times as long, at least `slow_write`, for `time`. Not where transfers took most of the waits.",
    ),
    (
        "filter-delay",
        "With at least `opens` opens, their median server time is `least` or longer, and `ratio` times the median of closes and queries. Or some opens are slow: their p95 is `p95` or longer and twice `ratio` times that of closes and queries, and they take more than half of the server's time. Reads and writes take less than half of the median.",
    ),
    (
        "flush-heavy",
        "`flushes` FLUSH commands, and more than `share` of the number of writes. If the median FLUSH takes `slow` at the server, the culprit is the server.",
    ),
    ("huge-directory", "A listing was long enough for `entries` entries, estimated from its bytes."),
    ("ini-pattern", "One file was opened `opens` times within `window` on a connection, and read or written."),
    (
        "large-mtu-off",
        "`transfers` blocks of 60 to 64 KiB and none larger, over SMB 2.1 or later and a round trip of `trip`. Always a note.",
    ),
    (
        "list-then-stat",
        "After a listing, at least `entries` of its entries, and `share` of all, were opened and closed without a read or write.",
    ),
    (
        "lock-wait",
        "LOCK requests waited, or were refused and tried again, for `wait` in all. The report names the client that unlocked the file just before the grant.",
    ),
    ("mac-metadata", "`share` of at least `opens` opens were for `._*` or `.DS_Store`."),
    ("many-channels", "More than `connections` connections were bound to the same sessions. Always a note."),
    ("metadata-heavy", "`share` of at least `commands` commands neither read nor wrote, over a round trip of `trip`."),
    ("missing-file-probes", "`share` of at least `lookups` opens and path queries found nothing."),
    (
        "multichannel-unused",
        "Client and server support multichannel, the server listed at least `interfaces` interfaces that a client may reach, and the client moved `bytes` over one connection. Always a note.",
    ),
    (
        "negotiate-churn",
        "`negotiations` NEGOTIATE, and more than `share` of the number of opens, on connections most of which follow one another.",
    ),
    (
        "network-loss",
        "`segments` segments, and more than `share` of all, were lost and sent again, whether the capture has both copies or only the second. Copies that D-SACK reports as needless do not count.",
    ),
    (
        "network-outage",
        "No acknowledgment passed in either direction for `outage` in spite of retransmissions, and then traffic went on.",
    ),
    ("notify-storm", "More than `rate` change notifications within a second. Always a note."),
    ("office-slow-open", "An open of an Office document or its owner file (`~$`) took `longest`."),
    ("old-dialect", "The server chose a dialect below the best one that the client offered. Always a note."),
    (
        "queueing",
        "While another client's transfer ran at the rate of the line, at least `commands` commands without data took `ratio` times as long as otherwise, and `wait` longer.",
    ),
    (
        "refusals",
        "A response with STATUS_INSUFFICIENT_RESOURCES, STATUS_INSUFF_SERVER_RESOURCES, STATUS_TOO_MANY_OPENED_FILES, STATUS_TOO_MANY_SESSIONS or STATUS_REQUEST_NOT_ACCEPTED. Always a note.",
    ),
    ("relisting", "One directory was listed `listings` times within 10 s."),
    (
        "request-unanswered",
        "A request had no response for `wait`, until its connection or the capture ended. If the server's TCP did not acknowledge the request, the culprit is the network.",
    ),
    ("rtt-bound", "Round trips of `trip` or longer took `share` of the waits."),
    (
        "serial-client",
        "At least `commands` commands with at most `outstanding` outstanding on average, and round trips of `trip` or longer took `share` of the active time.",
    ),
    (
        "server-hang",
        "The server sent no response on any connection for `silence`, although requests were outstanding and none of them was retransmitted: its TCP went on acknowledging.",
    ),
    (
        "server-restart",
        "Clients lost their connections, failed to connect, and had a new connection no sooner than `away` later.",
    ),
    (
        "server-saturation",
        "On the only server of a capture, the median response time with many outstanding requests is `median` or longer and `ratio` times that with few, from `commands` commands each, and server time is most of the wait of `clients` clients.",
    ),
    (
        "server-unreachable",
        "Connection attempts were refused, unanswered or closed without data for `wait`, and no other connection of the client to this server worked meanwhile. If nothing answered, the culprit is the network.",
    ),
    (
        "session-expired",
        "`refusals` requests failed with STATUS_NETWORK_SESSION_EXPIRED or STATUS_USER_SESSION_DELETED.",
    ),
    (
        "signing-cost",
        "The client moved `bytes` of signed file data, more than `share` of all its file data, and waited for it during `waited` of its active time. Always a note: a capture can't tell how much of the wait is signing.",
    ),
    (
        "slow-client-link",
        "With at least `peers` other clients on the same server, the client's round trip is `ratio` times their median and `excess` longer, and round trips took `share` of its waits.",
    ),
    ("slow-logon", "A SESSION_SETUP took `longest`, or `failures` logins failed."),
    (
        "slow-storage",
        "The median server time of at least `transfers` reads or writes is `least` or longer, and `ratio` times that of commands that touch no storage. Not where transfers fill the line.",
    ),
    (
        "slow-tree-connect",
        "A TREE_CONNECT took `longest`, and tree connects took at least twice as long as logins on average.",
    ),
    (
        "small-file-copy",
        "`files` different files of at most 64 KiB were read or written within a minute, with at most `outstanding` commands outstanding, and took `share` of the waits, at least `each` for each file.",
    ),
    (
        "small-io",
        "`share` of at least `transfers` reads and writes carried 8 KiB or less. Files that are no larger do not count.",
    ),
    (
        "small-list-buffer",
        "Listings took more than `continuations` commands each, none with a response above `buffer`.",
    ),
    ("smb1-in-use", "Any SMB1 command beyond negotiation. Always a note."),
    (
        "throttled",
        "The server paused `pauses` times for `least` or longer, for about the same time each, whatever it was asked for. It answered fast in between, and hardly any segment was lost.",
    ),
    (
        "timer-cluster",
        "`messages` messages whose second segment was held back until the receiver acknowledged the first, over a round trip of at most 30 ms. If the server held responses back, the culprit is the server.",
    ),
    (
        "window-limited",
        "Over round trips of `round_trip` or longer, the sender filled the receive window and waited for `share` of the active time.",
    ),
    (
        "zero-window",
        "The receive window was closed for `share` of the active time while the sender had more data. If it was the server's window, the culprit is the server.",
    ),
];
