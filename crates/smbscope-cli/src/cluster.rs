//! Load generators on other hosts. This program starts none by itself: the Python package, which carries it, knows Ray.

use crate::BadArguments;
use smbscope_load::engine::{Host, OnLostHost};
use smbscope_run::Cluster;
use std::sync::OnceLock;

/// Starts a load generator on each host of the cluster at an address, or so many.
pub type HostSource = dyn Fn(&str, u16) -> Result<Vec<Host>, String> + Send + Sync;

/// Who starts them, where anybody can.
static SOURCE: OnceLock<Box<HostSource>> = OnceLock::new();

/// Names who starts load generators.
pub(crate) fn set_source(source: Box<HostSource>) {
    // Only the first one counts: it is the same for the whole process.
    let _ = SOURCE.set(source);
}

/// The hosts of a run, which are started later.
pub(crate) fn hosts(address: &str, slots: u16, on_lost: OnLostHost) -> Result<Cluster, BadArguments> {
    let Some(source) = SOURCE.get() else {
        let what = "--cluster needs the Python package: pip install 'smbscope[ray]', and give the option to the command that it \
                    installs";
        return Err(BadArguments(what.to_owned()));
    };
    let address = address.to_owned();
    Ok(Cluster { hosts: Box::new(move || source(&address, slots)), on_lost })
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
