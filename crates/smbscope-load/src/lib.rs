//! The load generator: simulated users run a workload against an SMB server, and every command is timed.
//!
//! [`workload`] defines the users' steps: a loadfile, a TOML file or a built-in workload. [`prepare`] creates the files
//! that the workload needs on the share. [`engine`] runs the users over `smbscope-client` sessions, following a
//! schedule and a ramp, and aggregates their response times. Start reading at [`engine::run`].

#![forbid(unsafe_code)]

pub mod engine;
pub mod prepare;
pub mod workload;

pub mod bounded {
    //! Size-limited reading of files that the user names: a FIFO or a device has no end.

    use std::fs::File;
    use std::io::{self, Read};
    use std::path::Path;

    /// Bytes of a workload; more are refused. dbench's `client.txt` has 26 million.
    pub const WORKLOAD_MAX: u64 = 256 << 20;

    /// Bytes of a TOML workload; more are refused. The built-in ones have a few thousand.
    pub const WORKLOAD_TABLE_MAX: usize = 1 << 20;

    /// Reads a whole file. Returns an error if it is larger than `most` bytes.
    pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let most = if most >> 20 > 0 { format!("{} MiB", most >> 20) } else { format!("{most} bytes") };
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most}")));
        }
        Ok(bytes)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_file_is_read_up_to_its_bound() {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), [7; 10]).unwrap();
            assert_eq!(read(file.path(), 10).unwrap(), [7; 10]);
            assert_eq!(read(file.path(), 9).unwrap_err().to_string(), "it has more than 9 bytes");
            assert_eq!(read(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string(), "it has more than 1 MiB");
        }
    }
}
