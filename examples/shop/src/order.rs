//! An order as it is written down.

use crate::name::Name;
use sereno_guard::Fence;
use tokio_postgres::Row;

/// What a buyer asks for. The payment key names this one purchase: whoever repeats it gets the same outcome.
#[derive(Clone, Debug)]
pub(crate) struct Purchase {
    pub payment_key: Name,
    pub buyer: Name,
    pub sku: Name,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The money may have moved. The stock has not been asked.
    Paying,
    /// The end: a pair is theirs.
    Sold,
    /// No pair for them. The money has to go back.
    Refunding,
    /// The end: no pair, no money.
    Refunded,
    /// The card was refused. Another call with this key, and another card, may be under way: its money has to go back.
    Declining,
    /// The end: the card was refused.
    Declined,
}

/// An order.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub payment_key: String,
    pub buyer: String,
    pub sku: String,
    /// The pair that is held for them, or was sold to them.
    pub pair: Option<i32>,
    /// The fence of the hold, where there was one.
    pub fence: Option<Fence>,
    pub state: State,
}

/// What a hold is called: the one pair, not the model and not the size.
pub(crate) fn resource(sku: &str, pair: i32) -> String {
    format!("{}{pair}", prefix(sku))
}

/// With what the names of all holds on this size begin.
pub(crate) fn prefix(sku: &str) -> String {
    format!("{sku}/pair/")
}

/// The pair that a hold is called after.
pub(crate) fn pair_of(resource: &str, sku: &str) -> Option<i32> {
    resource.strip_prefix(&prefix(sku))?.parse().ok()
}

/// The key under which the stock remembers the highest fence of a pair: what the grant calls `fenceKey`.
fn fence_key(sku: &str, pair: i32) -> String {
    format!("default/hold/{}", resource(sku, pair))
}

impl Order {
    /// The columns that [`Order::read`] wants.
    pub(crate) const COLUMNS: &str = "payment_key, buyer, sku, pair, fence, state";

    pub(crate) fn read(row: &Row) -> Self {
        let sku: String = row.get("sku");
        let pair: Option<i32> = row.get("pair");
        let token: Option<i64> = row.get("fence");
        let fence = pair.zip(token).and_then(|(pair, token)| {
            Fence::new(fence_key(&sku, pair), u64::try_from(token).ok()?).ok()
        });
        let state: &str = row.get("state");
        let state = match state {
            "sold" => State::Sold,
            "refunding" => State::Refunding,
            "refunded" => State::Refunded,
            "declining" => State::Declining,
            "declined" => State::Declined,
            _ => State::Paying,
        };
        Self {
            payment_key: row.get("payment_key"),
            buyer: row.get("buyer"),
            sku,
            pair,
            fence,
            state,
        }
    }

    /// Whether this is what was asked for under its key.
    pub(crate) fn is_for(&self, purchase: &Purchase) -> bool {
        self.buyer == purchase.buyer.as_str() && self.sku == purchase.sku.as_str()
    }
}
