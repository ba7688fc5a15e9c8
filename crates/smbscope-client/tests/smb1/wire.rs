//! Our traffic as dissected by tshark.

use crate::smb1::support::{connect, file, pattern, plain_samba, user};
use smbscope_client::{ByteRangeLock, ClientSigningPolicy, CreateDisposition, OpenParameters, SessionOptions, SetInfo};
use smbscope_wire::names::InfoLevel;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts tcpdump on the loopback interface and waits until it captures. Reports the skipped test if it can't.
fn capture(port: u16, into: &Path) -> Option<Child> {
    let child = Command::new("tcpdump")
        .args(["-i", "lo", "-B", "16384", "-s", "0", "-U", "-w"])
        .arg(into)
        .args(["tcp", "port", &port.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        smbscope_testkit::skip::missing("tcpdump is not installed");
        return None;
    };
    // tcpdump writes the file's header once it is capturing.
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end && child.try_wait().ok().flatten().is_none() {
        if into.metadata().is_ok_and(|file| file.len() >= 24) {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    smbscope_testkit::skip::unable("tcpdump may not capture here");
    let _ended_already = child.kill();
    let _status = child.wait();
    None
}

/// Sends every kind of request that the client supports.
async fn everything(options: &SessionOptions) {
    let mut session = connect(options).await;
    session.echo().await.unwrap();
    session.make_directory("d").await.unwrap();
    session.check_directory("d").await.unwrap();
    let name = "d\\a.dat";
    let opened = session.open(&file(name)).await.unwrap().handle;
    session.write(opened, 0, &pattern(150_000)).await.unwrap();
    session.read(opened, 0, 150_000).await.unwrap();
    session.flush(opened).await.unwrap();
    session.lock(opened, ByteRangeLock { offset: 1, length: 2, exclusive: true, wait: false }).await.unwrap();
    session.unlock(opened, 1, 2).await.unwrap();
    for info in [InfoLevel::FILE_BASIC_INFORMATION, InfoLevel::FILE_ALL_INFORMATION, InfoLevel::FILE_EA_INFORMATION] {
        session.query_file(opened, info).await.unwrap();
        session.query_path(name, info).await.unwrap();
    }
    session.query_file_system(InfoLevel::FILE_FS_SIZE_INFORMATION).await.unwrap();
    session.query_file_system(InfoLevel::FILE_FS_FULL_SIZE_INFORMATION).await.unwrap();
    for set in [
        SetInfo::Basic { creation: 0, last_access: 0, last_write: 0, change: 0, attributes: 0 },
        SetInfo::EndOfFile(10),
        SetInfo::Allocation(10),
        SetInfo::Delete(false),
        SetInfo::Rename { path: "b.dat", replace: true },
    ] {
        session.set_file(opened, set).await.unwrap();
    }
    session.close(opened).await.unwrap();
    let old_way = session.open_andx("d\\b.dat", 0x42, 0x11).await.unwrap().handle;
    session.close(old_way).await.unwrap();
    let basic = SetInfo::Basic { creation: 0, last_access: 0, last_write: 0, change: 0, attributes: 0x20 };
    session.set_path("d\\b.dat", basic).await.unwrap();
    session.list("d\\*", InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION, 2, None).await.unwrap();
    let directory =
        OpenParameters { path: "d", access: 0x81, options: 1, disposition: CreateDisposition::Open, ..file("d") };
    let directory = session.open(&directory).await.unwrap().handle;
    session.watch(directory, 3, false).await.unwrap();
    session.cancel_watch().await.unwrap();
    session.changes().await.unwrap_err();
    session.close(directory).await.unwrap();
    session.rename("d\\b.dat", "d\\c.dat").await.unwrap();
    session.remove_file("d\\c.dat").await.unwrap();
    session.remove_directory("d").await.unwrap();
    session.disconnect().await.unwrap();
}

#[tokio::test]
async fn tshark_finds_nothing_malformed_in_our_traffic() {
    if Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        smbscope_testkit::skip::unable("tshark is not installed");
        return;
    }
    let Some(server) = plain_samba() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("smb1.pcap");
    let Some(mut tcpdump) = capture(server.port(), &path) else { return };
    for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
        everything(&SessionOptions { signing, ..user(&server) }).await;
    }
    // The kernel delivers buffered packets within a second.
    std::thread::sleep(Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_child(&tcpdump);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    tcpdump.wait().unwrap();
    let port = format!("tcp.port=={},nbss", server.port());
    let tshark = |filter: &str| {
        let output = Command::new("tshark")
            .args(["-n", "-d", &port, "-r"])
            .arg(&path)
            .args(["-Y", filter, "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info"])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let requests = tshark("smb.flags.response == 0");
    assert!(requests.lines().count() > 60, "the capture holds our requests:\n{requests}");
    // tshark 4.0 misparses the hint in Samba's first token (MS-SPNG 2.2.1), regardless of the client.
    let not_ours = "smb.cmd == 0x72 && smb.flags.response == 1";
    let wrong = tshark(&format!("smb && (_ws.malformed || _ws.expert.severity >= 0x600000) && !({not_ours})"));
    assert_eq!(wrong, "");
}
