//! Patterns of opening, listing and looking up files and directories.

use crate::causes::scene::{on, plain, provoked};

/// smbclient's `allinfo` opens a file, queries it and closes it.
const LOOK_AT_60: &str = r#"client "$(seq -f 'cd music;allinfo song%05g;cd ..' 1 60 | tr '\n' ';')""#;

#[test]
fn ini_pattern() {
    // 300 settings, each with its own open, read and close, against one read of the file per pass.
    let settings = |workload: &str| {
        format!("load --workload {workload} --passes 1; captured load --workload {workload} --passes 5")
    };
    let (again, once) = (settings("ini --set settings=300"), settings("ini-once"));
    provoked("ini-pattern", &on(&["--delay", "1ms"], &again), &on(&["--delay", "1ms"], &once));
}

#[test]
fn small_file_copy() {
    let copy = |workload: &str| {
        format!("load --workload {workload} --passes 1; captured load --workload {workload} --passes 1")
    };
    let (many, one) = (copy("copy-small --set files=150"), copy("copy --set size=10MB"));
    // Without the delay, the cost would be negligible on a fast machine.
    provoked("small-file-copy", &on(&["--delay", "1ms"], &many), &on(&["--delay", "1ms"], &one));
}

#[test]
fn relisting() {
    let list = |times: usize| format!("files 500 . f; captured client '{}'", "ls;".repeat(times));
    provoked("relisting", &on(&["--delay", "10ms"], &list(6)), &on(&["--delay", "10ms"], &list(1)));
}

#[test]
fn list_then_stat() {
    let look = format!("files 60 music song; captured client 'ls music\\*'; captured {LOOK_AT_60}");
    let both = look.replace("captured client 'ls music\\*'; captured client \"", "captured client \"ls music\\*;");
    let list = "files 60 music song; captured client 'ls music\\*;ls music\\*'";
    provoked("list-then-stat", &on(&["--delay", "2ms"], &both), &on(&["--delay", "2ms"], list));
}

#[test]
fn small_list_buffer() {
    // SMB 2.0.2 limits a response to 64 KiB, SMB 3.1.1 to 8 MiB. smbclient then requests more than 64 KiB.
    let list = |dialect: &str| format!("files 6000 . file; OPTIONS='-m {dialect}'; captured client ls");
    let (small, large) = (list("SMB2_02"), list("SMB3_11"));
    provoked("small-list-buffer", &on(&["--delay", "10ms"], &small), &on(&["--delay", "10ms"], &large));
}

#[test]
fn huge_directory() {
    let list = |files: u32| format!("files {files} . file; captured client ls");
    provoked("huge-directory", &on(&["--delay", "5ms"], &list(14_000)), &on(&["--delay", "5ms"], &list(1_000)));
}

#[test]
fn missing_file_probes() {
    // The healthy client queries files that exist.
    let look = |from: u32| {
        let to = from + 59;
        format!(
            r#"files 60 . song; captured client "$(seq -f 'allinfo song%05g' {from} {to} | tr '\n' ';')"
            grep -c OBJECT_NAME_NOT_FOUND "$CAPTURE.said" | grep -qx '0\|60'"#
        )
    };
    provoked("missing-file-probes", &on(&["--delay", "2ms"], &look(61)), &on(&["--delay", "2ms"], &look(1)));
}

#[test]
fn mac_metadata() {
    let look = |name: &str| {
        format!(r#"files 60 . {name}; captured client "$(seq -f 'allinfo {name}%05g' 1 60 | tr '\n' ';')""#)
    };
    let (mac, other) = (look("._photo"), look("photo"));
    provoked("mac-metadata", &on(&["--delay", "2ms"], &mac), &on(&["--delay", "2ms"], &other));
}

/// A process on the server holds a kernel lease on the document (fcntl(2), F_SETLEASE) for 3 s, like a local program
/// that has it open. Samba's open has to wait.
#[test]
fn office_slow_open() {
    if !smbscope_testkit::skip::has("python3") {
        return;
    }
    let open = |held: &str| {
        format!(
            r#"file report.docx 20000
            python3 -c 'import fcntl, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(sys.argv[1]); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK); print("held", flush=True); time.sleep({held})' \
                "$HERE/report.docx" >"$CAPTURE.held" & until grep -qs held "$CAPTURE.held"; do sleep 0.05; done
            [ {held} = 0 ] && wait
            captured client 'put /etc/hostname report.docx'"#
        )
    };
    provoked("office-slow-open", &plain(&open("3")), &plain(&open("0")));
}
