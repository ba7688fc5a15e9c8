//! smbclient works with the scripted server on every dialect, and tshark finds no malformed messages.

use smbscope_testkit::server::{Script, ScriptedServer};
use smbscope_testkit::skip::{has, has_optional};
use smbscope_testkit::{Conversation, pcap};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

/// All dialects, in smbclient's notation.
const DIALECTS: [&str; 6] = ["NT1", "SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"];

fn smbclient(address: SocketAddr, dialect: &str, folder: &Path, commands: &str) -> String {
    let output = Command::new("smbclient")
        .args(["-N", "-m", dialect, "-p", &address.port().to_string(), "//127.0.0.1/share", "-c", commands])
        .args(["-s", "/dev/null", "--option=client min protocol=NT1"])
        .arg(format!("--option=lock directory={}", folder.display()))
        .current_dir(folder)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{dialect}: {text}");
    text
}

#[test]
fn smbclient_lists_reads_and_writes_on_every_dialect() {
    if !has("smbclient") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = ScriptedServer::start(Script { file_size: 300_000, entries: 300, ..Script::new() }).unwrap();
    std::fs::write(folder.path().join("up"), [7; 200_000]).unwrap();
    for dialect in DIALECTS {
        let text = smbclient(server.address(), dialect, folder.path(), "ls; get a.bin down; put up b.bin; mkdir d");
        assert_eq!(text.matches("file00").count(), 300, "{dialect}: {text}");
        assert_eq!(std::fs::read(folder.path().join("down")).unwrap(), [0; 300_000], "{dialect}");
    }
}

#[test]
fn tshark_finds_no_malformed_packet_in_the_answers() {
    if !has("smbclient") || !has_optional("tshark") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = ScriptedServer::start(Script { file_size: 100, entries: 3, ..Script::new() }).unwrap();
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let proxy = Proxy::start(server.address());
        let commands = "ls; get a.bin down; put down b.bin; allinfo a.bin; rename a.bin c.bin; del c.bin; \
                        mkdir d; rmdir d; volume; chmod a.bin; setmode a.bin +r";
        smbclient(proxy.address, dialect, folder.path(), commands);
        let file = folder.path().join(format!("{number}.pcap"));
        std::fs::write(&file, proxy.capture()).unwrap();
        let output = Command::new("tshark")
            .args(["-r", &file.to_string_lossy(), "-T", "fields", "-e", "_ws.malformed", "-e", "_ws.expert.severity"])
            .args(["-e", "_ws.col.Info"])
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // 8388608 is the severity "error": the dissector could not continue.
        let wrong: Vec<&str> =
            text.lines().filter(|line| !line.starts_with('\t') || line.contains("8388608")).collect();
        assert!(text.contains("Close Response"), "{dialect}: nothing was dissected: {text}");
        assert!(wrong.is_empty(), "{dialect}: {wrong:#?}");
    }
}

/// For each message: sent by the client, bytes.
type Said = Arc<Mutex<Vec<(bool, Vec<u8>)>>>;

/// Forwards one connection and records both directions.
struct Proxy {
    address: SocketAddr,
    said: Said,
}

impl Proxy {
    fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = Proxy { address: listener.local_addr().unwrap(), said: Arc::default() };
        let said = proxy.said.clone();
        thread::spawn(move || {
            let client = listener.accept().expect("a client").0;
            let server = TcpStream::connect(server).expect("the server listens");
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let of_client = said.clone();
            thread::spawn(move || carry(from, to, true, &of_client));
            carry(server, client, false, &said);
        });
        proxy
    }

    /// Returns the recorded messages as a capture, in order.
    fn capture(&self) -> Vec<u8> {
        let said = self.said.lock().unwrap();
        let story = said.iter().enumerate().fold(Conversation::new(), |story, (index, (is_client, bytes))| {
            let at = 1_000_000 * (index as i64 + 1);
            if *is_client { story.client_sends(at, bytes.clone()) } else { story.server_sends(at, bytes.clone()) }
        });
        pcap::micros(&story.packets())
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, is_client: bool, said: &Said) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        said.lock().unwrap().push((is_client, buffer[..length].to_vec()));
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Write));
}
