#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| smbscope_fuzz::pipeline::pipeline(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    smbscope_fuzz::mutate::mutate(data, size, max_size, seed, libfuzzer_sys::fuzzer_mutate)
});
libfuzzer_sys::fuzz_crossover!(|first: &[u8], second: &[u8], out: &mut [u8], seed: u32| {
    smbscope_fuzz::mutate::cross(first, second, out, seed)
});
