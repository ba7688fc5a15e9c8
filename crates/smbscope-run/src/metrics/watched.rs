//! Counters of the server, and values of Prometheus queries, minute by minute for `watch`.

use super::counters::{ANSWER_MAX, PATIENCE, http_url};
use super::{Exporter, Metrics, SambaReader, machine};
use crate::BenchError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smbscope_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use ureq::Agent;
use url::Url;

/// Interval between two evaluations of the queries. Prometheus itself scrapes every 15 seconds or less often.
const QUERY_EVERY: Duration = Duration::from_secs(10);
/// Values of queries kept until their minute ends; the oldest are dropped first.
const QUERY_VALUES_MAX: usize = 10_000;

/// Base address of a Prometheus: `http://prometheus:9090`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusUrl(Url);

impl FromStr for PrometheusUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<PrometheusUrl, String> {
        http_url(text, "expected http://host:port").map(PrometheusUrl)
    }
}

/// Query whose value is reported under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedQuery {
    pub name: String,
    pub query: String,
}

impl FromStr for NamedQuery {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedQuery, String> {
        match text.split_once('=').map(|(name, query)| (name.trim(), query.trim())) {
            Some((name, query)) if !name.is_empty() && !query.is_empty() => {
                Ok(NamedQuery { name: name.to_owned(), query: query.to_owned() })
            }
            _ => Err("expected NAME=QUERY: latency=max(array_latency_seconds)".to_owned()),
        }
    }
}

/// Figures of the server in a minute.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServerMinute {
    /// Null without a source, and if it gave no values in the minute.
    pub server: Option<ServerFigures>,
    /// Values of the queries that had any.
    pub also: Vec<QueryFigure>,
}

/// Figures of a server in a minute, by the name of the metric, as in the documents of `bench`.
#[derive(Debug, Clone, Serialize)]
pub struct ServerFigures {
    /// Address of the exporter, or `this machine`.
    pub source: String,
    #[serde(flatten)]
    pub metrics: BTreeMap<String, ServerFigure>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ServerFigure {
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s` or `count`.
    pub unit: String,
    /// Mean of the samples, one per second.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
}

/// Values of a query in a minute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryFigure {
    pub name: String,
    pub mean: f64,
    pub max: f64,
    /// Number of evaluations with a value.
    pub count: u64,
}

/// Source of a watched server's counters.
#[derive(Debug)]
pub enum CounterSource<'a> {
    Exporter(&'a Exporter),
    ThisMachine { samba: Option<SambaReader> },
}

/// Samples a server and evaluates queries until dropped.
pub struct WatchedServer {
    metrics: Option<Metrics>,
    queries: Option<QueryFollower>,
    /// Sources whose problem has been reported.
    warned: BTreeSet<String>,
}

impl WatchedServer {
    /// Begins to read counters, and to evaluate queries if there is a Prometheus. Returns `None` if there is nothing to
    /// read.
    ///
    /// # Errors
    /// The system has no thread left, or no counters that can be read.
    pub fn begin(
        counters: Option<CounterSource<'_>>,
        prometheus: Option<&PrometheusUrl>,
        queries: &[NamedQuery],
    ) -> Result<Option<WatchedServer>, BenchError> {
        if matches!(counters, Some(CounterSource::ThisMachine { .. })) && !machine::HAS_COUNTERS {
            let text = "this system's counters can't be read: leave out --machine-metrics";
            return Err(BenchError::Unavailable(text.to_owned()));
        }
        let metrics = counters.map(|source| match source {
            CounterSource::Exporter(exporter) => Metrics::of_exporter(exporter),
            CounterSource::ThisMachine { samba } => Metrics::of_this_machine(samba),
        });
        let queries = prometheus.filter(|_| !queries.is_empty()).map(|url| QueryFollower::begin(url, queries));
        let queries = queries.transpose()?;
        let is_used = metrics.is_some() || queries.is_some();
        Ok(is_used.then(|| WatchedServer { metrics, queries, warned: BTreeSet::new() }))
    }

    /// Returns the figures after `from`, up to `to`, and forgets these and older ones.
    pub fn minute(&mut self, from: Timestamp, to: Timestamp) -> ServerMinute {
        let length = Duration::from_nanos(u64::try_from((to - from).0).unwrap_or(0));
        let server = self.metrics.as_ref().and_then(|metrics| {
            let load = metrics.within(from, length);
            metrics.forget(to);
            let load = load?;
            let figures = load.metrics.into_iter().map(|series| {
                let figure = ServerFigure { unit: series.unit, mean: series.mean, max: series.max };
                (series.metric, figure)
            });
            Some(ServerFigures { source: load.source, metrics: figures.collect() })
        });
        let also = self.queries.as_ref().map_or_else(Vec::new, |queries| queries.take(from, to));
        ServerMinute { server, also }
    }

    /// Returns problems that have not been reported, at most one for the exporter and one for each query.
    pub fn warnings(&mut self) -> Vec<String> {
        let mut troubles = Vec::new();
        let trouble = self.metrics.as_ref().and_then(Metrics::trouble);
        troubles.extend(trouble.map(|why| ("the server's counters".to_owned(), why)));
        if let Some(queries) = &self.queries {
            troubles.extend(queries.troubles());
        }
        troubles.retain(|(source, _)| self.warned.insert(source.clone()));
        troubles.into_iter().map(|(source, why)| format!("{source}: {why}")).collect()
    }
}

/// Thread that evaluates queries.
struct QueryFollower {
    queries: Vec<NamedQuery>,
    seen: Arc<Mutex<QueryValues>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Default)]
struct QueryValues {
    /// Time of the evaluation, index of the query, value.
    values: Vec<(Timestamp, usize, f64)>,
    /// First problem of each query, by its index.
    troubles: BTreeMap<usize, String>,
}

impl QueryFollower {
    fn begin(prometheus: &PrometheusUrl, queries: &[NamedQuery]) -> Result<QueryFollower, BenchError> {
        let seen = Arc::<Mutex<QueryValues>>::default();
        let (stop, stopped) = mpsc::channel();
        let client = QueryClient::new(prometheus);
        let (asked, noted) = (queries.to_vec(), Arc::clone(&seen));
        let follow = move || follow(&client, &asked, &noted, &stopped);
        let thread = thread::Builder::new().name("queries".to_owned()).spawn(follow);
        let thread = thread.map_err(BenchError::system("thread for the queries of --also"))?;
        Ok(QueryFollower { queries: queries.to_vec(), seen, thread: Some((stop, thread)) })
    }

    fn take(&self, from: Timestamp, to: Timestamp) -> Vec<QueryFigure> {
        let mut seen = lock(&self.seen);
        let of_minute = |index: usize| {
            let values = seen.values.iter().filter(move |(time, of, _)| *of == index && *time > from && *time <= to);
            let values: Vec<f64> = values.map(|(.., value)| *value).collect();
            let max = values.iter().copied().reduce(f64::max)?;
            Some((values.iter().sum::<f64>() / values.len() as f64, max, values.len() as u64))
        };
        let figures = self.queries.iter().enumerate().filter_map(|(index, query)| {
            let (mean, max, count) = of_minute(index)?;
            Some(QueryFigure { name: query.name.clone(), mean, max, count })
        });
        let figures = figures.collect();
        seen.values.retain(|(time, ..)| *time > to);
        figures
    }

    fn troubles(&self) -> Vec<(String, String)> {
        let seen = lock(&self.seen);
        let named = |(index, why): (&usize, &String)| (format!("--also {}", self.queries[*index].name), why.clone());
        seen.troubles.iter().map(named).collect()
    }
}

impl Drop for QueryFollower {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn lock(seen: &Mutex<QueryValues>) -> MutexGuard<'_, QueryValues> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn follow(client: &QueryClient, queries: &[NamedQuery], seen: &Mutex<QueryValues>, stopped: &mpsc::Receiver<()>) {
    let mut due = Instant::now();
    loop {
        for (index, query) in queries.iter().enumerate() {
            let evaluated = client.evaluate(&query.query);
            let mut seen = lock(seen);
            match evaluated {
                Ok(value) if value.is_finite() => {
                    if seen.values.len() == QUERY_VALUES_MAX {
                        seen.values.remove(0);
                    }
                    seen.values.push((crate::environment::now(), index, value));
                }
                Ok(_) => {}
                Err(why) => _ = seen.troubles.entry(index).or_insert(why),
            }
            drop(seen);
            if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
        }
        due = (due + QUERY_EVERY).max(Instant::now());
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Client of the HTTP API of Prometheus (`/api/v1/query`).
struct QueryClient {
    url: Url,
    agent: Agent,
}

/// Answer of `/api/v1/query`, as far as it is read.
#[derive(Deserialize)]
struct QueryAnswer {
    data: Option<QueryData>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryData {
    result_type: String,
    result: Value,
}

impl QueryClient {
    fn new(prometheus: &PrometheusUrl) -> QueryClient {
        let mut url = prometheus.0.clone();
        url.set_path(&format!("{}/api/v1/query", url.path().trim_end_matches('/')));
        // The body of an error names the mistake in the query.
        let config = Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        QueryClient { url, agent: Agent::new_with_config(config.build()) }
    }

    /// Evaluates a query now.
    fn evaluate(&self, query: &str) -> Result<f64, String> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("query", query);
        let unreadable = |error: ureq::Error| format!("{} can't be read: {error}", self.url);
        let mut response = self.agent.get(url.as_str()).call().map_err(unreadable)?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(ANSWER_MAX).read_to_string().map_err(unreadable)?;
        let not_prometheus = || format!("{} answers with status {status}, and not as a Prometheus", self.url);
        let answer: QueryAnswer = serde_json::from_str(&text).map_err(|_| not_prometheus())?;
        single(answer).map_err(|why| why.unwrap_or_else(not_prometheus))
    }
}

/// Returns the only value of an answer. Fails without a text if it is not an answer to a query.
fn single(answer: QueryAnswer) -> Result<f64, Option<String>> {
    if let Some(error) = answer.error {
        return Err(Some(error));
    }
    let QueryData { result_type, result } = answer.data.ok_or(None)?;
    // A value is a pair: the time in seconds, and the number as text.
    let value = match (result_type.as_str(), result.as_array().map(Vec::as_slice)) {
        ("scalar", _) => &result[1],
        ("vector", Some([])) => {
            return Err(Some("the query returns no series: check the names of the metric and its labels".to_owned()));
        }
        ("vector", Some([series])) => &series["value"][1],
        ("vector", Some(series)) => {
            let count = series.len();
            return Err(Some(format!(
                "the query returns {count} series: select one, or aggregate them with sum(…), avg(…) or max(…)"
            )));
        }
        _ => &Value::Null,
    };
    let number = value.as_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Some("the query must return a number: an instant vector or a scalar".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// Answers of Prometheus 2.42 to `vector(7)`, two series, no series, `scalar(vector(3))`, NaN, a range and a mistake.
    fn answer(query: &str) -> (&'static str, &'static str) {
        const OK: &str = "200 OK";
        let one = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1.5,"7"]}]}}"#;
        let two = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1.5,"1"]},{"metric":{},"value":[1.5,"2"]}]}}"#;
        match query {
            "one" => (OK, one),
            "two" => (OK, two),
            "none" => (OK, r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#),
            "scalar" => (OK, r#"{"status":"success","data":{"resultType":"scalar","result":[1.5,"3"]}}"#),
            "nan" => (OK, r#"{"status":"success","data":{"resultType":"scalar","result":[1.5,"NaN"]}}"#),
            "range" => (
                OK,
                r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}}"#,
            ),
            "wrong" => ("400 Bad Request", r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#),
            _ => (OK, "<html>"),
        }
    }

    fn prometheus() -> PrometheusUrl {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client");
                let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                let query = first.split(['=', ' ']).nth(2).unwrap_or_default().to_owned();
                while lines.next().is_some_and(|line| !line.is_empty()) {}
                let (status, body) = answer(if first.starts_with("GET /p/api/v1/query?") { &query } else { "" });
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all((head + body).as_bytes());
            }
        });
        format!("{address}/p/").parse().expect("it is a URL")
    }

    #[test]
    fn a_query_must_return_one_number() {
        let client = QueryClient::new(&prometheus());
        assert_eq!([client.evaluate("one"), client.evaluate("scalar")], [Ok(7.0), Ok(3.0)]);
        assert!(client.evaluate("nan").is_ok_and(f64::is_nan));
        for (query, expected) in [
            ("two", "the query returns 2 series: select one, or aggregate them"),
            ("none", "the query returns no series"),
            ("range", "the query must return a number"),
            ("wrong", "parse error"),
            ("else", "answers with status 200 OK, and not as a Prometheus"),
        ] {
            let error = client.evaluate(query).unwrap_err();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }

    /// No program listens at port 1.
    #[test]
    fn each_problem_is_told_once_and_values_count_in_their_minute() {
        let queries: Vec<NamedQuery> = ["a=one", "b=two", "c=nan"].map(|text| text.parse().expect("a query")).into();
        let exporter: Exporter = "127.0.0.1:1".parse().expect("a URL");
        let begun = crate::environment::now();
        let watched = WatchedServer::begin(Some(CounterSource::Exporter(&exporter)), Some(&prometheus()), &queries)
            .expect("threads");
        let mut watched = watched.expect("something to read");
        let (mut told, end) = (Vec::new(), Instant::now() + Duration::from_secs(30));
        while told.len() < 2 && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
            told.extend(watched.warnings());
        }
        told.sort();
        assert!(told[0].starts_with("--also b: the query returns 2 series"), "{told:?}");
        assert!(told[1].starts_with("the server's counters: http://127.0.0.1:1/metrics can't be read"), "{told:?}");
        assert!(watched.warnings().is_empty());
        let minute = watched.minute(begun, crate::environment::now());
        assert!(minute.server.is_none());
        assert_eq!(minute.also, [QueryFigure { name: "a".to_owned(), mean: 7.0, max: 7.0, count: 1 }]);
        // It is forgotten.
        assert!(watched.minute(begun, crate::environment::now()).also.is_empty());
        assert!(WatchedServer::begin(None, Some(&prometheus()), &[]).is_ok_and(|watched| watched.is_none()));
    }

    #[test]
    fn a_query_may_contain_equals_signs_and_needs_a_name() {
        let query = r#"max(latency{array="a"})"#;
        let parsed: NamedQuery = format!("latency = {query}").parse().expect("a query");
        assert_eq!((parsed.name.as_str(), parsed.query.as_str()), ("latency", query));
        assert!(["", "latency", "=up", "latency="].iter().all(|text| text.parse::<NamedQuery>().is_err()));
    }
}
