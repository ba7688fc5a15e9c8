//! A scripted SMB server as a process of its own, so that a client's processor time can be measured apart.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example scripted_server -- --listen 127.0.0.1:4450
//! smbclient -p 4450 -N //127.0.0.1/share -c ls
//! ```
//!
//! It prints the address that it listens on, and when its standard input ends it prints what it did and ends, too.

use clap::Parser;
use smbscope_testkit::server::{Fault, Script, ScriptedServer};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// A server that answers with zeros.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Bytes in every file
    #[arg(long, default_value_t = 1 << 20)]
    file_size: u64,
    /// Files in every directory
    #[arg(long, default_value_t = 10)]
    entries: usize,
    /// Delay of every answer in microseconds (a timer of 1 ms resolution)
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Seconds after the start at which all answers stall
    #[arg(long, requires = "stall_s")]
    stall_at_s: Option<f64>,
    /// For how many seconds
    #[arg(long, requires = "stall_at_s")]
    stall_s: Option<f64>,
    /// Run until killed, whatever standard input does
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
