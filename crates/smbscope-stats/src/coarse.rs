//! Captures with a coarse clock: removes times below the clock's step, because they were rounded to nothing.

use crate::aggregate::Aggregate;
use crate::entity::{Entities, EntityStatistics};
use crate::heatmap::LoadTimes;
use crate::row::CommandStatistics;
use crate::summary::DurationStatistics;
use smbscope_model::{Nanos, TimeKind};

impl DurationStatistics {
    /// Sum and count are unchanged.
    fn forget_below(&mut self, step: Nanos) {
        let DurationStatistics { min, max, mean, stddev, p50, p90, p95, p99, p999, .. } = self;
        for time in [min, max, mean, stddev, p50, p90, p95, p99, p999] {
            forget(time, step);
        }
    }
}

fn forget(time: &mut Option<Nanos>, step: Nanos) {
    *time = time.filter(|time| *time >= step);
}

fn forget_in_row(row: &mut CommandStatistics, step: Nanos) {
    TimeKind::ALL.iter().for_each(|kind| row.time_mut(*kind).forget_below(step));
}

fn forget_in_entity(entity: &mut EntityStatistics, step: Nanos) {
    entity.response_time.forget_below(step);
    entity.groups.iter_mut().for_each(|(_, figures)| figures.forget_below(step));
}

fn forget_in_entities<K>(entities: &mut Entities<K>, step: Nanos) {
    let entries = entities.entries.iter_mut().map(|(_, entity)| entity);
    entries.chain(&mut entities.other).for_each(|entity| forget_in_entity(entity, step));
}

impl Aggregate {
    /// Removes every minimum, mean, maximum and percentile below `step`, the resolution of the capture's clock.
    pub fn forget_below(&mut self, step: Nanos) {
        let commands = self.commands.iter_mut().flat_map(|command| {
            let parts = command.subcommands.iter_mut().chain(&mut command.apart);
            parts.map(|part| &mut part.row).chain([&mut command.row])
        });
        let groups = self.groups.iter_mut().map(|group| &mut group.row);
        let other = self.other.iter_mut().map(|other| &mut other.row);
        let rows = commands.chain(groups).chain(other).chain([&mut self.total]);
        rows.for_each(|row| forget_in_row(row, step));
        let others = self.other.iter_mut().map(|other| &mut other.cumulative);
        for cumulative in self.groups.iter_mut().map(|group| &mut group.cumulative).chain(others) {
            cumulative.retain(|(time, _)| *time >= step);
        }
        forget_in_entities(&mut self.shares, step);
        forget_in_entities(&mut self.files, step);
        forget_in_entities(&mut self.clients, step);
        forget_in_entities(&mut self.servers, step);
        forget_in_entities(&mut self.users, step);
        if let Some(slices) = &mut self.slices {
            for slice in slices.entries.iter_mut().chain(&mut slices.other) {
                forget_in_entity(&mut slice.figures, step);
                slice.service_time.forget_below(step);
            }
        }
        for (_, bin) in &mut self.timeline.bins {
            for time in [&mut bin.response_time_max, &mut bin.response_time_p50, &mut bin.response_time_p95] {
                forget(time, step);
            }
        }
        for load in &mut self.concurrency {
            let LoadTimes { mean, p50, p95 } = &mut load.response_time;
            [mean, p50, p95].into_iter().for_each(|time| forget(time, step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_below_the_step_are_unknown_and_the_others_stay() {
        let time = |ms: i64| Some(Nanos(ms * 1_000_000));
        let mut figures = DurationStatistics {
            count: 100,
            sum_ns: 400_000_000,
            min: time(0),
            max: time(172),
            mean: time(4),
            stddev: time(20),
            p50: time(0),
            p90: time(15),
            p95: time(16),
            p99: time(172),
            ..DurationStatistics::default()
        };
        figures.forget_below(Nanos(15_600_000));
        let expected = DurationStatistics { min: None, mean: None, p50: None, p90: None, ..figures };
        assert_eq!(figures, expected);
        assert_eq!((figures.max, figures.p95, figures.sum_ns), (time(172), time(16), 400_000_000));
    }
}
