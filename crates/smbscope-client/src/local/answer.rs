//! Maps system errors to the NTSTATUS that an SMB server would return.

use smbscope_wire::status::NtStatus;
use std::io::{self, ErrorKind};

#[derive(Debug, Clone, Copy)]
pub(super) struct LocalRefusal(pub(super) NtStatus);

impl From<io::Error> for LocalRefusal {
    fn from(error: io::Error) -> LocalRefusal {
        LocalRefusal(status_of(&error))
    }
}

fn status_of(error: &io::Error) -> NtStatus {
    match error.kind() {
        ErrorKind::NotFound => NtStatus::OBJECT_NAME_NOT_FOUND,
        ErrorKind::AlreadyExists => NtStatus::OBJECT_NAME_COLLISION,
        ErrorKind::PermissionDenied => NtStatus::ACCESS_DENIED,
        ErrorKind::ReadOnlyFilesystem => NtStatus::MEDIA_WRITE_PROTECTED,
        ErrorKind::DirectoryNotEmpty => NtStatus::DIRECTORY_NOT_EMPTY,
        ErrorKind::IsADirectory => NtStatus::FILE_IS_A_DIRECTORY,
        ErrorKind::NotADirectory => NtStatus::NOT_A_DIRECTORY,
        ErrorKind::StorageFull | ErrorKind::FileTooLarge => NtStatus::DISK_FULL,
        ErrorKind::QuotaExceeded => NtStatus::QUOTA_EXCEEDED,
        ErrorKind::InvalidFilename => NtStatus::OBJECT_NAME_INVALID,
        ErrorKind::CrossesDevices => NtStatus::NOT_SAME_DEVICE,
        ErrorKind::UnexpectedEof => NtStatus::END_OF_FILE,
        ErrorKind::WouldBlock => NtStatus::LOCK_NOT_GRANTED,
        ErrorKind::Unsupported => NtStatus::NOT_SUPPORTED,
        _ => NtStatus::UNEXPECTED_IO_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errno values of Linux (errno(3)).
    #[test]
    fn errors_of_the_system_are_answers_of_a_server() {
        for (errno, status) in [
            (2, NtStatus::OBJECT_NAME_NOT_FOUND),
            (13, NtStatus::ACCESS_DENIED),
            (17, NtStatus::OBJECT_NAME_COLLISION),
            (20, NtStatus::NOT_A_DIRECTORY),
            (21, NtStatus::FILE_IS_A_DIRECTORY),
            (28, NtStatus::DISK_FULL),
            (30, NtStatus::MEDIA_WRITE_PROTECTED),
            (39, NtStatus::DIRECTORY_NOT_EMPTY),
            (5, NtStatus::UNEXPECTED_IO_ERROR),
        ] {
            assert_eq!(status_of(&io::Error::from_raw_os_error(errno)), status, "errno {errno}");
        }
    }
}
