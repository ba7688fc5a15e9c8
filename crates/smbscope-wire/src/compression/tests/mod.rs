//! Decompression of the specification's examples and of the output of independent compressors and our own.

use super::*;

mod encoders;
mod properties;
mod vectors;

/// An unchained frame (MS-SMB2 2.2.42.1): ProtocolId, size, algorithm, flags, offset, plain bytes, data.
fn unchained(algorithm: Algorithm, plain: &[u8], original: usize, data: &[u8]) -> Vec<u8> {
    let mut frame = b"\xfcSMB".to_vec();
    frame.extend((original as u32).to_le_bytes());
    frame.extend(algorithm.0.to_le_bytes());
    frame.extend(0u16.to_le_bytes());
    frame.extend((plain.len() as u32).to_le_bytes());
    frame.extend(plain);
    frame.extend(data);
    frame
}

/// A chained frame (MS-SMB2 2.2.42.2): ProtocolId and size, then the payloads.
fn chained(original: usize, payloads: &[(Algorithm, Option<usize>, &[u8])]) -> Vec<u8> {
    let mut frame = b"\xfcSMB".to_vec();
    frame.extend((original as u32).to_le_bytes());
    for (index, (algorithm, original, data)) in payloads.iter().enumerate() {
        frame.extend(algorithm.0.to_le_bytes());
        frame.extend(u16::from(index == 0).to_le_bytes());
        frame.extend((data.len() as u32 + if original.is_some() { 4 } else { 0 }).to_le_bytes());
        frame.extend(original.iter().flat_map(|size| (*size as u32).to_le_bytes()));
        frame.extend(*data);
    }
    frame
}

fn decoded(algorithm: Algorithm, data: &[u8], limit: usize) -> Result<Vec<u8>, CompressionError> {
    let mut out = Vec::new();
    decompress(algorithm, data, &mut out, limit).map(|()| out)
}

#[test]
fn header_fields_are_where_the_specification_puts_them() {
    let frame = unchained(Algorithm::LZ4, b"plain", 7, b"data");
    let CompressedFrame::Unchained { original_compressed_segment_size: 7, algorithm, offset: 5, plain, data } =
        parse(&frame).unwrap()
    else {
        panic!("unchained")
    };
    assert_eq!((algorithm, plain, data), (Algorithm::LZ4, &b"plain"[..], &b"data"[..]));

    let frame = chained(
        300,
        &[
            (Algorithm::NONE, None, b"head"),
            (Algorithm::LZ77, Some(200), b"body"),
            (Algorithm::PATTERN_V1, None, &[0; 8]),
        ],
    );
    assert!(looks_chained(&frame));
    let CompressedFrame::Chained { original_compressed_segment_size: 300, payloads } = parse(&frame).unwrap() else {
        panic!("chained")
    };
    let payloads: Vec<_> = payloads.map(Result::unwrap).collect();
    assert_eq!(payloads.len(), 3);
    assert_eq!((payloads[0].flags, payloads[0].length, payloads[0].original_payload_size), (1, 4, None));
    assert_eq!((payloads[1].flags, payloads[1].length, payloads[1].original_payload_size), (0, 8, Some(200)));
    assert_eq!((payloads[1].data, payloads[2].data.len()), (&b"body"[..], 8));
}

#[test]
fn a_frame_that_ends_in_its_header_says_what_is_missing() {
    assert_eq!(parse(b"\xfeSMB"), Err(CompressionError::NotCompressed));
    let truncated = CompressionError::Truncated { what: "transform header", need: 16, have: 6, offset: 0 };
    assert_eq!(parse(b"\xfcSMB\0\0"), Err(truncated));
    let frame = chained(10, &[(Algorithm::NONE, None, b"")]);
    let truncated = CompressionError::Truncated { what: "payload header", need: 8, have: 5, offset: 8 };
    assert_eq!(recover_prefix(&frame[..13], true, 10), Err(truncated));
}

#[test]
fn unchained_message_is_its_plain_part_and_what_is_decompressed() {
    // Expected: MS-XCA 3.1, 100 × "abc", after a plain part.
    let data = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
    let frame = unchained(Algorithm::LZ77, b"\xfeSMB", 300, &data);
    let message = [b"\xfeSMB".to_vec(), b"abc".repeat(100)].concat();
    assert_eq!(recover_prefix(&frame, false, 4096).unwrap(), message);
    assert_eq!(recover_prefix(&frame, false, 70).unwrap(), message[..70]);
    assert_eq!(recover_prefix(&frame, false, 2).unwrap(), message[..2]);
    assert_eq!(recover_prefix(&frame[..18], false, 4096).unwrap(), message[..2]);
}

#[test]
fn chained_message_is_its_payloads_one_after_the_other() {
    let pattern = [b'-', 0, 0, 0, 5, 0, 0, 0];
    let lz4 = lz4_flex::block::compress(b"hello hello hello hello");
    let frame = chained(
        4 + 5 + 23,
        &[
            (Algorithm::NONE, None, b"\xfeSMB"),
            (Algorithm::PATTERN_V1, None, &pattern),
            (Algorithm::LZ4, Some(23), &lz4),
        ],
    );
    let message = b"\xfeSMB-----hello hello hello hello";
    assert_eq!(recover_prefix(&frame, looks_chained(&frame), 4096).unwrap(), message);
    assert_eq!(recover_prefix(&frame, true, 7).unwrap(), message[..7]);
}

#[test]
fn nothing_follows_a_payload_that_came_up_short() {
    // The LZ4 payload holds 3 bytes and claims 10, so the position of the next payload is unknown.
    let frame = chained(20, &[(Algorithm::LZ4, Some(10), b"\x30abc"), (Algorithm::NONE, None, b"later")]);
    assert_eq!(recover_prefix(&frame, true, 100).unwrap(), b"abc");
}

#[test]
fn a_payload_does_not_reach_into_the_one_before_it() {
    // Distance 4 reaches beyond the payload's own two literals.
    let frame = chained(20, &[(Algorithm::NONE, None, b"abcdef"), (Algorithm::LZ4, Some(8), b"\x22xy\x04\0")]);
    assert_eq!(recover_prefix(&frame, true, 100).unwrap(), b"abcdefxy");
}

#[test]
fn errors_come_only_where_nothing_was_recovered() {
    let unknown = Algorithm(9);
    assert_eq!(
        recover_prefix(&unchained(unknown, b"", 10, b"??"), false, 10),
        Err(CompressionError::UnknownAlgorithm(unknown))
    );
    assert_eq!(recover_prefix(&unchained(unknown, b"plain", 10, b"??"), false, 10).unwrap(), b"plain");
    let corrupt = CompressionError::Corrupt(Algorithm::LZNT1);
    assert_eq!(recover_prefix(&unchained(Algorithm::LZNT1, b"", 10, &[0x00, 0x80]), false, 10), Err(corrupt));
}

#[test]
fn a_pattern_of_four_gigabytes_takes_no_more_memory_than_the_limit() {
    let pattern = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    let frame = chained(u32::MAX as usize, &[(Algorithm::PATTERN_V1, None, &pattern)]);
    let recovered = recover_prefix(&frame, true, usize::MAX).unwrap();
    assert_eq!(recovered.len(), MAX_RECOVERED);
    assert!(recovered.capacity() <= 2 * MAX_RECOVERED);
    assert_eq!(recover_prefix(&frame, true, 100).unwrap(), [0; 100]);
}
