//! Pseudonyms of the same length as the name: each character is replaced.
//!
//! Names of ASCII letters, digits and common punctuation never collide: their mapping is a permutation of all such
//! names of one length, whose hashes would soon collide. Other characters are replaced by a hash; names that contain
//! them collide with a probability of 49 to the power of minus their length.

use super::{PseudonymKey, is_kept};
use ahash::HashMap;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const WILDCARDS: [char; 5] = ['*', '?', '<', '>', '"'];
const SYMBOLS: &[u8; 49] = br"abcdefghijklmnopqrstuvwxyz0123456789-_. $~\()+,&'";
/// Replacements: no characters that begin or end a part of a name, and no upper case.
const DISGUISES: &[u8; 49] = br"abcdefghijklmnopqrstuvwxyz0123456789_()&;!#%^{}[]";
const SYMBOL_OF: [u8; 128] = {
    let mut places = [FOREIGN; 128];
    let mut place = 0;
    while place < SYMBOLS.len() {
        places[SYMBOLS[place] as usize] = place as u8;
        place += 1;
    }
    places
};
const FOREIGN: u8 = u8::MAX;
/// Feistel rounds: ten if halves are short enough for exhaustive search (NIST SP 800-38G), else four (Luby, Rackoff).
const ROUNDS_OF_SHORT: u8 = 10;
const ROUNDS: u8 = 4;
const SHORT: usize = 32;
/// Bytes of cached names and pseudonyms; then cleared.
const REMEMBERED_BYTES_MAX: usize = 16 << 20;
const PREFIXES: [&str; 2] = ["._", "~$"];
const COMMON_NAMES: [&str; 33] = [
    ".",
    "..",
    "ipc$",
    "pipe",
    "mailslot",
    "lanman",
    "browse",
    "srvsvc",
    "wkssvc",
    "lsarpc",
    "samr",
    "netlogon",
    "svcctl",
    "winreg",
    "spoolss",
    "epmapper",
    "atsvc",
    "browser",
    "ntsvcs",
    "eventlog",
    "mdssvc",
    "fssagentrpc",
    "desktop.ini",
    "thumbs.db",
    "autorun.inf",
    ".ds_store",
    "ntuser.dat",
    "ntuser.ini",
    "ntuser.pol",
    "$data",
    "afp_afpinfo",
    "afp_resource",
    "zone.identifier",
];

#[derive(Debug)]
pub struct Disguise {
    key: PseudonymKey,
    pub depth: bool,
    pub extensions: bool,
    remembered: HashMap<(u8, Vec<u16>), Vec<u16>>,
    remembered_bytes: usize,
    most_bytes: usize,
    pub(super) addresses: HashMap<std::net::IpAddr, std::net::IpAddr>,
}

/// Kind of a name. Equal names of different kinds get different pseudonyms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PseudonymKind {
    File,
    Host,
    Share,
    User,
    Domain,
}

impl Disguise {
    pub fn new(key: PseudonymKey, depth: bool, extensions: bool) -> Disguise {
        Disguise {
            key,
            depth,
            extensions,
            remembered: HashMap::default(),
            remembered_bytes: 0,
            most_bytes: REMEMBERED_BYTES_MAX,
            addresses: HashMap::default(),
        }
    }

    pub fn within(self, most_bytes: usize) -> Disguise {
        Disguise { most_bytes: most_bytes.min(REMEMBERED_BYTES_MAX), ..self }
    }

    pub(super) fn key(&self) -> &PseudonymKey {
        &self.key
    }

    pub fn path(&mut self, units: &mut [u16]) {
        let is_separator = |unit: &u16| *unit == u16::from(b'\\') || *unit == u16::from(b'/');
        if self.depth {
            return units.split_mut(is_separator).for_each(|name| self.file(name));
        }
        let start = units.iter().take_while(|unit| is_separator(unit)).count();
        let units = &mut units[start..];
        match units.iter().rposition(is_separator) {
            Some(last) => {
                let (directory, name) = units.split_at_mut(last);
                self.whole(PseudonymKind::File, directory);
                self.file(&mut name[1..]);
            }
            None => self.file(units),
        }
    }

    pub fn unc(&mut self, units: &mut [u16]) {
        let mut rest = units;
        for sort in [PseudonymKind::Host, PseudonymKind::Share] {
            let start = rest.iter().take_while(|unit| **unit == u16::from(b'\\')).count();
            rest = &mut rest[start..];
            let end = rest.iter().position(|unit| *unit == u16::from(b'\\')).unwrap_or(rest.len());
            let (name, behind) = rest.split_at_mut(end);
            self.name(sort, name);
            rest = behind;
        }
        self.path(rest);
    }

    pub fn name(&mut self, sort: PseudonymKind, units: &mut [u16]) {
        if !is_common(units) {
            self.whole(sort, units);
        }
    }

    fn file(&mut self, units: &mut [u16]) {
        let is_mark = |unit: &u16| {
            *unit == u16::from(b':') || WILDCARDS.iter().any(|wildcard| u32::from(*unit) == u32::from(*wildcard))
        };
        units.split_mut(is_mark).for_each(|part| self.part(part));
    }

    fn part(&mut self, units: &mut [u16]) {
        if is_common(units) {
            return;
        }
        let prefix = PREFIXES.iter().find(|prefix| units.iter().copied().take(2).eq(prefix.encode_utf16()));
        let units = &mut units[prefix.map_or(0, |prefix| prefix.len())..];
        let dot = units.iter().rposition(|unit| *unit == u16::from(b'.')).filter(|_| self.extensions);
        let end = dot.filter(|dot| is_extension(&units[dot + 1..])).unwrap_or(units.len());
        self.whole(PseudonymKind::File, &mut units[..end]);
    }

    fn whole(&mut self, sort: PseudonymKind, units: &mut [u16]) {
        let folded: Vec<u16> = units.iter().map(|unit| fold(*unit)).collect();
        let key = (sort as u8, folded);
        if let Some(known) = self.remembered.get(&key) {
            return units.copy_from_slice(known);
        }
        let disguised = disguised(&self.key, key.0, &key.1);
        self.remembered_bytes +=
            size_of::<((u8, Vec<u16>), Vec<u16>)>() + size_of_val(&*key.1) + size_of_val(&*disguised);
        if self.remembered_bytes > self.most_bytes {
            self.remembered = HashMap::default();
            self.remembered_bytes = 0;
        }
        units.copy_from_slice(&disguised);
        self.remembered.insert(key, disguised);
    }
}

fn fold(unit: u16) -> u16 {
    if let Ok(ascii @ ..0x80) = u8::try_from(unit) {
        return ascii.to_ascii_lowercase().into();
    }
    let Some(letter) = char::from_u32(unit.into()) else { return unit };
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => u16::try_from(u32::from(lower)).unwrap_or(unit),
        _ => unit,
    }
}

fn is_common(units: &[u16]) -> bool {
    let is = |name: &str| units.len() == name.len() && units.iter().map(|unit| fold(*unit)).eq(name.encode_utf16());
    units.is_empty() || COMMON_NAMES.iter().any(|name| is(name))
}

fn is_extension(units: &[u16]) -> bool {
    String::from_utf16(units).is_ok_and(|extension| is_kept(&extension))
}

/// Returns the pseudonym of the same length. Zero, which terminates names, is preserved.
fn disguised(key: &PseudonymKey, sort: u8, folded: &[u16]) -> Vec<u16> {
    let symbol = |unit: u16| SYMBOL_OF.get(usize::from(unit)).copied().filter(|place| *place != FOREIGN);
    let foreign: Vec<u8> =
        folded.iter().filter(|unit| symbol(**unit).is_none()).flat_map(|unit| unit.to_le_bytes()).collect();
    let mut symbols: Vec<u8> =
        folded.iter().map(|unit| symbol(*unit).unwrap_or((usize::from(*unit) % SYMBOLS.len()) as u8)).collect();
    let length = (folded.len() as u32).to_le_bytes();
    permute(key, key.digest(&[&[sort], &length, &foreign]), &mut symbols);
    let disguise = |(unit, symbol): (&u16, &u8)| match unit {
        0 => 0,
        _ => u16::from(DISGUISES[usize::from(*symbol)]),
    };
    folded.iter().zip(&symbols).map(disguise).collect()
}

/// Permutes the texts of a length with a Feistel network. `tweak` selects the permutation.
fn permute(key: &PseudonymKey, tweak: [u8; 32], symbols: &mut [u8]) {
    if let [symbol] = symbols {
        *symbol = substitute(tweak, *symbol);
        return;
    }
    let rounds = if symbols.len() < SHORT { ROUNDS_OF_SHORT } else { ROUNDS };
    let (left, right) = symbols.split_at_mut(symbols.len() / 2);
    for round in 0..rounds {
        let (from, into) = if round % 2 == 0 { (&*left, &mut *right) } else { (&*right, &mut *left) };
        add(key.digest(&[&tweak, &[round], from]), into);
    }
}

fn add(hash: [u8; 32], symbols: &mut [u8]) {
    const PER_BLOCK: usize = 16;
    for (block, symbols) in (0u64..).zip(symbols.chunks_mut(PER_BLOCK)) {
        let numbers = Sha256::new().chain_update(hash).chain_update(block.to_le_bytes()).finalize();
        for (symbol, number) in symbols.iter_mut().zip(numbers.chunks_exact(2)) {
            let sum = u32::from(*symbol) + u32::from(u16::from_le_bytes([number[0], number[1]]));
            *symbol = (sum % SYMBOLS.len() as u32) as u8;
        }
    }
}

fn substitute(hash: [u8; 32], symbol: u8) -> u8 {
    let [a, b, c, d, e, f, g, h, ..] = hash;
    // A factor has an inverse modulo 49 unless it is a multiple of 7.
    let factor = u32::from_le_bytes([a, b, c, d]) % 42;
    let factor = factor / 6 * 7 + factor % 6 + 1;
    let offset = u32::from_le_bytes([e, f, g, h]) % 49;
    ((factor * u32::from(symbol) + offset) % 49) as u8
}

/// Cached address pseudonyms; then cleared.
const REMEMBERED_ADDRESSES_MAX: usize = 64 << 10;

impl Disguise {
    /// Maps addresses one-to-one and preserves common prefixes. Addresses with a fixed meaning are unchanged.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.addresses.get(&address) {
            return *known;
        }
        let disguised = match address {
            IpAddr::V4(address) => IpAddr::V4(ipv4(self.key(), address)),
            IpAddr::V6(address) => IpAddr::V6(ipv6(self.key(), address)),
        };
        if self.addresses.len() >= REMEMBERED_ADDRESSES_MAX {
            self.addresses.clear();
        }
        self.addresses.insert(address, disguised);
        disguised
    }
}

const IPV4_MULTICAST: u32 = 4;
/// IPv6 multicast prefix with flags and scope (RFC 4291 §2.7), and prefix of a solicited-node address (§2.7.1).
const IPV6_MULTICAST: u32 = 16;
const SOLICITED_NODE: u32 = 104;
const LINK_LOCAL: u32 = 64;

fn ipv4(key: &PseudonymKey, address: Ipv4Addr) -> Ipv4Addr {
    // Assigned groups (224.0.0.0/24 and 224.0.1.0/24, RFC 5771) identify a protocol, not a host.
    let is_common = |address: Ipv4Addr| {
        let is_assigned = matches!(address.octets(), [224, 0, 0 | 1, _]);
        address.is_unspecified() || address.is_loopback() || is_assigned || address.is_broadcast()
    };
    if is_common(address) {
        return address;
    }
    let from = if address.is_multicast() { IPV4_MULTICAST } else { 0 };
    let disguise = |address: Ipv4Addr| {
        let bits = bits(key, u128::from(address.to_bits()) << 96, from, 32);
        Ipv4Addr::from_bits((bits >> 96) as u32)
    };
    let is_alike = |other: Ipv4Addr| !is_common(other) && other.is_multicast() == address.is_multicast();
    let mut disguised = disguise(address);
    // Cycle walking: repeat until the result is of the same kind, which keeps the mapping one-to-one.
    while !is_alike(disguised) {
        disguised = disguise(disguised);
    }
    disguised
}

fn ipv6(key: &PseudonymKey, address: Ipv6Addr) -> Ipv6Addr {
    let from = kept_bits(address);
    if from == 128 {
        return address;
    }
    let mut disguised = Ipv6Addr::from_bits(bits(key, address.to_bits(), from, 128));
    while kept_bits(disguised) != from {
        disguised = Ipv6Addr::from_bits(bits(key, disguised.to_bits(), from, 128));
    }
    disguised
}

fn kept_bits(address: Ipv6Addr) -> u32 {
    match address.segments() {
        _ if address.is_unspecified() || address.is_loopback() => 128,
        [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _] => SOLICITED_NODE,
        // Permanently assigned groups: flags are 0, and the group is a small number.
        [0xff00..=0xff0f, 0, 0, 0, 0, 0, 0 | 1, _] => 128,
        [0xff00..=0xffff, ..] => IPV6_MULTICAST,
        _ if address.is_unicast_link_local() => LINK_LOCAL,
        _ => 0,
    }
}

/// Flips each bit depending on a hash of the bits before it, so that two addresses share a prefix of the same length as
/// before (J. Fan, J. Xu, M. Ammar, S. Moon: Prefix-preserving IP address anonymization, 2004).
fn bits(key: &PseudonymKey, address: u128, from: u32, until: u32) -> u128 {
    let family = [until as u8];
    (from..until).fold(address, |disguised, bit| {
        let prefix = if bit == 0 { 0 } else { address >> (128 - bit) };
        let hash = key.digest(&[b"address", &family, &[bit as u8], &prefix.to_le_bytes()]);
        disguised ^ u128::from(hash[0] & 1) << (127 - bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn disguise(depth: bool, extensions: bool) -> Disguise {
        Disguise::new(PseudonymKey::new([7; 32]), depth, extensions)
    }

    fn changed(text: &str, change: impl FnOnce(&mut [u16])) -> String {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        change(&mut units);
        String::from_utf16(&units).expect("disguises are ASCII")
    }

    #[test]
    fn short_names_never_fall_together() {
        let mut names = disguise(true, true);
        let one = SYMBOLS.iter().map(|symbol| vec![u16::from(*symbol)]);
        let two =
            SYMBOLS.iter().flat_map(|first| SYMBOLS.iter().map(|second| vec![u16::from(*first), u16::from(*second)]));
        let disguised: BTreeSet<Vec<u16>> = one
            .chain(two)
            .map(|mut name| {
                names.whole(PseudonymKind::File, &mut name);
                name
            })
            .collect();
        assert_eq!(disguised.len(), 49 + 49 * 49);
    }

    #[test]
    fn memory_of_names_is_bounded_in_bytes_and_forgetting_changes_no_name() {
        let mut names = disguise(true, true).within(64 << 10);
        let name = |number: u32| format!("{number:0>5000}");
        let hidden: Vec<String> = (0..40).map(|number| changed(&name(number), |units| names.path(units))).collect();
        assert!(names.remembered_bytes <= 64 << 10, "{}", names.remembered_bytes);
        assert!(names.remembered.values().map(|name| 4 * name.len()).sum::<usize>() <= 64 << 10);
        let distinct: BTreeSet<&String> = hidden.iter().collect();
        assert_eq!(distinct.len(), hidden.len());
        assert_eq!(changed(&name(0), |units| names.path(units)), hidden[0]);
    }

    #[test]
    fn names_that_differ_in_one_character_share_nothing() {
        let mut names = disguise(true, true);
        let [one, other] = ["quarterly figures of the northern branch", "quarterly figures of the northern branci"]
            .map(|name| changed(name, |units| names.path(units)));
        let same = one.bytes().zip(other.bytes()).filter(|(one, other)| one == other).count();
        assert!(same < 8, "{one} {other}");
    }

    #[test]
    fn case_makes_no_difference_and_length_stays() {
        let mut names = disguise(true, false);
        let hidden = changed(r"Clients\Miller\offer.docx", |units| names.path(units));
        assert_eq!(hidden.len(), r"Clients\Miller\offer.docx".len());
        assert_eq!(hidden.split('\\').count(), 3);
        assert_eq!(hidden.split('\\').map(str::len).collect::<Vec<_>>(), [7, 6, 10]);
        assert_eq!(changed(r"CLIENTS\miller\OFFER.DOCX", |units| names.path(units)), hidden);
        assert!(!hidden.contains('.') && !hidden.contains("Miller"), "{hidden}");
        assert_eq!(changed("ÄRGER", |units| names.path(units)), changed("ärger", |units| names.path(units)));
    }

    #[test]
    fn depth_and_extensions_stay_only_where_that_is_asked_for() {
        let path = r"\a\b\report.docx";
        let hidden = changed(path, |units| disguise(false, true).path(units));
        assert_eq!(hidden.matches('\\').count(), 2, "one in front, and the file's own: {hidden}");
        assert!(hidden.ends_with(".docx"));
        let deep = changed(path, |units| disguise(true, false).path(units));
        assert!(deep.matches('\\').count() == 3 && !deep.contains('.'), "{deep}");
    }

    #[test]
    fn names_that_say_what_something_is_for_stay() {
        let mut names = disguise(true, true);
        assert_eq!(changed(r"\\files\IPC$", |units| names.unc(units)).split('\\').next_back(), Some("IPC$"));
        let share = changed(r"\\files\projects", |units| names.unc(units));
        assert!(share.starts_with(r"\\") && !share.contains("files") && !share.contains("projects"), "{share}");
        assert_eq!(changed(r"Desktop.ini", |units| names.path(units)), "Desktop.ini");
        assert!(changed("~$offer.docx", |units| names.path(units)).starts_with("~$"));
        assert_eq!(changed("*.doc", |units| names.path(units)), "*.doc");
        let pattern = changed("miller*.doc", |units| names.path(units));
        assert!(pattern.ends_with("*.doc") && !pattern.contains("miller"), "{pattern}");
    }

    fn any_disguise() -> Disguise {
        Disguise::new(PseudonymKey::new([7; 32]), true, true)
    }

    #[test]
    fn addresses_of_a_network_stay_together_and_no_two_become_one() {
        let mut names = any_disguise();
        let network: Vec<IpAddr> = (0..=255).map(|host| names.address(IpAddr::from([10, 1, 2, host]))).collect();
        let prefix = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.octets()[..3].to_vec(),
            IpAddr::V6(_) => Vec::new(),
        };
        assert!(network.iter().all(|address| prefix(address) == prefix(&network[0])));
        let distinct: std::collections::BTreeSet<&IpAddr> = network.iter().collect();
        assert_eq!(distinct.len(), 256);
        assert_ne!(prefix(&network[0]), [10, 1, 2]);
    }

    #[test]
    fn multicast_addresses_that_hold_those_of_hosts_or_sites_are_hidden() {
        let mut names = any_disguise();
        // Solicited node (RFC 4291 §2.7.1), by a prefix of unicast addresses (RFC 3306), by an AS number (RFC 3180), of
        // an organisation (RFC 2365), and one of 240.0.0.0/4, which some sites use.
        for (address, kept) in [
            ("ff02::1:ff0a:b0c1", "ff02::1:ff"),
            ("ff3e:30:2001:db8:77::1", "ff3e:"),
            ("233.252.18.77", ""),
            ("239.18.77.3", ""),
            ("241.18.77.3", ""),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let disguised = names.address(address);
            assert_ne!(disguised, address);
            assert_eq!(disguised.is_multicast(), address.is_multicast(), "{disguised}");
            assert!(disguised.to_string().starts_with(kept), "{disguised}");
        }
    }

    #[test]
    fn what_is_the_same_everywhere_stays() {
        let mut names = any_disguise();
        for address in ["127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.251", "::1", "ff02::fb"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(names.address(address), address);
        }
        let local: IpAddr = "fe80::1".parse().unwrap();
        let IpAddr::V6(disguised) = names.address(local) else { panic!() };
        assert!(disguised.is_unicast_link_local() && IpAddr::V6(disguised) != local);
    }
}
