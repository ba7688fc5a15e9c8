//! Generates the list of causes in docs/causes.md from the catalogue.

use smbscope_diagnose::{Catalogue, CauseDefinition, Culprit};
use std::fmt::Write;

/// Headings before and after the list.
const FROM: &str = "\n## The causes\n";
const TO: &str = "\n## Episodes\n";

/// Returns the page with an up-to-date list.
pub(crate) fn updated(page: &str) -> String {
    let (before, rest) = page.split_once(FROM).expect("docs/causes.md has the heading of the list");
    let (_, after) = rest.split_once(TO).expect("docs/causes.md has the heading after the list");
    format!("{before}{FROM}{}{TO}{after}", list())
}

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

fn section(id: &str, entry: &CauseDefinition) -> String {
    let mut text = format!("\n### {id}\n\n**{}** (`{}`). {}\n\n", entry.title, entry.culprit.key(), entry.condition);
    let thresholds: Vec<String> = entry.thresholds().map(|(name, value)| format!("`{name} = {value}`")).collect();
    if !thresholds.is_empty() {
        let _ = writeln!(text, "- Thresholds: {}", thresholds.join(", "));
    }
    let _ = writeln!(text, "- What to do: {}\n- Source: {}", linked(entry.advice), linked(entry.source));
    text
}

/// Turns file names of pages into links, and escapes Markdown syntax.
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
