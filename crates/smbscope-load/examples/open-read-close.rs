//! What the client costs: opens a file, reads a byte of it and closes it, again and again in one session.
//!
//! `open-read-close HOST:PORT SHARE DIALECT OPERATIONS [USER PASSWORD]`; prints the median and the client's CPU time of
//! an operation. The dialect is `nt1` or a revision as in `2.1`.

use smbscope_load::client::{
    Credentials, Disposition, Open, Options, Secret, Session, Signing, access, create_options,
};
use smbscope_model::Dialect;
use std::error::Error;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, share, dialect, operations, credentials @ ..] = &arguments[..] else {
        return Err("open-read-close HOST:PORT SHARE DIALECT OPERATIONS [USER PASSWORD]".into());
    };
    let mut options = Options::new("localhost", address.parse()?, share);
    options.signing = Signing::On;
    options.dialect = match dialect.as_str() {
        "nt1" => Dialect::NtLm012,
        "2.0.2" => Dialect::Smb2(0x0202),
        "2.1" => Dialect::Smb2(0x0210),
        "3.0" => Dialect::Smb2(0x0300),
        "3.0.2" => Dialect::Smb2(0x0302),
        _ => Dialect::Smb2(0x0311),
    };
    if let [user, password] = credentials {
        let password = Secret::new(password.clone());
        options.credentials = Credentials::Ntlm { domain: String::new(), user: user.clone(), password };
    }
    let operations: usize = operations.parse()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(&options, operations))
}

async fn measure(options: &Options, operations: usize) -> Result<(), Box<dyn Error>> {
    let mut session = Session::connect(options).await?;
    println!("{:?}", session.facts());
    let create = Open {
        path: "open-read-close.bin",
        access: access::READ_DATA | access::WRITE_DATA | access::DELETE,
        share: 7,
        disposition: Disposition::OverwriteIf,
        options: create_options::NON_DIRECTORY,
        attributes: 0,
    };
    let file = session.open(&create).await?.handle;
    session.write(file, 0, b"1").await?;
    session.close(file).await?;
    let open = Open { access: access::READ_DATA, disposition: Disposition::Open, ..create };
    for _ in 0..operations / 10 {
        once(&mut session, &open).await?;
    }
    let mut times = Vec::with_capacity(operations);
    let before = cpu();
    for _ in 0..operations {
        let start = Instant::now();
        once(&mut session, &open).await?;
        times.push(start.elapsed());
        session.samples().clear();
    }
    let used = cpu() - before;
    times.sort();
    session.remove_file(create.path).await?;
    session.disconnect().await?;
    let median = times.get(operations / 2).copied().unwrap_or_default();
    println!("median {median:?}, CPU {:.1} µs an operation", used.as_secs_f64() * 1e6 / operations as f64);
    Ok(())
}

async fn once(session: &mut Session, open: &Open<'_>) -> Result<(), Box<dyn Error>> {
    let file = session.open(open).await?.handle;
    session.read(file, 0, 1).await?;
    session.close(file).await?;
    Ok(())
}

/// Processor time of this process, which has one thread: the first number of its schedstat, in nanoseconds.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0))
}
