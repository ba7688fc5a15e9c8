//! Properties computed from an exchange: the directory of its file, the number of bytes that it moved.
//!
//! Paths are as in the protocol: separated by `\`, with or without a leading separator, depending on the dialect.

use smbscope_model::{CUT_NAME_MARK, CommandGroup, Exchange, ExchangeOutcome, Subcommand};

pub(crate) fn is_apart(exchange: &Exchange) -> bool {
    exchange.outcome == ExchangeOutcome::ServerInitiated
        || matches!(exchange.subcommand, Some(Subcommand::AsyncPortion | Subcommand::ServerInitiated))
}

pub(crate) fn failed(exchange: &Exchange) -> bool {
    exchange.status.is_some_and(|status| status.is_error())
}

/// Returns the size of the exchange in bytes. For reads, the requested length, capped at the size of the response; for
/// writes, the given length; for other commands, or if the length is unknown, the size of both messages.
pub fn size(exchange: &Exchange) -> u64 {
    match (exchange.group, exchange.length) {
        (CommandGroup::Read, Some(length)) => length.min(exchange.response.bytes),
        (CommandGroup::Write, Some(length)) => length,
        _ => exchange.request.bytes + exchange.response.bytes,
    }
}

/// Returns the bytes of file data that a read or write moved. Absent if it failed or its length is unknown.
pub fn moved(exchange: &Exchange) -> Option<u64> {
    let is_done = exchange.status.is_some_and(|status| !status.is_error());
    let moves = matches!(exchange.group, CommandGroup::Read | CommandGroup::Write) && exchange.length.is_some();
    (is_done && moves).then(|| size(exchange))
}

pub fn below_share(path: &str) -> &str {
    path.trim_start_matches('\\')
}

pub fn directory(path: &str) -> &str {
    below_share(path).rsplit_once('\\').map_or("", |(directory, _)| directory)
}

pub(crate) fn is_cut(path: &str) -> bool {
    path.ends_with(CUT_NAME_MARK)
}

/// Extension without the dot and without a stream name; may be empty.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('\\').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    #[test]
    fn directories_and_extensions_are_those_of_the_last_name() {
        let parts = |path| (directory(path), extension(path));
        assert_eq!(parts(r"docs\2024.old\report.DOCX"), (r"docs\2024.old", "DOCX"));
        assert_eq!(parts(r"\docs\report"), ("docs", ""));
        assert_eq!(parts(r"archive.tar.gz:Zone.Identifier:$DATA"), ("", "gz"));
        assert_eq!((parts(r"home\.profile"), parts("")), (("home", ""), ("", "")));
    }

    #[test]
    fn the_size_of_a_read_is_what_came_and_that_of_a_write_what_went() {
        let mut short = read(0, 1_000);
        (short.length, short.response.bytes) = (Some(4_096), 164);
        let write = Exchange { group: CommandGroup::Write, ..short.clone() };
        let lock = Exchange { group: CommandGroup::Locking, ..short.clone() };
        assert_eq!([size(&short), size(&write), size(&lock)], [164, 4_096, 264]);
    }
}
