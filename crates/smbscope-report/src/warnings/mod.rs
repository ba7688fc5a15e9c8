//! What weakens a result, in words, each thing once: of a capture, and of a ramp.

mod capture;
mod load;

pub(crate) use capture::of_report;
pub(crate) use load::{far_below_its_rate, of_ramp};

/// One warning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    /// The counter of `Quality` that it tells.
    pub(crate) counter: Option<&'static str>,
    /// How often, where it is something that is counted.
    pub(crate) count: Option<u64>,
    /// The whole that the count is a share of, and its name.
    pub(crate) share: Option<(u64, &'static str)>,
}

impl Warning {
    /// Of nothing there is no share, nor of a whole that the count exceeds: more packets can be missing than were captured.
    fn counted(text: String, count: u64, share: Option<(u64, &'static str)>) -> Warning {
        Warning {
            text,
            counter: None,
            count: Some(count),
            share: share.filter(|(whole, _)| *whole > 0 && count <= *whole),
        }
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Warning {
        Warning { text, counter: None, count: None, share: None }
    }
}

/// The text for a count: `[s]` goes where there is only one.
fn inflected(text: &str, count: u64) -> String {
    match text.split_once('[').and_then(|(start, rest)| Some((start, rest.split_once(']')?))) {
        Some((start, (_, end))) if count == 1 => format!("{start}{end}"),
        Some((start, (plural, end))) => format!("{start}{plural}{end}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_plural() {
        assert_eq!([1, 2].map(|n| inflected("loss[es] of framing", n)), ["loss of framing", "losses of framing"]);
        assert_eq!(inflected("nothing to say", 2), "nothing to say");
    }
}
