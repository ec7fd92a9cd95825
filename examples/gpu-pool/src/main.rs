//! The program: sets the pool up, runs one job, looks at the pool, reports. See README.md.

use clap::{Args, Parser, Subcommand};
use gpu_pool::{
    job::{self, Job, Outcome, Work},
    lives::Lives,
    observer, picture, pool,
    record::{self, Record, Who},
    table::Report,
};
use sereno_client::{Client, Quotas, api::Millis};
use std::{error::Error, path::PathBuf, process::ExitCode};

/// More was in use than there is.
const OVERSOLD: u8 = 2;
/// There were not so many GPUs, or not in time.
const REFUSED: u8 = 3;
/// The reservation was lost, and the job has stopped.
const LOST: u8 = 4;

/// A pool of 64 GPUs for three tenants: vision, speech and research.
///
/// `setup` puts the limits, `job` runs one job of a tenant, `observe` writes down what the service shows, and `report` makes a
/// table and a picture of what all of them have written down.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put the limits: 64 GPUs, of which vision is promised 24 and speech 16; by weight 2, 1 and 1 for the rest.
    Setup {
        #[command(flatten)]
        at: At,
        /// A job that has waited longer goes before all that are not under their tenant's guarantee, however large it is.
        #[arg(long, default_value = "30s")]
        patience: Millis,
    },
    /// Run one job: wait for its GPUs, work, give them back.
    ///
    /// Exit code 0: done; 1: the service or the record failed; 3: it did not get its GPUs; 4: it lost them and has stopped.
    Job(JobArgs),
    /// Write down who waits for GPUs and who has some, as the service shows it, whenever that changes; until it is killed.
    Observe {
        #[command(flatten)]
        at: At,
        /// The file that all append to.
        #[arg(long)]
        record: PathBuf,
        /// How often to look.
        #[arg(long, default_value = "50ms")]
        each: Millis,
    },
    /// Tell from a record what each tenant used and waited for, what came back from crashed jobs and when, and whether
    /// more GPUs were ever in use than there are: exit code 2 then.
    Report {
        /// The file that all have appended to.
        #[arg(long)]
        record: PathBuf,
        /// Draw use over time into this file (SVG), too.
        #[arg(long)]
        picture: Option<PathBuf>,
    },
}

/// Which service.
#[derive(Debug, Args)]
struct At {
    /// Where Sereno is.
    #[arg(long, env = "SERENO_SERVER", default_value = "http://127.0.0.1:7480")]
    sereno: String,
    /// Where the quota is.
    #[arg(long, default_value = "default")]
    namespace: String,
}

#[derive(Debug, Args)]
struct JobArgs {
    #[command(flatten)]
    at: At,
    /// Whose job.
    #[arg(long, value_parser = pool::TENANTS.map(|tenant| tenant.name))]
    tenant: String,
    /// What it is called: one word.
    #[arg(long, value_parser = one_word)]
    name: String,
    /// How many GPUs it needs.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=pool::GPUS))]
    gpus: u64,
    /// Higher ones go first among those of the same tenant who wait.
    #[arg(long, default_value_t = 0)]
    priority: u8,
    /// How long to wait for them. [default: not at all]
    #[arg(long, default_value = "0s", hide_default_value = true)]
    wait: Millis,
    /// The pool has them back so long after a crash, at most. While the job runs it is extended.
    #[arg(long, default_value = "30s")]
    ttl: Millis,
    /// How long the work takes.
    #[arg(long, default_value = "1s", conflicts_with = "until")]
    work: Millis,
    /// Work until this file is there.
    #[arg(long)]
    until: Option<PathBuf>,
    /// The file that all append to.
    #[arg(long)]
    record: PathBuf,
}

fn one_word(text: &str) -> Result<String, String> {
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [word] if *word == text => Ok(text.into()),
        _ => Err("a name is one word without blanks".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gpu-pool: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Setup { at, patience } => {
            pool::put_limits(&quotas(&at)?, patience.to_duration()).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Job(args) => run_job(args).await,
        Command::Observe { at, record, each } => {
            let mut record = Record::append_to(&record)?;
            observer::observe(&quotas(&at)?, &mut record, each.to_duration()).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Report { record, picture } => {
            let lives = Lives::of(&record::read(&record)?);
            let report = Report::of(&lives);
            print!("{report}");
            if let Some(path) = picture {
                std::fs::write(&path, picture::draw(&lives))?;
            }
            Ok(ExitCode::from(if report.is_oversold() { OVERSOLD } else { 0 }))
        }
    }
}

async fn run_job(args: JobArgs) -> Result<ExitCode, Box<dyn Error>> {
    let JobArgs { at, tenant, name, gpus, priority, wait, ttl, work, until, record } = args;
    let job = Job {
        who: Who { tenant, job: name, gpus },
        priority,
        wait: wait.to_duration(),
        ttl: ttl.to_duration(),
        work: until.map_or(Work::For(work.to_duration()), Work::Until),
    };
    match job::run(&quotas(&at)?, job, &mut Record::append_to(&record)?).await? {
        Outcome::Done => Ok(ExitCode::SUCCESS),
        Outcome::Refused(why) => {
            eprintln!("gpu-pool: {why}");
            Ok(ExitCode::from(REFUSED))
        }
        Outcome::Lost(why) => {
            eprintln!("gpu-pool: stopped: {why}");
            Ok(ExitCode::from(LOST))
        }
    }
}

fn quotas(at: &At) -> Result<Quotas, sereno_client::Error> {
    let client = Client::builder().servers(&at.sereno).namespace(&at.namespace).build()?;
    Ok(client.quota())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("p job --tenant vision --name a --gpus 4 --record r").is_ok());
        for wrong in [
            "p job --tenant sales --name a --gpus 4 --record r",
            "p job --tenant vision --name a --gpus 65 --record r",
            "p job --tenant vision --name a --gpus 4 --record r --work 1s --until f",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(one_word("a b").is_err() && one_word("").is_err() && one_word("a-1").is_ok());
    }
}
