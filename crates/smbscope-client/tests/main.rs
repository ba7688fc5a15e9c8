//! Tests of the client against Samba, tshark, impacket and scripted servers.

mod common;
mod impacket;
mod smb1;
mod smb2_faults;
mod smb2_features;
mod smb2_matrix;
mod tshark;
