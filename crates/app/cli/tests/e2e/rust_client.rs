//! The example of the Rust client, against a real core.

use crate::support::TestHome;

#[path = "../../../../authors/client/examples/lab.rs"]
mod lab;

#[tokio::test]
async fn the_example_of_the_rust_client_works() {
    let home = TestHome::new();
    let _core = home.up();
    let seen = lab::run(wharf_client::Locator::of_home(home.path())).await.expect("it works");
    let expect = [
        "wharf/echo succeeded",
        "wharf/count succeeded",
        "/in/some.txt 9",
        "checked: true",
        "run.not_found",
    ];
    assert_eq!(seen, expect);
}
