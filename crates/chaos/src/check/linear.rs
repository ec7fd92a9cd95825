//! Linearizability after Wing and Gong, with Lowe's cache: is there an order of the operations, within their times,
//! that the model allows? An operation whose end nobody saw is open-ended: it may take effect at any time after its
//! start, or never.

use crate::clock::Micros;
use std::{
    collections::HashSet,
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
};

/// What the operations do.
pub(super) trait Model {
    /// Small, and cheap to copy.
    type State: Copy + Eq + Hash + Debug;
    /// What one operation did.
    type Act: Debug;

    /// The state after `act`; `None`: it cannot have happened in `state`.
    fn step(state: &Self::State, act: &Self::Act) -> Option<Self::State>;

    /// It never changes the state. Where it is possible now it is taken now, for that never hurts.
    fn is_read(act: &Self::Act) -> bool;
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Operation<A> {
    /// Who, for messages.
    pub(super) name: String,
    /// Not before.
    pub(super) start: Micros,
    /// Not after; `None`: open-ended.
    pub(super) end: Option<Micros>,
    /// What.
    pub(super) act: A,
}

/// Why no order was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refuted {
    /// There is none.
    Impossible,
    /// It would take too long to say.
    TooHard,
}

/// More steps than any history of a run needs, by far.
const STEPS_MAX: u64 = 20_000_000;

/// The set of operations done so far, as a sum: 128 bits drawn for each.
fn mark(index: usize) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (index, salt).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

struct Search<'a, M: Model> {
    operations: &'a [Operation<M::Act>],
    /// Those that must happen, by start, and those that may.
    required: Vec<usize>,
    open: Vec<usize>,
    done: Vec<bool>,
    /// Before this place in `required` everything is done.
    first: usize,
    left: usize,
    set: u128,
    seen: HashSet<(u128, M::State)>,
}

/// One step of the order: what was possible there, and which of it is being tried.
struct Frame<S> {
    state: S,
    choices: Vec<usize>,
    tried: usize,
    first: usize,
}

/// Looks for an order of `operations` that begins in `initial`.
///
/// # Errors
/// When there is none.
pub(super) fn check<M: Model>(
    initial: M::State,
    operations: &[Operation<M::Act>],
) -> Result<(), Refuted> {
    let mut search = Search::<M>::new(operations);
    let mut frames = vec![search.frame(initial)];
    for _ in 0..STEPS_MAX {
        if search.left == 0 {
            return Ok(());
        }
        let Some(frame) = frames.last_mut() else { return Err(Refuted::Impossible) };
        let Some(&choice) = frame.choices.get(frame.tried) else {
            frames.pop();
            if let Some(before) = frames.last_mut() {
                search.undo(before.choices[before.tried], before.first);
                before.tried += 1;
            }
            continue;
        };
        let state = M::step(&frame.state, &operations[choice].act).expect("choices are possible");
        search.take(choice);
        if search.seen.insert((search.set, state)) {
            let next = search.frame(state);
            frames.push(next);
        } else {
            search.undo(choice, frame.first);
            frame.tried += 1;
        }
    }
    Err(Refuted::TooHard)
}

impl<'a, M: Model> Search<'a, M> {
    fn new(operations: &'a [Operation<M::Act>]) -> Self {
        let (mut required, open): (Vec<_>, Vec<_>) =
            (0..operations.len()).partition(|&index| operations[index].end.is_some());
        required.sort_by_key(|&index| operations[index].start);
        Self {
            operations,
            left: required.len(),
            required,
            open,
            done: vec![false; operations.len()],
            first: 0,
            set: 0,
            seen: HashSet::new(),
        }
    }

    /// What can come next in `state`.
    fn frame(&mut self, state: M::State) -> Frame<M::State> {
        while self.required.get(self.first).is_some_and(|&index| self.done[index]) {
            self.first += 1;
        }
        let mut bound = Micros::MAX;
        let mut near = Vec::new();
        for &index in &self.required[self.first..] {
            let operation = &self.operations[index];
            if operation.start > bound {
                break;
            }
            if !self.done[index] {
                bound = bound.min(operation.end.expect("it is required"));
                near.push(index);
            }
        }
        // Whoever must end first is tried first; what may happen or not comes last.
        near.sort_by_key(|&index| self.operations[index].end);
        near.extend(self.open.iter().filter(|&&index| !self.done[index]));
        let possible = |&index: &usize| {
            let operation = &self.operations[index];
            operation.start <= bound && M::step(&state, &operation.act).is_some()
        };
        let mut choices: Vec<_> = near.into_iter().filter(possible).collect();
        if let Some(&read) = choices.iter().find(|&&it| M::is_read(&self.operations[it].act)) {
            choices = vec![read];
        }
        Frame { state, choices, tried: 0, first: self.first }
    }

    fn take(&mut self, index: usize) {
        self.done[index] = true;
        self.set ^= mark(index);
        self.left -= usize::from(self.operations[index].end.is_some());
    }

    fn undo(&mut self, index: usize, first: usize) {
        self.done[index] = false;
        self.set ^= mark(index);
        self.left += usize::from(self.operations[index].end.is_some());
        self.first = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: the textbook's example.
    struct Register;
    #[derive(Debug)]
    enum Act {
        Write(u8),
        Read(u8),
    }
    impl Model for Register {
        type State = u8;
        type Act = Act;
        fn step(state: &u8, act: &Act) -> Option<u8> {
            match act {
                Act::Write(value) => Some(*value),
                Act::Read(value) => (state == value).then_some(*state),
            }
        }
        fn is_read(act: &Act) -> bool {
            matches!(act, Act::Read(_))
        }
    }

    fn at(start: Micros, end: Option<Micros>, act: Act) -> Operation<Act> {
        Operation { name: String::new(), start, end, act }
    }

    #[test]
    fn concurrent_operations_may_come_in_any_order_and_others_not() {
        let write = || at(0, Some(10), Act::Write(1));
        let reads =
            |first, second| [at(1, Some(2), Act::Read(first)), at(3, Some(4), Act::Read(second))];
        let run = |[a, b]: [_; 2]| check::<Register>(0, &[write(), a, b]);
        assert_eq!(run(reads(0, 0)), Ok(()));
        assert_eq!(run(reads(0, 1)), Ok(()));
        assert_eq!(run(reads(1, 0)), Err(Refuted::Impossible), "a value does not go back");
        assert_eq!(run(reads(2, 2)), Err(Refuted::Impossible), "nobody wrote it");
    }

    #[test]
    fn a_pending_write_may_happen_late_or_never_and_not_before_it_was_sent() {
        let pending = || at(10, None, Act::Write(1));
        for (start, value, expected) in
            [(20, 0, Ok(())), (20, 1, Ok(())), (900, 1, Ok(())), (5, 1, Err(Refuted::Impossible))]
        {
            let read = at(start, Some(start + 1), Act::Read(value));
            assert_eq!(check::<Register>(0, &[pending(), read]), expected, "{start} {value}");
        }
    }

    #[test]
    fn what_was_tried_in_vain_is_taken_back() {
        // Both writes are possible first; only one order explains the reads.
        let operations = [
            at(0, Some(100), Act::Write(1)),
            at(0, Some(100), Act::Write(2)),
            at(0, Some(100), Act::Write(3)),
            at(101, Some(102), Act::Read(2)),
            at(50, Some(60), Act::Read(3)),
        ];
        assert_eq!(check::<Register>(0, &operations), Ok(()));
    }
}
