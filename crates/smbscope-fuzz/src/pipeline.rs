//! Target for a whole analysis, from a capture to the reports.

use smbscope_analyze::pipeline::{Sharding, Threading, run};
use smbscope_analyze::{Analyzer, AnalyzerOptions, AnalyzerOutcome};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::CaptureSet;
use smbscope_capture::tcp::FlowTable;
use smbscope_diagnose::whatif::{self, FlowPaths};
use smbscope_diagnose::{Catalogue, Collector};
use smbscope_model::{CaptureInfo, Exchange, MemoryBudget, Quality, TimeKind, Timestamp};
use smbscope_report::csv::CsvExchangeWriter;
use smbscope_report::table::ExchangeTable;
use smbscope_report::text::ReportTextOptions;
use smbscope_report::{Explanation, Report, classic, json, text};
use smbscope_stats::Aggregator;
use std::io::Cursor;

/// Maximum number of packets read, because a few compressed bytes can expand to very many.
const MAX_PACKETS: u64 = 20_000;
const WIDTH: usize = 100;

pub fn pipeline(data: &[u8]) {
    let Some(analysis) = Analysis::run(data, MemoryBudget::default()) else { return };
    for exchange in &analysis.exchanges {
        check(exchange);
    }
    let table = analysis.table();
    let report = analysis.report();
    let shown =
        text::render(&report, &ReportTextOptions { width: WIDTH, color: false, ..ReportTextOptions::default() });
    check_text(&shown);
    for line in shown.lines() {
        assert!(line.chars().count() <= WIDTH, "a line of {} columns: {line}", line.chars().count());
    }
    check_text(&classic::render(&report));
    let mut object = Vec::new();
    json::write(&report, &mut object).expect("a vector takes every byte");
    let parsed: serde_json::Value = serde_json::from_slice(&object).expect("the report is JSON");
    assert_eq!(parsed["schema"], json::SCHEMA);
    // Some inputs are also analysed in other ways.
    match data.len() % 4 {
        0 => {
            let again = Analysis::run(data, MemoryBudget::default()).expect("it could be read before");
            assert!(again.table() == table, "another table the second time");
        }
        1 if analysis.quality.packets < MAX_PACKETS => check_sharded(data, &analysis),
        2 => drop(Analysis::run(data, TIGHT)),
        _ => {}
    }
}

const TIGHT: MemoryBudget = MemoryBudget { flows: 20_000, names: 2_000, connections: 1 };

/// Checks that distributing flows over threads gives the same exchanges, connections and counts.
fn check_sharded(data: &[u8], whole: &Analysis) {
    let mut set = open(data).expect("it could be read before");
    let mut found = [Vec::new(), Vec::new()];
    let mut sinks: Vec<_> =
        found.iter_mut().map(|found| |exchange: &Exchange| found.push(format!("{exchange:?}"))).collect();
    let options = AnalyzerOptions::default();
    let result = run(&mut set, &options, Sharding::Connections, Threading::Workers, &mut sinks, |_| {});
    drop(sinks);
    // If a session spans shards, the caller has to repeat the analysis without sharding.
    let Ok(sharded) = result else { return };
    let mut found = found.concat();
    let mut expected: Vec<String> = whole.exchanges.iter().map(|exchange| format!("{exchange:?}")).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "other exchanges when the flows are divided");
    assert_eq!(sharded.quality, whole.quality, "other counts when the flows are divided");
    assert_eq!(sharded.connections, whole.found.connections, "other connections when the flows are divided");
}

fn open(data: &[u8]) -> Option<CaptureSet> {
    CaptureSet::from_reader("capture", Box::new(Cursor::new(data.to_vec()))).ok()
}

struct Analysis {
    exchanges: Vec<Exchange>,
    quality: Quality,
    found: AnalyzerOutcome,
    capture: CaptureInfo,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Analysis {
    fn run(data: &[u8], limits: MemoryBudget) -> Option<Analysis> {
        let mut set = open(data)?;
        let mut decoder = Decoder::new();
        let mut quality = Quality::default();
        let mut exchanges = Vec::new();
        let options = AnalyzerOptions { limits, ..AnalyzerOptions::default() };
        let analyzer = Analyzer::new(options, |exchange| exchanges.push(exchange));
        let mut flows = FlowTable::within(analyzer, limits.flows);
        let (mut first, mut last, mut whole) = (None, None, false);
        while quality.packets < MAX_PACKETS {
            let Some(packet) = set.next_packet().expect("what opens can be read") else {
                whole = true;
                break;
            };
            first.get_or_insert(packet.stamp.time);
            last = last.max(Some(packet.stamp.time));
            if let Some(segment) = decoder.decode(&packet, &mut quality) {
                flows.segment(&segment);
            }
        }
        decoder.finish(&mut quality);
        let found = flows.finish().finish();
        quality.merge(set.quality());
        quality.merge(&found.quality);
        let info = set.captures().first().expect("one capture was opened");
        let unread = quality.malformed_packets + quality.headers_not_captured;
        assert_eq!(quality.packets, quality.tcp_packets + quality.not_tcp + unread);
        assert!(!whole || info.packets == quality.packets, "packets that were told of");
        let capture = info.clone();
        Some(Analysis { exchanges, quality, found, capture, first, last })
    }

    /// Returns the exchange table. All its rows have the same number of columns.
    fn table(&self) -> Vec<u8> {
        let mut writer = CsvExchangeWriter::new(Vec::new()).expect("a vector takes every byte");
        let names = [self.capture.name.clone()];
        for (id, exchange) in self.exchanges.iter().enumerate() {
            writer.write(exchange, id as u64, &names).expect("a vector takes every byte");
        }
        let bytes = writer.into_inner().expect("a vector takes every byte");
        let mut reader = csv::Reader::from_reader(&bytes[..]);
        let columns = reader.headers().expect("there is a header").len();
        let mut rows = 0;
        for record in reader.records() {
            assert_eq!(record.expect("a row can be read").len(), columns);
            rows += 1;
        }
        assert_eq!(rows, self.exchanges.len());
        bytes
    }

    fn report(&self) -> Report {
        let mut aggregator = Aggregator::new();
        self.exchanges.iter().for_each(|exchange| aggregator.record(exchange));
        let aggregate = aggregator.finish();
        let mut collector = Collector::default();
        self.exchanges.iter().for_each(|exchange| collector.exchange(exchange));
        let connections = &self.found.connections;
        connections.iter().for_each(|connection| collector.closed(connection));
        let catalogue = Catalogue::default();
        let explanation = Explanation { episodes: collector.episodes(), ..Explanation::default() };
        let changes = ["cache=leases", "read=+5ms"].map(|change| change.parse().expect("a change"));
        let _predicted = whatif::predict(&self.exchanges, &FlowPaths::default(), &changes);
        let mut report = Report {
            captures: vec![self.capture.clone()],
            quality: self.quality.clone(),
            connections: self.found.connections.clone(),
            aggregate,
            first: self.first,
            last: self.last,
            explanation,
            ..Report::default()
        };
        report.explanation.answer = report.diagnosed(&collector, &catalogue);
        report
    }
}

/// Checks invariants that hold even for damaged captures.
fn check(exchange: &Exchange) {
    let Exchange { request, response, .. } = exchange;
    assert!(request.first.or(request.last).or(response.first).or(response.last).is_some(), "nothing was seen of it");
    if exchange.is_complete() {
        let seen = request.first.is_some() && response.last.is_some();
        assert!(seen, "complete, but its first or last packet was not seen: {exchange:?}");
    }
    for kind in [TimeKind::ResponseTime, TimeKind::RequestTransfer, TimeKind::ResponseTransfer] {
        let time = exchange.time(kind).filter(|_| exchange.is_complete());
        assert!(time.is_none_or(|time| time.0 >= 0), "{} is {time:?}: {exchange:?}", kind.name());
    }
}

/// Names from the network must not contain terminal control characters.
fn check_text(text: &str) {
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    assert!(bad.is_none(), "a control character: {bad:?}");
}
