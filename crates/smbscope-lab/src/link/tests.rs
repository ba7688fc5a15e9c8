//! Proxy in front of an echo server. Expected times follow from arithmetic.

use super::lane::Rate;
use super::*;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;
use std::time::Instant;

fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("the proxy connects");
            thread::spawn(move || {
                let mut reader = stream.try_clone().expect("a socket can be cloned");
                let _ = io::copy(&mut reader, &mut stream).and_then(|_| stream.shutdown(Shutdown::Write));
            });
        }
    });
    address
}

fn proxy(server: SocketAddr, delay_ms: u64, bits: Option<u64>) -> (Proxy, TcpStream, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let link = LinkImpairments {
        delay: [Duration::from_millis(delay_ms); 2],
        rate: bits.map(Rate::from_bits),
        loss: 0.0,
        impaired: [true; 2],
    };
    let proxy = Proxy::start(vec![listener], server, link, None).expect("there are threads");
    let stream = TcpStream::connect(address).expect("the proxy listens");
    stream.set_nodelay(true).expect("the option exists");
    (proxy, stream, address)
}

fn round_trip(mut stream: &TcpStream) -> Duration {
    let started = Instant::now();
    stream.write_all(b"x").expect("the proxy takes it");
    stream.read_exact(&mut [0]).expect("it comes back");
    started.elapsed()
}

/// 10 round trips with 20 ms each way: 10 × 2 × 20 ms = 400 ms.
#[test]
fn each_direction_is_delayed() {
    let (_proxy, stream, _) = proxy(echo(), 20, None);
    let total: Duration = (0..10).map(|_| round_trip(&stream)).sum();
    assert!(total >= Duration::from_millis(400), "{total:?}");
    assert!(total < Duration::from_millis(1200), "{total:?}");
}

/// A delay does not limit the bytes in flight: 100 messages sent at once return after one round trip of 40 ms.
#[test]
fn messages_under_way_are_delayed_together_and_keep_their_order() {
    let (_proxy, mut stream, _) = proxy(echo(), 20, None);
    let started = Instant::now();
    let sent: Vec<u8> = (0..100).collect();
    for byte in &sent {
        stream.write_all(&[*byte]).expect("the proxy takes it");
    }
    let mut back = vec![0; sent.len()];
    stream.read_exact(&mut back).expect("all come back");
    assert_eq!(back, sent);
    let took = started.elapsed();
    assert!((Duration::from_millis(40)..Duration::from_secs(1)).contains(&took), "{took:?}");
}

/// 1,000,000 bytes at 80 Mbit/s (10,000,000 bytes/s) take 100 ms each way, and both ways overlap.
#[test]
fn bandwidth_is_limited_and_every_byte_arrives() {
    let (_proxy, stream, _) = proxy(echo(), 0, Some(80_000_000));
    let sent: Vec<u8> = (0..1_000_000u32).map(|index| (index % 251) as u8).collect();
    let started = Instant::now();
    let mut back = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&sent).expect("the proxy takes it");
            stream.shutdown(Shutdown::Write).expect("it is open");
        });
        (&stream).read_to_end(&mut back).expect("the end comes through");
    });
    let took = started.elapsed();
    assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
    // The first piece may leave up to a millisecond early.
    assert!((Duration::from_millis(99)..Duration::from_secs(1)).contains(&took), "{took:?}");
}

/// Two connections that send 500,000 bytes each share 10,000,000 bytes/s: at least 100 ms instead of 50.
#[test]
fn connections_share_the_link() {
    let (_proxy, first, address) = proxy(echo(), 0, Some(80_000_000));
    let second = TcpStream::connect(address).expect("the proxy listens");
    let started = Instant::now();
    thread::scope(|scope| {
        for stream in [&first, &second] {
            scope.spawn(move || {
                let mut stream = stream;
                let mut back = vec![0; 500_000];
                thread::scope(|scope| {
                    scope.spawn(move || (&mut &*stream).write_all(&[7; 500_000]).expect("the proxy takes it"));
                    stream.read_exact(&mut back).expect("all come back");
                });
            });
        }
    });
    let took = started.elapsed();
    assert!((Duration::from_millis(99)..Duration::from_secs(1)).contains(&took), "{took:?}");
}

#[test]
fn a_client_is_told_that_the_server_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let (_proxy, mut stream, _) = proxy(listener.local_addr().expect("it is bound"), 5, None);
    let (server, _) = listener.accept().expect("the proxy connects");
    drop(server);
    assert_eq!(stream.read(&mut [0]).expect("the end comes through"), 0);
}

#[test]
fn a_proxy_ends_with_its_connections() {
    let (proxy, mut stream, address) = proxy(echo(), 5, None);
    round_trip(&stream);
    drop(proxy);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    let patience = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < patience, "the proxy still listens");
        thread::sleep(Duration::from_millis(5));
    }
}
