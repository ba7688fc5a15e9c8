//! Helpers for the tests of single messages, and properties of all messages: emitted messages parse to the same value,
//! the analyser reads what the client emits, and no server bytes make a response parser panic.

use super::*;
use crate::codec::{List, Put};
use crate::names::{Fsctl, InfoLevel};
use crate::smb2::Smb2Header;
use crate::smb2::header::with_commands;
use crate::smb2::{self, FileReference, LockElement, Smb2Command, flags};
use crate::status::NtStatus;
use proptest::prelude::*;

const HEADER: Smb2Header =
    Smb2Header { message_id: 7, tree_id: Some(1), session_id: Some(2), ..Smb2Header::new(Smb2Command::ECHO) };

pub(super) fn request<B: Smb2Message>(body: &B) -> Vec<u8> {
    let mut out = Vec::new();
    Smb2Header { command: B::COMMAND, ..HEADER }.emit(&mut out);
    body.emit(&mut out);
    out
}

pub(super) fn response(command: Smb2Command) -> Vec<u8> {
    let mut out = Vec::new();
    Smb2Header { command, flags: flags::SERVER_TO_REDIR, ..HEADER }.emit(&mut out);
    out
}

fn files() -> impl Strategy<Value = FileReference> {
    (any::<u64>(), any::<u64>()).prop_map(|(persistent, volatile)| FileReference { persistent, volatile })
}

impl oplock_break::Acknowledgement {
    fn any(fields: &[u8], buffers: &[u8]) -> oplock_break::Acknowledgement {
        oplock_break::Acknowledgement::Oplock(oplock_break::Oplock::any(fields, buffers))
    }
}

impl oplock_break::Notification {
    fn any(fields: &[u8], buffers: &[u8]) -> oplock_break::Notification {
        oplock_break::Notification::Oplock(oplock_break::Oplock::any(fields, buffers))
    }
}

impl Smb2Message for oplock_break::Notification {
    const COMMAND: Smb2Command = Smb2Command::OPLOCK_BREAK;

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            oplock_break::Notification::Oplock(oplock) => oplock.emit(out),
            oplock_break::Notification::Lease(lease) => lease.emit(out),
        }
    }
}

/// Checks for each type that a message with arbitrary contents parses as emitted.
macro_rules! round_trips {
    ($fields:ident, $buffers:ident: $($type:path),* $(,)?) => {$({
        let message = <$type>::any(&$fields, &$buffers);
        let bytes = request(&message);
        prop_assert_eq!(<$type>::parse(&bytes), Some(message));
        for length in 0..bytes.len() {
            let _ = <$type>::parse(&bytes[..length]);
        }
    })*};
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_emitted(
        fields in prop::collection::vec(any::<u8>(), 128), buffers in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        macro_rules! of_all_commands {
            ($($name:ident = $value:literal $(, $request:path $(, $response:path)?)?;)*) => {
                round_trips!(fields, buffers: $($($request, $($response,)?)?)*);
            };
        }
        with_commands!(of_all_commands);
        round_trips!(fields, buffers: oplock_break::LeaseBreak, oplock_break::Lease);
        let mut bytes = response(Smb2Command::CREATE);
        error::Smb2ErrorResponse { data: &buffers }.emit(&mut bytes);
        prop_assert_eq!(error::Smb2ErrorResponse::parse(&bytes), Some(error::Smb2ErrorResponse { data: &buffers }));
    }

    #[test]
    fn inputs_and_outputs_of_control_codes_parse_as_emitted(
        key: [u8; 24], guid: [u8; 16], a: u32, b: u32, c: u16, d: u16, ids: Vec<u16>, offsets: Vec<(u64, u64, u32)>,
    ) {
        use copy_chunk::{SrvCopyChunk, Copied, ResumeKey};
        let emitted = |emit: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            emit(&mut out);
            out
        };
        prop_assert_eq!(ResumeKey::parse(&emitted(&|out| ResumeKey(key).emit(out))), Some(ResumeKey(key)));
        let chunk = |&(source_offset, target_offset, length)| SrvCopyChunk { source_offset, target_offset, length };
        let chunks: Vec<SrvCopyChunk> = offsets.iter().map(chunk).collect();
        let bytes = emitted(&|out| copy_chunk::emit(ResumeKey(key), &chunks, out));
        prop_assert_eq!(copy_chunk::parse(&bytes), Some((ResumeKey(key), List::Values(&chunks))));
        let copied = Copied { chunks_written: a, chunk_bytes_written: b, total_bytes_written: c.into() };
        prop_assert_eq!(Copied::parse(&emitted(&|out| copied.emit(out))), Some(copied));
        let dialects = List::Values(&ids);
        let request = validate_negotiate::ValidateNegotiateRequest { capabilities: a, guid, security_mode: c, dialects };
        let bytes = emitted(&|out| request.emit(out));
        prop_assert_eq!(validate_negotiate::ValidateNegotiateRequest::parse(&bytes), Some(request));
        let response = validate_negotiate::ValidateNegotiateResponse { capabilities: b, guid, security_mode: c, dialect: d };
        prop_assert_eq!(validate_negotiate::ValidateNegotiateResponse::parse(&emitted(&|out| response.emit(out))), Some(response));
    }

    #[test]
    fn contexts_are_read_as_they_were_emitted(
        key: [u8; 16], parent_key: [u8; 16], state: u32, flags: u32, epoch: u16, salt in prop::collection::vec(any::<u8>(), 1..64),
        ciphers in prop::collection::vec(any::<u16>(), 1..5), algorithms in prop::collection::vec(any::<u16>(), 1..5),
        durable: bool, first: bool,
    ) {
        use create_context::{CreateContext, Lease};
        let lease = CreateContext::LeaseV2(Lease { key, state, flags, parent_key, epoch });
        let older = CreateContext::LeaseV1(Lease { key, state, flags, ..Lease::default() });
        for lease in [lease, older] {
            let other = CreateContext::DurableHandleV2 { timeout: state, persistent: durable, create_guid: parent_key };
            let list = if first { [lease, other] } else { [other, lease] };
            let message = request(&create::Request {
                contexts: create_context::CreateContextList::List(&list[..if durable || !first { 2 } else { 1 }]),
                ..create::Request::default()
            });
            let read = create::Request::parse(&message).expect("whole").contexts;
            prop_assert_eq!((read.lease(), read.is_durable()), (Some(lease), durable || !first));
        }
        let offer = negotiate_context::Offer {
            salt: &salt, ciphers: &ciphers, signing_algorithms: &algorithms, net_name: durable.then_some("srv"),
        };
        let contexts = negotiate_context::NegotiateContextList::Offer(offer);
        let message = request(&negotiate::Request { contexts, ..negotiate::Request::default() });
        let read = negotiate::Request::parse(&message).expect("whole").contexts;
        prop_assert_eq!(read.hash_algorithm(), Some(1));
        prop_assert_eq!(read.ciphers(), Some(List::Values(&ciphers)));
        prop_assert_eq!(read.signing_algorithms(), Some(List::Values(&algorithms)));
        prop_assert_eq!(read.iter().count(), 3 + usize::from(durable));
    }

    #[test]
    fn the_analyser_reads_what_the_client_emits(
        file in files(), offset: u64, length: u32, name in "[a-zA-Z0-9äß𝄞.\\\\]{0,40}", data: Vec<u8>, class: u8, code: u32,
        access: u32, flags: u32,
    ) {
        let read = |message: &[u8], command| format!("{:?}", smb2::Smb2Request::parse(command, message));
        let expect = |request: smb2::Smb2Request| format!("{request:?}");

        let create = create::Request {
            name: name.as_str().into(), desired_access: access, share_access: 7, create_disposition: 1,
            ..create::Request::default()
        };
        prop_assert_eq!(read(&request(&create), Smb2Command::CREATE), expect(smb2::Smb2Request::Create {
            name: name.clone().into(),
            oplock_level: Some(create.oplock_level),
        }));

        let level = InfoLevel::File(class);
        let list = query_directory::Request {
            file, class, flags: 0, pattern: name.as_str().into(), output_buffer_length: length,
        };
        let info = expect(smb2::Smb2Request::Info { file, level, new_name: None });
        prop_assert_eq!(read(&request(&list), Smb2Command::QUERY_DIRECTORY), info.clone());
        let query = query_info::Request { file, level, additional_information: 0, output_buffer_length: length };
        prop_assert_eq!(read(&request(&query), Smb2Command::QUERY_INFO), info);

        let io = expect(smb2::Smb2Request::ReadWrite { file, offset, length });
        prop_assert_eq!(read(&request(&read::Request::new(file, offset, length)), Smb2Command::READ), io);
        let io = expect(smb2::Smb2Request::ReadWrite { file, offset, length: data.len() as u32 });
        prop_assert_eq!(read(&request(&write::Request { file, offset, data: &data }), Smb2Command::WRITE), io);

        let element = LockElement { offset, length: length.into(), flags };
        let lock = expect(smb2::Smb2Request::Lock { file, element: Some(element) });
        prop_assert_eq!(read(&request(&lock::Request { file, locks: List::Values(&[element]) }), Smb2Command::LOCK), lock);

        let ioctl = ioctl::Request::new(Fsctl(code), file, &data, length);
        let expected = expect(smb2::Smb2Request::Ioctl { file, code: Fsctl(code) });
        prop_assert_eq!(read(&request(&ioctl), Smb2Command::IOCTL), expected);

        let rename = set_info::Request::new(file, set_info::Data::Rename { path: name.as_str().into(), replace: true });
        let level = InfoLevel::FILE_RENAME_INFORMATION;
        let expected = expect(smb2::Smb2Request::Info { file, level, new_name: Some(name.clone().into()) });
        prop_assert_eq!(read(&request(&rename), Smb2Command::SET_INFO), expected);

        let expected = expect(smb2::Smb2Request::File(file));
        prop_assert_eq!(read(&request(&close::Request { flags: 0, file }), Smb2Command::CLOSE), expected.clone());
        prop_assert_eq!(read(&request(&flush::Request { file }), Smb2Command::FLUSH), expected.clone());
        let watch = change_notify::Request { flags: 1, file, completion_filter: flags, output_buffer_length: length };
        prop_assert_eq!(read(&request(&watch), Smb2Command::CHANGE_NOTIFY), expected);
    }

    #[test]
    fn a_header_is_read_as_it_was_emitted(
        credit_charge: u16, status: u32, command: u16, credits: u16, next_command: u32, message_id: u64,
        asynchronous: bool, id: u64, session_id: u64, other_flags: u32,
    ) {
        let flag = if asynchronous { flags::ASYNC_COMMAND } else { 0 };
        let header = Smb2Header {
            credit_charge,
            status: NtStatus(status),
            command: Smb2Command(command),
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
        prop_assert_eq!(bytes.len(), Smb2Header::LENGTH);
        prop_assert_eq!(Smb2Header::parse(&bytes), Some(header));
    }

    #[test]
    fn no_bytes_of_a_server_make_a_response_panic(body: Vec<u8>, size: u16, class in 0u8..64) {
        for size in [size, 2, 4, 9, 16, 17, 24, 44, 49, 60, 65, 89] {
            let mut message = response(Smb2Command::READ);
            message.put(size);
            message.extend(&body);
            let _ = negotiate::Response::parse(&message).map(|response| response.contexts.iter().count());
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
            let _ = error::Smb2ErrorResponse::parse(&message).map(|error| (error.symlink(), error.needed()));
        }
        let _ = crate::fscc::DirectoryEntries::new(&body, InfoLevel::File(class)).map(Iterator::count);
        let _ = network_interface::interfaces(&body).count();
        let _ = copy_chunk::Copied::parse(&body);
        let _ = validate_negotiate::ValidateNegotiateResponse::parse(&body);
    }
}
