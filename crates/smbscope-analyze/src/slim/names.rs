//! What becomes of names and addresses.

use smbscope_wire::kept::NameOf;

/// What becomes of names and addresses.
pub(super) enum Names<'k> {
    /// They stay.
    Kept,
    /// Others take their places.
    Replaced(&'k mut ()),
}

impl Names<'_> {
    /// Puts another name in the place of one, as long.
    pub(super) fn replace(&mut self, _of: NameOf, _unicode: bool, _name: &mut [u8]) {}

    /// Puts another address in the place of one.
    pub(super) fn address(&mut self, _address: &mut [u8]) {}
}
