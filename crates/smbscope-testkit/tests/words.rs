//! Checks that user-facing texts use established terms and that replaced phrases do not return.

use std::fs;
use std::path::{Path, PathBuf};

/// Replaced phrases in lower case, and their replacements.
const REPLACED: [(&str, &str); 37] = [
    ("with work in hand", "active time"),
    ("half were answered", "median"),
    ("half of them within", "median"),
    ("most of the waiting was", "X caused the most wait"),
    ("nobody waited long", "no command took longer than 100 ms"),
    ("waits by design", "expected waits"),
    ("wait by design", "expected wait"),
    ("round trips, resends", "round trips and retransmissions"),
    ("how response times spread", "latency distribution"),
    ("data never acknowledged", "unacknowledged segments"),
    ("could be timed, but", "N commands had no response when the capture ended"),
    ("could not be timed because", "not timed: packets missing from the capture"),
    ("without answers by its end", "had no response when the capture ended"),
    ("is how often the value of", "= ratio to the baseline"),
    ("chance moves these figures", "small sample: differences may be noise"),
    ("comparison is weak", "caveats"),
    ("all but waits", "total"),
    ("the session of bench on", "login failed for user"),
    ("wants of signatures", "server signing policy"),
    ("by what they have in common", "group results by these fields"),
    ("those with the most of it", "sort groups by this figure, descending"),
    ("let every byte", "add this one-way latency"),
    ("best cipher that both", "strongest mutually supported cipher"),
    ("has an end, a loadfile, so often", "N passes"),
    ("under way", "outstanding, in flight, current"),
    ("told apart", "distinguished, listed"),
    ("in the midst", "during"),
    ("given up", "evicted, skipped, abandoned"),
    ("passed over", "skipped"),
    ("so often", "N times"),
    ("the like.", "name them"),
    ("how-manieth", "number"),
    ("what it takes, about", "approximate memory in bytes"),
    ("broke the protocol", "HOST:PORT is not an SMB server (it answered HTTP)"),
    ("on (not used)", "enabled, not required"),
    ("is given up, that of the connections", "least recently active connections are evicted"),
    ("it is the server:", "server-bound"),
];

/// Replaced column and row headings as they appear in the sources, and their replacements.
const HEADS: [(&str, &str); 14] = [
    ("Waited", "Total wait"),
    ("All of them", "Total"),
    ("All above", "Total"),
    ("All but waits", "Total"),
    ("Answered within", "Cumulative"),
    ("At once", "Outstanding"),
    ("Under way", "Outstanding"),
    ("In work", "Outstanding"),
    ("Replies", "Response"),
    ("Round trips, resends", "Network"),
    ("CPU", "Client CPU"),
    ("CPU each", "Client CPU per command"),
    ("Err", "Errors"),
    ("% Err", "Errors"),
];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the sources") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|kind| ["rs", "ts", "md", "json", "py"].iter().any(|known| kind == *known))
            // It searches for such phrases itself.
            && !path.ends_with("words.py")
        {
            found.push(path);
        }
    }
}

#[test]
fn words_that_were_replaced_are_gone_from_code_page_and_docs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut read = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    for entry in fs::read_dir(root.join("crates")).expect("the crates") {
        files(&entry.expect("a crate").path().join("src"), &mut read);
    }
    ["docs", "web/src", "schema", "scripts"].iter().for_each(|directory| files(&root.join(directory), &mut read));
    assert!(read.len() > 300, "only {} files were found", read.len());
    let mut wrong = Vec::new();
    for path in &read {
        let text = fs::read_to_string(path).expect("a text");
        let heads = HEADS.iter().filter(|(head, _)| text.contains(&format!("\"{head}\"")));
        wrong.extend(heads.map(|(head, instead)| format!("{}: a head {head:?} (write: {instead})", path.display())));
        let text = text.to_lowercase();
        // Phrases may span two lines of a comment or string.
        let text: Vec<&str> =
            text.split(|c: char| c.is_whitespace() || "/!*\\".contains(c)).filter(|word| !word.is_empty()).collect();
        let text = text.join(" ");
        let found = REPLACED.iter().filter(|(phrase, _)| text.contains(phrase));
        wrong.extend(found.map(|(phrase, instead)| format!("{}: {phrase:?} (write: {instead})", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
