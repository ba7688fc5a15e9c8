//! Compares intervals, probabilities, block lengths and adjustments with SciPy and NumPy, by
//! `scripts/check_statistics.py`.

use serde_json::{Value, json};
use smbscope_stats::Random;
use smbscope_stats::replication::{
    BaselineRatio, ReplicationSettings, benjamini_hochberg, block_length, holm, paired, unpaired,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs whose logarithms are skewed, like response times.
fn runs(random: &mut Random, count: usize, level: f64) -> Vec<f64> {
    (0..count).map(|_| level * (0.1 * random.exponential()).exp()).collect()
}

fn of_figure(figure: &BaselineRatio) -> Value {
    json!({ "ratio": figure.ratio, "interval": figure.interval, "p_value": figure.p_value })
}

fn cases() -> Value {
    let mut random = Random::new(&[21]);
    let settings = ReplicationSettings { resamples: 50_000, ..ReplicationSettings::default() };
    let mut figures = Vec::new();
    for (bases, others) in [(5, 5), (6, 6), (12, 12), (40, 40), (5, 9), (20, 7)] {
        let (base, other) = (runs(&mut random, bases, 2.0), runs(&mut random, others, 2.1));
        let figure = of_figure(&unpaired(&base, &other, &settings));
        figures.push(json!({ "paired": false, "base": base, "other": other, "found": figure }));
        if bases == others {
            let blocks: Vec<(f64, f64)> = base.iter().copied().zip(other.iter().copied()).collect();
            let figure = of_figure(&paired(&blocks, &settings));
            figures.push(json!({ "paired": true, "base": base, "other": other, "found": figure }));
        }
    }
    let mut series = Vec::new();
    for memory in [0.0, 0.4, 0.7, 0.9] {
        let mut state = 0.0;
        let values: Vec<f64> = (0..400)
            .map(|_| {
                state = memory * state + random.exponential();
                state
            })
            .collect();
        series.push(json!({ "found": block_length(&values), "values": values }));
    }
    let p_values: Vec<Option<f64>> = (0..30).map(|_| Some(random.unit().powi(3))).collect();
    let (holm, found) = (holm(&p_values), benjamini_hochberg(&p_values));
    json!({ "figures": figures, "series": series, "p_values": p_values, "holm": holm, "benjamini_hochberg": found })
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn scipy_finds_the_same() {
    let python = [repository().join(".venv/bin/python"), PathBuf::from("python3")].into_iter().find(|python| {
        let check = Command::new(python).args(["-c", "import scipy.stats"]).stderr(Stdio::null()).status();
        check.is_ok_and(|status| status.success())
    });
    let Some(python) = python else {
        smbscope_testkit::skip::missing("no Python has SciPy; scripts/setup.sh installs it into .venv");
        return;
    };
    let script = repository().join("scripts/check_statistics.py");
    let mut child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(cases().to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("compared 10 intervals, 4 block lengths, 60 adjusted probabilities"), "{said}");
}
