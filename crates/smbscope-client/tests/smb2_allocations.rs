//! The client allocates nothing per command in steady state: not for requests, responses or timers.

#![allow(unsafe_code)]

mod common;

use common::{create, options, reading, run, samba, user_options};
use smbscope_client::{
    ByteRangeLock, Cipher, ClientError, ClientSession, ClientSigningPolicy, Encryption, Info, SessionOptions, SetInfo,
};
use smbscope_lab::LabServerSettings;
use smbscope_testkit::server::{Script, ScriptedServer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread. A server in another thread has its own counter.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator with a counter.
struct Counting;

// SAFETY: every call is forwarded unchanged to the system allocator; the counter is a thread-local without a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn no_command_allocates_in_steady_state() {
    let server = ScriptedServer::start(Script::new()).unwrap();
    for dialect in common::DIALECTS {
        let mut options = SessionOptions::new("127.0.0.1", server.address(), "share");
        options.dialect = smbscope_model::Dialect::Smb2(dialect);
        assert_eq!(run(steady(&options)), 0, "dialect {dialect:04x}");
        options.compound = true;
        assert_eq!(run(steady(&options)), 0, "dialect {dialect:04x} with compounds");
    }
}

#[test]
fn neither_signing_nor_encryption_allocates() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let plain = options(&server, 0x0311);
    assert_eq!(run(steady(&plain)), 0, "as guest");
    for dialect in common::DIALECTS {
        let signed = SessionOptions { signing: ClientSigningPolicy::Required, ..user_options(&server, dialect) };
        assert_eq!(run(steady(&signed)), 0, "signed, dialect {dialect:04x}");
    }
    for cipher in [Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm] {
        let sealed = SessionOptions { encryption: Encryption::Required(Some(cipher)), ..user_options(&server, 0x0311) };
        assert_eq!(run(steady(&sealed)), 0, "{cipher:?}");
    }
}

/// Returns the allocations of twenty rounds, after a warm-up.
async fn steady(options: &SessionOptions) -> u64 {
    let mut session = ClientSession::connect(options).await.unwrap();
    let data = vec![7; 100_000];
    for _ in 0..5 {
        round(&mut session, &data).await.unwrap();
    }
    let before = ALLOCATIONS.get();
    for _ in 0..20 {
        round(&mut session, &data).await.unwrap();
    }
    let allocations = ALLOCATIONS.get() - before;
    session.disconnect().await.unwrap();
    allocations
}

async fn round(session: &mut ClientSession, data: &[u8]) -> Result<(), ClientError> {
    let path = "steady.bin";
    let file = session.open(&create(path)).await?.handle;
    // 64 KiB is one command in every dialect.
    session.write(file, 0, &data[..60_000]).await?;
    session.read(file, 0, 60_000).await?;
    // Two commands in 2.0.2.
    session.write(file, 0, data).await?;
    session.read(file, 0, 100_000).await?;
    session.flush(file).await?;
    session.lock(file, ByteRangeLock { offset: 0, length: 1, exclusive: true, wait: false }).await?;
    session.unlock(file, 0, 1).await?;
    session.query_file(file, Info::FILE_STANDARD_INFORMATION).await?;
    session.set_file(file, SetInfo::EndOfFile(10)).await?;
    session.close(file).await?;
    session.query_path(path, Info::FILE_NETWORK_OPEN_INFORMATION).await?;
    session.query_file_system(Info::FILE_FS_FULL_SIZE_INFORMATION).await?;
    session.list("*", Info::FILE_ID_BOTH_DIRECTORY_INFORMATION, 0, None).await?;
    session.open_read_close(path, 0, 1).await?;
    let file = session.open(&reading(path)).await?.handle;
    session.close(file).await?;
    session.remove_file(path).await?;
    session.echo().await?;
    session.samples().clear();
    Ok(())
}
