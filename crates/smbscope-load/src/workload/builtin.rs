//! Built-in workloads: the generated mix and the TOML files in `workloads/`, which also serve as examples.

use super::error::suggest;
use super::loadfile::Loadfile;
use super::netbench::{self, NetbenchLike};
use super::{Workload, WorkloadError, WorkloadSource};

const NETBENCH: &str = "netbench-like";
const NETBENCH_FULL: &str = "netbench-like-full";

const FILES: [(&str, &str); 15] = [
    ("open-read-close", include_str!("../../../../workloads/open-read-close.toml")),
    ("echo", include_str!("../../../../workloads/echo.toml")),
    ("metadata", include_str!("../../../../workloads/metadata.toml")),
    ("read", include_str!("../../../../workloads/read.toml")),
    ("write", include_str!("../../../../workloads/write.toml")),
    ("ini", include_str!("../../../../workloads/ini.toml")),
    ("ini-once", include_str!("../../../../workloads/ini-once.toml")),
    ("ini-write", include_str!("../../../../workloads/ini-write.toml")),
    ("ini-create", include_str!("../../../../workloads/ini-create.toml")),
    ("reopen", include_str!("../../../../workloads/reopen.toml")),
    ("logon", include_str!("../../../../workloads/logon.toml")),
    ("blocksweep", include_str!("../../../../workloads/blocksweep.toml")),
    ("copy", include_str!("../../../../workloads/copy.toml")),
    ("copy-small", include_str!("../../../../workloads/copy-small.toml")),
    ("homefolders", include_str!("../../../../workloads/homefolders.toml")),
];

/// Name and description of each workload. The first is the default.
pub(super) fn all() -> Vec<(&'static str, String)> {
    let names = [NETBENCH, NETBENCH_FULL].into_iter().chain(FILES.iter().map(|(name, _)| *name));
    let described = names.map(|name| {
        let description = get(name).map(|workload| workload.description().to_owned());
        (name, description.unwrap_or_default())
    });
    described.collect()
}

pub(super) fn get(name: &str) -> Result<Workload, WorkloadError> {
    match name {
        NETBENCH => netbench(NetbenchLike::default()),
        NETBENCH_FULL => netbench(NetbenchLike { scale: 1, ..NetbenchLike::default() }),
        _ => match FILES.iter().find(|(file, _)| *file == name) {
            Some((file, text)) => Workload::toml(&format!("workloads/{file}.toml"), text, WorkloadSource::BuiltIn),
            None => {
                let names: Vec<&str> =
                    [NETBENCH, NETBENCH_FULL].into_iter().chain(FILES.iter().map(|(name, _)| *name)).collect();
                let hint = format!("{}; or give a file", suggest(name, &names));
                Err(WorkloadError::Unknown { name: name.to_owned(), hint })
            }
        },
    }
}

pub(super) fn text(name: &str) -> Option<String> {
    let generated = |settings| Some(netbench::generate(settings).0);
    match name {
        NETBENCH => generated(NetbenchLike::default()),
        NETBENCH_FULL => generated(NetbenchLike { scale: 1, ..NetbenchLike::default() }),
        _ => FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned()),
    }
}

pub(super) fn netbench(settings: NetbenchLike) -> Result<Workload, WorkloadError> {
    let (text, first) = netbench::generate(settings);
    let loadfile = Loadfile::parse(NETBENCH, &text)?.repeat_from_line(first);
    let name = if settings.scale <= 1 { NETBENCH_FULL } else { NETBENCH };
    let megabytes = loadfile.set_up_bytes() as f64 / 1e6;
    let description = format!("The mix of operations of the NetBench Disk Mix, with {megabytes:.1} MB of files a user");
    Ok(Workload::of_loadfile(name.to_owned(), description, WorkloadSource::BuiltIn, &text, loadfile))
}

#[cfg(test)]
mod tests {
    use super::super::{Script, UserSeat};
    use super::*;

    #[test]
    fn every_one_can_be_had_and_has_work() {
        for (name, description) in all() {
            let workload = get(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(workload.name(), name);
            assert!(!description.is_empty() && !workload.operations().is_empty());
            let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
            let mut script = workload.script(&seat);
            while script.sets_up() {
                assert!(script.next().is_some());
            }
            assert!(script.next().is_some());
        }
    }

    #[test]
    fn the_generated_mix_makes_its_files_once() {
        let workload = get(NETBENCH).unwrap();
        assert_eq!(workload.skipped_lines(), 0);
        // 3 MB plus one byte per file, with the smallest files rounded up.
        assert!((3_000_000..3_600_000).contains(&workload.set_up_bytes()), "{}", workload.set_up_bytes());
        let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        while script.passes() == Some(0) {
            script.next();
        }
        let again = script.next().unwrap().line;
        assert!(!script.sets_up());
        assert!(again > Some(146 * 4));
    }

    #[test]
    fn the_text_of_each_is_a_file_to_begin_from() {
        let folder = tempfile::tempdir().unwrap();
        for (name, _) in all() {
            let path = folder.path().join("mine");
            std::fs::write(&path, text(name).unwrap()).unwrap();
            let mine = Workload::load(&path).unwrap();
            assert_eq!(mine.operations().len(), get(name).unwrap().operations().len(), "{name}");
        }
        assert_eq!(text("none"), None);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = get("netbench").unwrap_err().to_string();
        assert!(error.contains("no workload is called \"netbench\"") && error.contains("netbench-like"), "{error}");
        assert!(get("open-raed-close").unwrap_err().to_string().contains("did you mean \"open-read-close\"?"));
    }
}
