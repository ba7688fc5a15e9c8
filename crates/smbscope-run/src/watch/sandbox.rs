//! Least privilege for `watch`: it parses packets that anyone on the network may have made, for weeks, often as root.
//!
//! Four layers, each as far as the kernel knows it: capabilities, no_new_privs, Landlock (files) and seccomp (system
//! calls). A missing one is logged as information. The capture program is a child that was started before, so it keeps
//! its own rights.
//!
//! The user stays the same: a ring below `/var/lib` and a report below `/home` have different owners, and both have to
//! be written until the end.

use crate::files::directory_behind;
use crate::options::WatchOptions;
use landlock::{
    ABI, Access, AccessFs, BitFlags, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, path_beneath_rules,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, apply_filter_all_threads,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Newest version of Landlock whose rights are handled here.
const LANDLOCK: ABI = ABI::V6;

/// Read by libraries at any time: processors, memory and limits, time zones, random numbers.
const SYSTEM_READS: [&str; 6] =
    ["/proc", "/sys/devices/system", "/sys/fs/cgroup", "/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom"];
/// Read to find the address of a server whose counters are shown.
const NAME_LOOKUP_READS: [&str; 10] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
    "/usr/lib",
    "/lib",
    "/lib64",
];
/// Read for the speed of this machine's links and the packets that they dropped, besides /proc.
const MACHINE_READS: [&str; 2] = ["/sys/class/net", "/sys/devices"];
/// The display opens the terminal by its name if standard input is something else.
const SYSTEM_WRITES: [&str; 2] = ["/dev/null", "/dev/tty"];

static SANDBOX: OnceLock<Sandbox> = OnceLock::new();

struct Sandbox {
    keep: CapabilitySet,
    /// Commands are run later, and inherit all but capabilities.
    may_execute: bool,
    /// The counters of the server are read through new connections.
    may_connect: bool,
    ruleset: Option<RulesetCreated>,
}

/// Plans the sandbox of this process. Call it before any thread is started; [`enter_thread`] and opening the capture
/// apply it.
///
/// `read_later` are other files and directories to read; `saves_reports` permits new files in the working directory. The
/// command of `--on-cause` gets all rights of the user, so with one, only capabilities are dropped: commands would
/// inherit the other layers.
pub fn prepare(options: &WatchOptions, read_later: &[PathBuf], saves_reports: bool) {
    // Opening the capture reports an error of the ring.
    let _ = options.ring.limits();
    let mut writes: Vec<PathBuf> = options.ring.ring.iter().cloned().collect();
    let output = options.output.iter().filter(|file| file.as_os_str() != "-");
    writes.extend(output.filter_map(|file| directory_to_replace(file)));
    writes.extend(saves_reports.then(|| PathBuf::from(".")));
    let reads = options.file.iter().chain(&options.thresholds).chain(options.reading.decryption.files());
    let mut reads: Vec<PathBuf> = reads.filter(|file| file.as_os_str() != "-").cloned().collect();
    reads.extend_from_slice(read_later);
    let is_foreign = reads.iter().chain(&writes).any(|path| belongs_to_another(path));
    let keep = if is_foreign { CapabilitySet::DAC_OVERRIDE } else { CapabilitySet::empty() };
    let may_connect = options.reads_exporters();
    if may_connect {
        reads.extend(NAME_LOOKUP_READS.map(PathBuf::from));
    }
    if options.machine_metrics || options.interface.is_some() {
        reads.extend(MACHINE_READS.map(PathBuf::from));
    }
    let ruleset = ruleset(&reads, &writes).inspect_err(|error| tracing::info!(%error, "no Landlock rules")).ok();
    let may_execute = options.on_cause.is_some();
    let _ = SANDBOX.set(Sandbox { keep, may_execute, may_connect, ruleset });
}

/// Returns the directory in which a new version of a file is written: its own, or the one that `files` falls back to.
fn directory_to_replace(file: &Path) -> Option<PathBuf> {
    let directory = directory_behind(file)?;
    let is_closed = rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK).is_err();
    Some(if is_closed { std::env::temp_dir() } else { directory })
}

/// Returns true if another user owns the file or a directory above it, so that root needs CAP_DAC_OVERRIDE to reach it.
fn belongs_to_another(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let Ok(path) = fs::canonicalize(path) else { return false };
    path.ancestors().any(|above| fs::metadata(above).is_ok_and(|found| found.uid() != own))
}

fn ruleset(reads: &[PathBuf], writes: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let entries = AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::MakeDir | AccessFs::RemoveDir;
    let write = read | entries | AccessFs::WriteFile | AccessFs::Truncate;
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    // Paths that don't exist get no rule.
    Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM_READS, read))?
        .add_rules(path_beneath_rules(SYSTEM_WRITES, device))?
        .add_rules(path_beneath_rules(reads, read))?
        .add_rules(path_beneath_rules(writes, write))
}

/// Limits this thread, if the process has a sandbox. Threads that are older than the capture call it first; younger ones
/// inherit the limits.
pub fn enter_thread() {
    if let Some(sandbox) = SANDBOX.get() {
        sandbox.limit_thread(sandbox.keep);
    }
}

/// Limits this thread, and all threads to harmless system calls. `child` is the process that it may still signal: a
/// capture program that has changed its user, which takes CAP_KILL.
pub(super) fn enter(child: Option<u32>) {
    let Some(sandbox) = SANDBOX.get() else { return };
    let signals = child.map_or(CapabilitySet::empty(), |_| CapabilitySet::KILL);
    sandbox.limit_thread(sandbox.keep | signals);
    if sandbox.may_execute {
        return;
    }
    let filters = filters(child, sandbox.may_connect).map_err(seccompiler::Error::from);
    let applied = filters.and_then(|filters| filters.iter().try_for_each(|filter| apply_filter_all_threads(filter)));
    if let Err(error) = applied {
        tracing::info!(%error, "system calls are not filtered");
    }
}

impl Sandbox {
    fn limit_thread(&self, keep: CapabilitySet) {
        if let Err(error) = drop_capabilities(keep, self.may_execute) {
            tracing::info!(%error, "capabilities are kept");
        }
        if self.may_execute {
            return;
        }
        if let Err(error) = set_no_new_privs(true) {
            tracing::info!(%error, "no_new_privs is not set");
        }
        let Some(ruleset) = &self.ruleset else { return };
        let restricted = ruleset.try_clone().map_err(|error| error.to_string());
        let restricted = restricted.and_then(|rules| rules.restrict_self().map_err(|error| error.to_string()));
        match restricted {
            Ok(status) if status.ruleset == RulesetStatus::NotEnforced => tracing::info!("the kernel has no Landlock"),
            Ok(_) => {}
            Err(error) => tracing::info!(%error, "files are not restricted"),
        }
    }
}

/// Drops all capabilities but these. `keeps_bounding` lets commands of root get theirs back.
fn drop_capabilities(keep: CapabilitySet, keeps_bounding: bool) -> rustix::io::Result<()> {
    let held = capabilities(None)?;
    // Only CAP_SETPCAP permits it; without, execve is denied all the same.
    if !keeps_bounding && held.effective.contains(CapabilitySet::SETPCAP) {
        let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
        // Unknown numbers are an error.
        for capability in all.take_while(|capability| capability_is_in_bounding_set(*capability).is_ok()) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    clear_ambient_capability_set()?;
    let kept = held.permitted & keep;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
}

/// Denied with EPERM. Neither this program nor a C library needs them after the start: programs and other processes,
/// mounts and namespaces, the kernel's code, keys and clocks, and interfaces known for their errors.
const DENIED: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Bit of the x32 calls of x86-64, and those with numbers of their own: execve, ptrace, kexec_load, process_vm_readv,
/// process_vm_writev, rt_sigqueueinfo, rt_tgsigqueueinfo, execveat.
const X32: i64 = 1 << 30;
const X32_ONLY: [i64; 8] = [520, 521, 528, 539, 540, 524, 536, 545];

const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Returns two filters: most denials are EPERM; clone3, whose flags a filter can't read, is ENOSYS, on which C libraries
/// fall back to clone.
fn filters(child: Option<u32>, may_connect: bool) -> Result<[BpfProgram; 2], BackendError> {
    let condition = |argument, operator, value: u64| SeccompCondition::new(argument, Dword, operator, value);
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, vec![])).collect();
    let receivers = [Some(std::process::id()), child].into_iter().flatten();
    let foreign: Result<Vec<SeccompCondition>, BackendError> =
        receivers.map(|process| condition(0, Ne, u64::from(process))).collect();
    denied.insert(libc::SYS_kill, vec![SeccompRule::new(foreign?)?]);
    let other_process = condition(0, Ne, u64::from(std::process::id()))?;
    denied.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![other_process])?]);
    // Names a thread of any process. musl raises signals with it.
    if cfg!(target_env = "gnu") {
        denied.insert(libc::SYS_tkill, vec![]);
    }
    // The service manager listens on a Unix socket, and the metrics' socket is open.
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let families = if may_connect { &families[..] } else { &families[..1] };
    let others: Result<Vec<SeccompCondition>, BackendError> =
        families.iter().map(|family| condition(0, Ne, *family as u64)).collect();
    denied.insert(libc::SYS_socket, vec![SeccompRule::new(others?)?]);
    let namespaces = NAMESPACES.map(|flag| flag as u64).map(|flag| condition(0, MaskedEq(flag), flag));
    let namespaces = namespaces.into_iter().map(|condition| SeccompRule::new(vec![condition?]));
    denied.insert(libc::SYS_clone, namespaces.collect::<Result<_, BackendError>>()?);
    let unknown = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    Ok([compiled(denied, libc::EPERM)?, compiled(unknown, libc::ENOSYS)?])
}

fn compiled(mut rules: BTreeMap<i64, Vec<SeccompRule>>, error: libc::c_int) -> Result<BpfProgram, BackendError> {
    if cfg!(target_arch = "x86_64") {
        let same: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(same);
        rules.extend(X32_ONLY.map(|call| (call | X32, vec![])));
    }
    let denial = SeccompAction::Errno(error as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, denial, ARCH.try_into()?)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{CounterSource, WatchedServer};
    use crate::watch::{CaptureStream, WatchedCapture, filters};
    use clap::Parser;
    use landlock::{CompatLevel, Compatible};
    use rustix::process::{geteuid, getppid, test_kill_process};
    use smbscope_analyze::slim::SlimOptions;
    use smbscope_capture::live::PacketDrops;
    use smbscope_testkit::skip;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Directory of the test in the process that is limited.
    const LIMITED: &str = "SMBSCOPE_TEST_LIMITED";

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: WatchOptions,
    }

    /// The report is written through a link to a file that doesn't exist yet.
    fn options(folder: &Path) -> WatchOptions {
        let [ring, report] = ["ring", "link.json"].map(|name| folder.join(name).display().to_string());
        Line::parse_from(["watch", "-i", "lo", "--ring", &ring, "-o", &report]).options
    }

    /// Runs a test in a process of its own, since a sandbox can't be left.
    fn in_new_process(test: &str, limited: fn(&Path)) {
        if let Some(folder) = std::env::var_os(LIMITED) {
            limited(Path::new(&folder));
            return println!("the sandbox did its work");
        }
        let folder = tempfile::tempdir().expect("a directory");
        fs::create_dir(folder.path().join("out")).expect("a directory");
        symlink("out/report.json", folder.path().join("link.json")).expect("a link");
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args([&format!("watch::sandbox::tests::{test}"), "--exact", "--nocapture"]);
        let output = command.env(LIMITED, folder.path()).output().expect("it runs");
        let [said, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success() && said.contains("the sandbox did its work"), "{said}{error}");
    }

    fn has_landlock() -> bool {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(ABI::V3)).and_then(Ruleset::create).is_ok()
    }

    #[test]
    fn only_the_ring_and_the_report_can_be_written() {
        if !has_landlock() {
            return skip::unable("this kernel has no Landlock");
        }
        in_new_process("only_the_ring_and_the_report_can_be_written", |folder| {
            prepare(&options(folder), &[], false);
            let early = thread::spawn({
                let place = folder.join("early");
                move || {
                    enter_thread();
                    fs::write(place, "").map_err(|error| error.kind())
                }
            });
            enter(None);
            assert_eq!(early.join().expect("it ends"), Err(PermissionDenied));
            for place in ["ring/a", "out/.report.json.0.partial"] {
                fs::write(folder.join(place), "text").expect(place);
            }
            fs::rename(folder.join("ring/a"), folder.join("ring/b")).expect("it is renamed");
            fs::remove_file(folder.join("ring/b")).expect("it is removed");
            let denied =
                |result: std::io::Result<()>| assert_eq!(result.map_err(|error| error.kind()), Err(PermissionDenied));
            denied(fs::write(folder.join("elsewhere"), ""));
            denied(symlink("/etc", folder.join("ring/link")));
            denied(fs::read("/etc/passwd").map(drop));
            denied(thread::scope(|scope| scope.spawn(|| fs::read("/etc/passwd").map(drop)).join().expect("it ends")));
            fs::read("/proc/self/status").expect("the kernel's files can be read");
        });
    }

    #[test]
    fn programs_other_processes_and_the_network_are_out_of_reach() {
        in_new_process("programs_other_processes_and_the_network_are_out_of_reach", |folder| {
            let parent = getppid().expect("the test that started this one");
            assert_eq!(test_kill_process(parent), Ok(()));
            prepare(&options(folder), &[], false);
            enter(None);
            let denied = |result: std::io::Result<()>| {
                assert_eq!(result.map_err(|error| error.raw_os_error()), Err(Some(libc::EPERM)));
            };
            denied(Command::new("/bin/true").status().map(drop));
            denied(TcpListener::bind("127.0.0.1:0").map(drop));
            denied(test_kill_process(parent).map_err(std::io::Error::from));
            // The socket of a service manager, threads, and signals to itself.
            UnixDatagram::unbound().expect("a Unix socket");
            assert_eq!(thread::spawn(|| 1).join().expect("it ends"), 1);
            assert_eq!(test_kill_process(rustix::process::getpid()), Ok(()));
        });
    }

    #[test]
    fn the_counters_of_a_server_can_be_asked_for() {
        in_new_process("the_counters_of_a_server_can_be_asked_for", |folder| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let server_metrics = format!("http://localhost:{port}/metrics").parse().expect("a URL");
            let server_metrics = crate::options::ServerMetricsOptions { server_metrics: Some(server_metrics) };
            prepare(&WatchOptions { server_metrics, ..options(folder) }, &[], false);
            enter(None);
            std::net::TcpStream::connect(("localhost", port)).expect("found by name, and connected");
            assert!(Command::new("/bin/true").status().is_err());
        });
    }

    #[test]
    fn the_counters_of_this_machine_can_be_read() {
        in_new_process("the_counters_of_this_machine_can_be_read", |folder| {
            prepare(&WatchOptions { machine_metrics: true, ..options(folder) }, &[], false);
            enter(None);
            let watched = WatchedServer::begin(Some(CounterSource::ThisMachine { samba: None }), None, &[]);
            let mut watched = watched.expect("Linux has counters").expect("they are read");
            let from = crate::environment::now();
            let begun = Instant::now();
            let server = loop {
                if let Some(server) = watched.minute(from, crate::environment::now()).server {
                    break server;
                }
                assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", watched.warnings());
                thread::sleep(Duration::from_millis(100));
            };
            assert_eq!((server.source.as_str(), watched.warnings()), ("this machine", Vec::new()));
            assert!(server.metrics["memory"].mean > 1e6 && server.metrics.contains_key("cpu"), "{server:?}");
            assert!(Command::new("/bin/true").status().is_err());
        });
    }

    #[test]
    fn the_capture_program_is_still_asked_and_ended() {
        if !geteuid().is_root() || crate::environment::on_path("tcpdump").is_none() {
            return skip::unable("only root may capture with tcpdump");
        }
        in_new_process("the_capture_program_is_still_asked_and_ended", |folder| {
            let options = options(folder);
            prepare(&options, &[], false);
            let mut program = CaptureStream::begin("lo", 0, &filters(&options)).expect("tcpdump runs");
            let child = program.child.id();
            enter(Some(child));
            let losses = program.losses();
            let begun = Instant::now();
            // tcpdump has another user than this process, so that CAP_KILL is needed.
            while losses.dropped().is_none() {
                assert!(begun.elapsed() < Duration::from_secs(10), "tcpdump doesn't answer SIGUSR1");
                thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(program.ended_because(), None);
            let begun = Instant::now();
            drop(program);
            assert!(!Path::new(&format!("/proc/{child}")).exists() && begun.elapsed() < Duration::from_secs(5));
        });
    }

    #[test]
    fn an_interface_is_opened_before_rights_are_given_up() {
        if !geteuid().is_root() {
            return skip::unable("only root may capture on the loopback interface");
        }
        in_new_process("an_interface_is_opened_before_rights_are_given_up", |folder| {
            let options = options(folder);
            prepare(&options, &[], false);
            let mut capture = WatchedCapture::open(&options, SlimOptions::default(), |_| {}).expect("it captures");
            assert!(capture.interface.as_ref().is_some_and(|interface| interface.child().is_none()));
            let losses = capture.losses().expect("it counts");
            // Denied, so that only packets can be captured that others send.
            assert!(TcpListener::bind("127.0.0.1:0").is_err());
            assert_eq!((losses.dropped(), capture.ended_because()), (Some(PacketDrops::default()), None));
            let begun = Instant::now();
            capture.finish(None).expect("a ring").expect("it is kept");
            assert!(begun.elapsed() < Duration::from_secs(5));
        });
    }

    #[test]
    fn commands_get_the_rights_of_root_back() {
        if !geteuid().is_root() {
            return skip::unable("only root has rights to get back");
        }
        in_new_process("commands_get_the_rights_of_root_back", |folder| {
            let before = capabilities(None).expect("capabilities").permitted;
            prepare(&WatchOptions { on_cause: Some("true".to_owned()), ..options(folder) }, &[], false);
            enter(None);
            assert_eq!(capabilities(None).map(|sets| sets.permitted), Ok(CapabilitySet::empty()));
            let shown = Command::new("grep").args(["CapPrm", "/proc/self/status"]).output().expect("it runs").stdout;
            assert_eq!(String::from_utf8_lossy(&shown).trim(), format!("CapPrm:\t{:016x}", before.bits()));
        });
    }
}
