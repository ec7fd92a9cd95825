//! Two instances of the shop, the service, a database, and buyers.

use example_stage::{Database, Process, Service, program, until};
use serde_json::{Value, json};

pub const SKU: &str = "sneaker-42";

pub struct World {
    pub service: Service,
    pub database: Database,
    instances: Vec<Process>,
    urls: Vec<String>,
    http: reqwest::Client,
}

impl World {
    /// So many pairs are for sale.
    pub async fn new(pairs: u32, options: &[&str]) -> Self {
        let (service, database) = (Service::start(), Database::new().await);
        let open = || {
            let mut shop = program("shop");
            shop.args(["--listen", "127.0.0.1:0", "--sereno", service.url()]);
            shop.args(["--database", database.url()]).args(options);
            Process::serving(shop)
        };
        let (instances, urls) = [open(), open()].into_iter().unzip();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let world = Self { service, database, instances, urls, http };
        world.deliver(1, pairs).await;
        world
    }

    /// New pairs, numbered so.
    pub async fn deliver(&self, from: u32, to: u32) {
        let sql = format!(
            "INSERT INTO pairs (sku, number) SELECT '{SKU}', generate_series({from}, {to})"
        );
        self.database.run(&sql).await;
    }

    /// Puts a pair into the basket, at one of the two instances.
    pub async fn basket(&self, instance: usize, buyer: &str) -> Value {
        self.call(instance, "basket", json!({ "buyer": buyer, "sku": SKU })).await
    }

    pub async fn leave(&self, instance: usize, buyer: &str) -> Value {
        self.call(instance, "leave", json!({ "buyer": buyer, "sku": SKU })).await
    }

    /// Pays, and waits for the outcome; `None`: the instance did not answer. A buyer has one payment key, and uses it again
    /// when asked to.
    pub fn buy(
        &self,
        instance: usize,
        buyer: &str,
        card: &str,
    ) -> impl Future<Output = Option<Value>> + Send + use<> {
        let key = format!("payment-of-{buyer}");
        let body = json!({ "buyer": buyer, "sku": SKU, "paymentKey": key, "card": card });
        let request = self.http.post(format!("{}/buy", self.urls[instance])).json(&body);
        async move {
            for _ in 0..10 {
                let again = request.try_clone().unwrap();
                let answer = again.send().await.ok()?.json::<Value>().await.ok()?;
                if outcome(&answer) != "again" {
                    return Some(answer);
                }
            }
            panic!("the shop does not get its act together")
        }
    }

    async fn call(&self, instance: usize, what: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}/{what}", self.urls[instance])).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Returns when the provider has taken this buyer's money, and not said so yet.
    pub async fn is_charged(&self, buyer: &str) {
        let sql = format!("SELECT count(*) FROM payments WHERE payment_key = 'payment-of-{buyer}'");
        until("the charge", async || (self.database.number(&sql).await == 1).then_some(())).await;
    }

    /// Now it says so.
    pub async fn provider_answers(&self) {
        self.database.run("UPDATE payments SET answers = true").await;
    }

    /// Returns when nobody holds this pair (any more).
    pub async fn nobody_holds(&self, pair: u32) {
        let url = format!("{}/v1/holds/{SKU}/pair/{pair}", self.service.url());
        until("the end of the hold", async || {
            let hold: Value = self.http.get(&url).send().await.ok()?.json().await.ok()?;
            (hold["state"] == "free").then_some(())
        })
        .await;
    }

    /// `kill -9` of an instance of the shop.
    pub fn kill(&mut self, instance: usize) {
        self.instances[instance].kill();
    }

    /// Of all pairs so many are sold; whoever has one has paid once, and nobody else has paid.
    pub async fn books_are_right(&self, sold: i64) {
        let count = "SELECT count(*) FROM pairs WHERE sold_to IS NOT NULL";
        assert_eq!(self.database.number(count).await, sold);
        let wrong = "
            SELECT count(*) FROM orders o
            FULL JOIN payments p USING (payment_key) FULL JOIN pairs s ON s.sold_to = payment_key
            WHERE coalesce(o.state = 'sold', false) <> coalesce(p.state = 'charged', false)
               OR coalesce(o.state = 'sold', false) <> (s.sold_to IS NOT NULL)
               OR o.state IN ('paying', 'refunding', 'declining')";
        assert_eq!(self.database.number(wrong).await, 0);
    }

    /// What is on the shelf and in the books.
    pub async fn show(&self, what: &str) {
        println!("  {what}");
        let orders = "
            SELECT s.number AS pair, coalesce(o.buyer, '(for sale)') AS sold_to
            FROM pairs s LEFT JOIN orders o ON o.payment_key = s.sold_to ORDER BY 1";
        self.database.show(orders).await;
        let orders = "
            SELECT o.buyer, o.state AS order, coalesce(o.fence::text, 'none') AS fence,
                   coalesce(p.state, 'not touched') AS money, coalesce(p.asked, 0) AS charge_asked_for
            FROM orders o LEFT JOIN payments p USING (payment_key) ORDER BY o.changed_at";
        self.database.show(orders).await;
    }

    /// The same of many.
    pub async fn show_sums(&self, what: &str) {
        println!("  {what}");
        let pairs = "SELECT count(*) AS pairs, count(sold_to) AS sold FROM pairs";
        self.database.show(pairs).await;
        let orders = "
            SELECT o.state AS order, CASE WHEN fence IS NULL THEN 'no hold' ELSE 'held' END AS by,
                   coalesce(p.state, 'not touched') AS money, count(*)
            FROM orders o LEFT JOIN payments p USING (payment_key) GROUP BY 1, 2, 3 ORDER BY 1, 2";
        self.database.show(orders).await;
    }
}

pub fn outcome(answer: &Value) -> &str {
    answer["outcome"].as_str().unwrap_or_else(|| panic!("no outcome: {answer}"))
}

/// Of a purchase that was answered.
pub fn ended(answer: Option<Value>) -> String {
    outcome(&answer.expect("an answer")).into()
}
