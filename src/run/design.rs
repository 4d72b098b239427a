//! From a plan to the record's own design: two words for the same things, kept apart so that a stored run can be read
//! without plan.
//!
//! Enters: a [`Plan`]. Leaves: [`Design`] and [`Cell`]s.

use crate::plan::Plan;
use crate::record::{Cell, Design, Factor, Order};

/// The design of a measured run.
#[must_use]
pub fn design(plan: &Plan) -> Design {
    let factor = |factor: &crate::plan::PlannedFactor| Factor {
        name: factor.name.clone(),
        levels: factor.levels.clone(),
        sets: factor.sets.clone(),
    };
    Design {
        compare: plan.compare,
        paired: true,
        primary: plan.primary.clone(),
        asked: plan.asked,
        show: plan.show.clone(),
        paced: plan.paced.clone(),
        direct: plan.direct,
        order: Order::Independent,
        lead_in: plan.lead_in,
        stop: plan.stop,
        deltas: plan.deltas.clone(),
        ..Design::new(plan.factors.iter().map(factor).collect())
    }
}

/// The cells of a measured run, in the plan's order.
#[must_use]
pub fn cells(plan: &Plan) -> Vec<Cell> {
    plan.cells.iter().map(|cell| Cell { levels: cell.levels.clone() }).collect()
}
