//! Adjustments for multiple comparisons: of thirty rows at 95%, one or two differ by chance.

/// Adjusts p-values by Holm's method: with the rows at or below 0.05, the probability of even one false positive is 5%
/// (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979). For the few claims of a headline.
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let order = ascending(p_values);
    let mut adjusted = vec![None; p_values.len()];
    let mut least = 0.0f64;
    for (rank, (at, p)) in order.iter().enumerate() {
        least = least.max(p * (order.len() - rank) as f64).min(1.0);
        adjusted[*at] = Some(least);
    }
    adjusted
}

/// Adjusts p-values by the method of Benjamini and Hochberg: of the rows at or below 0.05, about 5% are false positives
/// ("Controlling the False Discovery Rate", 1995). For tables.
pub fn benjamini_hochberg(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let order = ascending(p_values);
    let mut adjusted = vec![None; p_values.len()];
    let mut most = 1.0f64;
    for (rank, (at, p)) in order.iter().enumerate().rev() {
        most = most.min(p * order.len() as f64 / (rank + 1) as f64);
        adjusted[*at] = Some(most);
    }
    adjusted
}

fn ascending(p_values: &[Option<f64>]) -> Vec<(usize, f64)> {
    let known = p_values.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?)).filter(|(_, p)| !p.is_nan()));
    let mut known: Vec<(usize, f64)> = known.collect();
    known.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    known
}
