//! Client caching: oplocks and leases (MS-SMB2 3.3.1.4, 3.3.1.12; MS-CIFS 3.3.1.5).

use crate::named;
use serde::{Deserialize, Serialize};

named! {
    /// Caching granted to an open.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum GrantedCaching {
        NotRequested = "not requested",
        NotGranted = "not granted",
        /// Caches reads.
        LevelII = "level II oplock",
        /// Caches reads and writes.
        Exclusive = "exclusive oplock",
        /// Caches reads, writes and the handle.
        Batch = "batch oplock",
        LeaseRead = "R lease",
        LeaseReadHandle = "RH lease",
        LeaseReadWrite = "RW lease",
        LeaseReadWriteHandle = "RWH lease",
    }
}

impl GrantedCaching {
    /// Converts lease state bits: 1 read, 2 handle, 4 write (MS-SMB2 2.2.13.2.8). A lease without read caching grants
    /// nothing.
    pub fn of_lease(state: u32) -> GrantedCaching {
        match state & 7 {
            1 => GrantedCaching::LeaseRead,
            3 => GrantedCaching::LeaseReadHandle,
            5 => GrantedCaching::LeaseReadWrite,
            7 => GrantedCaching::LeaseReadWriteHandle,
            _ => GrantedCaching::NotGranted,
        }
    }

    /// Returns true if the client may answer reads from its cache.
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
