//! Keywords of the Python functions, written from the options of the commands: `make keywords`.

use crate::arguments::Arguments;
use clap::{Arg, ArgAction, Command, CommandFactory};
use smbscope_load::engine::Users;
use smbscope_testkit::generated::replaced;
use std::any::TypeId;
use std::fs;
use std::path::{Path, PathBuf};

/// A list of keywords in a Python file, and the options that it leaves out.
struct KeywordList {
    file: &'static str,
    command: &'static str,
    without: &'static [&'static [&'static str]],
    required: &'static [&'static str],
}

/// Options of `analyze` that concern a terminal or files.
const SHOWN: &[&str] =
    &["format", "full", "classic", "output", "csv-raw", "top", "color", "width", "quiet", "fail-if", "junit"];
/// Options that need the order of all commands, or the threads of one machine.
const OF_ONE_MACHINE: &[&str] = &["from", "to", "episode", "by", "sort", "threads"];

const LISTS: [KeywordList; 6] = [
    KeywordList { file: "_api.py", command: "analyze", without: &[SHOWN], required: &[] },
    KeywordList {
        file: "_api.py",
        command: "bench",
        without: &[&["format", "full", "color", "width", "plain", "quiet"]],
        required: &[],
    },
    KeywordList {
        file: "_api.py",
        command: "compare",
        without: &[&["format", "output", "color", "width", "quiet"]],
        required: &[],
    },
    KeywordList {
        file: "_api.py",
        command: "predict",
        without: &[&["format", "output", "color", "width", "quiet"]],
        required: &[],
    },
    KeywordList {
        file: "_api.py",
        command: "study",
        without: &[&["format", "dry-run", "color", "width", "quiet"]],
        required: &["output"],
    },
    KeywordList { file: "cluster/_job.py", command: "analyze", without: &[SHOWN, OF_ONE_MACHINE], required: &[] },
];

const END: &str = "    # End of the options.\n";
/// Set by `make keywords`.
const UPDATE: &str = "SMBSCOPE_UPDATE_KEYWORDS";

#[test]
fn python_has_the_options_of_the_command_line_as_keywords() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/smbscope");
    for list in LISTS {
        let path = package.join(list.file);
        let text = fs::read_to_string(&path).expect("a file of the Python package");
        let updated = with_keywords(&text, &list);
        if std::env::var_os(UPDATE).is_some() {
            fs::write(&path, &updated).expect("the file can be written");
        }
        assert!(
            text == updated || std::env::var_os(UPDATE).is_some(),
            "{}: the options of {} have changed; run `make keywords`",
            list.file,
            list.command
        );
    }
}

/// Replaces the lines between the marks of a list.
fn with_keywords(text: &str, list: &KeywordList) -> String {
    let begin = format!("    # Options of `smbscope {}`, written by `make keywords`.\n", list.command);
    let mut all = Arguments::command();
    let command = all.find_subcommand_mut(list.command).expect("a command");
    replaced(text, &begin, END, &keywords(command, list))
}

fn keywords(command: &Command, list: &KeywordList) -> String {
    let options = command.get_arguments().filter_map(|argument| Some((argument.get_long()?, argument)));
    let options = options.filter(|(name, _)| !list.without.iter().any(|names| names.contains(name)));
    options.map(|(name, option)| keyword(name, option, list.required.contains(&name))).collect()
}

/// Returns the line of a keyword.
fn keyword(name: &str, option: &Arg, is_required: bool) -> String {
    let (kind, default) = kind(option);
    let none = if is_required { "" } else { " | None = None" };
    let default = default.unwrap_or(none);
    let shadows = if ["filter", "set"].contains(&name) { "  # noqa: A002 - the name of the command line" } else { "" };
    // Words of the language.
    let name = if ["from", "if"].contains(&name) { format!("{name}_") } else { name.replace('-', "_") };
    format!("    {name}: {kind}{default},{shadows}\n")
}

/// Returns the type of a keyword, and the default of one that is never `None`.
fn kind(option: &Arg) -> (String, Option<&'static str>) {
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return ("bool".to_owned(), Some(" = False"));
    }
    if option.get_num_args().is_some_and(|count| count.min_values() == 0) {
        return ("bool | str".to_owned(), Some(" = False"));
    }
    let value = option.get_value_parser().type_id();
    let is = |types: &[TypeId]| types.iter().any(|kind| value == *kind);
    let name = option.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let numbers = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let one = if is(&[TypeId::of::<PathBuf>()]) {
        "Path"
    } else if is(&numbers) && ["N", "MIB", "PORT"].contains(&name) {
        "int"
    } else if is(&[TypeId::of::<f64>()]) {
        "float | str"
    } else if is(&[TypeId::of::<Users>()]) {
        "int | str"
    } else if name.contains("FILE") {
        "str | Path"
    } else {
        "str"
    };
    match option.get_action() {
        ArgAction::Append if is(&[TypeId::of::<(String, String)>()]) => ("Mapping[str, object]".to_owned(), None),
        ArgAction::Append if one == "str" => ("Several".to_owned(), Some(" = ()")),
        ArgAction::Append => (format!("{one} | Sequence[{one}]"), Some(" = ()")),
        _ => (one.to_owned(), None),
    }
}
