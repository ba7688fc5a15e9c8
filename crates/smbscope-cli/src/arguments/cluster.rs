//! Arguments of commands that can use several hosts.

use clap::Args;

#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Run the users on the hosts of this Ray cluster: `HOST:PORT`, `auto` for a running one, or `local` for this
    /// machine.
    ///
    /// Requires the Python package: `pip install 'smbscope[ray]'`. Passwords are sent to the hosts through Ray.
    #[arg(hide_short_help = true, long = "cluster", value_name = "ADDRESS", help_heading = "Cluster")]
    pub address: Option<String>,

    /// Start N load generators on each host of the cluster.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Cluster")]
    pub slots: u16,
}
