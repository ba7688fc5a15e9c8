//! Origin of a segment: the headers around it and the process that the capture names. A segment carries the number of
//! its origin; the table is shared with the threads that follow the segments.

use super::fields::{Enclosure, Fields, Stays};
use super::link::{ETHER_TYPES, LINK_TYPES};
use super::pseudo_header;
use crate::segment::OriginId;
use ahash::RandomState;
use serde::{Deserialize, Serialize};
use smbscope_model::{TunnelKind, TunnelPorts};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Origins of a capture; packets of others have none: `origins_left_out`.
const MAX_ORIGINS: usize = 8192;
/// Headers noted of a packet, outermost first.
const MAX_ENCLOSURES: usize = 12;
/// Bytes of a process name; the rest is cut off.
const MAX_PROCESS_NAME: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Origin {
    /// Headers around the packet other than Ethernet and IP, outermost first: `VLAN (802.1Q), VXLAN on UDP port 4789`.
    pub encapsulation: Option<Arc<str>>,
    /// Process as `name (id)`.
    pub process: Option<Arc<str>>,
}

/// Origins by number. Clones share the table.
#[derive(Debug, Clone, Default)]
pub struct Origins(Arc<Mutex<Vec<Origin>>>);

impl Origins {
    pub fn get(&self, id: OriginId) -> Origin {
        let index = usize::from(id.0).checked_sub(1);
        index.and_then(|index| self.table().get(index).cloned()).unwrap_or_default()
    }

    /// Returns the number of an origin, which is added if there is room.
    pub fn add(&self, origin: Origin) -> Option<OriginId> {
        let mut table = self.table();
        let place = match table.iter().position(|known| *known == origin) {
            Some(place) => place,
            None if table.len() < MAX_ORIGINS => {
                table.push(origin);
                table.len() - 1
            }
            None => return None,
        };
        Some(OriginId(place as u16 + 1))
    }

    pub fn to_vec(&self) -> Vec<Origin> {
        self.table().clone()
    }

    fn table(&self) -> MutexGuard<'_, Vec<Origin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Process as a capture describes it. Windows traces have only the id, and some formats only the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProcessKey {
    id: Option<u32>,
    name: [u8; MAX_PROCESS_NAME],
}

impl ProcessKey {
    fn new(id: Option<u32>, name: &[u8]) -> ProcessKey {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut key = ProcessKey { id, name: [0; MAX_PROCESS_NAME] };
        key.name.iter_mut().zip(name).for_each(|(kept, byte)| *kept = *byte);
        key
    }

    fn shown(&self) -> Option<Arc<str>> {
        let name = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        match (name.trim(), self.id) {
            ("", None) => None,
            ("", Some(id)) => Some(format!("PID {id}").into()),
            (name, None) => Some(name.into()),
            (name, Some(id)) => Some(format!("{name} ({id})").into()),
        }
    }
}

/// Headers and process of the packet that is being parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OriginKey {
    enclosures: [Option<Enclosure>; MAX_ENCLOSURES],
    process: Option<ProcessKey>,
}

/// Collects the origin of each packet that has one.
#[derive(Debug)]
pub(super) struct Trail {
    tunnels: TunnelPorts,
    enclosures: usize,
    has_process: bool,
    /// Offset of the latest frame of an aggregate, and the number of headers around all of them.
    aggregate: Option<(usize, usize)>,
    key: OriginKey,
    known: HashMap<OriginKey, OriginId, RandomState>,
    last: Option<(OriginKey, OriginId)>,
    origins: Origins,
}

impl Trail {
    pub(super) fn new(tunnels: TunnelPorts) -> Trail {
        Trail {
            tunnels,
            enclosures: 0,
            has_process: false,
            aggregate: None,
            key: OriginKey { enclosures: [None; MAX_ENCLOSURES], process: None },
            known: HashMap::default(),
            last: None,
            origins: Origins::default(),
        }
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Forgets the previous packet.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        if self.enclosures > 0 || self.has_process {
            self.key = OriginKey { enclosures: [None; MAX_ENCLOSURES], process: None };
            (self.enclosures, self.has_process, self.aggregate) = (0, false, None);
        }
    }

    /// Returns true if the packet is an 802.11 aggregate.
    #[inline(always)]
    pub(super) fn is_aggregate(&self) -> bool {
        self.enclosures > 0 && self.aggregate.is_some()
    }

    /// Moves on to the next frame of an aggregate and returns its offset.
    pub(super) fn next_in_aggregate(&mut self, data: &[u8]) -> Option<usize> {
        let (at, enclosures) = self.aggregate.take()?;
        let next = pseudo_header::next_in_aggregate(data, at)?;
        self.aggregate = Some((next, enclosures));
        self.key.enclosures.iter_mut().skip(enclosures).for_each(|header| *header = None);
        self.enclosures = enclosures;
        Some(next)
    }

    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.enclosures == 0 && !self.has_process
    }

    /// Returns the number of the packet's origin. `None` if the table is full.
    #[cold]
    pub(super) fn origin(&mut self) -> Option<OriginId> {
        if let Some((key, id)) = &self.last
            && *key == self.key
        {
            return Some(*id);
        }
        let id = match self.known.get(&self.key) {
            Some(id) => *id,
            None if self.known.len() < MAX_ORIGINS => {
                let id = self.origins.add(self.described())?;
                self.known.insert(self.key, id);
                id
            }
            None => return None,
        };
        self.last = Some((self.key, id));
        Some(id)
    }

    fn described(&self) -> Origin {
        let names: Vec<String> = self.key.enclosures.iter().flatten().filter_map(|header| header.shown()).collect();
        Origin {
            encapsulation: (!names.is_empty()).then(|| names.join(", ").into()),
            process: self.key.process.as_ref().and_then(ProcessKey::shown),
        }
    }
}

impl Fields for Trail {
    const RECORDS: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Option<&[u8]>, _: Stays) {}

    #[cold]
    fn pass(&mut self, header: Enclosure) {
        if let Some(place) = self.key.enclosures.get_mut(self.enclosures) {
            *place = Some(header);
            self.enclosures += 1;
        }
    }

    #[cold]
    fn note_aggregate(&mut self, at: usize) {
        // In a tunnel, the offset is the inner packet's.
        let around = self.key.enclosures.iter().take(self.enclosures);
        if around.flatten().all(|header| matches!(header, Enclosure::Link(_))) {
            self.aggregate.get_or_insert((at, self.enclosures));
        }
    }

    #[cold]
    fn note_process(&mut self, id: Option<u32>, name: &[u8]) {
        self.key.process = Some(ProcessKey::new(id, name));
        self.has_process = true;
    }

    fn declared_tunnel(&self, port: u16) -> Option<TunnelKind> {
        self.tunnels.kind(port)
    }
}

impl Enclosure {
    /// Returns the name in the lists of docs/formats.md. `None` for a header that another one names.
    fn shown(self) -> Option<String> {
        let listed = |list: &[(u16, &str)], number: u16| {
            list.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned())
        };
        match self {
            Enclosure::Link(number) => {
                let name = LINK_TYPES.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned());
                Some(name.unwrap_or_else(|| format!("link type {number}")))
            }
            Enclosure::EtherType(number) => {
                Some(listed(ETHER_TYPES, number).unwrap_or_else(|| format!("EtherType 0x{number:04x}")))
            }
            Enclosure::IpProtocol(number) => Some(match number {
                4 | 41 => "IP in IP".to_owned(),
                47 => "GRE".to_owned(),
                97 => "EtherIP".to_owned(),
                115 => "L2TPv3".to_owned(),
                137 => "MPLS in IP".to_owned(),
                other => format!("IP protocol {other}"),
            }),
            Enclosure::Gre(protocol) => match protocol {
                0x88be | 0x22eb => Some("ERSPAN".to_owned()),
                0x880b => Some("PPP".to_owned()),
                0x883e => Some("WCCP".to_owned()),
                _ => None,
            },
            Enclosure::Udp(kind, port) => Some(format!("{} on UDP port {port}", kind.title())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_names_headers_from_the_outside_and_the_process() {
        let mut trail = Trail::new(TunnelPorts::default());
        assert!(trail.is_plain());
        trail.pass(Enclosure::Link(258));
        trail.pass(Enclosure::EtherType(0x8100));
        trail.pass(Enclosure::Udp(TunnelKind::Vxlan, 4790));
        trail.note_process(Some(612), b"Finder\0rest");
        let id = trail.origin().expect("there is room");
        let Origin { encapsulation, process } = trail.origins().get(id);
        assert_eq!(encapsulation.as_deref(), Some("PKTAP, VLAN (802.1Q), VXLAN on UDP port 4790"));
        assert_eq!(process.as_deref(), Some("Finder (612)"));
        trail.clear();
        assert!(trail.is_plain());
        assert_eq!(trail.origins().get(OriginId(0)), Origin::default());
    }

    #[test]
    fn a_full_table_keeps_the_origins_it_has() {
        let mut trail = Trail::new(TunnelPorts::default());
        let mut id_of = |id: u32| {
            trail.clear();
            trail.note_process(Some(id), b"");
            trail.origin()
        };
        let ids: Vec<_> = (0..MAX_ORIGINS as u32).map(&mut id_of).collect();
        assert!(ids.iter().all(Option::is_some));
        assert_eq!((id_of(MAX_ORIGINS as u32), id_of(7)), (None, ids[7]));
    }
}
