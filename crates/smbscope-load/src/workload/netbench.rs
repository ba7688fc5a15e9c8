//! Generates a loadfile with the operation mix of the NetBench Disk Mix from published counts, without copying any
//! other loadfile.
//!
//! A pass deals a shuffled deck with the right number of each kind of work: opens without I/O, for reading, for writing
//! and for both; requests for missing names; searches, renames and removals. A user starts with an empty directory and
//! creates the working set. A pass restores the state it found, because it removes what it creates and undoes its
//! renames, so the next one can follow at once.

use super::draw::SizeDistribution;
use smbscope_stats::Random;
use std::fmt::Write;

mod mix {
    pub(super) const OPERATIONS: u64 = 458_344;
    pub(super) const READ: u64 = 124_199;
    pub(super) const CREATE: u64 = 79_230;
    pub(super) const QUERY_PATH: u64 = 71_814;
    pub(super) const WRITE: u64 = 39_502;
    pub(super) const FIND: u64 = 27_765;
    pub(super) const UNLINK: u64 = 16_000;
    pub(super) const QUERY_FS: u64 = 13_168;
    pub(super) const QUERY_FILE: u64 = 12_585;
    pub(super) const SET_FILE: u64 = 6_454;
    pub(super) const FLUSH: u64 = 5_553;
    pub(super) const RENAME: u64 = 3_355;
    pub(super) const LOCK: u64 = 258;

    /// Failures per thousand creates, path queries and searches.
    pub(super) const CREATE_NOTHING: u64 = 265;
    pub(super) const QUERY_NOTHING: u64 = 340;
    pub(super) const FIND_NOTHING: u64 = 520;

    /// Opens per hundred that read, write or do both; the rest do neither.
    pub(super) const OPENS_READ: u64 = 37;
    pub(super) const OPENS_WRITE: u64 = 13;
    pub(super) const OPENS_BOTH: u64 = 13;

    /// Files of a user, and their total size in bytes.
    pub(super) const FILES: usize = 146;
    pub(super) const WORKING_SET: u64 = 24_200_000;
}

const PASS: u64 = 3_543;
const DIRECTORIES: [&str; 6] = ["sheet", "text", "slides", "draw", "table", "layout"];
const BLOCK: u64 = 65_536;
const SMALLEST_FILE: u64 = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetbenchLike {
    pub seed: u64,
    /// Divisor for the working set of 24.2 MB per user. Reads and writes keep their sizes unless a file is smaller.
    pub scale: u32,
    /// Number of different passes before the sequence repeats.
    pub passes: u32,
}

impl Default for NetbenchLike {
    /// 3 MB per user: 32 users set up in seconds.
    fn default() -> NetbenchLike {
        NetbenchLike { seed: 1, scale: 8, passes: 4 }
    }
}

pub(super) fn generate(settings: NetbenchLike) -> (String, u32) {
    let mut share = NetbenchGenerator {
        random: Random::new(&[settings.seed, 0x6e62]),
        text: String::new(),
        lines: 0,
        handle: 9000,
        named: 0,
        files: Vec::new(),
        temporary: Vec::new(),
        renamed: None,
        unlinks_owed: 0,
    };
    share.set_up(mix::WORKING_SET / u64::from(settings.scale.max(1)));
    let first = share.lines + 1;
    for _ in 0..settings.passes.max(1) {
        share.pass();
    }
    (share.text, first)
}

/// The text so far, and the state of the user's directory at its end.
struct NetbenchGenerator {
    random: Random,
    text: String,
    lines: u32,
    handle: u32,
    named: u32,
    files: Vec<NetbenchFile>,
    temporary: Vec<NetbenchFile>,
    /// A renamed file (with its original name) and its current name.
    renamed: Option<(NetbenchFile, String)>,
    unlinks_owed: u64,
}

#[derive(Clone)]
struct NetbenchFile {
    name: String,
    size: u64,
}

#[derive(Clone, Copy)]
enum Card {
    Visit { reads: f64, writes: f64 },
    Create { writes: f64 },
    Lock,
    OpenNothing,
    Query,
    QueryNothing,
    Find,
    FindNothing,
    QueryFs,
    Rename,
    Unlink,
}

macro_rules! emit {
    ($share:expr, $($part:tt)*) => {{
        let _ = writeln!($share.text, $($part)*);
        $share.lines += 1;
    }};
}

impl NetbenchGenerator {
    fn set_up(&mut self, working_set: u64) {
        emit!(self, r#"Deltree "\clients\client1" NT_STATUS_OK"#);
        emit!(self, r#"Mkdir "\clients" NT_STATUS_OK"#);
        for directory in
            ["", r"\~work"].map(str::to_owned).into_iter().chain(DIRECTORIES.map(|name| format!(r"\~work\{name}")))
        {
            self.handle += 1;
            emit!(self, r#"NTCreateX "\clients\client1{directory}" 0x1 0x2 {} NT_STATUS_OK"#, self.handle);
            self.close();
        }
        for size in file_sizes(working_set) {
            let name = self.new_name();
            self.open(&name, 2);
            // As recorded: first the size, by writing the last byte, then the content.
            self.write(size - 1, 1);
            for offset in (0..size).step_by(BLOCK as usize) {
                self.write(offset, BLOCK.min(size - offset));
            }
            self.close();
            self.files.push(NetbenchFile { name, size });
        }
    }

    fn pass(&mut self) {
        let mut deck = deck();
        for last in (1..deck.len()).rev() {
            let other = self.random.below(last as u64 + 1) as usize;
            deck.swap(last, other);
        }
        for card in deck {
            self.play(card);
        }
        if self.renamed.is_some() {
            self.rename();
        }
        while !self.temporary.is_empty() {
            self.unlink();
        }
        self.unlinks_owed = 0;
    }

    fn play(&mut self, card: Card) {
        match card {
            Card::Visit { reads, writes } => self.visit(reads, writes),
            Card::Create { writes } => self.create(writes),
            Card::Lock => self.lock(),
            Card::OpenNothing => {
                self.handle += 1;
                let (name, handle) = (self.absent_name(), self.handle);
                emit!(self, r#"NTCreateX "{name}" 0x40 0x1 {handle} NT_STATUS_OBJECT_NAME_NOT_FOUND"#);
            }
            Card::Query => {
                let name = self.pick(0).name;
                let level = if self.random.below(5) < 3 { 1004 } else { 1035 };
                emit!(self, r#"QUERY_PATH_INFORMATION "{name}" {level} NT_STATUS_OK"#);
            }
            Card::QueryNothing => {
                let name = self.absent_name();
                emit!(self, r#"QUERY_PATH_INFORMATION "{name}" 1004 NT_STATUS_OBJECT_NAME_NOT_FOUND"#);
            }
            Card::Find => {
                let directory = DIRECTORIES[self.random.below(DIRECTORIES.len() as u64) as usize];
                emit!(self, r#"FIND_FIRST "\clients\client1\~work\{directory}\*" 260 1366 10 NT_STATUS_OK"#);
            }
            Card::FindNothing => {
                emit!(self, r#"FIND_FIRST "\clients\client1\~work\<.JNK" 260 1366 0 NT_STATUS_NO_SUCH_FILE"#);
            }
            Card::QueryFs => emit!(self, "QUERY_FS_INFORMATION 259 NT_STATUS_OK"),
            Card::Rename => self.rename(),
            Card::Unlink if self.temporary.is_empty() => self.unlinks_owed += 1,
            Card::Unlink => self.unlink(),
        }
    }

    fn visit(&mut self, reads: f64, writes: f64) {
        let reads: Vec<u64> = (0..self.times(reads)).map(|_| read_sizes().draw(&mut self.random)).collect();
        let writes: Vec<u64> = (0..self.times(writes)).map(|_| write_sizes().draw(&mut self.random)).collect();
        let file = self.pick(reads.iter().chain(&writes).copied().max().unwrap_or(0));
        self.open(&file.name, 1);
        let mut offset = 0;
        for length in reads {
            let length = length.min(file.size);
            if offset + length > file.size {
                offset = 0;
            }
            emit!(self, "ReadX {} {offset} {length} {length} NT_STATUS_OK", self.handle);
            offset += length;
        }
        let written = !writes.is_empty();
        for length in writes {
            let length = length.min(file.size);
            let offset = self.random.below((file.size - length) / 512 + 1) * 512;
            self.write(offset, length);
        }
        self.on_handle(written);
        self.close();
    }

    fn create(&mut self, writes: f64) {
        let name = self.new_name();
        self.open(&name, 2);
        let mut size = 0;
        let writes = self.times(writes);
        for _ in 0..writes {
            let length = write_sizes().draw(&mut self.random);
            self.write(size, length);
            size += length;
        }
        self.on_handle(writes > 0);
        self.close();
        self.temporary.push(NetbenchFile { name, size });
        if self.unlinks_owed > 0 {
            self.unlinks_owed -= 1;
            self.unlink();
        }
    }

    fn lock(&mut self) {
        let name = self.pick(0).name;
        self.open(&name, 1);
        emit!(self, "LockX {} 2147483538 1 NT_STATUS_OK", self.handle);
        emit!(self, "UnlockX {} 2147483538 1 NT_STATUS_OK", self.handle);
        self.close();
    }

    fn rename(&mut self) {
        let (file, from, to) = match self.renamed.take() {
            Some((file, other)) => (file.clone(), other, file.name),
            None => {
                let index = self.random.below(self.files.len() as u64) as usize;
                let file = self.files.swap_remove(index);
                let (from, to) = (file.name.clone(), self.new_name());
                (file, from, to)
            }
        };
        emit!(self, r#"Rename "{from}" "{to}" NT_STATUS_OK"#);
        if to == file.name {
            self.files.push(file);
        } else {
            self.renamed = Some((file, to));
        }
    }

    fn unlink(&mut self) {
        let index = self.random.below(self.temporary.len() as u64) as usize;
        let name = self.temporary.swap_remove(index).name;
        emit!(self, r#"Unlink "{name}" 0x6 NT_STATUS_OK"#);
    }

    /// Emits the other operations on open files: spread evenly over opens, flushes over those that wrote.
    fn on_handle(&mut self, written: bool) {
        let opens = mix::CREATE as f64 * (1.0 - mix::CREATE_NOTHING as f64 / 1000.0);
        let written_opens = opens * (mix::OPENS_WRITE + mix::OPENS_BOTH) as f64 / 100.0;
        for _ in 0..self.times(mix::QUERY_FILE as f64 / opens) {
            let level = if self.random.below(5) < 3 { 258 } else { 1004 };
            emit!(self, "QUERY_FILE_INFORMATION {} {level} NT_STATUS_OK", self.handle);
        }
        for _ in 0..self.times(mix::SET_FILE as f64 / opens) {
            emit!(self, "SET_FILE_INFORMATION {} 1004 NT_STATUS_OK", self.handle);
        }
        for _ in 0..if written { self.times(mix::FLUSH as f64 / written_opens) } else { 0 } {
            emit!(self, "Flush {} NT_STATUS_OK", self.handle);
        }
    }

    fn open(&mut self, name: &str, disposition: u8) {
        self.handle += 1;
        emit!(self, r#"NTCreateX "{name}" 0x40 0x{disposition} {} NT_STATUS_OK"#, self.handle);
    }

    fn close(&mut self) {
        emit!(self, "Close {} NT_STATUS_OK", self.handle);
    }

    fn write(&mut self, offset: u64, length: u64) {
        emit!(self, "WriteX {} {offset} {length} {length} NT_STATUS_OK", self.handle);
    }

    /// Picks a file of at least this size, or else the largest one.
    fn pick(&mut self, least: u64) -> NetbenchFile {
        let large = self.files.iter().filter(|file| file.size >= least).count() as u64;
        if large == 0 {
            return self.files.iter().max_by_key(|file| file.size).expect("the working set is never empty").clone();
        }
        let index = self.random.below(large) as usize;
        let mut large = self.files.iter().filter(|file| file.size >= least);
        large.nth(index).expect("the index is below their number").clone()
    }

    fn new_name(&mut self) -> String {
        self.named += 1;
        let directory = DIRECTORIES[self.named as usize % DIRECTORIES.len()];
        format!(r"\clients\client1\~work\{directory}\file{:05}.{}", self.named, &directory[..3])
    }

    fn absent_name(&mut self) -> String {
        let directory = DIRECTORIES[self.random.below(DIRECTORIES.len() as u64) as usize];
        format!(r"\clients\client1\~work\{directory}\none{:03}.tmp", self.random.below(1000))
    }

    /// Draws an integer with this mean.
    fn times(&mut self, mean: f64) -> u32 {
        mean as u32 + u32::from(self.random.unit() < mean.fract())
    }
}

fn deck() -> Vec<Card> {
    let share = |count: u64| (count * PASS + mix::OPERATIONS / 2) / mix::OPERATIONS;
    let part = |count: u64, of: u64, parts: u64| (count * of + parts / 2) / parts;
    let creates = share(mix::CREATE);
    let opens = creates - part(creates, mix::CREATE_NOTHING, 1000);
    let reading = part(opens, mix::OPENS_READ, 100);
    let writing = part(opens, mix::OPENS_WRITE, 100);
    let both = part(opens, mix::OPENS_BOTH, 100);
    let nothing = opens - reading - writing - both;
    let locks = share(mix::LOCK);
    // Every created file is removed and little else is, so the unlinks determine how many opens create a file.
    let unlinks = share(mix::UNLINK);
    let empty = unlinks - writing;
    let reads = share(mix::READ) as f64 / (reading + both) as f64;
    let writes = share(mix::WRITE) as f64 / (writing + both) as f64;
    let (queries, finds) = (share(mix::QUERY_PATH), share(mix::FIND));
    let queries_nothing = part(queries, mix::QUERY_NOTHING, 1000);
    let finds_nothing = part(finds, mix::FIND_NOTHING, 1000);

    let cards = [
        (nothing - empty - locks, Card::Visit { reads: 0.0, writes: 0.0 }),
        (reading, Card::Visit { reads, writes: 0.0 }),
        (both, Card::Visit { reads, writes }),
        (writing, Card::Create { writes }),
        (empty, Card::Create { writes: 0.0 }),
        (locks, Card::Lock),
        (creates - opens, Card::OpenNothing),
        (queries - queries_nothing, Card::Query),
        (queries_nothing, Card::QueryNothing),
        (finds - finds_nothing, Card::Find),
        (finds_nothing, Card::FindNothing),
        (share(mix::QUERY_FS), Card::QueryFs),
        (share(mix::RENAME), Card::Rename),
        (unlinks, Card::Unlink),
    ];
    cards.into_iter().flat_map(|(count, card)| std::iter::repeat_n(card, count as usize)).collect()
}

/// Returns 146 sizes, each 3.5% larger than the previous one, that add up to the working set.
fn file_sizes(working_set: u64) -> Vec<u64> {
    let weights: Vec<u64> =
        std::iter::successors(Some(1_000_000), |weight| Some(weight * 1035 / 1000)).take(mix::FILES).collect();
    let total: u64 = weights.iter().sum();
    weights.into_iter().map(|weight| (working_set * weight / total).max(SMALLEST_FILE)).collect()
}

fn read_sizes() -> SizeDistribution {
    SizeDistribution::Weighted(vec![(4_096, 67), (61_440, 13), (16_384, 8), (1_024, 8), (512, 4)])
}

fn write_sizes() -> SizeDistribution {
    SizeDistribution::Weighted(vec![(65_536, 32), (4_096, 25), (1, 19), (16_384, 14), (512, 10)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashMap};

    fn lines_of(text: &str, first: u32) -> Vec<Vec<&str>> {
        text.lines().skip(first as usize - 1).map(|line| line.split(' ').collect()).collect()
    }

    #[test]
    fn the_mix_is_the_published_one_within_a_point() {
        let (text, first) = generate(NetbenchLike::default());
        let lines = lines_of(&text, first);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        lines.iter().for_each(|line| *counts.entry(line[0]).or_default() += 1);
        let percent = |count: u64, of: u64| count as f64 * 100.0 / of as f64;
        for (name, published) in [
            ("ReadX", mix::READ),
            ("NTCreateX", mix::CREATE),
            ("Close", 58_200),
            ("QUERY_PATH_INFORMATION", mix::QUERY_PATH),
            ("WriteX", mix::WRITE),
            ("FIND_FIRST", mix::FIND),
            ("Unlink", mix::UNLINK),
            ("QUERY_FS_INFORMATION", mix::QUERY_FS),
            ("QUERY_FILE_INFORMATION", mix::QUERY_FILE),
            ("SET_FILE_INFORMATION", mix::SET_FILE),
            ("Flush", mix::FLUSH),
            ("Rename", mix::RENAME),
            ("LockX", mix::LOCK),
        ] {
            let difference = percent(counts[name], lines.len() as u64) - percent(published, mix::OPERATIONS);
            assert!(difference.abs() < 1.0, "{name}: {difference:+.2} points");
        }
        let failed = |name: &str| {
            let failed = lines.iter().filter(|line| line[0] == name && line.last() != Some(&"NT_STATUS_OK")).count();
            percent(failed as u64, counts[name])
        };
        assert!((failed("NTCreateX") - 26.5).abs() < 1.0, "{}", failed("NTCreateX"));
        assert!((failed("QUERY_PATH_INFORMATION") - 34.0).abs() < 1.0);
        assert!((failed("FIND_FIRST") - 52.0).abs() < 1.0);
    }

    #[test]
    fn a_pass_leaves_every_file_as_it_was_named() {
        let (text, first) = generate(NetbenchLike { seed: 7, scale: 8, passes: 3 });
        let mut files: HashMap<String, bool> = HashMap::new();
        let mut at_first = None;
        for (number, line) in (1..).zip(text.lines()) {
            if number == first {
                at_first = Some(files.clone());
            }
            let parts: Vec<&str> = line.split('"').collect();
            let there = |name: &str| files.contains_key(name);
            match line.split(' ').next().unwrap() {
                "NTCreateX" if parts[2].starts_with(" 0x40 0x2") => {
                    assert!(files.insert(parts[1].to_owned(), true).is_none(), "{line}");
                }
                "NTCreateX" if parts[2].starts_with(" 0x40") => {
                    assert_eq!(there(parts[1]), line.ends_with("OK"), "{line}")
                }
                "QUERY_PATH_INFORMATION" => assert_eq!(there(parts[1]), line.ends_with("OK"), "{line}"),
                "Rename" => {
                    assert!(files.remove(parts[1]).is_some(), "{line}");
                    assert!(files.insert(parts[3].to_owned(), true).is_none(), "{line}");
                }
                "Unlink" => assert!(files.remove(parts[1]).is_some(), "{line}"),
                _ => {}
            }
        }
        assert_eq!(at_first.unwrap(), files);
        assert_eq!(files.len(), mix::FILES);
    }

    #[test]
    fn the_working_set_has_its_size_and_scales() {
        let total: u64 = file_sizes(mix::WORKING_SET).iter().sum();
        assert!(total.abs_diff(mix::WORKING_SET) < mix::WORKING_SET / 100, "{total}");
        let scaled: u64 = file_sizes(mix::WORKING_SET / 8).iter().sum();
        assert!(scaled.abs_diff(mix::WORKING_SET / 8) < mix::WORKING_SET / 8 / 5, "{scaled}");
    }

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let text = |seed| generate(NetbenchLike { seed, ..NetbenchLike::default() }).0;
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }
}
