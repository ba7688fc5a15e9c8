//! Lists of load points, by users or by rate: `8`, `1,8,32`, `10..200:10`, and combinations.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum number of load points in a ramp. A range for a search may have more.
pub const LOAD_POINTS_MAX: usize = 1_000;
/// Maximum number of users: each needs a connection, and so a local port.
pub const USERS_MAX: u32 = 60_000;

pub const RATE_MAX: u32 = 10_000_000;

/// Number of users of each load point, in the order of execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Users(Vec<u32>);

impl Users {
    pub fn one(users: u32) -> Users {
        Users(vec![users.max(1)])
    }

    pub fn range(first: u32, most: u32) -> Users {
        Users(vec![first, most])
    }

    pub fn fewest(&self) -> u32 {
        self.0.iter().copied().min().unwrap_or(1)
    }

    pub fn points(&self) -> &[u32] {
        &self.0
    }

    pub fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates(Vec<u32>);

impl Rates {
    pub fn points(&self) -> &[u32] {
        &self.0
    }
}

impl FromStr for Rates {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Rates, UsersError> {
        points(&text.replace("/s", ""), LoadUnit { what: "rates", most: RATE_MAX, example: "500,1000,2000" }).map(Rates)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} `{given}`: {problem}; write a number, a list such as {example}, or first..last:step such as 10..200:10"
)]
pub struct UsersError {
    what: &'static str,
    given: String,
    problem: String,
    example: &'static str,
}

#[derive(Clone, Copy)]
struct LoadUnit {
    what: &'static str,
    most: u32,
    example: &'static str,
}

fn points(text: &str, unit: LoadUnit) -> Result<Vec<u32>, UsersError> {
    let LoadUnit { what, example, .. } = unit;
    let mut points = Vec::new();
    for part in text.split(',') {
        let added = add(&mut points, part.trim(), unit);
        added.map_err(|problem| UsersError { what, given: text.to_owned(), problem, example })?;
    }
    Ok(points)
}

impl FromStr for Users {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Users, UsersError> {
        points(text, LoadUnit { what: "users", most: USERS_MAX, example: "1,8,32" }).map(Users)
    }
}

fn add(points: &mut Vec<u32>, part: &str, unit: LoadUnit) -> Result<(), String> {
    let Some((first, rest)) = part.split_once("..") else {
        return push(points, number(part, unit)?);
    };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (number(last, unit)?, number(step, unit)?),
        None => (number(rest, unit)?, 1),
    };
    let first = number(first, unit)?;
    if last < first {
        return Err(format!("{first}..{last} goes backwards"));
    }
    // The last value always belongs to the range, even if the steps miss it.
    for users in (first..last).step_by(step as usize) {
        push(points, users)?;
    }
    push(points, last)
}

fn push(points: &mut Vec<u32>, users: u32) -> Result<(), String> {
    if points.len() == USERS_MAX as usize {
        return Err(format!("more than {USERS_MAX} load points"));
    }
    points.push(users);
    Ok(())
}

fn number(text: &str, unit: LoadUnit) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("0 is too few".to_owned()),
        Ok(number) if number > unit.most => Err(format!("{number} is more than {}", unit.most)),
        Ok(users) => Ok(users),
        Err(_) if text.trim().is_empty() => Err("a number is missing".to_owned()),
        Err(_) => Err(format!("`{}` is no number of {}", text.trim(), unit.what)),
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, users) in self.0.iter().enumerate() {
            write!(f, "{}{users}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<u32> {
        text.parse::<Users>().unwrap().0
    }

    #[test]
    fn lists_and_ranges_are_load_points_in_their_order() {
        assert_eq!(points("8"), [8]);
        assert_eq!(points("1, 8,32"), [1, 8, 32]);
        assert_eq!(points("10..50:10"), [10, 20, 30, 40, 50]);
        assert_eq!(points("3..5"), [3, 4, 5]);
        assert_eq!(points("1,10..30:10,8"), [1, 10, 20, 30, 8]);
    }

    #[test]
    fn a_range_ends_with_its_last_value_even_where_the_steps_miss_it() {
        assert_eq!(points("10..25:10"), [10, 20, 25]);
    }

    #[test]
    fn what_is_wrong_is_said_with_an_example() {
        let problem = |text: &str| text.parse::<Users>().unwrap_err().to_string();
        assert_eq!(
            problem("1,x"),
            "users `1,x`: `x` is no number of users; write a number, a list such as 1,8,32, or first..last:step such \
             as 10..200:10"
        );
        assert!(problem("").contains("a number is missing"));
        assert!(problem("0").contains("0 is too few"));
        assert!(problem("20..10").contains("20..10 goes backwards"));
        assert!(problem("1..60000,1").contains("more than 60000 load points"));
        assert!(problem("99999999").contains("99999999 is more than 60000"));
    }
}
