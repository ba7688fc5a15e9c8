//! Seeds for single messages: every command of both protocols, compressed frames, security tokens.

use super::streams::{conversations, said};
use smbscope_testkit::smb2;
use smbscope_wire::smb2::COMPRESSION_ID;
use smbscope_wire::{smb1 as wire1, smb2 as wire2};

type Named = Vec<(String, Vec<u8>)>;

/// Returns the conversations' messages with this protocol id, one per length, and bare messages of every command.
fn messages(id: [u8; 4], bare: impl Fn(u8) -> Option<(String, Vec<u8>)>) -> Named {
    let mut seeds: Named = (0..=255).filter_map(bare).collect();
    let mut lengths = std::collections::BTreeSet::new();
    for (name, conversation) in conversations() {
        for (index, frame) in said(&conversation).into_iter().map(|(_, _, frame)| frame).enumerate() {
            let message = frame.get(4..).unwrap_or_default();
            if message.starts_with(&id) && message.len() < 400 && lengths.insert(message.len()) {
                seeds.push((format!("{name}_{index:02}"), message.to_vec()));
            }
        }
    }
    seeds
}

/// SMB1 messages: a value in every position of words and data, so that offsets and lengths are plausible.
pub(crate) fn smb1() -> Named {
    messages(wire1::PROTOCOL_ID, |code| {
        let command = wire1::Smb1Command(code);
        let name = command.name()?.strip_prefix("SMB_COM_")?.to_lowercase();
        let mut bytes = Vec::from(wire1::PROTOCOL_ID);
        bytes.push(code);
        bytes.resize(wire1::Smb1Header::LENGTH, 0);
        // UTF-16 for every other command.
        bytes[10..12].copy_from_slice(&[0, if code % 2 == 0 { 0xc0 } else { 0x40 }]);
        let words = if name.contains("nt_trans") { 23 } else { 16 };
        bytes.push(words);
        bytes.extend((0..2 * words).map(|at| if at < 4 { 0xff * u8::from(at == 0) } else { at % 2 * 4 }));
        bytes.extend([40, 0, 4]);
        bytes.extend(b"a\0b\0\0\0c:\\d\0\0\0NT LM 0.12\0e\0f\0\0\0ghi");
        Some((name, bytes))
    })
}

/// SMB2 messages: offset fields point to the buffer, as in most requests.
pub(crate) fn smb2() -> Named {
    messages(wire2::PROTOCOL_ID, |code| {
        let command = wire2::Smb2Command(code.into());
        let name = command.name()?.to_lowercase();
        let mut bytes = Vec::from(wire2::PROTOCOL_ID);
        bytes.extend([64, 0, 1, 0, 0, 0, 0, 0, code, 0, 1, 0, 0, 0, 0, 0]);
        bytes.resize(wire2::Smb2Header::LENGTH, 0);
        bytes.resize(120, 1);
        for at in [68, 76, 108] {
            bytes[at..at + 4].copy_from_slice(&[120, 0, 8, 0]);
        }
        bytes.extend(b"n\0a\0m\0e\0");
        Some((name, bytes))
    })
}

/// Compressed messages: both layouts and every algorithm, with the examples of MS-XCA §3.
pub(crate) fn compression() -> Named {
    let message: Vec<u8> = smb2::create(1, "a.txt").into();
    let lz77 = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
    let mut huffman = vec![0; 256];
    for (at, byte) in [(0x30, 0x30), (0x31, 0x23), (0x80, 0x02), (0x8f, 0x20)] {
        huffman[at] = byte;
    }
    huffman.extend([0xa8, 0xdc, 0x00, 0x00, 0xff, 0x26, 0x01]);
    let lznt1 = [0x07, 0xb0, 0x08, b'a', b'b', b'c', 0x05, 0x20, b'd', b'e', 0, 0];
    let lz4 = [0x34, b'a', b'b', b'c', 3, 0, 0x10, b'z'];
    let pattern = [0x41, 0, 0, 0, 32, 0, 0, 0];
    let all: [(&str, u16, &[u8]); 6] = [
        ("none", 0, &message),
        ("lznt1", 1, &lznt1),
        ("lz77", 2, &lz77),
        ("huffman", 3, &huffman),
        ("pattern", 4, &pattern),
        ("lz4", 5, &lz4),
    ];
    let mut seeds = Vec::new();
    let mut chain = Vec::from(COMPRESSION_ID);
    chain.extend(600u32.to_le_bytes());
    for (index, (name, algorithm, data)) in all.into_iter().enumerate() {
        let mut frame = Vec::from(COMPRESSION_ID);
        frame.extend(300u32.to_le_bytes());
        frame.extend(algorithm.to_le_bytes());
        frame.extend([0, 0]);
        frame.extend(8u32.to_le_bytes());
        frame.extend(&message[..8]);
        frame.extend(data);
        seeds.push((name.to_owned(), frame));
        let sized = !matches!(algorithm, 0 | 4);
        chain.extend(algorithm.to_le_bytes());
        chain.extend(u16::from(index == 0).to_le_bytes());
        chain.extend((data.len() as u32 + 4 * u32::from(sized)).to_le_bytes());
        if sized {
            chain.extend(64u32.to_le_bytes());
        }
        chain.extend(data);
    }
    seeds.push(("chain".to_owned(), chain));
    seeds
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u16;
    match length {
        0..0x80 => [&[tag, length as u8][..], content].concat(),
        _ => [&[tag, 0x82][..], &length.to_be_bytes(), content].concat(),
    }
}

/// Security tokens: the three NTLM messages and Kerberos, bare and wrapped.
/// Files in each format, and the tokens of `security`.
pub(crate) fn keys() -> Named {
    let key = "07".repeat(16);
    let wireshark = format!("# comment\n0707070707070707,{key},{key},\n");
    let dumped = "07 07 07 07 07 07 07 07   07 07 07 07 07 07 07 07   ........ ........";
    let samba = format!(
        "  Session Id    [0000] 07 07 07 07 07 07 07 07                             ........\n  Session Key   [0000] \
         {dumped}\n  ServerIn Key  [0000] {dumped}\n[0010] {dumped}\n"
    );
    let smbinfo = "Session Id: 07 07 07 07 07 07 07 07\nSession Key: 07 07 07 07 07 07 07 07\n";
    let entry = [&[0, 1, 0, 1, b'R', 0, 1, b's', 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 23, 0, 16][..], &[7; 16]].concat();
    let keytab = [&[5, 2][..], &(entry.len() as u32).to_be_bytes(), &entry, &(-4i32).to_be_bytes(), &[0; 4]].concat();
    let mut seeds: Named = vec![
        ("wireshark".into(), wireshark.into()),
        ("samba".into(), samba.into()),
        ("smbinfo".into(), smbinfo.into()),
        ("keytab".into(), keytab),
        ("credentials".into(), "username = ann\npassword = secret\ndomain = D\n".into()),
    ];
    seeds.extend(security());
    seeds
}

pub(crate) fn security() -> Named {
    let negotiate = [&b"NTLMSSP\0"[..], &[1, 0, 0, 0, 7, 0x82, 8, 0xa2], &[0; 16]].concat();
    let mut challenge = b"NTLMSSP\0".to_vec();
    challenge.extend([2, 0, 0, 0, 4, 0, 4, 0, 32, 0, 0, 0, 1, 0, 0, 0]);
    challenge.extend([0; 8]);
    challenge.extend(b"D\0O\0");
    let authenticate = smb2::ntlm_authenticate("DOM", "user");
    let text = |text: &str| der(0x1b, text.as_bytes());
    let names = der(0x30, &[text("cifs"), text("server")].concat());
    let name = der(0x30, &[der(0xa0, &[2, 1, 2]), der(0xa1, &names)].concat());
    let ticket = der(0x61, &der(0x30, &[der(0xa1, &text("REALM")), der(0xa2, &name)].concat()));
    let request = der(0x6e, &der(0x30, &[der(0xa0, &[2, 1, 5]), der(0xa3, &ticket)].concat()));
    let kerberos_oid = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
    let kerberos = der(0x60, &[&kerberos_oid[..], &[1, 0], &request].concat());
    let spnego = |token: &[u8]| {
        let fields = der(0x30, &der(0xa2, &der(4, token)));
        der(0x60, &[&[6, 6, 0x2b, 6, 1, 5, 5, 2][..], &der(0xa0, &fields)].concat())
    };
    let answer = der(0xa1, &der(0x30, &der(0xa2, &der(4, &challenge))));
    vec![
        ("ntlm_negotiate".into(), negotiate.clone()),
        ("ntlm_challenge".into(), challenge),
        ("ntlm_authenticate".into(), authenticate.clone()),
        ("spnego_negotiate".into(), spnego(&negotiate)),
        ("spnego_challenge".into(), answer),
        ("spnego_authenticate".into(), spnego(&authenticate)),
        ("kerberos".into(), kerberos.clone()),
        ("spnego_kerberos".into(), spnego(&kerberos)),
        ("ap_req".into(), request),
    ]
}
