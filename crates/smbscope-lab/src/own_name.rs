//! Folder names that identify their owner, for places such as a share where nothing can be locked.

use crate::Process;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Characters of the boot id: enough to distinguish the machines that use one share.
const BOOT_CHARS: usize = 8;

/// Returns a name for a folder of this process: prefix, boot, PID namespace, process id and start time.
pub fn own_name(prefix: &str) -> String {
    let (boot, namespace) = here().unwrap_or_default();
    let Process { pid, start } = Process::own();
    format!("{prefix}{boot}-{namespace:x}-{pid}-{start}")
}

/// Returns true if [`own_name`] made the name for a process of this boot and PID namespace that has ended. The state
/// of processes elsewhere is unknown.
pub fn is_abandoned(name: &str, prefix: &str) -> bool {
    let owner = || {
        let mut parts = name.strip_prefix(prefix)?.split('-');
        let boot = parts.next()?.to_owned();
        let namespace = u64::from_str_radix(parts.next()?, 16).ok()?;
        let process = Process { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
        parts.next().is_none().then_some(((boot, namespace), process))
    };
    owner().is_some_and(|(place, process)| here() == Some(place) && !process.lives())
}

/// Returns boot id and PID namespace, or `None` if the system does not provide them.
fn here() -> Option<(String, u64)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(BOOT_CHARS).collect();
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    (boot.len() == BOOT_CHARS).then_some((boot, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_here_that_has_ended_abandons_its_folder() {
        let own = own_name("x-");
        assert!(!is_abandoned(&own, "x-"));
        let (boot, namespace) = here().expect("there is /proc");
        let Process { pid, start } = Process::own();
        let named = |boot: &str, namespace: u64, start: u64| format!("x-{boot}-{namespace:x}-{pid}-{start}");
        // Same process id with another start time: a recycled id.
        assert!(is_abandoned(&named(&boot, namespace, start + 1), "x-"));
        assert!(!is_abandoned(&named("00000000", namespace, start + 1), "x-"));
        assert!(!is_abandoned(&named(&boot, namespace + 1, start + 1), "x-"));
        for other in ["x-", "x-1234", "y-1", &format!("{}-1", named(&boot, namespace, start + 1))] {
            assert!(!is_abandoned(other, "x-"), "{other}");
        }
    }
}
