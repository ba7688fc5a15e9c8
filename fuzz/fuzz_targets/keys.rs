#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| smbscope_fuzz::keys::keys(data));
