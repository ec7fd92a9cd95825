//! Somebody is killed in the middle of a payment.

use super::world::{SKU, World, ended, outcome};
use example_stage::until;

/// The instance that took the money is gone. She asks again, at the other one.
pub async fn instance_killed() {
    let mut world = World::new(1, &[]).await;
    let ada = tokio::spawn(world.buy(0, "ada", "stuck"));
    world.is_charged("ada").await;
    world.kill(0);
    assert!(ada.await.unwrap().is_none(), "nobody answers her");
    world.show("charged, and the instance is dead:").await;
    assert_eq!(ended(world.buy(1, "ada", "stuck").await), "sold");
    world.show("the same payment key at the other instance:").await;
    world.books_are_right(1).await;
    let asked = world.database.number("SELECT asked FROM payments").await;
    assert_eq!(asked, 2, "and the provider charged once");
    assert_eq!(ended(world.buy(1, "ben", "good").await), "soldOut");
}

/// She closes the window. The other instance finishes what was paid, and undoes what was not.
pub async fn nobody_comes_back() {
    let mut world = World::new(2, &["--sweep", "1s"]).await;
    let ada = tokio::spawn(world.buy(0, "ada", "stuck"));
    world.is_charged("ada").await;
    world.kill(0);
    assert!(ada.await.unwrap().is_none());
    // Ben's instance died between writing down the order and the charge.
    let ben = format!(
        "INSERT INTO orders (payment_key, buyer, sku, state) VALUES ('payment-of-ben', 'ben', '{SKU}', 'paying')"
    );
    world.database.run(&ben).await;
    let unfinished =
        "SELECT count(*) FROM orders WHERE state IN ('paying', 'refunding', 'declining')";
    until("the end of all orders", async || {
        (world.database.number(unfinished).await == 0).then_some(())
    })
    .await;
    world.show("nobody asked again:").await;
    world.books_are_right(1).await;
    // His browser's last try, late: his key was undone for good, so he is not charged.
    assert_eq!(ended(world.buy(1, "ben", "good").await), "refunded");
    assert_eq!(ended(world.buy(1, "ada", "good").await), "sold");
    world.books_are_right(1).await;
}

/// The shop goes on without holds, and the stock decides. When the service is back there are holds again.
pub async fn sereno_killed() {
    let mut world = World::new(1, &[]).await;
    let ada = tokio::spawn(world.buy(0, "ada", "stuck"));
    world.is_charged("ada").await;
    world.service.kill();
    world.provider_answers().await;
    assert_eq!(ended(ada.await.unwrap()), "sold");
    world.books_are_right(1).await;
    world.deliver(2, 2).await;
    let both = (world.buy(0, "ben", "good"), world.buy(1, "cem", "good"));
    let both = tokio::join!(both.0, both.1);
    let both = [ended(both.0), ended(both.1)];
    let (sold, other): (Vec<_>, Vec<_>) = both.iter().partition(|told| *told == "sold");
    assert_eq!(sold.len(), 1, "{both:?}");
    assert!(["refunded", "soldOut"].contains(&other[0].as_str()), "{both:?}");
    world.show("no Sereno; ada had a hold, ben and cem fought over another pair:").await;
    world.books_are_right(2).await;
    world.service.start_again();
    world.deliver(3, 3).await;
    until("a hold again", async || {
        (outcome(&world.basket(0, "dia").await) == "held").then_some(())
    })
    .await;
}
