use super::*;
use crate::exposition::{MetricsEndpoint, MetricsRegistry};
use crate::options::MetricsOptions;
use smbscope_testkit::skip;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The hash of `fakepassword` in exporter-toolkit's `web/handler.go`.
const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Makes a self-signed certificate for 127.0.0.1: `NAME.crt`, `NAME.key`. Returns false if OpenSSL is missing.
fn certify(folder: &TempDir, name: &str) -> bool {
    let path = |ending: &str| folder.path().join(format!("{name}.{ending}")).display().to_string();
    let mut arguments = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let (key, certificate) = (path("key"), path("crt"));
    arguments.extend(["-days", "2", "-subj", "/CN=smbscope", "-addext", "subjectAltName=IP:127.0.0.1"]);
    arguments.extend(["-keyout", &key, "-out", &certificate]);
    skip::has("openssl") && {
        let (made, said) = run("openssl", &arguments);
        assert!(made, "{said}");
        true
    }
}

fn configured(folder: &TempDir, text: &str) -> Result<MetricsEndpoint, BenchError> {
    let file = folder.path().join("web.yml");
    std::fs::write(&file, text).expect("it is written");
    let address = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let options = MetricsOptions { metrics: address, metrics_config: Some(file) };
    Ok(MetricsEndpoint::open(&options, &MetricsRegistry::new())?.expect("an address was given"))
}

/// Sends a request by HTTP with these credentials. Returns all that is answered.
fn scrape(endpoint: &MetricsEndpoint, credentials: &str) -> String {
    let mut stream = TcpStream::connect(endpoint.address()).expect("the endpoint listens");
    let header = format!("Authorization: basic {}\r\n", STANDARD.encode(credentials));
    let _ = stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{header}\r\n").as_bytes());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn what_is_not_supported_is_named_and_never_ignored() {
    let tls = "tls_server_config: {cert_file: a.crt, key_file: a.key}";
    let config = WebConfig::parse(&format!("{tls}\nbasic_auth_users:\n  ann: {HASH}\n")).expect("both");
    assert_eq!(config.tls, Some(("a.crt".into(), "a.key".into())));
    assert_eq!(config.users, Some([("ann".to_owned(), HASH.to_owned())].into()));
    let costly = HASH.replace("$10$", "$15$");
    for (text, expected) in [
        ("", "set tls_server_config or basic_auth_users"),
        ("{}", "set tls_server_config or basic_auth_users"),
        ("a", "the file must be a mapping of keys to values"),
        ("http_server_config: {http2: true}", "http_server_config is not supported: use tls_server_config and"),
        ("1: x", "a key that is not a string is not supported"),
        ("tls_server_config: {cert_file: a}", "tls_server_config needs cert_file and key_file"),
        ("tls_server_config: {cert_file: a, key_file: 7}", "tls_server_config: expected a file name"),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}",
            "tls_server_config.client_ca_file is not supported: use cert_file and key_file",
        ),
        ("basic_auth_users:", "basic_auth_users must be a mapping"),
        ("basic_auth_users: {}", "basic_auth_users names no user"),
        ("basic_auth_users: {ann: secret}", "ann has no bcrypt hash; `htpasswd -nB ann` makes one"),
        (&format!("basic_auth_users: {{ann: {costly}}}"), "the bcrypt cost of ann is 15; use 4 to 14"),
        (&format!("basic_auth_users: {{ann: {HASH}, ann: {HASH}}}"), "not YAML: duplicated key"),
        ("tls_server_config: {", "not YAML: "),
    ] {
        let error = WebConfig::parse(text).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn errors_of_the_start_are_one_line_with_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if !certify(&folder, "a") || !certify(&folder, "b") {
        return;
    }
    std::fs::write(folder.path().join("text"), "no PEM").expect("it is written");
    for (certificate, key, expected) in [
        ("none", "a.key", "cannot read "),
        ("a.crt", "none", "cannot read "),
        ("text", "a.key", "text has no certificate in PEM format"),
        ("a.key", "a.key", "a.key has no certificate in PEM format"),
        ("a.crt", "a.crt", "a.crt has no unencrypted private key in PEM format"),
        ("a.crt", "b.key", "b.key does not belong to the certificate "),
    ] {
        let text = format!("tls_server_config: {{cert_file: {certificate}, key_file: {key}}}");
        let error = configured(&folder, &text).expect_err("it is refused").to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{certificate} {key}: {error}");
    }
    let error = FollowedAccess::open(Some(&folder.path().join("none.yml"))).err().expect("it is missing").to_string();
    assert!(error.starts_with("cannot read ") && error.contains("none.yml"), "{error}");
}

/// curl has another TLS library. Sixteen scrapers that say nothing take all places until their handshake times out.
#[test]
fn a_scraper_needs_tls_and_a_password_and_gets_its_turn_after_silent_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if !skip::has("curl") || !certify(&folder, "a") {
        return;
    }
    let text = format!("tls_server_config: {{cert_file: a.crt, key_file: a.key}}\nbasic_auth_users: {{ann: {HASH}}}");
    let endpoint = configured(&folder, &text).expect("it is complete");
    let url = format!("https://{}/metrics", endpoint.address());
    let authority = folder.path().join("a.crt").display().to_string();
    let curl = |more: &[&str]| {
        run(
            "curl",
            &[&["-sS", "-i", "--max-time", "30", "--noproxy", "*", "--cacert", &authority, &url], more].concat(),
        )
    };
    let (done, said) = curl(&["-u", "ann:fakepassword"]);
    assert!(done && said.starts_with("HTTP/1.1 200") && said.contains("smbscope_build_info"), "{said}");
    for wrong in [&["-u", "ann:secret"][..], &["-u", "bob:fakepassword"], &["-H", "Authorization: Bearer x"], &[]] {
        let (_, said) = curl(wrong);
        assert!(said.starts_with("HTTP/1.1 401") && !said.contains("smbscope_build_info"), "{wrong:?}: {said}");
        assert!(said.contains("www-authenticate: Basic realm="), "{said}");
    }
    let plain = scrape(&endpoint, "ann:fakepassword");
    assert!(!plain.contains("HTTP/"), "{plain}");
    let silent: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(endpoint.address()).expect("a place")).collect();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    let (_, said) = curl(&["-u", "ann:fakepassword"]);
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert!(begun.elapsed() > Duration::from_secs(1), "the places were not taken");
    drop(silent);
}

#[test]
fn wrong_passwords_are_checked_one_by_one_and_do_not_delay_a_known_user() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let hash = bcrypt::hash("secret", 12).expect("a hash");
    let endpoint = configured(&folder, &format!("basic_auth_users: {{ann: {hash}}}")).expect("it is complete");
    let begun = Instant::now();
    assert!(scrape(&endpoint, "ann:secret").starts_with("HTTP/1.1 200"));
    let one_check = begun.elapsed();
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (endpoint, refused) = (&endpoint, &refused);
            scope.spawn(move || {
                assert!(scrape(endpoint, &format!("ann:{number}")).starts_with("HTTP/1.1 401"));
                refused.fetch_add(1, Ordering::Relaxed);
            });
        }
        std::thread::sleep(one_check / 2);
        assert!(scrape(&endpoint, "ann:secret").starts_with("HTTP/1.1 200"));
        assert!(refused.load(Ordering::Relaxed) < 4, "the known user waited for the checks");
    });
    assert_eq!(refused.into_inner(), 8);
}

#[test]
fn the_end_does_not_wait_for_the_check_of_a_password() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The parts of another hash: the cost alone makes the check take a second or longer.
    let hash = HASH.replace("$10$", "$14$");
    let endpoint = configured(&folder, &format!("basic_auth_users: {{ann: {hash}}}")).expect("it is complete");
    let mut stream = TcpStream::connect(endpoint.address()).expect("the endpoint listens");
    let header = format!("Authorization: Basic {}\r\n", STANDARD.encode("ann:x"));
    stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{header}\r\n").as_bytes()).expect("it is sent");
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    drop(endpoint);
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

/// The hash of another password takes effect with the next scrape. A mistake changes nothing until it is mended.
#[test]
fn changed_files_are_read_again_and_a_mistake_in_them_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let hash = |password: &str| bcrypt::hash(password, 4).expect("a hash");
    let configure = |text: &str| std::fs::write(folder.path().join("web.yml"), text).expect("it is written");
    let endpoint = configured(&folder, &format!("basic_auth_users: {{ann: {}}}", hash("old"))).expect("it is complete");
    let accepts = |password: &str| scrape(&endpoint, &format!("ann:{password}")).starts_with("HTTP/1.1 200");
    assert!(accepts("old") && !accepts("new"));
    // Another length, because the file system's clock may be coarse.
    configure(&format!("basic_auth_users: {{ann: {}, bob: {HASH}}}", hash("new")));
    assert!(accepts("new") && !accepts("old"));
    configure("basic_auth_users: {");
    assert!(accepts("new"));
    configure(&format!("basic_auth_users: {{ann: {}}}", hash("old")));
    assert!(accepts("old") && !accepts("new"));
}

/// A certificate is replaced before its key, as by a renewal.
#[test]
fn a_renewed_certificate_needs_no_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if !skip::has("curl") || !certify(&folder, "a") || !certify(&folder, "b") {
        return;
    }
    let endpoint = configured(&folder, "tls_server_config: {cert_file: a.crt, key_file: a.key}").expect("complete");
    let url = format!("https://{}/metrics", endpoint.address());
    let trusts = |name: &str| {
        let authority = folder.path().join(name).display().to_string();
        run("curl", &["-sS", "--max-time", "30", "--noproxy", "*", "--cacert", &authority, &url]).0
    };
    let copy = |from: &str, to: &str| {
        std::fs::copy(folder.path().join(from), folder.path().join(to)).expect("it is copied");
    };
    copy("a.crt", "old.crt");
    assert!(trusts("old.crt") && !trusts("b.crt"));
    copy("b.crt", "a.crt");
    assert!(trusts("old.crt"), "without the new key, the old certificate stays");
    copy("b.key", "a.key");
    assert!(trusts("b.crt") && !trusts("old.crt"));
}

#[test]
fn the_sandbox_knows_where_renewed_files_appear() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().canonicalize().expect("it exists").join(name);
    for name in ["archive", "live"] {
        std::fs::create_dir(path(name)).expect("it is made");
    }
    std::fs::write(path("archive/1.crt"), "").expect("it is written");
    #[cfg(unix)]
    std::os::unix::fs::symlink("../archive/1.crt", path("live/a.crt")).expect("it is made");
    let text = "tls_server_config: {cert_file: live/a.crt, key_file: live/a.key}";
    std::fs::write(path("web.yml"), text).expect("it is written");
    let found = directories_of(&path("web.yml"));
    assert!(["archive", "live", ""].iter().all(|name| found.contains(&path(name).components().collect())), "{found:?}");
}
