//! `smbscope slim`: the copy gives the same report as the original; invalid input is refused.

use crate::common::{Said, bundled, directory, finish};
use std::path::Path;
use std::process::{Command, Stdio};

fn smbscope(arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments).env_remove("NO_COLOR").stdin(Stdio::null());
    finish(command)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// Returns the JSON report without the properties of the file.
fn report(capture: &Path) -> serde_json::Value {
    let said = smbscope(&["analyze", "--quiet", "--format", "json", text(capture)]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    // Proposed commands contain the file name.
    let unnamed = said.out.replace(text(capture), "CAPTURE");
    let mut report: serde_json::Value = serde_json::from_str(&unnamed).expect("it is JSON");
    report["captures"] = serde_json::Value::Null;
    for of_the_file in ["captured_bytes", "snapped_packets", "longest_cut_packet"] {
        report["quality"].as_object_mut().expect("an object").remove(of_the_file);
    }
    report
}

#[test]
fn the_report_on_a_slim_copy_is_that_on_the_original() {
    let folder = directory("slim-report");
    for name in ["demo-slow-server.pcap.zst", "demo-smb1-netbench.pcap.zst", "demo-lossy-network.pcap.zst"] {
        let (capture, copy) = (bundled(name), folder.join("copy.pcapng.zst"));
        let said = smbscope(&["slim", "-o", text(&copy), text(&capture)]);
        assert_eq!(said.status, Some(0), "{}", said.err);
        assert!(said.err.contains(" packets in "), "{}", said.err);
        assert_eq!(report(&copy), report(&capture), "{name}");
        let ratio = said.err.split("1/").nth(1).and_then(|behind| behind.split(' ').next()?.parse::<u32>().ok());
        assert!(ratio >= Some(8), "{}", said.err);
    }
}

#[test]
fn one_key_gives_one_set_of_names_and_no_key_another_one_each_time() {
    let folder = directory("slim-key");
    let capture = bundled("own/smbclient_SMB3_11.pcap.zst");
    let key = folder.join("site.key");
    std::fs::write(&key, [7; 32]).expect("it is written");
    let slim = |name: &str, options: &[&str]| {
        let copy = folder.join(name);
        let said = smbscope(&[&["slim", "-q", "--anonymize"], options, &["-o", text(&copy), text(&capture)]].concat());
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
        std::fs::read(copy).expect("it was written")
    };
    let with_key = |name| slim(name, &["--key-file", text(&key)]);
    assert!(with_key("a.pcapng") == with_key("b.pcapng"));
    assert!(slim("c.pcapng", &[]) != slim("d.pcapng", &[]));
    std::fs::write(&key, "short").expect("it is written");
    let said =
        smbscope(&["slim", "--anonymize", "--key-file", text(&key), "-o", text(&folder.join("e")), text(&capture)]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("a key needs 16 bytes or more, it has 5"), "{}", said.err);
}

#[test]
fn no_input_is_the_output_and_a_key_without_names_to_hide_is_refused() {
    let folder = directory("slim-refused");
    let capture = folder.join("capture.pcap.zst");
    std::fs::copy(bundled("own/smbclient_SMB3_11.pcap.zst"), &capture).expect("it is copied");
    let said = smbscope(&["slim", "-o", text(&capture), text(&capture)]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("it is the input"), "{}", said.err);
    let said = smbscope(&["slim", "--keep", "depth", "-o", "out", text(&capture)]);
    assert_eq!(said.status, Some(2), "{}", said.err);
    let said = smbscope(&["slim", "-o", text(&folder.join("out")), text(&folder.join("absent"))]);
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(!folder.join("out").exists());
}

#[test]
fn help() {
    let said = smbscope(&["slim", "--help"]);
    insta::assert_snapshot!("help_of_slim", said.output());
}
