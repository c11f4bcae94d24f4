// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers of tests that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64*
pub struct Random(pub u64);

impl Random {
    /// With the seed `TDT_TEST_SEED`, or one that is printed.
    pub fn new() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = std::env::var("TDT_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(now) | 1;
        println!("TDT_TEST_SEED={seed}");
        Random(seed)
    }

    /// Another one, for another thread.
    pub fn split(&mut self) -> Random {
        Random(self.below(u64::MAX) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}
