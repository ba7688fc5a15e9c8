//! `read`, `write` and `open_read_close`.

use super::{CompiledStep, FILE, OF, Part, REQUIRED, StepCompiler, StepField, StepKind, act, in_parts};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, HandleSlot};
use crate::workload::draw::SizeDistribution;
use crate::workload::synthetic::source::{size, sizes};
use crate::workload::synthetic::user::{At, SyntheticOpen, SyntheticUser, place};
use smbscope_client::{FileRange, access};
use std::ops::Range;
use toml::{Spanned, Value};

/// Largest single transfer, in bytes. The client splits one that exceeds the server's limit.
const MOST_TRANSFER: u64 = 8 << 20;
const MOST_IN_BLOCKS: u64 = 1 << 40;
/// Blocks per queue place that are handed out together. The drain at the end, with fewer commands outstanding, is then
/// a hundredth of the time.
const BLOCKS_A_PLACE: u64 = 64;
/// Bytes handed out together, unless the queue needs more to stay full. A load point can only end between two parts.
const BYTES_AT_ONCE: u64 = 64 << 20;

const OFFSET: StepField = StepField::new(
    "offset",
    "0",
    "bytes; `\"random\"` (a multiple of the length), `\"sequential\"` (after the previous transfer, wrapping at the end)",
);
const OFFSET_IN_FILE: StepField = StepField::new("offset", "0", "bytes; `\"random\"` (a multiple of the length)");
const LENGTH: StepField =
    StepField::new("length", REQUIRED, "a [size](#sizes-and-times), or `\"file\"` for the whole file");
const LENGTH_IN_FILE: StepField = StepField::new("length", REQUIRED, "a [size](#sizes-and-times)");
pub(super) const BLOCK: StepField =
    StepField::new("block", "8 MiB", "bytes per command, such as `\"64KiB\"`, up to 8 MiB");
const DEPTH: StepField = StepField::new("depth", "1", "blocks outstanding, up to 256");

/// Hint at a length above [`MOST_TRANSFER`].
const IN_BLOCKS: &str = "add block = \"1MiB\" for more";

pub(super) const READ: StepKind = StepKind::new("read", "reads", &[OF, OFFSET, LENGTH, BLOCK, DEPTH], |step| {
    let handle = step.handle(access::READ_DATA)?;
    step.must_have_content(handle.file)?;
    transfer(step, handle.slot, false)
});

pub(super) const WRITE: StepKind = StepKind::new("write", "writes", &[OF, OFFSET, LENGTH, BLOCK, DEPTH], |step| {
    let slot = step.handle(access::WRITE_DATA)?.slot;
    transfer(step, slot, true)
});

pub(super) const OPEN_READ_CLOSE: StepKind = StepKind::new(
    "open_read_close",
    "opens, reads and closes; one compound with `--compound`",
    &[FILE, OFFSET_IN_FILE, LENGTH_IN_FILE],
    |step| {
        let file = step.file()?;
        step.must_have_content(file)?;
        let (at, length) = (at(step, false)?, length(step, MOST_TRANSFER, IN_BLOCKS)?);
        let read = act(move |user| {
            let file = user.pick(file);
            user.write_path(file.name);
            let (offset, length) = place(&mut user.random, SyntheticOpen { file, position: 0 }, at, &length, false);
            Action::OpenReadClose { path: &user.path, offset, length }
        });
        Ok(read.finding(file))
    },
);

/// Total length of a transfer in blocks.
enum Total {
    File,
    Bytes(SizeDistribution),
}

struct BlockTransfer {
    of: Total,
    at: At,
    block: u64,
    depth: u32,
    writes: bool,
}

/// Position within a transfer in blocks, in bytes.
#[derive(Debug, Clone, Copy)]
struct BlocksDone {
    done: u64,
    of: u64,
}

fn transfer(step: &mut StepCompiler<'_, '_>, slot: HandleSlot, writes: bool) -> Result<CompiledStep, WorkloadError> {
    let at = at(step, true)?;
    let block = block(step)?;
    let depth = step.number(&DEPTH)?;
    let is_whole = |length: &Spanned<Value>| length.get_ref().as_str() == Some("file");
    let of = match step.value(&LENGTH)? {
        Some(length) if is_whole(&length) => Total::File,
        Some(_) if step.is_given(&BLOCK) => Total::Bytes(length(step, MOST_IN_BLOCKS, "\"file\"")?),
        _ if depth > 1 => {
            let hint = "write length = \"file\", or add block = \"64KiB\" to a length of several blocks";
            return Err(step.error("a single transfer has no depth", hint));
        }
        _ => {
            let length = length(step, MOST_TRANSFER, IN_BLOCKS)?;
            return Ok(act(move |user| user.transfer(slot, at, &length, writes)));
        }
    };
    let blocks = BlockTransfer { of, at, block, depth, writes };
    let mut step = in_parts(move |user| blocks.next(user, slot));
    step.is_queued = depth > 1;
    Ok(step)
}

fn at(step: &StepCompiler<'_, '_>, sequential: bool) -> Result<At, WorkloadError> {
    let Some(value) = step.value::<Value>(&OFFSET)? else { return Ok(At::Offset(0)) };
    match value.get_ref().as_str() {
        Some("random") => Ok(At::Random),
        Some("sequential") if sequential => Ok(At::Sequential),
        _ => {
            let hint = match sequential {
                true => "write a number of bytes, \"random\" or \"sequential\"",
                false => "write a number of bytes or \"random\"",
            };
            let offset = size(value.get_ref()).map_err(|(what, _)| step.error_at(value.span(), what, hint))?;
            Ok(At::Offset(offset))
        }
    }
}

pub(super) fn block(step: &StepCompiler<'_, '_>) -> Result<u64, WorkloadError> {
    let Some(block) = step.parsed(&BLOCK, size)? else { return Ok(MOST_TRANSFER) };
    if !(1..=MOST_TRANSFER).contains(block.get_ref()) {
        let hint = format!("write 1 to {MOST_TRANSFER} bytes");
        return Err(step.error_at(block.span(), "the block is out of bounds", &hint));
    }
    Ok(block.into_inner())
}

fn length(step: &StepCompiler<'_, '_>, most: u64, or: &str) -> Result<SizeDistribution, WorkloadError> {
    let Some(length) = step.parsed(&LENGTH, sizes)? else {
        return Err(step.error("the step has no length", "add length = \"4KiB\""));
    };
    if length.get_ref().least() == 0 || length.get_ref().most() > most {
        let hint = format!("write 1 to {most} bytes, or {or}");
        return Err(step.error_at(length.span(), "the length is out of bounds", &hint));
    }
    Ok(length.into_inner())
}

impl BlockTransfer {
    /// Bytes of one part.
    fn at_once(&self) -> u64 {
        let places = u64::from(self.depth);
        match self.depth {
            0 | 1 => self.block,
            _ => (BYTES_AT_ONCE / self.block).clamp(4 * places, BLOCKS_A_PLACE * places) * self.block,
        }
    }

    fn next<'u>(&self, user: &'u mut SyntheticUser, slot: HandleSlot) -> Part<'u> {
        let BlocksDone { done, of } = user.progress.get().unwrap_or_else(|| {
            let of = match &self.of {
                Total::File => user.open[slot.0 as usize].file.size,
                Total::Bytes(sizes) => sizes.draw(&mut user.random),
            };
            // For an empty file, request one byte; the server answers END_OF_FILE.
            BlocksDone { done: 0, of: of.max(1) }
        });
        let length = self.at_once().min(of - done);
        let next = done + length;
        let is_last = next >= of;
        user.progress.set((!is_last).then_some(BlocksDone { done: next, of }));
        let action = match self.depth {
            0 | 1 => user.transfer(slot, self.at.after(done), &SizeDistribution::Fixed(length), self.writes),
            _ => self.queue(user, slot, done..next),
        };
        Part { action, is_last, completes: is_last }
    }

    fn queue<'u>(&self, user: &'u mut SyntheticUser, slot: HandleSlot, bytes: Range<u64>) -> Action<'u> {
        user.ranges.clear();
        for done in bytes.clone().step_by(self.block as usize) {
            let length = SizeDistribution::Fixed(self.block.min(bytes.end - done));
            let (offset, length) = user.range(slot, self.at.after(done), &length, self.writes);
            user.ranges.push(FileRange { offset, length });
        }
        Action::Queue { slot, ranges: &user.ranges, depth: self.depth, writes: self.writes }
    }
}
