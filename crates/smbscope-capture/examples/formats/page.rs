//! Generates the lists in docs/formats.md from the tables of the reader and the decoder.

use smbscope_capture::decode::{ETHER_TYPES, LINK_TYPES, TUNNEL_PORTS};
use smbscope_capture::reader::{FOREIGN_FORMATS, FORMATS, RECOGNISED_FORMATS};
use smbscope_model::TunnelKind;
use smbscope_testkit::generated::replaced;
use std::collections::BTreeMap;

/// Headings around each list.
const FILES: (&str, &str) = ("\n## Files\n", "\n## Files to convert\n");
const FOREIGN: (&str, &str) = ("\n## Files to convert\n", "\n## Link types\n");
const LINKS: (&str, &str) = ("\n## Link types\n", "\n## Tags\n");
const TAGS: (&str, &str) = ("\n## Tags\n", "\n## Tunnels\n");
const TUNNELS: (&str, &str) = ("\n## Tunnels\n", "\n## Proxies\n");

/// Returns the page with up-to-date lists.
pub(crate) fn updated(page: &str) -> String {
    let lists = [(FILES, files()), (FOREIGN, foreign()), (LINKS, links()), (TAGS, tags()), (TUNNELS, tunnels())];
    lists.iter().fold(page.to_owned(), |page, ((from, to), list)| replaced(&page, from, to, list))
}

fn files() -> String {
    let rows = FORMATS.iter().map(|(name, writers)| format!("|{name}|{writers}|\n"));
    let rows: String = rows.collect();
    format!("\nPlain or as gzip, zstd, lz4 or xz; recognised by content.\n\n|format|written by|\n|---|---|\n{rows}")
}

fn foreign() -> String {
    let named = FOREIGN_FORMATS.iter().map(|(_, name, converter)| (*name, *converter));
    // A format may have several magic numbers.
    let all: BTreeMap<&str, &str> = named.chain(RECOGNISED_FORMATS.iter().copied()).collect();
    let mut by_converter: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    all.iter().for_each(|(name, converter)| by_converter.entry(converter).or_default().push(name));
    let rows = by_converter.iter().map(|(converter, names)| format!("|{}|`{converter}`|\n", names.join(", ")));
    let rows: String = rows.collect();
    format!("\nThe error names the format and the command that converts it.\n\n|format|converter|\n|---|---|\n{rows}")
}

fn links() -> String {
    let rows: String = LINK_TYPES.iter().map(|(number, name)| format!("|{number}|{name}|\n")).collect();
    format!(
        "\nNumbers of the [registry](https://www.tcpdump.org/linktypes.html), LINKTYPE_*. PKTAP, PPI and ERF contain\n\
         another one.\n\n|number|link type|\n|---:|---|\n{rows}"
    )
}

fn tags() -> String {
    let rows: String = ETHER_TYPES.iter().map(|(number, name)| format!("|0x{number:04x}|{name}|\n")).collect();
    format!("\nHeaders between Ethernet and IP.\n\n|EtherType|header|\n|---|---|\n{rows}")
}

fn tunnels() -> String {
    let kinds: Vec<String> = TunnelKind::ALL.iter().map(|kind| format!("`{kind}`")).collect();
    let rows: String = TUNNEL_PORTS.iter().map(|(port, kind)| format!("|{port}|{}|\n", kind.title())).collect();
    format!(
        "\nOver IP: GRE (also ERSPAN I to III, PPTP, NVGRE, WCCP), IP in IP, EtherIP, L2TPv3, MPLS, and the\n\
         authentication header. Over UDP:\n\n|port|tunnel|\n|---:|---|\n{rows}|any|VXLAN, VXLAN-GPE, GENEVE, GUE, IP: \
         recognised by the headers of IP and TCP inside|\n\n\
         `--tunnel-port PORT=KIND` declares the tunnel on another port, if the packets inside are cut or of a kind that \
         is not recognised: {}.\n",
        kinds.join(", ")
    )
}
