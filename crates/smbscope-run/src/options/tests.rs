//! Options given by name, tested with `bench`.

use super::{BenchOptions, CapturePoints, GivenOptions};
use std::time::Duration;

fn parse(given: &[(&str, &str)]) -> Result<BenchOptions, String> {
    let mut options = GivenOptions::default();
    given.iter().for_each(|(name, value)| options.set(name, [*value]));
    options.parse()
}

#[test]
fn options_have_the_defaults_of_the_command_line() {
    let options = parse(&[]).unwrap();
    assert_eq!((options.workload.as_str(), options.connect.timeout), ("netbench-like", Duration::from_secs(30)));
    assert!(options.target.is_none() && options.capture.is_none());
}

#[test]
fn switches_values_and_positional_arguments_are_given_by_name() {
    let given = [("target", "file:/tmp"), ("busy_poll", "true"), ("capture", "false"), ("title", "true")];
    let options = parse(&given).unwrap();
    assert_eq!(options.target.map(|target| target.to_string()).as_deref(), Some("file:/tmp"));
    assert!(options.busy_poll && options.capture.is_none());
    assert_eq!(options.title.as_deref(), Some("true"));
}

#[test]
fn an_option_with_an_optional_value_is_given_as_a_switch_or_with_the_value() {
    for (value, points) in [
        ("true", Some(CapturePoints::Client)),
        ("client", Some(CapturePoints::Client)),
        ("both", Some(CapturePoints::Both)),
        ("false", None),
    ] {
        assert_eq!(parse(&[("capture", value)]).unwrap().capture, points, "{value}");
    }
}

#[test]
fn mistakes_are_those_of_the_command_line_in_one_line() {
    for (given, expected) in [
        (("dialekt", "2.1"), "unexpected argument '--dialekt' found; tip: a similar argument exists: '--dialect'"),
        (("dialect", "3.1.2"), "invalid value '3.1.2' for '--dialect <DIALECT>'; [possible values: nt1, 2.0.2, 2.1,"),
        (("sessions-per-user", "0"), "invalid value '0' for '--sessions-per-user <N>': 0 is not in 1..=64"),
        (("busy-poll", "maybe"), "unexpected value 'maybe' for '--busy-poll' found; no more were expected"),
        (("capture", "maybe"), "invalid value 'maybe' for '--capture[=<WHERE>]'; [possible values: client, both]"),
        (("help", "true"), "unexpected argument '--help' found"),
        (("duration", "0s"), "--duration must be longer than 0s"),
    ] {
        let error = parse(&[given]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = parse(&[("rate", "5/s"), ("think", "5ms")]).unwrap_err();
    assert!(error.contains("cannot be used with"), "{error}");
}
