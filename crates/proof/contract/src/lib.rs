//! The suite every store must pass: what the port promises, case by case.
//!
//! [`store_contract!`] makes one test of each case. A case gets an empty
//! store of its own and uses nothing but the port, so that all stores are held to one behaviour.

mod appends;
mod audit;
mod claims;
mod costs;
pub mod desk;
mod files;
mod groups;
mod kept;
mod leases;
mod lineage;
mod lists;
mod money;
pub mod objects;
mod purge;
mod reads;
mod uses;
mod withheld;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use wharf_journal::audit::AuditKey;

pub use appends::{
    a_batch_may_append_twice_to_one_stream, a_stream_is_made_and_appended_to_in_order,
    an_append_at_another_place_is_stale, an_append_of_nothing_only_changes_the_head,
    making_a_stream_again_is_refused_with_its_summary, values_come_back_as_they_went_in,
};
pub use audit::{audit_comes_in_order_of_commit, audit_is_one_sealed_chain_per_shard};
pub use claims::{a_name_is_claimed_once, a_refused_batch_claims_nothing};
pub use costs::{
    t041_costs_are_narrowed_by_world_and_time, t041_costs_are_summed_by_tool_world_agent_and_day,
    t041_costs_beyond_64_bits_are_flagged_and_not_wrapped,
    t041_open_runs_count_with_what_is_settled_and_purged_ones_stay_in_the_sums,
    t041_sums_are_the_same_after_a_purge,
};
pub use files::{
    c016_folders_are_summed_up_as_far_as_asked, t040_a_prefix_is_taken_letter_for_letter,
    t040_a_read_leaves_the_file_as_it_is, t040_a_removed_file_is_listed_no_more,
    t040_a_written_file_replaces_the_one_before, t040_files_are_paged_in_the_order_of_their_bytes,
    t040_local_files_are_listed_only_when_asked_for,
    t040_sizes_of_64_bits_are_kept_and_sums_end_there,
    t040_unused_files_are_those_nobody_wrote_or_read_since, t040_usage_counts_what_is_there,
};
pub use groups::{
    a_later_batch_of_a_group_sees_the_earlier, a_refused_batch_leaves_nothing_behind,
    each_batch_of_a_group_stands_alone, many_callers_commit_at_once, no_batches_give_no_answers,
};
pub use kept::{
    a_fold_stands_for_what_happened_to_steps_before,
    large_inputs_are_left_out_of_what_recovery_loads,
    only_the_newest_offer_of_an_agent_is_kept_whole,
};
pub use leases::{
    a_lease_passes_on_only_when_free_expired_or_own, a_lease_tells_the_last_commit,
    an_expired_lease_that_nobody_took_still_writes, other_epochs_are_fenced,
    renewing_keeps_only_what_is_held, s025_a_renewal_tells_who_holds_which_shard,
};
pub use lineage::{
    t040_a_refused_batch_indexes_nothing, t040_every_path_there_can_be_is_kept,
    t040_records_come_back_as_they_went_in, t040_records_of_a_purged_run_stay,
    t040_what_a_batch_says_of_files_happens_in_order,
    t040_writers_and_readers_are_traced_by_file_and_by_run,
};
pub use lists::{
    c010_runs_are_counted_by_pieces_of_time, c011_runs_are_narrowed_as_the_console_does,
    c013_decided_asks_come_newest_first, c019_the_audit_is_searched,
    m036_runs_are_narrowed_by_grant, open_asks_come_oldest_first, runs_are_filtered,
    runs_are_paged_newest_first, runs_keep_their_pages_while_others_are_added,
    t045_runs_are_narrowed_by_time,
};
pub use money::{
    accounts_are_opened_limited_and_charged, holds_are_told_by_shard,
    t041_a_hold_grows_with_what_is_reported, t041_a_hold_is_taken_on_the_whole_path_or_not_at_all,
    t041_a_one_hold_budget_admits_one_of_64, t041_an_account_at_its_limit_admits_nothing,
    t041_settling_frees_the_hold_and_books_what_was_spent,
    t041_the_most_a_tool_has_cost_is_remembered, t041_what_was_spent_can_be_corrected,
};
pub use purge::{
    a_purged_stream_is_gone_with_its_claims, an_open_stream_is_not_purged,
    room_that_nothing_uses_can_be_given_back,
};
pub use reads::{
    history_is_read_in_pages_that_split_no_commit, history_shows_entries_and_progress_in_order,
    loading_leaves_progress_out, open_streams_are_loaded_by_kind_and_shard,
    s029_open_children_are_found_by_the_shards_of_their_parents,
    streams_of_every_kind_are_kept_found_and_removed,
};
pub use uses::{
    s020_a_file_is_either_read_or_removed, s020_a_file_is_not_free_until_its_users_are_over,
    s020_a_refused_batch_uses_nothing_and_a_repeat_is_told_first,
    s020_a_run_is_made_only_if_its_files_are_there,
    s020_files_are_looked_at_in_the_order_of_batches,
};
pub use withheld::values_go_with_the_end_of_their_run;

/// An empty store to be held to the contract.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn wharf_ports::Store>,
    /// The key it seals its audit with.
    pub key: AuditKey,
    /// Lets so many milliseconds pass by the store's clock.
    pub pass_ms: Box<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>,
    /// What must live as long as the store, such as its folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A store to be held to the contract, or none where this machine lacks what it needs; whoever
/// makes it says so.
pub trait MaybeSubject {
    /// The store, if there is one.
    fn subject(self) -> Option<Subject>;
}

impl MaybeSubject for Subject {
    fn subject(self) -> Option<Subject> {
        Some(self)
    }
}

impl MaybeSubject for Option<Subject> {
    fn subject(self) -> Option<Subject> {
        self
    }
}

/// Makes one `tokio` test of each case; the argument is an `async fn() -> Subject`, or one that
/// gives an `Option<Subject>`.
#[macro_export]
macro_rules! store_contract {
    ($make:path) => {
        $crate::store_contract! { $make =>
            a_stream_is_made_and_appended_to_in_order
            making_a_stream_again_is_refused_with_its_summary
            an_append_at_another_place_is_stale
            an_append_of_nothing_only_changes_the_head
            a_batch_may_append_twice_to_one_stream
            values_come_back_as_they_went_in
            audit_comes_in_order_of_commit
            audit_is_one_sealed_chain_per_shard
            a_name_is_claimed_once
            c010_runs_are_counted_by_pieces_of_time
            c011_runs_are_narrowed_as_the_console_does
            c013_decided_asks_come_newest_first
            c019_the_audit_is_searched
            a_refused_batch_claims_nothing
            a_later_batch_of_a_group_sees_the_earlier
            a_refused_batch_leaves_nothing_behind
            each_batch_of_a_group_stands_alone
            no_batches_give_no_answers
            many_callers_commit_at_once
            a_lease_passes_on_only_when_free_expired_or_own
            a_lease_tells_the_last_commit
            an_expired_lease_that_nobody_took_still_writes
            other_epochs_are_fenced
            renewing_keeps_only_what_is_held
            s025_a_renewal_tells_who_holds_which_shard
            large_inputs_are_left_out_of_what_recovery_loads
            a_fold_stands_for_what_happened_to_steps_before
            only_the_newest_offer_of_an_agent_is_kept_whole
            t041_costs_are_summed_by_tool_world_agent_and_day
            t041_costs_are_narrowed_by_world_and_time
            t041_costs_beyond_64_bits_are_flagged_and_not_wrapped
            t041_open_runs_count_with_what_is_settled_and_purged_ones_stay_in_the_sums
            t041_sums_are_the_same_after_a_purge
            c016_folders_are_summed_up_as_far_as_asked
            t040_a_prefix_is_taken_letter_for_letter
            t040_a_read_leaves_the_file_as_it_is
            t040_a_refused_batch_indexes_nothing
            t040_a_removed_file_is_listed_no_more
            t040_a_written_file_replaces_the_one_before
            t040_every_path_there_can_be_is_kept
            t040_files_are_paged_in_the_order_of_their_bytes
            t040_local_files_are_listed_only_when_asked_for
            t040_records_come_back_as_they_went_in
            t040_records_of_a_purged_run_stay
            t040_sizes_of_64_bits_are_kept_and_sums_end_there
            t040_unused_files_are_those_nobody_wrote_or_read_since
            t040_usage_counts_what_is_there
            t040_what_a_batch_says_of_files_happens_in_order
            t040_writers_and_readers_are_traced_by_file_and_by_run
            open_asks_come_oldest_first
            runs_are_filtered
            runs_are_paged_newest_first
            runs_keep_their_pages_while_others_are_added
            t045_runs_are_narrowed_by_time
            m036_runs_are_narrowed_by_grant
            t041_a_hold_is_taken_on_the_whole_path_or_not_at_all
            t041_a_one_hold_budget_admits_one_of_64
            t041_a_hold_grows_with_what_is_reported
            t041_an_account_at_its_limit_admits_nothing
            t041_the_most_a_tool_has_cost_is_remembered
            t041_what_was_spent_can_be_corrected
            accounts_are_opened_limited_and_charged
            holds_are_told_by_shard
            t041_settling_frees_the_hold_and_books_what_was_spent
            a_purged_stream_is_gone_with_its_claims
            an_open_stream_is_not_purged
            room_that_nothing_uses_can_be_given_back
            values_go_with_the_end_of_their_run
            history_is_read_in_pages_that_split_no_commit
            history_shows_entries_and_progress_in_order
            loading_leaves_progress_out
            open_streams_are_loaded_by_kind_and_shard
            s029_open_children_are_found_by_the_shards_of_their_parents
            s020_a_run_is_made_only_if_its_files_are_there
            s020_a_file_is_not_free_until_its_users_are_over
            s020_files_are_looked_at_in_the_order_of_batches
            s020_a_refused_batch_uses_nothing_and_a_repeat_is_told_first
            s020_a_file_is_either_read_or_removed
            streams_of_every_kind_are_kept_found_and_removed
        }
    };
    ($make:path => $($case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(subject) = $crate::MaybeSubject::subject($make().await) {
                    $crate::$case(subject).await;
                }
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use wharf_vocab::Timestamp;

    use super::*;
    use wharf_memory::MemoryStore;
    use wharf_ports::ManualClock;

    async fn memory() -> Subject {
        let clock = Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)));
        let key = AuditKey::new([42; 32]);
        let store = Arc::new(MemoryStore::new(&key, clock.clone()));
        let pass_ms = Box::new(move |ms| {
            clock.advance_ms(ms);
            futures::future::ready(()).boxed()
        });
        Subject { store, key, pass_ms, keep: Box::new(()) }
    }

    crate::store_contract!(memory);
}
