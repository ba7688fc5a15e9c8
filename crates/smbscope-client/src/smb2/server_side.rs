//! Control codes: server-side copies (MS-SMB2 3.2.4.20.2), the server's interfaces (3.2.4.20.10), and those of
//! workloads.

use super::Smb2ClientSession;
use super::connection::Smb2RequestDetails;
use super::files::reference;
use super::replies::ReceivedResponse;
use super::{SessionOrigin, negotiate};
use crate::{ClientError, FileHandle, FsctlProfile};
use smbscope_model::Subcommand;
use smbscope_wire::names::Fsctl;
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::copy_chunk::{self, Copied, ResumeKey, SrvCopyChunk};
use smbscope_wire::smb2::messages::ioctl;
use smbscope_wire::smb2::messages::network_interface::{NetworkInterfaceInfo, interfaces};

/// Room for the server's interfaces, of 152 bytes each.
const INTERFACES: u32 = 64 * 1024;

impl Smb2ClientSession {
    /// Returns the key that identifies an open file as a copy source.
    pub async fn resume_key(&mut self, source: FileHandle) -> Result<ResumeKey, ClientError> {
        let code = Fsctl::SRV_REQUEST_RESUME_KEY;
        let reply = self.ioctl(code, reference(source)?, &[], ResumeKey::OUTPUT).await?;
        let output = self.output(&reply)?;
        ResumeKey::parse(output).ok_or_else(|| reply.malformed())
    }

    /// Copies chunks on the server into an open file. Returns the number of bytes copied. Servers limit the chunks,
    /// often to 256 of 1 MiB; beyond that they return STATUS_INVALID_PARAMETER.
    pub async fn copy_chunks(
        &mut self,
        source: ResumeKey,
        target: FileHandle,
        chunks: &[SrvCopyChunk],
    ) -> Result<u32, ClientError> {
        let mut input = std::mem::take(&mut self.data);
        input.clear();
        copy_chunk::emit(source, chunks, &mut input);
        let result = self.ioctl(Fsctl::SRV_COPYCHUNK, reference(target)?, &input, Copied::OUTPUT).await;
        self.data = input;
        let reply = result?;
        let output = self.output(&reply)?;
        Ok(Copied::parse(output).ok_or_else(|| reply.malformed())?.total_bytes_written)
    }

    pub async fn network_interfaces(&mut self) -> Result<Vec<NetworkInterfaceInfo>, ClientError> {
        let max_output = INTERFACES.min(self.facts.max_transact);
        let reply = self.ioctl(Fsctl::QUERY_NETWORK_INTERFACE_INFO, FileReference::NONE, &[], max_output).await?;
        Ok(interfaces(self.output(&reply)?).collect())
    }

    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        let SessionOrigin { options, negotiated } = &*self.origin;
        if control.code == Fsctl::VALIDATE_NEGOTIATE_INFO {
            if self.connection.protection.signer.is_none() {
                return Err(ClientError::Unsupported(format!(
                    "{} is signed, and a guest has no key for it",
                    control.code
                )));
            }
            return negotiate::validate(&mut self.connection, negotiated).await;
        }
        let file = handle.map_or(Ok(FileReference::NONE), reference)?;
        let input = control.input(&options.host, &options.share);
        let max_output = control.max_output.min(self.facts.max_transact);
        self.ioctl(control.code, file, &input, max_output).await.map(drop)
    }

    async fn ioctl(
        &mut self,
        code: Fsctl,
        file: FileReference,
        input: &[u8],
        max_output: u32,
    ) -> Result<ReceivedResponse, ClientError> {
        let about = Smb2RequestDetails {
            subcommand: Some(Subcommand::Fsctl(code)),
            file: Some(file).filter(|file| *file != FileReference::NONE),
            ..Smb2RequestDetails::default()
        };
        self.connection.call(&ioctl::Request::new(code, file, input, max_output), about).await?.ok()
    }

    fn output(&self, reply: &ReceivedResponse) -> Result<&[u8], ClientError> {
        let response = ioctl::Response::parse(self.connection.message(reply));
        response.map(|response| response.output).ok_or_else(|| reply.malformed())
    }
}
