//! Packets that are no TCP, in words: what they are, and whether SMB may be in them unseen.

use crate::Report;
use crate::format::{counted, thousands};
use crate::warnings::Warning;
use smbscope_model::SkippedPackets;

/// Protocols that one line names.
const NAMED: usize = 4;

/// From this share of the packets on, in percent, what may hide SMB is said beside the headline.
const NOTABLE_PERCENT: u64 = 1;

/// A warning for each protocol that may hide SMB, and one for the others together.
pub(crate) fn warnings(report: &Report) -> Vec<Warning> {
    let of_packets = Some((report.quality.packets, "packets")).filter(|(packets, _)| *packets > 0);
    let (hiding, others): (Vec<_>, Vec<_>) =
        report.skipped.iter().copied().partition(|skipped| skipped.protocol.may_carry_smb());
    let mut warnings: Vec<Warning> = hiding
        .iter()
        .map(|skipped| {
            let packets = if skipped.packets == 1 { "packet" } else { "packets" };
            let text = format!("{packets} not read, SMB may be in there: {}", skipped.protocol);
            Warning { text, count: Some(skipped.packets), share: of_packets }
        })
        .collect();
    let count: u64 = others.iter().map(|skipped| skipped.packets).sum();
    if count > 0 {
        let packets = if count == 1 { "packet" } else { "packets" };
        let text = format!("{packets} without TCP, not read: {}", list(&others));
        warnings.push(Warning { text, count: Some(count), share: of_packets });
    }
    warnings
}

/// That SMB may be in packets that could not be read, where these are more than a few.
pub(crate) fn hidden(report: &Report) -> Option<String> {
    let quality = &report.quality;
    let mut hiding: Vec<SkippedPackets> = report.skipped.clone();
    // Where most of the capture is no TCP, whatever it is, that is worth a word.
    if quality.not_tcp < quality.packets.saturating_sub(quality.not_tcp) {
        hiding.retain(|skipped| skipped.protocol.may_carry_smb());
    }
    let skipped: u64 = hiding.iter().map(|skipped| skipped.packets).sum();
    let cut = quality.headers_not_captured;
    if skipped + cut == 0 || (skipped + cut) * 100 < quality.packets * NOTABLE_PERCENT {
        return None;
    }
    let mut reasons = list(&hiding);
    if cut > 0 {
        let cut = counted(cut, "packet", "packets");
        let separator = if reasons.is_empty() { "" } else { "; " };
        reasons.push_str(&format!("{separator}the snap length cut {cut} off inside IP or TCP headers"));
    }
    Some(format!("{} of {} packets were not read: {reasons}", thousands(skipped + cut), thousands(quality.packets)))
}

/// `EtherType 0x0806 (ARP) 12, UDP port 53 (DNS) 7`.
fn list(skipped: &[SkippedPackets]) -> String {
    let mut names: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|SkippedPackets { protocol, packets }| format!("{protocol} {}", thousands(*packets)))
        .collect();
    if skipped.len() > NAMED {
        let more: u64 = skipped.iter().skip(NAMED).map(|skipped| skipped.packets).sum();
        names.push(format!("others {}", thousands(more)));
    }
    names.join(", ")
}
