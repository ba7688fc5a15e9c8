//! NetBIOS session service and direct TCP framing (RFC 1002 4.3, MS-SMB2 2.1).
