//! `smbscope bench clean`: removes what benchmarks made on a share, and nothing else.

use super::site::Site;
use crate::arguments::CleanArguments;
use crate::terminal::say;
use anyhow::Context;
use smbscope_load::prepare;
use smbscope_report::counted;
use tokio::runtime::Builder;

/// Sessions that remove files at the same time.
const SESSIONS: u32 = 4;

/// Runs the command.
pub(crate) fn run(arguments: &CleanArguments) -> anyhow::Result<()> {
    let site = Site::named(&arguments.target, &arguments.connect)?;
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime for the client")?;
    let cleaned = runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, &mut |_| {}))?;
    match cleaned.removed {
        0 => say(&format!("there is nothing to remove at {}", arguments.target)),
        removed => say(&format!("removed {}", counted(removed, "file or directory", "files and directories"))),
    }
    Ok(())
}
