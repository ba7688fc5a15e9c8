//! Granted oplocks and leases, and repeated reads of unchanged data.

use crate::common::{Analysis, analyze_told};
use smbscope_model::{Command, GrantedCaching};
use smbscope_testkit::{Conversation, smb2};
use smbscope_wire::smb2::messages::create::oplock;

/// A session with a user and a share.
fn session() -> Conversation {
    Conversation::new()
        .client_says(10, smb2::session_setup(1, "LAB", "dave"))
        .server_says(20, smb2::session_setup_response(1, 0x11))
        .client_says(30, smb2::tree_connect(2, r"\\srv\data"))
        .server_says(40, smb2::tree_connect_response(2, 1))
}

fn granted(analysis: &Analysis) -> Vec<Option<GrantedCaching>> {
    let create = Command::Smb2(smbscope_wire::smb2::Smb2Command::CREATE);
    analysis.exchanges.iter().filter(|exchange| exchange.command == create).map(|exchange| exchange.caching).collect()
}

/// For each read, the right that its open held, and if it was repeated.
fn reads(analysis: &Analysis) -> Vec<(Option<GrantedCaching>, bool)> {
    let read = Command::Smb2(smbscope_wire::smb2::Smb2Command::READ);
    let reads = analysis.exchanges.iter().filter(|exchange| exchange.command == read);
    reads.map(|exchange| (exchange.caching, exchange.repeated)).collect()
}

/// Opens file 7 as message 3 with this lease state.
fn leased(states: u32) -> Conversation {
    session()
        .client_says(100, smb2::create_asking(3, "a.ini", oplock::LEASE))
        .server_says(200, smb2::create_leasing(3, 7, states, 50))
}

/// Reads the first hundred bytes of an open.
trait Reads {
    fn reads(self, at: i64, message_id: u64, file: u64) -> Self;
}

impl Reads for Conversation {
    fn reads(self, at: i64, message_id: u64, file: u64) -> Conversation {
        self.client_says(at, smb2::read(message_id, file, 0, 100))
            .server_says(at + 50, smb2::read_response(message_id, &[1; 100]))
    }
}

#[test]
fn an_open_has_what_the_server_granted_and_not_what_the_client_asked_for() {
    let analysis = analyze_told(
        &leased(7)
            .client_says(300, smb2::create_asking(4, "b", oplock::BATCH))
            .server_says(400, smb2::create_granting(4, 8, oplock::LEVEL_II, 50))
            .client_says(500, smb2::create_asking(5, "c", oplock::BATCH))
            .server_says(600, smb2::create_granting(5, 9, oplock::NONE, 50))
            .client_says(700, smb2::create_asking(6, "d", oplock::NONE))
            .server_says(800, smb2::create_granting(6, 10, oplock::NONE, 50))
            .client_says(900, smb2::create_asking(7, "e", oplock::LEASE))
            .server_says(999, smb2::create_leasing(7, 11, 1, 50)),
    );
    let expected = [
        GrantedCaching::LeaseReadWriteHandle,
        GrantedCaching::LevelII,
        GrantedCaching::NotGranted,
        GrantedCaching::NotRequested,
        GrantedCaching::LeaseRead,
    ];
    assert_eq!(granted(&analysis), expected.map(Some));
}

#[test]
fn an_unchanged_file_that_is_opened_again_is_read_again() {
    // The last write time is 50 both times.
    let analysis = analyze_told(
        &leased(3)
            .reads(300, 4, 7)
            .client_says(400, smb2::close(5, 7))
            .server_says(500, smb2::close_response(5))
            .client_says(600, smb2::create_asking(6, "a.ini", oplock::NONE))
            .server_says(700, smb2::create_granting(6, 8, oplock::NONE, 50))
            .reads(800, 7, 8),
    );
    let expected = [(Some(GrantedCaching::LeaseReadHandle), false), (Some(GrantedCaching::NotRequested), true)];
    assert_eq!(reads(&analysis), expected);
}

#[test]
fn a_file_that_somebody_wrote_to_in_between_is_read_for_the_first_time() {
    let analysis = analyze_told(
        &leased(3)
            .reads(300, 4, 7)
            .client_says(400, smb2::close(5, 7))
            .server_says(500, smb2::close_response(5))
            .client_says(600, smb2::create_asking(6, "a.ini", oplock::NONE))
            .server_says(700, smb2::create_granting(6, 8, oplock::NONE, 51))
            .reads(800, 7, 8)
            .client_says(900, smb2::write(8, 8, 0, &[5; 10]))
            .server_says(950, smb2::write_response(8, 10))
            .reads(1000, 9, 8)
            .reads(1100, 10, 8),
    );
    let repeated: Vec<bool> = reads(&analysis).into_iter().map(|(_, repeated)| repeated).collect();
    // A different last write time, a write through the same session, and finally no change.
    assert_eq!(repeated, [false, false, false, true]);
}

#[test]
fn a_broken_lease_is_no_longer_held() {
    let analysis = analyze_told(
        &leased(3)
            .reads(300, 4, 7)
            .reads(400, 5, 7)
            .server_says(500, smb2::lease_break(7, 0))
            .reads(600, 6, 7)
            .reads(700, 7, 7),
    );
    let lease = Some(GrantedCaching::LeaseReadHandle);
    assert_eq!(reads(&analysis), [(lease, false), (lease, true), (None, false), (None, true)]);
}

#[test]
fn a_broken_oplock_leaves_the_lower_level() {
    // smb2::oplock_break leaves level II.
    let analysis = analyze_told(
        &session()
            .client_says(100, smb2::create_asking(3, "a.ini", oplock::BATCH))
            .server_says(200, smb2::create_granting(3, 7, oplock::BATCH, 50))
            .reads(300, 4, 7)
            .server_says(400, smb2::oplock_break(7))
            .reads(500, 5, 7)
            .reads(600, 6, 7),
    );
    let (batch, level_ii) = (Some(GrantedCaching::Batch), Some(GrantedCaching::LevelII));
    assert_eq!(reads(&analysis), [(batch, false), (level_ii, false), (level_ii, true)]);
}

#[test]
fn of_an_open_that_was_not_captured_nothing_is_known() {
    let analysis = analyze_told(&session().reads(100, 3, 7).reads(200, 4, 7));
    assert_eq!(reads(&analysis), [(None, false); 2]);
}
