//! How many users at the same time, load point by load point: `8`, `1,8,32`, `10..200:10`, and lists of these.

use std::fmt;
use std::str::FromStr;

/// Load points of a ramp, at most; a range for a search may have more.
pub const LOAD_POINTS_MAX: usize = 1_000;
/// Users of a load point, at most: each has a connection, and so a port of the client.
pub const USERS_MAX: u32 = 60_000;

/// The load points of a ramp, in the order in which they are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Users(Vec<u32>);

impl Users {
    /// A single load point.
    pub fn one(users: u32) -> Users {
        Users(vec![users.max(1)])
    }

    /// From the fewest to the most: a range for a search.
    pub fn range(first: u32, most: u32) -> Users {
        Users(vec![first, most])
    }

    /// Users of each load point.
    pub fn points(&self) -> &[u32] {
        &self.0
    }

    /// Users of the largest load point.
    pub fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// What is wrong with a list of users, and what it should look like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("users `{given}`: {problem}; write a number, a list such as 1,8,32, or first..last:step such as 10..200:10")]
pub struct UsersError {
    given: String,
    problem: String,
}

impl FromStr for Users {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Users, UsersError> {
        let error = |problem: String| UsersError { given: text.to_owned(), problem };
        let mut points = Vec::new();
        for part in text.split(',') {
            add(&mut points, part.trim()).map_err(error)?;
        }
        Ok(Users(points))
    }
}

/// Adds a number or a range.
fn add(points: &mut Vec<u32>, part: &str) -> Result<(), String> {
    let Some((first, rest)) = part.split_once("..") else {
        return push(points, number(part)?);
    };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (number(last)?, number(step)?),
        None => (number(rest)?, 1),
    };
    let first = number(first)?;
    if last < first {
        return Err(format!("{first}..{last} goes backwards"));
    }
    // The last value is meant: where the steps do not meet it, it ends the range all the same.
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

fn number(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("0 is too few".to_owned()),
        Ok(users) if users > USERS_MAX => Err(format!("{users} is more than {USERS_MAX}")),
        Ok(users) => Ok(users),
        Err(_) if text.trim().is_empty() => Err("a number is missing".to_owned()),
        Err(_) => Err(format!("`{}` is no number of users", text.trim())),
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
