//! Slow storage, measured from outside, both directly and through Samba. Expected times follow from arithmetic.

mod common;

use common::{As, said, smbclient};
use smbscope_lab::{LabDialect, LabError, LabServer, LabServerSettings, Launcher, StateFolder, Storage, available};
use smbscope_testkit::{eventually, skip};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a server with such storage, or reports the test as skipped.
fn server(settings: LabServerSettings) -> Option<LabServer> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    match LabServer::start(&settings) {
        Ok(server) => Some(server),
        Err(LabError::Unavailable(why)) => {
            skip::unable(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn slow(storage: Storage) -> Option<LabServer> {
    server(LabServerSettings { storage, ..LabServerSettings::default() })
}

fn latency(milliseconds: u64) -> Storage {
    Storage { latency: Some(Duration::from_millis(milliseconds)), ..Storage::default() }
}

/// Runs smbclient commands as the server's user.
fn client(server: &LabServer, commands: &str) -> Option<String> {
    let user = As::User(server.user(), server.password());
    smbclient(server, server.share(), user, LabDialect::Smb311, commands).map(|output| said(&output))
}

/// Returns the mounts at or below this folder, as listed by the kernel, and none of servers whose names begin alike.
fn mounts(folder: &Path) -> Vec<String> {
    let list = fs::read_to_string("/proc/self/mounts").expect("there is a list of mounts");
    let is_below = |line: &&str| line.split(' ').nth(1).is_some_and(|at| Path::new(at).starts_with(folder));
    list.lines().filter(is_below).map(str::to_owned).collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}

/// 5 reads, 5 writes and a flush in sequence, 20 ms each.
#[test]
fn every_read_write_and_flush_takes_at_least_the_latency_and_a_name_does_not() {
    let Some(server) = slow(latency(20)) else { return };
    let path = server.share_folder().join("file");
    let (file, took) = timed(|| OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("made"));
    assert!(took < Duration::from_millis(20), "making a name took {took:?}");
    for offset in 0..5 {
        let ((), took) = timed(|| file.write_all_at(&[7; 4096], offset * 4096).expect("there is room"));
        assert!(took >= Duration::from_millis(20), "a write took {took:?}");
    }
    let mut block = [0; 4096];
    for offset in 0..5 {
        let ((), took) = timed(|| file.read_exact_at(&mut block, offset * 4096).expect("it is there"));
        assert!(took >= Duration::from_millis(20) && block == [7; 4096], "a read took {took:?}");
    }
    let ((), took) = timed(|| file.sync_all().expect("it is a file"));
    assert!(took >= Duration::from_millis(20), "a flush took {took:?}");
    let figures = server.record().storage().expect("it has slow storage");
    assert_eq!((figures.reads, figures.writes, figures.flushes, figures.outstanding), (5, 5, 1, 0));
    assert_eq!((figures.bytes_read, figures.bytes_written), (5 * 4096, 5 * 4096));
    assert!(figures.busy >= Duration::from_millis(11 * 20) && figures.weighted >= figures.busy, "{figures:?}");
}

/// 300,000 bytes take at least one write on upload and one read on download: 2 × 150 ms.
#[test]
fn what_samba_reads_and_writes_passes_the_disk() {
    let Some(server) = slow(latency(150)) else { return };
    let (file, copy) = (server.folder().join("file"), server.folder().join("copy"));
    let content: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
    fs::write(&file, &content).expect("the server's folder is not slow");
    let commands = format!("put {} file; get file {}", file.display(), copy.display());
    let (said, took) = timed(|| client(&server, &commands));
    let Some(said) = said else { return };
    assert!(fs::read(&copy).is_ok_and(|copied| copied == content), "{said}");
    assert!(took >= Duration::from_millis(300), "{took:?}");
    let figures = server.record().storage().expect("it has slow storage");
    assert!(figures.bytes_written == 300_000 && figures.bytes_read >= 300_000, "{figures:?}");
}

/// At 100 per second, at most 201 complete in 2 s, as the first starts at once, and at least three quarters of that.
/// 8 users have one request outstanding each, except during their own work: the mean queue is just below 8.
#[test]
fn operations_stay_below_the_limit_however_many_ask() {
    let Some(server) = slow(Storage { iops: Some(100), ..Storage::default() }) else { return };
    let path = server.share_folder().join("file");
    fs::write(&path, vec![1; 1 << 20]).expect("there is room");
    let before = server.record().storage().expect("it has slow storage");
    let (begun, count) = (Instant::now(), AtomicU32::new(0));
    thread::scope(|scope| {
        for user in 0..8 {
            let (count, path) = (&count, &path);
            scope.spawn(move || {
                let file = File::open(path).expect("it is there");
                let mut block = [0; 4096];
                while begun.elapsed() < Duration::from_secs(2) {
                    file.read_exact_at(&mut block, user * 4096).expect("it is there");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (seconds, count) = (begun.elapsed().as_secs_f64(), f64::from(count.into_inner()));
    assert!(count <= 100.0 * seconds + 1.0 && count >= 75.0 * seconds, "{count} in {seconds} s");
    let figures = server.record().storage().expect("it has slow storage");
    assert_eq!((figures.reads - before.reads) as f64, count);
    let queue = (figures.weighted - before.weighted).as_secs_f64() / seconds;
    assert!((6.0..=8.0).contains(&queue), "a queue of {queue}");
    let busy = (figures.busy - before.busy).as_secs_f64() / seconds;
    assert!((0.9..=1.0).contains(&busy), "busy for {busy} of the time");
}

/// 4 MB at 10 MB/s take 400 ms. The last request, alone in transit, takes at least 105 ms for a MiB.
#[test]
fn bytes_stay_below_the_bandwidth() {
    let Some(server) = slow(Storage { bandwidth: Some(10_000_000), ..Storage::default() }) else { return };
    let mut file = File::create(server.share_folder().join("file")).expect("it can be made");
    let (written, took) = timed(|| file.write_all(&vec![1; 4_000_000]));
    written.expect("there is room");
    assert!((Duration::from_millis(400)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

/// Expected values come from the same calls on the underlying folder, which the test accesses directly.
#[test]
fn files_are_those_of_the_folder_below() {
    let Some(server) = slow(latency(0)) else { return };
    let (above, below) = (server.share_folder().to_owned(), server.folder().join("storage"));
    fs::create_dir_all(above.join("a/b")).expect("folders can be made");
    fs::write(above.join("a/b/file"), "content").expect("a file can be made");
    symlink("b/file", above.join("a/link")).expect("a link can be made");
    fs::hard_link(above.join("a/b/file"), above.join("second")).expect("a second name can be made");
    fs::set_permissions(above.join("second"), Permissions::from_mode(0o640)).expect("it is ours");
    assert_eq!(fs::read_to_string(above.join("a/link")).expect("it leads to the file"), "content");
    assert_eq!(fs::read_to_string(below.join("second")).expect("it is there"), "content");
    let metadata = fs::metadata(below.join("a/b/file")).expect("it is there");
    assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (2, 0o640));
    // An open file stays the same file when it is renamed or removed.
    let mut open = OpenOptions::new().append(true).open(above.join("second")).expect("it is ours");
    fs::rename(above.join("second"), above.join("third")).expect("nobody minds");
    open.write_all(b", and more").expect("there is room");
    assert_eq!(fs::read_to_string(below.join("third")).expect("it is there"), "content, and more");
    fs::remove_file(above.join("third")).expect("it is ours");
    open.write_all(b"!").expect("it has another name still");
    assert_eq!(open.metadata().expect("it is open").len(), 18);
    open.set_len(3).expect("it is open for writing");
    let time = std::time::UNIX_EPOCH + Duration::from_nanos(1_234_567_890_123_456_789);
    open.set_modified(time).expect("it is ours");
    drop(open);
    let metadata = fs::metadata(below.join("a/b/file")).expect("it is there");
    assert_eq!((metadata.len(), metadata.modified().expect("there is a time")), (3, time));
    // A listing of thousands of names takes several requests.
    let many = above.join("many");
    fs::create_dir(&many).expect("a folder can be made");
    for number in 0..3_000 {
        fs::write(many.join(format!("a file with a long name, number {number:04}")), "").expect("there is room");
    }
    let mut names: Vec<_> =
        fs::read_dir(&many).expect("it is there").map(|entry| entry.expect("a name").file_name()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3_000);
    assert!(fs::remove_dir(&many).is_err());
    fs::remove_dir_all(&many).expect("all of it is ours");
    assert!(!below.join("many").exists());
    assert_eq!(fs::read_dir(above.join("none")).expect_err("it is not there").kind(), std::io::ErrorKind::NotFound);
}

/// Extended attributes hold the DOS attributes of Samba's files.
#[test]
fn dos_attributes_are_kept_where_the_folder_below_keeps_them() {
    let Some(server) = slow(latency(0)) else { return };
    let below = server.folder().join("storage/probe");
    fs::write(&below, "").expect("it can be made");
    let kept = rustix::fs::setxattr(&below, "user.probe", b"x", rustix::fs::XattrFlags::empty());
    if let Err(error) = kept {
        return skip::unable(format!("the file system of the server's folder has no attributes: {error}"));
    }
    let Some(said) = client(&server, "setmode probe +sh; allinfo probe") else { return };
    assert!(said.contains("attributes: HS") || said.contains("attributes: AHS"), "{said}");
    let mut names = [0; 256];
    let length = rustix::fs::listxattr(server.share_folder().join("probe"), &mut names).expect("it has some");
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    assert!(names.contains("user.probe") && names.contains("user.DOSATTRIB"), "{names:?}");
}

/// One process has a file open and another waits ten seconds for the disk, yet the server ends at once.
#[test]
fn a_server_ends_although_its_disk_is_in_use() {
    let Some(server) = slow(latency(10_000)) else { return };
    let (folder, share) = (server.folder().to_owned(), server.share_folder().to_owned());
    let open = File::create(share.join("open")).expect("names are not slow");
    let waiting = thread::spawn(move || fs::write(share.join("waiting"), "x"));
    let waits = || server.record().storage().is_some_and(|figures| figures.outstanding == 1);
    assert!(eventually(waits));
    // Samba waits as well: a process that waits for a file system can't be killed.
    let user = As::User(server.user(), server.password());
    let file = server.folder().join("file");
    fs::write(&file, "x").expect("the server's folder is not slow");
    let (address, password) = (server.address(), server.password().to_owned());
    let As::User(name, _) = user else { unreachable!("it was made so") };
    let mut put = Command::new("smbclient");
    put.arg(format!("//{}/{}", address.ip(), server.share())).args(["-p", &address.port().to_string()]);
    put.args(["-c", &format!("put {} file", file.display()), "--user", name]).env("PASSWD", password);
    let put = put.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn();
    if put.is_ok() {
        assert!(eventually(|| server.record().storage().is_some_and(|figures| figures.outstanding == 2)));
    }
    let (stopped, took) = timed(|| server.stop());
    stopped.expect("nothing is in the way");
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!folder.exists() && mounts(&folder).is_empty(), "{:?}", mounts(&folder));
    let _error = waiting.join().expect("it was answered");
    drop(open);
    if let Ok(mut put) = put {
        let _status = put.wait();
    }
}

#[test]
fn a_server_that_is_killed_and_one_that_fails_to_start_leave_no_mount() {
    let Some(server) = slow(latency(1)) else { return };
    let folder = server.folder().to_owned();
    assert_eq!(mounts(&folder).len(), 1);
    server.kill();
    drop(server);
    assert!(mounts(&folder).is_empty() && !folder.exists());
    let bad = LabServerSettings {
        storage: latency(1),
        extra: vec!["nonsense = yes".to_owned()],
        ..LabServerSettings::default()
    };
    let state = tempfile::tempdir().expect("a temporary directory can be made");
    let launcher = Launcher::new().state(StateFolder::new(state.path()).expect("the path is absolute"));
    let error = launcher.start(&bad).expect_err("Samba has no such setting").to_string();
    assert!(error.contains("nonsense"), "{error}");
    assert!(mounts(state.path()).is_empty(), "{:?}", mounts(state.path()));
}

/// The path contains characters that the kernel's mount list and mount options escape, and the folder's owner is not
/// root.
#[test]
fn a_given_folder_is_slow_only_through_the_share_and_stays() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let given = directory.path().join("with blanks, commas,fd=0 \\040 and\ta tab");
    fs::create_dir(&given).expect("a folder can be made");
    fs::write(given.join("secret"), "secret").expect("a file can be made");
    fs::set_permissions(given.join("secret"), Permissions::from_mode(0o600)).expect("it is ours");
    fs::write(given.join("mine"), "content").expect("a file can be made");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in [given.clone(), given.join("mine")] {
            chown(path, Some(1), Some(1)).expect("root may");
        }
    }
    let settings =
        LabServerSettings { storage: latency(150), share_folder: Some(given.clone()), ..LabServerSettings::default() };
    let Some(server) = server(settings) else { return };
    let at: PathBuf = server.record().storage_mount.clone().expect("it is mounted");
    let copy = server.folder().join("copy");
    let commands = format!("get mine {0}; get secret {0}.secret; mkdir made; put {0} made\\copy", copy.display());
    let (said, took) = timed(|| client(&server, &commands));
    let Some(said) = said else { return };
    assert_eq!(fs::read_to_string(&copy).unwrap_or_default(), "content", "{said}");
    assert!(took >= Duration::from_millis(300), "{took:?}");
    let made = fs::metadata(given.join("made/copy")).expect("it was made");
    if is_root {
        // Samba neither reads root's files nor creates files owned by root.
        assert!(said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
        assert!(!server.folder().join("copy.secret").exists());
        assert_eq!((made.uid(), fs::metadata(given.join("made")).expect("it was made").uid()), (1, 1));
    }
    let (read, took) = timed(|| fs::read_to_string(given.join("mine")));
    assert!(read.is_ok_and(|content| content == "content") && took < Duration::from_millis(150), "{took:?}");
    server.stop().expect("nothing is in the way");
    assert!(mounts(&at).is_empty() && !at.exists(), "{}", at.display());
    assert_eq!(fs::read_to_string(given.join("made/copy")).expect("it stays"), "content");
    assert_eq!(fs::read_to_string(given.join("secret")).expect("it stays"), "secret");
}

/// A small disk that is also slow: both are gone afterwards.
#[test]
fn slow_storage_can_be_full() {
    let settings = LabServerSettings { storage: latency(1), disk: Some(1 << 20), ..LabServerSettings::default() };
    let Some(server) = server(settings) else { return };
    let file = server.folder().join("file");
    fs::write(&file, vec![7; 2 << 20]).expect("the server's folder is on the machine's disk");
    let Some(said) = client(&server, &format!("put {} file", file.display())) else { return };
    assert!(said.contains("NT_STATUS_DISK_FULL"), "{said}");
    let folder = server.folder().to_owned();
    assert_eq!(mounts(&folder).len(), 2);
    server.stop().expect("nothing is in the way");
    assert!(mounts(&folder).is_empty() && !folder.exists());
}
