//! The pool against a real service, with jobs as processes that are killed.

mod scene;

#[tokio::test]
async fn the_pool_is_shared_as_promised_and_never_oversold_though_jobs_crash() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("use.svg");
    let report = scene::play(None, &picture).await;
    assert!(report.contains("At most 64 of 64 GPUs were in use at once"), "{report}");
    assert!(report.contains("Of 20 GPUs that crashed jobs had, 20 came back."), "{report}");
    let picture = std::fs::read_to_string(picture).unwrap();
    assert_eq!(picture.matches(">×</text>").count(), 5, "a mark for each crash");
}
