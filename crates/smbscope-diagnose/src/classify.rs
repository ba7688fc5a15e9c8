//! Classification of exchanges into the facts that detectors count.

use smbscope_model::groups;
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, Half, Nanos, Protocol, ResponseStatus, Subcommand, TimeKind,
};
use smbscope_wire::names::{Fsctl, Trans2};
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1, smb2};

/// Declares the facts; a variant's position is its index in tables and its bit in [`FactSet`].
macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fact { $($(#[$doc])* $name,)* }

        impl Fact {
            pub(crate) const ALL: &[Fact] = &[$(Fact::$name,)*];
        }
    };
}

facts! {
    Command,
    Smb1,
    Metadata,
    /// Successful read or write of file data.
    Transfer,
    SmallTransfer,
    /// Transfer of 60 to 64 KiB in a dialect that supports larger ones.
    Transfer64K,
    LargeTransfer,
    SignedTransfer,
    /// Write of file data, successful or not.
    Write,
    Flush,
    Open,
    Lookup,
    Missing,
    MacName,
    OfficeOpen,
    /// Open that took 30 to 36 s.
    BreakTimeout,
    List,
    Negotiate,
    SessionSetup,
    LoginFailure,
    Referral,
    Conflict,
    Refusal,
    Notified,
    Break,
    Resent,
    /// Small request whose later segment waited for a delayed acknowledgment.
    HeldRequest,
    /// Small response whose later segment waited for a delayed acknowledgment.
    HeldResponse,
    Lock,
    /// File opened, read or written by at most 64 KiB, and closed. Counted at its CLOSE.
    SmallFile,
    /// Same, for a file already counted as [`Fact::SmallFile`].
    SmallFileAgain,
    Encrypted,
}

impl Fact {
    pub(crate) fn is_timed(self) -> bool {
        !matches!(self, Fact::Write | Fact::Lookup | Fact::LargeTransfer | Fact::Break | Fact::Notified)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FactSet(u64);

impl FactSet {
    fn add_if(&mut self, holds: bool, fact: Fact) {
        self.0 |= u64::from(holds) << fact as u32;
    }

    pub(crate) fn has(self, fact: Fact) -> bool {
        self.0 >> fact as u32 & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Fact> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let at = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            Fact::ALL.get(at as usize).copied()
        })
    }
}

/// Upper limit for small transfers: a fraction of the payload that every dialect can carry per command.
pub(crate) const SMALL_TRANSFER: u64 = 8 << 10;
/// Upper limit for small files, and for a command without large MTU (MS-SMB2 3.3.5.4).
pub(crate) const SIXTY_FOUR_K: u64 = 64 << 10;

pub(crate) fn facts_of(exchange: &Exchange) -> FactSet {
    let mut facts = FactSet::default();
    if exchange.outcome == ExchangeOutcome::ServerInitiated {
        facts.add_if(is_break(exchange), Fact::Break);
        return facts;
    }
    if exchange.group == CommandGroup::Waiting {
        facts.add_if(exchange.is_subscription() && exchange.is_complete(), Fact::Notified);
        return facts;
    }
    if exchange.subcommand == Some(Subcommand::AsyncPortion) {
        return facts;
    }
    facts.add_if(exchange.command == Command::EncryptedFrame, Fact::Encrypted);
    if !exchange.group.in_headline() {
        return facts;
    }
    let is_smb1 = exchange.command.protocol() == Protocol::Smb1;
    facts.add_if(true, Fact::Command);
    add_kind(&mut facts, exchange, is_smb1);
    add_status(&mut facts, exchange);
    if let Some(Nanos(time)) = exchange.time(TimeKind::ResponseTime) {
        let resent = exchange.retransmission_delay.is_some();
        facts.add_if(resent, Fact::Resent);
        facts.add_if(!resent && is_held_back(&exchange.request), Fact::HeldRequest);
        facts.add_if(!resent && is_held_back(&exchange.response), Fact::HeldResponse);
        let held = (30_000_000_000..36_000_000_000).contains(&time);
        facts.add_if(held && facts.has(Fact::Open), Fact::BreakTimeout);
    }
    facts
}

/// Returns true if the later segments of a small message are late by a typical delayed-acknowledgment timer: 40 ms on
/// Linux, 200 ms on Windows and elsewhere (RFC 1122 4.2.3.2 allows up to 500 ms).
fn is_held_back(half: &Half) -> bool {
    const SMALL: u64 = 8 << 10;
    let late = |Nanos(time)| (36_000_000..60_000_000).contains(&time) || (190_000_000..225_000_000).contains(&time);
    half.packets >= 2 && half.bytes <= SMALL && half.transfer().is_some_and(late)
}

fn add_kind(facts: &mut FactSet, exchange: &Exchange, is_smb1: bool) {
    let negotiates = matches!(
        exchange.command,
        Command::Smb1(smb1::Smb1Command::NEGOTIATE) | Command::Smb2(smb2::Smb2Command::NEGOTIATE)
    );
    facts.add_if(negotiates, Fact::Negotiate);
    facts.add_if(is_smb1 && !negotiates, Fact::Smb1);
    match exchange.group {
        CommandGroup::Read | CommandGroup::Write => add_transfer(facts, exchange),
        // An ECHO only keeps the connection alive.
        _ => facts.add_if(!is_echo(exchange), Fact::Metadata),
    }
    facts.add_if(exchange.group == CommandGroup::Locking, Fact::Lock);
    let opens = is_open(exchange);
    facts.add_if(opens, Fact::Open);
    facts.add_if(opens || is_query_by_path(exchange), Fact::Lookup);
    if let (true, Some(path)) = (opens, exchange.path.as_deref()) {
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path);
        facts.add_if(name.starts_with("._") || name == ".DS_Store", Fact::MacName);
        facts.add_if(is_office(name), Fact::OfficeOpen);
    }
    let lists = match (exchange.command, exchange.subcommand) {
        (Command::Smb2(smb2::Smb2Command::QUERY_DIRECTORY), _) => true,
        (_, Some(Subcommand::Trans2(code))) => matches!(code, Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2),
        _ => false,
    };
    facts.add_if(lists, Fact::List);
    let sets_up = matches!(
        exchange.command,
        Command::Smb1(smb1::Smb1Command::SESSION_SETUP_ANDX) | Command::Smb2(smb2::Smb2Command::SESSION_SETUP)
    );
    facts.add_if(sets_up, Fact::SessionSetup);
    let refers = matches!(
        exchange.subcommand,
        Some(Subcommand::Fsctl(Fsctl::DFS_GET_REFERRALS | Fsctl::DFS_GET_REFERRALS_EX))
            | Some(Subcommand::Trans2(Trans2::GET_DFS_REFERRAL))
    );
    facts.add_if(refers, Fact::Referral);
}

fn add_transfer(facts: &mut FactSet, exchange: &Exchange) {
    let flushes =
        matches!(exchange.command, Command::Smb1(smb1::Smb1Command::FLUSH) | Command::Smb2(smb2::Smb2Command::FLUSH));
    facts.add_if(flushes, Fact::Flush);
    if flushes {
        return;
    }
    facts.add_if(exchange.group == CommandGroup::Write, Fact::Write);
    let Some(length) = exchange.length.filter(|_| !failed(exchange)) else { return };
    facts.add_if(true, Fact::Transfer);
    facts.add_if(length <= SMALL_TRANSFER, Fact::SmallTransfer);
    let has_large = exchange.dialect.is_some_and(|dialect| {
        matches!(dialect, smbscope_model::Dialect::Smb2(revision) if revision >= 0x0210 && revision != 0x02ff)
    });
    facts.add_if(has_large && (60 << 10..=SIXTY_FOUR_K).contains(&length), Fact::Transfer64K);
    facts.add_if(length > SIXTY_FOUR_K, Fact::LargeTransfer);
    facts.add_if(exchange.signed, Fact::SignedTransfer);
}

fn add_status(facts: &mut FactSet, exchange: &Exchange) {
    let Some(ResponseStatus::Nt(status)) = exchange.status else { return };
    match status {
        NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::OBJECT_PATH_NOT_FOUND | NtStatus::NO_SUCH_FILE => {
            facts.add_if(facts.has(Fact::Lookup), Fact::Missing);
        }
        NtStatus::SHARING_VIOLATION | NtStatus::LOCK_NOT_GRANTED | NtStatus::FILE_LOCK_CONFLICT => {
            facts.add_if(true, Fact::Conflict);
        }
        NtStatus::INSUFFICIENT_RESOURCES
        | NtStatus::INSUFF_SERVER_RESOURCES
        | NtStatus::TOO_MANY_OPENED_FILES
        | NtStatus::TOO_MANY_SESSIONS
        | NtStatus::REQUEST_NOT_ACCEPTED => facts.add_if(true, Fact::Refusal),
        _ => {}
    }
    // STATUS_MORE_PROCESSING_REQUIRED is an intermediate step of the login.
    let refused = status.is_error() && status != NtStatus::MORE_PROCESSING_REQUIRED;
    facts.add_if(refused && facts.has(Fact::SessionSetup), Fact::LoginFailure);
}

fn failed(exchange: &Exchange) -> bool {
    exchange.status.is_none_or(|status| status.is_error())
}

pub(crate) fn is_open(exchange: &Exchange) -> bool {
    exchange.group == CommandGroup::OpenClose && groups::opens(exchange.command)
}

pub(crate) fn is_close(exchange: &Exchange) -> bool {
    matches!(exchange.command, Command::Smb1(smb1::Smb1Command::CLOSE) | Command::Smb2(smb2::Smb2Command::CLOSE))
}

fn is_query_by_path(exchange: &Exchange) -> bool {
    matches!(exchange.subcommand, Some(Subcommand::Trans2(Trans2::QUERY_PATH_INFORMATION)))
        || matches!(
            exchange.command,
            Command::Smb1(smb1::Smb1Command::QUERY_INFORMATION | smb1::Smb1Command::CHECK_DIRECTORY)
        )
}

fn is_echo(exchange: &Exchange) -> bool {
    matches!(exchange.command, Command::Smb1(smb1::Smb1Command::ECHO) | Command::Smb2(smb2::Smb2Command::ECHO))
}

fn is_break(exchange: &Exchange) -> bool {
    matches!(
        exchange.command,
        Command::Smb1(smb1::Smb1Command::LOCKING_ANDX) | Command::Smb2(smb2::Smb2Command::OPLOCK_BREAK)
    )
}

fn is_office(name: &str) -> bool {
    const EXTENSIONS: [&str; 13] =
        ["doc", "docx", "docm", "dotx", "xls", "xlsx", "xlsm", "xlsb", "ppt", "pptx", "pptm", "odt", "ods"];
    has_extension(name, &EXTENSIONS)
}

pub(crate) fn has_extension(name: &str, known: &[&str]) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    known.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    #[test]
    fn a_read_is_a_command_and_a_transfer_by_its_length() {
        let mut exchange = read(0, 1_000);
        exchange.status = Some(ResponseStatus::Nt(NtStatus::SUCCESS));
        exchange.length = Some(4_096);
        let facts: Vec<Fact> = facts_of(&exchange).iter().collect();
        assert_eq!(facts, [Fact::Command, Fact::Transfer, Fact::SmallTransfer]);
        exchange.length = Some(1 << 20);
        let facts: Vec<Fact> = facts_of(&exchange).iter().collect();
        assert_eq!(facts, [Fact::Command, Fact::Transfer, Fact::LargeTransfer]);
    }

    #[test]
    fn facts_fit_their_set() {
        assert!(Fact::ALL.len() <= 64);
        for (at, fact) in Fact::ALL.iter().enumerate() {
            assert_eq!(*fact as usize, at);
        }
    }
}
