//! Warnings about captures and ramps.

mod capture;
mod load;

pub(crate) use capture::of_report;
pub(crate) use load::{far_below_its_rate, of_ramp};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    /// Counter of `Quality`, if the warning comes from one.
    pub(crate) counter: Option<&'static str>,
    /// Number of occurrences, if it can be counted.
    pub(crate) count: Option<u64>,
    /// Total that `count` is a share of, and its name.
    pub(crate) share: Option<(u64, &'static str)>,
}

impl Warning {
    /// Creates a warning with a count. The share is omitted if the total is 0 or less than the count: more packets can
    /// be missing than were captured.
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

/// Chooses the form for a count: `[s]` is removed for 1.
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
