//! The picture: use over time, a panel for each tenant with its guarantee marked, and one for the whole pool.

use crate::{
    lives::{Life, Lives, Stop},
    pool::{GPUS, TENANTS, Tenant},
    steps::Steps,
    table::{in_use, orphaned},
};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const PANEL: f64 = 130.0;
const GAP: f64 = 40.0;

/// As an SVG document.
pub fn draw(lives: &Lives) -> String {
    let height = TOP + (TENANTS.len() + 1) as f64 * (PANEL + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"16\">{GPUS} GPUs: what jobs used, by their own record</text>\n\
         <text x=\"{LEFT}\" y=\"40\" fill=\"#555\">dashed: promised to the tenant; × a job crashed; grey: its GPUs, until the service took them back</text>\n"
    );
    let mut top = TOP;
    for tenant in &TENANTS {
        let panel = Panel::new(lives, top);
        panel.tenant(&mut svg, tenant);
        top += PANEL + GAP;
    }
    Panel::new(lives, top).pool(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// One of the charts, from 0 to all GPUs.
struct Panel<'a> {
    lives: &'a Lives,
    top: f64,
}

impl<'a> Panel<'a> {
    fn new(lives: &'a Lives, top: f64) -> Self {
        Self { lives, top }
    }

    fn tenant(&self, svg: &mut String, tenant: &Tenant) {
        let own = || self.lives.of_tenant(tenant.name);
        let (used, dead) = (in_use(self.lives, own()), orphaned(self.lives, own()));
        self.frame(svg, tenant.name);
        self.area(svg, &over(&[&used, &dead]), "#bdbdbd");
        self.area(svg, &used, tenant.colour);
        if tenant.guaranteed > 0 {
            self.level(svg, tenant.guaranteed, &format!("promised {}", tenant.guaranteed), true);
        }
        self.crashes(svg, own(), &used);
    }

    fn pool(&self, svg: &mut String) {
        self.frame(svg, "all");
        let used = TENANTS.map(|tenant| in_use(self.lives, self.lives.of_tenant(tenant.name)));
        let dead = orphaned(self.lives, self.lives.all.iter());
        let mut layers: Vec<&Steps> = used.iter().collect();
        layers.push(&dead);
        // The highest first: each lower one is painted over it.
        self.area(svg, &over(&layers), "#bdbdbd");
        for (count, tenant) in TENANTS.iter().enumerate().rev() {
            self.area(svg, &over(&layers[..=count]), tenant.colour);
        }
        self.level(svg, GPUS, "all there are", false);
    }

    fn frame(&self, svg: &mut String, name: &str) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + PANEL);
        let middle = self.top + PANEL / 2.0;
        let _ = writeln!(svg, "<text x=\"10\" y=\"{middle:.1}\" font-size=\"14\">{name}</text>");
        for amount in [0, GPUS / 2, GPUS] {
            let (y, x) = (self.y(amount), LEFT - 6.0);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#e0e0e0\"/>\
                 <text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{amount}</text>",
                y + 4.0
            );
        }
        let seconds = self.lives.end_us.saturating_sub(self.lives.start_us) / 1_000_000;
        for second in (0..=seconds).step_by((seconds as usize / 12).max(1)) {
            let (x, y) = (self.x(self.lives.start_us + second * 1_000_000), bottom + 14.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#555\">{second} s</text>"
            );
        }
    }

    fn area(&self, svg: &mut String, steps: &Steps, colour: &str) {
        let Some((first, _)) = steps.0.first() else { return };
        let mut path = format!("M{:.1} {:.1}", self.x(*first), self.y(0));
        for (at, amount) in &steps.0 {
            let _ = write!(path, "H{:.1}V{:.1}", self.x(*at), self.y(*amount));
        }
        let _ = write!(path, "H{:.1}V{:.1}Z", self.x(self.lives.end_us), self.y(0));
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{colour}\"/>");
    }

    fn level(&self, svg: &mut String, amount: u64, label: &str, is_dashed: bool) {
        let (y, right) = (self.y(amount), WIDTH - RIGHT);
        let dash = if is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"black\"{dash}/>\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            y - 4.0
        );
    }

    fn crashes<'b>(&self, svg: &mut String, of: impl Iterator<Item = &'b Life>, used: &Steps) {
        for life in of.filter(|life| life.began_us.is_some() && life.is(Stop::Crashed)) {
            let at = life.stopped.map_or(0, |(at, _)| at);
            let (x, y) = (self.x(at), self.y(used.at(at)));
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"16\" fill=\"#c62828\">×</text>",
                y + 5.0
            );
        }
    }

    fn x(&self, at_us: u64) -> f64 {
        let (start, end) = (self.lives.start_us, self.lives.end_us);
        let part = at_us.saturating_sub(start) as f64 / (end - start).max(1) as f64;
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, amount: u64) -> f64 {
        self.top + PANEL * (1.0 - amount as f64 / GPUS as f64)
    }
}

/// Several amounts on top of each other.
fn over(all: &[&Steps]) -> Steps {
    let mut moments: Vec<u64> =
        all.iter().flat_map(|steps| steps.0.iter().map(|(at, _)| *at)).collect();
    moments.sort_unstable();
    moments.dedup();
    let sum = |at| all.iter().map(|steps| steps.at(at)).sum();
    Steps(moments.into_iter().map(|at| (at, sum(at))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Line;

    #[test]
    fn a_panel_for_each_tenant_and_one_for_all() {
        let text = "0 asked vision v1 24 0
             500000 began vision v1 24 5
             1500000 began research r1 40 6
             2000000 killed research r1 40 0
             2500000 ended vision v1 24 0
             3900000 gone research r1 40 0";
        let lines: Vec<Line> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        let svg = draw(&Lives::of(&lines));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for tenant in TENANTS {
            assert!(svg.contains(&format!(">{}</text>", tenant.name)), "{svg}");
        }
        assert_eq!(svg.matches(">promised ").count(), 2, "research has no guarantee");
        assert_eq!(svg.matches(">×</text>").count(), 1, "{svg}");
        // Where vision stops.
        assert!(
            svg.contains(&format!("H{:.1}", LEFT + 2.5 / 3.9 * (WIDTH - LEFT - RIGHT))),
            "{svg}"
        );
    }

    #[test]
    fn amounts_are_stacked() {
        let (one, two) = (Steps(vec![(10, 4), (30, 0)]), Steps(vec![(20, 8), (40, 0)]));
        assert_eq!(over(&[&one, &two]).0, [(10, 4), (20, 12), (30, 8), (40, 0)]);
    }

    #[test]
    fn nothing_can_be_drawn_too() {
        assert!(draw(&Lives::default()).contains("all there are"));
    }
}
