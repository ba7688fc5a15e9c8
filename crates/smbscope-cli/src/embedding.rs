//! The program that embeds the command line: how to start it again, and how to start load generators on other hosts.
//! The binary itself can't start any: the Python package, which embeds it, does so through Ray.

use crate::BadArguments;
use smbscope_load::engine::{Host, OnLostHost};
use smbscope_run::Cluster;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Starts load generators on the hosts of the cluster at an address, the given number on each.
pub type HostSource = dyn Fn(&str, u16) -> Result<Vec<Host>, String> + Send + Sync;

/// Set only if the caller can start load generators.
static SOURCE: OnceLock<Box<HostSource>> = OnceLock::new();

pub(crate) fn set_source(source: Box<HostSource>) {
    // Only the first call counts; the process has just one.
    let _ = SOURCE.set(source);
}

pub(crate) fn hosts(address: &str, slots: u16, on_lost: OnLostHost) -> Result<Cluster, BadArguments> {
    let Some(source) = SOURCE.get() else {
        let what = "--cluster needs the Python package: pip install 'smbscope[ray]', and give the option to the command that it \
                    installs";
        return Err(BadArguments(what.to_owned()));
    };
    let address = address.to_owned();
    Ok(Cluster { hosts: Box::new(move || source(&address, slots)), on_lost })
}

/// Command that starts this program, if it is not an executable of its own.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Registers the command that starts this program. An empty one stands for the running executable.
pub(crate) fn set_program(program: Vec<OsString>) {
    if !program.is_empty() {
        let _ = PROGRAM.set(program);
    }
}

pub(crate) fn program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    match PROGRAM.get().map(Vec::as_slice) {
        Some([program, first @ ..]) => Ok((program.into(), first.to_vec())),
        _ => Ok((std::env::current_exe()?, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_knows_no_cluster_says_what_does() {
        let refused = hosts("auto", 1, OnLostHost::Continue).expect_err("nobody starts hosts here").to_string();
        assert!(refused.starts_with("--cluster needs the Python package: pip install 'smbscope[ray]'"), "{refused}");
    }
}
