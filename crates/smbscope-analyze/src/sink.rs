//! Where exchanges go.

use smbscope_model::{ConnectionSummary, Exchange, Settled};

/// Takes exchanges when they are over.
pub trait ExchangeSink {
    /// Nothing can change this exchange any more.
    fn exchange(&mut self, exchange: &Exchange);

    /// Something is settled about a connection. Told every few exchanges.
    fn settled(&mut self, _: &Settled) {}

    /// A connection is over; all its exchanges were passed on.
    fn closed(&mut self, _: &ConnectionSummary) {}
}

impl<F: FnMut(Exchange)> ExchangeSink for F {
    fn exchange(&mut self, exchange: &Exchange) {
        self(exchange.clone());
    }
}
