//! Macro that generates the type of a message, its parser and its emitter from a table of fields.

use super::Smb1MessageWriter;
use crate::smb1::{Smb1Command, Smb1Header};

/// Parameters and data of one command.
pub trait Smb1Message {
    const COMMAND: Smb1Command;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>);

    /// Appends a complete message: the header with this command, parameters, data.
    fn emit(&self, header: &Smb1Header, out: &mut Vec<u8>) {
        Smb1MessageWriter::new(&Smb1Header { command: Self::COMMAND, ..*header }, out).add(self);
    }
}

/// Declares a message from its number of words and a table of fields with their offsets in the words. AndX fields need
/// no entry. `with` introduces the data in order: `text`, `formatted` (after a buffer format byte) and `oem` are
/// terminated strings, `bytes` is the rest. `bytes = 14` and `text = 5` name the offset of the field with their
/// length.
///
/// Each field gets a function of the same name that reads it from possibly truncated words; for data with a length,
/// the function returns the length.
macro_rules! message {
    ($(#[$meta:meta])* $name:ident<$life:lifetime>: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $name [<$life>] [$life] $($rest)*);
    };
    ($(#[$meta:meta])* $name:ident: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $name [] ['_] $($rest)*);
    };
    (
        @define [$($meta:tt)*] $name:ident [$($generics:tt)*] [$life:lifetime] $command:ident, $words:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty = $offset:literal, )*
        }
        $(with {
            $( $(#[$data_meta:meta])* $data:ident: $kind:ident $(= $length:literal)?, )*
        })?
    ) => {
        $($meta)*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $($generics)* {
            $( $(#[$field_meta])* pub $field: $type, )*
            $($( $(#[$data_meta])* pub $data: message!(@type $kind $life), )*)?
        }

        impl $($generics)* $name $($generics)* {
            /// Number of parameter words.
            pub const WORDS: usize = $words;

            /// Parses a message of this command.
            pub fn parse(message: &$life [u8]) -> Result<Self, $crate::smb1::messages::Malformed> {
                let command = $crate::smb1::Smb1Command::$command;
                Self::read(&$crate::smb1::messages::view::View::parse(message, command)?)
            }

            /// Parses one command of a chain.
            pub fn parse_block(block: &$crate::smb1::Block<$life>) -> Result<Self, $crate::smb1::messages::Malformed> {
                Self::read(&block.into())
            }

            #[allow(unused_variables)]
            fn read(
                view: &$crate::smb1::messages::view::View<$life>,
            ) -> Result<Self, $crate::smb1::messages::Malformed> {
                $(let mut at = 0; $(let $data = message!(@read $kind view at $($length)?);)*)?
                Ok($name { $( $field: view.value($offset)?, )* $($($data,)*)? })
            }

            $(
                #[doc = concat!("`", stringify!($field), "` of words that may be cut.")]
                #[inline]
                pub fn $field(words: &[u8]) -> Option<$type> {
                    $crate::codec::FixedSizeField::at(words, $offset)
                }
            )*

            $($($(
                #[doc = concat!("The length of `", stringify!($data), "`, of words that may be cut.")]
                #[inline]
                pub fn $data(words: &[u8]) -> Option<u16> {
                    $crate::codec::FixedSizeField::at(words, $length)
                }
            )?)*)?

            /// Returns the words, with zero lengths of the data.
            fn words(&self) -> [u8; 2 * $words] {
                let mut words = [0; 2 * $words];
                $crate::smb1::messages::message::begin($crate::smb1::Smb1Command::$command, &mut words);
                $( $crate::codec::FixedSizeField::set(self.$field, &mut words, $offset); )*
                words
            }

            /// Builds a message from arbitrary bytes.
            #[cfg(test)]
            #[allow(unused_variables)]
            pub(super) fn any(words: &[u8], text: &$life str, bytes: &$life [u8]) -> Self {
                $name {
                    $( $field: $crate::codec::FixedSizeField::at(words, $offset).expect("room for all words"), )*
                    $($( $data: message!(@any $kind text bytes), )*)?
                }
            }
        }

        impl $($generics)* $crate::smb1::messages::Smb1Message for $name $($generics)* {
            const COMMAND: $crate::smb1::Smb1Command = $crate::smb1::Smb1Command::$command;

            fn body(&self, writer: &mut $crate::smb1::messages::Smb1MessageWriter<'_>) {
                #[allow(unused_mut)]
                let mut words = self.words();
                $($($( $crate::codec::FixedSizeField::set(writer.length_of(self.$data), &mut words, $length); )?)*)?
                writer.bytes(&words);
                writer.data();
                $($( message!(@emit $kind self.$data, writer); )*)?
            }
        }
    };
    (@type bytes $life:lifetime) => { &$life [u8] };
    (@type $kind:ident $life:lifetime) => { $crate::smb1::messages::WireText<$life> };
    (@read bytes $view:ident $at:ident $length:literal) => { $view.take(&mut $at, $view.value::<u16>($length)?)? };
    (@read bytes $view:ident $at:ident) => { $view.rest(&mut $at) };
    (@read text $view:ident $at:ident $($length:literal)?) => { $view.text(&mut $at) };
    (@read oem $view:ident $at:ident) => { $view.oem_text(&mut $at) };
    (@read formatted $view:ident $at:ident) => { $view.formatted(&mut $at)? };
    (@any bytes $text:ident $bytes:ident) => { $bytes };
    (@any $kind:ident $text:ident $bytes:ident) => { $text.into() };
    (@emit bytes $self:ident.$data:ident, $writer:ident) => { $writer.bytes($self.$data) };
    (@emit text $self:ident.$data:ident, $writer:ident) => { $writer.terminated($self.$data) };
    (@emit oem $self:ident.$data:ident, $writer:ident) => { $writer.oem($self.$data) };
    (@emit formatted $self:ident.$data:ident, $writer:ident) => { $writer.formatted($self.$data) };
}

pub(super) use message;

/// Terminates the AndX chain in the words of an AndX command.
pub(super) fn begin(command: Smb1Command, words: &mut [u8]) {
    if let (true, [next, ..]) = (command.is_andx(), words) {
        *next = Smb1Command::NO_ANDX.0;
    }
}
