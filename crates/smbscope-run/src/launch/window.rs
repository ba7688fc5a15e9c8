//! Looks for windows by title or class on an X display.

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// Maximum depth of the search. Window managers wrap application windows in their own.
const LEVELS: u32 = 4;
const WINDOWS_MAX: usize = 4_096;
const TEXT_WORDS: u32 = 256;

pub(super) struct X11Display {
    connection: RustConnection,
    root: Window,
    /// `_NET_WM_NAME`, the title in UTF-8 (Extended Window Manager Hints 1.5).
    title: Atom,
    utf8: Atom,
}

impl X11Display {
    pub(super) fn open() -> Result<X11Display, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("no X display, on which a window could be seen: {error}; set DISPLAY, or start one: Xvfb :99")
        };
        let (connection, screen) = RustConnection::connect(None).map_err(|error| failed(&error))?;
        let atom = |name: &[u8]| -> Result<Atom, String> {
            let reply = connection.intern_atom(false, name).map_err(|error| failed(&error))?.reply();
            Ok(reply.map_err(|error| failed(&error))?.atom)
        };
        let (title, utf8) = (atom(b"_NET_WM_NAME")?, atom(b"UTF8_STRING")?);
        let root = connection.setup().roots.get(screen).map(|screen| screen.root);
        let root = root.ok_or_else(|| failed(&"it has no screen"))?;
        Ok(X11Display { connection, root, title, utf8 })
    }

    pub(super) fn shows(&mut self, text: &str) -> Result<bool, String> {
        let mut level = vec![self.root];
        let mut seen = 0;
        for _ in 0..LEVELS {
            let mut below = Vec::new();
            for window in level {
                let Some(children) = self.shown_children(window)? else { continue };
                seen += children.len();
                for child in &children {
                    if self.texts(*child)?.iter().any(|found| found.contains(text)) {
                        return Ok(true);
                    }
                }
                if seen > WINDOWS_MAX {
                    return Ok(false);
                }
                below.extend(children);
            }
            level = below;
        }
        Ok(false)
    }

    /// Returns the visible children of a window, or `None` if the window no longer exists.
    fn shown_children(&self, window: Window) -> Result<Option<Vec<Window>>, String> {
        let asked = self.connection.query_tree(window).map_err(lost)?;
        let Ok(tree) = asked.reply() else { return self.still_there().map(|()| None) };
        let asked: Vec<_> = tree
            .children
            .into_iter()
            .take(WINDOWS_MAX)
            .map(|child| Ok((child, self.connection.get_window_attributes(child).map_err(lost)?)))
            .collect::<Result<_, String>>()?;
        let shown = asked.into_iter().filter_map(|(child, asked)| {
            let attributes = asked.reply().ok()?;
            (attributes.map_state == MapState::VIEWABLE).then_some(child)
        });
        Ok(Some(shown.collect()))
    }

    /// Returns the title and class of a window (ICCCM 4.1.2.1 and 4.1.2.5).
    fn texts(&self, window: Window) -> Result<Vec<String>, String> {
        let wanted = [
            (self.title, self.utf8),
            (AtomEnum::WM_NAME.into(), AtomEnum::ANY.into()),
            (AtomEnum::WM_CLASS.into(), AtomEnum::ANY.into()),
        ];
        let asked: Vec<_> = wanted
            .into_iter()
            .map(|(name, of)| self.connection.get_property(false, window, name, of, 0, TEXT_WORDS).map_err(lost))
            .collect::<Result<_, _>>()?;
        let found = asked.into_iter().filter_map(|asked| asked.reply().ok());
        Ok(found.map(|property| String::from_utf8_lossy(&property.value).into_owned()).collect())
    }

    /// Fails if the display is gone, rather than just a window.
    fn still_there(&self) -> Result<(), String> {
        self.connection.get_input_focus().map_err(lost)?.reply().map(drop).map_err(lost)
    }
}

fn lost(error: impl std::fmt::Display) -> String {
    format!("the X display is gone: {error}")
}
