//! One figure for a whole ramp: what its users waited for, on average over the load.
//!
//! The method is that of file server benchmarks since LADDIS (Wittle and Keith, "LADDIS: The Next Generation in NFS File
//! Server Benchmarking", USENIX Summer 1993): the area under the curve of response time against throughput, by
//! trapezoids, divided by the range of the throughput.

use smbscope_model::Nanos;

/// A point of a ramp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadPoint {
    /// What was achieved, such as operations a second.
    pub load: f64,
    /// Mean response time.
    pub response_time: Nanos,
}

/// The overall response time of load points in the order of the ramp: the area under the curve divided by the range from
/// the first load to the highest, rounded to whole nanoseconds.
///
/// A point counts when its load is higher than that of all before it. Beyond the peak a server does less the more is asked
/// of it, and the curve turns back. Absent where fewer than two points count, or one has no finite load.
pub fn overall_response_time(points: &[LoadPoint]) -> Option<Nanos> {
    let mut rising: Vec<&LoadPoint> = Vec::with_capacity(points.len());
    for point in points {
        if !point.load.is_finite() {
            return None;
        }
        if rising.last().is_none_or(|last| point.load > last.load) {
            rising.push(point);
        }
    }
    let (first, last) = (rising.first()?, rising.last()?);
    let range = last.load - first.load;
    if rising.len() < 2 || range <= 0.0 {
        return None;
    }
    let area: f64 = rising
        .windows(2)
        .map(|pair| {
            let height = (pair[0].response_time.0 as f64 + pair[1].response_time.0 as f64) / 2.0;
            height * (pair[1].load - pair[0].load)
        })
        .sum();
    Some(Nanos((area / range).round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<LoadPoint> {
        let point = |(load, ms): &(f64, f64)| LoadPoint { load: *load, response_time: Nanos((ms * 1e6) as i64) };
        points.iter().map(point).collect()
    }

    #[test]
    fn trapezoids_over_equal_and_unequal_steps() {
        // (1 + 3) / 2 · 10 = 20, then (3 + 5) / 2 · 30 = 120: 140 / 40 = 3.5 ms.
        let points = curve(&[(10.0, 1.0), (20.0, 3.0), (50.0, 5.0)]);
        assert_eq!(overall_response_time(&points), Some(Nanos(3_500_000)));
    }

    #[test]
    fn a_curve_of_the_published_shape_has_about_the_published_figure() {
        // Published: ten equal steps of the load, 0.5 to 0.8 ms up to 80 % of it, then 3.2 and 4.9 ms: 1.16 ms overall. Here
        // the first eight rise evenly: 7 · 0.65 + (0.8 + 3.2) / 2 + (3.2 + 4.9) / 2 = 10.6 over nine steps.
        let low = (0..8).map(|i| (f64::from(i + 1) * 1_000.0, 0.5 + 0.3 * f64::from(i) / 7.0));
        let points: Vec<_> = low.chain([(9_000.0, 3.2), (10_000.0, 4.9)]).collect();
        let overall = overall_response_time(&curve(&points)).unwrap();
        assert!((overall.0 as f64 / 1e6 - 10.6 / 9.0).abs() < 1e-3, "{overall}");
        assert!((overall.0 as f64 / 1e6 - 1.16).abs() < 0.03, "{overall}");
    }

    #[test]
    fn beyond_the_peak_the_curve_turns_back_and_is_not_counted() {
        let points = curve(&[(10.0, 1.0), (20.0, 3.0), (18.0, 9.0), (15.0, 20.0)]);
        assert_eq!(overall_response_time(&points), Some(Nanos(2_000_000)));
    }

    #[test]
    fn a_single_load_has_no_overall_response_time() {
        assert_eq!(overall_response_time(&[]), None);
        assert_eq!(overall_response_time(&curve(&[(10.0, 1.0)])), None);
        assert_eq!(overall_response_time(&curve(&[(10.0, 1.0), (10.0, 2.0)])), None);
        assert_eq!(overall_response_time(&curve(&[(10.0, 1.0), (f64::NAN, 2.0)])), None);
    }
}
