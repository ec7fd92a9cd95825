//! Orders whose instance died, and whose buyer did not come back, are finished too: a pair or the money.

use crate::checkout::Checkout;
use std::{sync::Arc, time::Duration};

/// Goes on for ever. Every instance does it: two that finish the same order are one (see `Stock::sell`).
pub(crate) async fn run(shop: Arc<Checkout>, quiet: Duration) {
    let mut rounds = tokio::time::interval((quiet / 2).max(Duration::from_millis(100)));
    loop {
        rounds.tick().await;
        let orders = match shop.stock.unfinished(quiet).await {
            Ok(orders) => orders,
            Err(error) => {
                eprintln!("shop: looking for unfinished orders: {error}");
                continue;
            }
        };
        for order in orders {
            let key = order.payment_key.clone();
            match shop.finish(order, None).await {
                Ok(answer) => eprintln!("shop: order {key} was left behind: {answer:?}"),
                Err(error) => eprintln!("shop: order {key} was left behind: {error}"),
            }
        }
    }
}
