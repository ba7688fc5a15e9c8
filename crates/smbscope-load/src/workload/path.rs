//! Paths of a workload: validated while parsing and prefixed with the directory of each user once, so that steps
//! allocate no strings.

use super::{CreatedPaths, UserSeat};
use smbscope_model::prose::shorten;
use std::collections::HashMap;

const PATH_SHOWN_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathId(u32);

#[derive(Debug, Clone, Default)]
pub(super) struct PathInterner {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, PathId>,
}

impl PathId {
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

impl PathInterner {
    /// Returns the id of a path that [`below`] has validated.
    pub(super) fn intern(&mut self, relative: &str) -> PathId {
        if let Some(id) = self.ids.get(relative) {
            return *id;
        }
        let id = PathId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(relative.into());
        self.ids.insert(relative.into(), id);
        id
    }

    /// Returns the paths that can be created, which excludes search patterns.
    pub(super) fn made(&self) -> CreatedPaths {
        let is_name = |name: &&str| !name.contains(is_forbidden);
        CreatedPaths::new(self.names.iter().map(|name| &**name).filter(is_name))
    }

    pub(super) fn resolve(&self, seat: &UserSeat) -> UserPaths {
        let own = seat.own_directory();
        let bytes = self.names.iter().map(|name| own.len() + 1 + name.len()).sum();
        let mut paths = UserPaths {
            own: own.clone(),
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(self.names.len()),
        };
        for name in &self.names {
            paths.text.push_str(&own);
            if !name.is_empty() {
                paths.text.push('\\');
                paths.text.push_str(name);
            }
            paths.ends.push(paths.text.len());
        }
        paths
    }
}

/// The paths of one user in a single allocation.
#[derive(Debug)]
pub(super) struct UserPaths {
    own: String,
    text: String,
    ends: Vec<usize>,
}

impl UserPaths {
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    pub(super) fn get(&self, id: PathId) -> &str {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Name,
    /// May contain wildcards (MS-FSA 2.1.4.4: `*`, `?`, and the DOS wildcards `<`, `>`, `"`).
    Pattern,
}

/// Normalises a path: backslashes as separators, none at either end. Returns the reason as the error if it could leave
/// its directory or if no SMB server accepts it.
pub(super) fn below(path: &str, last: Last) -> Result<String, String> {
    let mut clean = String::with_capacity(path.len());
    let shown = || shorten(path, PATH_SHOWN_MAX);
    let mut parts = path.split(['\\', '/']).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == "." || part == ".." {
            return Err(format!(
                "the path {} has a part \"{part}\", which could lead out of the user's directory",
                shown()
            ));
        }
        let wild = last == Last::Pattern && parts.peek().is_none();
        if let Some(bad) = part.chars().find(|c| is_forbidden(*c) && !(wild && is_wildcard(*c))) {
            return Err(format!("the path {} has the character {bad:?}, which no name may have", shown()));
        }
        if !clean.is_empty() {
            clean.push('\\');
        }
        clean.push_str(part);
    }
    Ok(clean)
}

/// Characters that file names can't contain (MS-FSCC 2.1.5.2).
fn is_forbidden(c: char) -> bool {
    c < ' ' || matches!(c, '"' | '|' | '<' | '>' | '*' | '?' | ':')
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '"' | '<' | '>' | '*' | '?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_whatever_their_separators() {
        assert_eq!(below(r"\clients\\client1\a.txt", Last::Name).unwrap(), r"clients\client1\a.txt");
        assert_eq!(below("/a/b/", Last::Name).unwrap(), r"a\b");
        assert_eq!(below(r"\", Last::Name).unwrap(), "");
        assert_eq!(below(r"a\<.JNK", Last::Pattern).unwrap(), r"a\<.JNK");
    }

    #[test]
    fn paths_that_lead_out_or_cannot_exist_are_refused() {
        for path in [r"..\x", r"a\..\..\x", r".\x", r"C:\x", r"a\x:stream", r"a*\b", "a\nb", "a|b"] {
            assert!(below(path, Last::Pattern).is_err(), "{path}");
        }
        assert!(below(r"a\*.tmp", Last::Name).is_err());
    }

    #[test]
    fn each_user_sees_the_same_names_below_an_own_directory() {
        let mut names = PathInterner::default();
        let (root, file) = (names.intern(""), names.intern(r"d\f"));
        assert_eq!(names.intern(r"d\f"), file);
        let seat = UserSeat { number: 6, of: 8, seed: 1, directory: "bench".to_owned() };
        let paths = names.resolve(&seat);
        assert_eq!(paths.get(root), r"bench\user00007");
        assert_eq!(paths.get(file), r"bench\user00007\d\f");
    }
}
