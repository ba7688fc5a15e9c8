//! Every SMB2 and SMB3 dialect with every signing mode, every cipher and both kinds of users, against Samba: the same
//! operations, with their results compared on the server's file system.

use crate::common::{self, DIALECTS, SIGNINGS, create, encryptions, options, run, samba, user};
use smbscope_client::{
    ByteRangeLock, ClientError, ClientSession, ClientSigningPolicy, Credentials, Encryption, Info, ListingEntry,
    SessionOptions, SetInfo, SigningAlgorithm,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::{Command, Dialect, ExchangeOutcome};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;

#[test]
fn every_dialect_works_with_every_signing_and_cipher_as_guest_and_as_user() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        for signing in SIGNINGS {
            for encryption in encryptions(dialect) {
                for credentials in [Credentials::Guest, user(&server)] {
                    let guest = matches!(credentials, Credentials::Guest);
                    let options = SessionOptions { signing, encryption, credentials, ..options(&server, dialect) };
                    let what = format!("{dialect:04x} {signing:?} {encryption:?}, guest {guest}");
                    let result = run(work(&server, &options));
                    if guest && (signing == ClientSigningPolicy::Required || encryption != Encryption::Off) {
                        assert!(
                            matches!(result, Err(ClientError::Unsupported(_))),
                            "{what}: a guest has no key: {result:?}"
                        );
                    } else {
                        result.unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                }
            }
        }
    }
}

#[test]
fn every_signing_algorithm_of_3_1_1_works() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for algorithm in [SigningAlgorithm::HmacSha256, SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac] {
        let mut options = common::user_options(&server, 0x0311);
        options.signing = ClientSigningPolicy::Required;
        options.signing_algorithm = Some(algorithm);
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            assert_eq!(session.facts().signing, Some(algorithm));
            session.echo().await.unwrap();
            session.disconnect().await.unwrap();
        });
    }
}

/// Performs typical operations once.
async fn work(server: &LabServer, options: &SessionOptions) -> Result<(), ClientError> {
    let mut session = ClientSession::connect(options).await?;
    check_facts(&session, options);
    session.make_directory("matrix").await?;
    let file = session.open(&create(r"matrix\a.txt")).await?;
    assert_eq!(file.action, 2, "created");
    let data: Vec<u8> = (0..100_000u32).map(|n| n as u8 ^ (n >> 8) as u8).collect();
    session.write(file.handle, 0, &data).await?;
    session.flush(file.handle).await?;
    assert!(session.read(file.handle, 0, 100_000).await? == &data[..], "what was written is read");
    assert_eq!(session.read(file.handle, 99_998, 10).await?, &data[99_998..], "the end of the file cuts a read short");
    let beyond = session.read(file.handle, 200_000, 1).await.unwrap_err();
    assert_eq!(beyond.status(), Some(NtStatus::END_OF_FILE));
    assert!(std::fs::read(server.share_folder().join("matrix/a.txt")).unwrap() == data, "and is in the server's file");

    let standard = session.query_file(file.handle, Info::FILE_STANDARD_INFORMATION).await?;
    assert_eq!(standard[8..16], 100_000u64.to_le_bytes(), "EndOfFile, MS-FSCC 2.4.47");
    session.set_file(file.handle, SetInfo::EndOfFile(5)).await?;
    let network_open = session.query_path(r"matrix\a.txt", Info::FILE_NETWORK_OPEN_INFORMATION).await?;
    assert_eq!(network_open[40..48], 5u64.to_le_bytes(), "EndOfFile, MS-FSCC 2.4.33");
    let size = session.query_file_system(Info::FILE_FS_FULL_SIZE_INFORMATION).await?;
    assert_eq!(size.len(), 32, "MS-FSCC 2.5.4");

    let range = ByteRangeLock { offset: 0, length: 4, exclusive: true, wait: false };
    session.lock(file.handle, range).await?;
    let other = session.open(&create(r"matrix\a.txt")).await?;
    let refused = session.lock(other.handle, range).await.unwrap_err();
    assert_eq!(refused.status(), Some(NtStatus::LOCK_NOT_GRANTED));
    session.close(other.handle).await?;
    session.unlock(file.handle, 0, 4).await?;
    session.close(file.handle).await?;

    session.rename(r"matrix\a.txt", r"matrix\b.txt").await?;
    let mut entries: Vec<ListingEntry> = Vec::new();
    let count = session.list(r"matrix\*", Info::FILE_ID_BOTH_DIRECTORY_INFORMATION, 0, Some(&mut entries)).await?;
    assert_eq!(count, 3);
    assert!(entries.iter().any(|entry| entry.name == "b.txt" && entry.size == 0 && !entry.is_directory()));
    let full = session.remove_directory("matrix").await.unwrap_err();
    assert_eq!(full.status(), Some(NtStatus::DIRECTORY_NOT_EMPTY));
    session.remove_file(r"matrix\b.txt").await?;
    session.remove_directory("matrix").await?;
    assert!(!server.share_folder().join("matrix").exists());
    session.echo().await?;
    check_samples(&mut session, options);
    session.disconnect().await
}

fn check_facts(session: &ClientSession, options: &SessionOptions) {
    let facts = session.facts();
    let guest = matches!(options.credentials, Credentials::Guest);
    assert_eq!((facts.dialect, facts.guest), (options.dialect, guest));
    let signed = options.signing == ClientSigningPolicy::Required && options.encryption == Encryption::Off;
    assert_eq!(facts.signing.is_some(), signed, "{facts:?}");
    match options.encryption {
        Encryption::Off => assert_eq!(facts.cipher, None),
        Encryption::Required(cipher) => assert_eq!(facts.cipher, cipher),
    }
}

/// Checks that every command has a sample with ordered times and the requested protection.
fn check_samples(session: &mut ClientSession, options: &SessionOptions) {
    let encrypted = options.encryption != Encryption::Off;
    let samples = session.samples();
    assert!(samples.len() > 40, "{} samples", samples.len());
    for sample in samples.iter() {
        assert_eq!(sample.outcome, ExchangeOutcome::Complete);
        assert!(sample.request_first <= sample.request_last && sample.request_last <= sample.response_last);
        assert!(sample.response_first <= sample.response_last);
        assert!(sample.request_bytes >= 68 && sample.response_bytes >= 66);
        let Command::Smb2(command) = sample.command else { panic!("{sample:?}") };
        let begins = matches!(command, smb2::Smb2Command::NEGOTIATE | smb2::Smb2Command::SESSION_SETUP);
        assert_eq!(sample.encrypted, encrypted && !begins, "{command}");
        let guest = matches!(options.credentials, Credentials::Guest);
        // Always signed: the tree connect of 3.1.1, the validation of 3.0 and 3.0.2.
        let always = match options.dialect {
            Dialect::Smb2(0x0311) => command == smb2::Smb2Command::TREE_CONNECT,
            Dialect::Smb2(0x0300 | 0x0302) => command == smb2::Smb2Command::IOCTL,
            _ => false,
        };
        let signed = !begins && !encrypted && !guest && (always || options.signing == ClientSigningPolicy::Required);
        assert_eq!(sample.signed, signed, "{command}");
    }
}
