//! The layout of 1997, checked to the digit.

use crate::common;
use smbscope_model::{CommandGroup, Exchange, Nanos, Quality};
use smbscope_report::classic::render;

fn line(text: &str, start: &str) -> String {
    let found = text.lines().find(|line| line.trim_start().starts_with(start));
    let cells: Vec<&str> = found.unwrap_or_else(|| panic!("no line {start:?} in\n{text}")).split_whitespace().collect();
    cells.join(" ")
}

#[test]
fn small_report() {
    insta::assert_snapshot!(render(&common::small()));
}

#[test]
fn every_column_of_the_command_table_is_right_to_the_digit() {
    let text = render(&common::small());
    assert_eq!(line(&text, "SMB Command"), "SMB Command Count % Tot Pkts Fastest Slowest Median Average StdDev");
    // Four timed reads among ten commands; 11 packets; 0.00032, 0.001, 0.00724, 0.009999999 s: median 0.00412, mean
    // 0.00464, standard deviation 0.00474.
    assert_eq!(line(&text, "Read+X"), "Read+X 4 40.0% 2.8 0.00032 0.01000 0.00412 0.00464 0.0047");
    // 2, 4 and 12 ms: mean 6, standard deviation √((16 + 4 + 36) / 2) = √28 = 5.2915 ms. Two packets each: "2".
    assert_eq!(line(&text, "Transaction2"), "Transaction2 3 30.0% 2 0.00200 0.01200 0.00400 0.00600 0.0053");
    // 2 and 4 ms: mean and median 3, standard deviation √2 = 1.4142 ms.
    assert_eq!(line(&text, "Find_First2"), "Find_First2 2 20.0% 2 0.00200 0.00400 0.00300 0.00300 0.0014");
    assert_eq!(line(&text, "Locking+X"), "Locking+X 1 10.0% 2 0.00050 0.00050 0.00050 0.00050");
    assert_eq!(line(&text, "Write_Raw"), "Write_Raw 1 10.0% 2 0.02325 0.02325 0.02325 0.02325");
    assert_eq!(line(&text, "async portion"), "async portion 25");
    // Directory (2, 4, 12 ms) and Locking (0.5 ms): mean 18.5 / 4 = 4.625, median (2 + 4) / 2 = 3 ms; squared
    // deviations 6.890625 + 0.390625 + 54.390625 + 17.015625 = 78.6875, a third of it 26.229, its root 5.1214 ms.
    assert_eq!(line(&text, "Other"), "Other 4 40.0% 2 0.00050 0.01200 0.00300 0.00463 0.0051");
}

#[test]
fn the_packets_block_adds_up() {
    let text = render(&common::small());
    // 80 packets: 60 of SMB connections (50 data, 9 acknowledgements, 1 unacknowledged) and 20 others.
    assert_eq!(line(&text, "IP/TCP:"), "IP/TCP: 50 62.5%");
    assert_eq!(line(&text, "not SMB:"), "not SMB: 20 25.0%");
    assert_eq!(line(&text, "dropped:"), "dropped: 2 (or more)");
    // 26 + 3.
    assert_eq!(line(&text, "Continue:"), "Continue: 29 36.2%");
    // 40 packets of commands: 10 + 26 + 2 + 1, and 1 to open the connection; 25 of the 26 carry a Write_Raw's data.
    assert_eq!(line(&text, "Commands:"), "Commands: 40 50.0%");
    assert_eq!(line(&text, "async:"), "async: 25 96.2%");
    assert_eq!(line(&text, "TCP control:"), "TCP control: 1 2.5%");
}

#[test]
fn the_elapsed_time_is_that_of_the_capture() {
    let mut report = common::small();
    // 10 min 51.7954 s, as in appendix A.
    report.last = report.first.map(|first| smbscope_model::Timestamp(first.0 + Nanos(651_795_400_000).0));
    assert_eq!(line(&render(&report), "Elapsed"), "Elapsed time: 000:10:51.79540 (651.79540 seconds)");
}

#[test]
fn decade_edges_belong_to_the_decade_above() {
    let text = render(&common::small());
    let block = text.split("Read+X:\n").nth(1).expect("the distribution of Read+X");
    // 0.00032 s; then exactly 0.001 s, with 0.00724 and 0.009999999 s.
    let lines: Vec<&str> = block.lines().take(2).collect();
    assert_eq!(lines[0], "  <0.001            1   25.0%    25.0%  **********");
    assert_eq!(lines[1], "  <0.01             3   75.0%   100.0%  ******************************");
}

#[test]
fn average_packets_have_no_decimals_only_when_whole() {
    let packets = |responses: &[u32]| {
        let exchanges: Vec<Exchange> = responses
            .iter()
            .map(|packets| {
                let mut read = common::exchange(common::smb1_command(0x2e), CommandGroup::Read, 0, 1_000_000);
                read.response.packets = *packets;
                read
            })
            .collect();
        let text = render(&common::report(&exchanges, Vec::new(), Quality::default()));
        line(&text, "Read+X").split_whitespace().nth(3).map(str::to_owned)
    };
    assert_eq!(packets(&[1, 1]).as_deref(), Some("2"));
    assert_eq!(packets(&[1, 2]).as_deref(), Some("2.5"));
    // 2 + 30 · 2 + 3 − 2 = 65 packets of 32 exchanges: 2.03.
    let nearly: Vec<u32> = (0..32).map(|i| if i == 0 { 2 } else { 1 }).collect();
    assert_eq!(packets(&nearly).as_deref(), Some("2.0"));
}

#[test]
fn groups_add_up_to_the_timed_commands() {
    let text = render(&common::office());
    let table = text.split("Groups:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the group table");
    let counts = table.lines().skip(1).filter(|line| !line.starts_with(' '));
    let total: u64 = counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum();
    let report = common::office();
    let timed: u64 = report.aggregate.groups.iter().map(|group| group.row.packet_exchanges).sum();
    assert_eq!(total, timed);
}

#[test]
fn only_ascii_stands_in_a_report_of_1997() {
    assert!(render(&common::office()).is_ascii());
}
