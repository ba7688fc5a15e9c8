//! Receiver of exchanges.

use smbscope_model::{ConnectionSummary, Exchange, Settled};

pub trait ExchangeSink {
    /// Called when nothing can change this exchange any more.
    fn exchange(&mut self, exchange: &Exchange);

    /// Called after every few exchanges of a connection with the time up to which it is settled.
    fn settled(&mut self, _: &Settled) {}

    /// Called when a connection is over, after all its exchanges.
    fn closed(&mut self, _: &ConnectionSummary) {}
}

impl<F: FnMut(Exchange)> ExchangeSink for F {
    fn exchange(&mut self, exchange: &Exchange) {
        self(exchange.clone());
    }
}
