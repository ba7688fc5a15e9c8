//! `smbscope bench clean`: removes what benchmarks made on a share, and nothing else.

use super::site::Site;
use crate::arguments::CleanArguments;
use crate::terminal::say;
use anyhow::{Context, bail};
use smbscope_load::prepare;
use smbscope_report::counted;
use tokio::runtime::Builder;

/// Sessions that remove files at the same time.
const SESSIONS: u32 = 4;

/// Runs the command.
pub(crate) fn run(arguments: &CleanArguments) -> anyhow::Result<()> {
    let site = Site::named(&arguments.target, &arguments.connect)?;
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime for the client")?;
    let within = arguments.connect.prepare_timeout;
    let cleaned = runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, within, &mut |_| {}))?;
    match cleaned.removed {
        0 if cleaned.left.count > 0 => {}
        0 => say(&format!("there is nothing to remove at {}", arguments.target)),
        removed => say(&format!("removed {}", counted(removed, "file or directory", "files and directories"))),
    }
    let left = &cleaned.left;
    if left.count > 0 {
        let more = left.count - left.paths.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bail!(
            "left on the share what smbscope did not make, and the directories that hold it: {}{more}; remove it \
             yourself, then run this again",
            left.paths.join(", ")
        );
    }
    Ok(())
}
