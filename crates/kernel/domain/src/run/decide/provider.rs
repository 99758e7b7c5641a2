//! The provider's availability changed while the run waits for it.

use super::Draft;
use crate::run::Pause;

pub(super) fn decide(draft: &mut Draft<'_, '_>) {
    if matches!(draft.run.pause, Some(Pause::Provider(_))) {
        draft.proceed();
    }
}
