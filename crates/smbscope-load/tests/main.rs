//! Tests of the client, the workloads and the load engine against Samba and scripted servers.

mod common;
mod engine_on_samba;
mod faults;
mod impacket;
mod links_on_samba;
mod queue_on_samba;
mod smb1;
mod smb2_faults;
mod smb2_features;
mod smb2_matrix;
mod stalls;
mod steps_on_samba;
mod tshark;
mod workloads_on_samba;
