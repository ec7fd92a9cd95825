//! The command line as a whole.

use crate::{
    audit::AuditArgs,
    cluster::ClusterArgs,
    completions::CompletionsArgs,
    connect::Service,
    demo::WorkerArgs,
    elect::ElectArgs,
    elections::ElectionsArgs,
    guard::{GuardArgs, ProxyArgs},
    hold::HoldArgs,
    holds::HoldsArgs,
    job::JobArgs,
    jobs::JobsArgs,
    lock::LockArgs,
    locks::LocksArgs,
    namespace::NamespaceArgs,
    offline::{BackupArgs, DoctorArgs, RestoreArgs},
    own,
    quota::QuotaArgs,
    raise_level::RaiseLevelArgs,
    status::StatusArgs,
    token_floor::TokenFloorArgs,
};
use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// Sereno: locks, elections, holds, quotas and scheduled jobs, with leases and fencing tokens.
#[derive(Clone, Debug, Parser)]
#[command(name = "sereno", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<sereno_server::Args>),
    Lock(Box<LockArgs>),
    Locks(LocksArgs),
    Job(Box<JobArgs>),
    Jobs(JobsArgs),
    Elect(Box<ElectArgs>),
    Elections(ElectionsArgs),
    Hold(HoldArgs),
    Holds(HoldsArgs),
    Quota(QuotaArgs),
    Namespace(NamespaceArgs),
    Guard(GuardArgs),
    GuardProxy(Box<ProxyArgs>),
    /// Show the audit trail.
    Audit(AuditArgs),
    /// Show the condition of the service.
    Status(StatusArgs),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    TokenFloor(TokenFloorArgs),
    RaiseLevel(RaiseLevelArgs),
    Doctor(DoctorArgs),
    Cluster(ClusterArgs),
    /// Play the story that the service exists for: a paused holder wakes up late, and the fence holds.
    Demo,
    /// Write a script that completes commands in a shell.
    Completions(CompletionsArgs),
}

/// How this program starts itself: not for people, so neither in the help nor in completions.
#[derive(Clone, Debug, Parser)]
#[command(name = "sereno")]
pub(crate) enum Helper {
    /// The process beside `lock` that holds the deadline.
    #[command(name = own::WATCHDOG)]
    Watchdog,
    /// The process that becomes the command of `lock`.
    #[command(name = own::LAUNCH)]
    Launch {
        /// The pipe on which to wait.
        pipe: i32,
        /// What to become.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// The worker of `demo` that is paused.
    #[command(name = own::DEMO_WORKER)]
    DemoWorker {
        #[command(flatten)]
        service: Service,
        #[command(flatten)]
        worker: WorkerArgs,
    },
}

impl Helper {
    /// The helper that this process was started as, if it was.
    pub(crate) fn asked_for() -> Option<Self> {
        let first = std::env::args_os().nth(1)?;
        let is_one =
            [own::WATCHDOG, own::LAUNCH, own::DEMO_WORKER].iter().any(|name| first == *name);
        is_one.then(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    const PAGE: &str = include_str!("../../../docs/cli.md");

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        Helper::command().debug_assert();
    }

    /// `serve` is left out: its options are explained by its own help.
    #[test]
    fn the_page_has_every_command_and_option() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(PAGE.contains(&format!("## {name}\n")), "no section for {name}");
            if name != "serve" {
                options_are_on_the_page(command);
            }
        }
    }

    fn options_are_on_the_page(command: &clap::Command) {
        for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
            let name = command.get_name();
            assert!(PAGE.contains(&format!("--{option}")), "--{option} of {name} is missing");
        }
        for inner in command.get_subcommands() {
            let name = inner.get_name();
            assert!(PAGE.contains(&format!("`{name}`")), "{name} is missing");
            options_are_on_the_page(inner);
        }
    }

    /// Where the service is means nothing to commands that work on a folder, or bring their own service.
    #[test]
    fn only_commands_that_use_a_service_take_one() {
        let mut command = Cli::command();
        command.build();
        for command in command.get_subcommands().filter(|it| it.get_name() != "help") {
            let name = command.get_name();
            let takes = command.get_arguments().any(|it| it.get_long() == Some("server"));
            let uses = [
                "lock",
                "locks",
                "job",
                "jobs",
                "elect",
                "elections",
                "hold",
                "holds",
                "quota",
                "namespace",
                "audit",
                "status",
                "token-floor",
                "raise-level",
            ]
            .contains(&name);
            // Guards can do without, and some have nothing to tell.
            assert_eq!(takes, uses || name == "guard-proxy", "{name}");
            if ["cluster", "guard"].contains(&name) {
                continue; // The one brings its own, the other may do without.
            }
            for inner in command.get_subcommands().filter(|it| it.get_name() != "help") {
                assert!(inner.get_arguments().any(|it| it.get_long() == Some("server")), "{name}");
            }
        }
    }

    /// What stands in the source as it shall stand on the screen must not be broken again there.
    #[test]
    fn the_help_of_what_runs_commands_fits_the_screen() {
        let command = Cli::command();
        let quota = command.find_subcommand("quota").unwrap();
        for (of, name, code) in [
            (&command, "lock", "  120  "),
            (&command, "elect", "  120  "),
            (&command, "job", "  123  "),
            (quota, "reserve", "  120  "),
        ] {
            let it = of.find_subcommand(name).unwrap();
            let about = it.get_long_about().unwrap().to_string();
            assert!(about.lines().count() > 10 && about.contains(code), "{about}");
            for line in about.lines() {
                assert!(line.len() < 80, "{line}");
            }
        }
    }

    #[test]
    fn the_page_has_every_exit_code() {
        for code in 117..=125 {
            assert!(PAGE.contains(&format!("| {code} |")), "{code}");
        }
    }
}
