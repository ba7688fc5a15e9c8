//! The expression language: meaning, errors, and round trips through the canonical form.

use super::columns::{COLUMNS, ColumnAccessor, FilterColumn, TextDomain, find};
use super::literal::{Pattern, Prefix, Scalar, ScalarUnit, Word, rank};
use super::*;
use super::{ComparisonOperator, Expression, FilterCondition};
use proptest::prelude::*;
use proptest::strategy::Union;
use smbscope_model::{Dialect, ExchangeOutcome, ResponseStatus};
use smbscope_testkit::exchange::read;
use smbscope_wire::status::NtStatus;

/// 2023-11-14 22:13:20 UTC.
const START: i64 = 1_700_000_000_000_000_000;
const MS: i64 = 1_000_000;

/// A read of 4,096 bytes from 10.0.0.1 that began 2 s into the capture and took 80 ms.
fn exchange() -> Exchange {
    let mut read = read(START + 2_000 * MS, 80 * MS);
    read.path = Some(r"\Users\Ann\Report.DOCX".into());
    read.share = Some("Home$".into());
    read.user = Some(r"CORP\ann".into());
    read.dialect = Some(Dialect::Smb2(0x0300));
    read.status = Some(ResponseStatus::Nt(NtStatus(0xc000_0022)));
    (read.length, read.response.bytes) = (Some(4_096), 4_180);
    read.signed = true;
    read
}

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn matches(text: &str) -> bool {
    filter(text).matcher(&["monday.pcap".to_owned()]).matches(&exchange(), Timestamp(START))
}

fn all_hold(expressions: &[&str]) {
    let failed: Vec<_> = expressions.iter().filter(|text| !matches(text)).collect();
    assert!(failed.is_empty(), "{failed:?} should hold");
}

fn none_holds(expressions: &[&str]) {
    let held: Vec<_> = expressions.iter().filter(|text| matches(text)).collect();
    assert!(held.is_empty(), "{held:?} should not hold");
}

fn wrong(text: &str) -> String {
    let error = text.parse::<Filter>().expect_err(text).to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn times_are_compared_in_any_unit() {
    all_hold(&["response_time == 80ms", "response_time == 0.08s", "response_time >= 80000us", "response_time < 1min"]);
    all_hold(&["response_time_ns == 80000000", "response_time in (1ms, 80ms)", "response_time not in (1ms, 2ms)"]);
    none_holds(&["response_time > 80ms", "response_time != 80ms", "response_time <= 79.999999ms"]);
}

#[test]
fn points_in_time_are_absolute_or_count_from_the_start() {
    all_hold(&["time == 2s", "time >= 2000ms", "time < 1min", "response_last == 2.08s"]);
    all_hold(&["time == 22:13:22", "time > 22:13", "time == 2023-11-14T22:13:22Z", "time > 2023-11-14"]);
    all_hold(&["time == 2023-11-14T23:13:22+01:00", "time < '2023-11-14 22:14'", "time == \"2023-11-14 22:13:22\""]);
    none_holds(&["time < 2s", "time > 22:14", "time < 2023-11-14", "time > 2023-11-15"]);
}

#[test]
fn sizes_know_powers_of_1024_and_of_1000() {
    all_hold(&["length == 4KiB", "length == 4k", "length == 4096", "length > 4kB", "size == 4kib", "offset == null"]);
    none_holds(&["length == 4kB", "length == 1MiB"]);
}

#[test]
fn names_of_the_protocol_need_no_prefix_and_no_case() {
    all_hold(&["command == READ", "command == read", "command ~ \"RE?D\"", "group == Read", "outcome == complete"]);
    all_hold(&["status == STATUS_ACCESS_DENIED", "status == access_denied", "status ~ *denied", "protocol == smb2"]);
    none_holds(&["command == WRITE", "command != READ", "command !~ R*", "group in (Write, Open/Close)"]);
    let mut smb1 = exchange();
    smb1.command = smbscope_model::Command::Smb1(smbscope_wire::smb1::Smb1Command(0x2e));
    let holds = |text: &str| filter(text).matcher(&[]).matches(&smb1, Timestamp(START));
    assert!(holds("command == SMB_COM_READ_ANDX") && holds("command == read_andx") && holds("command ~ read*"));
}

#[test]
fn dialects_have_an_order() {
    all_hold(&[
        "dialect >= 3.0",
        "dialect == 3.0",
        "dialect > 2.1",
        "dialect in (3.0, 3.1.1)",
        "dialect > 'NT LM 0.12'",
    ]);
    none_holds(&["dialect >= 3.0.2", "dialect < 2.0.2"]);
}

#[test]
fn paths_are_those_below_the_share_and_wildcards_cross_directories() {
    all_hold(&[r"path == users\ann\report.docx", r"path == \Users\Ann\Report.docx", "path == users/ann/report.docx"]);
    all_hold(&[
        "path ~ *.docx",
        "path ~ users/*",
        r"path ~ *\ann\*",
        "path ~ users/ann/report.????",
        "extension == docx",
    ]);
    all_hold(&["directory == users/ann", "directory ~ users*", "share == home$", r"user == corp\ANN", "user !~ *bob"]);
    none_holds(&["path ~ *.doc", "path ~ ann/*", "path == report.docx", "directory == users", "path ~ 'report.*'"]);
}

#[test]
fn brackets_dots_and_dollars_in_patterns_are_themselves() {
    let named = |name: &str| Exchange { path: Some(name.into()), ..exchange() };
    let holds = |text: &str, name| filter(text).matcher(&[]).matches(&named(name), Timestamp(START));
    assert!(holds("path ~ 'plan [1].x*'", "Plan [1].xlsx") && !holds("path ~ 'plan [1].x*'", "plan 1.xlsx"));
    assert!(
        !holds("path ~ a.c", "abc") && holds("path ~ $*", "$Recycle.Bin") && holds("path ~ *ÄRGER*", "der ärger.txt")
    );
}

#[test]
fn addresses_are_compared_singly_and_by_network() {
    all_hold(&[
        "client == 10.0.0.1",
        "client in 10.0.0.0/8",
        "client in (192.168.0.0/16, 10.0.0.1)",
        "server_port == 445",
    ]);
    all_hold(&["client not in 10.1.0.0/16", "client != 10.0.0.2", "client in 0.0.0.0/0", "client not in fd00::/8"]);
    none_holds(&["client in 10.0.0.2/31", "server == 10.0.0.1"]);
}

#[test]
fn an_address_is_taken_with_its_port_as_reports_print_it() {
    let x = exchange();
    let (client, server) = (x.endpoints.client, x.endpoints.server);
    let holds = |expression: &str| expression.parse::<Filter>().unwrap().matcher(&[]).matches(&x, Timestamp(0));
    for (column, endpoint) in [("client", client), ("server", server)] {
        assert!(holds(&format!("{column} == {endpoint}")), "{endpoint}");
        assert!(holds(&format!("{column} in (192.0.2.1:1, {endpoint})")));
        let other = std::net::SocketAddr::new(endpoint.ip(), endpoint.port() ^ 1);
        assert!(!holds(&format!("{column} == {other}")) && holds(&format!("{column} != {other}")));
    }
    // RFC 3986 §3.2.2.
    let mut six = exchange();
    six.endpoints.server = "[2001:db8::5]:445".parse().unwrap();
    for (expression, expected) in [
        ("server == [2001:db8::5]:445", true),
        ("server == [2001:db8::5]:446", false),
        ("server == [2001:db8::5]", true),
        ("server in [2001:db8::5]:445", true),
        ("server == 2001:db8::5", true),
    ] {
        let filter: Filter = expression.parse().unwrap();
        assert_eq!(filter.matcher(&[]).matches(&six, Timestamp(0)), expected, "{expression}");
        assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
    }
}

#[test]
fn wildcards_behind_equals_are_refused_with_the_operator_that_takes_them() {
    let expected = "character 9: `*` and `?` are not wildcards here; use ~ for wildcards: path ~ *x.ini; in quotes \
                    they are literal";
    assert_eq!(wrong("path == *x.ini"), expected);
    for expression in ["path != a?.txt", "user in (ann, b*)", "share not in *", "signed and path == *"] {
        assert!(wrong(expression).contains("use ~ for wildcards"), "{expression}");
    }
    let quoted: Filter = "path == \"dir\\*\" and share == x".parse().unwrap();
    assert!(quoted.compares_wildcards());
    assert_eq!(quoted.to_string(), "path == \"dir\\*\" and share == x");
    assert!(!"path ~ *x.ini".parse::<Filter>().unwrap().compares_wildcards());
}

#[test]
fn flags_stand_alone() {
    all_hold(&[
        "signed",
        "signed and not compounded",
        "signed == true",
        "encrypted == false",
        "error",
        "encrypted != true",
    ]);
    none_holds(&["encrypted", "not signed", "signed == false", "!error"]);
}

#[test]
fn and_binds_closer_than_or_and_not_closest() {
    // With the wrong precedence, (signed or encrypted) and encrypted, the first would be false.
    all_hold(&["signed or encrypted and encrypted", "not encrypted and signed", "signed || encrypted && compounded"]);
    none_holds(&["(signed or encrypted) and encrypted", "not (encrypted or signed)", "!signed || compounded"]);
}

#[test]
fn nothing_is_known_of_the_unknown() {
    all_hold(&["think_time == null", "offset == null", "path != null", "not think_time > 1ms", "interim == null"]);
    none_holds(&["think_time > 1ms", "think_time <= 1ms", "think_time != 1ms", "offset not in (1, 2)", "path == null"]);
    none_holds(&["file_id != x", "file_id !~ x*", "message_id == 0"]);
}

#[test]
fn captures_are_known_by_name() {
    all_hold(&["capture == monday.pcap", "capture ~ mon*", "response_capture == null", "request_first_packet == 0"]);
    none_holds(&["capture == tuesday.pcap"]);
}

#[test]
fn quotes_are_of_both_kinds_and_doubled_inside() {
    assert_eq!(filter("share == 'a''b'"), filter("share == \"a'b\""));
    assert_eq!(filter("share == \"a\"\"b\"").to_string(), "share == \"a\"\"b\"");
    assert_eq!(filter("share == 'null'").to_string(), "share == \"null\"");
}

#[test]
fn the_plain_form_has_no_needless_parentheses() {
    let plain = |text| filter(text).to_string();
    assert_eq!(plain("((signed) && (encrypted || compounded))"), "signed and (encrypted or compounded)");
    assert_eq!(plain("signed and (encrypted and (not (error)))"), "signed and encrypted and not error");
    assert_eq!(plain("response_time>1500us and length<1048576"), "response_time > 1500us and length < 1MiB");
    assert_eq!(plain("client in (10.1.2.3/8)"), "client in (10.0.0.0/8)");
    assert_eq!(plain("dialect == 3.1.1 && signed == false"), "dialect == 3.1.1 and signed == false");
}

#[test]
fn a_literal_of_another_type_is_an_error_at_its_place() {
    let expected = "character 17: expected a duration, such as 50ms, 1.5s, 200us or 2min; a time needs its unit: did you \
                    mean 10ms?";
    assert_eq!(wrong("response_time > 10"), expected);
    assert_eq!(wrong("command > 5"), "character 9: expected ==, !=, ~, !~ or in, found `>`; command is a name");
    assert_eq!(wrong("client ~ 10.*"), "character 8: expected ==, != or in, found `~`; client is an address");
    assert_eq!(wrong("signed > 1"), "character 8: expected == or !=, found `>`; signed is yes or no");
    let expected = "character 11: expected a single address; addresses of a network: client in 10.0.0.0/8";
    assert_eq!(wrong("client == 10.0.0.0/8"), expected);
    assert!(wrong("client == files:445").contains("such as 10.0.0.5, 10.0.0.5:445, [fd00::5]:445"));
    assert!(wrong("client == 10.0.0.0/8:445").contains("expected an address"));
    assert!(wrong("response_time < 5m").ends_with("; minutes are 5min, milliseconds 5ms"));
    assert!(wrong("time < 30").ends_with("; a time needs its unit: did you mean 30s?"));
    assert!(wrong("server_port == smb").contains("expected a number"));
    assert!(wrong("length > 4x").contains("expected a size"));
    assert!(wrong("dialect > 4").contains("expected a dialect: CORE, "));
    assert_eq!(wrong("signed == 1"), "character 11: expected true or false; `signed` alone is a condition");
}

#[test]
fn unknown_names_come_with_the_nearest() {
    let expected = "character 1: there is no column `respone_time`; did you mean response_time or response_time_ns?";
    assert_eq!(wrong("respone_time > 1ms"), expected);
    assert_eq!(
        wrong("xyzzy == 1"),
        "character 1: there is no column `xyzzy`; `smbscope help filters` lists the columns"
    );
    assert!(wrong("signed and exchange_id == 1").starts_with("character 12: "));
    assert!(wrong("command == RAED").starts_with("character 12: there is no `RAED`; did you mean READ"));
    assert!(
        wrong("status == ACESS_DENIED").contains("did you mean ACCESS_DENIED"),
        "{}",
        wrong("status == ACESS_DENIED")
    );
    let groups =
        "there are Open/Close, Attributes, Directory, Locking, Read, Write, Session, Control, Waiting, Encrypted";
    assert_eq!(wrong("group == Nonsense"), format!("character 10: there is no `Nonsense`; {groups}"));
}

#[test]
fn incomplete_expressions_say_what_is_missing() {
    assert_eq!(wrong(""), "character 1: expected a column, found the end");
    assert_eq!(wrong("signed and"), "character 11: expected a column, found the end");
    assert_eq!(wrong("(signed"), "character 8: expected `and`, `or` or `)`, found the end");
    assert_eq!(wrong("signed encrypted"), "character 8: expected `and`, `or` or the end, found `encrypted`");
    assert_eq!(wrong("share = x"), "character 7: `=` alone means nothing; did you mean ==?");
    assert_eq!(wrong("share == 'x"), "character 10: the text has no closing '; a ' inside is written twice");
    assert_eq!(wrong("command in (READ WRITE)"), "character 18: expected `,` or `)`, found `WRITE`");
    assert_eq!(wrong("path"), "character 5: expected a comparison after path (==, !=, ~, !~ or in), found the end");
    assert_eq!(wrong("path > null"), "character 6: expected ==, !=, ~, !~ or in, found `>`; path is a path");
    assert_eq!(
        wrong("offset > null"),
        "character 10: null is allowed with == and != only, for a value that may be unknown"
    );
}

#[test]
fn the_place_is_marked_below_the_expression() {
    let error = "share == Bücher and lenght > 1".parse::<Filter>().expect_err("a slip").to_string();
    let marked: Vec<&str> = error.lines().skip(1).collect();
    assert_eq!(marked, ["  share == Bücher and lenght > 1", "                      ^^^^^^"]);
}

#[test]
fn endless_parentheses_are_refused() {
    assert!(wrong(&"(".repeat(100_000)).contains("more than 100 levels"));
    assert!(wrong(&"not ".repeat(100_000)).contains("more than 100 levels"));
}

#[test]
fn every_column_gives_a_value_or_none_for_any_exchange() {
    let mut bare = exchange();
    (bare.request, bare.response) = (Default::default(), Default::default());
    bare.outcome = ExchangeOutcome::RequestNotCaptured;
    for column in COLUMNS {
        let expression = match column.value {
            ColumnAccessor::Flag(_) => column.name.to_owned(),
            ColumnAccessor::Address(_) => format!("{} == 10.0.0.1", column.name),
            _ => format!("{} == null", column.name),
        };
        let filter = filter(&expression);
        let mut matcher = filter.matcher(&[]);
        // The results are irrelevant: evaluation must not panic.
        let _ = (matcher.matches(&exchange(), Timestamp(START)), matcher.matches(&bare, Timestamp(START)));
    }
    assert!(COLUMNS.iter().enumerate().all(|(i, column)| COLUMNS[..i].iter().all(|other| other.name != column.name)));
}

#[test]
fn the_documentation_lists_every_column_with_its_type() {
    let page = include_str!("../../../../docs/filter.md");
    for (name, kind) in Filter::columns() {
        let rows = page.lines().filter(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
        let is_there = rows.map(|row| row.split('|').nth(2).unwrap_or_default().trim()).any(|said| said == kind);
        assert!(is_there, "`{name}` | {kind} is not in a table of docs/filter.md");
    }
}

fn scalar(unit: ScalarUnit) -> BoxedStrategy<Scalar> {
    let plain = |value: i128| Scalar::Plain(value);
    match unit {
        ScalarUnit::Count => any::<u64>().prop_map(move |n| plain(n.into())).boxed(),
        ScalarUnit::Bytes => {
            prop_oneof![0..1u64 << 60, (0u64..99).prop_map(|n| n << 20)].prop_map(move |n| plain(n.into())).boxed()
        }
        ScalarUnit::Duration => {
            prop_oneof![any::<i64>(), (-99i64..99).prop_map(|n| n * MS)].prop_map(move |n| plain(n.into())).boxed()
        }
        ScalarUnit::Time => prop_oneof![
            any::<i64>().prop_map(move |n| plain(n.into())),
            any::<i64>().prop_map(Scalar::SinceStart),
            (0..86_400_000_000_000i64).prop_map(Scalar::TimeOfDay),
        ]
        .boxed(),
        ScalarUnit::Dialect => {
            let known = prop::sample::select(Dialect::KNOWN.to_vec());
            prop_oneof![known, (0x0202u16..).prop_map(Dialect::Smb2)].prop_map(move |d| plain(rank(d))).boxed()
        }
    }
}

fn text(names: &'static TextDomain) -> BoxedStrategy<String> {
    match names {
        TextDomain::Any => prop_oneof![".{0,8}", "[a-z\"' $]{0,6}", Just("null".to_owned())].boxed(),
        TextDomain::Path => "[a-zA-Z*?\"' ]{1,4}(\\\\[a-z.]{1,4}){0,2}".boxed(),
        TextDomain::Known { all, .. } => prop::sample::select(all()).boxed(),
    }
}

fn condition(column: &'static FilterColumn) -> BoxedStrategy<FilterCondition> {
    let known = any::<bool>().prop_map(FilterCondition::Known);
    match &column.value {
        ColumnAccessor::Flag(_) => any::<bool>().prop_map(FilterCondition::Flag).boxed(),
        ColumnAccessor::Scalar(unit, _) => {
            let orders = (prop::sample::select(ComparisonOperator::ALL.to_vec()), scalar(*unit));
            let sets = (any::<bool>(), prop::collection::vec(scalar(*unit), 1..4));
            prop_oneof![
                known,
                orders.prop_map(|(order, limit)| FilterCondition::Order(order, limit)),
                sets.prop_map(|(negated, wanted)| FilterCondition::Scalars(negated, wanted)),
            ]
            .boxed()
        }
        ColumnAccessor::Address(_) => {
            let v4 =
                (any::<std::net::Ipv4Addr>(), 0u8..=32).prop_map(|(address, length)| format!("{address}/{length}"));
            let v6 =
                (any::<std::net::Ipv6Addr>(), 0u8..=128).prop_map(|(address, length)| format!("{address}/{length}"));
            let endpoint =
                any::<(std::net::IpAddr, u16)>().prop_map(|pair| std::net::SocketAddr::from(pair).to_string());
            let prefix =
                prop_oneof![v4, v6, endpoint].prop_map(|text| Prefix::parse(&text).expect("an address and its prefix"));
            let sets = (any::<bool>(), prop::collection::vec(prefix, 1..4));
            sets.prop_map(|(negated, wanted)| FilterCondition::Prefixes(negated, wanted)).boxed()
        }
        ColumnAccessor::Text(names, _) => {
            let words = (any::<bool>(), prop::collection::vec(text(names).prop_map(|text| Word::new(&text)), 1..4));
            let pattern = (any::<bool>(), text(names));
            prop_oneof![
                known,
                words.prop_map(|(negated, wanted)| FilterCondition::Words(negated, wanted)),
                pattern.prop_map(|(negated, text)| FilterCondition::Like(negated, Pattern::new(&text).expect("short"))),
            ]
            .boxed()
        }
    }
}

fn expression() -> impl Strategy<Value = Expression> {
    let tests =
        COLUMNS.iter().map(|column| condition(column).prop_map(move |one| Expression::Test(column, one)).boxed());
    Union::new(tests).prop_recursive(4, 24, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        // Avoid lists nested in lists of the same kind, which the parser flattens.
        let no_or = |parts: Vec<Expression>| {
            parts.into_iter().map(|part| match part {
                Expression::Or(inner) => Expression::Not(Box::new(Expression::Or(inner))),
                part => part,
            })
        };
        let no_and = |parts: Vec<Expression>| {
            parts.into_iter().map(|part| match part {
                Expression::And(inner) => Expression::Not(Box::new(Expression::And(inner))),
                part => part,
            })
        };
        prop_oneof![
            several().prop_map(move |parts| Expression::Or(no_or(parts).collect())),
            several().prop_map(move |parts| Expression::And(no_and(parts).collect())),
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_parses_to_the_same_expression(expression in expression()) {
        let text = expression.to_string();
        let parsed: Filter = text.parse().map_err(|error| TestCaseError::fail(format!("{error}")))?;
        prop_assert_eq!(parsed.expression, expression, "{}", text);
    }

    #[test]
    fn any_text_is_parsed_or_refused_with_a_place_inside_it(text in "\\PC{0,40}|[a-z=!<>~()'\" ,.0-9]{0,40}") {
        if let Err(error) = text.parse::<Filter>() {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.position()), "{}", error);
        }
    }

    #[test]
    fn a_network_holds_the_addresses_that_share_its_bits(address in any::<u32>(), other in any::<u32>(), length in 0u8..=32) {
        let show = |bits: u32| std::net::Ipv4Addr::from_bits(bits);
        let prefix = Prefix::parse(&format!("{}/{length}", show(address))).expect("a prefix");
        // The first bits are equal if shifting out the others leaves equal values.
        let shift = 32 - u32::from(length);
        let same = u64::from(address) >> shift == u64::from(other) >> shift;
        prop_assert_eq!(prefix.contains((show(other), 445).into()), same);
        prop_assert!(prefix.contains((show(address), 445).into()));
    }
}

#[test]
fn columns_are_found_by_name() {
    assert_eq!(find("response_time").map(|column| column.type_name()), Some("duration"));
    assert_eq!(find("Response_Time"), None);
}
