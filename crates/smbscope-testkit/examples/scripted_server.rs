//! Runs a scripted SMB server as a separate process, so that a client's CPU time can be measured on its own.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example scripted_server -- --listen 127.0.0.1:4450
//! smbclient -p 4450 -N //127.0.0.1/share -c ls
//! ```
//!
//! Prints its listen address. When standard input ends, prints its counters and exits.

use clap::Parser;
use smbscope_testkit::server::{Fault, Script, ScriptedServer};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Run an SMB server whose files contain zeros.
#[derive(Debug, Parser)]
struct Arguments {
    /// Listen address
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Size of every file in bytes
    #[arg(long, default_value_t = 1 << 20)]
    file_size: u64,
    /// Number of files in every directory
    #[arg(long, default_value_t = 10)]
    entries: usize,
    /// Delay of every response in microseconds (timer resolution: 1 ms)
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Stall all responses this many seconds after the start
    #[arg(long, requires = "stall_s")]
    stall_at_s: Option<f64>,
    /// Duration of the stall in seconds
    #[arg(long, requires = "stall_at_s")]
    stall_s: Option<f64>,
    /// Ignore the end of standard input and run until killed
    #[arg(long)]
    forever: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut script = Script {
        address: arguments.listen,
        file_size: arguments.file_size,
        entries: arguments.entries,
        ..Script::new()
    };
    if let (Some(at), Some(time)) = (arguments.stall_at_s, arguments.stall_s) {
        let stall = Fault::Stall(Duration::from_secs_f64(time)).always().once();
        script = script.rule(stall.between(Duration::from_secs_f64(at), Duration::MAX));
    }
    if arguments.delay_us > 0 {
        script = script.rule(Fault::Delay(Duration::from_micros(arguments.delay_us)).always());
    }
    let server = ScriptedServer::start(script)?;
    println!("{}", server.address());
    io::stdout().flush()?;
    if arguments.forever {
        loop {
            std::thread::park();
        }
    }
    io::stdin().read_to_end(&mut Vec::new())?;
    println!("{:?}", server.counters());
    Ok(())
}
