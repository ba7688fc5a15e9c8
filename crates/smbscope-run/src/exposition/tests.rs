//! Expected texts follow the Prometheus exposition format 0.0.4 and OpenMetrics 1.0; `promtool` judges them as well.

use super::*;
use crate::options::MetricsOptions;
use prometheus_client::encoding::{prometheus_protobuf, prometheus_text};
use prometheus_client::registry::Registry;
use smbscope_capture::live::PacketDrops;
use smbscope_diagnose::{Answer, Catalogue, Cause, LostTime};
use smbscope_load::engine::ExchangeObserver;
use smbscope_model::{CommandGroup, Exchange, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, Timestamp};
use smbscope_stats::TimeSplit;
use smbscope_testkit::{exchange, skip};
use smbscope_wire::status::NtStatus;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

const MS: i64 = 1_000_000;

fn server(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0xc612_0000 + number), 445))
}

/// A read of 4,096 bytes that took this long.
fn read(server: SocketAddr, share: &str, time: Nanos) -> Exchange {
    let mut exchange = exchange::read(0, time.0);
    exchange.endpoints.server = server;
    exchange.share = Some(share.into());
    exchange.status = Some(ResponseStatus::Nt(NtStatus::SUCCESS));
    (exchange.length, exchange.response.bytes) = (Some(4_096), 4_096 + 80);
    exchange
}

fn failed(status: NtStatus) -> Exchange {
    Exchange { status: Some(ResponseStatus::Nt(status)), ..read(server(1), "data", Nanos(MS)) }
}

fn count(registry: &MetricsRegistry, exchanges: &[Exchange]) {
    let mut recorder = registry.recorder();
    exchanges.iter().for_each(|exchange| recorder.exchange(exchange));
}

fn encoded(registry: &MetricsRegistry) -> String {
    let (mut scraped, mut text) = (Registry::default(), String::new());
    scraped.register_collector(Box::new(registry.clone()));
    prometheus_text::encode(&mut text, &scraped).expect("a string takes everything");
    text
}

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// A registry with samples of all families.
fn full() -> MetricsRegistry {
    let registry = MetricsRegistry::new();
    let unanswered = Exchange { outcome: ExchangeOutcome::Unanswered, ..failed(NtStatus::SUCCESS) };
    count(&registry, &[read(server(1), "data", Nanos(3 * MS)), failed(NtStatus::DISK_FULL), unanswered]);
    registry.update(|figures| {
        figures.outstanding.insert(CommandGroup::OpenClose, 3);
        figures.connections = Some(7);
        figures.retransmitted = vec![(server(1), FlowDirection::Forward, 5), (server(1), FlowDirection::Backward, 2)];
        figures.time = Some(TimeSplit { server_ns: Nanos(1_500 * MS), ..TimeSplit::default() });
        figures.dropped = Some(PacketDrops { kernel: 11, interface: 3 });
        figures.missing = Some(1);
        figures.last_packet = Some(Timestamp(1_764_201_600_250 * MS));
    });
    let (id, _) = Catalogue::default().entries().map(|(id, cause)| (id.to_owned(), cause.title)).next().unwrap();
    let mut cause = Cause::default();
    cause.id = id;
    cause.lost_ns = Some(LostTime::exactly(Nanos(2_500 * MS)));
    registry.add_answer(&Answer { causes: vec![cause], ..Answer::default() });
    registry
}

#[test]
fn a_response_time_counts_in_the_bucket_of_its_upper_bound() {
    let registry = MetricsRegistry::new();
    let times = [1, 10 * 1_000, 10 * 1_000 + 1, 20 * MS, 61_000 * MS];
    count(&registry, &times.map(|time| read(server(1), "data", Nanos(time))));
    let text = encoded(&registry);
    let labels = r#"server="198.18.0.1:445",share="data",group="Read""#;
    let bucket = |le: &str| value(&text, &format!("smbscope_response_seconds_bucket{{{labels},le=\"{le}\"}}"));
    // Cumulative, and `le` is inclusive.
    assert_eq!(bucket("1e-05"), Some(2.0), "{text}");
    assert_eq!([bucket("0.02"), bucket("60"), bucket("+Inf")], [Some(4.0), Some(4.0), Some(5.0)], "{text}");
    assert_eq!(value(&text, &format!("smbscope_response_seconds_count{{{labels}}}")), Some(5.0));
    let sum = value(&text, &format!("smbscope_response_seconds_sum{{{labels}}}")).unwrap();
    assert!((sum - 61.020_020_002).abs() < 1e-9, "{sum}");
    assert_eq!(value(&text, r#"smbscope_read_bytes_total{server="198.18.0.1:445",share="data"}"#), Some(5.0 * 4_096.0));
}

/// As client_model's metrics.proto defines them: buckets of schema 3 end at 2^(i/8), inclusive.
#[test]
fn native_buckets_end_at_eighths_of_an_octave_and_leave_out_what_is_empty() {
    let registry = MetricsRegistry::new();
    // 1 s ends bucket 0; 1.05 s is in bucket 1, as 2^(1/8) is 1.0905. 0.25 s ends bucket -16.
    let times = [0, 250 * MS, 1_000 * MS, 1_000 * MS, 1_050 * MS];
    count(&registry, &times.map(|time| read(server(1), "data", Nanos(time))));
    let mut scraped = Registry::default();
    scraped.register_collector(Box::new(registry));
    let families = prometheus_protobuf::encode(&scraped).expect("memory takes everything");
    let family = families.iter().find(|family| family.name == "smbscope_response_seconds").expect("the family");
    let histogram = family.metric[0].histogram.as_ref().expect("a histogram");
    let spans: Vec<(i32, u32)> = histogram.positive_span.iter().map(|span| (span.offset, span.length)).collect();
    assert_eq!((histogram.schema, histogram.zero_count, histogram.sample_count), (3, 1, 5));
    // Fifteen empty buckets lie between the spans. The counts are 1, 2 and 1.
    assert_eq!((spans, &histogram.positive_delta), (vec![(-16, 1), (15, 2)], &vec![1, 1, -1]));
    assert_eq!(histogram.bucket.last().map(|bucket| bucket.cumulative_count), Some(5), "classic buckets as well");
}

#[test]
fn commands_of_all_threads_add_up() {
    let registry = MetricsRegistry::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let mut recorder = registry.recorder();
            scope.spawn(move || {
                for i in 0..5_000 {
                    let share = if (i + thread) % 2 == 0 { "even" } else { "odd" };
                    recorder.exchange(&read(server(1), share, Nanos(MS)));
                }
            });
        }
    });
    let text = encoded(&registry);
    for share in ["even", "odd"] {
        let series = format!(r#"smbscope_commands_total{{server="198.18.0.1:445",share="{share}",group="Read"}}"#);
        assert_eq!(value(&text, &series), Some(10_000.0), "{text}");
    }
}

#[test]
fn servers_shares_and_statuses_beyond_the_limits_count_together() {
    let registry = MetricsRegistry::new();
    let mut recorder = registry.recorder();
    for i in 0..SERVERS_LABELLED_MAX as u32 + 50 {
        recorder.exchange(&read(server(i), "data", Nanos(MS)));
    }
    for i in 0..SHARES_LABELLED_MAX + 25 {
        recorder.exchange(&read(server(0), &format!("share{i}"), Nanos(MS)));
    }
    for code in 0..STATUSES_LABELLED_MAX as u32 + 10 {
        let status = Some(ResponseStatus::Nt(NtStatus(0xc0f0_0000 + code)));
        recorder.exchange(&Exchange { status, ..read(server(0), "data", Nanos(MS)) });
    }
    recorder.publish();
    let text = encoded(&registry);
    let overflow = |label: &str| value(&text, &format!("smbscope_label_overflow_total{{label=\"{label}\"}}"));
    // The servers' shares named `data` took 100 of the 500 places.
    let shares = 25.0 + SERVERS_LABELLED_MAX as f64;
    assert_eq!([overflow("server"), overflow("share"), overflow("status")], [Some(50.0), Some(shares), Some(10.0)]);
    let others = r#"smbscope_commands_total{server="(other)",share="(other)",group="Read"}"#;
    assert_eq!(value(&text, others), Some(50.0));
    let statuses = r#"smbscope_errors_total{server="198.18.0.0:445",share="data",status="(other)"}"#;
    assert_eq!(value(&text, statuses), Some(10.0));
    let series = text.lines().filter(|line| line.starts_with("smbscope_commands_total{")).count();
    assert!(series <= SHARES_LABELLED_MAX + SERVERS_LABELLED_MAX + 1, "{series}");
}

#[test]
fn hostile_names_stay_within_their_label() {
    let registry = MetricsRegistry::new();
    let names = ["a\"} 1\nfake_total 7\n", "back\\slash", &"ü".repeat(32 << 10)];
    count(&registry, &names.map(|name| read(server(1), name, Nanos(MS))));
    let text = encoded(&registry);
    assert!(!text.lines().any(|line| line.starts_with("fake_total")), "{text}");
    assert!(text.contains(r#"share="a\"} 1\nfake_total 7\n""#) && text.contains(r#"share="back\\slash""#), "{text}");
    assert!(text.contains(&format!("share=\"{}…\"", "ü".repeat(62))), "{text}");
    accepted_by_promtool(&text);
}

#[test]
fn every_family_can_be_exposed_and_satisfies_promtool() {
    let text = encoded(&full());
    for family in families().filter(|family| family.kind != "histogram") {
        let samples = text.lines().filter(|line| {
            line.strip_prefix(&family.name).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        });
        let samples: Vec<&str> = samples.collect();
        assert!(!samples.is_empty(), "no {}: {text}", family.name);
        assert!(family.labels.iter().all(|label| samples.iter().all(|line| line.contains(&format!("{label}=\"")))));
    }
    let errors = r#"smbscope_errors_total{server="198.18.0.1:445",share="data",status="STATUS_DISK_FULL"}"#;
    assert_eq!(value(&text, errors), Some(1.0), "{text}");
    assert_eq!(value(&text, r#"smbscope_commands_untimed_total{outcome="unanswered"}"#), Some(1.0));
    assert_eq!(value(&text, r#"smbscope_time_seconds_total{part="server"}"#), Some(1.5));
    let latest = value(&text, "smbscope_last_packet_timestamp_seconds").unwrap();
    assert!((latest - 1_764_201_600.25).abs() < 1e-6, "{latest}");
    accepted_by_promtool(&text);
}

#[test]
fn a_cause_is_active_until_an_answer_no_longer_names_it() {
    let registry = full();
    let active = |text: &str| {
        text.lines().filter(|line| line.starts_with("smbscope_cause_active{") && line.ends_with(" 1")).count()
    };
    let known = Catalogue::default().entries().count();
    let text = encoded(&registry);
    assert_eq!(text.lines().filter(|line| line.starts_with("smbscope_cause_active{")).count(), known);
    assert_eq!(active(&text), 1);
    registry.add_answer(&Answer::default());
    let text = encoded(&registry);
    assert_eq!(active(&text), 0);
    let lost = text.lines().filter(|line| line.starts_with("smbscope_cause_lost_seconds_total{"));
    assert_eq!(lost.filter(|line| line.ends_with(" 2.5")).count(), 1, "{text}");
}

/// Names of metrics in PromQL and dashboards, without the suffixes of a histogram.
#[test]
fn rules_and_dashboard_use_metrics_that_exist() {
    const FILES: [(&str, &str); 3] = [
        ("smbscope.rules.yml", include_str!("../../../../packaging/prometheus/smbscope.rules.yml")),
        ("smbscope.json", include_str!("../../../../packaging/grafana/smbscope.json")),
        ("metrics.md", include_str!("../../../../docs/metrics.md")),
    ];
    let known: Vec<String> = families().map(|family| family.name).collect();
    for (file, text) in FILES {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("smbscope_")).collect();
        assert!(names.len() > 5, "{file} names {names:?}");
        for name in names {
            let whole = ["_bucket", "_sum", "_count"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
            assert!(
                known.iter().any(|known| known == whole.unwrap_or(name)),
                "{file} uses {name}, which does not exist"
            );
        }
    }
    let named =
        FILES[0].1.split("id=~\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an alert names causes");
    let catalogue = Catalogue::default();
    for id in named.split('|') {
        assert!(catalogue.entries().any(|(known, _)| known == id), "an alert names {id}, which is no cause");
    }
    let page = FILES[2].1;
    for family in families() {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let row = format!("|`{}`|{}|{}|{}|", family.name, family.kind, labels.join(", "), family.help);
        assert!(page.contains(&row), "docs/metrics.md lacks this row: {row}");
    }
}

#[test]
fn scrapes_are_answered_in_the_format_asked_for_and_nothing_else_is() {
    let endpoint = open(&full());
    let scrape = |request: &str| {
        let mut stream = TcpStream::connect(endpoint.address()).expect("the endpoint listens");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        String::from_utf8_lossy(&said).into_owned()
    };
    let plain = scrape("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(plain.starts_with("HTTP/1.1 200") && plain.contains("content-type: text/plain; version=0.0.4"), "{plain}");
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let open = scrape(&format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n"));
    assert!(open.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{open}");
    assert!(open.ends_with("# EOF\n"), "{open}");
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6";
    let native = scrape(&format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {protobuf},text/plain;q=0.5\r\n\r\n"));
    assert!(native.contains("content-type: application/vnd.google.protobuf; proto=io.prometheus"), "{native}");
    assert!(scrape("GET / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(scrape("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405"));
}

#[test]
fn silent_scrapers_hold_up_neither_recorders_nor_the_end() {
    let registry = full();
    let endpoint = open(&registry);
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(endpoint.address()).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(100));
    let begun = std::time::Instant::now();
    count(&registry, &vec![read(server(1), "data", Nanos(MS)); 5_000]);
    drop(endpoint);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn a_port_in_use_is_named() {
    let first = open(&MetricsRegistry::new());
    let options = MetricsOptions { metrics: Some(first.address()), ..MetricsOptions::default() };
    let error = MetricsEndpoint::open(&options, &MetricsRegistry::new()).unwrap_err().to_string();
    assert!(error.contains(&first.address().to_string()) && error.contains("--metrics"), "{error}");
}

fn open(registry: &MetricsRegistry) -> MetricsEndpoint {
    let options =
        MetricsOptions { metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), ..MetricsOptions::default() };
    MetricsEndpoint::open(&options, registry).expect("loopback has a free port").expect("an address was given")
}

fn accepted_by_promtool(text: &str) {
    if !skip::has("promtool") {
        return;
    }
    let mut promtool = Process::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().expect("promtool was there");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    let remarks = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && remarks.trim().is_empty(), "{remarks}\n{text}");
}
