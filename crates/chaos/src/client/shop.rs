//! The mixed load on holds: buyers who hold one or several things, hold them again, exchange them for others, begin to
//! pay, release with and without their fence, come late, and leave things in their baskets.

use super::caller::{Asked, Caller, ms};
use crate::history::{Family, Heard, HoldOf, Op};
use rand::{RngExt, seq::SliceRandom};

/// How many things the shelf has.
pub(crate) const THINGS: usize = 6;
const FAMILY: Family = Family::Hold;

/// The things of a run.
pub(crate) fn thing(index: usize) -> String {
    format!("shelf/{index}")
}

/// A basket: what one owner holds, with its fences.
struct Basket {
    owner: String,
    held: Vec<(String, u64)>,
}

/// One worker: an instance of a shop, with one buyer after the other.
pub(super) struct Worker(pub(super) Caller);

impl Worker {
    pub(super) async fn run(mut self) {
        while !self.0.stop.is_set() {
            match self.0.random.random_range(0..100) {
                0..15 => {
                    let thing = self.thing();
                    self.look(thing).await;
                }
                15..18 => self.force().await,
                _ => self.buyer().await,
            }
            self.0.pause().await;
        }
    }

    fn thing(&mut self) -> String {
        thing(self.0.random.random_range(0..THINGS))
    }

    fn things(&mut self, count: usize) -> Vec<String> {
        let mut all: Vec<_> = (0..THINGS).map(thing).collect();
        all.shuffle(&mut self.0.random);
        all.truncate(count);
        all
    }

    async fn look(&mut self, resource: String) -> Option<sereno_api::Hold> {
        match self.0.call(&Op::Get { family: FAMILY, resource }).await {
            Heard::Shelf(hold) => Some(hold),
            _ => {
                self.0.move_on().await;
                None
            }
        }
    }

    async fn force(&mut self) {
        let resource = self.thing();
        let holder = self.look(resource.clone()).await.and_then(|it| it.holder);
        if let Some(holder) = holder {
            let (token, request) = (holder.fence, self.0.new_request());
            self.0.insist(&Op::Force { family: FAMILY, resource, token, request }).await;
        }
    }

    async fn buyer(&mut self) {
        let owner = format!("buyer-{}", self.0.new_request());
        let count = [1, 1, 2, 3][self.0.random.random_range(0..4)];
        let things = self.things(count);
        let mut basket = Basket { owner, held: Vec::new() };
        self.hold(&mut basket, things, false).await;
        for _ in 0..self.0.random.random_range(0..3) {
            self.change(&mut basket).await;
        }
        self.leave(&basket).await;
    }

    /// Holds all of `things`, or none; instead of what is in the basket, if so wished.
    async fn hold(&mut self, basket: &mut Basket, things: Vec<String>, instead: bool) {
        let ttl_ms = [2_000, 3_000, 5_000][self.0.random.random_range(0..3)];
        let is_asked = |(held, _): &&(String, u64)| !things.contains(held);
        let replaces = match instead {
            true => basket.held.iter().filter(is_asked).cloned().collect(),
            false => Vec::new(),
        };
        let (owner, request) = (basket.owner.clone(), self.0.new_request());
        let op =
            Op::Hold { resources: things, owner, replaces: Vec::clone(&replaces), request, ttl_ms };
        match self.0.ask(&op, ms(8_000)).await {
            Asked::Granted(heard) => {
                basket.held.retain(|held| !replaces.contains(held));
                for (thing, fence) in heard.tokens() {
                    basket.held.retain(|(held, _)| held != thing);
                    basket.held.push((thing.to_owned(), fence));
                }
            }
            // Somebody else's; or nobody knows, and the owner looks no further.
            Asked::Refused | Asked::GivenUp => {}
        }
    }

    async fn change(&mut self, basket: &mut Basket) {
        let Some((resource, fence)) = basket.held.first().cloned() else { return };
        let names: Vec<_> = basket.held.iter().map(|(name, _)| name.clone()).collect();
        match self.0.random.random_range(0..5) {
            0 => {
                let others = self.things(names.len());
                self.hold(basket, others, true).await;
            }
            // Another click: the hold that they have.
            1 => self.hold(basket, names, false).await,
            2 => {
                let pause = self.0.random.random_range(200..1_500);
                self.0.rest(ms(pause)).await;
                let hold = self.named(basket, resource, Some(fence));
                self.0.insist(&Op::RenewHold(hold)).await;
            }
            3 => {
                let hold = self.named(basket, resource, Some(fence));
                let ttl_ms = self.0.random.random_range(2_000..6_000);
                self.0.insist(&Op::Begin { hold, ttl_ms }).await;
            }
            // A fence that was theirs once, or never.
            _ => {
                let hold = self.named(basket, resource, Some(fence - 1));
                self.0.insist(&Op::ReleaseHold(hold)).await;
            }
        }
    }

    fn named(&mut self, basket: &Basket, resource: String, fence: Option<u64>) -> HoldOf {
        HoldOf { resource, owner: basket.owner.clone(), fence, request: self.0.new_request() }
    }

    async fn leave(&mut self, basket: &Basket) {
        match self.0.random.random_range(0..100) {
            // It ends by itself.
            0..10 => return,
            10..25 => self.0.rest(ms(6_500)).await,
            _ => {}
        }
        for (resource, fence) in &basket.held {
            let with_fence = self.0.chance(80).then_some(*fence);
            let hold = self.named(basket, resource.clone(), with_fence);
            let op = Op::ReleaseHold(hold);
            if self.0.chance(15) {
                self.0.twice(&op).await;
            }
            self.0.insist(&op).await;
        }
    }
}
