//! Macro that turns a table of names and values into an open enumeration.

/// Implements constants, `KNOWN`, `name` and `Display` for a newtype over an unsigned integer, and `short_name` if the
/// table has a second column.
///
/// A constant is named like the specification's constant without `$prefix`. Repeated values are a compile error (the
/// `match` in `name`).
macro_rules! open_enum {
    ($type:ident, $prefix:literal, $hex:literal {
        $($name:ident = $value:literal $(, $short:literal)?;)*
    }) => {
        impl $type {
            $(
                #[doc = concat!("`", $prefix, stringify!($name), "`, `", stringify!($value), "`.")]
                pub const $name: $type = $type($value);
            )*

            /// Every named value, in table order.
            pub const KNOWN: &'static [$type] = &[$($type($value)),*];

            /// Returns the specification's name, if it has one.
            #[deny(unreachable_patterns)]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!($prefix, stringify!($name))),)*
                    _ => None,
                }
            }
        }

        $crate::names::open_enum!(@short $type $($value $(=> $short)?,)*);

        /// Prints the specification's name, or the value in hexadecimal.
        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&format!($hex, self.0)),
                }
            }
        }
    };
    (@short $type:ident $($value:literal => $short:literal,)+) => {
        impl $type {
            /// Returns the name in classic response-time reports (`Read+X`), if it has one.
            pub const fn short_name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($short),)*
                    _ => None,
                }
            }
        }
    };
    (@short $type:ident $($value:literal,)*) => {};
}

pub(crate) use open_enum;
