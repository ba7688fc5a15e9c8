//! The macro that turns a table of names and values into an open enumeration.

/// Gives a newtype over an unsigned integer its constants, `KNOWN`, `name`, `Display` and, where the table has a
/// second column, `short_name`.
///
/// The constant's identifier is the specification's name without `$prefix`; a value may stand in a table once only
/// (the `match` in `name` refuses a repetition).
macro_rules! open_enum {
    ($type:ident, $prefix:literal, $hex:literal {
        $($name:ident = $value:literal $(, $short:literal)?;)*
    }) => {
        impl $type {
            $(
                #[doc = concat!("`", $prefix, stringify!($name), "`, `", stringify!($value), "`.")]
                pub const $name: $type = $type($value);
            )*

            /// Every value with a name, in the order of the specification's table.
            pub const KNOWN: &'static [$type] = &[$($type($value)),*];

            /// The specification's name of this value, if it has one.
            #[deny(unreachable_patterns)]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!($prefix, stringify!($name))),)*
                    _ => None,
                }
            }
        }

        $crate::names::open_enum!(@short $type $($value $(=> $short)?,)*);

        /// The specification's name, or the value in hexadecimal.
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
            /// The classic analyser's name of this value (`Read+X`), if it has one.
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
