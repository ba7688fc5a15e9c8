//! HTTP server for scrapes: one thread, bounded connections and times, so that no scraper can hold up the run.

use super::access::{FollowedAccess, ScrapeAccess};
use super::figures::MetricsRegistry;
use crate::BenchError;
use crate::options::MetricsOptions;
use crate::watch::sandbox::enter_thread;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::{prometheus_protobuf, prometheus_text, text};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};

/// Scrapers connected at a time; others wait.
const SCRAPERS_MAX: usize = 16;
/// Time limit for a TLS handshake, and for a request's header.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Time limit for a whole connection, which carries one request.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
/// Pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Format of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpositionFormat {
    /// The only one with native histograms.
    Protobuf,
    OpenMetrics,
    PlainText,
}

impl ExpositionFormat {
    /// Returns the first accepted format: Prometheus lists them by preference, Protocol Buffers first if it takes native
    /// histograms.
    fn accepted(accept: &str) -> ExpositionFormat {
        let known = |format: &str| {
            let format = format.trim_start();
            if format.starts_with("application/vnd.google.protobuf")
                && format.contains("proto=io.prometheus.client.MetricFamily")
                && format.contains("encoding=delimited")
            {
                Some(ExpositionFormat::Protobuf)
            } else if format.starts_with("application/openmetrics-text") {
                Some(ExpositionFormat::OpenMetrics)
            } else {
                format.starts_with("text/plain").then_some(ExpositionFormat::PlainText)
            }
        };
        accept.split(',').find_map(known).unwrap_or(ExpositionFormat::PlainText)
    }

    fn media_type(self) -> &'static str {
        match self {
            ExpositionFormat::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            ExpositionFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ExpositionFormat::PlainText => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    fn encode(self, registry: &Registry) -> Option<Bytes> {
        let mut encoded = String::new();
        match self {
            ExpositionFormat::Protobuf => return Some(prometheus_protobuf::encode_to_vec(registry).ok()?.into()),
            ExpositionFormat::OpenMetrics => text::encode(&mut encoded, registry).ok()?,
            ExpositionFormat::PlainText => prometheus_text::encode(&mut encoded, registry).ok()?,
        }
        Some(encoded.into())
    }
}

/// Serves a registry at `/metrics` of an address until dropped, by HTTP or HTTPS.
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
    /// The address is in use, or not one of this machine; or the configuration file is wrong.
    pub fn open(options: &MetricsOptions, registry: &MetricsRegistry) -> Result<Option<MetricsEndpoint>, BenchError> {
        let Some(address) = options.metrics else { return Ok(None) };
        let access = FollowedAccess::open(options.metrics_config.as_deref())?;
        MetricsEndpoint::listen(address, registry, access).map(Some)
    }

    fn listen(
        address: SocketAddr,
        registry: &MetricsRegistry,
        access: FollowedAccess,
    ) -> Result<MetricsEndpoint, BenchError> {
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
        let scraped = ScrapeTarget { registry: scraped, access };
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

struct ScrapeTarget {
    registry: Registry,
    access: FollowedAccess,
}

fn serve(listener: TcpListener, target: Arc<ScrapeTarget>, stop: &Notify) {
    enter_thread();
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!(%error, "metrics cannot be served"),
    };
    runtime.block_on(async {
        let accepting = async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, target).await,
                Err(error) => tracing::warn!(%error, "metrics cannot be served"),
            }
        };
        tokio::select! {
            () = accepting => {}
            () = stop.notified() => {}
        }
    });
    // The end does not wait for the check of a password.
    runtime.shutdown_background();
}

async fn accept(listener: tokio::net::TcpListener, target: Arc<ScrapeTarget>) {
    let places = Arc::new(Semaphore::new(SCRAPERS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let target = Arc::clone(&target);
                tokio::spawn(async move {
                    let _ = timeout(CONNECTION_TIME, secure(stream, target)).await;
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

/// Answers a connection, with TLS if it is configured. One without a handshake is closed.
async fn secure(stream: TcpStream, target: Arc<ScrapeTarget>) {
    let access = target.access.current();
    let Some(tls) = &access.tls else { return answer(stream, target, &access).await };
    match timeout(HEADER_TIME, tls.accept(stream)).await {
        Ok(Ok(stream)) => answer(stream, target, &access).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS connection with a scraper"),
        Err(_) => tracing::debug!("a scraper did not finish the TLS handshake in time"),
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: S, target: Arc<ScrapeTarget>, access: &ScrapeAccess) {
    let service = service_fn(|request| {
        let target = Arc::clone(&target);
        async move { Ok::<_, Infallible>(respond(&request, &target, access).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).keep_alive(false);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: &Request<Incoming>, target: &ScrapeTarget, access: &ScrapeAccess) -> Response<Full<Bytes>> {
    let said = |status, format: ExpositionFormat, text: Bytes| {
        let mut response = Response::new(Full::new(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
        response
    };
    let refused = |status, text: &'static [u8]| said(status, ExpositionFormat::PlainText, Bytes::from_static(text));
    if let Some(passwords) = &access.passwords
        && !passwords.accept(request.headers().get(AUTHORIZATION)).await
    {
        let mut response = refused(StatusCode::UNAUTHORIZED, b"A user and a password are required.\n");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"smbscope\""));
        return response;
    }
    if request.uri().path() != "/metrics" {
        return refused(StatusCode::NOT_FOUND, b"The metrics are at /metrics.\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refused(StatusCode::METHOD_NOT_ALLOWED, b"Use GET.\n");
    }
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = ExpositionFormat::accepted(accept);
    match format.encode(&target.registry) {
        Some(encoded) => said(StatusCode::OK, format, encoded),
        None => refused(StatusCode::INTERNAL_SERVER_ERROR, b"Encoding failed.\n"),
    }
}
