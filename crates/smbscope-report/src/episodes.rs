//! Descriptions of episodes.

use crate::format::{bytes, clean, counted, shorten_path};
use smbscope_diagnose::{Episode, EpisodeKind};

const NAME_MAX: usize = 40;

/// Describes an episode: `start of app\office.exe`, `saved docs\report.docx`, `uploaded 40 files (12.0 MB)`.
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
        EpisodeKind::Logon => "logon".to_owned(),
        EpisodeKind::Logoff => "logoff".to_owned(),
        EpisodeKind::Launch => of("start of", "program start"),
        EpisodeKind::Document => of("opened", "opened a document"),
        EpisodeKind::Save => of("saved", "saved a document"),
        EpisodeKind::Settings => of("read the settings", "read settings"),
        EpisodeKind::Download => moved("downloaded", episode.bytes_read),
        EpisodeKind::Upload => moved("uploaded", episode.bytes_written),
        EpisodeKind::Search => "search".to_owned(),
        EpisodeKind::Other => "other work".to_owned(),
    }
}
