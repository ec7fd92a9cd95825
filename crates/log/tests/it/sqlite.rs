//! The sqlite engine meets the obligations.

use async_trait::async_trait;
use sereno_core::ids::Position;
use sereno_log::{
    conformance::Factory,
    sqlite::{self, Options, SqliteLog},
};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Keeps its folders until it goes.
#[derive(Default)]
struct SqliteFactory {
    folders: Mutex<Vec<TempDir>>,
}

#[async_trait]
impl Factory for SqliteFactory {
    type Engine = SqliteLog;

    async fn fresh(&self) -> Arc<SqliteLog> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let log = sqlite::open(folder.path(), Options::default()).expect("a new log opens");
        self.folders.lock().expect("no panic").push(folder);
        Arc::new(log)
    }

    async fn reopen(&self, engine: Arc<SqliteLog>) -> Option<Arc<SqliteLog>> {
        let dir = engine.dir().to_owned();
        let engine = Arc::into_inner(engine).expect("nobody else has the log");
        drop(engine);
        Some(Arc::new(sqlite::open(&dir, Options::default()).expect("it opens again")))
    }

    async fn damage_entry(&self, engine: &SqliteLog, position: Position) -> bool {
        let database = rusqlite::Connection::open(engine.dir().join("log.db")).expect("it opens");
        let rows = database.execute(
            "UPDATE entries SET bytes = CAST(substr(bytes, 1, length(bytes) - 1) || x'aa' AS BLOB) \
             WHERE position = ?1",
            [position.0 as i64],
        );
        assert_eq!(rows.expect("it updates"), 1);
        true
    }
}

sereno_log::conformance_tests!(SqliteFactory::default());
