//! HTTP server for scrapes: one thread, bounded connections and times, so that no scraper can hold up the run.

use super::figures::MetricsRegistry;
use crate::BenchError;
use crate::options::MetricsOptions;
use crate::watch::sandbox::enter_thread;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

/// Scrapers connected at a time; others wait.
const SCRAPERS_MAX: usize = 16;
/// Time limit for a request's header.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Time limit for a whole connection, which carries one request.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
/// Pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves a registry at `http://ADDRESS/metrics` until dropped.
#[derive(Debug)]
pub struct MetricsEndpoint {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsEndpoint {
    /// Listens at the address of the options. Returns `None` if they have none.
    ///
    /// # Errors
    /// The address is in use, or not one of this machine.
    pub fn open(options: &MetricsOptions, registry: &MetricsRegistry) -> Result<Option<MetricsEndpoint>, BenchError> {
        options.metrics.map(|address| MetricsEndpoint::listen(address, registry)).transpose()
    }

    fn listen(address: SocketAddr, registry: &MetricsRegistry) -> Result<MetricsEndpoint, BenchError> {
        let refused = |error: std::io::Error| {
            BenchError::Unavailable(format!(
                "cannot serve metrics at {address}: {error}: choose another address or port with --metrics"
            ))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let mut scraped = Registry::default();
        scraped.register_collector(Box::new(registry.clone()));
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || serve(listener, Arc::new(scraped), &stopped))
            .map_err(BenchError::system("thread for the metrics"))?;
        tracing::info!(%address, "metrics are served");
        Ok(MetricsEndpoint { address, stop, thread: Some(thread) })
    }

    /// Returns the address that it listens at, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: TcpListener, registry: Arc<Registry>, stop: &Notify) {
    enter_thread();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!(%error, "metrics cannot be served"),
    };
    runtime.block_on(async {
        let accepting = async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, registry).await,
                Err(error) => tracing::warn!(%error, "metrics cannot be served"),
            }
        };
        tokio::select! {
            () = accepting => {}
            () = stop.notified() => {}
        }
    });
}

async fn accept(listener: tokio::net::TcpListener, registry: Arc<Registry>) {
    let places = Arc::new(Semaphore::new(SCRAPERS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let registry = Arc::clone(&registry);
                tokio::spawn(async move {
                    let _ = timeout(CONNECTION_TIME, answer(stream, registry)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a scraper cannot connect");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, registry: Arc<Registry>) {
    let service = service_fn(move |request| {
        let response = respond(&request, &registry);
        async { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).keep_alive(false);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn respond(request: &Request<Incoming>, registry: &Registry) -> Response<String> {
    let said = |status, kind, text| {
        let mut response = Response::new(text);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    if request.uri().path() != "/metrics" {
        return said(StatusCode::NOT_FOUND, PROMETHEUS_TEXT, "The metrics are at /metrics.\n".to_owned());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return said(StatusCode::METHOD_NOT_ALLOWED, PROMETHEUS_TEXT, "Use GET.\n".to_owned());
    }
    let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let mut encoded = String::new();
    let (kind, done) = if accepts.contains("application/openmetrics-text") {
        (OPEN_METRICS, text::encode(&mut encoded, registry))
    } else {
        (PROMETHEUS_TEXT, prometheus_text::encode(&mut encoded, registry))
    };
    match done {
        Ok(()) => said(StatusCode::OK, kind, encoded),
        Err(_) => said(StatusCode::INTERNAL_SERVER_ERROR, PROMETHEUS_TEXT, "Encoding failed.\n".to_owned()),
    }
}
