//! Queue of the disk: a thread completes each request at its due time.

use super::device::{Device, DiskRequest};
use crate::StorageFigures;
use crate::settings::Storage;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum bytes read for requests that are not yet completed.
const MAX_READ_BYTES: usize = 256 << 20;

pub(super) type DiskCompletion = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(crate) struct DiskQueue {
    started: Instant,
    state: Mutex<DiskQueueState>,
    changed: Condvar,
    room: Condvar,
}

#[derive(Debug)]
struct DiskQueueState {
    device: Device,
    waiting: BinaryHeap<PendingDiskRequest>,
    /// Number of requests so far. Breaks ties between equal due times.
    count: u64,
    bytes: usize,
    closed: bool,
}

struct PendingDiskRequest {
    due: Duration,
    number: u64,
    request: DiskRequest,
    bytes: usize,
    answer: DiskCompletion,
}

impl DiskQueue {
    pub(super) fn start(storage: Storage) -> io::Result<Arc<DiskQueue>> {
        let state = DiskQueueState {
            device: Device::new(storage),
            waiting: BinaryHeap::new(),
            count: 0,
            bytes: 0,
            closed: false,
        };
        let queue = Arc::new(DiskQueue {
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            room: Condvar::new(),
        });
        let own = Arc::clone(&queue);
        thread::Builder::new().name("lab-storage".to_owned()).spawn(move || own.serve())?;
        Ok(queue)
    }

    /// Completes a request when the disk is done with it. `arrived` is its arrival, `bytes` the data that its answer
    /// holds. Blocks while pending requests hold too much data.
    pub(super) fn pass(&self, arrived: Instant, request: DiskRequest, bytes: usize, answer: DiskCompletion) {
        let mut state = self.lock();
        while state.bytes > 0 && state.bytes + bytes > MAX_READ_BYTES && !state.closed {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            drop(state);
            return answer();
        }
        let due = state.device.begin(arrived.saturating_duration_since(self.started), request);
        let number = state.count;
        state.count += 1;
        state.bytes += bytes;
        state.waiting.push(PendingDiskRequest { due, number, request, bytes, answer });
        if state.waiting.peek().is_some_and(|first| first.number == number) {
            self.changed.notify_one();
        }
    }

    pub(super) fn figures(&self) -> StorageFigures {
        self.lock().device.figures(self.started.elapsed())
    }

    /// Completes all pending and future requests immediately, so that no process waits for a server that ends.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
        self.room.notify_all();
    }

    fn serve(&self) {
        let mut state = self.lock();
        loop {
            let now = self.started.elapsed();
            let closed = state.closed;
            let rest = match state.waiting.peek() {
                None if closed => return,
                None => None,
                Some(first) => Some(first.due.saturating_sub(now)).filter(|_| !closed).or(Some(Duration::ZERO)),
            };
            state = match rest {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    let done = state.waiting.pop().expect("it has just been looked at");
                    state.device.end(now, done.request);
                    state.bytes -= done.bytes;
                    drop(state);
                    self.room.notify_all();
                    (done.answer)();
                    self.lock()
                }
                Some(rest) => self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, DiskQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Earliest request first in a max-heap.
impl Ord for PendingDiskRequest {
    fn cmp(&self, other: &PendingDiskRequest) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl PartialOrd for PendingDiskRequest {
    fn partial_cmp(&self, other: &PendingDiskRequest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingDiskRequest {
    fn eq(&self, other: &PendingDiskRequest) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingDiskRequest {}

impl fmt::Debug for PendingDiskRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("due", &self.due).field("request", &self.request).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    type Answers = mpsc::Receiver<(u32, Instant)>;

    fn queue(storage: Storage) -> (Arc<DiskQueue>, impl Fn(u32), Answers) {
        let queue = DiskQueue::start(storage).expect("there is a thread");
        let (sender, answers) = mpsc::channel();
        let own = Arc::clone(&queue);
        let pass = move |number| {
            let sender = sender.clone();
            let answer = move || sender.send((number, Instant::now())).expect("the test listens");
            own.pass(Instant::now(), DiskRequest::Flush, 0, Box::new(answer));
        };
        (queue, pass, answers)
    }

    /// 50 per second and 30 ms each: completed after 30, 50 and 70 ms at the earliest, in order.
    #[test]
    fn requests_are_answered_in_order_and_never_too_early() {
        let storage = Storage { latency: Some(Duration::from_millis(30)), iops: Some(50), bandwidth: None };
        let (queue, pass, answers) = queue(storage);
        let begun = Instant::now();
        (0..3).for_each(&pass);
        for (number, earliest) in [(0, 30), (1, 50), (2, 70)] {
            let (answered, at) = answers.recv().expect("each is answered");
            assert_eq!(answered, number);
            assert!(at - begun >= Duration::from_millis(earliest), "{number}: {:?}", at - begun);
        }
        let figures = queue.figures();
        assert_eq!((figures.flushes, figures.outstanding), (3, 0));
        assert!(figures.busy >= Duration::from_millis(70) && figures.weighted >= Duration::from_millis(150));
        queue.close();
    }

    #[test]
    fn a_queue_that_closes_lets_nobody_wait() {
        let (queue, pass, answers) = queue(Storage { latency: Some(Duration::from_secs(3600)), ..Storage::default() });
        pass(0);
        assert_eq!(queue.figures().outstanding, 1);
        queue.close();
        pass(1);
        let mut answered: Vec<u32> = (0..2).map(|_| answers.recv().expect("it is answered").0).collect();
        answered.sort_unstable();
        assert_eq!(answered, [0, 1]);
    }
}
