//! Manual pages and completion scripts that `make install` installs.

use crate::common::{Said, directory, finish};
use clap::CommandFactory;
use smbscope_cli::Arguments;
use std::process::{Command, Stdio};

fn smbscope(arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments);
    finish(command)
}

/// Returns a section of a page without roff's escapes of dashes.
fn section(page: &str, heading: &str) -> String {
    let heading = [format!(".SH {heading}"), format!(".SH \"{heading}\"")];
    let lines = page.lines().skip_while(|line| !heading.contains(&line.to_string())).skip(1);
    lines.take_while(|line| !line.starts_with(".SH")).map(|line| line.replace("\\-", "-") + "\n").collect()
}

/// Returns all visible verbs with the names of their pages, such as `lab` and `lab-up`.
fn verbs<'a>(command: &'a clap::Command, prefix: &str) -> Vec<(String, &'a clap::Command)> {
    let own = command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set());
    own.flat_map(|verb| {
        let name = format!("{prefix}{}", verb.get_name());
        let below = verbs(verb, &format!("{name}-"));
        [(name, verb)].into_iter().chain(below)
    })
    .collect()
}

#[test]
fn there_is_a_page_for_every_verb_that_shows_all_its_options() {
    let directory = directory("pages").join("share/man/man1");
    assert_eq!(smbscope(&["man", "--output", directory.to_str().expect("the path is UTF-8")]).output(), "");
    let mut command = Arguments::command();
    command.build();
    let verbs = verbs(&command, "");
    let mut expected: Vec<String> = verbs.iter().map(|(name, _)| format!("smbscope-{name}.1")).collect();
    expected.push("smbscope.1".to_owned());
    expected.sort();
    let listing = std::fs::read_dir(&directory).expect("the pages were written");
    let mut written: Vec<String> =
        listing.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    written.sort();
    assert_eq!(written, expected);

    for (name, verb) in verbs {
        let page = std::fs::read_to_string(directory.join(format!("smbscope-{name}.1")))
            .expect("there is a page for the verb");
        assert!(page.contains(&format!(".TH smbscope-{name} 1 ")), "{page}");
        let about = verb.get_about().expect("a verb says what it does").to_string();
        let about = about.replace('\'', "\\*(Aq");
        assert!(section(&page, "NAME").contains(&format!("smbscope-{name} - {about}")), "{page}");
        let synopsis = section(&page, "SYNOPSIS");
        let words = name.replace('-', " ");
        assert!(synopsis.starts_with(&format!("\\fBsmbscope {words}\\fR ")), "{synopsis}");
        // Options with a separate heading have a section of that name after the others.
        let options = page[page.find(".SH OPTIONS").expect("there are options")..].replace("\\-", "-");
        for long in verb.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(|a| a.get_long()) {
            for place in [&synopsis, &options] {
                assert!(place.contains(&format!("\\fB--{long}\\fR")), "--{long} is missing in {place}");
            }
        }
        assert!(section(&page, "SEE ALSO").starts_with("\\fBsmbscope\\fR(1), "), "{page}");
    }
}

#[test]
fn a_page_has_its_examples_and_exit_status_as_sections() {
    let said = smbscope(&["man", "analyze"]);
    let page = said.output();
    assert!(section(page, "EXAMPLES").contains(".EX\nsmbscope analyze capture.pcapng\n.EE\n"), "{page}");
    assert!(section(page, "EXIT STATUS").starts_with("0 done, "), "{page}");
    assert!(section(smbscope(&["man"]).output(), "SUBCOMMANDS").contains("smbscope-analyze(1)"));
}

#[test]
fn a_page_that_is_not_there_is_an_error_that_says_which_there_are() {
    let said = smbscope(&["man", "nix"]);
    assert!(said.error(1).starts_with("no manual page smbscope-nix; there are pages for analyze, "), "{}", said.err);
}

#[test]
fn help_explains_topics_and_commands_and_proposes_the_nearest() {
    let filters = smbscope(&["help", "filters"]);
    let columns = smbscope_stats::filter::Filter::columns();
    for (column, _) in columns {
        assert!(filters.output().contains(column), "{column} is missing in {}", filters.out);
    }
    let causes = smbscope(&["help", "causes"]);
    for (id, cause) in smbscope_diagnose::Catalogue::default().entries() {
        assert!(causes.output().contains(id) && causes.out.contains(cause.title), "{id}");
    }
    let workloads = smbscope(&["help", "workloads"]);
    for step in smbscope_load::workload::STEPS {
        assert!(workloads.output().contains(step.name), "{}", step.name);
    }
    for words in [&["lab", "up"][..], &["analyze"], &[]] {
        let help = smbscope(&[&["help"], words].concat());
        assert_eq!(help.output(), smbscope(&[words, &["--help"]].concat()).output());
    }
    let unknown = smbscope(&["help", "filtres"]);
    let expected = "there is no command or topic \"filtres\"; did you mean filters? The topics are capturing, causes, ";
    assert!(unknown.error(2).starts_with(expected), "{}", unknown.err);
    let page = smbscope(&["man", "anlyze"]);
    assert!(
        page.error(1).starts_with("no manual page smbscope-anlyze; did you mean analyze? there are "),
        "{}",
        page.err
    );
}

/// Returns bash's completions for the last word of a command line.
fn bash_offers(words: &[&str]) -> Vec<String> {
    let script = format!(
        "set -eu\nsource <(printf '%s' \"$SCRIPT\")\nCOMP_WORDS=({})\nCOMP_CWORD={}\n\
         _smbscope smbscope '{}' '{}' || true\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let mut command = Command::new("bash");
    command.args(["--norc", "-c", &script]).env("SCRIPT", smbscope(&["completions", "bash"]).output());
    finish(command).output().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_options_and_values() {
    assert_eq!(bash_offers(&["smbscope", "ana"]), ["analyze"]);
    assert_eq!(bash_offers(&["smbscope", "analyze", "--for"]), ["--format"]);
    let formats = bash_offers(&["smbscope", "analyze", "--format", "''"]);
    assert!(["text", "json", "csv"].iter().all(|format| formats.contains(&format.to_string())), "{formats:?}");
}

#[test]
fn every_shell_has_its_script_and_the_shells_at_hand_can_read_it() {
    for (shell, offers_format) in [
        ("bash", "--format"),
        ("zsh", "--format="),
        ("fish", "-l format"),
        ("powershell", "'--format'"),
        ("elvish", "--format"),
    ] {
        let said = smbscope(&["completions", shell]);
        assert!(said.output().contains(offers_format), "{shell}: {}", said.out);
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        let file = directory(&format!("completions-{shell}")).join("script");
        std::fs::write(&file, &said.out).expect("a file can be written");
        let check = Command::new(shell).arg("-n").arg(&file).stdin(Stdio::null()).output();
        match check {
            Ok(check) => assert!(check.status.success(), "{shell}: {}", String::from_utf8_lossy(&check.stderr)),
            // zsh and fish may be missing; bash is required by the Makefile.
            Err(error) => assert!(shell != "bash" && error.kind() == std::io::ErrorKind::NotFound, "{shell}: {error}"),
        }
    }
}
