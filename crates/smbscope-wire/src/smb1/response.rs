//! What SMB1 responses say that later messages refer to (MS-CIFS 2.2.4).

use super::messages::{EchoResponse, NoDialect, NtCreateAndxResponse, OpenAndxResponse, OpenResponse, ReadMpxResponse};
use super::{Block, Command, TransactionKind, transaction::Progress};
use crate::bytes::u16_at;

/// The part of a response that the analysis needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// Index of the chosen dialect; 0xffff for none.
    Negotiate(u16),
    /// The FID of what was opened.
    Open(u16),
    /// ECHO: the number of this answer, from 1.
    Echo(u16),
    /// READ_MPX: bytes of the whole answer, and bytes in this message.
    Multiplexed(Progress),
    /// TRANSACTION and its kin: how much of the answer is in this message, and where its parameters begin.
    Transaction {
        /// Absent for an interim response, which has no words, and where they are cut off.
        progress: Option<Progress>,
        /// Bytes of the whole answer, as far as the words reach to it.
        total: Option<u64>,
        /// The FID of NT_TRANSACT_CREATE and TRANS2_OPEN2, were it one of these.
        fid: Option<u16>,
    },
    /// Nothing that is needed, or cut off.
    Other,
}

impl Response {
    /// Reads one block of a response; `message` begins with the header.
    pub fn parse(block: &Block<'_>, message: &[u8]) -> Response {
        Self::parse_block(block, message).unwrap_or(Response::Other)
    }

    fn parse_block(b: &Block<'_>, message: &[u8]) -> Option<Response> {
        Some(match b.command {
            Command::NEGOTIATE => Response::Negotiate(NoDialect::dialect_index(b.words)?),
            Command::NT_CREATE_ANDX => Response::Open(NtCreateAndxResponse::fid(b.words)?),
            Command::OPEN_ANDX => Response::Open(OpenAndxResponse::fid(b.words)?),
            Command::OPEN | Command::CREATE | Command::CREATE_NEW | Command::CREATE_TEMPORARY => {
                Response::Open(OpenResponse::fid(b.words)?)
            }
            Command::ECHO => Response::Echo(EchoResponse::sequence_number(b.words)?),
            Command::READ_MPX => Response::Multiplexed(Progress {
                total: ReadMpxResponse::count(b.words)?.into(),
                here: ReadMpxResponse::data_length(b.words)?.into(),
            }),
            command => {
                let kind = TransactionKind::of(command)?;
                let parameters = kind.response_parameters(b.words);
                Response::Transaction {
                    progress: kind.response_progress(b.words),
                    total: kind.response_total(b.words),
                    fid: parameters.and_then(|at| {
                        // NT_TRANSACT_CREATE puts the oplock level in front.
                        let skip = if kind == TransactionKind::Nt { 2 } else { 0 };
                        u16_at(message, at.checked_add(skip)?)
                    }),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Header, blocks};
    use super::*;

    #[test]
    fn nt_create_response_gives_the_fid() {
        let mut bytes = vec![0xff, b'S', b'M', b'B', 0xa2];
        bytes.resize(Header::LENGTH, 0);
        bytes[9] = 0x80;
        bytes.extend([34, 0xff, 0, 0, 0, 2, 0xcd, 0xab]);
        bytes.resize(Header::LENGTH + 1 + 68 + 2, 0);
        let header = Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        assert_eq!(Response::parse(&block, &bytes), Response::Open(0xabcd));
    }
}
