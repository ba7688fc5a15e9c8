//! What an episode is called.

use crate::format::{clean, shorten_path};
use smbscope_diagnose::{Episode, Kind};

/// Longest name of what an episode is about.
const NAME_MAX: usize = 40;

/// `launch of app\office.exe`
pub(crate) fn label(episode: &Episode) -> String {
    let about = episode.about.as_ref().map(|path| shorten_path(&clean(path), NAME_MAX));
    let of = |what: &str| match &about {
        Some(about) => format!("{what} of {about}"),
        None => what.to_owned(),
    };
    match episode.kind {
        Kind::Logon => "logon".to_owned(),
        Kind::Launch => of("application launch"),
        Kind::Document => of("opening"),
        Kind::Settings => of("reading the settings"),
        Kind::Copy => match episode.bytes_read >= episode.bytes_written {
            true => "copy from the server".to_owned(),
            false => "copy to the server".to_owned(),
        },
        Kind::Search => "search".to_owned(),
        Kind::Other => "other work".to_owned(),
    }
}
