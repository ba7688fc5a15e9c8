//! Macro for enumerations whose values have names, so that each name is written once.

/// Declares an enumeration from values and their names, with `ALL`, `name` and `Display`.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $( $(#[$value_meta:meta])* $value:ident = $name:literal, )*
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $( $(#[$value_meta])* $value, )*
        }

        impl $type {
            /// Every value, in report order.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$value),*];

            /// Returns the name used in reports and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
