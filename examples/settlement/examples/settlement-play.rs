//! Plays the scene, and shows the ledger. `examples/settlement/play` builds and starts it.

#[path = "../tests/scene/mod.rs"]
mod scene;

#[tokio::main]
async fn main() {
    scene::one_killed_and_one_paused().await;
    println!("Every account was settled once for each slot.");
}
