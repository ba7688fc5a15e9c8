//! Several reads or writes outstanding, on a Samba of the test's own: every byte arrives where it belongs, and each command
//! has a response time of its own.

mod common;

use common::{DIALECTS, create, options, run, samba};
use smbscope_lab::Settings;
use smbscope_load::client::{Direction, Moved, Options, Range, Sample, Session};
use smbscope_model::Dialect;
use smbscope_wire::status::NtStatus;

const BLOCK: u32 = 64 << 10;
const BLOCKS: u64 = 40;

/// The most of these commands that were outstanding together.
fn most_outstanding(samples: &[Sample]) -> usize {
    let at = |sample: &Sample| {
        let begun = |other: &&Sample| other.request_first <= sample.request_first;
        samples.iter().filter(begun).filter(|other| other.response_last > sample.request_first).count()
    };
    samples.iter().map(at).max().unwrap_or(0)
}

/// From the last block to the first.
fn ranges() -> Vec<Range> {
    (0..BLOCKS).rev().map(|block| Range { offset: block * u64::from(BLOCK), length: BLOCK }).collect()
}

#[test]
fn blocks_are_outstanding_together_and_all_of_them_arrive() {
    let Some(server) = samba(&Settings::default()) else { return };
    let data: Vec<u8> = (0..BLOCK).map(|at| (at * 7 % 251) as u8).collect();
    let nt1 = Options { dialect: Dialect::NtLm012, ..options(&server, 0x0311) };
    for options in DIALECTS.map(|dialect| options(&server, dialect)).into_iter().chain([nt1]) {
        let dialect = options.dialect;
        let depth = 8;
        let together = if dialect == Dialect::NtLm012 { 1 } else { depth };
        run(async {
            let mut session = Session::connect(&options).await.unwrap();
            let file = session.open(&create("queue")).await.unwrap().handle;
            for direction in [Direction::Write(&data), Direction::Read] {
                session.samples().clear();
                let moved = session.transfer_many(file, &ranges(), depth, direction).await.unwrap();
                assert_eq!(moved, Moved { bytes: BLOCKS * u64::from(BLOCK), outstanding: together }, "{dialect}");
                let samples = std::mem::take(session.samples());
                assert!(samples.len() >= BLOCKS as usize, "{dialect}: {}", samples.len());
                assert!(samples.iter().all(|sample| sample.response_time().is_some()), "{dialect}");
                assert_eq!(most_outstanding(&samples), together as usize, "{dialect}");
            }
            session.close(file).await.unwrap();
            session.disconnect().await.unwrap();
        });
        let path = server.share_folder().join("queue");
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found.len() as u64, BLOCKS * u64::from(BLOCK), "{dialect}");
        assert!(found.chunks(BLOCK as usize).all(|block| block == data), "{dialect}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_block_that_fails_fails_the_transfer_and_the_session_goes_on() {
    let Some(server) = samba(&Settings::default()) else { return };
    run(async {
        let mut session = Session::connect(&options(&server, 0x0311)).await.unwrap();
        let file = session.open(&create("short")).await.unwrap().handle;
        session.write(file, 0, &[1; 1000]).await.unwrap();
        // Behind the end there is nothing to read.
        let error = session.transfer_many(file, &ranges(), 8, Direction::Read).await.unwrap_err();
        assert_eq!(error.status(), Some(NtStatus::END_OF_FILE), "{error}");
        assert_eq!(session.read(file, 0, 1000).await.unwrap(), [1; 1000]);
        session.disconnect().await.unwrap();
    });
}
