//! Overall response time: one number for a whole ramp.

use super::BenchRun;
use smbscope_model::Nanos;

/// Returns the area under the curve of mean response time over users, divided by the range of users. A curve that rises
/// late scores better than one that rises early, and an extra load point between two others hardly changes it.
///
/// The area is the sum of trapezoids between load points in order of users. Repeated load points are averaged, and load
/// points without a timed command are ignored. With a single load, the result is its mean response time. Only compare
/// ramps with the same load points: others cover another range.
///
/// In an open loop, response times count from the intended start; if load points differ in their rate (`by_rate`), the
/// curve is over rates.
pub fn overall_response_time(runs: &[BenchRun], by_rate: bool) -> Option<Nanos> {
    let mut points: Vec<(f64, f64, u32)> = Vec::new();
    let mut sorted: Vec<(f64, Nanos)> =
        runs.iter().filter_map(|run| Some((run.load(by_rate), run.headline().mean?))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (users, mean) in sorted {
        match points.last_mut() {
            Some((known, sum, count)) if *known == users => {
                *sum += mean.0 as f64;
                *count += 1;
            }
            _ => points.push((users, mean.0 as f64, 1)),
        }
    }
    let points: Vec<(f64, f64)> =
        points.into_iter().map(|(users, sum, count)| (users, sum / f64::from(count))).collect();
    let ((first, only), (last, _)) = (*points.first()?, *points.last()?);
    let area = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0);
    let mean = if last > first { area.sum::<f64>() / (last - first) } else { only };
    Some(Nanos(mean.round() as i64))
}
