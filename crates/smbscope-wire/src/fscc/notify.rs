//! FILE_NOTIFY_INFORMATION (MS-FSCC 2.7.1), the response to CHANGE_NOTIFY and SMB1's NT_TRANSACT_NOTIFY_CHANGE.

use crate::bytes::{u32_at, utf16_text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNotifyInformation {
    /// 1 added, 2 removed, 3 modified, 4 renamed from, 5 renamed to.
    pub action: u32,
    /// Path relative to the watched directory.
    pub name: String,
}

/// Offset of the name.
const NAME: usize = 12;

/// Iterates over a list of changes. Ends at the first truncated entry.
pub fn changes(list: &[u8]) -> impl Iterator<Item = FileNotifyInformation> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let entry = rest.take()?;
        let next = u32_at(entry, 0)? as usize;
        if next >= NAME {
            rest = entry.get(next..);
        }
        let length = u32_at(entry, 8)? as usize;
        let name = utf16_text(entry.get(NAME..NAME.checked_add(length)?)?);
        Some(FileNotifyInformation { action: u32_at(entry, 4)?, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_a_list() {
        let mut parameters = vec![16, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0];
        parameters.extend(b"a\0b\0");
        parameters.extend([0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'c', 0]);
        let change = |action, name: &str| FileNotifyInformation { action, name: name.into() };
        assert_eq!(changes(&parameters).collect::<Vec<_>>(), [change(1, "ab"), change(2, "c")]);
        let cut = changes(&parameters[..parameters.len() - 1]);
        assert_eq!(cut.collect::<Vec<_>>(), [change(1, "ab")]);
    }
}
