//! Options of `smbscope predict`.

use super::{
    AnalysisOptions, CommandOptions, PossibleValueTable, ReadingOptions, TerminalOptions, format_by_ending,
    has_repeated_file, one_of,
};
use crate::server::ShareUrl;
use clap::{ArgGroup, Args, ValueEnum};
use smbscope_diagnose::whatif::{Scenario, UserIdentity};
use smbscope_load::engine::{Users, UsersError};
use smbscope_stats::filter::Filter;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("prediction").args(["changes", "users"]).required(true).multiple(true))]
pub struct PredictOptions {
    /// Read these captures; `-` is standard input, and a directory stands for the captures in it. Several files form one
    /// capture, in time order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Predict the duration with this change: rtt=20ms, bandwidth=100mbit, server=0.5x, read=+10ms, dialect=3.1.1,
    /// signing=required, cache=leases or read-ahead. Commas combine changes; repeated options are predicted one by one.
    ///
    /// rtt sets the round trip; bandwidth limits each client's link, in each direction; server multiplies the server's
    /// time of every command; read=+10ms adds time to each command of a group (open, read, write, directory,
    /// attributes, locking, session, control). dialect is SMB2 or later, and newer than the captured one. With
    /// cache=leases, files that are opened again cost nothing.
    #[arg(long = "if", value_name = "CHANGE,...")]
    pub changes: Vec<Scenario>,

    /// Predict the response time with these numbers of users, each with the load of a captured one: 200, 10..1000 or
    /// 10..200:10. A range without a step is ten numbers.
    #[arg(long, value_name = "USERS")]
    pub users: Option<UserNumbers>,

    /// Set what counts as a user of --users: account is an account on a client. [default: client, or account if there
    /// is one client]
    #[arg(long, value_name = "IDENTITY", requires = "users", value_parser = one_of(IDENTITIES))]
    pub user_is: Option<UserIdentity>,

    /// Predict only the episode with this number: a burst of work of one client, such as an application launch.
    /// `analyze --full` lists the episodes. [default: the whole capture]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episode: Option<u32>,

    /// Replay the commands in a lab, as captured and with each change really made, and compare measurement and
    /// prediction.
    ///
    /// Each client becomes a user of its own, with its threads and pauses. The lab can change the round trip, the
    /// bandwidth, the dialect and signing, make the server slower, and add time to reads and writes. Requires Samba, root
    /// and tcpdump.
    #[arg(long, requires = "changes")]
    pub prove: bool,

    /// Replay on this share instead of private servers. Only the dialect and signing can be changed there.
    #[arg(long, value_name = "TARGET", requires = "prove")]
    pub target: Option<ShareUrl>,

    /// Read the password for --target from the first line of this file. [default: SMBSCOPE_PASSWORD, or a prompt]
    #[arg(long, value_name = "FILE", requires = "target")]
    pub target_password_file: Option<PathBuf>,

    /// Replay the commands N times under each condition.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "prove", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repetitions: u32,

    /// Predict only commands that match an expression. `smbscope help filters` describes it.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<Filter>,

    /// Write this format. [default: by the ending of OUT: .txt, .md, .json, .html; text without OUT]
    #[arg(long, value_enum)]
    pub format: Option<PredictFormat>,

    /// Write to this file instead of standard output. It is replaced when the predictions are complete.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

impl CommandOptions for PredictOptions {
    fn conflict(&self) -> Option<&'static str> {
        has_repeated_file(&self.files)
    }
}

impl PredictOptions {
    /// Returns the output format.
    pub fn format(&self) -> PredictFormat {
        self.format.or_else(|| format_by_ending(self.output.as_deref())).unwrap_or(PredictFormat::Text)
    }

    /// Returns the options for the analysis, which keeps the commands.
    pub fn analysis(&self) -> AnalysisOptions {
        AnalysisOptions {
            reading: self.reading.clone(),
            filter: self.filter.clone(),
            episode: self.episode,
            no_findings: self.episode.is_none(),
            waterfall: true,
            sampled: self.users.is_some(),
            ..AnalysisOptions::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictFormat {
    /// Table for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Table in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// One object, `smbscope.prediction/1`; times in nanoseconds.
    Json,
    /// Page for a browser, with the commands of the replays or a chart by users.
    Html,
}

const IDENTITIES: &PossibleValueTable<UserIdentity> = &[
    ("client", "Address of a client", UserIdentity::Client),
    ("account", "Account on a client", UserIdentity::Account),
    ("connection", "TCP connection", UserIdentity::Connection),
];

/// Numbers of users, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserNumbers(Vec<u32>);

impl UserNumbers {
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for UserNumbers {
    type Err = UsersError;

    /// Parses numbers of users as `bench` does, but a range without a step is ten numbers with about the same ratio.
    fn from_str(text: &str) -> Result<UserNumbers, UsersError> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let users: Users = part.parse()?;
            match part.contains("..") && !part.contains(':') {
                true => numbers.extend(by_ratio(users.fewest(), users.most())),
                false => numbers.extend_from_slice(users.points()),
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(UserNumbers(numbers))
    }
}

/// Returns ten numbers in a geometric series, rounded to two digits between the first and the last.
fn by_ratio(first: u32, last: u32) -> impl Iterator<Item = u32> {
    const STEPS: i32 = 9;
    let step = (f64::from(last) / f64::from(first)).powf(1.0 / f64::from(STEPS));
    let number = move |at: i32| {
        let exact = f64::from(first) * step.powi(at);
        let digit = 10f64.powi((exact.log10().floor() as i32 - 1).max(0));
        ((exact / digit).round() * digit) as u32
    };
    (0..=STEPS).map(move |at| match at {
        0 => first,
        STEPS => last,
        _ => number(at).clamp(first, last),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_a_step_is_a_series_with_a_common_ratio() {
        let parsed = |text: &str| text.parse::<UserNumbers>().map(|users| users.0);
        // 10 × 100^(n/9), rounded: 16.7, 27.8, 46.4, 77.4, 129, 215, 359, 599.
        assert_eq!(parsed("10..1000"), Ok(vec![10, 17, 28, 46, 77, 130, 220, 360, 600, 1000]));
        assert_eq!(parsed("10..40:10"), Ok(vec![10, 20, 30, 40]));
        assert_eq!(parsed("8, 3..5, 200"), Ok(vec![3, 4, 5, 8, 200]));
        assert!(parsed("0..5").is_err() && parsed("5..1").is_err() && parsed("ten").is_err());
    }
}
