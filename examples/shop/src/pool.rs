//! A few connections to PostgreSQL, lent out one at a time. In your own service use one from a library.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::{Client, Config, Error, NoTls};

const CONNECTIONS_MAX: usize = 12;
/// Whoever is paused in the middle of a transaction keeps its rows locked, the fence's among them. PostgreSQL ends it
/// after this time, so that one sick instance does not stop all others.
const TRANSACTION_SETTINGS: &str = "-c idle_in_transaction_session_timeout=5s -c lock_timeout=10s";

#[derive(Clone)]
pub(crate) struct Pool {
    config: Config,
    idle: Arc<Mutex<Vec<Client>>>,
    room: Arc<Semaphore>,
}

/// A connection, given back when dropped.
pub(crate) struct Lent {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    _room: OwnedSemaphorePermit,
}

impl Pool {
    /// Nothing is connected yet.
    pub(crate) fn new(url: &str) -> Result<Self, Error> {
        let mut config: Config = url.parse()?;
        config.options(TRANSACTION_SETTINGS).connect_timeout(std::time::Duration::from_secs(5));
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Ok(Self { config, idle: Arc::default(), room })
    }

    pub(crate) async fn lend(&self) -> Result<Lent, Error> {
        let room = self.room.clone().acquire_owned().await.expect("nobody closes it");
        let found = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client = match found.filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(Lent { client: Some(client), idle: self.idle.clone(), _room: room })
    }

    async fn connect(&self) -> Result<Client, Error> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(async move {
            // Its end is told to whoever uses the client.
            let _ = connection.await;
        });
        Ok(client)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}

impl Deref for Lent {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("it is here until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("it is here until it is dropped")
    }
}
