//! Converts client settings and capacity results into the terms of the bench document.

use smbscope_client::{Cipher, ClientSigningPolicy, Encryption, SigningAlgorithm};
use smbscope_load::engine::result::{LoadPointResult, PacingResult};
use smbscope_load::engine::{self, Knee};
use smbscope_report::{bench, counted};

pub(crate) fn signing(signing: ClientSigningPolicy) -> &'static str {
    match signing {
        ClientSigningPolicy::Off => "off",
        ClientSigningPolicy::On => "on",
        ClientSigningPolicy::Required => "required",
    }
}

pub(crate) fn algorithm(algorithm: SigningAlgorithm) -> &'static str {
    match algorithm {
        SigningAlgorithm::Md5 => "MD5",
        SigningAlgorithm::HmacSha256 => "HMAC-SHA256",
        SigningAlgorithm::AesCmac => "AES-128-CMAC",
        SigningAlgorithm::AesGmac => "AES-128-GMAC",
    }
}

pub(crate) fn encryption(encryption: Encryption) -> &'static str {
    match encryption {
        Encryption::Off => "off",
        Encryption::Required(_) => "required",
    }
}

pub(crate) fn cipher(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Aes128Ccm => "AES-128-CCM",
        Cipher::Aes128Gcm => "AES-128-GCM",
        Cipher::Aes256Ccm => "AES-256-CCM",
        Cipher::Aes256Gcm => "AES-256-GCM",
    }
}

/// Converts the result of a capacity search. With `by_rate`, the loads are request rates, all tried with the same
/// number of users.
pub(crate) fn capacity(capacity: &engine::CapacityResult, by_rate: bool) -> bench::CapacityEntry {
    let found = match capacity.users {
        Knee::At(load) | Knee::AtLeast(load) => Some(load),
        Knee::Below(_) => None,
        Knee::Unfinished(load) => load,
    };
    let users = found.and_then(|_| capacity.tried.first()).map(|tried| tried.run.users);
    let rate = |run: &LoadPointResult| match run.pace {
        PacingResult::Open { rate, .. } if by_rate => Some(rate.round() as u32),
        _ => None,
    };
    bench::CapacityEntry {
        criterion: capacity.criterion.to_string(),
        users: if by_rate { users } else { found },
        rate: found.filter(|_| by_rate),
        always: capacity.range.and_then(|range| range.always),
        never: capacity.range.and_then(|range| range.never),
        tried: capacity
            .tried
            .iter()
            .map(|tried| bench::CapacityTrialEntry {
                users: tried.run.users,
                rate: rate(&tried.run),
                found: (!tried.verdict.found.is_empty()).then(|| tried.verdict.found.join(", ")),
                holds: tried.verdict.met,
            })
            .collect(),
    }
}

pub(crate) fn reservation(capacity: &engine::CapacityResult, by_rate: bool) -> Option<String> {
    let criterion = &capacity.criterion;
    match capacity.users {
        Knee::At(_) => None,
        Knee::AtLeast(rate) if by_rate => Some(format!(
            "{criterion} holds at {rate}/s, the highest rate that was tried: the capacity may be higher; give --rates a \
             larger range."
        )),
        Knee::AtLeast(users) => Some(format!(
            "{criterion} holds at {}, the most that were tried: the capacity may be higher; give --users a larger range.",
            counted(users.into(), "user", "users")
        )),
        // The report's answer already says so.
        Knee::Below(_) => None,
        Knee::Unfinished(_) => Some(format!("The search for the capacity with {criterion} was ended early.")),
    }
}
