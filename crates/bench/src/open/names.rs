//! Which names are free, as far as the generator knows: those that nothing of its own is about.

use rand::{RngExt, rngs::SmallRng};
use std::{collections::VecDeque, time::Instant};

/// A name by its number.
pub(super) type Name = u32;

/// All names, and who is about each. A name is *claimed* once for everything that can hold it or is asking for it:
/// a lease, a waiting call, a release under way, a lease left to die. Without a claim it is free.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<String>,
    claims: Vec<u32>,
    free: Vec<Name>,
    /// Leases that nobody will release, and when they are surely over; in that order.
    buried: VecDeque<(Instant, Name)>,
}

impl Names {
    pub(super) fn new(count: u32) -> Self {
        Self {
            texts: (0..count).map(|number| format!("bench/{number}")).collect(),
            claims: vec![0; count as usize],
            free: (0..count).collect(),
            buried: VecDeque::new(),
        }
    }

    pub(super) fn text(&self, name: Name) -> &str {
        &self.texts[name as usize]
    }

    /// Claims a free name, drawn at random.
    pub(super) fn claim_free(&mut self, rng: &mut SmallRng, now: Instant) -> Option<Name> {
        while let Some(&(over, name)) = self.buried.front()
            && over <= now
        {
            self.buried.pop_front();
            self.unclaim(name);
        }
        if self.free.is_empty() {
            return None;
        }
        let name = self.free.swap_remove(rng.random_range(0..self.free.len()));
        self.claim(name);
        Some(name)
    }

    /// One more is about this name.
    pub(super) fn claim(&mut self, name: Name) {
        self.claims[name as usize] += 1;
    }

    /// One less.
    pub(super) fn unclaim(&mut self, name: Name) {
        let claims = &mut self.claims[name as usize];
        *claims -= 1;
        if *claims == 0 {
            self.free.push(name);
        }
    }

    /// The claim ends by itself when whatever lease there may be is over.
    pub(super) fn bury(&mut self, name: Name, over: Instant) {
        self.buried.push_back((over, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::time::Duration;

    #[test]
    fn a_name_is_free_when_nothing_is_about_it() {
        let (mut names, mut rng) = (Names::new(1), SmallRng::seed_from_u64(1));
        let now = Instant::now();
        let name = names.claim_free(&mut rng, now).unwrap();
        assert_eq!(names.text(name), "bench/0");
        names.claim(name);
        names.unclaim(name);
        assert_eq!(
            names.claim_free(&mut rng, now),
            None,
            "the holder is released, one still waits"
        );
        names.unclaim(name);
        assert_eq!(names.claim_free(&mut rng, now), Some(name));
    }

    #[test]
    fn what_was_left_to_die_comes_back_in_time() {
        let (mut names, mut rng) = (Names::new(1), SmallRng::seed_from_u64(1));
        let now = Instant::now();
        let name = names.claim_free(&mut rng, now).unwrap();
        names.bury(name, now + Duration::from_secs(30));
        assert_eq!(names.claim_free(&mut rng, now + Duration::from_secs(29)), None);
        assert_eq!(names.claim_free(&mut rng, now + Duration::from_secs(30)), Some(name));
    }
}
