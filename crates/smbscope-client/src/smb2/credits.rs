//! Credits and message IDs (MS-SMB2 3.2.4.1.2, 3.2.4.1.5, 3.2.4.1.6), which limit the number of outstanding requests.

/// Bytes that one credit pays for (3.1.5.2).
pub(super) const BYTES_PER_CREDIT: usize = 65_536;

/// SMB2 credits requested. It is the default limit of Windows and Samba.
const CREDITS_MAX: u32 = 8_192;

#[derive(Debug)]
pub(super) struct ClientCredits {
    /// Message ID of the next request. Each credit spent uses one.
    next_id: u64,
    available: u32,
    asked: u32,
    target: u32,
    /// True if large requests cost more than one credit (dialect 2.1 and later, if the server supports it).
    pub(super) multi: bool,
}

impl ClientCredits {
    pub(super) fn new(target: u16) -> ClientCredits {
        ClientCredits { next_id: 0, available: 1, asked: 0, target: u32::from(target.max(1)), multi: false }
    }

    pub(super) fn charge(&self, bytes: usize) -> u16 {
        if !self.multi {
            return 1;
        }
        u16::try_from(bytes.div_ceil(BYTES_PER_CREDIT).max(1)).unwrap_or(u16::MAX)
    }

    pub(super) fn affords(&self, charge: u32) -> bool {
        self.available >= charge
    }

    pub(super) fn largest(&self) -> usize {
        if self.multi { self.available.max(1) as usize * BYTES_PER_CREDIT } else { BYTES_PER_CREDIT }
    }

    pub(super) fn want(&mut self, credits: u32) {
        self.target = self.target.max(credits.min(CREDITS_MAX));
    }

    /// Pays for a request. Returns its message ID and the number of credits to request with it.
    pub(super) fn spend(&mut self, charge: u16) -> (u64, u16) {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(charge.into());
        self.available = self.available.saturating_sub(charge.into());
        // At least one, so that a server that granted too few can make up for it.
        let missing = self.target.saturating_sub(self.available + self.asked).max(1);
        let ask = u16::try_from(missing).unwrap_or(u16::MAX);
        self.asked += u32::from(ask);
        (id, ask)
    }

    pub(super) fn granted(&mut self, credits: u16, asked: u16) {
        self.asked = self.asked.saturating_sub(asked.into());
        self.available = self.available.saturating_add(credits.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_asks_for_all_and_later_ones_for_what_they_cost() {
        let mut credits = ClientCredits::new(64);
        assert_eq!(credits.spend(1), (0, 64));
        credits.granted(64, 64);
        assert_eq!(credits.spend(1), (1, 1));
        credits.granted(1, 1);
        credits.multi = true;
        // MS-SMB2 3.1.5.2: (1 MiB - 1) / 65536 + 1
        assert_eq!(credits.charge(1 << 20), 16);
        assert_eq!(credits.spend(16), (2, 16));
        assert_eq!(credits.spend(1), (18, 1), "a request takes as many ids as it costs");
    }

    #[test]
    fn a_server_that_gives_little_is_asked_again() {
        let mut credits = ClientCredits::new(8);
        let (_, ask) = credits.spend(1);
        credits.granted(2, ask);
        assert_eq!(credits.spend(1), (1, 7));
        assert!(credits.affords(1) && !credits.affords(2));
    }

    #[test]
    fn without_multi_credit_requests_64_kib_is_the_most() {
        let credits = ClientCredits::new(64);
        assert_eq!((credits.charge(1 << 20), credits.largest()), (1, 65_536));
    }
}
