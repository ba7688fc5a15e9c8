//! Slow links, full disks, virus scans and CPU load of a real server, measured from outside. Expected figures follow
//! from arithmetic.

mod common;

use common::{As, said, server, smbclient};
use smbscope_lab::{Antivirus, LabDialect, LabError, LabServer, LabServerSettings, LinkEmulation};
use smbscope_testkit::{eventually, skip};
use std::fs;
use std::time::{Duration, Instant};

/// Runs smbclient commands as the server's user.
fn run(server: &LabServer, commands: &str) -> Option<(String, Duration)> {
    let user = As::User(server.user(), server.password());
    let started = Instant::now();
    let output = smbclient(server, server.share(), user, LabDialect::Smb311, commands)?;
    Some((said(&output), started.elapsed()))
}

/// A session takes negotiate, two session setups and a tree connect, and `cd` two queries: about 10 round trips of 2
/// × 20 ms. At least 5 of them take 200 ms.
#[test]
fn a_delayed_server_answers_after_the_delay() {
    let settings = LabServerSettings { delay: Some(Duration::from_millis(20)), ..LabServerSettings::default() };
    let Some(server) = server(&settings) else { return };
    let Some((said, took)) = run(&server, "ls") else { return };
    assert!(said.contains("blocks available"), "{said}");
    assert!((Duration::from_millis(200)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

#[test]
fn a_network_that_is_not_slow_is_a_network_all_the_same() {
    let Some(server) = server(&LabServerSettings { delay: Some(Duration::ZERO), ..LabServerSettings::default() })
    else {
        return;
    };
    if let Some(LinkEmulation::Proxy { why }) = &server.record().link {
        return skip::unable(why);
    }
    assert_ne!(server.record().interface(), "lo");
    let Some((said, _)) = run(&server, "ls") else { return };
    assert!(said.contains("blocks available"), "{said}");
}

/// 2,000,000 bytes at 40 Mbit/s (5,000,000 bytes/s) take 400 ms.
#[test]
fn a_throttled_server_sends_no_faster_than_its_link() {
    let settings = LabServerSettings { bandwidth: Some(40_000_000), ..LabServerSettings::default() };
    let Some(server) = server(&settings) else { return };
    fs::write(server.share_folder().join("file"), vec![7; 2_000_000]).expect("the share can be written to");
    let target = server.folder().join("copy");
    let Some((said, took)) = run(&server, &format!("get file {}", target.display())) else { return };
    assert_eq!(fs::metadata(&target).expect("the file was fetched").len(), 2_000_000, "{said}");
    assert!((Duration::from_millis(399)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

#[test]
fn a_slow_link_ends_with_its_server() {
    let settings = LabServerSettings { delay: Some(Duration::from_millis(1)), ..LabServerSettings::default() };
    let Some(server) = server(&settings) else { return };
    let (address, interface) = (server.address(), server.record().interface().to_owned());
    let connects = || std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    assert!(connects());
    drop(server);
    // Without its interface, the private network's address is routed elsewhere and may even answer.
    let is_gone = || match interface.as_str() {
        "lo" => !connects(),
        network => !std::path::Path::new("/sys/class/net").join(network).exists(),
    };
    assert!(eventually(is_gone), "{interface}");
}

#[test]
fn a_full_disk_is_full_and_gone_afterwards() {
    let settings = LabServerSettings { disk: Some(1 << 20), ..LabServerSettings::default() };
    if let Err(why) = smbscope_lab::available() {
        return skip::missing(why);
    }
    let server = match LabServer::start(&settings) {
        Ok(server) => server,
        Err(LabError::Unavailable(why)) => return skip::unable(why),
        Err(error) => panic!("{error}"),
    };
    let file = server.folder().join("file");
    fs::write(&file, vec![7; 2 << 20]).expect("the server's folder is on the machine's disk");
    let Some((said, _)) = run(&server, &format!("put {} file", file.display())) else { return };
    assert!(said.contains("NT_STATUS_DISK_FULL"), "{said}");
    let folder = server.folder().to_owned();
    server.stop().expect("nothing is in the way");
    assert!(!folder.exists());
    let mounts = fs::read_to_string("/proc/self/mounts").expect("there is a list of mounts");
    assert!(!mounts.contains(folder.to_str().expect("the path is UTF-8")), "{mounts}");
}

#[test]
fn an_infected_file_is_refused_and_a_clean_one_is_not() {
    let settings = LabServerSettings { antivirus: Some(Antivirus::ClamAv(None)), ..LabServerSettings::default() };
    if let Err(why) = smbscope_lab::available() {
        return skip::missing(why);
    }
    let server = match LabServer::start(&settings) {
        Ok(server) => server,
        Err(LabError::Unavailable(why)) => return skip::missing(why),
        Err(error) => panic!("{error}"),
    };
    // EICAR test file in two halves, so that no scanner objects to this source.
    let infected = [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat();
    for (name, content) in [("infected", infected.as_str()), ("clean", "nothing to see here, move along")] {
        fs::write(server.share_folder().join(name), content).expect("the share can be written to");
    }
    let copy = server.folder().join("copy");
    let get = |name: &str| run(&server, &format!("get {name} {}", copy.display()));
    let Some((said, _)) = get("infected") else { return };
    assert!(said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
    let (said, _) = get("clean").expect("smbclient was there");
    assert!(said.contains("getting file"), "{said}");
    let log = fs::read_to_string(server.folder().join("log/clamd.log")).expect("the scanner has a log");
    assert!(log.contains("infected: Eicar-Test-Signature") && log.contains("FOUND"), "{log}");
    assert!(server.scanner_cpu_time().is_some());
}

/// One thread per core, although a container may have less CPU time. Without a keeper the threads run in this
/// process. The amount of work is tested in `busy`.
#[test]
fn a_busy_server_is_busy_as_long_as_it_lives() {
    let Some(server) = server(&LabServerSettings { cpu_load: Some(50), ..LabServerSettings::default() }) else {
        return;
    };
    let busy = || {
        let tasks = fs::read_dir("/proc/self/task").expect("/proc is mounted").filter_map(Result::ok);
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim_end() == "lab-busy").count()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(eventually(|| busy() >= cores), "{} threads for {cores} cores", busy());
    drop(server);
    assert!(eventually(|| busy() == 0));
}
