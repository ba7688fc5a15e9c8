//! Headers for the tests of the messages, and properties that hold for all of them: what the client emits, the analyser
//! reads; and no bytes of a server make a response panic.

use super::put::Put;
use super::*;
use crate::names::{Fsctl, InfoLevel};
use crate::smb2::{self, FileReference, LockElement, flags};
use crate::status::NtStatus;
use proptest::prelude::*;

const HEADER: Header = Header {
    credit_charge: 1,
    status: NtStatus::SUCCESS,
    command: Command::ECHO,
    credits: 1,
    flags: 0,
    next_command: 0,
    message_id: 7,
    id_mask: u64::MAX,
    async_id: None,
    tree_id: Some(1),
    session_id: Some(2),
};

/// A whole request.
pub(super) fn request<B: Body>(body: &B) -> Vec<u8> {
    let mut out = Vec::new();
    Header { command: B::COMMAND, ..HEADER }.emit(&mut out);
    body.emit(&mut out);
    out
}

/// The header of a response.
pub(super) fn response(command: Command) -> Vec<u8> {
    let mut out = Vec::new();
    Header { command, flags: flags::SERVER_TO_REDIR, ..HEADER }.emit(&mut out);
    out
}

fn files() -> impl Strategy<Value = FileReference> {
    (any::<u64>(), any::<u64>()).prop_map(|(persistent, volatile)| FileReference { persistent, volatile })
}

proptest! {
    #[test]
    fn what_a_client_asks_for_is_what_an_analyser_reads(
        file in files(), offset: u64, length: u32, name in "[a-zA-Z0-9äß𝄞.\\\\]{0,40}", data: Vec<u8>, class: u8, code: u32,
        access: u32, flags: u32,
    ) {
        let read = |message: &[u8], command| format!("{:?}", smb2::Request::parse(command, message));
        let expect = |request: smb2::Request<'_>| format!("{request:?}");

        let create = create::Request {
            name: &name, oplock_level: 0, desired_access: access, file_attributes: 0, share_access: 7,
            create_disposition: 1, create_options: 0, contexts: &[],
        };
        prop_assert_eq!(read(&request(&create), Command::CREATE), expect(smb2::Request::Create(name.clone().into())));

        let level = InfoLevel::File(class);
        let list = query_directory::Request { file, level, flags: 0, pattern: &name, output_buffer_length: length };
        let info = expect(smb2::Request::Info { file, level, new_name: None });
        prop_assert_eq!(read(&request(&list), Command::QUERY_DIRECTORY), info.clone());
        let query = query_info::Request { file, level, additional_information: 0, output_buffer_length: length };
        prop_assert_eq!(read(&request(&query), Command::QUERY_INFO), info);

        let io = expect(smb2::Request::ReadWrite { file, offset, length });
        prop_assert_eq!(read(&request(&read::Request { file, offset, length }), Command::READ), io);
        let io = expect(smb2::Request::ReadWrite { file, offset, length: data.len() as u32 });
        prop_assert_eq!(read(&request(&write::Request { file, offset, data: &data }), Command::WRITE), io);

        let element = LockElement { offset, length: length.into(), flags };
        let lock = expect(smb2::Request::Lock { file, element: Some(element) });
        prop_assert_eq!(read(&request(&lock::Request { file, locks: &[element] }), Command::LOCK), lock);

        let ioctl = ioctl::Request { code: Fsctl(code), file, input: &data, max_output: length };
        let expected = expect(smb2::Request::Ioctl { file, code: Fsctl(code) });
        prop_assert_eq!(read(&request(&ioctl), Command::IOCTL), expected);

        let rename = set_info::Request { file, data: set_info::Data::Rename { path: &name, replace: true } };
        let level = InfoLevel::FILE_RENAME_INFORMATION;
        let expected = expect(smb2::Request::Info { file, level, new_name: Some(name.clone().into()) });
        prop_assert_eq!(read(&request(&rename), Command::SET_INFO), expected);

        let expected = expect(smb2::Request::File(file));
        prop_assert_eq!(read(&request(&close::Request { file }), Command::CLOSE), expected.clone());
        prop_assert_eq!(read(&request(&flush::Request { file }), Command::FLUSH), expected.clone());
        let watch =
            change_notify::Request { file, watch_tree: true, completion_filter: flags, output_buffer_length: length };
        prop_assert_eq!(read(&request(&watch), Command::CHANGE_NOTIFY), expected);
    }

    #[test]
    fn a_header_is_read_as_it_was_emitted(
        credit_charge: u16, status: u32, command: u16, credits: u16, next_command: u32, message_id: u64,
        asynchronous: bool, id: u64, session_id: u64, other_flags: u32,
    ) {
        let flag = if asynchronous { flags::ASYNC_COMMAND } else { 0 };
        let header = Header {
            credit_charge,
            status: NtStatus(status),
            command: Command(command),
            credits,
            flags: other_flags & !flags::ASYNC_COMMAND | flag,
            next_command,
            message_id,
            id_mask: u64::MAX,
            async_id: asynchronous.then_some(id),
            tree_id: (!asynchronous).then_some(id as u32),
            session_id: Some(session_id),
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        prop_assert_eq!(bytes.len(), Header::LENGTH);
        prop_assert_eq!(Header::parse(&bytes), Some(header));
    }

    #[test]
    fn no_bytes_of_a_server_make_a_response_panic(body: Vec<u8>, size: u16, class in 0u8..64) {
        for size in [size, 2, 4, 9, 16, 17, 24, 44, 49, 60, 65, 89] {
            let mut message = response(Command::READ);
            message.put_u16(size);
            message.extend(&body);
            let _ = negotiate::Response::parse(&message).map(|response| response.contexts.count());
            let _ = session_setup::Response::parse(&message);
            let _ = tree_connect::Response::parse(&message);
            let _ = create::Response::parse(&message).map(|response| response.contexts.lease());
            let _ = read::Response::parse(&message);
            let _ = write::Response::parse(&message);
            let _ = ioctl::Response::parse(&message);
            let _ = query_info::Response::parse(&message);
            let entries = query_directory::Response::parse(&message);
            let _ = entries.and_then(|r| r.entries(InfoLevel::File(class)).map(Iterator::count));
            let _ = change_notify::Response::parse(&message).map(|response| response.changes().count());
            let _ = oplock_break::Notification::parse(&message);
            let _ = error::Error::parse(&message).map(|error| (error.symlink(), error.needed()));
        }
        let _ = directory::DirectoryEntries::new(&body, InfoLevel::File(class)).map(Iterator::count);
        let _ = network_interface::interfaces(&body).count();
        let _ = copy_chunk::Copied::parse(&body);
        let _ = validate_negotiate::Response::parse(&body);
    }
}
