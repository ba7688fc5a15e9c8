//! Counts how the exchanges of a whole capture ended, before any filter.

use crate::derived;
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, ExchangeOutcome};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Census {
    pub exchanges: u64,
    pub encrypted: u64,
    outcomes: [u64; ExchangeOutcome::ALL.len()],
}

impl Census {
    pub fn record(&mut self, exchange: &Exchange) {
        self.exchanges += 1;
        if !derived::is_apart(exchange) {
            self.encrypted += u64::from(exchange.group == CommandGroup::Encrypted);
            self.outcomes[exchange.outcome as usize] += 1;
        }
    }

    pub fn merge(&mut self, other: &Census) {
        self.exchanges += other.exchanges;
        self.encrypted += other.encrypted;
        self.outcomes.iter_mut().zip(other.outcomes).for_each(|(mine, theirs)| *mine += theirs);
    }

    pub fn outcomes(&self) -> impl Iterator<Item = (ExchangeOutcome, u64)> {
        ExchangeOutcome::ALL.into_iter().zip(self.outcomes).filter(|(_, count)| *count > 0)
    }

    pub fn commands(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    pub fn untimed(&self) -> u64 {
        let by_design =
            [ExchangeOutcome::Complete, ExchangeOutcome::NoResponseByDesign, ExchangeOutcome::ServerInitiated];
        self.commands() - by_design.iter().map(|outcome| self.outcomes[*outcome as usize]).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Aggregator;
    use smbscope_model::Subcommand;
    use smbscope_testkit::exchange::read;

    #[test]
    fn a_census_counts_as_the_tables_do() {
        let mut census = Census::default();
        let mut aggregator = Aggregator::new();
        for (number, outcome) in ExchangeOutcome::ALL.into_iter().enumerate() {
            for _ in 0..=number {
                let mut one = read(0, 1_000);
                one.outcome = outcome;
                one.group = if number % 3 == 0 { CommandGroup::Encrypted } else { CommandGroup::Read };
                one.subcommand = (number == 5).then_some(Subcommand::AsyncPortion);
                census.record(&one);
                aggregator.record(&one);
            }
        }
        let aggregate = aggregator.finish();
        // 1 + 2 + … + 12.
        assert_eq!(census.exchanges, 78);
        assert_eq!((census.commands(), census.untimed()), (aggregate.count, aggregate.untimed));
        assert_eq!(census.outcomes().collect::<Vec<_>>(), aggregate.outcomes);
        let encrypted =
            aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted).map(|row| row.row.count);
        assert_eq!(Some(census.encrypted), encrypted);
        let mut twice = census.clone();
        twice.merge(&census);
        assert_eq!((twice.exchanges, twice.untimed()), (156, 2 * census.untimed()));
    }
}
