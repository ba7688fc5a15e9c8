//! A scripted server for real clients: cheap canned responses, and faults at given times.
//!
//! Speaks SMB1 NT LM 0.12 and SMB 2.0.2 to 3.1.1, accepts all users as guests without a session key (so nothing is
//! signed or encrypted, MS-SMB2 3.2.5.3.1), and has every file that a client opens, full of zeros.
//!
//! ```
//! use smbscope_testkit::server::{Fault, Script, ScriptedServer};
//! use smbscope_wire::{smb2::Smb2Command, status::NtStatus};
//!
//! let script = Script::new()
//!     .rule(Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb2Command::CREATE).after(10).share(0.5))
//!     .rule(Fault::Reset.on(Smb2Command::READ).after(100).once());
//! let server = ScriptedServer::start(script).unwrap();
//! println!("listening on {}", server.address());
//! assert_eq!(server.counters().connections, 0);
//! ```

mod connection;
mod info;
mod malformed;
mod ntlm;
mod script;
mod smb1;
mod smb2;

pub use script::{AnyCommand, Fault, Flood, Malformed, Rule, Script};

use connection::Buffers;
use script::Rules;
use smbscope_model::Command;
use smbscope_wire::smb2::Smb2Command;
use std::array;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::LocalSet;

const BACKLOG: u32 = 4096;

/// A running server. Dropping it ends the server and its connections.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    outside: Arc<Outside>,
    thread: Option<JoinHandle<()>>,
}

/// Counters of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub connections: u64,
    pub open: u64,
    /// Commands received; each member of a compound counts.
    pub commands: u64,
    /// SMB2 commands received, by command code.
    pub smb2: [u64; SMB2_COMMANDS],
    pub faults: u64,
}

impl Counters {
    pub fn count(&self, command: Smb2Command) -> u64 {
        self.smb2.get(usize::from(command.0)).copied().unwrap_or_default()
    }
}

const SMB2_COMMANDS: usize = 20;

#[derive(Debug, Default)]
struct Outside {
    tally: Tally,
    added: Mutex<Vec<Rule>>,
    has_added: AtomicBool,
    stop: Notify,
}

impl Outside {
    fn added(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Tally {
    connections: AtomicU64,
    open: AtomicU64,
    commands: AtomicU64,
    smb2: [AtomicU64; SMB2_COMMANDS],
    faults: AtomicU64,
}

impl Tally {
    fn smb2(&self, command: Smb2Command) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        if let Some(counter) = self.smb2.get(usize::from(command.0)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn smb1(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    fn fault(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Shared {
    script: Script,
    rules: Rules,
    stalled_until: Option<Instant>,
    started: Instant,
    outside: Arc<Outside>,
}

impl Shared {
    /// Returns the current time, or the start time if no rule needs a clock.
    fn now(&mut self) -> Instant {
        if self.outside.has_added.swap(false, Ordering::Acquire) {
            let added = std::mem::take(&mut *self.outside.added());
            let now = Instant::now();
            added.into_iter().for_each(|rule| self.rules.add(rule, now));
        }
        if self.rules.is_empty() { self.started } else { Instant::now() }
    }

    fn decide(&mut self, command: Command, connection: u64, now: Instant) -> Option<Fault> {
        if self.rules.is_empty() { None } else { self.rules.decide(command, connection, now) }
    }
}

impl ScriptedServer {
    pub fn start(script: Script) -> io::Result<ScriptedServer> {
        let outside = Arc::new(Outside::default());
        let (sender, receiver) = mpsc::channel();
        let of_thread = outside.clone();
        let thread = std::thread::Builder::new().name("scripted-server".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => LocalSet::new().block_on(&runtime, run(script, of_thread, &sender)),
                Err(error) => drop(sender.send(Err(error))),
            }
        })?;
        let address = receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the server's thread ended")))?;
        Ok(ScriptedServer { address, outside, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn counters(&self) -> Counters {
        let tally = &self.outside.tally;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            connections: get(&tally.connections),
            open: get(&tally.open),
            commands: get(&tally.commands),
            smb2: array::from_fn(|command| get(&tally.smb2[command])),
            faults: get(&tally.faults),
        }
    }

    /// Adds a rule, effective immediately.
    pub fn add(&self, rule: Rule) {
        self.outside.added().push(rule);
        self.outside.has_added.store(true, Ordering::Release);
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.outside.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn run(script: Script, outside: Arc<Outside>, ready: &mpsc::Sender<io::Result<SocketAddr>>) {
    let listener = match listen(script.address).and_then(|listener| Ok((listener.local_addr()?, listener))) {
        Ok((address, listener)) => {
            drop(ready.send(Ok(address)));
            listener
        }
        Err(error) => return drop(ready.send(Err(error))),
    };
    let started = Instant::now();
    let rules = Rules::new(&script.rules, started);
    let shared = Shared { script, rules, stalled_until: None, started, outside: outside.clone() };
    let shared = Rc::new(RefCell::new(shared));
    let buffers = Rc::new(RefCell::new(Buffers::new()));
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of file descriptors: retry, as other connections may have ended.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            };
            let number = outside.tally.connections.fetch_add(1, Ordering::Relaxed);
            outside.tally.open.fetch_add(1, Ordering::Relaxed);
            let (shared, buffers, outside) = (shared.clone(), buffers.clone(), outside.clone());
            tokio::task::spawn_local(async move {
                // Errors are expected here: clients end connections as they like.
                drop(connection::serve(stream, number, shared, buffers).await);
                outside.tally.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = outside.stop.notified() => {}
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
