//! Where addresses of the internet lie, for those who may connect to some of them only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// On the public internet.
    Public,
    /// In a network of its owner's.
    Private,
    /// On this machine.
    Loopback,
    /// Nowhere that a server of others could be: the local link with the metadata of clouds, groups,
    /// addresses without meaning, networks that only carry other addresses.
    Never,
}

impl Zone {
    /// Where an address lies. An address of version 4 within one of version 6 counts as itself.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => zone_v4(address),
            IpAddr::V6(address) => zone_v6(address),
        }
    }
}

fn zone_v4(address: Ipv4Addr) -> Zone {
    let [a, b, c, d] = address.octets();
    match (a, b, c, d) {
        (127, ..) => Zone::Loopback,
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Zone::Private,
        // Shared by providers; the metadata of one cloud lies in it.
        (100, 64..=127, ..) => Zone::Never,
        // The metadata of another cloud lies at a public address.
        (168, 63, 129, 16) => Zone::Never,
        // This network, the local link, protocols, documentation, relays, benchmarks.
        (0, ..) | (169, 254, ..) | (192, 0, 0 | 2, _) | (192, 88, 99, _) => Zone::Never,
        (198, 18 | 19, ..) | (198, 51, 100, _) | (203, 0, 113, _) => Zone::Never,
        // Groups, and what is reserved.
        (224.., ..) => Zone::Never,
        _ => Zone::Public,
    }
}

fn zone_v6(address: Ipv6Addr) -> Zone {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Zone::Loopback,
        // One cloud keeps its metadata among the private addresses.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Zone::Never,
        [0xfc00..=0xfdff, ..] => Zone::Private,
        // Translated to version 4 by the network: what counts is where that leads.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            match zone_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))) {
                Zone::Public => Zone::Public,
                _ => Zone::Never,
            }
        }
        // Protocols, documentation, and networks that carry addresses of version 4.
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] => Zone::Never,
        [0x3fff, 0..0x1000, ..] => Zone::Never,
        [0x2000..=0x3fff, ..] => Zone::Public,
        _ => Zone::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(zone_expected: Zone, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(Zone::of(text.parse().expect("an address")), zone_expected, "{text}");
        }
    }

    #[test]
    fn t025_addresses_are_told_apart() {
        check(Zone::Loopback, &["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]);
        let private = ["10.0.0.1", "172.16.0.1", "172.31.9.9", "192.168.1.1", "fd12::1"];
        check(Zone::Private, &private);
        check(Zone::Private, &["::ffff:10.1.1.1", "fc00::1"]);
        check(Zone::Never, &["169.254.169.254", "::ffff:169.254.169.254", "fe80::1"]);
        check(
            Zone::Never,
            &["0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "255.255.255.255", "ff02::1"],
        );
        check(Zone::Never, &["100.100.100.200", "168.63.129.16", "fd00:ec2::254", "192.0.0.192"]);
        check(Zone::Never, &["::7f00:1", "2002:7f00:1::", "64:ff9b::7f00:1", "2001::1"]);
        check(Zone::Never, &["198.18.0.1", "203.0.113.7", "2001:db8::1", "fec0::1", "3fff::1"]);
        check(Zone::Public, &["1.1.1.1", "172.32.0.0", "100.128.0.0", "192.0.1.1", "198.20.0.1"]);
        check(Zone::Public, &["2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]);
    }

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_not_public() {
        for inside in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.1",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.1.1",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "5f00::1",
            "4000::1",
        ] {
            let address = inside.parse().expect("an address");
            assert_ne!(Zone::of(address), Zone::Public, "{inside}");
        }
    }

    #[test]
    fn addresses_of_the_public_internet_are_outside() {
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.17",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00::1",
            "3fff:1000::1",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            let address = outside.parse().expect("an address");
            assert_eq!(Zone::of(address), Zone::Public, "{outside}");
        }
    }
}
