//! Table of the loads tried in a capacity search.

use crate::bench::{BenchDocument, load_name};
use crate::format::clean;
use crate::text::page::TextPage;
use crate::text::style::Paint;

pub(super) fn render(page: &mut TextPage, document: &BenchDocument) {
    let Some(capacity) = document.capacity.as_ref().filter(|capacity| !capacity.tried.is_empty()) else { return };
    page.heading("Loads that were tried");
    let names: Vec<String> =
        capacity.tried.iter().map(|tried| load_name(tried.users, tried.rate.map(f64::from))).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    for (tried, name) in capacity.tried.iter().zip(&names) {
        let holds = if tried.holds { "holds" } else { "fails" };
        let found = tried.found.as_ref().map_or_else(String::new, |found| clean(found));
        let begin = format!("{name:<width$}  {holds}  ");
        page.beside(Paint::Plain, &begin, &found);
    }
}
