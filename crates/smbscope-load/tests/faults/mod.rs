//! Faulty servers: the client reports what happened, in time, and loses no measurement.
//!
//! This file has the session with a scripted server, and the operations that tests perform on it.

mod hostile;
mod malformed;
mod unusual;

use smbscope_client::{
    ByteRangeLock, ClientError, ClientSession, CreateDisposition, FileHandle, Info, OpenParameters, OpenResult,
    SessionOptions, SetInfo, access, create_options,
};
use smbscope_model::{Command, Dialect};
use smbscope_testkit::server::{Rule, Script, ScriptedServer};
use smbscope_wire::{smb1, smb2};
use std::future::Future;
use std::time::Duration;

/// One dialect of each kind: SMB1, SMB2, and SMB3 with negotiate contexts and preauthentication integrity.
const DIALECTS: [Dialect; 3] = [Dialect::NtLm012, Dialect::Smb2(0x0210), Dialect::Smb2(0x0311)];
/// Response timeout of the client.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Time limit of a test; exceeding it means that the client hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn is_smb1(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Smb2(_))
}

fn server(rules: impl IntoIterator<Item = Rule>) -> ScriptedServer {
    let script = rules.into_iter().fold(Script { file_size: 4096, ..Script::new() }, Script::rule);
    ScriptedServer::start(script).expect("a free port")
}

fn options(server: &ScriptedServer, dialect: Dialect) -> SessionOptions {
    SessionOptions { dialect, timeout: TIMEOUT, ..SessionOptions::new("localhost", server.address(), "share") }
}

/// Runs a client to completion, within [`PATIENCE`].
fn run<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let patient = async { tokio::time::timeout(PATIENCE, client).await };
    runtime.block_on(patient).expect("the client hangs")
}

/// A step in the life of a session, named by its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Negotiate,
    SessionSetup,
    TreeConnect,
    Open,
    Read,
    Write,
    Flush,
    Lock,
    Query,
    QueryFileSystem,
    Set,
    List,
    Close,
    Echo,
    Disconnect,
}

impl Step {
    const ALL: [Step; 15] = [
        Step::Negotiate,
        Step::SessionSetup,
        Step::TreeConnect,
        Step::Open,
        Step::Read,
        Step::Write,
        Step::Flush,
        Step::Lock,
        Step::Query,
        Step::QueryFileSystem,
        Step::Set,
        Step::List,
        Step::Close,
        Step::Echo,
        Step::Disconnect,
    ];

    /// Returns the first command of the step.
    fn command(self, dialect: Dialect) -> Command {
        use {smb1::Smb1Command as One, smb2::Smb2Command as Two};
        let (one, two) = match self {
            Step::Negotiate => (One::NEGOTIATE, Two::NEGOTIATE),
            Step::SessionSetup => (One::SESSION_SETUP_ANDX, Two::SESSION_SETUP),
            Step::TreeConnect => (One::TREE_CONNECT_ANDX, Two::TREE_CONNECT),
            Step::Open => (One::NT_CREATE_ANDX, Two::CREATE),
            Step::Read => (One::READ_ANDX, Two::READ),
            Step::Write => (One::WRITE_ANDX, Two::WRITE),
            Step::Flush => (One::FLUSH, Two::FLUSH),
            Step::Lock => (One::LOCKING_ANDX, Two::LOCK),
            Step::Query | Step::QueryFileSystem => (One::TRANSACTION2, Two::QUERY_INFO),
            Step::Set => (One::TRANSACTION2, Two::SET_INFO),
            Step::List => (One::TRANSACTION2, Two::QUERY_DIRECTORY),
            Step::Close => (One::CLOSE, Two::CLOSE),
            Step::Echo => (One::ECHO, Two::ECHO),
            Step::Disconnect => (One::TREE_DISCONNECT, Two::TREE_DISCONNECT),
        };
        if is_smb1(dialect) { Command::Smb1(one) } else { Command::Smb2(two) }
    }

    /// True for steps that belong to the connect.
    fn is_setup(self) -> bool {
        matches!(self, Step::Negotiate | Step::SessionSetup | Step::TreeConnect)
    }

    /// Performs the step, with a file opened for it.
    async fn on(self, session: &mut ClientSession, handle: FileHandle) -> Result<(), ClientError> {
        match self {
            Step::Negotiate | Step::SessionSetup | Step::TreeConnect => Ok(()),
            Step::Open => open(session).await.map(drop),
            Step::Read => session.read(handle, 0, 100).await.map(drop),
            Step::Write => session.write(handle, 0, &[7; 100]).await,
            Step::Flush => session.flush(handle).await,
            Step::Lock => {
                let range = ByteRangeLock { offset: 0, length: 1, exclusive: true, wait: false };
                session.lock(handle, range).await
            }
            Step::Query => session.query_file(handle, Info::FILE_BASIC_INFORMATION).await.map(drop),
            Step::QueryFileSystem => session.query_file_system(Info::FILE_FS_SIZE_INFORMATION).await.map(drop),
            Step::Set => session.set_file(handle, SetInfo::EndOfFile(7)).await,
            Step::List => {
                let mut entries = Vec::new();
                let info = Info::FILE_ID_BOTH_DIRECTORY_INFORMATION;
                session.list("dir\\*", info, 0, Some(&mut entries)).await.map(drop)
            }
            Step::Close => session.close(handle).await,
            Step::Echo => session.echo().await,
            Step::Disconnect => session.disconnect().await,
        }
    }
}

async fn open(session: &mut ClientSession) -> Result<OpenResult, ClientError> {
    let open = OpenParameters {
        path: "dir\\file.txt",
        access: access::READ_DATA | access::WRITE_DATA,
        share: 7,
        disposition: CreateDisposition::OpenIf,
        options: create_options::NON_DIRECTORY,
        attributes: 0,
    };
    session.open(&open).await
}

/// Connects, opens a file and performs the step. Returns the first error, and the session with its measurements.
async fn life(options: &SessionOptions, step: Step) -> (Result<(), ClientError>, Option<ClientSession>) {
    let mut session = match ClientSession::connect(options).await {
        Ok(session) => session,
        Err(error) => return (Err(error), None),
    };
    if step.is_setup() {
        return (Ok(()), Some(session));
    }
    let result = match open(&mut session).await {
        Ok(opened) => step.on(&mut session, opened.handle).await,
        Err(error) => Err(error),
    };
    (result, Some(session))
}

/// Asserts that an error is a single, meaningful line.
fn assert_clear(error: &ClientError) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n') && text.len() < 300, "not a clear line: {text:?}");
}
