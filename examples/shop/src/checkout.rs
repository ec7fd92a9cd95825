//! From the basket to the box. Holds keep two buyers from paying for the same pair; the stock would refuse the second
//! one in any case.

use crate::{
    name::Name,
    order::{self, Order, Purchase, State},
    provider::{Charge, Provider},
    stock::{Begun, Stock, StockError},
};
use sereno_client::{Client, Held, HoldError, HoldName, ListHolds, OnUnavailable, Protection};
use sereno_guard::{Fence, InvalidFence};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// How often a buyer tries another pair when somebody was quicker.
const TRIES: u32 = 200;

pub(crate) struct Settings {
    /// How long a pair is kept for a buyer who looks at the basket.
    pub hold: Duration,
    /// How long it is kept for a buyer who pays.
    pub payment: Duration,
    /// Up to so many pairs are scarce.
    pub scarce: usize,
}

pub(crate) struct Checkout {
    pub client: Client,
    pub stock: Stock,
    pub provider: Provider,
    pub settings: Settings,
}

/// What a buyer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A pair is kept for them for so long.
    Held { pair: i32, remaining: Duration },
    /// There are plenty, or there is nobody to ask for a hold: go on, and the stock decides.
    Open,
    /// All that are left are in other buyers' baskets. One of them may be free again after so long.
    Taken { frees_in: Option<Duration> },
    /// This buyer holds enough, or had this one a moment ago: the limits of the namespace.
    Enough,
    /// None are left.
    SoldOut,
    /// Nothing is kept for them any more.
    Left,
    /// Theirs.
    Sold { pair: Option<i32> },
    /// Paid too late, or without a hold, and somebody else was quicker: the money is back.
    Refunded,
    /// The card was refused. A purchase with another card has another payment key.
    Declined,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error("the provider: {0}")]
    Provider(#[from] tokio_postgres::Error),
    #[error("Sereno: {0}")]
    Sereno(#[from] HoldError),
    #[error("Sereno: {0}")]
    Fence(#[from] InvalidFence),
    #[error("this paymentKey belongs to another purchase")]
    OtherPurchase,
}

/// What a buyer goes to the till with.
enum Basket {
    /// A pair that nobody else can hold.
    Held(i32, Held),
    /// Nothing but hope.
    Open,
    /// Nothing at all, and this is why.
    Empty(Answer),
}

/// What they come from the till with.
enum Till {
    /// It is written down: now the money may move.
    Order(Order),
    /// The pair was sold a moment ago: perhaps there is another one.
    Again,
    Refused(Answer),
}

impl From<Begun> for Till {
    fn from(begun: Begun) -> Self {
        match begun {
            Begun::Order(order) => Self::Order(order),
            Begun::Gone => Self::Again,
        }
    }
}

impl Checkout {
    /// Puts a pair into the basket.
    pub(crate) async fn basket(&self, buyer: &Name, sku: &Name) -> Result<Answer, Failure> {
        Ok(match self.hold(buyer, sku).await? {
            Basket::Held(pair, held) => Answer::Held { pair, remaining: held.remaining() },
            Basket::Open => Answer::Open,
            Basket::Empty(why) => why,
        })
    }

    /// Puts it back. A pair that is being paid for stays, for that takes its fence.
    pub(crate) async fn leave(&self, buyer: &Name, sku: &Name) -> Result<Answer, Failure> {
        let holds = match self.holds(sku).await {
            Ok(holds) => holds,
            Err(error) => {
                note(&error);
                return Ok(Answer::Left);
            }
        };
        for (resource, owner, _) in holds.into_iter().filter(|(_, it, _)| it == buyer.as_str()) {
            self.release(HoldName { namespace: None, resource, owner, fence: None }).await;
        }
        Ok(Answer::Left)
    }

    /// Buys. Whoever asks again with the same payment key, at any instance, after whatever crash, pays once and gets
    /// the same answer.
    pub(crate) async fn buy(&self, purchase: &Purchase, card: &str) -> Result<Answer, Failure> {
        if let Some(order) = self.stock.order(purchase.payment_key.as_str()).await? {
            return self.finish_for(purchase, order, card).await;
        }
        for _ in 0..TRIES {
            match self.go_to_the_till(purchase).await? {
                Till::Order(order) => return self.finish_for(purchase, order, card).await,
                Till::Refused(why) => return Ok(why),
                Till::Again => {}
            }
        }
        Ok(Answer::Taken { frees_in: None })
    }

    /// Everything that comes before the money moves.
    async fn go_to_the_till(&self, purchase: &Purchase) -> Result<Till, Failure> {
        let (pair, mut held) = match self.hold(&purchase.buyer, &purchase.sku).await? {
            Basket::Empty(why) => return Ok(Till::Refused(why)),
            Basket::Open => return Ok(self.stock.begin(purchase, None).await?.into()),
            Basket::Held(pair, held) => (pair, held),
        };
        match held.begin(self.settings.payment).await {
            Ok(()) => {}
            // It ended a moment ago.
            Err(HoldError::Over(_)) => return Ok(Till::Again),
            Err(error) if error.is_unavailable() => note(&error),
            Err(error) => return Err(error.into()),
        }
        let fence = Fence::new(held.fence_key(), held.fence())?;
        let begun = self.stock.begin(purchase, Some((pair, &fence))).await?;
        if matches!(begun, Begun::Gone) {
            let Purchase { buyer, sku, .. } = purchase;
            self.release(hold_of(buyer.as_str(), sku.as_str(), pair, &fence)).await;
        }
        Ok(begun.into())
    }

    async fn finish_for(
        &self,
        purchase: &Purchase,
        order: Order,
        card: &str,
    ) -> Result<Answer, Failure> {
        match order.is_for(purchase) {
            true => self.finish(order, Some(card)).await,
            false => Err(Failure::OtherPurchase),
        }
    }

    /// From an order that is written down to its end. Each step can be repeated, and taken by anybody. Without a card
    /// nobody is charged who has not been.
    pub(crate) async fn finish(
        &self,
        mut order: Order,
        card: Option<&str>,
    ) -> Result<Answer, Failure> {
        let began = order.state;
        if order.state == State::Paying {
            order.state = match self.charge(&order, card).await? {
                Charge::Done => self.stock.sell(&order).await?,
                Charge::Declined => self.stock.leave_paying(&order, "declining").await?,
                Charge::Void => self.stock.leave_paying(&order, "refunding").await?,
            };
        }
        if matches!(order.state, State::Refunding | State::Declining) {
            self.provider.refund(&order.payment_key).await?;
            order.state = self.stock.end_unsold(&order).await?;
        }
        if let (true, Some(pair), Some(fence)) = (order.state != began, order.pair, &order.fence) {
            self.release(hold_of(&order.buyer, &order.sku, pair, fence)).await;
        }
        Ok(match order.state {
            State::Declining | State::Declined => Answer::Declined,
            State::Paying | State::Refunding | State::Refunded => Answer::Refunded,
            State::Sold => {
                let sold = self.stock.order(&order.payment_key).await?;
                Answer::Sold { pair: sold.and_then(|sold| sold.pair) }
            }
        })
    }

    async fn charge(&self, order: &Order, card: Option<&str>) -> Result<Charge, Failure> {
        let key = &order.payment_key;
        let Some(card) = card else {
            let is_charged = self.provider.is_charged(key).await?;
            return Ok(if is_charged { Charge::Done } else { Charge::Void });
        };
        Ok(self.provider.charge(key, card).await?)
    }

    /// A hold, where one is worth having and to be had.
    async fn hold(&self, buyer: &Name, sku: &Name) -> Result<Basket, Failure> {
        for tried in 0..TRIES {
            let unsold = self.stock.unsold(sku, self.settings.scarce + 1).await?;
            if unsold.is_empty() {
                return Ok(Basket::Empty(Answer::SoldOut));
            }
            if unsold.len() > self.settings.scarce {
                return Ok(Basket::Open);
            }
            let holds = match self.holds(sku).await {
                Ok(holds) => holds,
                Err(error) if error.is_unavailable() => {
                    note(&error);
                    return Ok(Basket::Open);
                }
                Err(error) => return Err(error.into()),
            };
            let Some(pair) = choose(&unsold, &holds, buyer, sku, tried) else {
                let is_for_sale = |resource: &str| {
                    order::pair_of(resource, sku.as_str()).is_some_and(|it| unsold.contains(&it))
                };
                let held = holds.iter().filter(|(resource, ..)| is_for_sale(resource));
                let frees_in = held.map(|(_, _, frees_in)| *frees_in).min();
                return Ok(Basket::Empty(Answer::Taken { frees_in }));
            };
            let place = self
                .client
                .hold(order::resource(sku.as_str(), pair))
                .owner(buyer.as_str())
                .ttl(self.settings.hold)
                .on_unavailable(OnUnavailable::Degrade);
            match place.hold().await {
                // Now that nobody else can take it: was it sold before?
                Ok(Protection::Held(held)) => match self.is_unsold(sku, pair).await? {
                    true => return Ok(Basket::Held(pair, held)),
                    false => drop(held.release().await),
                },
                Ok(Protection::Unprotected { reason }) => {
                    note(&reason);
                    return Ok(Basket::Open);
                }
                // Somebody was quicker: another one, then.
                Err(HoldError::Taken(_)) => {}
                Err(HoldError::Limit(_)) => return Ok(Basket::Empty(Answer::Enough)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Basket::Empty(Answer::Taken { frees_in: None }))
    }

    async fn is_unsold(&self, sku: &Name, pair: i32) -> Result<bool, StockError> {
        let unsold = self.stock.unsold(sku, usize::MAX).await?;
        Ok(unsold.contains(&pair))
    }

    /// What is held of this size: the resource, by whom, for how long.
    async fn holds(&self, sku: &Name) -> Result<Vec<(String, String, Duration)>, HoldError> {
        let prefix = order::prefix(sku.as_str());
        let mut list = ListHolds { prefix, ..ListHolds::default() };
        let mut holds = Vec::new();
        loop {
            let page = self.client.list_holds(&list).await?;
            holds.extend(page.holds.into_iter().map(|row| {
                let left = Duration::from_millis(row.holder.expires_in_ms);
                (row.resource, row.holder.owner, left)
            }));
            if page.next_cursor.is_none() {
                return Ok(holds);
            }
            list.cursor = page.next_cursor;
        }
    }

    /// If it cannot be done the hold ends by itself.
    async fn release(&self, hold: HoldName) {
        match self.client.release_hold(&hold).await {
            Ok(_) | Err(HoldError::Over(_)) => {}
            Err(error) => note(&error),
        }
    }
}

fn hold_of(buyer: &str, sku: &str, pair: i32, fence: &Fence) -> HoldName {
    HoldName {
        namespace: None,
        resource: order::resource(sku, pair),
        owner: buyer.into(),
        fence: Some(fence.token()),
    }
}

/// The pair that is theirs already, or one that nobody has. Buyers begin in different places, so that a crowd does not
/// fall upon the first one.
fn choose(
    unsold: &[i32],
    holds: &[(String, String, Duration)],
    buyer: &Name,
    sku: &Name,
    tried: u32,
) -> Option<i32> {
    let owner = |pair: i32| {
        let is_it = |resource: &str| order::pair_of(resource, sku.as_str()) == Some(pair);
        holds.iter().find(|(resource, ..)| is_it(resource)).map(|(_, owner, _)| owner.as_str())
    };
    let mine = unsold.iter().find(|pair| owner(**pair) == Some(buyer.as_str()));
    let free: Vec<i32> = unsold.iter().copied().filter(|pair| owner(*pair).is_none()).collect();
    let mut place = DefaultHasher::new();
    (buyer.as_str(), tried).hash(&mut place);
    let place = usize::try_from(place.finish() % free.len().max(1) as u64).unwrap_or(0);
    mine.or_else(|| free.get(place)).copied()
}

/// For whoever runs the shop. The buyer is served all the same.
fn note(error: &HoldError) {
    eprintln!("shop: without Sereno: {error}");
}
