//! Causes in the network and in TCP.

use crate::causes::scene::{on, provoked};

#[test]
fn network_loss() {
    let gets = format!("file small 9000; captured client '{}'", "get small /dev/null;".repeat(100));
    provoked("network-loss", &on(&["--loss", "5%"], &gets), &on(&["--delay", "1ms"], &gets));
}

/// A client receive buffer of 16 KiB (doubled by the kernel), against the system default.
#[test]
fn window_limited() {
    let get =
        |options: &str| format!("file large 4000000; OPTIONS=\"{options}\"; captured client 'get large /dev/null'");
    let (small, usual) = (get("--option=socketoptions=SO_RCVBUF=16384"), get(""));
    provoked("window-limited", &on(&["--delay", "10ms"], &small), &on(&["--delay", "10ms"], &usual));
}

/// A 100 Mbit/s link transfers 60 MB in 5 s. smbclient, with many megabytes outstanding, is stopped for 2 s of these
/// and does not read from its socket.
#[test]
fn zero_window() {
    let get = |pause: &str| {
        format!(
            r#"file large 60000000
            paused() {{
                $CLIENT "//$SMBSCOPE_LAB_HOST/share" -c 'get large /dev/null' & client=$!
                sleep 1; {pause}
                wait $client
            }}
            captured paused"#
        )
    };
    let (stopped, running) = (get("kill -STOP $client; sleep 2; kill -CONT $client"), get("true"));
    let link = ["--bandwidth", "100mbit"];
    provoked("zero-window", &on(&link, &stopped), &on(&link, &running));
}
