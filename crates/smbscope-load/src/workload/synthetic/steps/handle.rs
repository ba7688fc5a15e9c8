//! Steps of an open file that transfer no data: `flush`, `set_times`, `set_size`, `lock` and `unlock`.

use super::{StepKind, act};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, HandleSlot};
use crate::workload::synthetic::compile::{OF, StepCompiler, StepField};
use smbscope_client::{ByteRangeLock, access};

const OFFSET: StepField = StepField::new("offset", "0", "bytes");
const LENGTH: StepField = StepField::new("length", "1", "bytes");
const EXCLUSIVE: StepField = StepField::new("exclusive", "`true`", "`false` for a shared lock");
const SIZE: StepField = StepField::new("size", "0", "bytes");

pub(super) const FLUSH: StepKind = StepKind::new("flush", "flushes written data to disk", &[OF], |step| {
    let slot = step.handle(access::WRITE_DATA)?.slot;
    Ok(act(move |_| Action::Flush(slot)))
});

pub(super) const SET_TIMES: StepKind =
    StepKind::new("set_times", "sets times and attributes to their current values", &[OF], |step| {
        let slot = step.handle(0)?.slot;
        Ok(act(move |_| Action::SetBasic(slot)))
    });

pub(super) const SET_SIZE: StepKind = StepKind::new("set_size", "sets the size of a new file", &[OF, SIZE], |step| {
    let handle = step.handle(access::WRITE_DATA)?;
    step.must_be_new(Some(handle.file), "set the size of")?;
    let (slot, size) = (handle.slot, step.bytes(&SIZE, 0)?);
    Ok(act(move |user| {
        user.resize(slot, size);
        Action::SetEnd(slot, size)
    }))
});

pub(super) const LOCK: StepKind =
    StepKind::new("lock", "locks a range; fails instead of waiting", &[OF, OFFSET, LENGTH, EXCLUSIVE], |step| {
        let (slot, offset, length) = range(step)?;
        let exclusive = step.value::<bool>(&EXCLUSIVE)?.is_none_or(|exclusive| *exclusive.get_ref());
        Ok(act(move |_| Action::Lock(slot, ByteRangeLock { offset, length, exclusive, wait: false })))
    });

pub(super) const UNLOCK: StepKind = StepKind::new("unlock", "unlocks it", &[OF, OFFSET, LENGTH], |step| {
    let (slot, offset, length) = range(step)?;
    Ok(act(move |_| Action::Unlock { slot, offset, length }))
});

fn range(step: &StepCompiler<'_, '_>) -> Result<(HandleSlot, u64, u64), WorkloadError> {
    Ok((step.handle(0)?.slot, step.bytes(&OFFSET, 0)?, step.bytes(&LENGTH, 1)?))
}
