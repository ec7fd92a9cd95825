//! Two services in two regions: what is at home elsewhere is refused with the home's name, and capacity that is lent is
//! never used twice by more than the caps of the shares that were reclaimed, whichever side is cut off for however long.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use reqwest::blocking::Client;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use support::{Service, sereno, stderr, stdout, wait::until};

/// A service that runs in one region, or does not run at the moment.
struct Region {
    name: &'static str,
    data: PathBuf,
    http: Client,
    service: Option<Service>,
    requests: u64,
    /// Commits of its clients that were not given back.
    used: Vec<Value>,
}

/// What a service has answered.
type Answer = Result<Value, Value>;

impl Region {
    fn start(folder: &Path, name: &'static str) -> Self {
        let (data, http) = (folder.join(name), Client::new());
        let mut region = Self { name, data, http, service: None, requests: 0, used: Vec::new() };
        region.comes_back();
        region
    }

    fn comes_back(&mut self) {
        let mut command = Service::command(&self.data);
        self.service = Some(Service::of(command.args(["--region", self.name])));
        let is_said = || self.service().json(&["status"])["region"] == self.name;
        until("the log says where it runs", Duration::from_secs(10), is_said);
    }

    /// Nobody reaches it, and it reaches nobody.
    fn is_cut_off(&mut self) {
        self.service.take().unwrap().stop();
    }

    fn is_up(&self) -> bool {
        self.service.is_some()
    }

    fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    fn request_id(&mut self) -> String {
        self.requests += 1;
        format!("{}-request-{}", self.name, self.requests)
    }

    /// A write, with a request id unless it has one.
    fn post(&mut self, path: &str, mut body: Value) -> Answer {
        if body.get("requestId").is_none() {
            body["requestId"] = self.request_id().into();
        }
        self.send(path, &body)
    }

    fn send(&self, path: &str, body: &Value) -> Answer {
        let url = format!("{}{path}", self.service().url);
        let request = self.http.post(url).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().unwrap();
        let is_done = answer.status().is_success();
        let body = serde_json::from_str(&answer.text().unwrap()).unwrap();
        if is_done { Ok(body) } else { Err(body) }
    }

    fn quota(&mut self, verb: &str, body: Value) -> Answer {
        self.post(&format!("/v1/quotas/{verb}"), body)
    }

    /// The root of the quota `gpu`.
    fn gpu(&self) -> Value {
        let answer = self.http.get(format!("{}/v1/quotas/gpu", self.service().url)).send().unwrap();
        let read: Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        read["node"].clone()
    }

    /// A client takes one and uses it.
    fn use_one(&mut self) -> Answer {
        let items = json!([{"quota": "gpu", "amount": 1}]);
        let reserve = json!({"owner": "client", "items": items, "ttl": "1m"});
        let reserved = self.quota("reserve", reserve)?;
        let commit = json!({"reservationId": reserved["reservationId"]});
        let committed = self.quota("commit", commit).expect("what is reserved can be committed");
        self.used.push(committed["commitId"].clone());
        Ok(committed)
    }

    /// So many, until no more are let pass.
    fn use_up(&mut self) -> usize {
        let before = self.used.len();
        loop {
            match self.use_one() {
                Ok(_) => {}
                Err(refused) => {
                    assert_eq!(refused["code"], "QUOTA_EXHAUSTED", "{refused}");
                    return self.used.len() - before;
                }
            }
        }
    }

    /// So many, as far as there are.
    fn use_some(&mut self, count: u64) {
        for _ in 0..count {
            if self.use_one().is_err() {
                return;
            }
        }
    }

    /// A client gives one back.
    fn give_back_one(&mut self) {
        let Some(commit) = self.used.pop() else { return };
        let back = json!({"quota": "gpu", "owner": "client", "commitId": commit, "amount": 1});
        self.quota("return", back).unwrap();
    }

    /// Sets the limit, of which all that was lent is at home elsewhere.
    fn put_lent(&mut self, limit: u64, home: &str) -> Answer {
        let version = self.gpu()["version"].as_u64().unwrap_or(0);
        let put = json!({
            "quota": "gpu", "limit": limit, "home": home, "expectedVersion": version, "refuseDebt": true,
        });
        self.quota("put-limit", put)
    }
}

const LIMIT: u64 = 10;

/// The home with its limit, and another region that has been told whose it is.
fn regions() -> (tempfile::TempDir, Region, Region) {
    let folder = tempfile::tempdir().unwrap();
    let (mut eu, mut us) = (Region::start(folder.path(), "eu"), Region::start(folder.path(), "us"));
    let put = json!({"quota": "gpu", "limit": LIMIT, "home": "eu", "expectedVersion": 0});
    eu.quota("put-limit", put).unwrap();
    us.put_lent(0, "eu").unwrap();
    (folder, eu, us)
}

fn lend(eu: &mut Region, amount: u64, cap: u64) -> Answer {
    let grant = json!({"quota": "gpu", "region": "us", "amount": amount, "overdraftCap": cap});
    eu.quota("share-grant", grant)
}

#[track_caller]
fn is_sent_home(refused: &Answer, home: &str) {
    let Err(problem) = refused else { panic!("{refused:?} has its home in {home}") };
    assert_eq!((&problem["code"], &problem["home"]), (&json!("WRONG_REGION"), &json!(home)));
    assert_eq!((&problem["status"], &problem["outcome"]), (&json!(421), &json!("notApplied")));
}

#[test]
fn what_is_at_home_elsewhere_is_refused_and_told_where() {
    let (_folder, mut eu, mut us) = regions();
    for region in [&eu, &us] {
        let told = region.service().text(&["namespace", "set", "shop", "--home", "eu"]);
        assert!(told.contains("shop is created, with version 1"), "{told}");
        assert_eq!(region.service().json(&["namespace", "get", "shop"])["home"], "eu");
    }
    let asks = [
        ("/v1/locks/acquire", json!({"resource": "a", "owner": "o"})),
        ("/v1/locks/acquire-all", json!({"resources": ["b", "c"], "owner": "o"})),
        ("/v1/elections/campaign", json!({"election": "e", "candidate": "o"})),
        ("/v1/holds/hold", json!({"resource": "a", "owner": "o", "ttl": "1m"})),
        ("/v1/holds/hold-all", json!({"resources": ["b"], "owner": "o", "ttl": "1m"})),
        ("/v1/quotas/put-limit", json!({"quota": "gpu", "limit": 1, "expectedVersion": 0})),
    ];
    for (path, mut body) in asks {
        body["namespace"] = json!("shop");
        is_sent_home(&us.post(path, body.clone()), "eu");
        eu.post(path, body).unwrap_or_else(|problem| panic!("{path} is at home: {problem}"));
    }
    let job = json!({
        "namespace": "shop", "job": "j", "schedule": "0 2 * * *", "zone": "UTC", "expectedVersion": 0,
    });
    is_sent_home(&us.send("/v1/jobs/put", &job), "eu");
    eu.send("/v1/jobs/put", &job).unwrap();
    // Of a lock that was granted before its namespace moved: it is given back, and not renewed.
    let acquire = json!({"namespace": "moved", "resource": "a", "owner": "o"});
    us.service().text(&["namespace", "set", "moved"]);
    let lease = us.post("/v1/locks/acquire", acquire).unwrap()["leaseId"].clone();
    us.service().text(&["namespace", "set", "moved", "--home", "eu"]);
    let lease = json!({"namespace": "moved", "resource": "a", "leaseId": lease});
    is_sent_home(&us.send("/v1/locks/renew", &lease), "eu");
    assert_eq!(us.send("/v1/locks/release", &lease).unwrap()["released"], true);
    // The command line says it, too.
    let output = us.service().run(&["lock", "a", "--namespace", "shop", "--", "true"]);
    assert!(
        stderr(&output).contains("WRONG_REGION") && stderr(&output).contains("eu"),
        "{output:?}"
    );

    is_sent_home(&us.use_one(), "eu");
    eu.use_one().unwrap();
    // And of a tenant right below a root that is at home here.
    let acme = json!({
        "quota": "gpu", "path": "acme", "limit": 0, "home": "us", "expectedVersion": 0,
    });
    eu.quota("put-limit", acme).unwrap();
    let items = json!([{"quota": "gpu", "path": "acme", "amount": 1}]);
    is_sent_home(&eu.quota("reserve", json!({"owner": "o", "items": items, "ttl": "1m"})), "us");

    // Nobody opens them by leaving the option out.
    us.is_cut_off();
    us.service = Some(Service::start(&us.data));
    assert_eq!(us.service().json(&["status"])["region"], "us");
    is_sent_home(&us.use_one(), "eu");
}

#[test]
fn the_worst_overshoot_is_the_cap_with_either_side_away() {
    let (folder, mut eu, mut us) = regions();
    let share = lend(&mut eu, 6, 2).unwrap();
    us.put_lent(6, "eu").unwrap();

    // Home is away, for as long as it likes: the region goes on with what it was lent, and no further.
    eu.is_cut_off();
    assert_eq!(us.use_up(), 6);
    us.is_cut_off();
    // Both are away; and home comes back first. Time has taken nothing back.
    eu.comes_back();
    assert_eq!(eu.use_up(), 4, "what is lent stays lent");
    assert_eq!(eu.used.len() + us.used.len(), LIMIT as usize);

    // The region stays away. An operator takes the risk that was agreed on, once.
    let reclaim = json!({"shareId": share["shareId"], "reason": "the line is dead", "requestId": "reclaim-1"});
    let reclaimed = eu.quota("share-reclaim", reclaim.clone()).unwrap();
    assert_eq!((&reclaimed["amount"], &reclaimed["kept"]), (&json!(6), &json!(4)));
    assert_eq!(eu.quota("share-reclaim", reclaim).unwrap()["replayed"], true);
    let again = json!({"shareId": share["shareId"], "reason": "more"});
    assert_eq!(eu.quota("share-reclaim", again).unwrap_err()["code"], "INVALID_ARGUMENT");
    assert_eq!(eu.use_up(), 2);
    let metrics = |region: &Region| {
        let url = format!("{}/metrics", region.service().url);
        region.http.get(url).send().unwrap().text().unwrap()
    };
    let lent_twice = "sereno_quota_lent_twice{namespace=\"default\",quota=\"gpu\"} 2.0";
    assert!(metrics(&eu).contains(lent_twice), "{}", metrics(&eu));

    us.comes_back();
    assert_eq!(us.use_up(), 0);
    assert_eq!(eu.used.len() + us.used.len(), LIMIT as usize + 2, "the worst there can be");

    // It reports: one is free, and five it uses for good. First its own limit, then home.
    us.give_back_one();
    us.put_lent(5, "eu").unwrap();
    let back = json!({"shareId": share["shareId"], "returned": 1, "requestId": "return-1"});
    let shared = eu.quota("share-return", back.clone()).unwrap();
    assert_eq!((&shared["amount"], &shared["kept"]), (&json!(5), &json!(4)));
    assert_eq!(eu.quota("share-return", back).unwrap()["amount"], 5, "a repeat gives back nothing");
    assert_eq!(eu.use_up(), 0, "it made up for what was lent twice");
    let too_far = us.put_lent(0, "eu").unwrap_err();
    assert!(too_far["detail"].to_string().contains("claimed"), "{too_far}");
    for _ in 0..5 {
        us.give_back_one();
    }
    us.put_lent(0, "eu").unwrap();
    let spent = json!({"shareId": share["shareId"], "spent": 5});
    let commit = eu.quota("share-return", spent).unwrap()["commitId"].clone();
    let books = eu.gpu();
    assert_eq!(
        (&books["committed"], &books["reserved"], &books["debt"]),
        (&json!(11), &json!(0), &json!(1))
    );

    // The debt is settled by whoever knows that the real thing is gone.
    let settle = json!({
        "quota": "gpu", "owner": "region:us", "commitId": commit, "amount": 1,
    });
    eu.quota("return", settle).unwrap();
    assert_eq!(eu.gpu()["debt"], 0);
    assert_eq!(eu.use_up(), 0);

    // The books of both can be followed from line to line.
    for region in [&mut eu, &mut us] {
        region.is_cut_off();
        let data = region.data.to_str().unwrap();
        let sound = sereno(&["doctor", "--audit", "--data", data]);
        assert!(stdout(&sound).contains("sound"), "{sound:?}");
    }
    drop(folder);
}

/// Draws that are the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The share that the region has at the moment.
struct Lent {
    share: Value,
    cap: u64,
    is_reclaimed: bool,
    /// The region has lowered its limit by so much, and home was not told yet.
    untold: u64,
    amount: u64,
}

/// Any order of borrowing, using, giving back, reclaiming and being away.
#[test]
fn whatever_happens_in_whichever_order_no_more_is_used_than_the_limit_and_the_cap() {
    let (_folder, mut eu, mut us) = regions();
    let mut draws = Draws(7);
    let mut lent: Option<Lent> = None;
    let (mut worst, mut reclaims) = (0, 0);
    for step in 0..400 {
        match draws.below(16) {
            0 if eu.is_up() => eu.is_cut_off(),
            1 if us.is_up() => us.is_cut_off(),
            0 | 2 | 3 if !eu.is_up() => eu.comes_back(),
            1 | 4 | 5 if !us.is_up() => us.comes_back(),
            6..9 if us.is_up() => us.use_some(draws.below(6)),
            9 if us.is_up() => us.give_back_one(),
            10 if eu.is_up() => eu.give_back_one(),
            11 | 12 if eu.is_up() => eu.use_some(draws.below(9)),
            13 if eu.is_up() && us.is_up() && lent.is_none() => {
                let (amount, cap) = (1 + draws.below(6), 1 + draws.below(3));
                if let Ok(share) = lend(&mut eu, amount, cap.min(amount)) {
                    us.put_lent(amount, "eu").unwrap();
                    let (share, cap) = (share["shareId"].clone(), cap.min(amount));
                    lent = Some(Lent { share, cap, is_reclaimed: false, untold: 0, amount });
                }
            }
            14 if us.is_up() => {
                // As far as it is free; home may be away.
                if let Some(lent) = &mut lent {
                    let left = lent.amount - lent.untold;
                    let lower = draws.below(left + 1);
                    if us.put_lent(left - lower, "eu").is_ok() {
                        lent.untold += lower;
                    }
                }
            }
            15 if eu.is_up() => {
                if let Some(of) = &mut lent {
                    match of.untold {
                        0 => {
                            let reclaim = json!({"shareId": of.share, "reason": "a test"});
                            if eu.quota("share-reclaim", reclaim).is_ok() {
                                of.is_reclaimed = true;
                                reclaims += 1;
                            }
                        }
                        returned => {
                            let back = json!({"shareId": of.share, "returned": returned});
                            eu.quota("share-return", back).unwrap();
                            (of.amount, of.untold) = (of.amount - returned, 0);
                        }
                    }
                    lent = lent.filter(|of| of.amount > 0);
                }
            }
            _ => {}
        }
        let used = (eu.used.len() + us.used.len()) as u64;
        let cap = lent.as_ref().filter(|of| of.is_reclaimed).map_or(0, |of| of.cap);
        assert!(used <= LIMIT + cap, "step {step}: {used} are used, with a cap of {cap}");
        worst = worst.max(used.saturating_sub(LIMIT));
    }
    assert!(
        worst > 0,
        "the test is too tame: {reclaims} shares were reclaimed, and nothing came of it"
    );
}
