//! Help texts: what a program can check of the rules for them.

use clap::{Arg, ArgAction, Command, CommandFactory};
use smbscope_cli::Arguments;
use std::collections::BTreeMap;
use std::path::Path;

/// First words of help texts: verbs in the imperative. A new verb is added here.
const VERBS: &[&str] = &[
    "Abort",
    "Accept",
    "Access",
    "Add",
    "Admit",
    "Analyze",
    "Apply",
    "Capture",
    "Choose",
    "Clean",
    "Color",
    "Compare",
    "Connect",
    "Copy",
    "Create",
    "Decrypt",
    "Describe",
    "Distribute",
    "Drop",
    "Encrypt",
    "End",
    "Explain",
    "Fail",
    "Find",
    "Follow",
    "Give",
    "Grant",
    "Group",
    "Keep",
    "Launch",
    "Limit",
    "List",
    "Listen",
    "Load",
    "Log",
    "Make",
    "Measure",
    "Mount",
    "Name",
    "Negotiate",
    "Offer",
    "Open",
    "Override",
    "Poll",
    "Predict",
    "Print",
    "Put",
    "Read",
    "Record",
    "Remove",
    "Replace",
    "Replay",
    "Report",
    "Request",
    "Require",
    "Run",
    "Scan",
    "Seed",
    "Send",
    "Serve",
    "Set",
    "Share",
    "Show",
    "Sign",
    "Skip",
    "Sort",
    "Space",
    "Start",
    "Stop",
    "Use",
    "Wait",
    "Warm",
    "Watch",
    "Write",
];

/// Placeholders of values, with a word that the help of each option needs where the value alone has no unit.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("ACTION", ""),
    ("ADDRESS", ""),
    ("[ADDRESS:]PORT", "port"),
    ("ALGORITHM", ""),
    ("ARRIVALS", ""),
    ("BANDWIDTH", ""),
    ("CHANGE,...", ""),
    ("COLUMNS", "columns"),
    ("COMMAND", ""),
    ("COMMAND|TOPIC", ""),
    ("CRITERION", ""),
    ("DIALECT", ""),
    ("DIR", ""),
    ("DURATION", ""),
    ("END", ""),
    ("EXPR", ""),
    ("FACTOR", "factor"),
    ("FIELD,...", ""),
    ("FIGURE", ""),
    ("FILE", ""),
    ("FORMAT", ""),
    ("HOST[:PORT]", ""),
    ("IDENTITY", ""),
    ("INTERFACE", ""),
    ("LIMIT", ""),
    ("LOGIN", ""),
    ("MIB", "MiB"),
    ("N", ""),
    ("N/s", "per second"),
    ("NAME", ""),
    ("NAME=QUERY", ""),
    ("NAME=TEXT", ""),
    ("NAME=VALUE", ""),
    ("NAME=VALUE,...", ""),
    ("NAME|FILE", ""),
    ("OUT", ""),
    ("PERCENT", "percentage"),
    ("POINT=FILE,...", ""),
    ("POLICY", ""),
    ("PORT", "port"),
    ("PORT=KIND", ""),
    ("PROGRAM", ""),
    ("PROPERTY,...", ""),
    ("RATES", "per second"),
    ("SHELL", ""),
    ("SIDE", ""),
    ("SIZE", ""),
    ("TARGET", ""),
    ("[NAME=]TARGET", ""),
    ("TEXT", ""),
    ("TIME", ""),
    ("TRANSPORT", ""),
    ("URL", ""),
    ("USERS", "users"),
    ("WHEN", ""),
    ("WHERE", ""),
];

/// Options whose values differ between commands: a file or a directory is written, only a study names targets, only a
/// launched program chooses its address, and packets of a launch are captured at the client only.
const SEVERAL_PLACEHOLDERS: &[&str] = &["output", "target", "listen-port", "capture"];

/// Visible commands with their names, such as `lab up`.
fn commands() -> Vec<(String, Command)> {
    fn with_own(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
        found.push((name.to_owned(), command.clone()));
        for own in command.get_subcommands().filter(|own| !own.is_hide_set()) {
            with_own(own, &format!("{name} {}", own.get_name()), found);
        }
    }
    let (mut command, mut found) = (Arguments::command(), Vec::new());
    command.build();
    with_own(&command, "smbscope", &mut found);
    found
}

/// Visible arguments but clap's own.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let own = |argument: &&Arg| ["help", "version"].contains(&argument.get_id().as_str());
    command.get_arguments().filter(move |argument| !own(argument) && !argument.is_hide_set())
}

fn placeholder(argument: &Arg) -> Option<&str> {
    argument.get_action().takes_values().then(|| argument.get_value_names()?.first().map(|name| name.as_str()))?
}

/// Returns the mistakes in the help of an argument.
fn mistakes(argument: &Arg) -> Vec<&'static str> {
    let help = argument.get_help().map_or_else(String::new, ToString::to_string);
    let long = argument.get_long_help().map_or(help.clone(), ToString::to_string);
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_default_values();
    let is_hidden = argument.is_hide_default_value_set() && values.iter().any(|value| !value.is_empty());
    let known = placeholder(argument).map(|name| PLACEHOLDERS.iter().find(|(known, _)| *known == name));
    let lacks_unit = known.flatten().is_some_and(|(_, unit)| !help.contains(unit));
    let lacks_n = placeholder(argument) == Some("N") && !help.split(|c: char| !c.is_alphanumeric()).any(|w| w == "N");
    let is_number_of_choice = argument.get_long() == Some("seed") || argument.get_long() == Some("episode");
    [
        (help.is_empty(), "it has no help"),
        (!VERBS.contains(&help.split_whitespace().next().unwrap_or_default()), "it begins with no known verb"),
        (long.split("\n\n").any(|part| part.ends_with([',', ':', ';'])), "it stops halfway"),
        (takes_value && known.flatten().is_none(), "its placeholder is unknown"),
        (lacks_unit, "it does not name the unit"),
        (lacks_n && !is_number_of_choice, "it does not say what N counts"),
        (is_hidden, "it hides its default"),
        (takes_value && !values.is_empty() && long.contains("[default"), "it has two defaults"),
    ]
    .into_iter()
    .filter_map(|(is_wrong, what)| is_wrong.then_some(what))
    .collect()
}

#[test]
fn every_option_has_a_sentence_with_a_known_placeholder_its_unit_and_its_default() {
    let mut wrong = Vec::new();
    for (name, command) in commands() {
        let about = command.get_about().map_or_else(String::new, ToString::to_string);
        let verb = about.split_whitespace().next().unwrap_or_default().to_owned();
        let is_root = name == "smbscope";
        if !is_root && !VERBS.contains(&verb.as_str()) {
            wrong.push(format!("{name}: {about:?} begins with no known verb"));
        }
        for argument in arguments(&command) {
            wrong.extend(mistakes(argument).iter().map(|what| format!("{name}: {}: {what}", argument.get_id())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_option_of_several_commands_has_one_placeholder_and_one_letter() {
    let mut seen: BTreeMap<String, (String, Option<String>, Option<char>, ArgAction)> = BTreeMap::new();
    for (name, command) in commands() {
        for argument in arguments(&command) {
            let Some(long) = argument.get_long().filter(|long| !SEVERAL_PLACEHOLDERS.contains(long)) else { continue };
            let placeholder = placeholder(argument).map(str::to_owned);
            let own = (name.clone(), placeholder, argument.get_short(), argument.get_action().clone());
            let first = seen.entry(long.to_owned()).or_insert_with(|| own.clone());
            let is_same = (&first.1, first.2) == (&own.1, own.2) && first.3.takes_values() == own.3.takes_values();
            assert!(is_same, "--{long} differs: {first:?}, {own:?}");
        }
    }
    assert!(seen.len() > 80, "{}", seen.len());
}

/// Clap removes the last full stop of a text of one paragraph, so the sources are read.
#[test]
fn every_help_text_ends_with_a_full_stop_or_a_default() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["smbscope-run/src/options", "smbscope-explain/src/options"];
    let options =
        folders.iter().flat_map(|folder| std::fs::read_dir(crates.join(folder)).expect("the options are there"));
    let files = options.map(|entry| entry.expect("an entry").path());
    let mut texts = 0;
    for file in files.chain([crates.join("smbscope-cli/src/arguments.rs")]) {
        let source = std::fs::read_to_string(&file).expect("a source file");
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with("///") && pair[1].starts_with("#[arg(")) {
            texts += 1;
            let is_complete = pair[0].ends_with(['.', ']']);
            assert!(is_complete || pair[1] == "#[arg(skip)]", "{}: {}", file.display(), pair[0]);
        }
    }
    assert!(texts > 100, "{texts}");
}

/// Returns the words that a shell makes of the smbscope commands in an example.
fn words(example: &str) -> Vec<Vec<String>> {
    let script = format!(
        "smbscope() {{ printf '%s\\0' \"$@\"; printf '\\n'; }}\ntcpdump() {{ :; }}\nman() {{ cat; }}\n{}",
        without_redirection(example)
    );
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-euc", &script]).env_clear().env("HOME", "/home/ann").output().expect("sh runs");
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.split_terminator('\0').map(str::to_owned).collect()).collect()
}

/// Cuts an example off at a `>` outside of quotes.
fn without_redirection(example: &str) -> &str {
    let mut ends = example.match_indices(" >").map(|(at, _)| &example[..at]);
    ends.find(|before| before.matches('\'').count() % 2 == 0).unwrap_or(example)
}

#[test]
fn every_command_has_examples_that_its_parser_takes() {
    for (name, command) in commands().into_iter().skip(1) {
        let after = command.get_after_help().map_or_else(String::new, ToString::to_string);
        let examples: Vec<&str> = after.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert!(after.starts_with("Examples:\n") && !examples.is_empty(), "{name} has no example");
        let mut parsed = 0;
        for example in examples {
            // Wrapped lines can't be pasted.
            assert!(example.chars().count() <= 78, "{name}: {example}");
            // `man` passes a page on, so its own command is looked at alone.
            for words in words(example.split(" | man").next().unwrap_or(example)) {
                let line = std::iter::once("smbscope".to_owned()).chain(words);
                let found = Arguments::command().try_get_matches_from(line).map(|_| ());
                assert!(found.is_ok(), "{name}: {example}: {}", found.unwrap_err());
                parsed += 1;
            }
        }
        assert!(parsed > 0, "{name}");
    }
}
