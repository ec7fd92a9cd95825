//! The shop as processes, against a real PostgreSQL and a real service.

mod scenes;

use scenes::{crashes, crowds, two};

#[tokio::test]
async fn two_buyers_race_for_the_last_pair_and_the_first_one_leaves() {
    two::two_buyers().await;
}

#[tokio::test]
async fn a_hold_that_ends_frees_the_pair() {
    two::forgotten().await;
}

#[tokio::test]
async fn a_payment_after_the_hold_is_refunded_where_another_buyer_has_come() {
    two::late_payment().await;
}

#[tokio::test]
async fn a_payment_after_the_hold_is_good_where_nobody_has_come() {
    two::late_and_nobody_came().await;
}

#[tokio::test]
async fn a_refused_card_frees_the_pair_at_once() {
    two::declined().await;
}

#[tokio::test]
async fn plentiful_stock_is_not_held() {
    two::plenty().await;
}

#[tokio::test]
async fn a_killed_instance_is_finished_at_another_and_charged_once() {
    crashes::instance_killed().await;
}

#[tokio::test]
async fn what_nobody_comes_back_for_is_finished_or_undone() {
    crashes::nobody_comes_back().await;
}

#[tokio::test]
async fn without_sereno_the_stock_decides() {
    crashes::sereno_killed().await;
}

#[tokio::test]
async fn five_hundred_buyers_for_forty_two_pairs() {
    crowds::crowd().await;
}

#[tokio::test]
async fn five_hundred_buyers_and_sereno_is_killed_in_the_middle() {
    crowds::crowd_without_sereno().await;
}
