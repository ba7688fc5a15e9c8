//! Generates the list of causes in docs/causes.md from the catalogue.

use smbscope_diagnose::{Catalogue, CauseDefinition, Culprit};
use smbscope_testkit::generated::replaced;
use std::fmt::Write;

/// Headings before and after the list.
const FROM: &str = "\n## The causes\n";
const TO: &str = "\n## Episodes\n";

/// Returns the page with an up-to-date list.
pub(crate) fn updated(page: &str) -> String {
    replaced(page, FROM, TO, &list())
}

fn list() -> String {
    let catalogue = Catalogue::default();
    let mut text = String::from("\nA word in `code` is a threshold, with its default. Reports explain the advice.\n");
    for culprit in Culprit::ALL {
        let of_culprit: Vec<_> = catalogue.entries().filter(|(_, entry)| entry.culprit == culprit).collect();
        if !of_culprit.is_empty() {
            let _ = write!(text, "\n### {}\n", heading(culprit));
        }
        for (id, entry) in of_culprit {
            text += &section(id, entry);
        }
    }
    text
}

fn heading(culprit: Culprit) -> &'static str {
    match culprit {
        Culprit::Server => "Server: its hardware, or software on it",
        Culprit::Network => "Network: distance, bandwidth or loss",
        Culprit::Client => "Client: its network stack, processor, or a file or lock that it holds",
        Culprit::Application => "Application: its use of the share",
        Culprit::Capture => "Capture: it can't show the cause",
        Culprit::Nothing => "Nothing",
    }
}

fn section(id: &str, entry: &CauseDefinition) -> String {
    let mut condition = entry.condition.to_owned();
    for (name, value) in entry.thresholds() {
        let value = value.to_string();
        condition = condition.replacen(&format!("`{name}`"), &format!("`{name}` ({})", value.trim_matches('"')), 1);
    }
    let source = source(entry.source).map_or_else(String::new, |source| format!(" ({})", linked(source)));
    format!("\n#### {id}\n\n**{}.** {condition}\n\n{}{source}\n", entry.title, linked(&instructions(entry.advice)))
}

/// Returns a source without what it says there; `None` for a rule of this page.
fn source(source: &str) -> Option<&str> {
    let (name, _) = source.split_once(": ").unwrap_or((source, ""));
    (name != "docs/causes.md").then_some(name)
}

/// First words of instructions.
const INSTRUCTIONS: [&str; 29] = [
    "allow", "capture", "check", "compare", "copy", "divide", "find", "give", "have", "keep", "let", "limit", "look",
    "make", "measure", "move", "pack", "raise", "scan", "see", "serve", "set", "shorten", "start", "switch", "update",
    "use", "wake", "watch",
];
/// Words that refer to the sentence before, and the length in words of an instruction that needs it anyway.
const REFERENCES: [&str; 5] = ["it", "its", "such", "them", "they"];
const SHORT: usize = 9;

/// Returns the sentences of an advice that say what to do, without explanations, except one that the first instruction
/// refers to. Returns the whole advice if it has no instruction.
fn instructions(advice: &str) -> String {
    let sentences: Vec<&str> = advice.split_inclusive(". ").collect();
    let Some(first) = sentences.iter().position(|sentence| instructs(sentence)) else { return advice.to_owned() };
    let mut words = sentences[first].split(|sign: char| !sign.is_alphabetic());
    let refers = words.any(|word| REFERENCES.contains(&word)) || sentences[first].split(' ').count() <= SHORT;
    let from = if refers { first.saturating_sub(1) } else { first };
    let kept = sentences[from..].iter().enumerate().filter(|(at, sentence)| *at == 0 || instructs(sentence));
    kept.map(|(_, sentence)| *sentence).collect::<String>().trim_end().to_owned()
}

/// Returns true if a sentence, or a part of it after a punctuation mark, begins with an instruction.
fn instructs(sentence: &str) -> bool {
    let is_verb = |word: &str| INSTRUCTIONS.contains(&word.trim_end_matches(','));
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let follows = words.windows(2).any(|pair| pair[0].ends_with([':', ';', ',']) && is_verb(pair[1]));
    follows || words.first().is_some_and(|first| is_verb(&first.to_lowercase()))
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
        Some(page) => (page.to_owned(), page.trim_end_matches(".md").to_owned()),
        None if path.starts_with("studies/") && path.ends_with(".toml") => (format!("../{path}"), path.to_owned()),
        None => return word.to_owned(),
    };
    word.replace(path, &format!("[{title}]({folder})"))
}
