//! Who logs on: SPNEGO (RFC 4178), NTLMSSP (MS-NLMP), Kerberos (RFC 4120).
