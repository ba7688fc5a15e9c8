//! Memory limits of an analysis.
//!
//! Everything that grows with the number of flows, requests, sessions and names is charged to a budget. When it is
//! used up, the least recently active connections are evicted and counted in [`Quality`](crate::Quality). Data that
//! does not depend on the capture, such as reader buffers and statistics tables, has fixed bounds outside the budget;
//! `docs/limits.md` lists them all.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes for flows: reassembly buffers, incomplete frames, outstanding requests.
    pub flows: usize,
    /// Bytes for the names of SMB2 sessions: users, shares, paths of open files.
    pub names: usize,
    /// Number of connections listed individually. Commands of the others still count.
    pub connections: usize,
}

impl MemoryBudget {
    pub const DEFAULT_MEMORY: usize = 512 << 20;
    /// With less memory, ordinary captures would hit the limits.
    pub const LEAST_MEMORY: usize = 32 << 20;

    pub const fn for_memory(memory: usize) -> MemoryBudget {
        let connections = if memory / 4096 < 100_000 { memory / 4096 } else { 100_000 };
        MemoryBudget { flows: memory / 4 * 3, names: memory / 4, connections }
    }

    /// Returns the budgets of one of `parts` parts. Flows are distributed by hash, so a part may list up to four times
    /// its share of connections; the merged list is cut to the total.
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
