//! NTLMv2: messages, responses and keys (MS-NLMP 2.2, 3.3.2 and 3.4), for the client and for decryption.

mod keys;
mod logon;
mod message;

pub use keys::{MessageSigner, NtlmResponses, NtlmSender, hmac_md5, nt_owf_v2, rc4_key, respond};
pub use logon::{CapturedLogon, server_challenge};
pub use message::{Authenticate, Challenge, TargetInfo, flags, negotiate, utf16};
