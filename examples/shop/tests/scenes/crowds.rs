//! 500 buyers for 42 pairs.

use super::world::{World, ended};
use std::{collections::BTreeMap, ops::Range};
use tokio::task::JoinSet;

const BUYERS: usize = 500;
const PAIRS: u32 = 42;
const SCARCE: [&str; 2] = ["--scarce", "100"];
/// The crowd makes a small machine slow, which is no reason to do without holds.
const PATIENT: [&str; 4] = ["--scarce", "100", "--patience", "20s"];

/// They all buy at once, half of them at each instance. How many were told what.
async fn all_buy(world: &World, buyers: Range<usize>) -> BTreeMap<String, usize> {
    let mut buying = JoinSet::new();
    for buyer in buyers {
        buying.spawn(world.buy(buyer % 2, &format!("buyer-{buyer}"), "good"));
    }
    let mut told = BTreeMap::new();
    while let Some(answer) = buying.join_next().await {
        *told.entry(ended(answer.unwrap())).or_default() += 1;
    }
    println!("  they were told: {told:?}");
    told
}

/// Everybody else is told before they pay.
pub async fn crowd() {
    let world = World::new(PAIRS, &PATIENT).await;
    let told = all_buy(&world, 0..BUYERS).await;
    world.show_sums("with holds nobody pays in vain:").await;
    assert_eq!(told["sold"], PAIRS as usize, "{told:?}");
    let refused = told.iter().filter(|(what, _)| ["taken", "soldOut"].contains(&what.as_str()));
    let refused: usize = refused.map(|(_, count)| count).sum();
    assert_eq!(refused, BUYERS - PAIRS as usize, "{told:?}");
    world.books_are_right(i64::from(PAIRS)).await;
    let refunds = "SELECT count(*) FROM payments WHERE state = 'refunded'";
    assert_eq!(world.database.number(refunds).await, 0);
}

/// Five are paying for what they hold when it goes. The rest fight over the same pairs, and some pay in vain.
pub async fn crowd_without_sereno() {
    const EARLY: usize = 15;
    const PAYING: usize = 5;
    let mut world = World::new(PAIRS, &SCARCE).await;
    let early = all_buy(&world, 0..EARLY).await;
    assert_eq!(early["sold"], EARLY);
    let mut paying = JoinSet::new();
    for buyer in 0..PAYING {
        let name = format!("paying-{buyer}");
        paying.spawn(world.buy(buyer % 2, &name, "stuck"));
        world.is_charged(&name).await;
    }
    world.service.kill();
    let mut told = all_buy(&world, EARLY..BUYERS - PAYING).await;
    world.provider_answers().await;
    while let Some(answer) = paying.join_next().await {
        *told.entry(ended(answer.unwrap())).or_default() += 1;
    }
    world.show_sums("without Sereno some pay in vain, and get their money back:").await;
    assert_eq!(told["sold"], PAIRS as usize - EARLY, "{told:?}");
    world.books_are_right(i64::from(PAIRS)).await;
    let clear = ["sold", "taken", "soldOut", "refunded"];
    assert!(told.keys().all(|what| clear.contains(&what.as_str())), "{told:?}");
}
