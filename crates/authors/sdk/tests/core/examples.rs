//! The examples run, and what they say of themselves holds: each is full of assertions.

#[path = "../../examples/builtins.rs"]
mod builtins;
#[path = "../../examples/flight.rs"]
mod flight;
#[path = "../../examples/get_location.rs"]
mod get_location;
#[path = "../../examples/search.rs"]
mod search;

#[test]
fn k002_search_has_its_implementation_in_its_definition() {
    search::main().expect("the example works");
}

#[test]
fn k002_get_location_is_activated_in_all_three_ways() {
    get_location::main().expect("the example works");
}

#[test]
fn k015_flight_is_an_agent_with_configuration_and_layers() {
    flight::main().expect("the example works");
}

#[test]
fn k017_built_ins_are_asked_told_and_redacted() {
    builtins::main().expect("the example works");
}
