//! A shop with one pair of size 42 left. See README.md; the checkout is in `checkout.rs`, and what decides in `stock.rs`.

mod checkout;
mod name;
mod order;
mod pool;
mod provider;
mod stock;
mod sweep;
mod web;

use checkout::{Checkout, Settings};
use clap::Parser;
use pool::Pool;
use provider::Provider;
use sereno_client::{Client, api::Millis};
use sereno_guard::{Reporter, postgres::PostgresGuard};
use std::{error::Error, sync::Arc};
use stock::Stock;
use tokio::net::TcpListener;

/// A shop with one pair of size 42 left.
#[derive(Debug, Parser)]
struct Args {
    /// Where the stock is.
    #[arg(long, env = "DATABASE_URL", value_name = "postgres://…")]
    database: String,
    /// Where Sereno is. The shop sells without it, too.
    #[arg(long, env = "SERENO_SERVER", default_value = "http://127.0.0.1:7480")]
    sereno: String,
    /// Where buyers come in.
    #[arg(long, default_value = "127.0.0.1:8042")]
    listen: String,
    /// How long a pair is kept for a buyer who looks at the basket.
    #[arg(long, default_value = "10m")]
    hold: Millis,
    /// How long it is kept for a buyer who pays.
    #[arg(long, default_value = "15m")]
    payment: Millis,
    /// How long a buyer waits for a Sereno that does not answer.
    #[arg(long, default_value = "1s")]
    patience: Millis,
    /// Up to so many pairs a size is scarce: each buyer holds one. Of more than that nobody holds any.
    #[arg(long, default_value_t = 20)]
    scarce: usize,
    /// After this time an order that nobody finished is finished by whichever instance finds it.
    #[arg(long, default_value = "2m")]
    sweep: Millis,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let client = Client::builder()
        .servers(&args.sereno)
        .namespace("default")
        .call_timeout(args.patience.to_duration())
        .build()?;
    let guard = PostgresGuard::new().reporting(Reporter::new(client.clone(), "shop")?);
    let pool = Pool::new(&args.database)?;
    let shop = Arc::new(Checkout {
        client,
        provider: Provider::open(pool.clone()).await?,
        stock: Stock::open(pool, guard).await?,
        settings: Settings {
            hold: args.hold.to_duration(),
            payment: args.payment.to_duration(),
            scarce: args.scarce,
        },
    });
    let listener = TcpListener::bind(&args.listen).await?;
    println!("the shop is open: http://{}", listener.local_addr()?);
    tokio::spawn(sweep::run(shop.clone(), args.sweep.to_duration()));
    axum::serve(listener, web::routes(shop)).await?;
    Ok(())
}
