//! What a great many calls leave behind. It has a process of its own, so that nobody else's
//! memory is counted.

#[cfg(target_os = "linux")]
mod linux {
    use wharf_sdk::transport::memory;
    use wharf_sdk::{Cx, Fault, Scope, Tool, operative};

    const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts.");

    async fn count(to: u32, cx: Cx<u32>) -> Result<u32, Fault> {
        for n in 0..to {
            cx.progress(n).await;
        }
        Ok(to)
    }

    /// Memory of this process in bytes.
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
        pages.expect("a number of pages") * 4_096
    }

    async fn calls(scope: &Scope, many: u32) {
        for n in 0..many {
            if n % 4 == 0 {
                let mut call = COUNT.call(scope, 2);
                while call.progress().await.is_some() {}
                assert_eq!(call.await, Ok(2));
            } else if n % 4 == 1 {
                let _ = futures::poll!(COUNT.call(scope, 70));
            } else {
                assert_eq!(COUNT.call(scope, 1).await, Ok(1));
            }
        }
    }

    #[tokio::test]
    async fn k030_memory_stays_flat() {
        let scope = Scope::root();
        scope.provide(&COUNT, count).expect("a good tool");
        scope.around(&COUNT, |n, next| async move { next.run(n).await });
        calls(&scope, 50_000).await;
        let before = resident();
        calls(&scope, 1_000_000).await;
        let grown = resident().saturating_sub(before);
        assert!(grown < 1 << 20, "a million calls left {grown} bytes behind");
        over_a_transport(&scope).await;
    }

    /// The same with a connection between, of which both ends keep books.
    async fn over_a_transport(served: &Scope) {
        let (here, there) = memory::pair();
        let serving = operative::serve(served, &there);
        let caller = Scope::root().with_transport(here.clone());
        calls(&caller, 5_000).await;
        let before = resident();
        calls(&caller, 40_000).await;
        let grown = resident().saturating_sub(before);
        assert!(grown < 2 << 20, "40,000 calls over a transport left {grown} bytes behind");
        assert_eq!(here.counters().calls_waiting, 0);
        serving.stop().await;
        assert_eq!(there.counters().served, 0);
    }
}
