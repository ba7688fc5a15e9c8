//! Small random number generator (xorshift64*, Vigna 2016). A seed gives the same numbers on every platform.

#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // The state must not be zero, and adjacent seeds should give unrelated sequences (splitmix64).
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((state ^ (state >> 31)).max(1))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number from 0 to `end`, exclusive.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.bits() >> 11) as f64 / (1u64 << 53) as f64) < probability
    }
}
