//! Names of files and shares in requests.

use crate::bytes::text;
use std::ops::Range;

/// A name, of which a snap length or a gap may have cut the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedName {
    /// What is there of it.
    pub text: String,
    /// Bytes behind the end of what was captured that hold the rest of it, at most.
    pub missing: usize,
}

impl CapturedName {
    /// A name of which nothing was captured.
    pub fn hidden(missing: usize) -> CapturedName {
        CapturedName { text: String::new(), missing }
    }

    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Text in a range of a message, in UTF-16 or in the OEM code page.
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
