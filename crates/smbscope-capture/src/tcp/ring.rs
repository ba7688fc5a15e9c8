//! Ring buffer of the newest entries.

/// Keeps the newest `LIMIT` entries. Grows on demand, because most flows are short.
#[derive(Debug, Clone)]
pub(super) struct Ring<T, const LIMIT: usize> {
    entries: Vec<T>,
    oldest: usize,
}

impl<T, const LIMIT: usize> Default for Ring<T, LIMIT> {
    fn default() -> Self {
        Ring { entries: Vec::new(), oldest: 0 }
    }
}

impl<T, const LIMIT: usize> Ring<T, LIMIT> {
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        if self.entries.len() < LIMIT {
            self.entries.push(entry);
            return;
        }
        self.entries[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % LIMIT;
    }

    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.entries.capacity() * size_of::<T>()
    }

    #[inline]
    pub(super) fn find(&self, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.entries.iter().find(|entry| is(entry))
    }

    pub(super) fn newest(&self) -> Option<&T> {
        match self.oldest {
            0 => self.entries.last(),
            oldest => self.entries.get(oldest - 1),
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (newer, older) = self.entries.split_at(self.oldest);
        older.iter().chain(newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entries_are_kept_in_their_order() {
        let mut ring: Ring<u32, 3> = Ring::default();
        assert_eq!(ring.newest(), None);
        let mut seen = Vec::new();
        for entry in 1..=5 {
            ring.push(entry);
            assert_eq!(ring.newest(), Some(&entry));
            seen.push(ring.iter().copied().collect::<Vec<_>>());
        }
        assert_eq!(seen, [vec![1], vec![1, 2], vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5]]);
        assert_eq!(ring.iter().rev().copied().collect::<Vec<_>>(), [5, 4, 3]);
    }
}
