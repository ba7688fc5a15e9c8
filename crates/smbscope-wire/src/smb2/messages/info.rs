//! Directory listings, queries and changes of information, and change notifications.

/// QUERY_DIRECTORY (MS-SMB2 2.2.33, 2.2.34).
pub mod query_directory {
    use crate::RequestDetail;
    use crate::bytes::utf16_text;
    use crate::codec::WireText;
    use crate::fscc::DirectoryEntries;
    use crate::names::InfoLevel;
    use crate::smb2::{FileReference, Smb2Request};

    pub mod flags {
        pub const RESTART_SCANS: u8 = 0x01;
        pub const RETURN_SINGLE_ENTRY: u8 = 0x02;
        pub const REOPEN: u8 = 0x10;
    }

    message! {
        request Request<'a>: QUERY_DIRECTORY, 33 {
            class: u8 = 2,
            flags: u8 = 3,
            file: FileReference = 8,
            output_buffer_length: u32 = 28,
        } with {
            /// Search pattern, evaluated only by the first request of a scan.
            pattern: WireText<'a> = [u16 @ 24, u16 @ 26],
        }
        names Path in pattern
        expects output_buffer_length
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                let level = InfoLevel::File(Self::class(m)?);
                Some(Smb2Request::Info { file: Self::file(m)?, level, new_name: None })
            }

            fn detail(m: &[u8]) -> Option<RequestDetail> {
                let (start, length) = Self::pattern(m)?;
                let pattern = utf16_text(m.get(start..start.checked_add(length)?)?);
                Some(RequestDetail::QueryDirectory { pattern, flags: Self::flags(m)? })
            }
        }
    }

    impl Request<'_> {
        pub fn level(&self) -> InfoLevel {
            InfoLevel::File(self.class)
        }
    }

    message! {
        response Response<'a>: QUERY_DIRECTORY, 9 {} with {
            /// Entries in the layout of the requested class.
            output: &'a [u8] = [u16 @ 2, u32 @ 4],
        }
    }

    impl<'a> Response<'a> {
        /// Returns the entries. `None` if the class is unknown.
        pub fn entries(&self, level: InfoLevel) -> Option<DirectoryEntries<'a>> {
            DirectoryEntries::new(self.output, level)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn the_pattern_follows_the_fields() {
            let list = Request {
                file: FileReference { persistent: 1, volatile: 2 },
                class: 37,
                flags: flags::RESTART_SCANS,
                pattern: "*".into(),
                output_buffer_length: 0x1_0000,
            };
            let message = request(&list);
            assert_eq!(message[64..72], [33, 0, 37, 1, 0, 0, 0, 0]);
            assert_eq!(message[88..], [96, 0, 2, 0, 0, 0, 1, 0, b'*', 0]);
        }

        #[test]
        fn an_answer_without_its_buffer_is_none() {
            let mut message = response(Smb2Command::QUERY_DIRECTORY);
            message.extend([9, 0, 72, 0, 2, 0, 0, 0, 1, 2]);
            assert_eq!(Response::parse(&message), Some(Response { output: &[1, 2] }));
            assert_eq!(Response::parse(&message[..73]), None);
        }
    }
}

/// QUERY_INFO (MS-SMB2 2.2.37, 2.2.38).
pub mod query_info {
    use crate::RequestDetail;
    use crate::names::InfoLevel;
    use crate::smb2::{FileReference, Smb2Request};

    message! {
        request Request: QUERY_INFO, 41 {
            level: InfoLevel = 2,
            output_buffer_length: u32 = 4,
            /// For security queries: parts of the descriptor.
            additional_information: u32 = 16,
            file: FileReference = 24,
        }
        expects output_buffer_length
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                Some(Smb2Request::Info { file: Self::file(m)?, level: Self::level(m)?, new_name: None })
            }

            fn detail(m: &[u8]) -> Option<RequestDetail> {
                Some(RequestDetail::QueryInfo { additional_information: Self::additional_information(m)? })
            }
        }
    }

    message! {
        response Response<'a>: QUERY_INFO, 9 {} with {
            output: &'a [u8] = [u16 @ 2, u32 @ 4],
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn type_and_class_come_first() {
            let query = Request {
                file: FileReference { persistent: 1, volatile: 2 },
                level: InfoLevel::FILE_FS_FULL_SIZE_INFORMATION,
                additional_information: 0,
                output_buffer_length: 0x0400,
            };
            let message = request(&query);
            assert_eq!(message[64..72], [41, 0, 2, 7, 0, 4, 0, 0]);
            assert_eq!(message[88..96], [1, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(message.len(), 64 + 41);
        }

        #[test]
        fn the_output_is_where_its_offset_says() {
            let mut message = response(Smb2Command::QUERY_INFO);
            message.extend([9, 0, 72, 0, 3, 0, 0, 0]);
            message.extend(b"abc");
            assert_eq!(Response::parse(&message), Some(Response { output: b"abc" }));
        }
    }
}

/// SET_INFO (MS-SMB2 2.2.39, 2.2.40) with the classes of MS-FSCC 2.4 that the client needs.
pub mod set_info {
    use crate::RequestDetail;
    use crate::bytes::{CapturedName, utf16_text};
    use crate::codec::{Buffer, FixedSizeField, Put};
    pub use crate::fscc::Data;
    use crate::kept::{NameOf, RetainedRanges};
    use crate::names::InfoLevel;
    use crate::smb2::view::reach;
    use crate::smb2::{FileReference, Smb2Request};

    message! {
        request Request<'a>: SET_INFO, 33 {
            level: InfoLevel = 2,
            file: FileReference = 16,
        } with {
            information: Information<'a> = [u16 @ 8, u32 @ 4],
        }
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                let level = Self::level(m)?;
                Some(Smb2Request::Info { file: Self::file(m)?, level, new_name: new_name(m, level) })
            }

            fn needed(prefix: &[u8]) -> usize {
                match Self::level(prefix) {
                    Some(InfoLevel::FILE_RENAME_INFORMATION) => reach(rename_buffer(prefix), Self::END),
                    _ => Self::END,
                }
            }

            fn detail(m: &[u8]) -> Option<RequestDetail> {
                let (start, length) = Self::information(m)?;
                Some(match Self::level(m)? {
                    InfoLevel::FILE_END_OF_FILE_INFORMATION => RequestDetail::EndOfFile(u64::at(m, start)?),
                    InfoLevel::FILE_DISPOSITION_INFORMATION => RequestDetail::Delete(u8::at(m, start)? != 0),
                    InfoLevel::FILE_RENAME_INFORMATION => {
                        let name = Data::new_name(m, start..start.checked_add(length)?)?;
                        RequestDetail::Rename { path: utf16_text(m.get(name)?), replace: u8::at(m, start)? != 0 }
                    }
                    _ => return None,
                })
            }

            fn detail_needed(prefix: &[u8]) -> usize {
                reach(Self::information(prefix), 0)
            }

            /// Retains a new name, a new size and the deletion mark, but no other information.
            fn retain_buffers(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                let (start, length) = Self::information(m)?;
                let end = |most: usize| start.checked_add(length.min(most));
                match Self::level(m)? {
                    InfoLevel::FILE_RENAME_INFORMATION => {
                        kept.field(start..end(Data::NAME)?);
                        if let Some(range) = Data::new_name(m, start..end(usize::MAX)?) {
                            kept.name(NameOf::Path, true, range);
                        }
                    }
                    InfoLevel::FILE_END_OF_FILE_INFORMATION => kept.field(start..end(8)?),
                    InfoLevel::FILE_DISPOSITION_INFORMATION => kept.field(start..end(1)?),
                    _ => {}
                }
                Some(())
            }
        }
    }

    /// Limit for a parsed FileRenameInformation. No name is longer.
    const MAX_RENAME_INFORMATION: usize = 64 * 1024;

    fn rename_buffer(message: &[u8]) -> Option<(usize, usize)> {
        let (start, length) = Request::information(message)?;
        Some((start, length.min(MAX_RENAME_INFORMATION)))
    }

    fn new_name(message: &[u8], level: InfoLevel) -> Option<CapturedName> {
        if level != InfoLevel::FILE_RENAME_INFORMATION {
            return None;
        }
        let (start, length) = rename_buffer(message)?;
        Data::new_name(message, start..start + length).map(|range| CapturedName::in_range(message, range, true))
    }

    impl<'a> Request<'a> {
        pub fn new(file: FileReference, data: Data<'a>) -> Request<'a> {
            Request { level: data.level(), file, information: Information::Data(data) }
        }
    }

    message! {
        response Response: SET_INFO, 2 {}
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Information<'a> {
        Bytes(&'a [u8]),
        Data(Data<'a>),
    }

    impl Default for Information<'_> {
        fn default() -> Self {
            Information::Bytes(&[])
        }
    }

    impl<'a> Buffer<'a> for Information<'a> {
        fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<Information<'a>> {
            Buffer::parse(message, offset, length).map(Information::Bytes)
        }

        fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
            let start = out.len();
            match self {
                Information::Bytes(bytes) => out.put_bytes(bytes),
                Information::Data(data) => data.emit(out),
            }
            out.len() - start
        }

        fn is_empty(&self) -> bool {
            matches!(self, Information::Bytes([]))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::request;
        use crate::smb2::{self, Smb2Command};

        const FILE: FileReference = FileReference { persistent: 1, volatile: 2 };

        #[test]
        fn a_rename_carries_the_new_path() {
            let message = request(&Request::new(FILE, Data::Rename { path: r"d\new".into(), replace: true }));
            assert_eq!(message[64..72], [33, 0, 1, 10, 30, 0, 0, 0]);
            assert_eq!(
                message[96..120],
                [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, b'd', 0, b'\\', 0]
            );
            let new_name = Some(r"d\new".into());
            let expected = smb2::Smb2Request::Info { file: FILE, level: InfoLevel::FILE_RENAME_INFORMATION, new_name };
            assert_eq!(smb2::Smb2Request::parse(Smb2Command::SET_INFO, &message), expected);
        }

        #[test]
        fn buffers_have_the_lengths_of_their_classes() {
            // MS-FSCC 2.4.7, 2.4.13, 2.4.4, 2.4.11
            let basic = Data::Basic { times: [0; 4], file_attributes: 0x20 };
            for (data, length) in
                [(basic, 40), (Data::EndOfFile(5), 8), (Data::Allocation(5), 8), (Data::Disposition(true), 1)]
            {
                let message = request(&Request::new(FILE, data));
                assert_eq!(message.len(), 96 + length, "{data:?}");
                assert_eq!(usize::from(message[68]), length);
            }
        }
    }
}

/// CHANGE_NOTIFY (MS-SMB2 2.2.35, 2.2.36).
pub mod change_notify {
    use crate::fscc::{FileNotifyInformation, changes};
    use crate::smb2::FileReference;
    use crate::smb2::view::HEAD;

    message! {
        request Request: CHANGE_NOTIFY, 32 {
            flags: u16 = 2,
            output_buffer_length: u32 = 4,
            file: FileReference = 8,
            completion_filter: u32 = 24,
        }
        target File(file) within HEAD
        expects output_buffer_length
    }

    impl Request {
        /// SMB2_WATCH_TREE: includes the whole subtree.
        pub const WATCH_TREE: u16 = 0x0001;
    }

    message! {
        response Response<'a>: CHANGE_NOTIFY, 9 {} with {
            output: &'a [u8] = [u16 @ 2, u32 @ 4, optional],
        }
    }

    impl<'a> Response<'a> {
        pub fn changes(&self) -> impl Iterator<Item = FileNotifyInformation> + use<'a> {
            changes(self.output)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn the_filter_follows_the_directory() {
            let file = FileReference { persistent: 1, volatile: 2 };
            let watch =
                Request { flags: Request::WATCH_TREE, output_buffer_length: 0x1000, file, completion_filter: 0x17 };
            let message = request(&watch);
            assert_eq!(message[64..72], [32, 0, 1, 0, 0, 0x10, 0, 0]);
            assert_eq!(message[88..], [0x17, 0, 0, 0, 0, 0, 0, 0]);
        }

        #[test]
        fn changes_are_a_list() {
            let mut message = response(Smb2Command::CHANGE_NOTIFY);
            message.extend([9, 0, 72, 0, 30, 0, 0, 0]);
            message.extend([16, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0]);
            message.extend([0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, b'b', 0]);
            let changes: Vec<FileNotifyInformation> = Response::parse(&message).unwrap().changes().collect();
            let change = |action, name: &str| FileNotifyInformation { action, name: name.to_owned() };
            assert_eq!(changes, [change(4, "a"), change(5, "b")]);
        }
    }
}
