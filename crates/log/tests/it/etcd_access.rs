//! An etcd that wants to know who is there: users and passwords, certificates.

use crate::etcd_support::{Own, fresh_url, insist, open_with};
use sereno_core::ids::Position;
use sereno_etcd_dev::{Certificates, Options};
use sereno_log::{
    Append, Log, LogError,
    conformance::Chain,
    etcd::{self, EtcdLog, EtcdOptions, EtcdTls, EtcdUrl, EtcdUser},
    presence::Presence,
};
use std::fs;

fn as_user(name: &str, password: &str) -> EtcdOptions {
    let user = EtcdUser { name: name.into(), password: password.into() };
    EtcdOptions { user: Some(user), ..EtcdOptions::default() }
}

/// Why it does not open.
async fn refused(url: &EtcdUrl, options: EtcdOptions) -> LogError {
    etcd::open(url, options).await.map(drop).expect_err("it must not open")
}

/// Everything that an engine does is allowed.
async fn assert_works(log: &EtcdLog, chain: &mut Chain) {
    let count = chain.entries().len() + 6;
    chain.grow(log, count).await;
    for position in [count as u64 - 3, count as u64 - 1] {
        log.save_snapshot(chain.snapshot(position, 300_000)).await.expect("it saves");
    }
    assert!(log.latest_snapshot().await.expect("it reads").is_some());
    let first = log.trim(Position(u64::MAX)).await.expect("it trims");
    chain.assert_is(log, first.0).await;
    log.presence().publish("n", bytes::Bytes::from_static(b"1")).await.expect("it publishes");
    log.presence().withdraw("n").await.expect("it withdraws");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_let_in_by_their_passwords_and_kept_to_their_prefix() {
    let mut own = Own::start(Options::default());
    let url = fresh_url(&own.cluster);
    let unlocked = refused(&url, as_user("ana", "pw")).await;
    assert!(
        matches!(&unlocked, LogError::Refused(why) if why.contains("not enabled")),
        "{unlocked}"
    );
    let root = |arguments: &[&str]| {
        let all = [&["--user", "root:secret"], arguments].concat();
        own.cluster.ctl(&all).expect("root may")
    };
    for arguments in [
        &["user", "add", "root:secret"][..],
        &["user", "add", "ana:pw"],
        &["role", "add", "sereno"],
        &[
            "role",
            "grant-permission",
            "--prefix=true",
            "sereno",
            "readwrite",
            &format!("{}/", url.prefix()),
        ],
        &["user", "grant-role", "root", "root"],
        &["user", "grant-role", "ana", "sereno"],
        &["auth", "enable"],
    ] {
        own.cluster.ctl(arguments).expect("nobody asks yet");
    }
    let wrong = refused(&url, as_user("ana", "wrong")).await;
    assert!(
        matches!(&wrong, LogError::Refused(why) if why.contains("authentication failed")),
        "{wrong}"
    );
    assert!(matches!(refused(&url, EtcdOptions::default()).await, LogError::Refused(_)));
    let elsewhere = url.with_prefix("elsewhere").expect("it is a prefix");
    let denied = refused(&elsewhere, as_user("ana", "pw")).await;
    assert!(
        matches!(&denied, LogError::Refused(why) if why.contains("permission denied")),
        "{denied}"
    );

    let log = open_with(&url, as_user("ana", "pw")).await;
    let mut chain = Chain::default();
    assert_works(&log, &mut chain).await;

    // What may be read but not written is certainly not appended.
    let prefix = format!("{}/", url.prefix());
    root(&["role", "grant-permission", "--prefix=true", "sereno", "read", &prefix]);
    let result = log.append(chain.head(), chain.next(1)).await;
    assert!(
        matches!(&result, Append::NotAppended(why) if why.contains("permission denied")),
        "{result:?}"
    );
    root(&["role", "grant-permission", "--prefix=true", "sereno", "readwrite", &prefix]);
    assert_works(&log, &mut chain).await;

    // Members forget who has logged in when they start again; the engine logs in anew.
    for member in 0..3 {
        own.cluster.kill(member);
        own.cluster.restart(member).expect("it starts again");
        let entry = chain.next(2);
        insist(&log, &mut chain, entry).await;
    }
    let count = chain.entries().len() + 3;
    crate::etcd_support::insist_until(&log, &mut chain, count).await;
}

/// Certificates in a folder, made for one test.
struct Made {
    certificates: Certificates,
    _folder: tempfile::TempDir,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let certificates = Certificates::make(folder.path()).expect("they can be made");
        Self { certificates, _folder: folder }
    }

    /// A cluster that serves TLS, and asks clients for a certificate or not.
    fn cluster(&self, asks_clients: bool) -> Own {
        let tls = self.certificates.tls(asks_clients);
        Own::start(Options { tls: Some(tls), ..Options::default() })
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.certificates.file(name)).expect("it was made")
    }

    /// Of a client that trusts this authority and shows this certificate.
    fn options(&self, ca: &str, client: Option<&str>) -> EtcdOptions {
        let pair = |name| (self.read(&format!("{name}.pem")), self.read(&format!("{name}.key")));
        let tls = EtcdTls { ca: self.read(ca), client: client.map(pair), server_name: None };
        EtcdOptions { tls: Some(tls), ..EtcdOptions::default() }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_lets_in_who_trusts_and_is_trusted() {
    let made = Made::new();
    let own = made.cluster(true);
    let url = fresh_url(&own.cluster);
    for (what, options) in [
        ("no TLS", EtcdOptions::default()),
        ("another authority", made.options("other.pem", Some("client"))),
        ("no certificate", made.options("ca.pem", None)),
        ("a stranger's certificate", made.options("ca.pem", Some("stranger"))),
    ] {
        let error = refused(&url, options).await;
        assert!(matches!(error, LogError::Unreachable(_)), "{what}: {error}");
    }
    let log = open_with(&url, made.options("ca.pem", Some("client"))).await;
    assert_works(&log, &mut Chain::default()).await;
    let mut named = made.options("ca.pem", Some("client"));
    named.tls.as_mut().expect("it is set").server_name = Some("localhost".into());
    open_with(&url, named).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_where_only_etcd_shows_a_certificate_wants_its_authority_and_no_more() {
    let made = Made::new();
    let own = made.cluster(false);
    let url = fresh_url(&own.cluster);
    for (what, options) in
        [("no TLS", EtcdOptions::default()), ("another authority", made.options("other.pem", None))]
    {
        let error = refused(&url, options).await;
        assert!(matches!(error, LogError::Unreachable(_)), "{what}: {error}");
    }
    let log = open_with(&url, made.options("ca.pem", None)).await;
    assert_works(&log, &mut Chain::default()).await;
    // A certificate that nobody asks for does no harm.
    open_with(&url, made.options("ca.pem", Some("client"))).await;
}
