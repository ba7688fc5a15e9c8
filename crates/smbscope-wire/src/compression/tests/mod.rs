//! Decompression of the examples of MS-XCA section 3 and of the output of independent compressors and our own; round
//! trips with every truncation and every limit; and arbitrary bytes.

use super::*;
use proptest::{collection::vec, prelude::*};

mod encoders;

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
fn unchained_message_is_its_plain_part_and_the_decompressed_rest() {
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

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// A compressible text, the source of the files in `vectors/`.
fn lines() -> Vec<u8> {
    (0..340u32).map(|i| format!("line {}: {}\n", i * i % 97, i * 7919 % 1000)).collect::<String>().into_bytes()
}

/// Returns 256 bytes of code lengths, mostly zero, followed by `data`.
fn huffman_example(lengths: &[(usize, u8)], data: &[u8]) -> Vec<u8> {
    let mut example = vec![0; 256];
    for &(at, byte) in lengths {
        example[at] = byte;
    }
    example.extend(data);
    example
}

#[test]
fn plain_lz77_examples_of_the_specification() {
    // Expected: MS-XCA 3.1.
    let alphabet = [&[0x3f, 0x00, 0x00, 0x00], ALPHABET].concat();
    assert_eq!(decoded(Algorithm::LZ77, &alphabet, 26).unwrap(), ALPHABET);
    let abc = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
    assert_eq!(decoded(Algorithm::LZ77, &abc, 300).unwrap(), b"abc".repeat(100));
}

#[test]
fn lz77_huffman_examples_of_the_specification() {
    // Expected: MS-XCA 3.2.
    let mut lengths = vec![(0x30, 0x50), (0x3b, 0x45), (0x3c, 0x44), (0x3d, 0x04), (0x80, 0x04)];
    lengths.extend((0x31..0x3b).map(|at| (at, 0x55)));
    let data = [
        0xd8, 0x52, 0x3e, 0xd7, 0x94, 0x11, 0x5b, 0xe9, 0x19, 0x5f, 0xf9, 0xd6, 0x7c, 0xdf, 0x8d, 0x04, 0x00, 0x00,
        0x00, 0x00,
    ];
    let alphabet = huffman_example(&lengths, &data);
    assert_eq!(decoded(Algorithm::LZ77_HUFFMAN, &alphabet, 26).unwrap(), ALPHABET);

    let lengths = [(0x30, 0x30), (0x31, 0x23), (0x80, 0x02), (0x8f, 0x20)];
    let abc = huffman_example(&lengths, &[0xa8, 0xdc, 0x00, 0x00, 0xff, 0x26, 0x01]);
    assert_eq!(decoded(Algorithm::LZ77_HUFFMAN, &abc, 300).unwrap(), b"abc".repeat(100));
}

#[test]
fn lznt1_example_of_the_specification() {
    // Expected: MS-XCA 3.3.
    let data = [
        0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47, 0x01, 0xa0, 0x45,
        0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xb4,
        0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09, 0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00,
        0x04, 0x01, 0x18, 0x90, 0x00,
    ];
    let text = b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E F# G F# \
        E D E A F# F# G A A G F# E D D E F# E D D\0";
    assert_eq!(text.len(), 142);
    assert_eq!(decoded(Algorithm::LZNT1, &data, 142).unwrap(), text);
    assert_eq!(decoded(Algorithm::LZNT1, &[&data[..], &[0, 0, 0x11]].concat(), 4096).unwrap(), text);
}

#[test]
fn vectors_of_other_programs_come_out_whole_and_cut() {
    let lines = lines();
    let lznt1 = include_bytes!("vectors/lines.lznt1");
    let huffman = include_bytes!("vectors/lines.lz77_huffman");
    let lz4 = lz4_flex::block::compress(&lines);
    for (algorithm, data) in
        [(Algorithm::LZNT1, &lznt1[..]), (Algorithm::LZ77_HUFFMAN, huffman), (Algorithm::LZ4, &lz4)]
    {
        assert_eq!(decoded(algorithm, data, lines.len()).unwrap(), lines, "{algorithm}");
        for cut in 0..data.len() {
            let start = decoded(algorithm, &data[..cut], lines.len()).unwrap();
            assert!(lines.starts_with(&start), "{algorithm} cut at {cut}");
        }
    }
}

#[test]
fn lengths_of_16_and_32_bits_are_whole_lengths() {
    let zeros = vec![0; 200_000];
    for (algorithm, data) in
        [(Algorithm::LZ77, encoders::lz77(&zeros)), (Algorithm::LZ4, lz4_flex::block::compress(&zeros))]
    {
        assert!(data.len() < 1000);
        assert_eq!(decoded(algorithm, &data, zeros.len()).unwrap(), zeros, "{algorithm}");
    }
}

#[test]
fn blocks_of_64_kib_have_their_own_code_and_reach_back_into_the_last() {
    let text: Vec<u8> = lines().repeat(40);
    assert!(text.len() > 2 * 65536);
    for skew in 0..=6 {
        let data = encoders::lz77_huffman(&text, skew);
        assert_eq!(decoded(Algorithm::LZ77_HUFFMAN, &data, text.len()).unwrap(), text);
    }
}

/// Compressible bytes (few values, runs, repetitions) mixed with incompressible ones.
fn text(max: usize) -> impl Strategy<Value = Vec<u8>> {
    let repeated = (vec(any::<u8>(), 1..40), 1usize..40).prop_map(|(part, times)| part.repeat(times));
    let parts = vec(prop_oneof![vec(0..3u8, 0..60), vec(any::<u8>(), 0..60), repeated], 0..6);
    parts.prop_map(move |parts| {
        let mut text = parts.concat();
        text.truncate(max);
        text
    })
}

fn compressed(text: &[u8]) -> Vec<(Algorithm, Vec<u8>)> {
    vec![
        (Algorithm::NONE, text.to_vec()),
        (Algorithm::LZNT1, encoders::lznt1(text)),
        (Algorithm::LZ77, encoders::lz77(text)),
        (Algorithm::LZ77_HUFFMAN, encoders::lz77_huffman(text, 0)),
        (Algorithm::LZ77_HUFFMAN, encoders::lz77_huffman(text, 6)),
        (Algorithm::LZ4, lz4_flex::block::compress(text)),
    ]
}

proptest! {
    #[test]
    fn compressed_data_round_trips(text in text(20_000)) {
        for (algorithm, data) in compressed(&text) {
            prop_assert_eq!(&decoded(algorithm, &data, text.len()).unwrap(), &text, "{}", algorithm);
        }
    }

    #[test]
    fn every_limit_gives_that_much_of_the_start(text in text(300)) {
        for (algorithm, data) in compressed(&text) {
            for limit in 0..text.len() {
                prop_assert_eq!(&decoded(algorithm, &data, limit).unwrap(), &text[..limit], "{}", algorithm);
            }
        }
    }

    #[test]
    fn every_truncation_gives_a_start_that_grows_with_the_input(text in text(1000)) {
        for (algorithm, data) in compressed(&text) {
            let mut before = 0;
            for cut in 0..data.len() {
                let start = decoded(algorithm, &data[..cut], text.len()).unwrap();
                prop_assert!(text.starts_with(&start), "{} cut at {}", algorithm, cut);
                prop_assert!(start.len() >= before, "{} cut at {}", algorithm, cut);
                before = start.len();
            }
        }
    }

    #[test]
    fn messages_survive_either_layout_cut_anywhere(plain in vec(any::<u8>(), 0..80), body in text(400), fill in 0..200usize, limit in 0..700usize) {
        let message = [&plain[..], &body, &vec![7; fill]].concat();
        let pattern = [&[7, 0, 0, 0][..], &(fill as u32).to_le_bytes()].concat();
        for (algorithm, data) in compressed(&body) {
            let whole = [&body[..], &vec![7; fill]].concat();
            let size = (algorithm != Algorithm::NONE).then_some(body.len());
            let payloads = [(Algorithm::NONE, None, &plain[..]), (algorithm, size, &data), (Algorithm::PATTERN_V1, None, &pattern)];
            let chain = chained(message.len(), &payloads);
            let single = unchained(Algorithm::LZ77, &plain, whole.len(), &encoders::lz77(&whole));
            for frame in [chain, single] {
                let recovered = recover_prefix(&frame, looks_chained(&frame), limit).unwrap();
                prop_assert_eq!(&recovered, &message[..limit.min(message.len())]);
                for cut in 0..frame.len() {
                    if let Ok(start) = recover_prefix(&frame[..cut], looks_chained(&frame), limit) {
                        prop_assert!(start.len() <= limit && message.starts_with(&start));
                    }
                }
            }
        }
    }

    #[test]
    fn arbitrary_data_never_panics_nor_exceeds_the_limit(algorithm in 0..7u16, data in vec(any::<u8>(), 0..600), limit in 0..5000usize) {
        if let Ok(out) = decoded(Algorithm(algorithm), &data, limit) {
            prop_assert!(out.len() <= limit);
        }
    }

    #[test]
    fn a_changed_byte_never_panics_nor_exceeds_the_limit(text in text(500), at in any::<prop::sample::Index>(), byte: u8, limit in 0..1000usize) {
        for (algorithm, mut data) in compressed(&text) {
            if !data.is_empty() {
                *at.get_mut(&mut data) = byte;
            }
            if let Ok(out) = decoded(algorithm, &data, limit) {
                prop_assert!(out.len() <= limit);
            }
        }
    }

    #[test]
    fn arbitrary_frames_never_panic(body in vec(any::<u8>(), 0..300), chained: bool, limit in 0..3000usize) {
        let frame = [&b"\xfcSMB"[..], &body].concat();
        let _ = parse(&frame);
        if let Ok(out) = recover_prefix(&frame, chained, limit) {
            prop_assert!(out.len() <= limit);
        }
        let _ = recover_prefix(&body, chained, limit);
    }
}
