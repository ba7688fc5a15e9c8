//! Table of operations inside Samba compared with the clients' response times.

use crate::bench::{BenchRun, InsideSamba};
use crate::format::{or_dash, rate, unbroken};
use crate::text::page::TextPage;
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_model::Nanos;

pub(super) fn render(page: &mut TextPage, run: &BenchRun) {
    let line = |of: InsideSamba| {
        let outside = of.response_time.map(|whole| Nanos((whole.0 - of.inside.0).max(0)));
        let cells = vec![rate(of.per_second), or_dash(of.response_time), unbroken(of.inside), or_dash(outside)];
        TextTableLine::new(of.operation, cells)
    };
    let lines: Vec<TextTableLine> = run.inside_samba().into_iter().map(line).collect();
    if lines.is_empty() {
        return;
    }
    let columns = TextColumn::list(&[("Per second", 1), ("Response time", 0), ("In Samba", 0), ("Outside", 0)]);
    let left_out = TextTable::new(columns).section("Inside Samba", lines).render(page);
    let text = "Means. In Samba: from the request to the response inside smbd, by its own profile, waiting for storage \
                included. Outside: the rest of what the client waited, in the network, in sockets' queues and in the client.";
    page.note(text, &left_out);
}
