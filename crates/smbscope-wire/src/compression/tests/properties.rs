//! Round trips through every algorithm, with every truncation and every limit; and arbitrary bytes.

use super::*;
use proptest::{collection::vec, prelude::*};

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
    fn what_was_compressed_comes_back(text in text(20_000)) {
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
