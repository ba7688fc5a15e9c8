//! Exact mean value analysis of one class of users (Reiser and Lavenberg, Journal of the ACM 27(2), 1980): each user
//! thinks, waits for the network, and is served by a part of the server that queues and by one that does not.

/// A closed network of a queueing station and delays. Times in ns per command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClosedNetwork {
    /// Think time of a customer.
    pub(super) think: f64,
    /// Part of the response time that does not depend on other users: network, and server time without a queue.
    pub(super) delay: f64,
    /// Demand at the queueing station.
    pub(super) queue: f64,
}

/// Residence time at the queueing station for 1, 2, 3, … customers.
#[derive(Debug, Clone)]
pub(super) struct SolvedNetwork {
    network: ClosedNetwork,
    residence: Vec<f64>,
}

impl ClosedNetwork {
    pub(super) fn solve(self, customers: usize) -> SolvedNetwork {
        let ClosedNetwork { think, delay, queue } = self;
        let mut waiting = 0.0;
        let residence = (1..=customers.max(1)).map(|customers| {
            let residence = queue * (1.0 + waiting);
            waiting = customers as f64 * residence / (think + delay + residence).max(f64::MIN_POSITIVE);
            residence
        });
        SolvedNetwork { network: self, residence: residence.collect() }
    }
}

impl SolvedNetwork {
    /// Returns the response time; between whole numbers of customers by linear interpolation.
    pub(super) fn response_time(&self, customers: f64) -> f64 {
        let place = (customers - 1.0).clamp(0.0, (self.residence.len() - 1) as f64);
        let (below, above) = (self.residence[place.floor() as usize], self.residence[place.ceil() as usize]);
        self.network.delay + below + (above - below) * place.fract()
    }

    /// Returns the share of time in which the queueing station works, from 0 to 1.
    pub(super) fn utilization(&self, customers: f64) -> f64 {
        let cycle = self.network.think + self.response_time(customers);
        if cycle > 0.0 { (customers * self.network.queue / cycle).min(1.0) } else { 0.0 }
    }
}
