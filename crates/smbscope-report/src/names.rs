//! Names of commands, subcommands and groups, for tables and for the classic report.

use smbscope_model::{Command, CommandGroup, Protocol, Subcommand};
use smbscope_stats::{Aggregate, CommandRow, CommandStatistics};

pub const OTHER: &str = "Other";

/// Returns the groups in the order of documents: name, group that includes it, and true if it counts in the headline.
/// `Other` is followed by its parts.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, Option<&'static str>, bool)> {
    CommandGroup::ALL.into_iter().flat_map(|group| {
        let other = (group == CommandGroup::OTHER[0]).then_some((OTHER, None, true));
        let part_of = group.is_other().then_some(OTHER);
        other.into_iter().chain([(group.name(), part_of, group.in_headline())])
    })
}

pub(crate) fn group_rows(
    aggregate: &Aggregate,
) -> impl Iterator<Item = (&'static str, Option<&'static str>, &CommandStatistics)> {
    let row = |name| match &aggregate.other {
        Some(other) if name == OTHER => Some(&other.row),
        _ => aggregate.groups.iter().find(|row| row.group.name() == name).map(|found| &found.row),
    };
    groups().filter_map(move |(name, part_of, _)| Some((name, part_of, row(name)?)))
}

/// Returns the name for a table whose heading states the protocol: `READ_ANDX`, `QUERY_DIRECTORY`.
pub(crate) fn command(command: Command) -> String {
    let name = command.to_string();
    name.strip_prefix("SMB_COM_").unwrap_or(&name).to_owned()
}

/// Returns the name of a subcommand below its command: `FIND_FIRST2`, `PIPE_TRANSCEIVE`, `FsSize`.
pub(crate) fn subcommand(subcommand: Subcommand) -> String {
    let name = subcommand.to_string();
    match subcommand {
        Subcommand::Trans2(_) => name.trim_start_matches("TRANS2_").to_owned(),
        Subcommand::NtTransact(_) => name.trim_start_matches("NT_TRANSACT_").to_owned(),
        Subcommand::Transaction(_) => name.trim_start_matches("TRANS_").to_owned(),
        Subcommand::Fsctl(_) => name.trim_start_matches("FSCTL_").to_owned(),
        Subcommand::Info(_) => name.trim_start_matches("File").replace("Information", ""),
        Subcommand::AndX(_) => name.replace("SMB_COM_", "").replace("_ANDX", ""),
        Subcommand::AsyncPortion | Subcommand::ServerInitiated => name,
    }
}

/// Returns the name in the classic report: `Read+X`. SMB2 names follow the same style: `Query_Directory`.
pub(crate) fn classic_command(command: Command) -> String {
    match command {
        Command::Smb1(code) => code.short_name().map_or_else(|| command.to_string(), str::to_owned),
        Command::Smb2(_) | Command::EncryptedFrame => title_case(&command.to_string()),
    }
}

/// Returns the name in the classic report: `Find_First2`.
pub(crate) fn classic_subcommand(subcommand: Subcommand) -> String {
    let known = match subcommand {
        Subcommand::Trans2(code) => code.short_name(),
        Subcommand::NtTransact(code) => code.short_name(),
        Subcommand::Transaction(code) => code.short_name(),
        Subcommand::AndX(chain) => {
            let followers = chain.iter().take_while(|command| command.0 != 0xff);
            let names: Vec<String> = followers.map(|command| classic_command(Command::Smb1(*command))).collect();
            return format!("+ {}", names.join(" + "));
        }
        _ => None,
    };
    match known {
        Some(name) => name.to_owned(),
        None if matches!(subcommand, Subcommand::Fsctl(_)) => title_case(&self::subcommand(subcommand)),
        None => self::subcommand(subcommand),
    }
}

/// Returns true if the subcommands add information: several of them, or one with a meaningful name.
pub(crate) fn shows_subcommands(row: &CommandRow) -> bool {
    match row.subcommands.as_slice() {
        [] => false,
        [only] => only.row.count < row.row.count || !matches!(only.subcommand, Subcommand::Info(_)),
        _ => true,
    }
}

pub(crate) fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Smb1 => "SMB1",
        Protocol::Smb2 => "SMB2/3",
    }
}

/// Converts `QUERY_DIRECTORY` to `Query_Directory`. Hexadecimal codes are kept.
fn title_case(name: &str) -> String {
    if name.starts_with("0x") {
        return name.to_owned();
    }
    let mut result = String::with_capacity(name.len());
    let mut at_start = true;
    for c in name.chars() {
        result.push(if at_start { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        at_start = c == '_';
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::names::{Fsctl, InfoLevel, Trans2};
    use smbscope_wire::{smb1, smb2};

    #[test]
    fn classic_names_are_those_of_the_paper() {
        let smb1 = |code| classic_command(Command::Smb1(smb1::Smb1Command(code)));
        assert_eq!([smb1(0x2e), smb1(0x1d), smb1(0x08)], ["Read+X", "Write_Raw", "Get_File_Attributes"]);
        assert_eq!(classic_subcommand(Subcommand::Trans2(Trans2(1))), "Find_First2");
        assert_eq!(classic_command(Command::Smb2(smb2::Smb2Command(14))), "Query_Directory");
        assert_eq!(classic_command(Command::Smb2(smb2::Smb2Command(0x99))), "0x0099");
    }

    #[test]
    fn names_in_tables_leave_out_what_the_heading_says() {
        assert_eq!(command(Command::Smb1(smb1::Smb1Command(0x2e))), "READ_ANDX");
        assert_eq!(subcommand(Subcommand::Fsctl(Fsctl(0x0011_c017))), "PIPE_TRANSCEIVE");
        assert_eq!(subcommand(Subcommand::Info(InfoLevel::FileSystem(3))), "FsSize");
        let chain = [smb1::Smb1Command(0x75), smb1::Smb1Command::NO_ANDX, smb1::Smb1Command::NO_ANDX];
        assert_eq!(subcommand(Subcommand::AndX(chain)), "+ TREE_CONNECT");
        assert_eq!(classic_subcommand(Subcommand::AndX(chain)), "+ Tree_Connect+X");
    }
}
