//! What is going to happen, in order: by time, and at one time as planned.

use crate::clock::Real;
use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

#[derive(Debug)]
struct Due<E> {
    at: Real,
    number: u64,
    event: E,
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Debug)]
pub(crate) struct Agenda<E> {
    due: BinaryHeap<Reverse<Due<E>>>,
    planned: u64,
    pub(crate) now: Real,
}

impl<E> Agenda<E> {
    pub(crate) fn new() -> Self {
        Self { due: BinaryHeap::new(), planned: 0, now: 0 }
    }

    pub(crate) fn at(&mut self, at: Real, event: E) {
        self.planned += 1;
        let at = at.max(self.now);
        self.due.push(Reverse(Due { at, number: self.planned, event }));
    }

    pub(crate) fn after(&mut self, delay_ns: u64, event: E) {
        self.at(self.now + delay_ns, event);
    }

    /// The next event, if it is due before `end`. Time moves on to it.
    pub(crate) fn next(&mut self, end: Real) -> Option<E> {
        if self.due.peek()?.0.at >= end {
            return None;
        }
        let Reverse(due) = self.due.pop()?;
        self.now = due.at;
        Some(due.event)
    }
}
