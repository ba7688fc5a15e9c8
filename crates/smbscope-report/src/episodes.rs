//! What an episode is called.

use crate::format::{bytes, clean, counted, shorten_path};
use smbscope_diagnose::{Episode, Kind};

/// Longest name of what an episode is about.
const NAME_MAX: usize = 40;

/// `start of app\office.exe`, `saved docs\report.docx`, `uploaded 40 files (12.0 MB)`
pub(crate) fn label(episode: &Episode) -> String {
    let about = episode.about.as_ref().map(|path| shorten_path(&clean(path), NAME_MAX));
    let of = |what: &str, alone: &str| match &about {
        Some(about) => format!("{what} {about}"),
        None => alone.to_owned(),
    };
    let moved = |what: &str, size: u64| match episode.files {
        0 => format!("{what} {}", bytes(size)),
        files => format!("{what} {} ({})", counted(files, "file", "files"), bytes(size)),
    };
    match episode.kind {
        Kind::Logon => "logon".to_owned(),
        Kind::Logoff => "logoff".to_owned(),
        Kind::Launch => of("start of", "program start"),
        Kind::Document => of("opened", "opened a document"),
        Kind::Save => of("saved", "saved a document"),
        Kind::Settings => of("read the settings", "read settings"),
        Kind::Download => moved("downloaded", episode.bytes_read),
        Kind::Upload => moved("uploaded", episode.bytes_written),
        Kind::Search => "search".to_owned(),
        Kind::Other => "other work".to_owned(),
    }
}
