//! Plays the scene, and shows the report. `examples/gpu-pool/play` builds and starts it.

#[path = "../tests/scene/mod.rs"]
mod scene;

use clap::Parser;
use std::path::PathBuf;

/// A day of a pool of 64 GPUs in some seconds: three tenants, guarantees, shares, priorities, and jobs that crash.
///
/// Starts a `sereno serve` of its own, unless SERENO_SERVER names one; there it puts the limits of the quota `gpu` in the
/// namespace `default`. Ends with a table and a picture; any promise that was not kept ends it earlier, with an error.
#[derive(Debug, Parser)]
struct Args {
    /// Draw use over time into this file (SVG).
    #[arg(long, default_value = "gpu-pool.svg")]
    picture: PathBuf,
    /// A service that runs already.
    #[arg(long, env = "SERENO_SERVER")]
    sereno: Option<String>,
}

#[tokio::main]
async fn main() {
    let Args { picture, sereno } = Args::parse();
    println!("\n== a pool of 64 GPUs\n");
    let report = scene::play(sereno, &picture).await;
    println!("\n{report}\nThe picture: {}", picture.display());
}
