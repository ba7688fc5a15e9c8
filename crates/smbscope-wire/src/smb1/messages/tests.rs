//! Properties of all messages: each parses as it was emitted, alone and in a chain.

use super::*;
use crate::smb1::{Smb1Header, blocks, flags2};
use proptest::prelude::*;

fn header(unicode: bool) -> Smb1Header {
    let flags2 = if unicode { flags2::UNICODE } else { 0 };
    Smb1Header { command: Smb1Command(0), status: 0, flags: 0, flags2, tid: 1, pid: 2, uid: 3, mid: 4 }
}

/// Checks for each type that a message with arbitrary contents parses as emitted.
macro_rules! round_trips {
    ($unicode:ident, $words:ident, $text:ident, $bytes:ident: $($type:path),* $(,)?) => {$({
        let message = <$type>::any(&$words, &$text, &$bytes);
        let mut emitted = Vec::new();
        message.emit(&header($unicode), &mut emitted);
        prop_assert_eq!(<$type>::parse(&emitted), Ok(message));
        let read = Smb1Header::parse(&emitted).expect("a whole header");
        let block = blocks(&read, &emitted).next().expect("a whole block");
        prop_assert_eq!(<$type>::parse_block(&block), Ok(message));
        for length in 0..emitted.len() {
            let _ = <$type>::parse(&emitted[..length]);
        }
    })*};
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_emitted(
        words in prop::collection::vec(any::<u8>(), 80), text in "[ -~]{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..50),
        unicode: bool,
    ) {
        round_trips!(
            unicode, words, text, bytes: Delete, CreateDirectory, DeleteDirectory, CheckDirectory, Echo, EchoResponse,
            ReadBytes, LockByteRange, ReadMpx, ReadMpxResponse,
            WriteMpx, OpenResponse, SessionSetupAndxLanMan, NtCreateAndx, NtCreateAndxResponse, OpenAndx, OpenAndxResponse, Close, FindClose2, Flush, LogoffAndx,
            NtCancel, TreeDisconnect, ReadAndx, ReadRaw, Rename, SessionSetupAndx, SessionSetupAndxResponse,
            SessionSetupAndxPlain, SessionSetupAndxPlainResponse, TreeConnectAndx, TreeConnectAndxResponse,
            TreeConnectAndxExtendedResponse, WriteAndxResponse, WriteRaw, WriteComplete, LockingAndxResponse,
            LockingAndxFields, ReadAndxFields, WriteAndxFields, NtLm012Fields, NoDialect, QueryInformationResponse,
            QueryInformationDiskResponse, Transaction2Fields, Transaction2ResponseFields, Transaction2SecondaryFields,
            PipeFields, NtTransactFields, NtTransactResponseFields,
        );
    }

    #[test]
    fn data_is_read_as_it_was_emitted(
        fid: u16, offset: u64, write_mode: u16, padding in 0u16..8, data in prop::collection::vec(any::<u8>(), 1..50),
    ) {
        let mut emitted = Vec::new();
        let write = WriteAndx { fid, offset, write_mode, padding, data: &data };
        write.emit(&header(true), &mut emitted);
        prop_assert_eq!(WriteAndx::parse(&emitted), Ok(write));
        emitted.clear();
        let read = ReadAndxResponse { available: fid, padding, data: &data };
        read.emit(&header(true), &mut emitted);
        prop_assert_eq!(ReadAndxResponse::parse(&emitted), Ok(read));
    }

    #[test]
    fn answers_in_several_layouts_are_read_as_they_were_emitted(
        security_mode: u8, max_mpx_count: u16, max_buffer_size: u32, session_key: u32, capabilities: u32, system_time: u64,
        server_guid: [u8; 16], blob: Vec<u8>, challenge: [u8; 8], domain in "[ -~]{0,9}", unicode: bool,
    ) {
        let challenged = Security::Challenge { challenge: &challenge, domain: domain.as_str().into() };
        for security in [Security::Extended { server_guid, blob: &blob }, challenged] {
            let extended = capabilities::EXTENDED_SECURITY;
            let is_extended = matches!(security, Security::Extended { .. });
            let capabilities = if is_extended { capabilities | extended } else { capabilities & !extended };
            let answer = NtLm012 {
                dialect_index: 0, security_mode, max_mpx_count, max_buffer_size, max_raw_size: max_buffer_size, session_key,
                capabilities, system_time, security,
            };
            let mut emitted = Vec::new();
            answer.emit(&header(unicode), &mut emitted);
            prop_assert_eq!(NegotiateResponse::parse(&emitted), Ok(NegotiateResponse::NtLm012(answer)));
        }
    }

    #[test]
    fn transactions_are_read_as_they_were_emitted(
        subcommand: u16, fid: u16, filter: u32, most: u16, more: u16, watch_tree: bool, unicode: bool,
        (parameters, data) in (prop::collection::vec(any::<u8>(), 0..50), prop::collection::vec(any::<u8>(), 0..50)),
    ) {
        let mut emitted = Vec::new();
        let request = Transaction2 {
            subcommand: crate::names::Trans2(subcommand), max_parameter_count: most, max_data_count: fid,
            total_parameter_count: parameters.len() as u16, total_data_count: (data.len() as u16).saturating_add(more),
            parameters: &parameters, data: &data,
        };
        request.emit(&header(unicode), &mut emitted);
        prop_assert_eq!(Transaction2::parse(&emitted), Ok(request));
        for length in 0..emitted.len() {
            let _ = Transaction2::parse(&emitted[..length]);
        }
        let whole = TransactionPart::whole(&parameters, &data);
        let part = TransactionPart {
            total_data_count: more.into(), parameter_displacement: fid.into(), data_displacement: most.into(), ..whole
        };
        for part in [whole, part] {
            emitted.clear();
            Transaction2Response(part).emit(&header(unicode), &mut emitted);
            prop_assert_eq!(Transaction2Response::parse(&emitted), Ok(Transaction2Response(part)));
            emitted.clear();
            Transaction2Secondary(part).emit(&header(unicode), &mut emitted);
            prop_assert_eq!(Transaction2Secondary::parse(&emitted), Ok(Transaction2Secondary(part)));
            emitted.clear();
            NtTransactResponse(part).emit(&header(unicode), &mut emitted);
            prop_assert_eq!(NtTransactResponse::parse(&emitted), Ok(NtTransactResponse(part)));
        }
        emitted.clear();
        let watch = NtTransactNotifyChange { fid, completion_filter: filter, watch_tree, max_parameter_count: filter };
        watch.emit(&header(unicode), &mut emitted);
        prop_assert_eq!(NtTransactNotifyChange::parse(&emitted), Ok(watch));
    }

    #[test]
    fn dialects_are_those_that_were_emitted(names in prop::collection::vec("[ -~]{0,9}", 0..70)) {
        let dialects: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut emitted = Vec::new();
        Negotiate { dialects: &dialects }.emit(&header(true), &mut emitted);
        let header = Smb1Header::parse(&emitted).expect("a whole header");
        let block = blocks(&header, &emitted).next().expect("a whole block");
        prop_assert_eq!(Negotiate::dialects(&block), &names[..names.len().min(64)]);
    }

    #[test]
    fn locked_ranges_are_those_that_were_emitted(fid: u16, timeout: u32, offset: u64, length: u64, wide: bool) {
        let type_of_lock = if wide { lock_type::LARGE_FILES } else { 0 };
        // Ranges without LARGE_FILES have 32 bits.
        let [offset, length] = [offset, length].map(|value| if wide { value } else { value & u64::from(u32::MAX) });
        let range = LockingAndxRange { pid: 7, offset, length };
        let lock = LockingAndx { fid, type_of_lock, new_oplock_level: 0, timeout, unlocks: &[], locks: &[range] };
        let mut emitted = Vec::new();
        lock.emit(&header(true), &mut emitted);
        let header = Smb1Header::parse(&emitted).expect("a whole header");
        let block = blocks(&header, &emitted).next().expect("a whole block");
        let expected = crate::smb1::Smb1Request::Locking {
            fid, timeout, locks: 1, unlocks: 0, oplock_release: false, range: Some((offset, length)),
        };
        prop_assert_eq!(crate::smb1::Smb1Request::parse(&header, &block, &emitted), expected);
    }

    #[test]
    fn a_chain_is_read_command_by_command(name in "[a-z]{1,9}", fid: u16, offset: u64, count: u32, unicode: bool) {
        let open = OpenAndx { name: name.as_str().into(), ..OpenAndx::default() };
        let read = ReadAndx::new(fid, offset, count);
        let mut emitted = Vec::new();
        let mut writer = Smb1MessageWriter::new(&Smb1Header { command: Smb1Command::OPEN_ANDX, ..header(unicode) }, &mut emitted);
        writer.add(&open);
        writer.add(&read);
        let header = Smb1Header::parse(&emitted).expect("a whole header");
        let chain: Vec<_> = blocks(&header, &emitted).collect();
        prop_assert_eq!(chain.len(), 2);
        prop_assert_eq!(OpenAndx::parse_block(&chain[0]), Ok(open));
        prop_assert_eq!(ReadAndx::parse_block(&chain[1]), Ok(read));
    }
}
