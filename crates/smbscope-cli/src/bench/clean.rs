//! `smbscope bench clean`: removes the files that bench created on a share.

use super::options::connect;
use crate::arguments::{CleanArguments, ConnectArguments};
use crate::terminal::say;
use anyhow::bail;
use smbscope_report::counted;

pub(crate) fn run(arguments: &CleanArguments) -> anyhow::Result<()> {
    let ConnectArguments { prepare_timeout, .. } = arguments.connect;
    let cleaned = smbscope_run::clean(&arguments.target, &connect(&arguments.connect), prepare_timeout)?;
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
