//! `--metrics`, scraped by a real Prometheus (skipped without it or without Samba), and the alerts and the dashboard for
//! it.

use serde_json::Value;
use smbscope_lab::Launcher;
use smbscope_load::engine::ExchangeObserver;
use smbscope_model::Timestamp;
use smbscope_run::exposition::{MetricsEndpoint, MetricsRegistry};
use smbscope_run::options::{BenchOptions, MetricsOptions};
use smbscope_run::{Bench, CounterSource, RunOptions, WatchedServer};
use smbscope_testkit::exchange::read;
use smbscope_testkit::skip;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

/// A Prometheus that scrapes one port of this machine.
struct Prometheus {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// `how` are further lines of its job, in YAML's flow style.
    fn start(scraped: u16, how: &str) -> Prometheus {
        Prometheus::with(scraped, how, &[])
    }

    fn with(scraped: u16, how: &str, options: &[&str]) -> Prometheus {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join("prometheus.yml");
        let target = format!("static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]");
        let jobs = format!("scrape_configs: [{{job_name: smbscope, {target}{how}}}]");
        std::fs::write(&config, format!("global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n{jobs}\n"))
            .unwrap();
        let port = free_port();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let prometheus = Prometheus { process: command.spawn().expect("prometheus starts"), port, _folder: folder };
        let begun = Instant::now();
        while !prometheus.get("/-/ready").is_some_and(|answer| answer.contains("200 OK")) {
            assert!(begun.elapsed() < Duration::from_secs(30), "Prometheus did not start");
            sleep(Duration::from_millis(100));
        }
        prometheus
    }

    /// Returns the response to a GET request, with its header.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Evaluates a query without spaces at a time in seconds since 1970. Returns the values by this label.
    fn query(&self, query: &str, time: f64, label: &str) -> BTreeMap<String, f64> {
        let answer = self.get(&format!("/api/v1/query?query={query}&time={time:.3}")).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a header and a body");
        let answer: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        let results = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let results = results.iter().map(|result| {
            let value = result["value"][1].as_str().and_then(|value| value.parse().ok()).expect("a value");
            (result["metric"][label].as_str().unwrap_or_default().to_owned(), value)
        });
        results.filter(|(_, value)| *value != 0.0).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Metrics do not change during a warm-up, so a query in the warm-up of the second load point has the counts of the
/// first one.
#[test]
fn prometheus_has_the_counts_of_the_report() {
    if let Err(why) = smbscope_lab::available() {
        return skip::missing(why);
    }
    if !skip::has("prometheus") {
        return;
    }
    let port = free_port();
    let prometheus = Prometheus::start(port, "");
    let bench = BenchOptions {
        users: Some("2,2".parse().expect("load points")),
        operations: Some(400),
        duration: Some(Duration::from_secs(20)),
        warmup: Some(Duration::from_secs(3)),
        metrics: MetricsOptions {
            metrics: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            ..MetricsOptions::default()
        },
        ..BenchOptions::default()
    };
    let password = |user: &str| Err(format!("a private server tells the password of {user} itself").into());
    let options =
        RunOptions::new(bench, Launcher::default(), Box::new(password)).expect("options that fit the workload");
    let bench = Bench::open(options).expect("a server that answers");
    let document = bench.run(&mut (), &AtomicBool::new(false)).expect("a run").document;
    let [first, second] = &document.runs[..] else { panic!("{document:?}") };
    let time = second.started_ns.0 as f64 / 1e9 - 0.3;
    assert!((first.started_ns.0 + first.duration_ns.0) as f64 / 1e9 + 1.0 < time, "{first:?} {second:?}");

    let groups = first.groups.iter().filter(|group| group.group != "Other" && group.operations > 0);
    let expected: BTreeMap<String, f64> = groups.map(|group| (group.group.clone(), group.operations as f64)).collect();
    assert!(expected.len() > 2, "{expected:?}");
    for metric in ["smbscope_response_seconds_count", "smbscope_commands_total"] {
        assert_eq!(prometheus.query(&format!("sum+by(group)({metric})"), time, "group"), expected, "{metric}");
    }
    let errors: BTreeMap<String, f64> =
        first.errors.iter().map(|(status, count)| (status.clone(), *count as f64)).collect();
    assert_eq!(prometheus.query("sum+by(status)(smbscope_errors_total)", time, "status"), errors);
    let sum = |metric: &str| prometheus.query(metric, time, "server").into_values().sum::<f64>();
    assert_eq!(sum("smbscope_read_bytes_total"), first.bytes_read as f64);
    assert_eq!(sum("smbscope_written_bytes_total"), first.bytes_written as f64);
    assert_eq!(sum("smbscope_connections"), 2.0);
}

/// Half of the reads take 1 ms, the others 100 ms: buckets 9% wide.
#[test]
fn prometheus_takes_native_histograms() {
    if !skip::has("prometheus") {
        return;
    }
    let registry = MetricsRegistry::new();
    let mut recorder = registry.recorder();
    for number in 0..1_000_i64 {
        recorder.exchange(&read(0, 1_000_000 * if number % 2 == 0 { 1 } else { 100 }));
    }
    recorder.publish();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = MetricsOptions { metrics: Some(address), ..MetricsOptions::default() };
    let endpoint = MetricsEndpoint::open(&options, &registry).expect("a free port").expect("an address was given");
    let prometheus = Prometheus::with(endpoint.address().port(), "", &["--enable-feature=native-histograms"]);
    let ask = |query: &str| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        prometheus.query(query, now.as_secs_f64(), "group").get("Read").copied()
    };
    let begun = Instant::now();
    while ask("histogram_count(smbscope_response_seconds)") != Some(1_000.0) {
        assert!(begun.elapsed() < Duration::from_secs(20), "no native histogram was scraped");
        sleep(Duration::from_millis(200));
    }
    for (quantile, seconds) in [(0.25, 0.001), (0.75, 0.1)] {
        let found = ask(&format!("histogram_quantile({quantile},smbscope_response_seconds)")).expect("a quantile");
        assert!((found / seconds - 1.0).abs() < 0.1, "{quantile}: {found}");
    }
}

/// htpasswd -bnBC 10 scraper fakepassword, as in exporter-toolkit.
const USERS: &str = "basic_auth_users: {scraper: $2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}";

#[test]
fn prometheus_scrapes_with_tls_and_a_password() {
    if !skip::has("prometheus") || !skip::has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=smbscope"]);
    openssl.args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "tls.key", "-out", "tls.crt"]);
    let made = openssl.current_dir(folder.path()).output().expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let config = folder.path().join("web.yml");
    std::fs::write(&config, format!("tls_server_config: {{cert_file: tls.crt, key_file: tls.key}}\n{USERS}\n"))
        .unwrap();
    let metrics = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let options = MetricsOptions { metrics, metrics_config: Some(config) };
    let endpoint = MetricsEndpoint::open(&options, &MetricsRegistry::new()).expect("a port").expect("an endpoint");
    let authority = folder.path().join("tls.crt").display().to_string();
    let scraped = |password: &str| {
        let user = format!("basic_auth: {{username: scraper, password: {password}}}");
        let how = format!(", scheme: https, {user}, tls_config: {{ca_file: {authority}}}");
        let prometheus = Prometheus::start(endpoint.address().port(), &how);
        let (begun, mut answer) = (Instant::now(), BTreeMap::new());
        while answer.is_empty() && begun.elapsed() < Duration::from_secs(15) {
            sleep(Duration::from_millis(200));
            answer = prometheus.query("up%2B1", unix_time(), "job");
        }
        answer.get("smbscope").copied()
    };
    // `up` is 1 after a successful scrape, else 0.
    assert_eq!([scraped("fakepassword"), scraped("wrong")], [Some(2.0), Some(1.0)]);
}

/// The counters of a real node_exporter, and queries of a real Prometheus.
#[test]
fn a_minute_has_the_counters_of_node_exporter_and_the_values_of_prometheus() {
    if !skip::has("prometheus") || !skip::has("prometheus-node-exporter") {
        return;
    }
    let port = free_port();
    let mut command = Command::new("prometheus-node-exporter");
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().expect("node_exporter starts");
    let exporter = Prometheus { process, port, _folder: tempfile::tempdir().expect("a folder") };
    let began = Instant::now();
    while exporter.get("/metrics").is_none() && began.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(100));
    }
    let prometheus = Prometheus::start(port, "");
    let queries = [
        "answer=vector(42)",
        "none=no_such_metric",
        "two=vector(1) or label_replace(vector(2), \"a\", \"b\", \"\", \"\")",
    ];
    let queries = queries.map(|text| text.parse().expect("a query"));
    let [node, url] = [exporter.port, prometheus.port].map(|port| format!("127.0.0.1:{port}"));
    let (node, url) = (node.parse().expect("a URL"), url.parse().expect("a URL"));
    let from = Timestamp((unix_time() * 1e9) as i64);
    let watched = WatchedServer::begin(Some(CounterSource::Exporter(&node)), Some(&url), &queries).expect("threads");
    let mut watched = watched.expect("something to read");
    sleep(Duration::from_secs(5));
    let minute = watched.minute(from, Timestamp((unix_time() * 1e9) as i64));
    let server = minute.server.expect("node_exporter answered");
    let cpu = &server.metrics["cpu"];
    assert!(cpu.unit == "percent" && (0.0..=100.0).contains(&cpu.mean) && cpu.max >= cpu.mean, "{cpu:?}");
    assert!(server.metrics["memory"].mean > 1e6, "{server:?}");
    let also: Vec<_> = minute.also.iter().map(|query| (query.name.as_str(), query.mean)).collect();
    assert_eq!(also, [("answer", 42.0)]);
    let mut warnings = watched.warnings();
    warnings.sort();
    assert!(warnings.len() == 2 && warnings[0].contains("--also none: the query returns no series"), "{warnings:?}");
    assert!(warnings[1].contains("--also two: the query returns 2 series"), "{warnings:?}");
}

/// Returns seconds since 1970.
fn unix_time() -> f64 {
    std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_secs_f64()
}

fn promtool(arguments: &[&str]) -> String {
    let said = Command::new("promtool").args(arguments).output().expect("promtool runs");
    let text = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "promtool {arguments:?}: {text}");
    text
}

#[test]
fn alerts_pass_their_tests() {
    if !skip::has("promtool") {
        return;
    }
    let rules = format!("{PACKAGING}/prometheus/smbscope.rules.yml");
    let checked = promtool(&["check", "rules", &rules]);
    assert!(checked.contains("9 rules found"), "{checked}");
    promtool(&["test", "rules", &format!("{PACKAGING}/prometheus/smbscope.test.yml")]);
}

/// promtool parses the queries as rules, with Grafana's variables replaced as Grafana does.
#[test]
fn queries_of_the_dashboard_are_valid() {
    if !skip::has("promtool") {
        return;
    }
    let text = std::fs::read_to_string(Path::new(PACKAGING).join("grafana/smbscope.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
    assert!(queries.len() > 15, "{queries:?}");
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    for (number, query) in queries.iter().enumerate() {
        let query = query.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$server", ".*");
        let query = query.replace("$share", ".*");
        assert!(!query.contains('$'), "{query}");
        rules += &format!("  - record: panel:{number}\n    expr: {}\n", serde_json::to_string(&query).unwrap());
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), rules).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()]);
}
