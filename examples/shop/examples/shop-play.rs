//! Plays all scenes, one after the other, and shows the books after each. `examples/shop/play` builds and starts it.

#[path = "../tests/scenes/mod.rs"]
mod scenes;

#[tokio::main]
async fn main() {
    for (name, scene) in scenes::ALL {
        println!("\n== {name}\n");
        scene().await;
    }
    println!("All as it should be.");
}
