//! Is anything slow at a load point, by the thresholds of captures? What the client can know of whose it is: itself, or the
//! server and the network, which it cannot tell apart.

use super::Run;
use crate::format::{median_and_p95, prose_percent, span, unbroken};
use crate::verdict::{Thresholds, Who};
use serde::{Deserialize, Serialize};
use smbscope_model::{Group, Nanos};
use smbscope_stats::Figures;

/// The verdict on a load point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointVerdict {
    /// `client`, `nothing`, or `unknown`: the server or the network.
    pub who: Who,
    /// The answer in a sentence.
    pub headline: String,
    /// What supports it: the thresholds that were exceeded, and where the time went.
    pub sentences: Vec<String>,
}

/// None where nothing was answered.
pub(super) fn of(run: &Run) -> Option<PointVerdict> {
    let times = &run.total.client;
    let longest = times.max?;
    let slow = reasons(run, longest);
    let phases = Phases::of(run);
    let (who, headline) = match run.client_cpu {
        Some(cpu) if cpu.limited => {
            let busy = unbroken(format!("{:.0}%", cpu.busiest_percent));
            let headline = format!(
                "Client-bound: the busiest thread of the client was on a processor {busy} of the time, so the figures say \
                 nothing about the server."
            );
            (Who::Client, headline)
        }
        _ if slow.is_empty() => {
            let typical = median_and_p95(times).unwrap_or_default();
            let longest = unbroken(longest);
            (Who::Nothing, format!("Nothing here is slow: {typical}; the longest command took {longest}."))
        }
        _ => (Who::Unknown, format!("Server- or network-bound: {}.", phases.largest())),
    };
    let slow = (!slow.is_empty()).then(|| format!("Slow: {}.", slow.join("; ")));
    Some(PointVerdict { who, headline, sentences: slow.into_iter().chain(phases.sentence()).collect() })
}

/// `p95 of Read 45.2 ms, above 20.0 ms`.
fn reasons(run: &Run, longest: Nanos) -> Vec<String> {
    let thresholds = Thresholds::default();
    let groups = Group::ALL.into_iter().filter_map(|group| {
        let (p95, threshold) = (run.group(group.name())?.times.client.p95?, thresholds.p95(group)?);
        (p95 > threshold).then(|| format!("p95 of {group} {}, above {}", unbroken(p95), unbroken(threshold)))
    });
    let mut found: Vec<String> = groups.collect();
    if longest > thresholds.longest {
        found.push(format!("longest command {}, above {}", unbroken(longest), unbroken(thresholds.longest)));
    }
    found
}

/// The phases of all commands of the headline groups, added up.
#[derive(Default)]
struct Phases {
    request_transfer: i128,
    service: i128,
    response_transfer: i128,
}

impl Phases {
    fn of(run: &Run) -> Phases {
        let sum = |times: &Figures| i128::from(times.mean.map_or(0, |mean| mean.0)) * i128::from(times.count);
        let groups = run.counted.iter().flat_map(|counted| &counted.groups).filter(|group| group.headline);
        groups.map(|group| &group.row).fold(Phases::default(), |phases, row| Phases {
            request_transfer: phases.request_transfer + sum(&row.request_transfer),
            service: phases.service + sum(&row.service_time),
            response_transfer: phases.response_transfer + sum(&row.response_transfer),
        })
    }

    fn whole(&self) -> i128 {
        self.request_transfer + self.service + self.response_transfer
    }

    fn share(&self, part: i128) -> String {
        let [part, whole] = [part, self.whole()].map(|ns| Nanos::saturating(ns).0.unsigned_abs());
        unbroken(prose_percent(part, whole))
    }

    fn total(&self) -> String {
        unbroken(span(Nanos::saturating(self.whole())))
    }

    /// `service time accounts for 95% of the total wait (7 min 42 s)`.
    fn largest(&self) -> String {
        let transfers = self.request_transfer + self.response_transfer;
        match transfers > self.service {
            _ if self.whole() == 0 => "the client cannot tell them apart".to_owned(),
            true => format!("transfers account for {} of the total wait ({})", self.share(transfers), self.total()),
            false => {
                format!("service time accounts for {} of the total wait ({})", self.share(self.service), self.total())
            }
        }
    }

    /// `Total wait 7 min 42 s: request transfer 1%, service time 95% (server and network), response transfer 4%.`
    fn sentence(&self) -> Option<String> {
        (self.whole() > 0).then(|| {
            format!(
                "Total wait {}: request transfer {}, service time {} (server and network, which the client cannot tell \
                 apart), response transfer {}.",
                self.total(),
                self.share(self.request_transfer),
                self.share(self.service),
                self.share(self.response_transfer),
            )
        })
    }
}
