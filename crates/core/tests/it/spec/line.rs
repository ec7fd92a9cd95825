//! The words of a script's line.

use sereno_core::{
    names::{Labels, NamespaceName, Owner, RequestId, ResourceName},
    policy::{Fencing, Policy},
};

/// A line cut into words: plain ones in order, and `key:value` ones.
pub(super) struct Line<'a> {
    pub(super) plain: Vec<&'a str>,
    keyed: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let (mut plain, mut keyed) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            match word.split_once(':') {
                Some(pair) => keyed.push(pair),
                None => plain.push(word),
            }
        }
        Self { plain, keyed }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.keyed.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }

    pub(super) fn ms(&self, key: &str) -> Option<u64> {
        self.get(key).map(parse_ms)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).map(|text| text.parse().unwrap_or_else(|_| panic!("{key}:{text}")))
    }

    pub(super) fn word(&self, index: usize) -> &'a str {
        self.plain.get(index).unwrap_or_else(|| panic!("{:?}: word {index} is missing", self.plain))
    }

    pub(super) fn namespace(&self) -> NamespaceName {
        NamespaceName::new(self.get("in").unwrap_or("default")).expect("a namespace")
    }

    pub(super) fn request_id(&self) -> RequestId {
        let name = self.get("id").expect("id:…");
        RequestId::new(&format!("request-{name}")).expect("a request id")
    }

    pub(super) fn fencing(&self) -> Option<Fencing> {
        self.get("fencing").map(|word| match word {
            "enforced" => Fencing::Enforced,
            "bestEffort" => Fencing::BestEffort,
            other => panic!("fencing:{other}"),
        })
    }

    pub(super) fn labels(&self) -> Labels {
        let labels = self.keyed.iter().filter(|(key, _)| *key == "label");
        let pair = |(_, label): &(&str, &str)| {
            let (key, value) = label.split_once('=').expect("label:key=value");
            (key.to_string(), value.to_string())
        };
        Labels::new(labels.map(pair)).expect("labels")
    }
}

/// `10s`, `1m`, `2h`, `5ms`, `max`.
pub(super) fn parse_ms(text: &str) -> u64 {
    if text == "max" {
        return u64::MAX;
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().unwrap_or_else(|_| panic!("duration {text:?}"));
    match &text[digits..] {
        "ms" => number,
        "s" => number * 1_000,
        "m" => number * 60_000,
        "h" => number * 3_600_000,
        unit => panic!("unit {unit:?} of {text:?}"),
    }
}

/// `+5m`, `-1h` from `base`, in its unit of `per_ms`.
pub(super) fn shifted(base: u64, text: &str, per_ms: u64) -> u64 {
    match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(later), _) => base.saturating_add(parse_ms(later).saturating_mul(per_ms)),
        (_, Some(earlier)) => base.saturating_sub(parse_ms(earlier).saturating_mul(per_ms)),
        _ => panic!("{text:?} begins with + or -"),
    }
}

pub(super) fn resources(text: &str) -> Vec<ResourceName> {
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(|name| ResourceName::new(name).expect("a resource")).collect()
}

pub(super) fn owner(line: &Line) -> Owner {
    let by = line.get("by").or(line.get("id")).expect("by:…");
    Owner::new(by).expect("an owner")
}

pub(super) fn policy(line: &Line) -> Policy {
    let default = Policy::default();
    Policy {
        min_ttl_ms: line.ms("minTtl"),
        default_ttl_ms: line.ms("defaultTtl").unwrap_or(default.default_ttl_ms),
        max_ttl_ms: line.ms("maxTtl").unwrap_or(default.max_ttl_ms),
        max_hold_ms: line.ms("maxHold"),
        lock_delay_ms: line.ms("lockDelay").unwrap_or(0),
        fencing: line.fencing().unwrap_or(default.fencing),
        fencing_required: line.get("fencingRequired").is_some(),
        max_leases: line.number("maxLeases").unwrap_or(default.max_leases),
        max_waiters: line.number("maxWaiters").unwrap_or(default.max_waiters),
        requests_per_second: line.number("perSecond"),
        reply_refusals_ms: line.ms("refusals").unwrap_or(default.reply_refusals_ms),
        reply_endings_ms: line.ms("endings").unwrap_or(default.reply_endings_ms),
        reply_records: line.number("records").unwrap_or(default.reply_records),
    }
}
