//! Seeds by target.

mod captures;
mod messages;
mod streams;

/// Returns target, name and bytes of every seed.
pub(crate) fn all() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |target, named: Vec<(String, Vec<u8>)>| {
        seeds.extend(named.into_iter().map(|(name, bytes)| (target, name, bytes)));
    };
    add("pcap", captures::pcap());
    add("pcapng", captures::pcapng());
    add("snoop", captures::snoop());
    add("netmon", captures::netmon());
    add("erf", captures::erf());
    add("compressed", captures::compressed());
    add("packets", captures::packets());
    add("reassembly", streams::reassembly());
    add("smb1", messages::smb1());
    add("smb1_stream", streams::smb1());
    add("smb2", messages::smb2());
    add("smb2_stream", streams::smb2());
    add("sealed_stream", streams::sealed());
    add("keys", messages::keys());
    add("compression", messages::compression());
    add("security", messages::security());
    add("pipeline", captures::pipeline());
    seeds
}
