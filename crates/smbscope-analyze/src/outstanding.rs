//! The requests of a connection that wait for a response: by what it will repeat, and in the order in which they were sent.

use crate::pending::{PendingExchange, StreamSpan};
use crate::sent_order::SentOrder;
use std::collections::BTreeMap;

/// Requests up to which all are looked at to find one: those of nearly every connection.
const FEW_OUTSTANDING: usize = 64;

/// Requests `R` by the ids `K` that responses repeat.
#[derive(Debug)]
pub(crate) struct OutstandingRequests<K, R> {
    requests: BTreeMap<K, R>,
    sent: SentOrder<K>,
}

impl<K, R> Default for OutstandingRequests<K, R> {
    fn default() -> OutstandingRequests<K, R> {
        OutstandingRequests { requests: BTreeMap::new(), sent: SentOrder::default() }
    }
}

impl<K: Copy + Ord, R: AsRef<PendingExchange> + AsMut<PendingExchange>> OutstandingRequests<K, R> {
    pub(crate) fn by_id(&self) -> &BTreeMap<K, R> {
        &self.requests
    }

    pub(crate) fn get_mut(&mut self, id: K) -> Option<&mut R> {
        self.requests.get_mut(&id)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.requests.values_mut().map(R::as_mut)
    }

    /// Adds a request; returns the one with the same ids that was outstanding.
    pub(crate) fn insert(&mut self, id: K, request: R) -> Option<R> {
        let alive = began_at(&self.requests);
        self.sent.push(request.as_ref().request.start, id, self.requests.len(), alive);
        self.requests.insert(id, request)
    }

    pub(crate) fn remove(&mut self, id: K) -> Option<R> {
        self.requests.remove(&id)
    }

    /// The request that has been outstanding longest.
    pub(crate) fn remove_oldest(&mut self) -> Option<R> {
        let oldest = self.sent.oldest(began_at(&self.requests))?;
        self.requests.remove(&oldest)
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = R> + use<K, R> {
        std::mem::take(self).requests.into_values()
    }

    /// The requests that may lie in a stretch of the client's stream; in another order than that in which they were sent,
    /// where `order` has one.
    pub(crate) fn near(
        &mut self,
        span: StreamSpan,
        order: Option<&SentOrder<K>>,
        take: &mut impl FnMut(&mut PendingExchange),
    ) {
        if self.requests.len() <= FEW_OUTSTANDING {
            return self.iter_mut().for_each(take);
        }
        for id in order.unwrap_or(&self.sent).within(span.start, span.end) {
            if let Some(request) = self.requests.get_mut(&id) {
                take(request.as_mut());
            }
        }
    }
}

/// Whether the request that began there is still outstanding.
fn began_at<K: Ord, R: AsRef<PendingExchange>>(requests: &BTreeMap<K, R>) -> impl Fn(u64, K) -> bool {
    |start, id| requests.get(&id).is_some_and(|request| request.as_ref().request.start == start)
}
