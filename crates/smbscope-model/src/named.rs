//! Enumerations whose values have names: each value and its name stand once.

/// Makes an enumeration of a list of values with their names, with all of them in order and the name of each.
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
            /// All of them, in the order of reports.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$value),*];

            /// The name in reports and on the command line.
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
