//! What the fence of a file reports. What it lets in: its unit tests, and those of `sereno guard file`.

use crate::{reporter, stub::Stub};
use sereno_guard::{FileFence, FileFenceError};
use std::time::Duration;

const KEY: &str = "default/lock/report";

#[tokio::test]
async fn that_it_checks_and_what_it_refused_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::start(reporter::recorded);
    let reporter = reporter::to(&stub);
    let fence = FileFence::at(folder.path().join("report.csv")).unwrap();
    // Without a fence key there is nothing that the service would know.
    drop(fence.clone().reporting(reporter.clone()).enter(3, None, Duration::ZERO).unwrap());
    let fence = fence.reporting(reporter.clone());
    assert!(fence.enter(2, None, Duration::ZERO).is_err());
    reporter.settled().await;
    assert!(stub.asked_on("/v1/guards/report").is_empty());

    drop(fence.enter(7, Some(KEY), Duration::ZERO).unwrap());
    drop(fence.enter(7, Some(KEY), Duration::ZERO).unwrap());
    reporter.settled().await;
    let asked = stub.asked_on("/v1/guards/report");
    assert_eq!((asked.len(), asked[0].body["fenceKey"].as_str()), (1, Some(KEY)));
    // It remembers its key: a token that comes without one is reported under it.
    let refused = fence.enter(6, None, Duration::ZERO);
    assert!(matches!(refused, Err(FileFenceError::Refused(_))), "{refused:?}");
    reporter.settled().await;
    reporter::assert_refusal(&stub, KEY, 6, 7);
}
