//! The command: runs seeds one after the other, and stops at the first that fails.

use clap::{Args, Parser, Subcommand, ValueEnum};
use sereno_chaos::{
    check::Losses,
    client::{self, ClientArgs},
    cluster::{Mode, Programs},
    liveness::Measured,
    namespaces,
    proxy::{self, Route},
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
    print_losses(&checked.losses);
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
            print(seed, report, begun.elapsed());
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

fn print(seed: u64, report: &Report, took: Duration) {
    let checked = &report.checked;
    println!("seed {seed}: {:.0} s in all", took.as_secs_f64());
    println!(
        "  {} faults ({} not possible), {} processes gave up, {} times a new leader, {} entries",
        report.faults,
        report.skipped.len(),
        report.gave_up,
        report.leaders,
        report.entries
    );
    report.skipped.iter().for_each(|why| println!("    skipped {why}"));
    println!(
        "  {} calls, {} of unknown outcome; {} answers compared with the log",
        checked.calls, checked.unknown, checked.compared
    );
    let ordered: Vec<_> =
        checked.ordered.iter().map(|(of, count)| format!("{count} of {}s", of.as_str())).collect();
    println!("  put in order: {}", ordered.join(", "));
    let answers: Vec<_> =
        report.answers.iter().map(|(what, count)| format!("{count} {what}")).collect();
    println!("  {}", answers.join(", "));
    println!("  {} looks at guards that held", checked.guards);
    print_losses(&checked.losses);
    report.measured.iter().for_each(print_measured);
    println!("  violations: {}", checked.violations.len());
}

fn print_losses(losses: &Losses) {
    println!(
        "  lock and fence: {} written, {} late ones refused, {} lost",
        losses.fenced, losses.refused, losses.fenced_lost
    );
    println!(
        "  lock only: {} written, {} lost; room: {} entries, {} while another was inside",
        losses.plain, losses.plain_lost, losses.entries, losses.overlapping
    );
}

fn print_measured(measured: &Measured) {
    let late = if measured.is_late() { "  LATE" } else { "" };
    let (took, bound) = (measured.took.as_secs_f64(), measured.bound.as_secs_f64());
    println!("  {}: {took:.2} s (bound {bound} s){late}", measured.what);
}

/// Over all seeds.
#[derive(Default)]
struct Sum {
    seeds: usize,
    length: Duration,
    faults: usize,
    leaders: usize,
    calls: usize,
    unknown: usize,
    losses: Losses,
    measured: Vec<Measured>,
}

impl Sum {
    fn add(&mut self, report: &Report, length: Duration) {
        let (sum, losses) = (&mut self.losses, &report.checked.losses);
        sum.fenced += losses.fenced;
        sum.fenced_lost += losses.fenced_lost;
        sum.refused += losses.refused;
        sum.plain += losses.plain;
        sum.plain_lost += losses.plain_lost;
        sum.entries += losses.entries;
        sum.overlapping += losses.overlapping;
        self.seeds += 1;
        self.length += length;
        self.faults += report.faults;
        self.leaders += report.leaders;
        self.calls += report.checked.calls;
        self.unknown += report.checked.unknown;
        self.measured.extend(report.measured.iter().cloned());
    }

    fn print(&self) {
        println!(
            "{} seeds, {:.1} min of faults, without a violation: {} faults, {} leaders, {} calls ({} unknown)",
            self.seeds,
            self.length.as_secs_f64() / 60.0,
            self.faults,
            self.leaders,
            self.calls,
            self.unknown
        );
        print_losses(&self.losses);
        for what in ["L1 holder dies", "L2 leader dies", "L1 both die"] {
            let of: Vec<_> = self.measured.iter().filter(|it| it.what == what).collect();
            let mut took: Vec<_> = of.iter().map(|it| it.took.as_secs_f64()).collect();
            took.sort_by(f64::total_cmp);
            let late = of.iter().filter(|it| it.is_late()).count();
            if let (Some(median), Some(most)) = (took.get(took.len() / 2), took.last()) {
                println!("  {what}: median {median:.2} s, at most {most:.2} s, {late} late");
            }
        }
    }
}
