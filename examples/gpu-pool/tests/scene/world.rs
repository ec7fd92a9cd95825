//! The service, the pool, the observer, and jobs as processes.

use example_stage::{Process, Service, program, until};
use gpu_pool::{
    lives::{Life, Lives},
    pool,
    record::{self, Record, What, Who},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};
use tempfile::TempDir;

/// What each job asks for, where nothing else is said.
pub const GPUS: u64 = 4;

pub struct World {
    /// Of our own; not where one was given.
    service: Option<Service>,
    url: String,
    ttl: Duration,
    folder: TempDir,
    observer: Option<Process>,
    jobs: BTreeMap<String, Process>,
}

impl World {
    /// On a service of its own, or on one that runs.
    pub fn new(given: Option<String>) -> Self {
        let service = given.is_none().then(Service::start);
        let url = given.or_else(|| service.as_ref().map(|it| it.url().to_string())).unwrap();
        // A service on several nodes allows no shorter ones.
        let ttl = Duration::from_secs(if service.is_some() { 3 } else { 5 });
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self { service, url, ttl, folder, observer: None, jobs: BTreeMap::new() };
        world.put_limits("5m");
        let mut observe = world.at("observe");
        observe.args(["--each", "20ms", "--record"]).arg(world.record());
        world.observer = Some(Process::start(observe));
        world
    }

    /// How long the pool waits for a crashed job, at most.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// A file of the scene.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record(&self) -> PathBuf {
        self.file("record")
    }

    fn at(&self, what: &str) -> Command {
        let mut command = program("gpu-pool");
        command.args([what, "--sereno", &self.url]);
        command
    }

    /// As an operator does it, also while jobs run.
    pub fn put_limits(&self, patience: &str) {
        let mut setup = self.at("setup");
        setup.args(["--patience", patience]);
        succeeded(&setup.output().unwrap());
    }

    /// How many jobs were started whose name begins so.
    pub fn count(&self, prefix: &str) -> usize {
        self.jobs.keys().filter(|name| name.starts_with(prefix)).count()
    }

    /// Starts a job; `more`: its options. A file is one of the scene.
    pub fn start(&mut self, tenant: &str, name: &str, more: &[&str]) {
        let mut job = self.at("job");
        job.current_dir(self.folder.path());
        let ttl = format!("{}s", self.ttl.as_secs());
        job.args(["--tenant", tenant, "--name", name, "--ttl", &ttl, "--record"]);
        job.arg(self.record()).args(more);
        if !more.contains(&"--gpus") {
            job.args(["--gpus", &GPUS.to_string()]);
        }
        assert!(self.jobs.insert(name.into(), Process::start(job)).is_none(), "{name} twice");
    }

    /// `kill -9`. It is written down when it is dead.
    pub fn crash(&mut self, life: &Life) {
        self.jobs.remove(&life.job).unwrap().kill();
        let Life { tenant, job, gpus, .. } = life.clone();
        let mut record = Record::append_to(&self.record()).unwrap();
        record.note(What::Killed, &Who { tenant, job, gpus }, 0).unwrap();
    }

    /// What all have written down until now.
    pub fn lives(&self) -> Lives {
        match self.record().exists() {
            true => Lives::of(&record::read(&self.record()).unwrap()),
            false => Lives::default(),
        }
    }

    /// Returns when it is so, with what was written down by then.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Lives) -> bool) -> Lives {
        until(what, async || Some(self.lives()).filter(&is_so)).await
    }

    /// Returns when every job has ended, and nobody has anything on the books.
    pub async fn all_have_ended(&mut self) {
        for (name, mut job) in std::mem::take(&mut self.jobs) {
            let status = job.wait();
            assert!(status.success(), "{name}: {status}");
        }
        self.until("the end of all reservations", |lives| {
            lives.all.iter().all(|life| life.gone_us.is_some())
        })
        .await;
        let client = sereno_client::Client::new(&self.url).unwrap();
        let root = client.quota().get(pool::QUOTA, "").await.unwrap().node;
        let books = (root.committed, root.reserved, root.waiters);
        assert_eq!(books, (0, 0, 0), "all is free again: {root:?}");
        let promised: u64 = pool::TENANTS.iter().map(|tenant| tenant.guaranteed).sum();
        assert_eq!(root.available, pool::GPUS - promised, "for whoever comes without a promise");
        self.observer = None;
    }

    /// The report; and the picture, into a file.
    pub fn report(&self, picture: &Path) -> String {
        let mut report = program("gpu-pool");
        report.arg("report").arg("--record").arg(self.record()).arg("--picture").arg(picture);
        let output = report.output().unwrap();
        succeeded(&output);
        String::from_utf8(output.stdout).unwrap()
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// Those of a tenant that use their GPUs now.
pub fn running<'a>(lives: &'a Lives, tenant: &'a str) -> impl Iterator<Item = &'a Life> {
    lives.of_tenant(tenant).filter(|life| life.is_running())
}

/// Those in the queue.
pub fn waiting<'a>(lives: &'a Lives, tenant: &'a str) -> impl Iterator<Item = &'a Life> {
    lives.of_tenant(tenant).filter(|life| life.is_queued)
}
