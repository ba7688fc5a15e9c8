//! Parses the first bytes of a frame: headers and names, never bulk data.

use crate::decryption::{DecryptResult, Decryptor, FlowKeys, Keys};
use crate::names::is_kept_whole;
use smbscope_model::{Dialect, FlowDirection};
use smbscope_wire::{CapturedName, RequestDetail, compression, smb1, smb2};

/// Bytes kept of a frame; later members are not parsed.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// Bytes decompressed of a frame.
pub(crate) const MAX_RECOVERED: usize = 64 * 1024;
/// Members of a compound; the rest is not parsed.
const MAX_COMPOUND: usize = 256;

#[derive(Debug, Clone)]
pub(crate) enum FrameContent {
    Smb1(Box<Message1>),
    Smb2 {
        members: Vec<Message2>,
        compressed: bool,
        cut: bool,
    },
    Encrypted {
        session_id: Option<u64>,
        nonce: Option<smb2::Nonce>,
    },
    /// In a COMPRESSION_TRANSFORM_HEADER that could not be decompressed.
    Opaque,
    /// No SMB header: data of Read_Raw or Write_Raw, or something unknown.
    Raw,
    /// An SMB protocol id whose header is truncated before the message id.
    Cut,
}

impl FrameContent {
    pub(crate) fn hides_messages(&self) -> bool {
        matches!(self, FrameContent::Smb2 { cut: true, .. } | FrameContent::Cut)
    }

    /// Returns true if the sender is the client. `None` if both sides send such frames.
    pub(crate) fn asks(&self) -> Option<bool> {
        match self {
            FrameContent::Smb2 { members, .. } => members.first().map(|member| !member.header.is_response()),
            FrameContent::Smb1(message) if message.header.is_reply() => Some(false),
            // Servers send oplock breaks without the reply flag; Samba also its interim response to Write_Raw.
            FrameContent::Smb1(message) => {
                let may_be_servers =
                    matches!(message.header.command, smb1::Smb1Command::LOCKING_ANDX | smb1::Smb1Command::WRITE_RAW);
                (!may_be_servers).then_some(true)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Message1 {
    pub(crate) header: smb1::Smb1Header,
    pub(crate) word_count: Option<u8>,
    pub(crate) chain: [smb1::Smb1Command; 3],
    pub(crate) body: Body1,
    pub(crate) chained: Vec<Body1>,
    /// Kept only with [`AnalyzerOptions::details`](crate::AnalyzerOptions), for the first command.
    pub(crate) detail: Option<Box<RequestDetail>>,
}

#[derive(Debug, Clone)]
pub(crate) enum RequestOrResponse<Q, A> {
    Request(Q),
    Response(A),
}

pub(crate) type Body1 = RequestOrResponse<smb1::Smb1Request, smb1::Smb1Response>;
pub(crate) type Body2 = RequestOrResponse<smb2::Smb2Request, smb2::Smb2Response>;

#[derive(Debug, Clone)]
pub(crate) struct Message2 {
    pub(crate) header: smb2::Smb2Header,
    pub(crate) length: u64,
    pub(crate) body: Body2,
    pub(crate) detail: Option<Box<RequestDetail>>,
    pub(crate) decrypted: bool,
}

impl Message1 {
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Body1> {
        std::iter::once(&self.body).chain(&self.chained)
    }

    pub(crate) fn cut_names(&self) -> impl Iterator<Item = usize> {
        let names = self.bodies().filter_map(|body| match body {
            RequestOrResponse::Request(smb1::Smb1Request::TreeConnect(name)) => Some(name),
            RequestOrResponse::Request(smb1::Smb1Request::Open { name, .. } | smb1::Smb1Request::Path(name)) => {
                name.as_ref()
            }
            RequestOrResponse::Request(smb1::Smb1Request::Transaction(transaction)) => transaction.path.as_ref(),
            _ => None,
        });
        names.filter(|name| !is_kept_whole(name)).map(|name| name.missing)
    }
}

impl Message2 {
    pub(crate) fn cut_name(&self) -> Option<usize> {
        use smb2::Smb2Request::{Create, Info, TreeConnect};
        match &self.body {
            RequestOrResponse::Request(TreeConnect(name) | Create { name, .. } | Info { new_name: Some(name), .. }) => {
                (!is_kept_whole(name)).then_some(name.missing)
            }
            _ => None,
        }
    }
}

/// Options and keys for reading the frames of one direction of a flow.
pub(crate) struct ContentReader<'k> {
    pub(crate) details: bool,
    pub(crate) decryptor: Option<Decryptor<'k>>,
}

impl<'k> ContentReader<'k> {
    pub(crate) fn new(
        details: bool,
        flow: Option<&'k mut FlowKeys>,
        shared: Option<&'k mut Keys>,
        direction: FlowDirection,
    ) -> ContentReader<'k> {
        let decryptor = flow.zip(shared).map(|(flow, shared)| Decryptor { flow, shared, direction });
        ContentReader { details, decryptor }
    }

    /// Returns the decrypted bytes of the message that was read last, which began with `head`. Empty if no key decrypts
    /// it though others of its flow were decrypted. `None` for messages that were read as they are.
    pub(crate) fn decrypted(&self, head: &[u8], content: &FrameContent) -> Option<&[u8]> {
        let decryptor = self.decryptor.as_ref().filter(|_| head.starts_with(&smb2::TRANSFORM_ID))?;
        match content {
            FrameContent::Encrypted { .. } => None,
            FrameContent::Cut => Some(&[]),
            _ => Some(&decryptor.shared.scratch),
        }
    }
}

pub(crate) enum FrameParseResult {
    Needs(usize),
    Done(FrameContent),
}

/// Parses `head`, the first bytes of a payload of `length` bytes. With `last_try`, parses as much as possible.
pub(crate) fn read(head: &[u8], length: u64, last_try: bool, reader: &mut ContentReader<'_>) -> FrameParseResult {
    match &mut reader.decryptor {
        None => read_plain(head, length, last_try, reader.details),
        Some(decryptor) => read_with_keys(head, length, last_try, reader.details, decryptor),
    }
}

/// Decrypts a TRANSFORM_HEADER's message as far as needed, and shows logons to the decryptor.
fn read_with_keys(
    head: &[u8],
    length: u64,
    last_try: bool,
    details: bool,
    decryptor: &mut Decryptor<'_>,
) -> FrameParseResult {
    let whole = usize::try_from(length).unwrap_or(usize::MAX);
    if head.starts_with(&smb2::TRANSFORM_ID) {
        return read_sealed(head, whole, last_try, details, decryptor);
    }
    let reading = read_plain(head, length, last_try, details);
    if let FrameParseResult::Done(FrameContent::Smb2 { members, .. }) = &reading
        && matches!(members.as_slice(), [member] if is_logon(member.header.command))
    {
        if head.len() < whole.min(MAX_HEAD) && !last_try {
            return FrameParseResult::Needs(whole.min(MAX_HEAD));
        }
        let message = &head[..head.len().min(whole)];
        decryptor.note_plain(message, message.len() == whole);
    }
    reading
}

/// Parses the message inside as if it came in the clear.
fn read_sealed(
    head: &[u8],
    length: usize,
    last_try: bool,
    details: bool,
    decryptor: &mut Decryptor<'_>,
) -> FrameParseResult {
    const HEADER: usize = smb2::TransformHeader::LENGTH;
    let least = length.min(HEADER + smb2::Smb2Header::LENGTH);
    if head.len() < least && !last_try {
        return FrameParseResult::Needs(least);
    }
    let header = smb2::TransformHeader::parse(head).filter(|_| head.len() >= HEADER && length >= HEADER);
    let (session_id, nonce) = header.map_or((None, None), |header| (header.session_id, header.nonce));
    let mut plain = std::mem::take(&mut decryptor.shared.scratch);
    let mut wanted = 0;
    let content = loop {
        let inner = match decryptor.decrypt(head, length, wanted, &mut plain) {
            DecryptResult::Plain(inner) => inner,
            DecryptResult::Damaged => break FrameContent::Cut,
            // Between messages that are decrypted, a frame cannot be paired by its size.
            DecryptResult::Unknown if header.is_none() && decryptor.is_proven() => break FrameContent::Cut,
            DecryptResult::Unknown => break FrameContent::Encrypted { session_id, nonce },
        };
        let is_all = plain.len() >= head.len() - HEADER;
        match read_plain(&plain, inner, is_all && last_try, details) {
            FrameParseResult::Needs(more) if is_all => {
                decryptor.shared.scratch = plain;
                return FrameParseResult::Needs(HEADER + more);
            }
            FrameParseResult::Needs(more) => wanted = more,
            FrameParseResult::Done(content) => break decrypted(content),
        }
    };
    decryptor.shared.scratch = plain;
    decryptor.count(session_id, matches!(content, FrameContent::Smb2 { .. } | FrameContent::Opaque));
    FrameParseResult::Done(content)
}

fn is_logon(command: smb2::Smb2Command) -> bool {
    matches!(command, smb2::Smb2Command::NEGOTIATE | smb2::Smb2Command::SESSION_SETUP)
}

fn decrypted(content: FrameContent) -> FrameContent {
    match content {
        FrameContent::Smb2 { mut members, compressed, cut } => {
            members.iter_mut().for_each(|member| member.decrypted = true);
            FrameContent::Smb2 { members, compressed, cut }
        }
        // A TRANSFORM_HEADER protects messages of SMB2 alone (MS-SMB2 §3.1.4.3).
        FrameContent::Smb1(_) | FrameContent::Raw | FrameContent::Encrypted { .. } => FrameContent::Cut,
        others => others,
    }
}

/// Parses a message as [`read`] does, without keys.
pub(crate) fn read_plain(head: &[u8], length: u64, last_try: bool, details: bool) -> FrameParseResult {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let reading = match head.get(..4) {
        None if length < 4 => FrameParseResult::Done(FrameContent::Raw),
        None => FrameParseResult::Needs(4),
        Some(id) if id == smb1::PROTOCOL_ID => read_smb1(head, length, last_try, details),
        Some(id) if id == smb2::PROTOCOL_ID => read_smb2_frame(head, length, last_try, details),
        Some(id) if id == smb2::TRANSFORM_ID => read_encrypted(head),
        Some(id) if id == smb2::COMPRESSION_ID => FrameParseResult::Needs(length.min(MAX_HEAD)),
        Some(_) => FrameParseResult::Done(FrameContent::Raw),
    };
    match reading {
        FrameParseResult::Needs(bytes) if !last_try && head.len() < bytes.min(length) => {
            FrameParseResult::Needs(bytes.min(length))
        }
        FrameParseResult::Needs(_) => FrameParseResult::Done(read_what_is_there(head, length, details)),
        done => done,
    }
}

fn read_what_is_there(head: &[u8], length: usize, details: bool) -> FrameContent {
    match head.get(..4) {
        Some(id) if id == smb1::PROTOCOL_ID => {
            smb1_message(head, length, details).map_or(FrameContent::Cut, FrameContent::Smb1)
        }
        Some(id) if id == smb2::PROTOCOL_ID => match read_smb2_frame(head, length, true, details) {
            FrameParseResult::Done(content) => content,
            FrameParseResult::Needs(_) => FrameContent::Cut,
        },
        Some(id) if id == smb2::TRANSFORM_ID => FrameContent::Encrypted { session_id: None, nonce: None },
        Some(id) if id == smb2::COMPRESSION_ID => decompressed(head, details),
        Some(_) => FrameContent::Raw,
        None => FrameContent::Cut,
    }
}

/// Reads the message of a frame, which a slim copy may hold decrypted.
fn read_smb2_frame(head: &[u8], length: usize, last_try: bool, details: bool) -> FrameParseResult {
    let Some(message) = smb2::decrypted_part(head) else { return read_smb2(head, length, last_try, details) };
    match read_smb2(message, length.saturating_sub(smb2::TransformHeader::LENGTH), last_try, details) {
        FrameParseResult::Done(content) => FrameParseResult::Done(decrypted(content)),
        needs => needs,
    }
}

fn read_encrypted(head: &[u8]) -> FrameParseResult {
    if smb2::is_marked(head, smb2::TransformHeader::SIGNATURE) {
        return FrameParseResult::Done(FrameContent::Cut);
    }
    match smb2::TransformHeader::parse(head) {
        Some(header) if head.len() >= smb2::TransformHeader::LENGTH => {
            FrameParseResult::Done(FrameContent::Encrypted { session_id: header.session_id, nonce: header.nonce })
        }
        _ => FrameParseResult::Needs(smb2::TransformHeader::LENGTH),
    }
}

fn decompressed(head: &[u8], details: bool) -> FrameContent {
    let chained = compression::looks_chained(head);
    let length = compression::parse_as(head, chained).map(|frame| frame.original_len());
    let recovered = compression::recover_prefix(head, chained, MAX_RECOVERED);
    let (Ok(length), Ok(message)) = (length, recovered) else { return FrameContent::Opaque };
    match read_smb2(&message, length, true, details) {
        FrameParseResult::Done(FrameContent::Smb2 { members, cut, .. }) => {
            let content = FrameContent::Smb2 { members, compressed: true, cut };
            if smb2::decrypted_part(&message).is_some() { decrypted(content) } else { content }
        }
        // Data without an SMB2 header was not decompressed correctly.
        _ => FrameContent::Opaque,
    }
}

fn read_smb1(head: &[u8], length: usize, last_try: bool, details: bool) -> FrameParseResult {
    let Some(header) = smb1::Smb1Header::parse(head) else { return FrameParseResult::Needs(33) };
    let more = if details && !header.is_reply() { smb1::detail_needed(&header, head) } else { 0 };
    let needed = smb1::needed(&header, head).max(more).min(length).min(MAX_HEAD);
    if head.len() < needed && !last_try {
        return FrameParseResult::Needs(needed);
    }
    FrameParseResult::Done(smb1_message(head, length, details).map_or(FrameContent::Cut, FrameContent::Smb1))
}

fn smb1_message(head: &[u8], length: usize, details: bool) -> Option<Box<Message1>> {
    let header = smb1::Smb1Header::parse(head)?;
    let is_cut = head.len() < smb1::needed(&header, head).min(length).min(MAX_HEAD);
    let missing = if is_cut { length.saturating_sub(head.len()) } else { 0 };
    let mut chain = [smb1::Smb1Command::NO_ANDX; 3];
    let mut bodies = Vec::new();
    let mut detail = None;
    for (index, block) in smb1::blocks(&header, head).enumerate() {
        if let Some(slot) = index.checked_sub(1).and_then(|slot| chain.get_mut(slot)) {
            *slot = block.command;
        }
        if details && index == 0 && !header.is_reply() {
            detail = smb1::detail(&block, head).map(Box::new);
        }
        bodies.push(body1(&header, &block, head, missing));
    }
    let mut bodies = bodies.into_iter();
    Some(Box::new(Message1 {
        header,
        word_count: head.get(smb1::Smb1Header::LENGTH).copied(),
        chain,
        body: bodies.next().unwrap_or(RequestOrResponse::Request(smb1::Smb1Request::Other)),
        chained: bodies.collect(),
        detail,
    }))
}

fn body1(header: &smb1::Smb1Header, block: &smb1::Block<'_>, message: &[u8], missing: usize) -> Body1 {
    if header.is_reply() {
        return RequestOrResponse::Response(smb1::Smb1Response::parse(block, message));
    }
    let mut request = smb1::Smb1Request::parse(header, block, message);
    if let (smb1::Smb1Request::Open { name: name @ None, .. } | smb1::Smb1Request::Path(name @ None), 1..) =
        (&mut request, missing)
    {
        *name = Some(CapturedName::hidden(missing));
    }
    RequestOrResponse::Request(request)
}

fn read_smb2(head: &[u8], length: usize, last_try: bool, details: bool) -> FrameParseResult {
    let mut members = Vec::with_capacity(1);
    let mut offset = 0;
    let mut cut = false;
    while members.len() < MAX_COMPOUND {
        let member = head.get(offset..).unwrap_or_default();
        let Some(header) = smb2::Smb2Header::parse(member) else {
            let whole = offset + smb2::Smb2Header::LENGTH;
            if member.len() >= smb2::Smb2Header::LENGTH || offset >= length {
                cut = true;
                break;
            }
            if !last_try && whole <= MAX_HEAD {
                return FrameParseResult::Needs(whole);
            }
            cut = true;
            break;
        };
        let end = match header.next_command as usize {
            0 => length,
            next => offset.saturating_add(next).min(length),
        };
        let needed = offset.saturating_add(needed(&header, member, details)).min(end).min(MAX_HEAD);
        if head.len() < needed && !last_try {
            return FrameParseResult::Needs(needed);
        }
        let bytes = &member[..member.len().min(end.saturating_sub(offset))];
        let missing = if head.len() < needed { end.saturating_sub(head.len()) } else { 0 };
        let detail = (details && !header.is_response()).then(|| smb2::detail(header.command, bytes)).flatten();
        members.push(Message2 {
            header,
            length: (end - offset) as u64,
            body: body2(&header, bytes, missing),
            detail: detail.map(Box::new),
            decrypted: false,
        });
        if header.next_command == 0 {
            break;
        }
        // A member shorter than its header can't point to another one.
        if (header.next_command as usize) < smb2::Smb2Header::LENGTH || end >= length {
            cut = true;
            break;
        }
        offset = end;
    }
    if members.is_empty() {
        return FrameParseResult::Done(FrameContent::Cut);
    }
    FrameParseResult::Done(FrameContent::Smb2 { members, compressed: false, cut })
}

fn needed(header: &smb2::Smb2Header, member: &[u8], details: bool) -> usize {
    if header.is_response() {
        smb2::Smb2Response::needed(header.command, member)
    } else {
        let more = if details { smb2::detail_needed(header.command, member) } else { 0 };
        smb2::Smb2Request::needed(header.command, member).max(smb2::Smb2Header::LENGTH).max(more)
    }
}

fn body2(header: &smb2::Smb2Header, member: &[u8], missing: usize) -> Body2 {
    if header.is_response() {
        return RequestOrResponse::Response(smb2::Smb2Response::parse(header.command, member));
    }
    RequestOrResponse::Request(match smb2::Smb2Request::parse(header.command, member) {
        smb2::Smb2Request::Other if missing > 0 && header.command == smb2::Smb2Command::CREATE => {
            smb2::Smb2Request::Create { name: CapturedName::hidden(missing), oplock_level: None }
        }
        request => request,
    })
}

/// Returns the dialect for an SMB1 dialect string (MS-CIFS §2.2.4.52.1, MS-SMB2 §3.3.5.3.1).
pub(crate) fn dialect_named(name: &str) -> Dialect {
    match name {
        "PC NETWORK PROGRAM 1.0" | "PCLAN1.0" => Dialect::Core,
        "MICROSOFT NETWORKS 1.03" | "XENIX CORE" => Dialect::CorePlus,
        "MICROSOFT NETWORKS 3.0" | "LANMAN1.0" => Dialect::Lanman1,
        "DOS LM1.2X002" | "LM1.2X002" => Dialect::Lanman2,
        "DOS LANMAN2.1" | "LANMAN2.1" | "Windows for Workgroups 3.1a" => Dialect::Lanman21,
        "NT LM 0.12" | "NT LANMAN 1.0" | "Samba" => Dialect::NtLm012,
        "SMB 2.002" => Dialect::Smb2(0x0202),
        "SMB 2.???" => Dialect::Smb2(0x02ff),
        _ => Dialect::OtherSmb1,
    }
}

/// Parses a frame from `here`, in place if possible, or collects it in `head`. `whole` is false if `here` is truncated.
pub(crate) fn gather(
    head: &mut Vec<u8>,
    wanted: &mut usize,
    here: &[u8],
    whole: bool,
    length: u32,
    reader: &mut ContentReader<'_>,
) -> Option<FrameContent> {
    if head.is_empty() {
        match read(here, u64::from(length), !whole, reader) {
            FrameParseResult::Done(content) => return Some(content),
            FrameParseResult::Needs(bytes) => *wanted = bytes,
        }
        head.extend_from_slice(&here[..here.len().min(MAX_HEAD)]);
        return None;
    }
    let mut here = here;
    loop {
        let missing = wanted.saturating_sub(head.len()).min(here.len());
        head.extend_from_slice(&here[..missing]);
        here = &here[missing..];
        let last_try = !whole && here.is_empty();
        if head.len() < *wanted && !last_try {
            return None;
        }
        match read(head, u64::from(length), last_try, reader) {
            FrameParseResult::Done(content) => return Some(content),
            FrameParseResult::Needs(bytes) if bytes > head.len() => *wanted = bytes,
            FrameParseResult::Needs(_) => return Some(last_reading(head, length, reader)),
        }
    }
}

pub(crate) fn last_reading(head: &[u8], length: u32, reader: &mut ContentReader<'_>) -> FrameContent {
    match read(head, u64::from(length), true, reader) {
        FrameParseResult::Done(content) => content,
        FrameParseResult::Needs(_) => FrameContent::Cut,
    }
}
