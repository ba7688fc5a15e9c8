//! Words for the server's figures in a minute of `watch`.

use smbscope_model::prose::clean;
use smbscope_run::ServerMinute;

/// Returns `server CPU 97% (max 99%), busiest disk 100%, latency 3.2 (max 5)`. Empty without figures.
pub(super) fn words(minute: &ServerMinute) -> String {
    let mut parts = Vec::new();
    let figure = |name: &str| minute.server.as_ref().and_then(|server| server.metrics.get(name));
    if let Some(cpu) = figure("cpu") {
        parts.push(format!("server CPU {:.0}% (max {:.0}%)", cpu.mean, cpu.max));
    }
    match (figure("disk_busiest"), figure("disk_queue")) {
        (Some(disk), _) => parts.push(format!("busiest disk {:.0}%", disk.mean)),
        // windows_exporter has no utilization of disks.
        (None, Some(queue)) => parts.push(format!("disk queue {}", short(queue.mean))),
        (None, None) => {}
    }
    if let Some(network) = figure("network_busiest") {
        parts.push(format!("network {:.0}%", network.mean));
    }
    for query in &minute.also {
        parts.push(format!("{} {} (max {})", clean(&query.name), short(query.mean), short(query.max)));
    }
    parts.join(", ")
}

/// Formats a number with three significant digits. The unit of a query is unknown.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.2e}"),
        size => {
            let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
            let text = format!("{value:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_run::{QueryFigure, ServerFigure, ServerFigures};

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.00123, 0.5, 3.25678, 42.0, 1_234.5, -7.25, 1.5e9, 2e-7].map(short);
        assert_eq!(shown, ["0", "0.00123", "0.5", "3.26", "42", "1234", "-7.25", "1.50e9", "2.00e-7"]);
    }

    #[test]
    fn a_minute_has_the_figures_that_there_are() {
        let figure = |mean, max| ServerFigure { unit: "percent".to_owned(), mean, max };
        let also = vec![QueryFigure { name: "latency".to_owned(), mean: 3.21, max: 5.0, count: 6 }];
        let mut metrics: std::collections::BTreeMap<String, ServerFigure> =
            [("cpu".to_owned(), figure(97.2, 99.6)), ("disk_queue".to_owned(), figure(1.5, 4.0))].into();
        let server = |metrics: &std::collections::BTreeMap<String, ServerFigure>| {
            Some(ServerFigures { source: "http://files:9182/metrics".to_owned(), metrics: metrics.clone() })
        };
        let windows = ServerMinute { server: server(&metrics), also };
        assert_eq!(words(&windows), "server CPU 97% (max 100%), disk queue 1.5, latency 3.21 (max 5)");
        metrics.insert("disk_busiest".to_owned(), figure(100.0, 100.0));
        let linux = ServerMinute { server: server(&metrics), also: Vec::new() };
        assert_eq!(words(&linux), "server CPU 97% (max 100%), busiest disk 100%");
        assert_eq!(words(&ServerMinute::default()), "");
    }
}
