//! Examples of MS-XCA section 3, and test vectors from other programs.

use super::*;

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
