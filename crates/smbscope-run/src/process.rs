//! Other programs: shell commands of a variant or a launch, and programs that end together with this process.

use smbscope_lab::command_for;
use std::path::PathBuf;
use std::process::Stdio;

pub(crate) fn run_commands(when: &str, commands: &[String], environment: &[(&str, String)]) -> Result<(), String> {
    for command in commands {
        let mut shell = command_for("/bin/sh");
        shell.args(["-c", command]).envs(environment.iter().map(|(name, value)| (name, value)));
        let output = shell.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("the command {when} the run cannot be run: {command}: {error}"))?;
        if !output.status.success() {
            let said = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
            let last = said.iter().flat_map(|text| text.lines().rev()).find(|line| !line.trim().is_empty());
            let said = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
            return Err(format!("the command {when} the run failed ({}): {command}{said}", output.status));
        }
    }
    Ok(())
}

/// Shell script that runs a command until its standard input is closed. The input is a pipe whose other end only this
/// process holds, so the kernel closes it however this process ends. An orphaned capture would fill the disk.
pub(crate) const UNTIL_END_OF_INPUT: &str = r#"exec 3<&0
"$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -TERM "$program"; } 2>/dev/null & watch=$!
exec 3<&-
wait "$program"; status=$?
kill "$watch" 2>/dev/null
exit "$status""#;

/// Finds a program on the path or in the sbin directories, which ordinary users don't have on their path.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_that_fails_is_told_with_its_last_words() {
        let environment = [("SMBSCOPE_VARIANT", "fast".to_owned())];
        let run = |commands: &[&str]| {
            let commands: Vec<String> = commands.iter().map(|text| (*text).to_owned()).collect();
            super::run_commands("before", &commands, &environment)
        };
        assert_eq!(run(&["true", "test $SMBSCOPE_VARIANT = fast"]), Ok(()));
        let error = run(&["echo first; echo no such disk >&2; exit 3", "false"]).unwrap_err();
        assert!(error.ends_with("exit 3: no such disk") && error.contains("(exit status: 3)"), "{error}");
    }
}
