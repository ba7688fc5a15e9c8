//! Words for the server's figures in a minute of `watch`.

use smbscope_model::Nanos;
use smbscope_model::prose::clean;
use smbscope_report::span;
use smbscope_run::{ServerFigure, ServerFigures, ServerMinute};

/// Returns `server CPU 97% (max 99%), read in Samba 3.20 ms (max 9.00 ms), latency 3.2 (max 5)`, for example. Empty
/// without figures.
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
    if let Some(sessions) = figure("samba_sessions") {
        parts.push(format!("Samba sessions {}", short(sessions.mean)));
    }
    if let Some((operation, time)) = minute.server.as_ref().and_then(longest_in_samba) {
        let [mean, max] = [time.mean, time.max].map(|time| span(Nanos(time as i64)));
        parts.push(format!("{operation} in Samba {mean} (max {max})"));
    }
    for query in &minute.also {
        parts.push(format!("{} {} (max {})", clean(&query.name), short(query.mean), short(query.max)));
    }
    parts.join(", ")
}

/// Returns the operation on which Samba spends most time, with its mean times.
fn longest_in_samba(server: &ServerFigures) -> Option<(String, &ServerFigure)> {
    let times = server.metrics.iter().filter_map(|(name, time)| {
        let operation = name.strip_prefix("samba_")?.strip_suffix("_time")?;
        let rate = server.metrics.get(&format!("samba_{operation}"))?;
        Some((operation, rate.mean * time.mean, time))
    });
    let (operation, _, time) = times.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((operation.replace('_', " "), time))
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
    use smbscope_run::QueryFigure;

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
        // Reads are slower, but rare.
        let samba = [
            ("samba_sessions", 12.0, 12.0),
            ("samba_read", 1.0, 2.0),
            ("samba_read_time", 9e6, 9e6),
            ("samba_query_directory", 50.0, 60.0),
            ("samba_query_directory_time", 2.5e6, 7e6),
        ];
        metrics = samba.map(|(name, mean, max)| (name.to_owned(), figure(mean, max))).into();
        let samba = ServerMinute { server: server(&metrics), also: Vec::new() };
        assert_eq!(words(&samba), "Samba sessions 12, query directory in Samba 2.50 ms (max 7.00 ms)");
    }
}
