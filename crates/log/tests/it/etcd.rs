//! The etcd engine meets the obligations, on three members, behind a proxy that makes the troubles.

use crate::etcd_support::{fresh_prefix, open, proxy::Plan, proxy::Proxy, shared};
use async_trait::async_trait;
use sereno_core::ids::Position;
use sereno_log::{
    Log, LogError,
    conformance::{Factory, Trouble},
    etcd::{EtcdLog, EtcdUrl},
};
use std::{collections::HashMap, sync::Arc};
use tokio::sync::Mutex;

/// The logs it has made, by address, with the proxies that they go through.
#[derive(Default)]
struct EtcdFactory {
    proxies: Mutex<HashMap<usize, (EtcdUrl, Arc<Proxy>)>>,
}

impl EtcdFactory {
    async fn of(&self, engine: &EtcdLog) -> (EtcdUrl, Arc<Proxy>) {
        self.proxies.lock().await[&address(engine)].clone()
    }

    async fn open(&self, url: EtcdUrl, proxy: Arc<Proxy>) -> Arc<EtcdLog> {
        let log = Arc::new(open(&url).await);
        self.proxies.lock().await.insert(address(&log), (url, proxy));
        log
    }
}

fn address(engine: &EtcdLog) -> usize {
    std::ptr::from_ref(engine) as usize
}

#[async_trait]
impl Factory for EtcdFactory {
    type Engine = EtcdLog;

    async fn fresh(&self) -> Arc<EtcdLog> {
        let proxy = Arc::new(Proxy::start(&shared().endpoints()).await);
        let url = format!("etcd://{}/{}", proxy.endpoints().join(","), fresh_prefix());
        self.open(url.parse().expect("it is a URL"), proxy).await
    }

    async fn second(&self, engine: &Arc<EtcdLog>) -> Arc<EtcdLog> {
        let (url, proxy) = self.of(engine).await;
        self.open(url, proxy).await
    }

    async fn reopen(&self, engine: Arc<EtcdLog>) -> Option<Arc<EtcdLog>> {
        let (url, proxy) = self.of(&engine).await;
        drop(engine);
        Some(self.open(url, proxy).await)
    }

    async fn arrange(&self, engine: &EtcdLog, trouble: Trouble) -> bool {
        let (_, proxy) = self.of(engine).await;
        proxy.plan(match trouble {
            Trouble::ReplyLost => Plan::ReplyLost,
            Trouble::Lost => Plan::Lost,
            Trouble::Late => Plan::Late,
            Trouble::Refused => Plan::Closed,
        });
        if trouble == Trouble::Refused {
            // What goes into a connection that breaks is unknown: this finds them broken before the append does.
            let away = engine.head().await;
            assert!(matches!(away, Err(LogError::Unreachable(_))), "{away:?}");
        }
        true
    }

    async fn end_trouble(&self, engine: &EtcdLog) {
        self.of(engine).await.1.plan(Plan::Pass);
    }

    async fn let_late_copies_arrive(&self, engine: &EtcdLog) {
        self.of(engine).await.1.let_late_arrive().await;
    }

    async fn damage_entry(&self, engine: &EtcdLog, position: Position) -> bool {
        let (url, _) = self.of(engine).await;
        let mut client =
            etcd_client::Client::connect(shared().endpoints(), None).await.expect("it connects");
        let key = format!("{}/@slot/{:016x}", url.prefix(), position.0);
        let found = client.get(key.clone(), None).await.expect("it reads");
        let mut value = found.kvs()[0].value().to_vec();
        *value.last_mut().expect("it has bytes") ^= 1;
        client.put(key, value, None).await.expect("it writes");
        true
    }
}

sereno_log::conformance_tests!(EtcdFactory::default());
