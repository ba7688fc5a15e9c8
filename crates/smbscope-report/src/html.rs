//! A self-contained HTML page that shows a JSON document, and loads nothing.
//!
//! The page is built from `web/` and checked in next to this file, so that building the crate does not need Node. It
//! shows every document with a known `schema`. The document is embedded in a `<script type="application/json">`, which
//! ends at the next `</script`, so `<` is escaped as `\u003c`.

use crate::Report;
use crate::bench;
use crate::compare::{self, Comparison};
use crate::document::write_for_html;
use crate::format::clean;
use crate::json::ReportDocument;
use crate::prediction::PredictionDocument;
use crate::study;
use serde::Serialize;
use std::io::{self, Write};

const TEMPLATE: &str = include_str!("html/template.html");

const TITLE: &str = "@SMBSCOPE_TITLE@";

const DATA: &str = "@SMBSCOPE_DATA@";

/// Most connections, files, shares, users, clients and servers listed on a page.
pub const LISTED_MAX: usize = 2_000;

/// Writes a report as a page. Lists are limited to the [`LISTED_MAX`] entries that took longest, as the page states.
pub fn write_report(report: &Report, out: impl Write) -> io::Result<()> {
    let title = match (&report.title, report.captures.as_slice()) {
        (Some(title), _) => title.clone(),
        (None, [only]) => format!("SMB response times: {}", only.name),
        (None, captures) => format!("SMB response times: {} captures", captures.len()),
    };
    write(&ReportDocument::within(report, LISTED_MAX), &title, out)
}

/// Writes the document of such a page alone.
pub fn write_data(report: &Report, out: impl Write) -> io::Result<()> {
    write_for_html(&ReportDocument::within(report, LISTED_MAX), out)
}

pub fn write_comparison(comparison: &Comparison, version: &str, out: impl Write) -> io::Result<()> {
    let title = comparison.title.as_deref().unwrap_or("SMB response times compared");
    write(&compare::ComparisonEnvelope::new(comparison, version), title, out)
}

pub fn write_bench(document: &bench::BenchDocument, out: impl Write) -> io::Result<()> {
    write(&bench::BenchEnvelope::new(document), &document.heading(), out)
}

pub fn write_study(document: &study::StudyDocument, out: impl Write) -> io::Result<()> {
    write(&study::StudyEnvelope::new(document), &format!("SMB study: {}", document.name), out)
}

pub fn write_prediction(document: &PredictionDocument, out: impl Write) -> io::Result<()> {
    write(document, &document.title(), out)
}

/// Writes a page that shows the document, which must serialise to a JSON object with a key `schema`.
pub fn write(document: &impl Serialize, title: &str, mut out: impl Write) -> io::Result<()> {
    let (before_title, rest) = TEMPLATE.split_once(TITLE).expect("a test holds the template to its places");
    let (before_data, after_data) = rest.split_once(DATA).expect("a test holds the template to its places");
    out.write_all(before_title.as_bytes())?;
    out.write_all(escaped(title).as_bytes())?;
    out.write_all(before_data.as_bytes())?;
    write_for_html(document, &mut out)?;
    out.write_all(after_data.as_bytes())
}

fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '&' => result.push_str("&amp;"),
            c => result.push_str(&clean(c.encode_utf8(&mut [0; 4]))),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn page(document: &Value, title: &str) -> String {
        let mut out = Vec::new();
        write(document, title, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn embedded(page: &str) -> &str {
        let (_, rest) = page.split_once(r#"<script type="application/json" id="smbscope-data">"#).unwrap();
        rest.split_once("</script").unwrap().0
    }

    #[test]
    fn the_template_has_one_place_for_each() {
        assert_eq!([TITLE, DATA].map(|place| TEMPLATE.matches(place).count()), [1, 1]);
        assert!(TEMPLATE.find(TITLE) < TEMPLATE.find(DATA));
    }

    #[test]
    fn the_template_loads_nothing() {
        // The content security policy forbids loading, and no element tries to.
        assert!(TEMPLATE.contains("default-src 'none'; script-src 'sha256-"));
        assert!(!TEMPLATE.contains("script-src 'unsafe-inline'"));
        for element in ["<link", "<iframe", "<object", "<embed", "<base", "src=\"http", "@import", "url(http"] {
            assert!(!TEMPLATE.contains(element), "{element}");
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let document = json!({
            "schema": "smbscope.report/1",
            "counts": [0, 18_446_744_073_709_551_615_u64, -1, 0.5],
            "names": ["ä\u{1f600}", "\u{2028}\u{2029}", "\"\\\u{0}", "</script>", ""],
        });
        assert_eq!(serde_json::from_str::<Value>(embedded(&page(&document, ""))).unwrap(), document);
    }

    #[test]
    fn a_hostile_name_is_never_markup() {
        let hostile = "</script><img src=x onerror=alert(1)><!--<script>&lt;\u{2028}";
        let page = page(&json!({ "schema": "x", "path": hostile, (hostile): 1 }), hostile);
        let data = embedded(&page);
        assert!(!data.contains(['<', '>', '&', '\u{2028}']), "{data}");
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["path"], hostile);
        assert!(page.contains("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&lt;!--"));
        assert!(!page.contains("<img src=x"));
    }

    #[test]
    fn a_name_like_a_place_is_left_alone() {
        let page = page(&json!({ "schema": "x", "path": DATA }), DATA);
        assert_eq!(embedded(&page), r#"{"path":"@SMBSCOPE_DATA@","schema":"x"}"#);
    }
}
