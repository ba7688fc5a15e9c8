//! Makes a page of the JSON document on standard input, with the title that is the argument. The tests of the page use
//! it, so that they see what is really written.

use std::io;

fn main() -> io::Result<()> {
    let title = std::env::args().nth(1).unwrap_or_default();
    let document: serde_json::Value = serde_json::from_reader(io::stdin().lock())?;
    smbscope_report::html::write(&document, &title, io::BufWriter::new(io::stdout().lock()))
}
