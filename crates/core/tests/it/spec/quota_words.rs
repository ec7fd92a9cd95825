//! The words about quotas. A node is `gpu/acme/vision` (`gpu` is the root), items are `gpu/acme=4,bytes=10`. `R1` is the
//! reservation of request 1, `C1` the first commit of the script. A write without `id:` gets one of its own.
//!
//! ```text
//! limit gpu/acme 64 v:0 burst:8 guaranteed:10 weight:2 owner:4 patience:30s       remove gpu/acme v:1
//! reserve gpu/acme=4 id:1 by:w1 ttl:10s wait:5s life:1h expiry:quarantine prio:3
//! begin-work R1 ttl:1m expiry:commit      commit R1 [gpu/acme=2] [part] late:readmit      extend R1 ttl:10s
//! resize R1 gpu/acme=2       drop R1      settle R1 release       return C1 gpu/acme=2 by:w1
//! usage gpu/acme 12 by:counter epoch:1 then:10 read:-5s       reconcile gpu/acme by:counter epoch:1 [dry] [at-once]
//! share gpu/acme 4 to:us cap:2 id:1    share-return R1 returned:1 spent:2    share-reclaim R1
//! region eu    home shop eu v:1    limit … home:eu refuse:debt
//! adjust gpu/acme +2 by:w1     … fence:T1 where a reservation is named
//! book gpu/acme   shows a node      who gpu/acme   explains it
//! ```

use super::{
    line::{Line, owner, shifted},
    print::ms,
    script::World,
};
use sereno_core::{
    command::{
        Adjust, Adjustment, Begin, Commit, Extend, Item, Late, NodeLimits, NodeRef, OnExpiry,
        PutLimit, QuotaCommand, Reconcile, ReleaseReservation, RemoveNode, ReportUsage,
        ReservationRef, Reserve, Resize, ReturnUse, Settle, Settlement, ShareGrant, ShareReclaim,
        ShareReturn,
    },
    ids::{ClusterTime, ReservationId, Revision},
    names::{QuotaName, QuotaPath, Reason, RegionName, RequestId},
    outcome::{Layer, Shortage},
};

/// A node by its whole name.
pub(super) fn node(text: &str) -> NodeRef {
    let (quota, path) = text.split_once('/').unwrap_or((text, ""));
    let quota = QuotaName::new(quota).expect("a quota");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

pub(super) fn name(node: &NodeRef) -> String {
    match node.path.as_str() {
        "" => node.quota.to_string(),
        path => format!("{}/{path}", node.quota),
    }
}

pub(super) fn items(text: &str) -> Vec<Item> {
    let item = |text: &str| {
        let (at, amount) = text.split_once('=').expect("node=amount");
        Item { node: node(at), amount: amount.parse().expect("an amount") }
    };
    text.split_terminator(',').map(item).collect()
}

pub(super) fn said(items: &[Item]) -> String {
    let item = |item: &Item| format!("{}={}", name(&item.node), item.amount);
    items.iter().map(item).collect::<Vec<_>>().join(" ")
}

fn on_expiry(line: &Line) -> OnExpiry {
    match line.get("expiry").unwrap_or("release") {
        "release" => OnExpiry::Release,
        "commit" => OnExpiry::Commit,
        "quarantine" => OnExpiry::Quarantine,
        other => panic!("expiry:{other}"),
    }
}

fn region(line: &Line) -> Option<RegionName> {
    line.get("home").map(|text| RegionName::new(text).expect("a region"))
}

pub(super) fn layer(layer: &Layer) -> String {
    let Layer { limit, burst, committed, reserved, available, asked, shortfall, version, .. } =
        layer;
    let burst = if *burst > 0 { format!("+{burst}") } else { String::new() };
    let kind = match layer.kind {
        Shortage::Limit => "limit",
        Shortage::Burst => "burst",
        Shortage::Guarantee => "guarantee",
        Shortage::Waiting => "waiting",
        Shortage::OwnerMax => "owner",
        Shortage::Unknown => "unknown",
    };
    let name = name(&layer.node);
    format!(
        "{name} v{version} {kind} {limit}{burst}: {committed} used, {reserved} reserved, \
         {available} of {asked} pass, {shortfall} short"
    )
}

impl World {
    pub(super) fn quota(&mut self, line: &Line) -> Option<QuotaCommand> {
        let namespace = line.namespace();
        let request_id = self.request_of(line);
        Some(match line.word(0) {
            "limit" => QuotaCommand::PutLimit(PutLimit {
                namespace,
                node: node(line.word(1)),
                limits: NodeLimits {
                    limit: line.word(2).parse().expect("a limit"),
                    burst: line.number("burst").unwrap_or(0),
                    guaranteed: line.number("guaranteed").unwrap_or(0),
                    weight: line.number("weight").unwrap_or(1),
                    owner_reserved_max: line.number("owner"),
                    patience_ms: line.ms("patience"),
                    home: region(line),
                },
                expected_version: line.number("v").unwrap_or(0),
                refuse_debt: line.get("refuse").is_some(),
                request_id,
            }),
            "remove" => QuotaCommand::RemoveNode(RemoveNode {
                namespace,
                node: node(line.word(1)),
                expected_version: line.number("v").expect("v:…"),
                request_id,
            }),
            "reserve" => QuotaCommand::Reserve(Reserve {
                namespace,
                owner: owner(line),
                items: items(line.word(1)),
                reservation: self.draw_reservation(line.get("id")),
                request_id,
                ttl_ms: line.ms("ttl").unwrap_or(60_000),
                max_lifetime_ms: line.ms("life"),
                on_expiry: on_expiry(line),
                priority: line.number("prio").map_or(0, |n| u8::try_from(n).expect("small")),
                wait_timeout_ms: line.ms("wait").unwrap_or(0),
                labels: line.labels(),
            }),
            "begin-work" => QuotaCommand::Begin(Begin {
                of: self.reservation(line),
                in_flight_ttl_ms: line.ms("ttl").unwrap_or(60_000),
                on_expiry: on_expiry(line),
                request_id,
            }),
            "commit" => QuotaCommand::Commit(Commit {
                of: self.reservation(line),
                items: line.plain.get(2).filter(|word| **word != "part").map(|text| items(text)),
                is_final: line.plain.last() != Some(&"part"),
                late: match line.get("late") {
                    Some("readmit") => Late::Readmit,
                    _ => Late::Reject,
                },
                readmitted: self.draw_reservation(line.get("as")),
                request_id,
            }),
            "drop" => {
                QuotaCommand::Release(ReleaseReservation { of: self.reservation(line), request_id })
            }
            "extend" => QuotaCommand::Extend(Extend {
                of: self.reservation(line),
                ttl_ms: line.ms("ttl"),
                request_id,
            }),
            "resize" => QuotaCommand::Resize(Resize {
                of: self.reservation(line),
                items: items(line.word(2)),
                request_id,
            }),
            "return" => {
                let item = items(line.word(2)).remove(0);
                QuotaCommand::Return(ReturnUse {
                    namespace,
                    commit: self.names.commit_named(line.word(1)),
                    node: item.node,
                    owner: owner(line),
                    amount: item.amount,
                    request_id,
                })
            }
            "settle" => QuotaCommand::Settle(Settle {
                of: self.reservation(line),
                settlement: match line.word(2) {
                    "commit" => Settlement::Commit,
                    _ => Settlement::Release,
                },
                reason: Reason::new(line.get("reason").unwrap_or("why")).expect("a reason"),
                request_id,
            }),
            _ => return self.books(line, request_id),
        })
    }

    fn books(&mut self, line: &Line, request_id: RequestId) -> Option<QuotaCommand> {
        let namespace = line.namespace();
        Some(match line.word(0) {
            "usage" => {
                let now = self.scribe.state.time().0;
                let at = node(line.word(1));
                let view = self.scribe.state.quota_node(&namespace, &at).flatten();
                let committed = view.map_or(0, |view| view.committed);
                QuotaCommand::ReportUsage(ReportUsage {
                    namespace,
                    node: at,
                    reporter: owner(line),
                    epoch: line.number("epoch").expect("epoch:…"),
                    observed: line.word(2).parse().expect("an amount"),
                    as_of: Revision(line.number("as").unwrap_or(1)),
                    committed_then: line.number("then").unwrap_or(committed),
                    read_at: ClusterTime(line.get("read").map_or(now, |by| shifted(now, by, 1))),
                    request_id,
                })
            }
            "reconcile" => QuotaCommand::Reconcile(Reconcile {
                namespace,
                node: node(line.word(1)),
                reporter: owner(line),
                epoch: line.number("epoch").expect("epoch:…"),
                dry_run: line.plain.contains(&"dry"),
                at_once: line.plain.contains(&"at-once"),
                request_id,
            }),
            "adjust" => {
                let text = line.word(2);
                let amount = text[1..].parse().expect("an amount");
                QuotaCommand::Adjust(Adjust {
                    namespace,
                    node: node(line.word(1)),
                    owner: owner(line),
                    change: match text.starts_with('+') {
                        true => Adjustment::Add(amount),
                        false => Adjustment::Subtract(amount),
                    },
                    reason: Reason::new(line.get("reason").unwrap_or("why")).expect("a reason"),
                    request_id,
                })
            }
            "share" => QuotaCommand::ShareGrant(ShareGrant {
                namespace,
                node: node(line.word(1)),
                region: RegionName::new(line.get("to").expect("to:…")).expect("a region"),
                amount: line.word(2).parse().expect("an amount"),
                overdraft_cap: line.number("cap").unwrap_or(0),
                share: self.draw_reservation(line.get("id")),
                request_id,
            }),
            "share-return" => QuotaCommand::ShareReturn(ShareReturn {
                namespace,
                share: self.names.reservation_named(line.word(1)),
                returned: line.number("returned").unwrap_or(0),
                spent: line.number("spent").unwrap_or(0),
                request_id,
            }),
            "share-reclaim" => QuotaCommand::ShareReclaim(ShareReclaim {
                namespace,
                share: self.names.reservation_named(line.word(1)),
                reason: Reason::new(line.get("reason").unwrap_or("why")).expect("a reason"),
                request_id,
            }),
            _ => return None,
        })
    }

    fn request_of(&mut self, line: &Line) -> RequestId {
        if line.get("id").is_some() {
            return line.request_id();
        }
        let n = self.next_draw();
        RequestId::new(&format!("request-auto-{n}")).expect("a request id")
    }

    /// A name as a node draws one for each call; the first of a request is what `R` means.
    fn draw_reservation(&mut self, request: Option<&str>) -> ReservationId {
        let name = ReservationId(sereno_core::testing::lease_id(self.next_draw()).0);
        match request {
            Some(request) => {
                self.names.reservation_drawn(request, name);
                name
            }
            None => name,
        }
    }

    fn reservation(&self, line: &Line) -> ReservationRef {
        ReservationRef {
            namespace: line.namespace(),
            reservation: self.names.reservation_named(line.word(1)),
            fence: line.get("fence").map(|fence| self.names.token_named(fence)),
        }
    }

    /// What a node's books say.
    pub(super) fn book(&self, line: &Line) -> String {
        let view = self.scribe.state.quota_node(&line.namespace(), &node(line.word(1)));
        let Some(view) = view.expect("a namespace") else { return "no such node".into() };
        let mut said = format!(
            "{} used, {} reserved of {}, {} available",
            view.committed, view.reserved, view.limits.limit, view.available
        );
        if view.limits.burst > 0 {
            said += &format!(", burst {}", view.limits.burst);
        }
        if view.limits.guaranteed > 0 {
            said += &format!(", {} guaranteed", view.limits.guaranteed);
            if view.effective_guaranteed < view.limits.guaranteed {
                said += &format!(" ({} count)", view.effective_guaranteed);
            }
        }
        if view.debt > 0 {
            said += &format!(", debt {}", view.debt);
        }
        if view.waiters > 0 {
            said += &format!(", {} waiting", view.waiters);
        }
        if view.sweep_pending {
            said += ", sweep pending";
        }
        said
    }

    /// Why a node gives no more, and who has it.
    pub(super) fn who(&mut self, line: &Line) -> String {
        let of = self.scribe.state.explain_quota(&line.namespace(), &node(line.word(1)), 100);
        let Some(of) = of.expect("a namespace") else { return "no such node".into() };
        let mut lines = vec![format!("{} layers", of.layers.len())];
        for one in &of.holders {
            let state = format!("{:?}", one.state).to_lowercase();
            let (held, left) = (ms(one.held_for_ms), ms(one.expires_in_ms));
            let items = said(&one.items);
            lines.push(format!("{} {state} {items} held {held}, {left} left", one.owner));
        }
        if let Some(last) = &of.last_refusal {
            let layers: Vec<_> = last.layers.iter().map(layer).collect();
            let (owner, amount, ago) = (&last.owner, last.amount, ms(last.ago_ms));
            lines.push(format!("refused {owner} {amount}, {ago} ago: {}", layers.join("; ")));
        }
        lines.join("\n    ")
    }
}
