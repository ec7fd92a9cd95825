//! Five replicas as processes, against a real PostgreSQL and a real service.

mod scene;

#[tokio::test]
async fn an_attempt_that_is_overtaken_between_two_accounts_begins_no_further_one() {
    scene::overtaken_between_two_accounts().await;
}

#[tokio::test]
async fn every_account_is_settled_once_though_one_is_killed_and_one_is_paused() {
    scene::one_killed_and_one_paused().await;
}
