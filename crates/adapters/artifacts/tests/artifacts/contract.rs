//! Every store keeps the promises of the port.

mod embedded {
    use wharf_ports::contract::objects::Subject;

    use crate::support::Embedded;

    async fn store() -> Subject {
        Embedded::start().await.subject()
    }

    wharf_ports::object_store_contract!(store);
    wharf_ports::object_address_contract!(store);
}
