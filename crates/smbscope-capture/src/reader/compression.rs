//! Compressed captures: gzip, zstd, lz4 frames and xz, detected by content and decompressed as a stream.

use std::io::{self, BufReader, Read};

const READ_LENGTH: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Lz4,
    Xz,
}

impl Compression {
    pub(super) fn sniff(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // A skippable frame, which parallel compressors write first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Compression::Lz4),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }

    /// Detects compressions and archives that are not supported; returns the name and the command that unpacks them.
    pub(super) fn sniff_foreign(head: &[u8]) -> Option<(&'static str, &'static str)> {
        match head {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(("bzip2", "bunzip2")),
            [b'P', b'K', 3, 4, ..] => Some(("zip archive", "unzip")),
            [b'7', b'z', 0xbc, 0xaf, ..] => Some(("7z archive", "7z x")),
            [0x1f, 0x9d, ..] => Some(("compress", "uncompress")),
            _ if head.get(257..262) == Some(b"ustar") => Some(("tar archive", "tar -x")),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Lz4 => "lz4",
            Compression::Xz => "xz",
        }
    }

    /// Returns a reader of the decompressed bytes. Consecutive members or frames form one stream. A window larger than
    /// `window` bytes fails with [`io::ErrorKind::OutOfMemory`].
    pub(super) fn decoder(self, compressed: Box<dyn Read + Send>, window: u64) -> io::Result<Box<dyn Read + Send>> {
        let buffered = BufReader::with_capacity(READ_LENGTH, compressed);
        Ok(match self {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
                // A window is a power of two plus up to seven eighths; zstd compares the limit with the total.
                decoder.window_log_max(window.max(1).ilog2().clamp(10, 31))?;
                Box::new(Windowed { decoder, window })
            }
            Compression::Lz4 => {
                let source = Tail { source: buffered, last: [0xff; 8] };
                Box::new(Lz4Frames { decoder: lz4_flex::frame::FrameDecoder::new(source) })
            }
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(window, liblzma::stream::CONCATENATED)
                    .map_err(io::Error::other)?;
                Box::new(Windowed { decoder: liblzma::bufread::XzDecoder::new_stream(buffered, stream), window })
            }
        })
    }
}

/// Explains the error when a window is too large.
struct Windowed<R> {
    decoder: R,
    window: u64,
}

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            let reason = error.to_string().to_lowercase();
            // "Frame requires too much memory for decoding" (zstd), "memory limit reached" (xz).
            if !reason.contains("too much memory") && !reason.contains("memory limit") {
                return error;
            }
            let allowed = self.window >> 20;
            let text = format!("it needs a window of more than the {allowed} MiB that --memory allows: raise --memory");
            io::Error::new(io::ErrorKind::OutOfMemory, text)
        })
    }
}

struct Tail<R> {
    source: R,
    last: [u8; 8],
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let new = &buffer[..count];
        let kept = new.len().min(8);
        self.last.copy_within(kept.., 0);
        self.last[8 - kept..].copy_from_slice(&new[new.len() - kept..]);
        Ok(count)
    }
}

/// Reads consecutive lz4 frames. The decoder returns zero bytes both at the end of a frame and for a truncated one. The
/// end mark, four zero bytes before an optional checksum, distinguishes them (LZ4 frame format).
struct Lz4Frames<R: Read> {
    decoder: lz4_flex::frame::FrameDecoder<Tail<R>>,
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 0..2 {
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
        }
        let last = &self.decoder.get_ref().last;
        match last[..4] == [0; 4] || last[4..] == [0; 4] {
            true => Ok(0),
            false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame")),
        }
    }
}
