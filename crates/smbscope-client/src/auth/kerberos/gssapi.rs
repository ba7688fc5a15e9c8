//! The system's GSSAPI (RFC 2744), loaded when the first ticket is needed: without it, everything else still works.

#![allow(unsafe_code)]

use libloading::Library;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::{ptr, slice};

/// MIT's, then Heimdal's.
const LIBRARIES: [&str; 2] = ["libgssapi_krb5.so.2", "libgssapi.so.3"];

/// Kerberos 5, 1.2.840.113554.1.2.2 (RFC 4121 1).
static KERBEROS: Oid = Oid::new(super::super::KERBEROS);
/// GSS_KRB5_NT_PRINCIPAL_NAME, 1.2.840.113554.1.2.2.1 (RFC 1964 2.1.1): the name stays as the user gave it.
static PRINCIPAL_NAME: Oid = Oid::new(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02, 0x01]);
/// GSS_C_INQ_SSPI_SESSION_KEY, 1.2.840.113554.1.2.2.5.5.
static SESSION_KEY: Oid = Oid::new(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02, 0x05, 0x05]);

/// GSS_C_MUTUAL_FLAG and GSS_C_INTEG_FLAG.
const WANTED: u32 = 0x02 | 0x20;
const CONTINUE_NEEDED: u32 = 1;
/// Calling errors and routine errors. Lower bits only inform.
const ERRORS: u32 = 0xffff_0000;
const NO_CREDENTIALS: u32 = 7 << 16;
const CREDENTIALS_EXPIRED: u32 = 11 << 16;
/// Status types of gss_display_status.
const OF_GSSAPI: c_int = 1;
const OF_MECHANISM: c_int = 2;

/// gss_OID_desc.
#[repr(C)]
struct Oid {
    length: u32,
    elements: *const u8,
}

// SAFETY: the elements are static and are not written.
unsafe impl Sync for Oid {}

impl Oid {
    const fn new(elements: &'static [u8]) -> Oid {
        Oid { length: elements.len() as u32, elements: elements.as_ptr() }
    }
}

/// gss_buffer_desc.
#[repr(C)]
struct Buffer {
    length: usize,
    value: *const u8,
}

impl Buffer {
    const EMPTY: Buffer = Buffer { length: 0, value: ptr::null() };

    fn borrowed(bytes: &[u8]) -> Buffer {
        Buffer { length: bytes.len(), value: bytes.as_ptr() }
    }

    /// # Safety
    /// The buffer must be empty or filled by GSSAPI, and not released.
    unsafe fn bytes(&self) -> &[u8] {
        if self.value.is_null() { &[] } else { unsafe { slice::from_raw_parts(self.value, self.length) } }
    }
}

/// gss_buffer_set_desc.
#[repr(C)]
struct BufferSet {
    count: usize,
    elements: *const Buffer,
}

/// gss_name_t, gss_ctx_id_t, gss_cred_id_t, gss_channel_bindings_t: opaque.
type Handle = *mut c_void;

type ImportName = unsafe extern "C" fn(*mut u32, *const Buffer, *const Oid, *mut Handle) -> u32;
type InitSecContext = unsafe extern "C" fn(
    minor: *mut u32,
    credentials: Handle,
    context: *mut Handle,
    target: Handle,
    mechanism: *const Oid,
    flags: u32,
    lifetime_s: u32,
    channel_bindings: Handle,
    input: *const Buffer,
    actual_mechanism: *mut *const Oid,
    output: *mut Buffer,
    actual_flags: *mut u32,
    actual_lifetime_s: *mut u32,
) -> u32;
type InquireSecContext = unsafe extern "C" fn(*mut u32, Handle, *const Oid, *mut *mut BufferSet) -> u32;
type DisplayStatus = unsafe extern "C" fn(*mut u32, u32, c_int, *const Oid, *mut u32, *mut Buffer) -> u32;
type DeleteSecContext = unsafe extern "C" fn(*mut u32, *mut Handle, *mut Buffer) -> u32;
type ReleaseName = unsafe extern "C" fn(*mut u32, *mut Handle) -> u32;
type ReleaseBuffer = unsafe extern "C" fn(*mut u32, *mut Buffer) -> u32;
type ReleaseBufferSet = unsafe extern "C" fn(*mut u32, *mut *mut BufferSet) -> u32;

struct Gssapi {
    import_name: ImportName,
    init_sec_context: InitSecContext,
    inquire_sec_context_by_oid: InquireSecContext,
    display_status: DisplayStatus,
    delete_sec_context: DeleteSecContext,
    release_name: ReleaseName,
    release_buffer: ReleaseBuffer,
    release_buffer_set: ReleaseBufferSet,
    /// The functions are valid while it lives.
    _library: Library,
}

impl Gssapi {
    fn get() -> Result<&'static Gssapi, GssapiError> {
        static GSSAPI: OnceLock<Option<Gssapi>> = OnceLock::new();
        GSSAPI.get_or_init(Gssapi::load).as_ref().ok_or(GssapiError::NoLibrary)
    }

    fn load() -> Option<Gssapi> {
        // SAFETY: initialisers of these libraries have no preconditions.
        let library = LIBRARIES.iter().find_map(|name| unsafe { Library::new(name) }.ok())?;
        // SAFETY: RFC 2744 declares the functions like this, and both libraries declare its extensions alike.
        unsafe {
            Some(Gssapi {
                import_name: *library.get(b"gss_import_name").ok()?,
                init_sec_context: *library.get(b"gss_init_sec_context").ok()?,
                inquire_sec_context_by_oid: *library.get(b"gss_inquire_sec_context_by_oid").ok()?,
                display_status: *library.get(b"gss_display_status").ok()?,
                delete_sec_context: *library.get(b"gss_delete_sec_context").ok()?,
                release_name: *library.get(b"gss_release_name").ok()?,
                release_buffer: *library.get(b"gss_release_buffer").ok()?,
                release_buffer_set: *library.get(b"gss_release_buffer_set").ok()?,
                _library: library,
            })
        }
    }

    /// Returns the error of a call, in the library's words.
    fn check(&self, major: u32, minor: u32) -> Result<(), GssapiError> {
        let text = || match minor {
            0 => self.text(major, OF_GSSAPI),
            _ => self.text(minor, OF_MECHANISM),
        };
        match major & ERRORS {
            0 => Ok(()),
            NO_CREDENTIALS | CREDENTIALS_EXPIRED => Err(GssapiError::NoCredentials(text())),
            _ => Err(GssapiError::Refused(text())),
        }
    }

    fn text(&self, status: u32, kind: c_int) -> String {
        let (mut minor, mut more, mut text) = (0, 0, Buffer::EMPTY);
        // SAFETY: all pointers are valid during the calls, and the text is released after its last use.
        unsafe {
            (self.display_status)(&mut minor, status, kind, &KERBEROS, &mut more, &mut text);
            let message = String::from_utf8_lossy(text.bytes()).into_owned();
            (self.release_buffer)(&mut minor, &mut text);
            message
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum GssapiError {
    #[error("this system has no GSSAPI library: install it (Debian: libgssapi-krb5-2), or use a password")]
    NoLibrary,
    #[error("{0}")]
    NoCredentials(String),
    #[error("{0}")]
    Refused(String),
}

/// An initiator's context with the default credentials.
pub(super) struct SecurityContext {
    gssapi: &'static Gssapi,
    context: Handle,
    target: Handle,
}

// SAFETY: contexts and names may be used in any thread, one at a time.
unsafe impl Send for SecurityContext {}

impl SecurityContext {
    pub(super) fn new(service: &str) -> Result<SecurityContext, GssapiError> {
        let gssapi = Gssapi::get()?;
        let mut new = SecurityContext { gssapi, context: ptr::null_mut(), target: ptr::null_mut() };
        let mut minor = 0;
        // SAFETY: all pointers are valid during the call, which copies the name.
        let major = unsafe {
            (gssapi.import_name)(&mut minor, &Buffer::borrowed(service.as_bytes()), &PRINCIPAL_NAME, &mut new.target)
        };
        gssapi.check(major, minor)?;
        Ok(new)
    }

    /// Takes the acceptor's token, empty at first. Returns the next one for it, and whether the context is established.
    pub(super) fn step(&mut self, token: &[u8]) -> Result<(Vec<u8>, bool), GssapiError> {
        let (mut minor, mut output, none) = (0, Buffer::EMPTY, ptr::null_mut());
        // SAFETY: all pointers are valid during the calls, and the output is released after its last use.
        let (major, reply) = unsafe {
            let major = (self.gssapi.init_sec_context)(
                &mut minor,
                none,
                &mut self.context,
                self.target,
                &KERBEROS,
                WANTED,
                0,
                none,
                &Buffer::borrowed(token),
                ptr::null_mut(),
                &mut output,
                ptr::null_mut(),
                ptr::null_mut(),
            );
            let reply = output.bytes().to_vec();
            (self.gssapi.release_buffer)(&mut 0, &mut output);
            (major, reply)
        };
        self.gssapi.check(major, minor)?;
        Ok((reply, major & CONTINUE_NEEDED == 0))
    }

    /// Returns the key of an established context (gss_inquire_sec_context_by_oid, an extension of both libraries).
    pub(super) fn session_key(&self) -> Result<Vec<u8>, GssapiError> {
        let (mut minor, mut set) = (0, ptr::null_mut::<BufferSet>());
        // SAFETY: all pointers are valid during the calls. The first element is the key; it is copied before the release.
        let (major, key) = unsafe {
            let major = (self.gssapi.inquire_sec_context_by_oid)(&mut minor, self.context, &SESSION_KEY, &mut set);
            let key = match set.as_ref() {
                Some(set) if set.count > 0 => (*set.elements).bytes().to_vec(),
                _ => Vec::new(),
            };
            (self.gssapi.release_buffer_set)(&mut 0, &mut set);
            (major, key)
        };
        self.gssapi.check(major, minor)?;
        if key.is_empty() {
            return Err(GssapiError::Refused("the context has no session key".to_owned()));
        }
        Ok(key)
    }
}

impl Drop for SecurityContext {
    fn drop(&mut self) {
        // SAFETY: both are null or valid, and are not used afterwards.
        unsafe {
            (self.gssapi.delete_sec_context)(&mut 0, &mut self.context, ptr::null_mut());
            (self.gssapi.release_name)(&mut 0, &mut self.target);
        }
    }
}
