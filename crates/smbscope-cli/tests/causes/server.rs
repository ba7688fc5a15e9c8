//! Causes on the server: storage, limits, locks.

use crate::causes::scene::{on, plain, provoked};
use smbscope_testkit::skip;

/// Reads 64 KiB at random offsets of a 16 MiB file with this many concurrent users.
fn random_reads(users: &str, time: &str) -> String {
    format!(
        r#"cat >"$CAPTURE.toml" <<'END'
name = "scene"
[files]
count = 1
size = "16MiB"
[start]
steps = [{{ do = "open", file = "random", access = "read", as = "data" }}]
[[operation]]
name = "read"
weight = 9
steps = [{{ do = "read", of = "data", offset = "random", length = "64KiB" }}]
[[operation]]
name = "query"
weight = 1
steps = [{{ do = "query_open", of = "data", info = "basic" }}]
END
        USERS={users}; TIME=1s; load --workload "$CAPTURE.toml"
        TIME={time}; captured load --workload "$CAPTURE.toml""#
    )
}

#[test]
fn slow_storage() {
    let reads = random_reads("4", "6s");
    provoked("slow-storage", &on(&["--storage-latency", "40ms"], &reads), &plain(&reads));
}

/// Limits clients to 16 credits (one per 64 KiB) instead of Samba's default of 8,192.
#[test]
fn credit_starved() {
    let load = "load --workload blocksweep --set size=32MiB --set block=256KiB --set depth=16 --passes 1";
    let sweep = format!("{load}; captured {load}");
    let limited = ["--smb-conf", "smb2 max credits = 16", "--delay", "5ms"];
    provoked("credit-limited", &on(&limited, &sweep), &on(&limited[2..], &sweep));
}

/// Two smbtorture clients that break each other's oplocks, against one client with uncontested leases.
#[test]
fn break_storm() {
    let alone = "TIME=2s; captured load --workload open-read-close --leases";
    let tests = [2, 3, 4, 5, 6, 7, 9, 10, 13, 14, 15, 16].map(|n| format!("smb2.oplock.batch{n}")).join(" ");
    let Some(torture) = torture(&tests) else { return };
    provoked("break-storm", &plain(&torture), &plain(alone));
}

/// Runs a test of smbtorture on the share, whether or not it passes. Skips the test and returns `None` without
/// smbtorture.
fn torture(test: &str) -> Option<String> {
    skip::has("smbtorture").then(|| {
        format!(
            r#"torture() {{ smbtorture "//$SMBSCOPE_LAB_HOST/share" -p "$SMBSCOPE_LAB_PORT" -s "$SMBSCOPE_LAB_CONF" \
                -U "$SMBSCOPE_LAB_USER%$SMBSCOPE_PASSWORD" {test}; true; }}
            captured torture"#
        )
    })
}

/// The lease holder is stopped and does not answer the lease break. Samba waits 35 s for it.
#[test]
fn break_timeout() {
    let write = |stopped: &str| {
        format!(
            r#"TIME=1s; load --workload write
            "$SMBSCOPE" bench --quiet --plain --leases --warmup 0s --duration 60s --users 1 --workload write \
                "$SMBSCOPE_LAB_URL" >/dev/null 2>&1 & holder=$!
            sleep 3; {stopped}
            held=$(cd "$HERE" && find . -type f -size +1M | head -1)
            OPTIONS="-t 60"; captured client "put /etc/hostname $(echo "$held" | tr / '\\')"
            kill -CONT $holder; kill -INT $holder; wait $holder; true"#
        )
    };
    let (stopped, awake) = (write("kill -STOP $holder"), write("true"));
    provoked("break-timeout", &plain(&stopped), &plain(&awake));
}

/// smbclient watches a directory: one where a file is created every 20 ms, and a quiet one.
#[test]
fn notify_storm() {
    let watch = |files: u32| {
        format!(
            r#"files 1 watched f
            watch() {{
                timeout 6 $CLIENT "//$SMBSCOPE_LAB_HOST/share" -c 'notify watched' & watcher=$!
                sleep 1
                for n in $(seq {files}); do touch "$HERE/watched/new$n"; sleep 0.02; done
                wait $watcher; true
            }}
            captured watch"#
        )
    };
    let (busy, quiet) = (watch(150), watch(1));
    provoked("notify-storm", &plain(&busy), &plain(&quiet));
}

/// Writes one file at full speed, and another while the server's processes are stopped for most of the time. Between
/// the two, the client waits until the throttling starts.
#[test]
fn fast_then_slow() {
    let put = |slow: &str| {
        format!(
            r#"head -c 80000000 /dev/zero >"$CAPTURE.large"; head -c 40000000 /dev/zero >"$CAPTURE.small"
            echo "touch '$CAPTURE.written'; until [ -e '$CAPTURE.slow' ]; do sleep 0.01; done" >"$CAPTURE.sh"
            printf "put $CAPTURE.large first\n!sh $CAPTURE.sh\nput $CAPTURE.small second\n" >"$CAPTURE.commands"
            throttled() {{
                $CLIENT "//$SMBSCOPE_LAB_HOST/share" <"$CAPTURE.commands" & client=$!
                until [ -e "$CAPTURE.written" ]; do kill -0 $client || return; sleep 0.01; done
                touch "$CAPTURE.slow"
                {slow}
                wait $client
            }}
            captured throttled; rm "$CAPTURE.large" "$CAPTURE.small""#
        )
    };
    let slow = r#"smbd=$(cat "$SMBSCOPE_LAB_FOLDER"/pid/smbd*.pid 2>/dev/null || cat "$SMBSCOPE_LAB_FOLDER"/smbd.pid)
                while kill -0 $client; do
                    kill -STOP $(ps -o pid= --ppid $smbd); sleep 0.8; kill -CONT $(ps -o pid= --ppid $smbd); sleep 0.02
                done"#;
    let (slow, steady) = (put(slow), put("true"));
    provoked("fast-then-slow", &on(&["--delay", "1ms"], &slow), &on(&["--delay", "1ms"], &steady));
}

/// Limits the share to one client at a time, against no limit.
#[test]
fn refusals() {
    let two = r#"both() {
            (echo ls; sleep 3) | $CLIENT "//$SMBSCOPE_LAB_HOST/share" & holder=$!
            sleep 1; client ls || true; client ls || true; wait $holder
        }
        captured both"#;
    provoked("refusals", &on(&["--smb-conf", "[share] max connections = 1"], two), &plain(two));
}
