//! Measures the client's cost per operation (open, read a byte, close) against a server in another process: the
//! scripted one, or any other with `user=NAME` and the password in `SMBSCOPE_PASSWORD`.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example scripted_server -- --listen 127.0.0.1:4450 --forever &
//! cargo run --release -p smbscope-load --example operation_cost -- 127.0.0.1:4450 100 10 2.1
//! smbscope lab run -- sh -c 'operation_cost 127.0.0.1:$SMBSCOPE_LAB_PORT 8 10 nt1 user=$SMBSCOPE_LAB_USER'
//! ```
//!
//! Arguments: address, sessions, seconds, dialect (`nt1`, `2.0.2`, `2.1`, `3.0`, `3.0.2`, `3.1.1`), then in any order
//! `share=NAME` (default `share`), `user=NAME` (default guest), and `compound` to send the three commands as one. All
//! sessions run in one thread, a task each. The file is created first and removed at the end.

use smbscope_client::{
    ClientSession, CreateDisposition, Credentials, OpenParameters, Secret, SessionOptions, access, create_options,
};
use smbscope_model::{Dialect, ExchangeOutcome};
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

const LOGONS: usize = 32;

const OPEN: OpenParameters<'static> = OpenParameters {
    path: "operation_cost.bin",
    access: access::READ_DATA | access::READ_ATTRIBUTES,
    share: 7,
    disposition: CreateDisposition::Open,
    options: 0,
    attributes: 0,
};

#[derive(Debug, Clone)]
struct Plan {
    options: SessionOptions,
    time: Duration,
}

#[derive(Debug, Default)]
struct Done {
    operations: u64,
    /// Time of each operation in nanoseconds.
    times: Vec<u64>,
    /// Time of each command in nanoseconds.
    response_times: Vec<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, sessions, seconds, dialect, rest @ ..] = &arguments[..] else {
        return Err("arguments: ADDRESS SESSIONS SECONDS DIALECT [share=NAME] [user=NAME] [compound]".into());
    };
    let address: SocketAddr = address.parse()?;
    let mut options = SessionOptions::new(&address.ip().to_string(), address, "share");
    options.dialect = parse_dialect(dialect)?;
    for word in rest {
        match word.split_once('=') {
            None if word == "compound" => options.compound = true,
            Some(("share", share)) => options.share = share.to_owned(),
            Some(("user", user)) => {
                let password = Secret::new(std::env::var("SMBSCOPE_PASSWORD")?);
                options.credentials = Credentials::Ntlm { domain: String::new(), user: user.to_owned(), password };
            }
            _ => return Err(format!("{word}: neither share=NAME nor user=NAME nor compound").into()),
        }
    }
    let plan = Plan { options, time: Duration::from_secs_f64(seconds.parse()?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, measure(plan, sessions.parse()?))
}

async fn measure(plan: Plan, count: usize) -> Result<(), Box<dyn Error>> {
    let mut host = ClientSession::connect(&plan.options).await?;
    println!("{:?}", host.facts());
    make_file(&mut host).await?;
    let before = resident_bytes()?;
    let logons = Rc::new(Semaphore::new(LOGONS));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (logons, options) = (logons.clone(), plan.options.clone());
        tasks.push(tokio::task::spawn_local(async move {
            let _turn = logons.acquire().await;
            ClientSession::connect(&options).await.map_err(|error| error.to_string())
        }));
    }
    let mut sessions = Vec::new();
    for task in tasks {
        sessions.push(task.await??);
    }
    let connected = start.elapsed();
    let grown = resident_bytes()?.saturating_sub(before);
    println!("connected {count} sessions in {connected:.2?}, {} bytes a session", grown / count.max(1) as u64);

    // Warm up for a tenth of the time: first uses allocate buffers, here and on the server.
    let (sessions, _) = all_work(sessions, plan.options.compound, plan.time / 10).await?;
    let cpu = cpu_time()?;
    let start = Instant::now();
    let (_sessions, mut all) = all_work(sessions, plan.options.compound, plan.time).await?;
    let elapsed = start.elapsed();
    let cpu = cpu_time()?.saturating_sub(cpu);
    println!(
        "{} operations in {elapsed:.2?}: {:.0}/s, CPU {:.2} us each",
        all.operations,
        all.operations as f64 / elapsed.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / all.operations as f64
    );
    println!("operation p50 {:.1} us p99 {:.1} us", at(&mut all.times, 0.5), at(&mut all.times, 0.99));
    println!("command p50 {:.1} us p99 {:.1} us", at(&mut all.response_times, 0.5), at(&mut all.response_times, 0.99));
    println!("resident at the end: {} KiB", resident_bytes()? / 1024);
    host.remove_file(OPEN.path).await?;
    host.disconnect().await?;
    Ok(())
}

/// Creates a file with one byte.
async fn make_file(session: &mut ClientSession) -> Result<(), Box<dyn Error>> {
    let create = OpenParameters {
        access: access::READ_DATA | access::WRITE_DATA | access::DELETE,
        disposition: CreateDisposition::OverwriteIf,
        options: create_options::NON_DIRECTORY,
        ..OPEN
    };
    let file = session.open(&create).await?.handle;
    session.write(file, 0, b"1").await?;
    Ok(session.close(file).await?)
}

/// Runs every session in its own task.
async fn all_work(
    sessions: Vec<ClientSession>,
    compound: bool,
    time: Duration,
) -> Result<(Vec<ClientSession>, Done), Box<dyn Error>> {
    let work = |session| async move { work(session, compound, time).await.map_err(|error| error.to_string()) };
    let tasks: Vec<_> = sessions.into_iter().map(|session| tokio::task::spawn_local(work(session))).collect();
    let (mut sessions, mut all) = (Vec::new(), Done::default());
    for task in tasks {
        let (session, done) = task.await??;
        sessions.push(session);
        all.operations += done.operations;
        all.times.extend(done.times);
        all.response_times.extend(done.response_times);
    }
    Ok((sessions, all))
}

async fn work(
    mut session: ClientSession,
    compound: bool,
    time: Duration,
) -> Result<(ClientSession, Done), smbscope_client::ClientError> {
    /// Number of times kept per session, to keep the overhead low.
    const KEPT: usize = 4096;
    let mut done = Done::default();
    let end = Instant::now() + time;
    session.samples().clear();
    loop {
        let start = Instant::now();
        if start >= end {
            return Ok((session, done));
        }
        if compound {
            session.open_read_close(OPEN.path, 0, 1).await?;
        } else {
            let opened = session.open(&OPEN).await?;
            session.read(opened.handle, 0, 1).await?;
            session.close(opened.handle).await?;
        }
        done.operations += 1;
        if done.times.len() < KEPT {
            done.times.push(start.elapsed().as_nanos() as u64);
        }
        for sample in session.samples().drain(..) {
            assert_eq!(sample.outcome, ExchangeOutcome::Complete, "{sample:?}");
            if let Some(time) = sample.response_time().filter(|_| done.response_times.len() < KEPT) {
                done.response_times.push(time.as_nanos() as u64);
            }
        }
    }
}

/// Returns a quantile in microseconds, by nearest rank.
fn at(times: &mut [u64], quantile: f64) -> f64 {
    times.sort_unstable();
    let rank = (times.len() as f64 * quantile) as usize;
    times.get(rank).map_or(f64::NAN, |nanos| *nanos as f64 / 1000.0)
}

/// Processor time of all threads (proc(5), schedstat: nanoseconds on a processor).
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Resident memory (proc(5), statm: pages).
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/statm")?;
    Ok(text.split(' ').nth(1).unwrap_or_default().parse::<u64>()? * 4096)
}

fn parse_dialect(text: &str) -> Result<Dialect, Box<dyn Error>> {
    Ok(match text {
        "nt1" => Dialect::NtLm012,
        "2.0.2" => Dialect::Smb2(0x0202),
        "2.1" => Dialect::Smb2(0x0210),
        "3.0" => Dialect::Smb2(0x0300),
        "3.0.2" => Dialect::Smb2(0x0302),
        "3.1.1" => Dialect::Smb2(0x0311),
        _ => return Err(format!("{text} is no dialect").into()),
    })
}
