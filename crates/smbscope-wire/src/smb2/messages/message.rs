//! Macro that generates the type of a message, its parser and its emitter from a table of fields.

use crate::codec::{Buffer, LengthField};
use crate::smb2::{Smb2Command, Smb2Header};

pub trait Smb2Message {
    const COMMAND: Smb2Command;

    /// Appends the body to a buffer that ends with the message's header.
    fn emit(&self, out: &mut Vec<u8>);
}

/// Declares a message from a table of fields with their offsets in the body. `with` introduces the buffers: `[u16 @ 2,
/// u32 @ 4]` are the fields for offset and length; `optional` leaves the offset zero for an empty buffer; `[u16 @ 2]`
/// is the count of elements that directly follow the fields. A request with an odd StructureSize has at least one byte
/// after its fields.
///
/// Each field gets a function of the same name that reads it from a possibly truncated message; a buffer's function
/// returns its offset and length.
///
/// `target File(file)` names the variant of [`Smb2Request`](crate::smb2::Smb2Request) or
/// [`Smb2Response`](crate::smb2::Smb2Response) that the analysis makes of these fields. The last of them ends
/// at `within`. `names Path in name` is a buffer with a name, which an anonymous copy replaces. `sends data` and
/// `expects length` are the buffer and the size that a credit charge counts. `impl` adds items to the
/// message's [`Smb2RequestMessage`](super::Smb2RequestMessage) or [`Smb2ResponseMessage`](super::Smb2ResponseMessage).
macro_rules! message {
    ($(#[$meta:meta])* $kind:ident $name:ident<$life:lifetime>: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $kind $name [<$life>] [&$life [u8]] $($rest)*);
    };
    ($(#[$meta:meta])* $kind:ident $name:ident: $($rest:tt)*) => {
        message!(@define [$(#[$meta])*] $kind $name [] [&[u8]] $($rest)*);
    };
    (
        @define [$($meta:tt)*] $kind:ident $name:ident [$($generics:tt)*] [$bytes:ty]
        $command:ident, $size:literal $(in $fixed:literal)? {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty = $offset:literal, )*
        }
        $(with {
            $( $(#[$buffer_meta:meta])* $buffer:ident: $buffer_type:ty = [$($place:tt)*], )*
        })?
        $(target $variant:ident $parts:tt $(within $head:ident)?)?
        $(names $named:ident in $text:ident)?
        $(sends $sent:ident)?
        $(expects $expected:ident)?
        $(impl { $($items:tt)* })?
    ) => {
        message!(
            @facts $kind $name [$($generics)*] [$($variant $parts [$($head)?])?] [$($named $text)?]
            [$($sent)?] [$($expected)?] $($($items)*)?
        );

        $($meta)*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name $($generics)* {
            $( $(#[$field_meta])* pub $field: $type, )*
            $($( $(#[$buffer_meta])* pub $buffer: $buffer_type, )*)?
        }

        impl $($generics)* $name $($generics)* {
            const FIELDS: usize = message!(@fields $size $($fixed)?);
            /// End of the fields, relative to the header.
            pub const END: usize = $crate::smb2::Smb2Header::LENGTH + Self::FIELDS;

            /// Positions of the offset and length fields of each buffer, relative to the header. Tests overwrite them.
            pub const PLACES: &'static [[std::ops::Range<usize>; 2]] =
                &[$($( message!(@field_places $($place)*), )*)?];

            pub fn parse(message: $bytes) -> Option<Self> {
                if $crate::bytes::u16_at(message, $crate::smb2::Smb2Header::LENGTH)? != $size {
                    return None;
                }
                Some($name {
                    $( $field: Self::$field(message)?, )*
                    $($( $buffer: {
                        let (offset, length) = Self::$buffer(message)?;
                        $crate::codec::Buffer::parse(message, offset, length)?
                    }, )*)?
                })
            }

            $(
                #[doc = concat!("Reads `", stringify!($field), "` of a possibly truncated message.")]
                #[inline]
                pub fn $field(message: &[u8]) -> Option<$type> {
                    $crate::codec::FixedSizeField::at(message, $crate::smb2::Smb2Header::LENGTH + $offset)
                }
            )*

            $($(
                #[doc = concat!("Returns offset and length of `", stringify!($buffer), "` in a possibly truncated message.")]
                #[inline]
                pub fn $buffer(message: &[u8]) -> Option<(usize, usize)> {
                    message!(@place message, $($place)*)
                }
            )*)?

            #[cfg(test)]
            #[allow(unused_variables)]
            pub(in crate::smb2::messages) fn any(fields: &[u8], buffers: $bytes) -> Self {
                $name {
                    $( $field: $crate::codec::FixedSizeField::at(fields, $offset).expect("room for all fields"), )*
                    $($( $buffer: $crate::codec::Buffer::any(buffers), )*)?
                }
            }
        }

        impl $($generics)* $crate::smb2::messages::Smb2Message for $name $($generics)* {
            const COMMAND: $crate::smb2::Smb2Command = $crate::smb2::Smb2Command::$command;

            fn emit(&self, out: &mut Vec<u8>) {
                let body = out.len();
                let mut fields = [0; Self::FIELDS];
                $crate::codec::FixedSizeField::set($size as u16, &mut fields, 0);
                $( $crate::codec::FixedSizeField::set(self.$field, &mut fields, $offset); )*
                out.extend_from_slice(&fields);
                $($( message!(@append self.$buffer, body, out, $($place)*); )*)?
                if message!(@is_request $kind) && $size % 2 == 1 && out.len() == body + Self::FIELDS {
                    out.push(0);
                }
            }
        }
    };
    (
        @facts request $name:ident [$($generics:tt)*] [$($variant:ident $parts:tt [$($head:ident)?])?]
        [$($named:ident $text:ident)?] [$($sent:ident)?] [$($expected:ident)?] $($items:tt)*
    ) => {
        impl $($generics)* $crate::smb2::messages::Smb2RequestMessage for $name $($generics)* {
            $(
                const PARSED: usize = message!(@parsed $($head)?);

                fn view(message: &[u8]) -> Option<$crate::smb2::Smb2Request> {
                    message!(@view message Smb2Request $variant $parts)
                }
            )?
            $(
                fn needed(prefix: &[u8]) -> usize {
                    $crate::smb2::view::reach(Self::$text(prefix), Self::END)
                }

                fn retain_buffers(message: &[u8], kept: &mut $crate::kept::RetainedRanges) -> Option<()> {
                    kept.utf16($crate::kept::NameOf::$named, Self::$text(message)?);
                    Some(())
                }
            )?
            $(
                fn payload(&self) -> usize {
                    self.$sent.len()
                }
            )?
            $(
                fn expected(&self) -> usize {
                    self.$expected as usize
                }
            )?
            $($items)*
        }
    };
    (@facts response $name:ident [$($generics:tt)*] [$($variant:ident $parts:tt [])?] [] [] [] $($items:tt)*) => {
        impl $($generics)* $crate::smb2::messages::Smb2ResponseMessage for $name $($generics)* {
            $(
                fn view(message: &[u8]) -> Option<$crate::smb2::Smb2Response> {
                    message!(@view message Smb2Response $variant $parts)
                }
            )?
            $($items)*
        }
    };
    (@parsed) => { Self::END };
    (@parsed $head:ident) => { $head };
    (@view $message:ident $view:ident $variant:ident ($part:ident)) => {
        Self::$part($message).map($crate::smb2::$view::$variant)
    };
    (@view $message:ident $view:ident $variant:ident { $($part:ident),* }) => {
        Some($crate::smb2::$view::$variant { $( $part: Self::$part($message)?, )* })
    };
    (@fields $size:literal) => { $size & !1 };
    (@fields $size:literal $fixed:literal) => { $fixed };
    (@is_request request) => { true };
    (@is_request response) => { false };
    (@is_optional) => { false };
    (@is_optional optional) => { true };
    (@field_places $offset:ident @ $at:literal, $length:ident @ $length_at:literal $(, $optional:ident)?) => {
        [
            $crate::smb2::Smb2Header::LENGTH + $at..$crate::smb2::Smb2Header::LENGTH + $at + size_of::<$offset>(),
            $crate::smb2::Smb2Header::LENGTH + $length_at..$crate::smb2::Smb2Header::LENGTH + $length_at + size_of::<$length>(),
        ]
    };
    (@field_places $count:ident @ $at:literal) => {
        [0..0, $crate::smb2::Smb2Header::LENGTH + $at..$crate::smb2::Smb2Header::LENGTH + $at + size_of::<$count>()]
    };
    (@place $message:ident, $offset:ident @ $at:literal, $length:ident @ $length_at:literal $(, $optional:ident)?) => {{
        let offset = <$offset as $crate::codec::FixedSizeField>::at($message, $crate::smb2::Smb2Header::LENGTH + $at)?;
        let length = <$length as $crate::codec::FixedSizeField>::at($message, $crate::smb2::Smb2Header::LENGTH + $length_at)?;
        Some(($crate::codec::LengthField::to_usize(offset), $crate::codec::LengthField::to_usize(length)))
    }};
    (@place $message:ident, $count:ident @ $at:literal) => {{
        let count = <$count as $crate::codec::FixedSizeField>::at($message, $crate::smb2::Smb2Header::LENGTH + $at)?;
        Some((Self::END, $crate::codec::LengthField::to_usize(count)))
    }};
    (
        @append $self:ident.$buffer:ident, $body:ident, $out:ident,
        $offset:ident @ $at:literal, $length:ident @ $length_at:literal $(, $optional:ident)?
    ) => {
        let at = [$body + $at, $body + $length_at];
        let is_optional = message!(@is_optional $($optional)?);
        $crate::smb2::messages::message::append::<$offset, $length>(&$self.$buffer, $body, at, is_optional, $out);
    };
    (@append $self:ident.$buffer:ident, $body:ident, $out:ident, $count:ident @ $at:literal) => {
        let count = $crate::codec::Buffer::emit(&$self.$buffer, $body, $out);
        $crate::codec::FixedSizeField::set(<$count as $crate::codec::LengthField>::from_usize(count), $out, $body + $at);
    };
}

/// Appends a buffer and sets its offset and length fields. An optional buffer is aligned to 8 bytes.
pub(super) fn append<'a, O: LengthField, L: LengthField>(
    buffer: &impl Buffer<'a>,
    body: usize,
    [offset_at, length_at]: [usize; 2],
    is_optional: bool,
    out: &mut Vec<u8>,
) {
    let header = body.saturating_sub(Smb2Header::LENGTH);
    if is_optional {
        if buffer.is_empty() {
            return;
        }
        crate::codec::Put::pad(out, header, 8);
    }
    O::from_usize(out.len() - header).set(out, offset_at);
    let length = buffer.emit(header, out);
    L::from_usize(length).set(out, length_at);
}
