//! The shop's own HTTP interface.

use crate::{
    checkout::{Answer, Checkout, Failure},
    name::Name,
    order::Purchase,
};
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wish {
    /// In a real shop the account that is logged in, never a field that anybody can fill in.
    buyer: Name,
    sku: Name,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payment {
    buyer: Name,
    sku: Name,
    payment_key: Name,
    card: String,
}

/// What goes out.
#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Told {
    Held {
        pair: i32,
        for_ms: u128,
    },
    Open,
    Taken {
        frees_in_ms: Option<u128>,
    },
    Enough,
    SoldOut,
    Left,
    Sold {
        pair: Option<i32>,
    },
    Refunded,
    Declined,
    /// Ask again with the same payment key.
    Again {
        why: String,
    },
    Wrong {
        why: String,
    },
}

pub(crate) fn routes(shop: Arc<Checkout>) -> Router {
    Router::new()
        .route("/basket", post(basket))
        .route("/leave", post(leave))
        .route("/buy", post(buy))
        .with_state(shop)
}

type Shop = State<Arc<Checkout>>;

async fn basket(State(shop): Shop, Json(wish): Json<Wish>) -> Response {
    tell(shop.basket(&wish.buyer, &wish.sku).await)
}

async fn leave(State(shop): Shop, Json(wish): Json<Wish>) -> Response {
    tell(shop.leave(&wish.buyer, &wish.sku).await)
}

async fn buy(State(shop): Shop, Json(payment): Json<Payment>) -> Response {
    let Payment { buyer, sku, payment_key, card } = payment;
    let purchase = Purchase { payment_key, buyer, sku };
    // In a task of its own: a buyer who closes the window does not stop a payment half-way.
    let buying = tokio::spawn(async move { shop.buy(&purchase, &card).await });
    match buying.await {
        Ok(answer) => tell(answer),
        Err(error) => told(StatusCode::SERVICE_UNAVAILABLE, Told::Again { why: error.to_string() }),
    }
}

fn tell(answer: Result<Answer, Failure>) -> Response {
    let (status, body) = match answer {
        Ok(Answer::Held { pair, remaining }) => {
            (StatusCode::OK, Told::Held { pair, for_ms: remaining.as_millis() })
        }
        Ok(Answer::Open) => (StatusCode::OK, Told::Open),
        Ok(Answer::Left) => (StatusCode::OK, Told::Left),
        Ok(Answer::Sold { pair }) => (StatusCode::OK, Told::Sold { pair }),
        Ok(Answer::Taken { frees_in }) => {
            let frees_in_ms = frees_in.as_ref().map(Duration::as_millis);
            (StatusCode::CONFLICT, Told::Taken { frees_in_ms })
        }
        Ok(Answer::Refunded) => (StatusCode::CONFLICT, Told::Refunded),
        Ok(Answer::Enough) => (StatusCode::TOO_MANY_REQUESTS, Told::Enough),
        Ok(Answer::SoldOut) => (StatusCode::GONE, Told::SoldOut),
        Ok(Answer::Declined) => (StatusCode::PAYMENT_REQUIRED, Told::Declined),
        Err(error @ Failure::OtherPurchase) => {
            (StatusCode::UNPROCESSABLE_ENTITY, Told::Wrong { why: error.to_string() })
        }
        Err(error) => {
            eprintln!("shop: {error}");
            (StatusCode::SERVICE_UNAVAILABLE, Told::Again { why: error.to_string() })
        }
    };
    told(status, body)
}

fn told(status: StatusCode, body: Told) -> Response {
    (status, Json(body)).into_response()
}
