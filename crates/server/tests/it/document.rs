//! The served routes and the document agree.

use crate::harness::{Bench, document};
use serde_json::Value;
use sereno_api::ErrorCode;
use std::collections::BTreeSet;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

fn documented_methods(item: &Value) -> BTreeSet<String> {
    let methods = METHODS.iter().filter(|method| item.get(method.to_lowercase()).is_some());
    methods.map(|method| (*method).to_owned()).collect()
}

#[tokio::test]
async fn every_documented_method_is_served_and_no_other() {
    let bench = Bench::memory().await;
    let paths = document()["paths"].as_object().unwrap();
    assert!(paths.len() > 15);
    for (path, item) in paths {
        let concrete = path.replace("{code}", "LOCKED").replace(['{', '}'], "");
        let documented = documented_methods(item);
        for method in METHODS.iter().filter(|method| !documented.contains(**method)) {
            let request =
                bench.http.request(method.parse().unwrap(), format!("{}{concrete}", bench.url));
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 405, "{method} {path}");
            let allow = answer.headers()["allow"].to_str().unwrap();
            let allowed: BTreeSet<_> =
                allow.split(',').filter(|one| *one != "HEAD").map(str::to_owned).collect();
            assert_eq!(allowed, documented, "{path}");
        }
        for method in &documented {
            let request =
                bench.http.request(method.parse().unwrap(), format!("{}{concrete}", bench.url));
            let status = request.send().await.unwrap().status().as_u16();
            assert_ne!(status, 405, "{method} {path}");
            let documented = item[method.to_lowercase()]["responses"].get(status.to_string());
            assert!(documented.is_some(), "{method} {path} answered {status}");
        }
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_document_is_served_as_it_is_and_rendered_without_a_network() {
    let bench = Bench::memory().await;
    assert_eq!(bench.get("/openapi.json").await.body, *document());
    let text = |path: &str| {
        let request = bench.http.get(format!("{}{path}", bench.url));
        async { request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap() }
    };
    let page = text("/").await;
    assert!(page.contains("swagger-ui"), "{page}");
    let addresses = ["src=\"", "href=\""].iter().flat_map(|mark| page.split(mark).skip(1));
    let addresses: Vec<_> = addresses.filter_map(|rest| rest.split('"').next()).collect();
    assert!(addresses.len() > 3);
    for address in addresses {
        let file = address.strip_prefix("./").unwrap_or(address);
        assert!(!file.contains("//"), "{file} would be fetched from a network");
        text(&format!("/docs/{file}")).await;
    }
    assert!(text("/docs/swagger-initializer.js").await.contains("/openapi.json"));
    bench.stop().await;
}

/// Of later versions: nothing answers them yet.
const LATER: [ErrorCode; 1] = [ErrorCode::Unauthenticated];

#[test]
fn the_page_for_people_lists_every_code_and_every_rule_of_a_namespace() {
    let page = include_str!("../../../../docs/http.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    for code in ErrorCode::ALL.iter().filter(|code| !LATER.contains(code)) {
        let (status, link) = (code.status().to_string(), format!("errors/{code}.md"));
        let is_its_row = |row: &&&str| row[..row[2..].find('|').unwrap() + 2].contains(&status);
        let row = rows.iter().filter(is_its_row).any(|row| row.contains(&link));
        assert!(row, "{code} does not stand in a row of {status}");
    }
    let policy = document()["components"]["schemas"]["Policy"]["properties"].as_object().unwrap();
    assert!(policy.len() > 10);
    for field in policy.keys() {
        let row =
            rows.iter().any(|row| row.split('|').nth(1).unwrap().contains(&format!("`{field}`")));
        assert!(row, "{field}");
    }
}

#[test]
fn every_operation_has_a_name_a_summary_and_described_answers() {
    let mut names = BTreeSet::new();
    for (path, item) in document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} twice");
            assert!(operation["summary"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].is_string(), "{method} {path} {status}");
                assert!(response["content"].is_object(), "{method} {path} {status}");
            }
        }
    }
}
