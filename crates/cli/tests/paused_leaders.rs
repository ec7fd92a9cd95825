//! S3 on real processes: a hundred leaders are stopped (SIGSTOP) past their terms, others are elected and write, the first
//! ones wake up and write too. Behind the fence of a real PostgreSQL each of their writes is refused, and none of the
//! others'.
//!
//! Leaders are this program once more, told so by its environment; hence no harness (`harness = false`).

#![allow(clippy::unwrap_used)] // The lint spares test functions, and here are none.

mod support;

use sereno_client::Client;
use sereno_guard::{
    Fence,
    postgres::{Outcome, PostgresGuard},
};
use sereno_postgres_dev::Server;
use std::{
    env,
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{Service, signal};
use tokio_postgres::NoTls;

/// How many elections, all at the same time.
const TRIES: usize = 100;
const TTL: Duration = Duration::from_secs(1);
/// Which election a leader is for, its name, the service and the database: set for leaders only.
const LEADER: [&str; 4] = ["TRY_ELECTION", "TRY_NAME", "TRY_SERVER", "TRY_DATABASE"];

fn main() {
    let told: Vec<String> = LEADER.iter().filter_map(|name| env::var(name).ok()).collect();
    match <[String; 4]>::try_from(told) {
        Ok([election, name, server, database]) => lead(&election, &name, &server, &database),
        Err(_) => hundred_paused_leaders(),
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(work)
}

async fn connect(database: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
    tokio::spawn(async move {
        // Its end is told to whoever uses the client.
        let _ = connection.await;
    });
    client
}

/// One leader: says its term, and writes for each line that it reads. It does not ask again whether it still leads: that is
/// the moment between a check and a write.
fn lead(election: &str, name: &str, server: &str, database: &str) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let client = Client::builder().servers(server).build().unwrap();
    let campaign = client.election(election).candidate(name).ttl(TTL).campaign();
    let leadership = runtime.block_on(campaign).unwrap();
    let term = leadership.grant().holdings[0].fencing_token;
    let fence = Fence::new(leadership.fence_key(), term).unwrap();
    println!("leads {term}");
    for line in std::io::stdin().lines() {
        line.unwrap();
        println!("{}", runtime.block_on(write(database, &fence, election, name)));
    }
}

async fn write(database: &str, fence: &Fence, election: &str, name: &str) -> String {
    let mut client = connect(database).await;
    let (term, values) = (i64::try_from(fence.token()).unwrap(), "VALUES ($1, $2, $3)");
    let sql = format!("INSERT INTO written (election, name, term) {values}");
    let outcome = PostgresGuard::new()
        .run(&mut client, std::slice::from_ref(fence), async |transaction| {
            transaction.execute(&sql, &[&election, &name, &term]).await
        })
        .await;
    match outcome.unwrap() {
        Outcome::Done(rows) => format!("done {rows}"),
        Outcome::Fenced(refused) => format!("refused {}", refused.highest),
    }
}

/// A leader as a process; killed when dropped.
struct Leader {
    child: Child,
    words: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Leader {
    fn start(service: &Service, database: &str, number: usize, name: &str) -> Self {
        let values = [&format!("try/{number}"), name, &service.url, database];
        let mut child = Command::new(env::current_exe().unwrap())
            .envs(LEADER.into_iter().zip(values))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, words, lines }
    }

    /// The number in its next line, which begins with `word`.
    fn says(&mut self, word: &str) -> u64 {
        let line = self.lines.next().expect("it goes on").unwrap();
        let number = line.strip_prefix(word).unwrap_or_else(|| panic!("{line:?}, not {word:?}"));
        number.trim().parse().unwrap()
    }

    fn is_told_to_write(&mut self) {
        writeln!(self.words, "write").unwrap();
    }

    fn writes(&mut self) {
        self.is_told_to_write();
        assert_eq!(self.says("done"), 1);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hundred_paused_leaders() {
    let begun = Instant::now();
    let data = tempfile::tempdir().unwrap();
    let service = Service::start(data.path());
    let postgres = Server::with_settings(&["max_connections=300"]).unwrap();
    let database = postgres.url();
    block_on(prepare(&database));
    let start = |name: &'static str| {
        (0..TRIES)
            .map(|number| Leader::start(&service, &database, number, name))
            .collect::<Vec<_>>()
    };
    let mut first = start("first");
    let terms: Vec<u64> = first.iter_mut().map(|leader| leader.says("leads")).collect();
    first.iter_mut().for_each(Leader::writes);
    let mut second = start("second");
    // Each stops at a moment of its own within its time between two renewals.
    for leader in &first {
        signal("-STOP", leader.child.id());
        thread::sleep(TTL / 300);
    }
    let later: Vec<u64> = second.iter_mut().map(|leader| leader.says("leads")).collect();
    assert!(terms.iter().zip(&later).all(|(term, later)| term < later), "{terms:?} {later:?}");
    second.iter_mut().for_each(Leader::writes);

    // All at once: the first ones wake up and write, and the second ones go on writing.
    first.iter_mut().chain(&mut second).for_each(Leader::is_told_to_write);
    first.iter().for_each(|leader| signal("-CONT", leader.child.id()));
    let highest: Vec<u64> = first.iter_mut().map(|leader| leader.says("refused")).collect();
    assert_eq!(highest, later, "each is refused for the term of the one after it");
    second.iter_mut().for_each(|leader| assert_eq!(leader.says("done"), 1));

    let written = block_on(written(&database));
    assert_eq!(written.len(), 3 * TRIES, "one of each first leader, two of each second one");
    for (number, term) in terms.iter().enumerate() {
        let of: Vec<u64> = written.iter().filter(|(of, _)| *of == number).map(|it| it.1).collect();
        assert_eq!(of, [*term, later[number], later[number]], "try {number}, in the order written");
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{} of {TRIES} late writes refused, {} in force accepted; {took:.1} s",
        highest.len(),
        written.len()
    );
}

async fn prepare(database: &str) {
    let client = connect(database).await;
    PostgresGuard::new().install(&client).await.unwrap();
    let columns = "id bigserial PRIMARY KEY, election text, name text, term bigint";
    client.batch_execute(&format!("CREATE TABLE written ({columns})")).await.unwrap();
}

/// Try and term of each row, in the order in which they were written.
async fn written(database: &str) -> Vec<(usize, u64)> {
    let client = connect(database).await;
    let rows = client.query("SELECT election, term FROM written ORDER BY id", &[]).await.unwrap();
    let row = |row: &tokio_postgres::Row| {
        let (election, term): (&str, i64) = (row.get(0), row.get(1));
        let number = election.strip_prefix("try/").unwrap().parse().unwrap();
        (number, u64::try_from(term).unwrap())
    };
    rows.iter().map(row).collect()
}
