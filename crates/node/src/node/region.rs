//! Where the service runs. What a node was told goes into the log once it leads, so that every node goes by the same.

use super::{Node, Phase, append::pending};
use sereno_core::command::Operation;

impl Node {
    /// Has the log say where the service runs, where it says something else. A node that was told nothing changes
    /// nothing: else one that lacks the option would open every namespace that is at home elsewhere.
    pub(super) fn tell_region(&mut self) {
        let told = self.settings.region.as_ref().filter(|_| self.phase == Phase::Leading);
        let Some(region) = told.filter(|&region| self.state.region() != Some(region)) else {
            return;
        };
        let operation = Operation::SetRegion { region: Some(region.clone()) };
        if self.region_queued || self.level_refusal(&operation).is_some() {
            return;
        }
        if let Some(before) = self.state.region() {
            tracing::warn!(%before, now = %region, "the service runs in another region than its log says");
        }
        self.region_queued = true;
        let command = self.own(operation);
        self.intake.push_own(pending(None, command));
    }
}
