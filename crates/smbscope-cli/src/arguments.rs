//! Command line of smbscope, as clap structures: the commands and their texts. [`smbscope_run::options`] declares their
//! options, whose doc comments are the help texts.

use crate::help;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use smbscope_run::TargetUrl;
use smbscope_run::options::{
    AnalyzeOptions, BenchOptions, CapturePoints, CommandOptions, CompareOptions, ConnectOptions, GivenOptions,
    LabServerOptions, LaunchOptions, PredictOptions, RecordOptions, SlimCopyOptions, StudyOptions, WatchOptions,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// See what an SMB file server makes its users wait for, and why.
#[derive(Debug, Parser)]
#[command(name = "smbscope", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = help::list_of_topics())]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,

    /// Log actions of the program to standard error; -vv logs more. SMBSCOPE_LOG takes filters such as
    /// smbscope_lab=debug.
    #[arg(hide_short_help = true, short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Arguments {
    /// Parses a command line.
    pub(crate) fn parse_line(line: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
        let mut command = Arguments::command();
        let line: Vec<OsString> = line.into_iter().collect();
        let matches = command.try_get_matches_from_mut(&line).map_err(|error| help::explained(error, &line))?;
        let mut arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        if let (Verb::Bench(bench), Some((name, matches))) = (&mut arguments.verb, matches.subcommand())
            && let Some(command) = command.find_subcommand(name)
        {
            bench.given = GivenOptions::from_matches(command, matches);
        }
        Ok(arguments)
    }

    /// Checks constraints that clap can't express.
    pub fn check(&self) -> Result<(), clap::Error> {
        let (name, conflict) = match &self.verb {
            Verb::Analyze(options) => ("analyze", options.conflict()),
            Verb::Bench(arguments) => match &arguments.other {
                Some(BenchVerb::Clean(clean)) => ("bench", clean.connect.conflict()),
                _ => ("bench", arguments.options.conflict()),
            },
            Verb::Compare(options) => ("compare", options.conflict()),
            Verb::Launch(options) => ("launch", options.conflict()),
            Verb::Predict(options) => ("predict", options.conflict()),
            Verb::Record(options) => ("record", options.conflict()),
            Verb::Slim(options) => ("slim", options.conflict()),
            Verb::Watch(options) => ("watch", options.conflict()),
            Verb::Lab(_) | Verb::Study(_) | Verb::Help(_) | Verb::Completions(_) | Verb::Man(_) => return Ok(()),
        };
        let Some(conflict) = conflict else { return Ok(()) };
        let mut command = Arguments::command();
        command.build();
        let command = command.find_subcommand_mut(name).expect("the command was given");
        Err(command.error(ErrorKind::ArgumentConflict, conflict))
    }
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Report the response time of every SMB command in packet captures.
    ///
    /// Reads pcap, pcapng and snoop, plain or compressed with gzip, zstd, lz4 or xz, whatever the file's name; SMB1
    /// to SMB 3.1.1 on any port. Several files form one capture, in time order.
    #[command(after_help = "\
Examples:
  smbscope analyze capture.pcapng
  smbscope analyze -o report.html capture.pcapng
  smbscope analyze -o exchanges.csv rotated-*.pcap.zst
  smbscope analyze --filter 'response_time > 50ms' --by file capture.pcapng
  smbscope analyze --fail-if 'READ.p95 > 20ms' --junit smb.xml capture.pcapng
  tcpdump -i eth0 -s 256 -w - port 445 | smbscope analyze -

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 3 a --fail-if holds, 130 interrupted (the results so \
far are written).")]
    Analyze(Box<AnalyzeOptions>),

    /// Load a server with simulated users, and measure the response time of every command.
    ///
    /// Has its own client for SMB1 to SMB 3.1.1; nothing is mounted. Each load point has more users than the one
    /// before; the report shows throughput and response time by number of users. docs/bench.md has more.
    Bench(Box<BenchArguments>),

    /// Compare captures, reports and runs: changes of response time, and how certain they are.
    ///
    /// Each argument is a capture, a report saved with `analyze --format json`, or a run of `bench`, recognised by
    /// its content. Runs are compared load point by load point. The first argument is the baseline.
    #[command(after_help = "\
Examples:
  smbscope compare before.pcapng after.pcapng
  smbscope compare --name signing-off --name signing-on off.json on.json
  smbscope compare runs/samba-4.17 runs/samba-4.22
  smbscope compare --fail-if 'p95(Read) > 1.10x' runs/main runs/branch
  smbscope compare old1 old2 old3 old4 old5 vs new1 new2 new3 new4 new5

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 3 a --fail-if holds, 130 interrupted.")]
    Compare(Box<CompareOptions>),

    /// Start private, throw-away Samba servers on this machine.
    ///
    /// Each one is an ordinary process with its own folder, listens only on the loopback interface, and leaves
    /// no files. Root is not required. docs/lab.md has more.
    Lab(LabArguments),

    /// Launch a program repeatedly, and measure how long it takes until it is ready and how much of that it waits for
    /// a file server.
    ///
    /// The program uses files of this machine, or of a share that is mounted through FUSE. docs/launch.md has more.
    #[command(after_help = "\
Examples:
  smbscope launch -- git -C '{folder}' status
  smbscope launch --target lab --window Inbox -- thunderbird -profile '{folder}'
  smbscope launch --target file:/mnt --server files --capture -- ls '{folder}'
  smbscope launch --target smb://ann@files/src --cold -- ls -lR '{folder}'

Exit status: 0 done, 1 a failed launch or unusable input, 2 bad arguments, 130 interrupted.")]
    Launch(Box<LaunchOptions>),

    /// Predict how long captured commands would take with another round trip, bandwidth, server or cache, or more users.
    ///
    /// --if replays the commands of a capture with their dependencies, the client's own time and TCP's limits. --users
    /// predicts response times from the load of the captured users, by mean value analysis. Each prediction is a range
    /// with its assumptions. `smbscope help causes` has more.
    #[command(after_help = "\
Examples:
  smbscope predict --if rtt=20ms capture.pcapng
  smbscope predict --users 10..1000 capture.pcapng
  smbscope predict --episode 3 --if server=0.5x --if cache=leases capture.pcapng
  smbscope predict --if rtt=20ms,bandwidth=20mbit --format json capture.pcapng

Exit status: 0 done, 1 unusable input or output, or a change that can't be predicted, 2 bad arguments, 130 interrupted.")]
    Predict(Box<PredictOptions>),

    /// Record client activity of a capture as a workload that bench replays.
    ///
    /// Includes the file commands of SMB1, SMB2 and SMB 3 with sizes, offsets, order and pauses, and the sizes of the
    /// files; contents are generated. Commands that can't be replayed are listed. `smbscope help workloads` has
    /// more.
    #[command(after_help = "\
Examples:
  smbscope record -o app.toml capture.pcapng
  smbscope record --episode 3 -o launch.toml capture.pcapng
  smbscope record --client 10.0.0.7 --anonymize -o logon.toml capture.pcapng
  smbscope bench smb://ann@files/projects --workload app.toml --users 1,10,50
  smbscope bench --workload app.toml --think none --passes 1

Exit status: 0 done, 1 unusable input or output, or nothing that can be replayed, 2 bad arguments, 130 interrupted.")]
    Record(RecordOptions),

    /// Write a copy of captures with only the data that the analysis needs: no file content, no passwords.
    ///
    /// `analyze` reports the same on the copy, which, compressed, is 10 to 100 times smaller. With --anonymize it
    /// contains neither names nor addresses and can be sent to a vendor. With --keys or --password-file, it holds SMB 3
    /// messages decrypted. docs/slim.md has more.
    #[command(after_help = "\
Examples:
  smbscope slim -o small.pcapng.zst capture.pcapng
  smbscope slim --anonymize -o for-vendor.pcapng.zst capture.pcapng
  smbscope slim --anonymize --key-file site.key -o all.pcapng.zst *.pcap
  smbscope slim --keys office.keys -o decrypted.pcapng office.pcapng

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 130 interrupted.")]
    Slim(SlimCopyOptions),

    /// Run a study: variants of a load, repeated in random order, and compared.
    ///
    /// A file lists the differences between the variants: dialect, signing, servers, block size, a virus scanner, or
    /// any other option of bench or of a lab server. An interrupted study resumes where it stopped. `smbscope
    /// help studies` has more.
    #[command(after_help = "\
Examples:
  smbscope study studies/ini-dialects.toml --quick -o ini
  smbscope study studies/ini-dialects.toml -o ini    # again: resumes it
  smbscope study studies/ini-dialects.toml --target smb://ann@files/test -o ini

Exit status: 0 done, 1 a failed run or unusable input, 2 bad arguments, 130 interrupted (finished runs are kept).")]
    Study(Box<StudyOptions>),

    /// Watch a file server as it works: who waits now, and why.
    ///
    /// On a terminal, shows the answer for the last minute and the last hour, response times, and the slowest clients,
    /// files and shares; otherwise prints a line per minute. Ctrl-C ends with the report of everything. Memory does
    /// not grow with time. docs/watch.md has more.
    #[command(after_help = "\
Examples:
  smbscope watch -i eth0
  smbscope watch -i any --duration 8h -o today.html
  smbscope watch -i eth0 --format json
  ssh server tcpdump -i eth0 -U -w - port 445 | smbscope watch -
  smbscope watch --follow growing.pcapng

Exit status: 0 done, 1 unusable input or output, 2 bad arguments.")]
    Watch(Box<WatchOptions>),

    /// Print the help of a command, or a page about a topic.
    Help(HelpArguments),

    /// Print a shell script that completes smbscope's command line.
    Completions(CompletionsArguments),

    /// Print a manual page, or write all of them.
    Man(ManArguments),
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  smbscope bench    # a private Samba server, 1 to 32 users
  smbscope bench smb://ann@files/projects --users 10..200:10 -o monday
  smbscope bench smb://ann@files/projects --loadfile client.txt --users 8
  smbscope bench smb://ann@files/projects --find-capacity 'p95(Read) < 20ms'
  smbscope bench clean smb://ann@files/projects

Exit status: 0 done, 1 a failed run or unusable input, 2 bad arguments, 130 interrupted (finished load \
points are kept)."
)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub other: Option<BenchVerb>,

    #[command(flatten)]
    pub options: BenchOptions,

    /// The options as text, without defaults.
    #[arg(skip)]
    pub given: GivenOptions,
}

#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Remove the directory that bench created on a share, and nothing else.
    Clean(CleanArguments),

    /// List the built-in workloads, or print one as a template.
    Workloads(WorkloadsArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope bench clean smb://ann@files/projects")]
pub struct CleanArguments {
    /// Clean this target of earlier runs: `smb://[user@]host[:port]/share[/dir]` or `file:DIR`.
    #[arg(value_name = "TARGET")]
    pub target: TargetUrl,

    #[command(flatten)]
    pub connect: ConnectOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope bench workloads
  smbscope bench workloads logon > mine.toml")]
pub struct WorkloadsArguments {
    /// Print this workload. [default: list all of them]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab up
  smbscope lab up --name old --max-dialect 2.1 --signing required --delay 5ms
  smbscope lab status
  smbscope lab run -- sh -c 'smbscope bench \"$SMBSCOPE_LAB_URL\"'
  smbscope lab down --all

Exit status: 0 done, 1 failed, 2 bad arguments; `lab run` returns the status of its command.")]
pub struct LabArguments {
    #[command(subcommand)]
    pub verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Start a server and leave it running.
    #[command(after_help = "\
Examples:
  smbscope lab up
  smbscope lab up --name busy --cpu-load 50 --antivirus clamav
  smbscope lab up --name far --delay 5ms --smb-conf 'strict sync = no'")]
    Up(UpArguments),

    /// Stop servers that `lab up` started, and remove all their files.
    Down(DownArguments),

    /// List running servers.
    Status(StatusArguments),

    /// Run a command with a private server that stops when the command ends.
    ///
    /// The command finds the server in its environment: SMBSCOPE_LAB_URL (smb://bench@127.0.0.1:PORT/share),
    /// SMBSCOPE_LAB_ENCRYPTED_URL, SMBSCOPE_LAB_HOST, SMBSCOPE_LAB_PORT, SMBSCOPE_LAB_USER, SMBSCOPE_PASSWORD,
    /// SMBSCOPE_LAB_PASSWORD_FILE, SMBSCOPE_LAB_FOLDER, SMBSCOPE_LAB_SHARE_FOLDER, SMBSCOPE_LAB_CONF, and
    /// SMBSCOPE_LAB_INTERFACE, where its packets can be captured.
    #[command(after_help = "\
Examples:
  smbscope lab run -- sh -c 'smbscope bench \"$SMBSCOPE_LAB_URL\"'
  smbscope lab run --max-dialect 3.0 --encryption required -- ./my-test.sh
  smbscope lab run --delay 2ms --capture=both -o captures -- ./my-test.sh

Exit status: the command's; 128 plus the number of the signal that ended it; 1 if there was no server.")]
    Run(RunArguments),

    /// Read the figures of this machine's Samba for another smbscope, at each line of standard input.
    #[command(hide = true)]
    ReadSamba,

    /// Keep a server for another smbscope, which sends requests on standard input.
    #[command(hide = true)]
    Keep,
}

#[derive(Debug, Args)]
pub struct UpArguments {
    /// Set the server's name, for `lab down` and `lab status`.
    #[arg(long, value_name = "NAME", default_value = "lab")]
    pub name: String,

    #[command(flatten)]
    pub server: LabServerOptions,

    #[command(flatten)]
    pub state: StateArguments,

    /// Print the server's address, users and settings in this format.
    #[arg(long, value_enum, default_value_t = LabFormat::Text)]
    pub format: LabFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab down
  smbscope lab down old far")]
pub struct DownArguments {
    /// Stop the servers with these names. [default: the only one that runs]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// Stop all servers that `lab up` started.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,

    #[command(flatten)]
    pub state: StateArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope lab status
  smbscope lab status --format json")]
pub struct StatusArguments {
    #[command(flatten)]
    pub state: StateArguments,

    /// Print the list in this format.
    #[arg(long, value_enum, default_value_t = LabFormat::Text)]
    pub format: LabFormat,
}

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub server: LabServerOptions,

    #[command(flatten)]
    pub state: StateArguments,

    /// Capture the server's packets while the command runs, into the directory of --output.
    ///
    /// Requires tcpdump or dumpcap, and permission to capture. `--capture=both` also captures at the server's end of the
    /// link, for `analyze CLIENT SERVER`; it needs root and a link, such as --delay 2ms.
    #[arg(long, value_enum, value_name = "WHERE", num_args = 0..=1, default_missing_value = "client", requires = "output", help_heading = "Results")]
    pub capture: Option<CapturePoints>,

    /// Keep the captures in this directory, which is created: client.pcap, server.pcap and, for SMB 3, session.keys.
    #[arg(short, long, value_name = "DIR", requires = "capture", help_heading = "Results")]
    pub output: Option<PathBuf>,

    /// Run this command with these arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct StateArguments {
    /// Use this directory for the servers' folders. [default: smbscope-lab in $XDG_RUNTIME_DIR, or /tmp/smbscope-lab-UID]
    #[arg(long = "state", value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabFormat {
    /// Text for a terminal.
    Text,
    /// JSON, without passwords.
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope help filters
  smbscope help lab up")]
pub struct HelpArguments {
    /// Explain this command, or this topic, such as filters, workloads or causes.
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > /etc/bash_completion.d/smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish
  smbscope completions zsh > ~/.zfunc/_smbscope    # ~/.zfunc is in fpath
  smbscope completions powershell >> $PROFILE

`make install` installs those for bash, zsh and fish.")]
pub struct CompletionsArguments {
    /// Print the script for this shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope man analyze | man -l -
  smbscope man --output /usr/local/share/man/man1")]
pub struct ManArguments {
    /// Print the page of this command, such as `analyze` or `lab-up`, instead of smbscope's own.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,

    /// Write all pages into this directory, creating it if necessary, instead of printing one.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
