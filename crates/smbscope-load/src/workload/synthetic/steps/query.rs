//! `query_open`, `query` and `query_file_system`.

use super::{StepKind, act};
use crate::workload::action::Action;
use crate::workload::synthetic::compile::{FILE, OF, StepField, names};
use smbscope_client::Info;

const FILE_INFOS: [(&str, Info); 8] = [
    ("basic", Info::FILE_BASIC_INFORMATION),
    ("standard", Info::FILE_STANDARD_INFORMATION),
    ("all", Info::FILE_ALL_INFORMATION),
    ("network_open", Info::FILE_NETWORK_OPEN_INFORMATION),
    ("internal", Info::FILE_INTERNAL_INFORMATION),
    ("ea", Info::FILE_EA_INFORMATION),
    ("stream", Info::FILE_STREAM_INFORMATION),
    ("attribute_tag", Info::FILE_ATTRIBUTE_TAG_INFORMATION),
];
const FILE_SYSTEM_INFOS: [(&str, Info); 5] = [
    ("size", Info::FILE_FS_SIZE_INFORMATION),
    ("full_size", Info::FILE_FS_FULL_SIZE_INFORMATION),
    ("volume", Info::FILE_FS_VOLUME_INFORMATION),
    ("device", Info::FILE_FS_DEVICE_INFORMATION),
    ("attribute", Info::FILE_FS_ATTRIBUTE_INFORMATION),
];

const FILE_INFO: StepField = StepField { key: "info", names: &names(&FILE_INFOS), about: "", default: "" };
const FILE_SYSTEM_INFO: StepField =
    StepField { key: "info", names: &names(&FILE_SYSTEM_INFOS), about: "", default: "" };

pub(super) const QUERY_OPEN: StepKind = StepKind::new("query_open", "queries an open file", &[OF, FILE_INFO], |step| {
    let (slot, info) = (step.handle(0)?.slot, step.choice(&FILE_INFO, &FILE_INFOS)?);
    Ok(act(move |_| Action::QueryFile(slot, info)))
});

pub(super) const QUERY: StepKind = StepKind::new("query", "queries a path", &[FILE, FILE_INFO], |step| {
    let (file, info) = (step.file()?, step.choice(&FILE_INFO, &FILE_INFOS)?);
    let query = act(move |user| {
        let file = user.pick(file);
        user.write_path(file.name);
        Action::QueryPath(&user.path, info)
    });
    Ok(query.finding(file))
});

pub(super) const QUERY_FILE_SYSTEM: StepKind =
    StepKind::new("query_file_system", "queries the file system", &[FILE_SYSTEM_INFO], |step| {
        let info = step.choice(&FILE_SYSTEM_INFO, &FILE_SYSTEM_INFOS)?;
        Ok(act(move |_| Action::QueryFileSystem(info)))
    });
