//! Runs the commands of a variant before and after each run.

use smbscope_lab::command_for;
use std::process::Stdio;

/// Runs shell commands in order and stops at the first failure. The error is a single line.
pub(crate) fn run(when: &str, commands: &[String], environment: &[(&str, String)]) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_that_fails_is_told_with_its_last_words() {
        let environment = [("SMBSCOPE_VARIANT", "fast".to_owned())];
        let run = |commands: &[&str]| {
            let commands: Vec<String> = commands.iter().map(|text| (*text).to_owned()).collect();
            super::run("before", &commands, &environment)
        };
        assert_eq!(run(&["true", "test $SMBSCOPE_VARIANT = fast"]), Ok(()));
        let error = run(&["echo first; echo no such disk >&2; exit 3", "false"]).unwrap_err();
        assert!(error.ends_with("exit 3: no such disk") && error.contains("(exit status: 3)"), "{error}");
    }
}
