//! Causes on the client: dialect, connections, serial requests.

use crate::causes::scene::{on, plain, provoked};

#[test]
fn smb1_in_use() {
    let list = |dialect: &str| format!("OPTIONS='-m {dialect}'; captured client 'ls;ls;ls'");
    let (smb1, smb3) = (list("NT1"), list("SMB3_11"));
    provoked("smb1-in-use", &plain(&smb1), &plain(&smb3));
}

#[test]
fn encrypted() {
    let list = |share: &str| format!("SHARE={share}; captured client 'ls;ls;ls'");
    provoked("encrypted", &plain(&list("enc")), &plain(&list("share")));
}

#[test]
fn negotiate_churn() {
    let mount = |times: u32| format!("again() {{ for n in $(seq {times}); do client ls; done; }}; captured again");
    provoked("negotiate-churn", &on(&["--delay", "5ms"], &mount(8)), &on(&["--delay", "5ms"], &mount(1)));
}

#[test]
fn slow_logon() {
    let login = |password: &str| {
        format!("again() {{ for n in 1 2 3 4 5 6; do PASSWD={password} client ls; done; true; }}; captured again")
    };
    let (wrong, right) = (login("wrong"), login("$SMBSCOPE_PASSWORD"));
    provoked("slow-logon", &on(&["--delay", "5ms"], &wrong), &on(&["--delay", "5ms"], &right));
}

#[test]
fn dfs_referral() {
    const LAB: [&str; 6] =
        ["--smb-conf", "host msdfs = yes", "--smb-conf", "[share] msdfs root = yes", "--delay", "60ms"];
    let list = r#"ln -s "msdfs:$SMBSCOPE_LAB_HOST\\enc" "$HERE/link"; captured client 'ls link\*' || true"#;
    provoked("dfs-referral", &on(&LAB, list), &on(&LAB[..4], list));
}

/// Reads 64 KiB blocks over a round trip of 10 ms, one at a time or eight at a time.
#[test]
fn serial_client() {
    let (one, eight) = (sweep("block=64KiB"), sweep("block=64KiB --set depth=8"));
    provoked("serial-client", &on(&["--delay", "5ms"], &one), &on(&["--delay", "5ms"], &eight));
}

#[test]
fn rtt_bound() {
    let one = sweep("block=64KiB");
    provoked("rtt-bound", &on(&["--delay", "5ms"], &one), &plain(&one));
}

/// Reads a 16 MiB file with these workload parameters.
fn sweep(how: &str) -> String {
    let load = format!("load --workload blocksweep --set size=16MiB --set {how} --passes 1");
    format!("{load}; captured {load}")
}

/// Runs an inline workload for this time.
fn own(workload: &str, time: &str) -> String {
    format!(
        "cat >\"$CAPTURE.toml\" <<'END'\nname = \"scene\"\n{workload}\nEND\n\
         TIME=1s; load --workload \"$CAPTURE.toml\"; TIME={time}; captured load --workload \"$CAPTURE.toml\""
    )
}

/// One read every 20 ms, against one every 400 ms.
#[test]
fn client_bound() {
    let think = |time: &str| {
        let reads = "steps = [{ do = \"read\", of = \"data\", offset = \"random\", length = \"64KiB\" }]";
        let start = "[start]\nsteps = [{ do = \"open\", file = \"random\", access = \"read\", as = \"data\" }]";
        let workload = format!(
            "think = \"{time}\"\n[files]\ncount = 1\nsize = \"16MiB\"\n{start}\n[[operation]]\nname = \"read\"\n{reads}"
        );
        own(&workload, "8s")
    };
    let (program, person) = (think("20ms"), think("400ms"));
    provoked("client-bound", &plain(&program), &plain(&person));
}

#[test]
fn metadata_heavy() {
    let load = |workload: &str| format!("TIME=4s; captured load --workload {workload}");
    let far = ["--delay", "1ms"];
    provoked("metadata-heavy", &on(&far, &load("metadata")), &on(&far, &load("read")));
}

#[test]
fn small_io() {
    let (small, large) = (sweep("block=4KiB"), sweep("block=1MiB"));
    provoked("small-io", &plain(&small), &plain(&large));
}

#[test]
fn flush_heavy() {
    let write = |flush: &str| {
        let steps =
            format!("steps = [{{ do = \"write\", of = \"data\", offset = \"random\", length = \"8KiB\" }}{flush}]");
        let start = "[start]\nsteps = [{ do = \"open\", file = \"random\", access = \"both\", as = \"data\" }]";
        let workload =
            format!("[files]\ncount = 1\nsize = \"1MiB\"\n{start}\n[[operation]]\nname = \"write\"\n{steps}");
        own(&workload, "3s")
    };
    let (each, none) = (write(", { do = \"flush\", of = \"data\" }"), write(""));
    provoked("flush-heavy", &plain(&each), &plain(&none));
}

/// A read limit of 64 KiB, against Samba's default of 8 MiB.
#[test]
fn large_mtu_off() {
    let get = "file large 20000000; captured client 'get large /dev/null'";
    let limited = ["--delay", "2ms", "--smb-conf", "smb2 max read = 65536"];
    provoked("large-mtu-off", &on(&limited, get), &on(&limited[..2], get));
}

#[test]
fn signing_cost() {
    let get = |protection: &str| {
        format!(
            "file large 150000000; OPTIONS='--client-protection={protection}'; captured client 'get large /dev/null'"
        )
    };
    let (signed, unsigned) = (get("sign"), get("off"));
    provoked("signing-cost", &plain(&signed), &plain(&unsigned));
}

#[test]
fn old_dialect() {
    let list = "captured client 'ls;ls;ls'";
    provoked("old-dialect", &on(&["--max-dialect", "2.1"], list), &plain(list));
}
