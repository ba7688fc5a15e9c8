//! Tables in Markdown, as GitHub and GitLab read them: one per section, numbers aligned to the right.

use super::column::{Audience, ColumnHead};
use super::text::{TableLayout, TableLine};
use crate::page::markdown::escaped;
use crate::page::{Paint, TextPage};

pub(super) fn render(table: &TableLayout, page: &mut TextPage) {
    if table.is_empty() {
        return;
    }
    if let Some(title) = &table.title {
        page.heading(title);
    }
    let is_shown = |column: &usize| table.columns[*column].audience != Audience::Terminal;
    let columns: Vec<usize> = table.used_columns().filter(is_shown).collect();
    let heads: Vec<&ColumnHead> = columns.iter().map(|column| &table.columns[*column]).collect();
    for section in &table.sections {
        let titles = heads.iter().map(|head| one_line(&head.title));
        let titles = std::iter::once(one_line(&section.heading)).chain(titles);
        let rule = heads.iter().map(|head| if head.is_left_aligned { "---" } else { "---:" });
        let mut text = row(titles.map(|title| escaped(&title)));
        text += &format!("|---|{}|\n", rule.collect::<Vec<_>>().join("|"));
        section.lines.iter().for_each(|line| text += &row(cells(line, &columns)));
        page.block(&text);
    }
    for head in heads.iter().filter(|head| !head.about.is_empty()) {
        page.explain(&one_line(&head.title), head.about);
    }
}

fn cells<'a>(line: &'a TableLine, columns: &'a [usize]) -> impl Iterator<Item = String> + 'a {
    let indent = "\u{a0}".repeat(line.indent);
    let name = match line.across {
        Some(Paint::Heading) => format!("**{}**", escaped(&line.name)),
        _ => escaped(line.name.trim()),
    };
    let cell = |column: &usize| escaped(line.cells.get(*column).map_or("", String::as_str));
    std::iter::once(indent + &name).chain(columns.iter().map(cell))
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
