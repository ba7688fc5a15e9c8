//! What a client may keep of an open file: oplocks and leases (MS-SMB2 3.3.1.4, 3.3.1.12; MS-CIFS 3.3.1.5).

use crate::named;
use serde::{Deserialize, Serialize};

named! {
    /// What an open was granted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum GrantedCaching {
        /// Nothing: the client did not ask.
        NotRequested = "not requested",
        /// Nothing, although the client asked.
        NotGranted = "not granted",
        /// A level II oplock: reads.
        LevelII = "level II oplock",
        /// An exclusive oplock: reads and writes.
        Exclusive = "exclusive oplock",
        /// A batch oplock: reads, writes and the open itself.
        Batch = "batch oplock",
        /// An R lease: reads.
        LeaseRead = "R lease",
        /// An RH lease: reads and the open itself.
        LeaseReadHandle = "RH lease",
        /// An RW lease: reads and writes.
        LeaseReadWrite = "RW lease",
        /// An RWH lease: reads, writes and the open itself.
        LeaseReadWriteHandle = "RWH lease",
    }
}

impl GrantedCaching {
    /// By the states of a lease: 1 read, 2 handle, 4 write (MS-SMB2 2.2.13.2.8). Without reads there is none of the others.
    pub fn of_lease(state: u32) -> GrantedCaching {
        match state & 7 {
            1 => GrantedCaching::LeaseRead,
            3 => GrantedCaching::LeaseReadHandle,
            5 => GrantedCaching::LeaseReadWrite,
            7 => GrantedCaching::LeaseReadWriteHandle,
            _ => GrantedCaching::NotGranted,
        }
    }

    /// Whether the client may answer reads itself that it has the bytes of.
    pub fn keeps_reads(self) -> bool {
        !matches!(self, GrantedCaching::NotRequested | GrantedCaching::NotGranted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_without_reads_is_none() {
        // MS-SMB2 3.3.5.9.8: the valid combinations are R, RH, RW and RWH.
        let granted: Vec<&str> = (0..8).map(|state| GrantedCaching::of_lease(state).name()).collect();
        let none = "not granted";
        assert_eq!(granted, [none, "R lease", none, "RH lease", none, "RW lease", none, "RWH lease"]);
        assert!(GrantedCaching::of_lease(1).keeps_reads() && !GrantedCaching::of_lease(6).keeps_reads());
    }
}
