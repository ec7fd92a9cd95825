//! One pair, and one or two who want it.

use super::world::{World, ended, outcome};
use example_stage::until;

/// They reach for it in the same moment, at two instances. One leaves, and the other one gets it.
pub async fn two_buyers() {
    let world = World::new(1, &[]).await;
    let (ada, ben) = tokio::join!(world.basket(0, "ada"), world.basket(1, "ben"));
    println!("  ada: {ada}\n  ben: {ben}");
    let (first, second, told) = match outcome(&ada) {
        "held" => ("ada", "ben", &ben),
        _ => ("ben", "ada", &ada),
    };
    assert_eq!(outcome(told), "taken");
    let frees_in = told["freesInMs"].as_u64().unwrap();
    assert!((1..=600_000).contains(&frees_in), "{told}");
    // The same at the other instance: it is the buyer's, not the instance's.
    assert_eq!(outcome(&world.basket(0, first).await), "held");
    assert_eq!(outcome(&world.basket(1, first).await), "held");
    // Who was told that it is taken is not charged for trying.
    assert_eq!(ended(world.buy(0, second, "good").await), "taken");
    assert_eq!(outcome(&world.leave(1, first).await), "left");
    world.show(&format!("{first} leaves it, {second} wants it:")).await;
    assert_eq!(ended(world.buy(1, second, "good").await), "sold");
    assert_eq!(ended(world.buy(0, first, "good").await), "soldOut");
    world.show(&format!("{second} has bought it:")).await;
    world.books_are_right(1).await;
    // Asked again, at any instance: the same answer, and no more money.
    assert_eq!(ended(world.buy(0, second, "good").await), "sold");
    world.books_are_right(1).await;
}

/// A hold ends by itself.
pub async fn forgotten() {
    let world = World::new(1, &["--hold", "1s"]).await;
    assert_eq!(outcome(&world.basket(0, "ada").await), "held");
    until("the end of her hold", async || {
        (outcome(&world.basket(1, "ben").await) == "held").then_some(())
    })
    .await;
    assert_eq!(ended(world.buy(1, "ben", "good").await), "sold");
    world.show("ada forgot it, ben has bought it:").await;
    world.books_are_right(1).await;
}

/// Her money comes when the pair was promised to somebody else: it goes back. He pays undisturbed, for the fence keeps
/// her out although nothing is sold yet.
pub async fn late_payment() {
    let world = World::new(1, &["--hold", "1s", "--payment", "1s"]).await;
    let ada = tokio::spawn(world.buy(0, "ada", "stuck"));
    world.is_charged("ada").await;
    world.nobody_holds(1).await;
    let ben = tokio::spawn(world.buy(1, "ben", "stuck"));
    world.is_charged("ben").await;
    world.show("ada's bank has not answered, her hold is over, ben is paying:").await;
    world
        .database
        .run("UPDATE payments SET answers = true WHERE payment_key = 'payment-of-ada'")
        .await;
    assert_eq!(ended(ada.await.unwrap()), "refunded");
    world.provider_answers().await;
    assert_eq!(ended(ben.await.unwrap()), "sold");
    world.show("ada's bank has answered, then ben's:").await;
    world.books_are_right(1).await;
}

/// Late, and the pair is still there: no reason to refuse her.
pub async fn late_and_nobody_came() {
    let world = World::new(1, &["--hold", "1s", "--payment", "1s"]).await;
    let ada = tokio::spawn(world.buy(0, "ada", "stuck"));
    world.is_charged("ada").await;
    world.nobody_holds(1).await;
    world.provider_answers().await;
    assert_eq!(ended(ada.await.unwrap()), "sold");
    world.show("her hold had ended, and the pair was there:").await;
    world.books_are_right(1).await;
}

pub async fn declined() {
    let world = World::new(1, &[]).await;
    assert_eq!(ended(world.buy(0, "ada", "declined").await), "declined");
    // Nobody has to wait for the end of her hold.
    assert_eq!(ended(world.buy(1, "ben", "good").await), "sold");
    world.show("ada's card was refused, ben has bought it:").await;
    // Another card is another purchase: with this key nothing is ever charged.
    assert_eq!(ended(world.buy(0, "ada", "good").await), "declined");
    world.books_are_right(1).await;
}

/// Nobody holds anything, for the stock decides alone: until they are scarce.
pub async fn plenty() {
    let world = World::new(3, &["--scarce", "2"]).await;
    assert_eq!(outcome(&world.basket(0, "ada").await), "open");
    assert_eq!(ended(world.buy(0, "ada", "good").await), "sold");
    for pair in 1..=3 {
        world.nobody_holds(pair).await;
    }
    assert_eq!(outcome(&world.basket(1, "ben").await), "held");
    world.show("ada held nothing; of the last two ben holds one:").await;
    world.books_are_right(1).await;
}
