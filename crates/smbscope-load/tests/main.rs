//! Tests of workloads and the load engine against Samba and scripted servers.

#[path = "../../smbscope-client/tests/common/mod.rs"]
mod common;
mod documented;
mod engine_on_samba;
mod faults;
mod links_on_samba;
mod queue_on_samba;
mod stalls;
mod steps_on_samba;
mod workloads_on_samba;
