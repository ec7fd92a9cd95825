//! Five replicas as processes, against a real PostgreSQL and a real service.

mod scene;

#[tokio::test]
async fn every_account_is_settled_once_though_one_is_killed_and_one_is_paused() {
    scene::one_killed_and_one_paused().await;
}
