//! How much memory an analysis may take, in one place.
//!
//! Whatever grows with the number of flows, requests, sessions and names is charged against a budget; when it is used
//! up, the least recently active connections are evicted and counted in [`Quality`](crate::Quality). What does not depend
//! on the capture (buffers of the reader, tables of the statistics) has fixed bounds beside the budget: `docs/limits.md` lists
//! all of them.

/// Budgets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// For flows: what they hold back, outstanding frames, requests that wait for an answer.
    pub flows: usize,
    /// For the names of SMB2 sessions: users, shares, paths of open files.
    pub names: usize,
    /// How many connections are listed one by one. The commands of others count all the same.
    pub connections: usize,
}

impl MemoryBudget {
    /// What an analysis may take unless it is told otherwise.
    pub const DEFAULT_MEMORY: usize = 512 << 20;
    /// With less than this the limits would be met in ordinary captures.
    pub const LEAST_MEMORY: usize = 32 << 20;

    /// The budgets of an analysis that may take `memory` bytes.
    pub const fn for_memory(memory: usize) -> MemoryBudget {
        let connections = if memory / 4096 < 100_000 { memory / 4096 } else { 100_000 };
        MemoryBudget { flows: memory / 4 * 3, names: memory / 4, connections }
    }

    /// The budgets of one of `parts` parts, among which flows are divided by chance: a part may list more connections
    /// than its share, and only what is too much for all of them is left out in the end.
    pub const fn part(self, parts: usize) -> MemoryBudget {
        let connections = if parts > 4 { self.connections / parts * 4 } else { self.connections };
        MemoryBudget { flows: self.flows / parts, names: self.names / parts, connections }
    }
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::for_memory(MemoryBudget::DEFAULT_MEMORY)
    }
}
