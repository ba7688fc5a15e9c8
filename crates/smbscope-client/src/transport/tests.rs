//! Tests frames against a local socket.

use super::*;
use crate::SessionOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn with_server<T>(
    server: impl FnOnce(std::net::TcpStream) + Send + 'static,
    client: impl AsyncFnOnce(FramedConnection) -> T,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = SessionOptions::new("localhost", listener.local_addr().unwrap(), "share");
    let server = thread::spawn(move || server(listener.accept().unwrap().0));
    let result = run(async { client(FramedConnection::connect(&options).await.unwrap()).await });
    server.join().unwrap();
    result
}

fn soon() -> Option<Instant> {
    deadline(Duration::from_secs(5))
}

#[test]
fn a_frame_carries_its_length_before_it() {
    let server = |mut stream: std::net::TcpStream| {
        let mut bytes = [0; 7];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0\0\x03abc");
    };
    with_server(server, async |mut link| {
        link.begin().extend_from_slice(b"abc");
        let sent = link.send(Duration::from_secs(5)).await.unwrap();
        assert!(sent >= link.sent_from());
    });
}

#[test]
fn frames_of_one_read_share_its_time_and_a_late_tail_has_its_own() {
    let server = |mut stream: std::net::TcpStream| {
        stream.write_all(b"\0\0\0\x01a\x85\0\0\0\0\0\0\x02bc\0\0\0\x02d").unwrap();
        thread::sleep(Duration::from_millis(30));
        stream.write_all(b"e").unwrap();
    };
    with_server(server, async |mut link| {
        // Lets all of the first write arrive, so that it is a single read.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let first = link.receive(soon()).await.unwrap();
        assert_eq!(link.frame(), b"a");
        let second = link.receive(soon()).await.unwrap();
        assert_eq!(link.frame(), b"bc", "the keep-alive between them is skipped");
        assert_eq!((first.first, first.last), (second.first, second.last));
        let third = link.receive(soon()).await.unwrap();
        assert_eq!(link.frame(), b"de");
        assert_eq!(third.first, first.last, "its first byte came with the first read");
        assert!(third.last - third.first >= Duration::from_millis(10));
    });
}

#[test]
fn a_frame_larger_than_the_buffer_is_held() {
    let server = |mut stream: std::net::TcpStream| {
        stream.write_all(b"\0\0\0\x01x\0\x03\0\0").unwrap();
        stream.write_all(&vec![7; 3 << 16]).unwrap();
    };
    with_server(server, async |mut link| {
        link.receive(soon()).await.unwrap();
        link.receive(soon()).await.unwrap();
        assert_eq!(link.frame().len(), 3 << 16);
        assert!(link.frame().iter().all(|byte| *byte == 7));
    });
}

#[test]
fn silence_is_a_timeout_and_a_close_an_end_of_file() {
    let server = |stream: std::net::TcpStream| {
        thread::sleep(Duration::from_millis(100));
        drop(stream);
    };
    with_server(server, async |mut link| {
        let began = Instant::now();
        let error = link.receive(deadline(Duration::from_millis(20))).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= Duration::from_millis(20) && began.elapsed() < Duration::from_millis(90));
        let error = link.receive(soon()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    });
}

#[test]
fn a_receive_that_is_given_up_loses_no_bytes() {
    let server = |mut stream: std::net::TcpStream| {
        stream.write_all(b"\0\0\0\x02a").unwrap();
        thread::sleep(Duration::from_millis(60));
        stream.write_all(b"b").unwrap();
    };
    with_server(server, async |mut link| {
        assert!(timeout(Duration::from_millis(20), link.receive(soon())).await.is_err());
        link.receive(soon()).await.unwrap();
        assert_eq!(link.frame(), b"ab");
    });
}

#[test]
fn bytes_that_are_no_frame_are_refused() {
    with_server(
        |mut stream| stream.write_all(b"HTTP/1.1 400").unwrap(),
        async |mut link| {
            let error = link.receive(soon()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().ends_with(" is not an SMB server: it answered HTTP"), "{error}");
        },
    );
    // After a valid frame, garbage is an error of an SMB server.
    with_server(
        |mut stream| stream.write_all(b"\0\0\0\x02abHTTP/1.1 400").unwrap(),
        async |mut link| {
            link.receive(soon()).await.unwrap();
            let error = link.receive(soon()).await.unwrap_err();
            assert_eq!(error.to_string(), "[48, 54, 54, 50] in place of a frame header");
        },
    );
}

#[test]
fn a_netbios_session_is_asked_for_by_the_hosts_name_then_by_any() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = SessionOptions::new("filer", listener.local_addr().unwrap(), "share");
    options.transport = Transport::NetBios;
    let server = thread::spawn(move || {
        for (name, answer) in [("EGEJEMEFFCCA", &b"\x83\0\0\x01\x82"[..]), ("CKFDENECFDEF", &b"\x82\0\0\0"[..])] {
            let mut stream = listener.accept().unwrap().0;
            let mut request = [0; 72];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request[..5], [0x81, 0, 0, 68, 32], "RFC 1002 4.3.2");
            assert_eq!(&request[5..17], name.as_bytes());
            stream.write_all(answer).unwrap();
        }
    });
    run(async { FramedConnection::connect(&options).await.unwrap() });
    server.join().unwrap();
}

#[test]
fn names_are_encoded_as_the_specification_shows() {
    // RFC 1001 14.1: "FRED" padded with spaces. The last pair is the suffix 0x20, which looks like a space.
    let mut out = Vec::new();
    put_name("FRED", FILE_SERVER, &mut out);
    assert_eq!(&out[1..33], b"EGFCEFEECACACACACACACACACACACACA");
    assert_eq!((out[0], out[33], out.len()), (32, 0, 34));
}

#[test]
fn an_address_has_no_netbios_name() {
    assert_eq!(netbios_name("filer.example.org"), Some("FILER".to_owned()));
    assert_eq!(netbios_name("10.0.0.1"), None);
    assert_eq!(netbios_name("fe80::1"), None);
    assert_eq!(netbios_name("a-name-of-sixteen"), None);
}
