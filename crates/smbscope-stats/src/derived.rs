//! What an exchange tells without saying it: where its file lies, how many bytes it moved.
//!
//! Paths are those of the protocol: `\` separates, and whether one stands in front depends on the dialect.

use smbscope_model::{CUT_NAME_MARK, CommandGroup, Exchange, ExchangeOutcome, Subcommand};

/// Not a command of its own: what the server sent unasked, and the second part of a Write_Raw.
pub(crate) fn is_apart(exchange: &Exchange) -> bool {
    exchange.outcome == ExchangeOutcome::ServerInitiated
        || matches!(exchange.subcommand, Some(Subcommand::AsyncPortion | Subcommand::ServerInitiated))
}

/// Whether the final response has an error status.
pub(crate) fn failed(exchange: &Exchange) -> bool {
    exchange.status.is_some_and(|status| status.is_error())
}

/// The bytes it moved: of a read the length asked for, at most what the response holds; of a write the length given;
/// of everything else, and where the length is not known, its messages.
pub fn size(exchange: &Exchange) -> u64 {
    match (exchange.group, exchange.length) {
        (CommandGroup::Read, Some(length)) => length.min(exchange.response.bytes),
        (CommandGroup::Write, Some(length)) => length,
        _ => exchange.request.bytes + exchange.response.bytes,
    }
}

/// The bytes of file data that a read or write moved; absent of one that failed, or whose length is not known.
pub fn moved(exchange: &Exchange) -> Option<u64> {
    let is_done = exchange.status.is_some_and(|status| !status.is_error());
    let moves = matches!(exchange.group, CommandGroup::Read | CommandGroup::Write) && exchange.length.is_some();
    (is_done && moves).then(|| size(exchange))
}

/// The path without a separator in front.
pub fn below_share(path: &str) -> &str {
    path.trim_start_matches('\\')
}

/// The directory that holds what a path names; empty in the share's root.
pub fn directory(path: &str) -> &str {
    below_share(path).rsplit_once('\\').map_or("", |(directory, _)| directory)
}

/// Whether only the beginning of a path is known.
pub(crate) fn is_cut(path: &str) -> bool {
    path.ends_with(CUT_NAME_MARK)
}

/// The file name's extension, without the dot and without the name of a stream; empty where it has none.
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
        // Asked for 4,096, and the response message has 164 bytes.
        (short.length, short.response.bytes) = (Some(4_096), 164);
        let write = Exchange { group: CommandGroup::Write, ..short.clone() };
        // 100 bytes there and 164 back.
        let lock = Exchange { group: CommandGroup::Locking, ..short.clone() };
        assert_eq!([size(&short), size(&write), size(&lock)], [164, 4_096, 264]);
    }
}
