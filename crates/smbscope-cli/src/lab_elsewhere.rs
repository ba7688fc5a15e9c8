//! `smbscope lab` on systems other than Linux: one line that says what to do.

use crate::arguments::LabArguments;
use smbscope_lab::Launcher;
use smbscope_run::SambaReader;

pub(crate) fn run(_: &LabArguments) -> anyhow::Result<()> {
    smbscope_lab::available().map_err(anyhow::Error::msg)
}

pub(crate) fn samba_reader() -> anyhow::Result<Option<SambaReader>> {
    Ok(None)
}

pub(crate) fn kept() -> anyhow::Result<Launcher> {
    Ok(Launcher::new())
}
