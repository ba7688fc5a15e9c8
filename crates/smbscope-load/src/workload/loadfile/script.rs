//! One user's progress through a loadfile: a position in the shared lines and the user's own paths.

use super::super::action::{Action, HandleSlot, Script, ScriptStep};
use super::super::path::UserPaths;
use super::super::{Own, UserSeat};
use super::{How, Loadfile, LoadfileLine, NOT_COUNTED, Op, OpenFor};
use smbscope_client::{ByteRangeLock, CreateDisposition, access, create_options};
use std::sync::Arc;

/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE. A loadfile opens files twice without stating a share mode.
const SHARE_ALL: u32 = 0x7;

#[derive(Debug)]
pub(in super::super) struct LoadfileScript {
    loadfile: Arc<Loadfile>,
    paths: UserPaths,
    position: usize,
    passes: u32,
}

impl LoadfileScript {
    pub(in super::super) fn new(loadfile: Arc<Loadfile>, seat: &UserSeat) -> LoadfileScript {
        let paths = loadfile.names.resolve(seat);
        LoadfileScript { loadfile, paths, position: 0, passes: 0 }
    }
}

impl Script for LoadfileScript {
    fn operations(&self) -> &[String] {
        self.loadfile.operations()
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        if self.loadfile.once && self.passes > 0 {
            return None;
        }
        let line = *self.loadfile.lines.get(self.position)?;
        self.position += 1;
        if self.position == self.loadfile.lines.len() {
            self.position = self.loadfile.repeat;
            self.passes += 1;
        }
        Some(step(line, &self.paths, &self.loadfile))
    }

    fn restart(&mut self) {
        self.position = 0;
        self.passes = 0;
    }

    fn sets_up(&self) -> bool {
        self.passes == 0 && self.position < self.loadfile.set_up
    }

    fn passes(&self) -> Option<u32> {
        Some(self.passes)
    }
}

fn step<'a>(line: LoadfileLine, paths: &'a UserPaths, loadfile: &'a Loadfile) -> ScriptStep<'a> {
    ScriptStep {
        action: action(line.op, paths, loadfile),
        operation: (line.operation != NOT_COUNTED).then_some(usize::from(line.operation)),
        expected: line.expected,
        completes: line.operation != NOT_COUNTED,
        line: (line.number != 0).then_some(line.number),
    }
}

fn action<'a>(op: Op, paths: &'a UserPaths, loadfile: &'a Loadfile) -> Action<'a> {
    match op {
        Op::CreateAs { path, how, slot } => {
            let How { access, share, disposition, options, attributes } = loadfile.how[how as usize];
            let disposition = create_disposition(disposition);
            Action::Open {
                slot: HandleSlot(slot),
                path: paths.get(path),
                access,
                share,
                disposition,
                options,
                attributes,
            }
        }
        Op::SetDelete { slot, delete } => Action::SetDelete(HandleSlot(slot), delete),
        Op::RenameOpen { slot, to, replace } => {
            Action::RenameOpen { slot: HandleSlot(slot), to: paths.get(to), replace }
        }
        Op::ListOpen { slot, pattern, class, flags } => {
            Action::ListOpen { slot: HandleSlot(slot), pattern: &loadfile.patterns[pattern.0 as usize], class, flags }
        }
        Op::Create { path, options, disposition, slot } => Action::Open {
            slot: HandleSlot(slot),
            path: paths.get(path),
            // As in smbtorture: files are opened with every access that a line with their handle may need.
            access: match options & create_options::DIRECTORY != 0 {
                true => access::READ_DATA | access::READ_ATTRIBUTES,
                false => access::READ_DATA | access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES,
            },
            share: SHARE_ALL,
            disposition: create_disposition(disposition),
            options,
            attributes: 0,
        },
        Op::Open { path, access, disposition, slot } => Action::Open {
            slot: HandleSlot(slot),
            path: paths.get(path),
            access: match access {
                OpenFor::Reading => access::READ_DATA | access::READ_ATTRIBUTES,
                OpenFor::Writing => access::WRITE_DATA | access::WRITE_ATTRIBUTES | access::READ_ATTRIBUTES,
                OpenFor::Both => {
                    access::READ_DATA | access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES
                }
            },
            share: SHARE_ALL,
            disposition: create_disposition(disposition),
            options: create_options::NON_DIRECTORY,
            attributes: 0,
        },
        Op::Close { slot } => Action::Close(HandleSlot(slot)),
        Op::Read { slot, offset, length } => Action::Read { slot: HandleSlot(slot), offset, length },
        Op::Write { slot, offset, length } => Action::Write { slot: HandleSlot(slot), offset, length },
        Op::SetEnd { slot, size } => Action::SetEnd(HandleSlot(slot), size),
        Op::Flush { slot } => Action::Flush(HandleSlot(slot)),
        Op::Queue { slot, depth, ranges, writes } => {
            Action::Queue { slot: HandleSlot(slot), ranges: &loadfile.ranges[ranges as usize], depth, writes }
        }
        Op::Lock { slot, offset, length, exclusive } => {
            Action::Lock(HandleSlot(slot), ByteRangeLock { offset, length, exclusive, wait: false })
        }
        Op::Unlock { slot, offset, length } => Action::Unlock { slot: HandleSlot(slot), offset, length },
        Op::Control { slot, control } => Action::Control { control, slot: Some(HandleSlot(slot)) },
        Op::QueryPath { path, info } => Action::QueryPath(paths.get(path), info),
        Op::QueryFile { slot, info } => Action::QueryFile(HandleSlot(slot), info),
        Op::QueryFileSystem { info } => Action::QueryFileSystem(info),
        Op::SetBasic { slot } => Action::SetBasic(HandleSlot(slot)),
        Op::List { pattern, info, most } => Action::List { pattern: paths.get(pattern), info, most: most as usize },
        Op::Unlink { path } => Action::RemoveFile(paths.get(path)),
        Op::Rename { from, to } => Action::Rename { from: paths.get(from), to: paths.get(to) },
        Op::Mkdir { path } => Action::MakeDirectory(paths.get(path)),
        Op::Rmdir { path } => Action::RemoveDirectory(paths.get(path)),
        Op::Deltree { path } => {
            Action::RemoveTree(paths.get(path), Own { made: loadfile.made(), directory: paths.own() })
        }
        Op::Sleep { time } => Action::Think(time),
    }
}

fn create_disposition(value: u8) -> CreateDisposition {
    match value {
        0 => CreateDisposition::Supersede,
        1 => CreateDisposition::Open,
        2 => CreateDisposition::Create,
        3 => CreateDisposition::OpenIf,
        4 => CreateDisposition::Overwrite,
        _ => CreateDisposition::OverwriteIf,
    }
}
