//! File and share names in captured requests.

use crate::bytes::text;
use std::ops::Range;

/// A name, possibly truncated by a snap length or a gap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedName {
    /// Captured part of the name.
    pub text: String,
    /// Upper bound for the number of bytes that hold the missing rest.
    pub missing: usize,
}

impl CapturedName {
    /// Returns a name of which nothing was captured.
    pub fn hidden(missing: usize) -> CapturedName {
        CapturedName { text: String::new(), missing }
    }

    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Decodes a name from a range that may extend beyond the captured message.
    pub(crate) fn in_range(message: &[u8], range: Range<usize>, unicode: bool) -> CapturedName {
        let missing = if range.is_empty() { 0 } else { range.end.saturating_sub(message.len()) };
        let here = range.start.min(message.len())..range.end.min(message.len());
        CapturedName { text: text(message.get(here).unwrap_or_default(), unicode), missing }
    }
}

impl From<String> for CapturedName {
    fn from(text: String) -> CapturedName {
        CapturedName { text, missing: 0 }
    }
}

impl From<&str> for CapturedName {
    fn from(text: &str) -> CapturedName {
        CapturedName::from(text.to_owned())
    }
}
