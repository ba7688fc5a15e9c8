//! Detects clients that wait for credits (MS-SMB2 §3.2.4.1.2, §3.3.1.2): requests cost credits, responses grant some.
//!
//! A request waited for credits if it follows a grant immediately, costs more credits than were left before the grant,
//! and other requests were outstanding in between. That is the server's doing only if the client has asked for more
//! credits than it has altogether; a client that asks for few limits itself.

use smbscope_model::{Nanos, Timestamp};
use smbscope_wire::smb2::{Smb2Command, Smb2Header};

/// Maximum reaction time of a client that waits for credits, in addition to the round trip.
const SOON: Nanos = Nanos(1_000_000);
/// With fewer outstanding requests, a client may be sequential instead of waiting for credits, unless its requests cost
/// several credits each, like the large reads and writes of a copy.
const OUTSTANDING_LEAST: u32 = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct ObservedCredits {
    /// Credits of the client. Unknown before the first response, and permanently after a missing message.
    left: Option<u32>,
    /// Credits before the last response that granted any, and the time of that response.
    before: u32,
    granted: Timestamp,
    asked: Timestamp,
    outstanding: u32,
    cost: u32,
    in_flight: CreditRequest,
    /// The most credits that the client would have had if the server had granted all that it asked for.
    wanted: u32,
}

/// Credits that requests cost, and credits that they ask for (CreditCharge and CreditRequest, MS-SMB2 §2.2.1.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CreditRequest {
    cost: u32,
    asked: u32,
}

impl CreditRequest {
    #[inline]
    pub(super) fn from_header(request: &Smb2Header) -> CreditRequest {
        CreditRequest { cost: request.credit_charge.max(1).into(), asked: request.credits.into() }
    }
}

impl ObservedCredits {
    pub(super) fn forget(&mut self) {
        self.left = None;
    }

    #[inline]
    pub(super) fn are_known(&self) -> bool {
        self.left.is_some()
    }

    #[inline]
    pub(super) fn grant(&mut self, header: &Smb2Header, time: Timestamp) {
        let granted = u32::from(header.credits);
        match &mut self.left {
            // Before the NEGOTIATE the client had one credit, which that request used.
            None if header.message_id == 0 && header.command == Smb2Command::NEGOTIATE => self.left = Some(granted),
            Some(left) if granted > 0 => {
                (self.before, self.granted) = (*left, time);
                *left = left.saturating_add(granted);
            }
            _ => {}
        }
    }

    /// Records a request before credits are known: the NEGOTIATE.
    #[inline]
    pub(super) fn note_wanted(&mut self, request: CreditRequest) {
        self.wanted = self.wanted.max(request.asked);
    }

    /// Records that the server has dealt with a request, once per request.
    #[inline]
    pub(super) fn answered(&mut self, request: CreditRequest) {
        self.in_flight.cost = self.in_flight.cost.saturating_sub(request.cost);
        self.in_flight.asked = self.in_flight.asked.saturating_sub(request.asked);
    }

    /// Records a request. Returns the time for which the client waited for credits before it. `outstanding` includes
    /// this request; `trip` is the round trip between capture point and client.
    #[inline]
    pub(super) fn take(&mut self, request: CreditRequest, time: Timestamp, outstanding: u32, trip: Nanos) -> Nanos {
        let Some(left) = self.left else { return Nanos(0) };
        let cost = request.cost;
        let waited = self.before < cost
            && left.saturating_add(self.in_flight.cost) < self.wanted
            && self.granted > self.asked
            && (self.outstanding >= OUTSTANDING_LEAST || self.cost.min(cost) > 1)
            && time - self.granted <= Nanos(SOON.0.saturating_add(trip.0));
        let waited = if waited { self.granted - self.asked } else { Nanos(0) };
        (self.asked, self.outstanding, self.cost) = (time, outstanding, cost);
        // A client that spends more than it has got credits from somewhere else.
        self.left = left.checked_sub(cost);
        self.in_flight.cost = self.in_flight.cost.saturating_add(cost);
        self.in_flight.asked = self.in_flight.asked.saturating_add(request.asked);
        self.wanted = self.wanted.max(self.left.unwrap_or(0).saturating_add(self.in_flight.asked));
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const ONE: CreditRequest = CreditRequest { cost: 1, asked: 1 };
    const EIGHT: CreditRequest = CreditRequest { cost: 8, asked: 8 };

    fn message(credits: u16, charge: u16) -> Smb2Header {
        Smb2Header { credits, credit_charge: charge, message_id: 7, ..Smb2Header::new(Smb2Command::READ) }
    }

    /// A client that asked for 31 credits with its NEGOTIATE.
    fn with(credits: u16) -> ObservedCredits {
        let mut known = ObservedCredits::default();
        known.note_wanted(CreditRequest { cost: 1, asked: 31 });
        known.grant(&Smb2Header { credits, ..Smb2Header::new(Smb2Command::NEGOTIATE) }, Timestamp(0));
        known
    }

    /// Two requests of 4 credits each at 10 ms, the first response at 30 ms, and a third request `later` ms after that.
    fn third_request(credits: u16, later: i64) -> Nanos {
        let mut known = with(credits);
        let ask = |known: &mut ObservedCredits, at: i64, outstanding| {
            known.take(CreditRequest { cost: 4, asked: 4 }, Timestamp(at * MS), outstanding, Nanos(0))
        };
        assert_eq!([ask(&mut known, 10, 1), ask(&mut known, 10, 2)], [Nanos(0); 2]);
        known.grant(&message(4, 4), Timestamp(30 * MS));
        ask(&mut known, 30 + later, 2)
    }

    #[test]
    fn a_request_that_follows_the_grant_that_it_needs_waited_since_the_one_before() {
        // Of 8 credits none is left, of 11 three, and 4 are needed.
        assert_eq!([third_request(8, 0), third_request(11, 1)], [Nanos(20 * MS); 2]);
        assert_eq!(third_request(12, 0), Nanos(0), "there were enough");
        assert_eq!(third_request(8, 2), Nanos(0), "it took its time");
    }

    #[test]
    fn a_client_with_one_request_at_a_time_does_not_wait_for_credits() {
        let mut known = with(1);
        for at in 1..10 {
            assert_eq!(known.take(ONE, Timestamp(at * 10 * MS), 1, Nanos(0)), Nanos(0));
            known.grant(&message(1, 1), Timestamp((at * 10 + 9) * MS));
        }
    }

    #[test]
    fn a_copy_whose_blocks_take_all_credits_waits_for_them_one_by_one() {
        let mut known = with(8);
        assert_eq!(known.take(EIGHT, Timestamp(10 * MS), 1, Nanos(0)), Nanos(0));
        known.grant(&message(8, 8), Timestamp(50 * MS));
        // From 10 to 50 ms nothing was left for the next block.
        assert_eq!(known.take(EIGHT, Timestamp(50 * MS), 1, Nanos(0)), Nanos(40 * MS));
    }

    /// Three requests of 8 credits each by a client that has 16 and asks for `asked` with each request.
    fn third_of_two(asked: u32) -> Nanos {
        let mut known = with(16);
        known.wanted = 0;
        let request = CreditRequest { asked, ..EIGHT };
        for outstanding in [1, 2] {
            assert_eq!(known.take(request, Timestamp(10 * MS), outstanding, Nanos(0)), Nanos(0));
        }
        known.answered(request);
        known.grant(&message(8, 8), Timestamp(30 * MS));
        known.take(request, Timestamp(30 * MS), 2, Nanos(0))
    }

    #[test]
    fn a_client_that_asks_for_no_more_than_it_spends_limits_itself() {
        assert_eq!([third_of_two(8), third_of_two(12)], [Nanos(0), Nanos(20 * MS)]);
    }

    #[test]
    fn nothing_is_known_before_the_first_response_and_after_credits_from_nowhere() {
        let mut known = ObservedCredits::default();
        known.grant(&message(8, 1), Timestamp(0));
        assert!(!known.are_known());
        let mut known = with(3);
        known.take(CreditRequest { cost: 4, asked: 4 }, Timestamp(0), 1, Nanos(0));
        assert!(!known.are_known());
    }
}
