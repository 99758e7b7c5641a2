//! Every store keeps the promises of the port.

mod embedded {
    use wharf_contract::objects::Subject;

    use crate::support::Embedded;

    async fn store() -> Subject {
        Embedded::start().await.subject()
    }

    wharf_contract::object_store_contract!(store);
    wharf_contract::object_address_contract!(store);
}

mod s3 {
    use wharf_artifacts::S3Objects;
    use wharf_contract::objects::Subject;

    use crate::{seaweed, support};

    async fn store() -> Subject {
        let store = S3Objects::open(&seaweed::options()).expect("opens");
        store.check().await.expect("a bucket that can be used");
        let world = support::world();
        Subject {
            store,
            world,
            client: Some(seaweed::client()),
            keeps_all_versions: true,
            keep: Box::new(()),
        }
    }

    wharf_contract::object_store_contract!(store);
    wharf_contract::object_address_contract!(store);
}
