//! Starts from Windows' Explorer, in a console window that closes when the program ends: a double click explains the
//! program, and files dropped on it become a report that is opened.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Request of a start from the Explorer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExplorerStart {
    Explain,
    /// `analyze` with these arguments, which writes the page.
    Analyze {
        arguments: Vec<OsString>,
        page: PathBuf,
    },
    /// An ordinary command line, such as a shortcut's.
    Command,
}

impl ExplorerStart {
    pub(crate) fn from_arguments(arguments: &[OsString]) -> ExplorerStart {
        let [first, ..] = arguments else { return ExplorerStart::Explain };
        if !arguments.iter().all(|argument| Path::new(argument).is_file()) {
            return ExplorerStart::Command;
        }
        let page = page_of(Path::new(first));
        let options = [OsString::from("analyze"), "-o".into(), page.clone().into()];
        ExplorerStart::Analyze { arguments: options.into_iter().chain(arguments.iter().cloned()).collect(), page }
    }
}

/// Returns the page's name: next to the capture, with its whole name, so that no other file is meant.
fn page_of(capture: &Path) -> PathBuf {
    let mut name = capture.file_name().unwrap_or_default().to_owned();
    name.push(".html");
    capture.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_files_become_one_report_next_to_the_first() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let files = ["a b.pcap.zst", "c.pcapng"].map(|name| folder.path().join(name));
        files.iter().for_each(|file| std::fs::write(file, "").expect("it can be written"));
        let arguments: Vec<OsString> = files.iter().map(|file| file.clone().into()).collect();
        let page = folder.path().join("a b.pcap.zst.html");
        let expected = ["analyze".into(), "-o".into(), page.clone().into(), arguments[0].clone(), arguments[1].clone()];
        let start = ExplorerStart::from_arguments(&arguments);
        assert_eq!(start, ExplorerStart::Analyze { arguments: expected.to_vec(), page });
    }

    #[test]
    fn commands_are_left_alone_and_nothing_is_explained() {
        assert_eq!(ExplorerStart::from_arguments(&[]), ExplorerStart::Explain);
        assert_eq!(ExplorerStart::from_arguments(&["analyze".into(), "no such file".into()]), ExplorerStart::Command);
    }
}
