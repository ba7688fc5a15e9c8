//! SMB2 compression (MS-SMB2 2.2.42, MS-XCA).
