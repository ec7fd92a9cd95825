//! Five replicas and a ledger. One is killed and one is paused in the middle of the same run.

#![allow(dead_code, unreachable_pub)] // The test and the play each use their part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use example_stage::{
    Database, Process, Service, family, kill, name, path, pause, program, resume, until,
};

const REPLICAS: usize = 5;
const ACCOUNTS: i64 = 100;
/// An attempt is disturbed when it has settled so many.
const SOME: i64 = 5;
const SQL: &str = include_str!("../../sql/ledger.sql");

pub struct World {
    service: Service,
    database: Database,
    replicas: Vec<Process>,
}

impl World {
    pub async fn new() -> Self {
        let (service, database) = (Service::start(), Database::new().await);
        database.run(sereno_guard::POSTGRES_SQL).await;
        database.run(SQL).await;
        let fill = format!(
            "INSERT INTO accounts (account, due) SELECT n, 100 + n FROM generate_series(1, {ACCOUNTS}) n"
        );
        database.run(&fill).await;
        // Slots are asked for by the scene; `sereno job` would find those of a clock in the same way.
        let replica = |number: usize| {
            let mut job = program("sereno");
            job.args(["job", "--server", service.url(), "--name", "settlement"]);
            job.args(["--schedule", "@yearly", "--retries", "9", "--ttl", "1s", "--max-run", "1m"]);
            job.args([
                "--",
                &path("settle"),
                "--replica",
                &format!("replica {number}"),
                "--database",
                database.url(),
            ]);
            Process::start(job)
        };
        let replicas = (0..REPLICAS).map(replica).collect();
        Self { service, database, replicas }
    }

    /// An extra slot, as an operator asks for one.
    pub async fn ask_for_a_run(&self) {
        // The first replica that is up has put the job.
        until("the job", async || {
            self.service.try_to_tell(&["jobs", "get", "settlement"]).status.success().then_some(())
        })
        .await;
        self.service.tell(&["jobs", "run-now", "settlement", "--reason", "the play"]);
    }

    /// The replica whose attempt has settled some accounts by now.
    async fn at_work(&self, attempt: i64) -> usize {
        let sql = format!(
            "SELECT right(replica, 1) FROM settlements WHERE attempt = {attempt} GROUP BY 1 HAVING count(*) >= {SOME}"
        );
        let found = async || self.database.rows(&sql).await.get(1).map(|row| row[0].clone());
        until("some accounts of an attempt", found).await.parse().unwrap()
    }

    pub async fn is_settled(&self, slots: i64) {
        let sql = "SELECT count(*) FROM settlements";
        until("the end of the run", async || {
            (self.database.number(sql).await == slots * ACCOUNTS).then_some(())
        })
        .await;
    }

    /// As when its machine loses power: all its processes at once.
    fn lose(&self, replica: usize) {
        family(self.replicas[replica].id()).into_iter().for_each(kill);
    }

    /// Who wrote what.
    pub async fn show(&self, what: &str) {
        println!("  {what}\n");
        let sql = "
            SELECT slot, attempt, replica, token, count(*) AS accounts, sum(amount) AS cents
            FROM settlements GROUP BY 1, 2, 3, 4 ORDER BY 1, 2";
        self.database.show(sql).await;
        self.database.show("SELECT * FROM refusals").await;
    }

    /// Each account is settled once for each slot, by attempts that came one after the other.
    pub async fn ledger_is_right(&self, slots: i64) {
        let db = &self.database;
        let number = async |sql: &str| db.number(sql).await;
        assert_eq!(number("SELECT count(DISTINCT slot) FROM settlements").await, slots);
        assert_eq!(number("SELECT count(*) FROM settlements").await, slots * ACCOUNTS);
        let wrong = format!(
            "SELECT count(*) FROM accounts a WHERE balance <> {slots} * due OR balance <>
                 (SELECT sum(amount) FROM settlements s WHERE s.account = a.account)"
        );
        assert_eq!(number(&wrong).await, 0, "the money says the same as the notes");
        for table in ["settlements", "begun"] {
            let late = format!(
                "SELECT count(*) FROM (SELECT token < lag(token) OVER (ORDER BY nr) AS late FROM {table}) t
                 WHERE late"
            );
            assert_eq!(
                number(&late).await,
                0,
                "{table}: nobody after somebody with a higher token"
            );
        }
        let unchecked = "SELECT count(*) FROM settlements s WHERE NOT EXISTS
                             (SELECT FROM begun b WHERE b.slot = s.slot AND b.account = s.account AND b.token = s.token)";
        assert_eq!(number(unchecked).await, 0, "each attempt has asked before it began an account");
    }
}

/// While an attempt is at its first account somebody else takes over: it learns so before the second one.
pub async fn overtaken_between_two_accounts() {
    let database = Database::new().await;
    database.run(sereno_guard::POSTGRES_SQL).await;
    database.run(SQL).await;
    database.run("INSERT INTO accounts (account, due) VALUES (1, 100), (2, 100)").await;
    // The newer token comes right after the first account is written.
    let overtake = "
        CREATE FUNCTION overtake() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN UPDATE sereno_fence_tokens SET token = token + 1; RETURN NEW; END';
        CREATE TRIGGER overtake AFTER INSERT ON settlements FOR EACH ROW EXECUTE FUNCTION overtake()";
    database.run(overtake).await;
    let mut settle = program("settle");
    settle.args(["--database", database.url(), "--work", "1ms"]);
    settle.args(["--slot", "2026-03-29T01:00:00Z", "--attempt", "1", "--token", "5"]);
    settle.args(["--fence-key", "default/job/settlement"]);
    let output = settle.output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    for (sql, expected) in [
        ("SELECT count(*) FROM settlements WHERE account = 1", 1),
        ("SELECT count(*) FROM settlements", 1),
        ("SELECT count(*) FROM begun WHERE account = 1 AND token = 5", 1),
        ("SELECT count(*) FROM begun", 1),
        ("SELECT count(*) FROM refusals WHERE token = 5 AND highest = 6", 1),
    ] {
        assert_eq!(database.number(sql).await, expected, "{sql}");
    }
}

/// The whole of it.
pub async fn one_killed_and_one_paused() {
    let world = World::new().await;
    world.ask_for_a_run().await;
    let first = world.at_work(1).await;
    world.lose(first);
    world.show(&format!("replica {first} is dead, after a part of the accounts:")).await;
    let second = world.at_work(2).await;
    assert_ne!(first, second);
    // All of its processes, as when its machine is being moved: nobody is left to stop the command in time.
    let frozen = family(world.replicas[second].id());
    frozen.iter().copied().for_each(pause);
    world.is_settled(1).await;
    world.show(&format!("replica {second} stands still, and another one has finished:")).await;
    let writer = *frozen.iter().find(|id| name(**id) == "settle").expect("its command");
    resume(writer);
    let sql = "SELECT count(*) FROM refusals";
    until("the refusal", async || (world.database.number(sql).await > 0).then_some(())).await;
    frozen.into_iter().for_each(resume);
    world.show(&format!("replica {second} has woken up, and its next write was refused:")).await;
    world.ledger_is_right(1).await;
    // The four that are left go on.
    world.ask_for_a_run().await;
    world.is_settled(2).await;
    world.show("the next slot:").await;
    world.ledger_is_right(2).await;
}
