//! Damages captures at random and compares the analysis of each copy with the undamaged capture's. Prints a table by
//! mode. A false pair is an error and is printed in full.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example damage -- --runs 10000 tests/data/own
//! ```
//!
//! A run is determined by its seed and capture: `--seed 4711 --runs 1 X.pcap` repeats the run with seed 4711. The
//! columns are explained in [`smbscope_testkit::judge`]. The exit status is 1 if anything is false or mistimed.

use anyhow::{Context, bail};
use clap::Parser;
use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::tcp::FlowTable;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::{Command, Coverage, Exchange, ExchangeOutcome, Quality, UntimedShare};
use smbscope_testkit::damage::{Combination, Loss, RandomDamage, without};
use smbscope_testkit::judge::{Counts, Judgement, Truth};
use smbscope_testkit::recording::{Kept, Nonces, Recording, TWIN_KEY};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seed for the contents of encrypted twins.
const SEAL_SEED: u64 = 1;

/// Damage captures at random and compare their analysis with the originals'.
#[derive(Debug, Parser)]
struct Arguments {
    /// Capture files, or directories of them
    #[arg(required = true)]
    captures: Vec<PathBuf>,
    /// Total number of damaged copies, divided evenly among the captures
    #[arg(long, default_value_t = 10_000)]
    runs: u64,
    /// Stop after this many seconds, even if runs remain
    #[arg(long)]
    seconds: Option<f64>,
    /// First seed; each seed is used for every capture before the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads [default: one per processor]
    #[arg(long)]
    threads: Option<usize>,
    /// Use only this kind of loss, e.g. "bursts" or "one direction"
    #[arg(long)]
    loss: Option<String>,
    /// Use only this combination: "alone", "duplicates", "reordering" or "snap length"
    #[arg(long)]
    combination: Option<String>,
    /// Lose this share of the packets in every run, in percent, instead of 0.5 to 80%
    #[arg(long)]
    percent: Option<f64>,
    /// Instead of random damage, remove each run of N consecutive packets in turn
    #[arg(long, value_name = "N")]
    each: Option<usize>,
    /// Write copies with a false pair or, with `--coverage`, an inaccurate estimate to this directory
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Also print missing exchanges and, with `--coverage`, inaccurate estimates
    #[arg(long)]
    missing: bool,
    /// Also print a table by capture
    #[arg(long)]
    by_capture: bool,
    /// Compare the true share of untimed commands with the estimate in the report
    #[arg(long)]
    coverage: bool,
    /// Also damage encrypted twins of readable SMB2 captures, whose contents remain known
    #[arg(long)]
    sealed: bool,
    /// Analyse these twins with their key
    #[arg(long, requires = "sealed")]
    keys: bool,
}

struct Subject {
    recording: Recording,
    truth: Truth,
    encrypted: bool,
    decryption: Option<TwinDecryption>,
}

/// Key of a twin, and the readable capture, which judges it as soon as it is decrypted.
struct TwinDecryption {
    ring: Arc<KeyRing>,
    readable: Recording,
}

/// Table row: capture is encrypted, loss, combination.
type Row = (bool, Loss, Combination);

#[derive(Default)]
struct Totals {
    by_row: BTreeMap<Row, (u64, Counts)>,
    by_capture: BTreeMap<usize, (u64, Counts)>,
    /// Accuracy of the estimated share of untimed commands, by capture and kind of loss.
    accuracy: BTreeMap<(usize, Loss), EstimateAccuracy>,
}

/// Accuracy of reported shares of untimed commands.
#[derive(Debug, Clone, Copy, Default)]
struct EstimateAccuracy {
    runs: u64,
    /// Estimates within 10% or 0.1 percentage points of the truth, or ranges that contain it.
    well: u64,
    /// Good estimates that are a single figure.
    figures: u64,
    truth: f64,
    said: f64,
    width: f64,
}

impl EstimateAccuracy {
    /// Adds an estimate. The truth lies between the share that damage left untimed and the share of all untimed
    /// commands, because the number of damaged ones among the never measured is unknowable. Returns true if the
    /// estimate is good.
    fn add(&mut self, [truth, most]: [f64; 2], said: UntimedShare) -> bool {
        let near = |truth: f64| (said.percent - truth).abs() <= (0.1 * truth).max(0.1);
        let within = said.at_least <= most && truth <= said.at_most;
        let well = near(truth) || near(most) || (within && (truth < most || !said.is_sure()));
        self.runs += 1;
        self.well += u64::from(well);
        self.figures += u64::from(said.is_sure());
        self.truth += truth;
        self.said += said.percent;
        self.width += said.at_most - said.at_least;
        well
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let subjects = subjects(&arguments)?;
    if subjects.is_empty() {
        bail!("no capture with a measured exchange");
    }
    if let Some(directory) = &arguments.keep {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let threads = arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let totals = Mutex::new(Totals::default());
    let next = AtomicU64::new(0);
    let packets = subjects.iter().map(|subject| subject.recording.len()).max().unwrap_or(0) as u64;
    let runs = arguments.each.map_or(arguments.runs, |_| packets * subjects.len() as u64);
    let first_seed = if arguments.each.is_some() { 0 } else { arguments.seed };
    let begun = Instant::now();
    let deadline = arguments.seconds.map(|seconds| begun + Duration::from_secs_f64(seconds));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= runs || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return;
                    }
                    // Each seed is used for every capture before the next one.
                    let captures = subjects.len() as u64;
                    let (capture, seed) = ((run % captures) as usize, first_seed.wrapping_add(run / captures));
                    run_once(&arguments, &subjects[capture], capture, seed, &totals);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let all = print_tables(&arguments, &subjects, &totals);
    if arguments.coverage {
        let of = |wanted: bool| {
            let accuracy = totals.accuracy.iter().filter(|((capture, _), _)| subjects[*capture].encrypted == wanted);
            accuracy.fold((0, 0), |(well, runs), (_, accuracy)| (well + accuracy.well, runs + accuracy.runs))
        };
        let [(readable, of_readable), (encrypted, of_encrypted)] = [of(false), of(true)];
        eprintln!("damage: share told well in {readable} of {of_readable}, encrypted {encrypted} of {of_encrypted}");
    }
    eprintln!(
        "damage: {} runs in {:.1} s, {} false, {} mistimed",
        all.0,
        begun.elapsed().as_secs_f64(),
        all.1.false_pairs,
        all.1.mistimed
    );
    Ok(if all.1.false_pairs + all.1.mistimed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Damages and judges one copy.
fn run_once(arguments: &Arguments, subject: &Subject, capture: usize, seed: u64, totals: &Mutex<Totals>) {
    let mut damage = RandomDamage::of_seed(seed);
    let loss = Loss::ALL.into_iter().find(|loss| arguments.loss.as_deref() == Some(loss.name()));
    let wanted = arguments.combination.as_deref().map(|name| if name == "alone" { "" } else { name });
    let combination = Combination::ALL.into_iter().find(|kind| wanted == Some(kind.name()));
    if loss.is_some() || combination.is_some() {
        damage = RandomDamage::of_mode(seed, loss.unwrap_or(damage.loss), combination.unwrap_or(damage.combination));
    }
    if let Some(percent) = arguments.percent {
        damage.share = percent / 100.0;
    }
    let Subject { recording, truth, encrypted, decryption } = subject;
    let copy = match arguments.each {
        Some(_) if seed as usize >= recording.len() => return,
        Some(length) => {
            damage = RandomDamage { loss: Loss::Bursts, combination: Combination::Alone, burst: length, ..damage };
            let lost: Vec<usize> = (seed as usize..seed as usize + length).collect();
            without(&recording.undamaged(), &lost)
        }
        None => damage.apply(recording),
    };
    // The readable twin has more of a packet that is cut.
    if decryption.is_some() && damage.combination == Combination::SnapLength {
        return;
    }
    let (found, quality) = analyze(recording, &copy, decryption.as_ref().map(|decryption| &decryption.ring));
    let judge = decryption.as_ref().map_or(recording, |decryption| &decryption.readable);
    let verdict = truth.judge(judge, &copy, &found, arguments.missing);
    report(arguments, recording, &damage, &copy, &verdict);
    let mut totals = totals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Totals { by_row, by_capture, accuracy } = &mut *totals;
    if arguments.coverage {
        let Counts { commands, exchanges, measured, .. } = verdict.counts;
        let share = |missed: u64| 100.0 * missed as f64 / commands.max(1) as f64;
        let truth = [share(exchanges - measured), share(commands - measured)];
        let said = said(&found, &quality);
        let well = accuracy.entry((capture, damage.loss)).or_default().add(truth, said);
        if !well {
            let (name, UntimedShare { percent, at_least, at_most }) = (&recording.name, said);
            let text = format!(
                "SHARE in {name}, seed {}, {damage}: {:.1}% of {commands} right, said {percent:.1}%, \
                 {at_least:.1}% to {at_most:.1}%\n",
                damage.seed, truth[0]
            );
            if arguments.missing {
                eprint!("{text}");
            }
            if verdict.wrong.is_empty() {
                keep(arguments, recording, damage.seed, &copy, &text);
            }
        }
    }
    let row = by_row.entry((*encrypted, damage.loss, damage.combination)).or_default();
    for (runs, counts) in [row, by_capture.entry(capture).or_default()] {
        *runs += 1;
        counts.add(verdict.counts);
    }
}

/// Reports errors and keeps the copy.
fn report(arguments: &Arguments, recording: &Recording, damage: &RandomDamage, copy: &[Kept], verdict: &Judgement) {
    let name = &recording.name;
    let mut text = String::new();
    for wrong in &verdict.wrong {
        let what = if wrong.is_false_pair { "FALSE" } else { "MISTIMED" };
        text += &format!("{what} in {name}, seed {}, {damage}: {wrong}\n", damage.seed);
    }
    for missing in &verdict.missing {
        text += &format!("MISSING in {name}, seed {}, {damage}: {missing}\n", damage.seed);
    }
    eprint!("{text}");
    if !verdict.wrong.is_empty() {
        keep(arguments, recording, damage.seed, copy, &text);
    }
}

/// Writes a copy and the reason to the directory of `--keep`, if it was given.
fn keep(arguments: &Arguments, recording: &Recording, seed: u64, copy: &[Kept], text: &str) {
    let Some(directory) = &arguments.keep else { return };
    let stem = recording.name.split(".pcap").next().unwrap_or(&recording.name);
    let path = directory.join(format!("{stem}-{seed}"));
    let written = fs::write(path.with_extension("pcap"), recording.to_pcap(copy))
        .and_then(|()| fs::write(path.with_extension("txt"), text));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
}

/// Returns the captures with at least one exchange, and with `sealed` also their encrypted twins.
fn subjects(arguments: &Arguments) -> anyhow::Result<Vec<Subject>> {
    let mut files = Vec::new();
    for path in &arguments.captures {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
            for entry in entries {
                files.push(entry?.path());
            }
        } else {
            files.push(path.clone());
        }
    }
    files.retain(|path| path.is_file() && is_capture(path));
    files.sort();
    let mut subjects = Vec::new();
    for path in files {
        let recording = Recording::read(&path)?;
        let (exchanges, _) = analyze(&recording, &recording.undamaged(), None);
        let truth = Truth::new(&recording, &exchanges);
        let encrypted = exchanges.iter().filter(|exchange| exchange.command == Command::EncryptedFrame).count();
        if truth.has_filled_holes() {
            eprintln!("damage: {} is left out: the network lost packets of its messages", path.display());
        } else if truth.exchanges() > 0 {
            let encrypted = 2 * encrypted > exchanges.len();
            let twins = Nonces::ALL.into_iter().filter(|_| arguments.sealed && !encrypted);
            let made = twins.filter_map(|nonces| match arguments.keys {
                true => decrypted_twin(&recording, &exchanges, nonces),
                false => twin(&recording, &exchanges, nonces),
            });
            subjects.extend(made);
            subjects.push(Subject { recording, truth, encrypted, decryption: None });
        }
    }
    Ok(subjects)
}

/// Creates the encrypted twin of a capture with these exchanges.
fn twin(readable: &Recording, exchanges: &[Exchange], nonces: Nonces) -> Option<Subject> {
    let recording = readable.sealed(nonces, SEAL_SEED)?;
    let mut truth = Truth::sealed(&recording, exchanges);
    let (found, _) = analyze(&recording, &recording.undamaged(), None);
    truth.expect_only(&recording, &found);
    Some(Subject { recording, truth, encrypted: true, decryption: None })
}

/// Creates the encrypted twin of a capture with these exchanges, and its key.
fn decrypted_twin(readable: &Recording, exchanges: &[Exchange], nonces: Nonces) -> Option<Subject> {
    let recording = readable.sealed(nonces, SEAL_SEED)?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let ids: BTreeSet<u64> = exchanges.iter().filter_map(|exchange| exchange.session_id).collect();
    let lines: String = ids.iter().map(|id| format!("{},,{}\n", hex(&id.to_le_bytes()), hex(&TWIN_KEY))).collect();
    let mut ring = KeyRing::default();
    ring.add_keys(lines.as_bytes()).ok()?;
    let decryption = Some(TwinDecryption { ring: Arc::new(ring), readable: readable.clone() });
    Some(Subject { recording, truth: Truth::new(readable, exchanges), encrypted: true, decryption })
}

fn is_capture(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = [".gz", ".zst", ".xz", ".lz4"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    [".pcap", ".pcapng", ".cap", ".snoop"].iter().any(|ending| plain.ends_with(ending))
}

/// Returns the report's share of untimed commands.
fn said(found: &[Exchange], quality: &Quality) -> UntimedShare {
    let ended = |outcome| found.iter().filter(|exchange| exchange.outcome == outcome).count() as u64;
    let not_commands = ended(ExchangeOutcome::Complete)
        + ended(ExchangeOutcome::NoResponseByDesign)
        + ended(ExchangeOutcome::ServerInitiated);
    Coverage::new(ended, found.len() as u64 - not_commands, quality).not_timed()
}

fn analyze(recording: &Recording, copy: &[Kept], keys: Option<&Arc<KeyRing>>) -> (Vec<Exchange>, Quality) {
    let mut exchanges = Vec::new();
    let options = AnalyzerOptions { keys: keys.cloned(), ..AnalyzerOptions::default() };
    let mut flows = FlowTable::new(Analyzer::new(options, |exchange| exchanges.push(exchange)));
    recording.segments(copy, |_, segment| flows.segment(segment));
    let quality = flows.finish().finish().quality;
    (exchanges, quality)
}

/// Prints the tables and returns the total of all rows.
fn print_tables(arguments: &Arguments, subjects: &[Subject], totals: &Totals) -> (u64, Counts) {
    const HEAD: &str = "runs | exchanges | allowed | right | missing | false | mistimed | recall |\n\
                        |---|---:|---:|---:|---:|---:|---:|---:|---:|";
    println!("| damage | {HEAD}");
    let mut all = (0, Counts::default());
    for encrypted in [false, true] {
        let mut sum = (0, Counts::default());
        for ((_, loss, combination), row) in totals.by_row.iter().filter(|((kind, ..), _)| *kind == encrypted) {
            let with = if *combination == Combination::Alone { "" } else { " + " };
            print_row(&format!("{}{}{with}{}", prefix(encrypted), loss.name(), combination.name()), row);
            add(&mut sum, row);
        }
        if sum.0 > 0 {
            print_row(&format!("**{}all**", prefix(encrypted)), &sum);
        }
        add(&mut all, &sum);
    }
    if arguments.by_capture {
        println!("\n| capture | {HEAD}");
        for (capture, row) in &totals.by_capture {
            print_row(&subjects[*capture].recording.name, row);
        }
    }
    if arguments.coverage {
        println!("\n| capture | loss | runs | told well | one figure | truth | said | width of the range |");
        println!("|---|---|---:|---:|---:|---:|---:|---:|");
        for ((capture, loss), accuracy) in &totals.accuracy {
            let EstimateAccuracy { runs, well, figures, truth, said, width } = *accuracy;
            let mean = |sum: f64| format!("{:.2}%", sum / runs as f64);
            let name = &subjects[*capture].recording.name;
            let means = [mean(truth), mean(said), mean(width)].join(" | ");
            println!("| {name} | {} | {runs} | {well} | {figures} | {means} |", loss.name());
        }
    }
    all
}

fn prefix(encrypted: bool) -> &'static str {
    if encrypted { "encrypted: " } else { "" }
}

fn add(sum: &mut (u64, Counts), row: &(u64, Counts)) {
    sum.0 += row.0;
    sum.1.add(row.1);
}

fn print_row(name: &str, (runs, counts): &(u64, Counts)) {
    // Never rounded up to 100%.
    let hundredths = (10_000 * counts.right).checked_div(counts.allowed);
    let recall = hundredths.map_or("–".to_owned(), |hundredths| format!("{:.2}%", hundredths as f64 / 100.0));
    let cells =
        [*runs, counts.exchanges, counts.allowed, counts.right, counts.missing(), counts.false_pairs, counts.mistimed];
    let cells: Vec<String> = cells.iter().map(|cell| thousands(*cell)).collect();
    println!("| {name} | {} | {recall} |", cells.join(" | "));
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
