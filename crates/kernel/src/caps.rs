//! The operator's table: destinations and the most that a flow to them may send.

use std::net::{IpAddr, Ipv6Addr};

use libbpf_rs::{MapCore, MapFlags};

use crate::loaded::{self, Loaded};
use crate::{Error, Result};

const KEY_BYTES: usize = 20;

/// A cap of the table. Flows look it up every 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Destination.
    pub destination: IpAddr,
    /// Its port; `None` = every port without a cap of its own.
    pub port: Option<u16>,
    /// As SO_MAX_PACING_RATE counts: payload, unless the queueing discipline paces; bytes/s.
    pub bytes_per_s: u64,
}

impl Cap {
    /// struct cc_cap_key of bpf/include/flow.h.
    fn key(&self) -> [u8; KEY_BYTES] {
        let address = match self.destination {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let mut key = [0; KEY_BYTES];
        key[..16].copy_from_slice(&address.octets());
        // In network order, widened to 32 bits as the kernel's program widens it.
        let port = u32::from(self.port.unwrap_or(0).to_be());
        key[16..].copy_from_slice(&port.to_ne_bytes());
        key
    }

    fn from_entry(key: &[u8], value: &[u8]) -> Option<Self> {
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(key.get(..16)?).ok()?);
        let port = u32::from_ne_bytes(key.get(16..20)?.try_into().ok()?) as u16;
        Some(Self {
            destination: address.to_canonical(),
            port: Some(u16::from_be(port)).filter(|port| *port != 0),
            bytes_per_s: u64::from_ne_bytes(value.try_into().ok()?),
        })
    }
}

/// Sets `cap` for every controller that is loaded, or for the one called `name`; without a rate (`u64::MAX`) it is removed.
///
/// # Errors
/// Nothing is loaded that it could hold for.
pub fn set_cap(name: Option<&str>, cap: &Cap) -> Result<()> {
    if cap.bytes_per_s == 0 {
        return Err(Error::Input("a cap of nothing would stop the flow for good".into()));
    }
    let controllers = match name {
        Some(name) => loaded::called(name)?,
        None => loaded::loaded()?,
    };
    if controllers.is_empty() {
        return Err(Error::Input(
            "no controller of Paceline is loaded: a cap belongs to one".into(),
        ));
    }
    for controller in &controllers {
        let map = controller.map(controller.caps)?;
        if cap.bytes_per_s == u64::MAX {
            // There may be none.
            let _ = map.delete(&cap.key());
        } else {
            map.update(&cap.key(), &cap.bytes_per_s.to_ne_bytes(), MapFlags::ANY)
                .map_err(Error::kernel("set the cap"))?;
        }
    }
    Ok(())
}

/// The caps that hold for `controller`'s flows.
///
/// # Errors
/// It has gone.
pub fn caps(controller: &Loaded) -> Result<Vec<Cap>> {
    let map = controller.map(controller.caps)?;
    let entry = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok().flatten()?;
        Cap::from_entry(&key, &value)
    };
    Ok(map.keys().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_survives_the_table() {
        for (destination, port) in [("10.0.1.1", Some(5201)), ("2001:db8::7", None)] {
            let cap =
                Cap { destination: destination.parse().unwrap(), port, bytes_per_s: 37_500_000 };
            let read = Cap::from_entry(&cap.key(), &cap.bytes_per_s.to_ne_bytes());
            assert_eq!(read, Some(cap));
        }
    }

    #[test]
    fn an_ipv4_key_is_what_the_kernel_makes_of_a_socket() {
        let cap =
            Cap { destination: "10.0.1.1".parse().unwrap(), port: Some(5201), bytes_per_s: 1 };
        let key = cap.key();
        assert_eq!(key[..10], [0; 10]);
        assert_eq!(key[10..16], [255, 255, 10, 0, 1, 1]);
        assert_eq!(key[16..18], 5201_u16.to_be_bytes());
    }
}
