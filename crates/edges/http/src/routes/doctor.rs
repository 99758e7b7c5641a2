//! How the core fares, as far as it can tell itself.

use std::sync::Arc;

use axum::extract::State;
use wharf_wire::rest_v1::Diagnosis;

use super::table::{get, routes};
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;

routes! {
    "system";
    /// Checks the core: whether it accepts runs, its database, its disk, and which providers have
    /// problems. `wharf doctor` on the core's machine checks more.
    doctor => get("/v1/doctor", Need::READ, diagnose)
        .gives::<Diagnosis>(200, "The checks and what each found.");
}

async fn diagnose(State(app): State<Arc<App>>) -> Answer {
    let ends = app.stops.draining.is_cancelled();
    let doctor = app.options.doctor.clone();
    answer::ok(&wharf_views::diagnosis(&app.handle, &app.steering, doctor, ends).await)
}
