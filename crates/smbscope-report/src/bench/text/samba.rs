//! How long operations took inside Samba at a load point, beside what their clients waited.

use crate::bench::{InsideSamba, BenchRun};
use crate::format::{or_dash, rate, unbroken};
use crate::text::page::Page;
use crate::text::table::{Column, Line, Table};
use smbscope_model::Nanos;

pub(super) fn render(page: &mut Page, run: &BenchRun) {
    let line = |of: InsideSamba| {
        let outside = of.response_time.map(|whole| Nanos((whole.0 - of.inside.0).max(0)));
        let cells = vec![rate(of.per_second), or_dash(of.response_time), unbroken(of.inside), or_dash(outside)];
        Line::new(of.operation, cells)
    };
    let lines: Vec<Line> = run.inside_samba().into_iter().map(line).collect();
    if lines.is_empty() {
        return;
    }
    let columns = Column::list(&[("Per second", 1), ("Response time", 0), ("In Samba", 0), ("Outside", 0)]);
    let left_out = Table::new(columns).section("Inside Samba", lines).render(page);
    let text = "Means. In Samba: from the request to the response inside smbd, by its own profile, waiting for storage \
                included. Outside: the rest of what the client waited, in the network, in sockets' queues and in the client.";
    page.note(text, &left_out);
}
