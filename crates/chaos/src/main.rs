//! The command: runs seeds one after the other, and stops at the first that fails.

use clap::{Args, Parser, Subcommand, ValueEnum};
use sereno_chaos::{
    client::{self, ClientArgs},
    cluster::{Mode, Programs},
    namespaces,
    proxy::{self, Route},
    report::{self, Sum},
    run::{self, Report},
    schedule::schedule,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

#[derive(Debug, Parser)]
#[command(name = "sereno-chaos", about, version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Check again what a failed run has left.
    Check {
        /// The folder that was printed.
        folder: PathBuf,
    },
    /// A client process of a run.
    #[command(hide = true)]
    Client(ClientArgs),
    /// A fault proxy of a run.
    #[command(hide = true)]
    Proxy {
        /// LISTEN=TO
        routes: Vec<Route>,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The first seed; its schedule is printed before anything happens.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other.
    #[arg(long, default_value_t = 1)]
    seeds: u32,
    /// Minutes of faults, over all seeds together.
    #[arg(long, conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// Seconds of faults for each seed.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// How the processes are kept apart. [default: namespaces where the machine allows it, else loopback]
    #[arg(long)]
    mode: Option<ModeArg>,
    /// The `sereno` program. [default: beside this program]
    #[arg(long)]
    sereno: Option<PathBuf>,
    /// Where histories and logs of a failed run are kept. [default: the system's folder for temporary files]
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Only print the schedule.
    #[arg(long)]
    dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    Namespaces,
    Loopback,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => many(&cli.run),
        Some(Sub::Check { folder }) => check(&folder),
        Some(Sub::Client(args)) => block_on(client::run(args)),
        Some(Sub::Proxy { routes }) => {
            block_on(async { proxy::serve(routes).await.map_err(|error| error.to_string()) })
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn block_on(future: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(future)
}

fn many(args: &RunArgs) -> Result<(), String> {
    let length = match args.minutes {
        Some(minutes) => Duration::from_secs(60 * minutes) / args.seeds.max(1),
        None => Duration::from_secs(args.seconds),
    };
    if args.dry {
        (args.seed..).take(args.seeds as usize).for_each(|seed| print_schedule(seed, length));
        return Ok(());
    }
    let programs = programs(args)?;
    let mode = mode(args, &programs.own)?;
    let mut sum = Sum::default();
    for seed in (args.seed..).take(args.seeds as usize) {
        print_schedule(seed, length);
        let report = one(args, &programs, mode, seed, length)?;
        sum.add(&report, length);
    }
    sum.print();
    Ok(())
}

/// What was wrong, once more.
fn check(folder: &Path) -> Result<(), String> {
    let (checked, _, truth) = run::check_folder(folder)?;
    println!("{} calls, {} entries", checked.calls, truth.head().position);
    report::print_losses(&checked.losses);
    match checked.violations.as_slice() {
        [] => Ok(()),
        all => Err(all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

fn print_schedule(seed: u64, length: Duration) {
    println!("seed {seed}: {} s of faults", length.as_secs());
    schedule(seed, length).iter().for_each(|step| println!("  {step}"));
}

fn programs(args: &RunArgs) -> Result<Programs, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = || own.with_file_name("sereno");
    let sereno = args.sereno.clone().unwrap_or_else(beside);
    if !sereno.exists() {
        let build = "build it: cargo build --release -p sereno-cli";
        return Err(format!("there is no {}; {build}", sereno.display()));
    }
    for (program, package) in [("etcd", "etcd-server"), ("etcdctl", "etcd-client")] {
        let version = std::process::Command::new(program).arg("--version").output();
        version.map_err(|error| format!("{program} (Debian package {package}): {error}"))?;
    }
    Ok(Programs { sereno, own, faketime: faketime() })
}

/// Where Debian puts it.
fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let library = |folder: fs::DirEntry| folder.path().join("faketime/libfaketime.so.1");
    folders.map(library).find(|path| path.exists())
}

fn mode(args: &RunArgs, own: &Path) -> Result<Mode, String> {
    if args.mode == Some(ModeArg::Loopback) {
        println!("mode: loopback, with proxies");
        return Ok(Mode::Loopback);
    }
    if namespaces::is_inside() {
        namespaces::settle_in()?;
        println!("mode: network namespaces");
        return Ok(Mode::Namespaces);
    }
    let why = namespaces::enter(own);
    if args.mode.is_some() {
        return Err(format!("no namespaces here: {why}"));
    }
    println!("mode: loopback, with proxies (no namespaces here: {why})");
    Ok(Mode::Loopback)
}

fn one(
    args: &RunArgs,
    programs: &Programs,
    mode: Mode,
    seed: u64,
    length: Duration,
) -> Result<Report, String> {
    let scratch = sereno_etcd_dev::scratch_folder().map_err(|error| error.to_string())?;
    let dir = scratch.join(format!("seed-{seed}-{}", std::process::id()));
    let begun = Instant::now();
    let done = run::run(&dir, programs, mode, seed, &schedule(seed, length), length);
    let wrong = match &done {
        Ok(report) => {
            report::print(seed, report, begun.elapsed());
            report.checked.violations.iter().map(ToString::to_string).collect()
        }
        Err(message) => vec![message.clone()],
    };
    let kept = match wrong.is_empty() {
        true => None,
        false => {
            let to = args.keep.clone().unwrap_or_else(|| std::env::temp_dir().join("sereno-chaos"));
            Some(run::keep(&dir, &to)?)
        }
    };
    // Without it the next run has less room, and is told so.
    let _ = fs::remove_dir_all(&scratch);
    match kept {
        None => done,
        Some(kept) => {
            let (count, first) = (wrong.len(), wrong.iter().take(5).cloned().collect::<Vec<_>>());
            let told = first.join("\n");
            Err(format!("seed {seed} FAILED, {count} times:\n{told}\nkept in {}", kept.display()))
        }
    }
}
