//! Outstanding requests of a connection, by id and in the order of sending.

use crate::pending::{PendingExchange, StreamSpan};
use crate::sent_order::SentOrder;
use std::collections::BTreeMap;

/// Up to this number, requests are searched linearly, as on nearly every connection.
const FEW_OUTSTANDING: usize = 64;

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

    pub(crate) fn insert(&mut self, id: K, request: R) -> Option<R> {
        let alive = began_at(&self.requests);
        self.sent.push(request.as_ref().request.start, id, self.requests.len(), alive);
        self.requests.insert(id, request)
    }

    pub(crate) fn remove(&mut self, id: K) -> Option<R> {
        self.requests.remove(&id)
    }

    pub(crate) fn remove_oldest(&mut self) -> Option<R> {
        let oldest = self.sent.oldest(began_at(&self.requests))?;
        self.requests.remove(&oldest)
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = R> + use<K, R> {
        std::mem::take(self).requests.into_values()
    }

    /// Passes the requests that may lie in a range of the client's stream to `take`. Searches `order` instead of the
    /// order of sending, if given.
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

fn began_at<K: Ord, R: AsRef<PendingExchange>>(requests: &BTreeMap<K, R>) -> impl Fn(u64, K) -> bool {
    |start, id| requests.get(&id).is_some_and(|request| request.as_ref().request.start == start)
}
