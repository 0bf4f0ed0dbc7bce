//! What the running kernel is like.

use std::path::Path;

use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, MemberAttr, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};

use crate::{Error, Result, objects};

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Bytes of a congestion control's name, its final zero included (TCP_CA_NAME_MAX).
pub(crate) const NAME_BYTES: usize = 16;

/// What the loader must know of `struct tcp_congestion_ops` and of what the kernel says of a registered one.
pub(crate) struct Layout {
    /// Which argument of `cong_control` is the rate sample.
    pub(crate) sample_argument: u64,
    /// Of `struct tcp_congestion_ops` in the value of its map, bytes.
    pub(crate) ops: usize,
    /// Of the name within the struct.
    pub(crate) name: usize,
    /// Of every callback within the struct.
    pub(crate) callbacks: Vec<usize>,
    /// Of the state (enum bpf_struct_ops_state) in the value.
    pub(crate) state: usize,
    /// Whether a registration can be a link, which ends with the process that has it open (Linux 6.4).
    pub(crate) has_links: bool,
}

/// The names that TCP knows.
pub(crate) fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
}

/// Whether this build, kernel and user can load controllers; the error says what is missing.
///
/// # Errors
/// No objects, no type information, no `struct_ops`, no privilege.
pub fn check() -> Result<()> {
    objects::find(objects::FLOWS)?;
    Layout::read()?;
    // Asking for the first program or map needs the privilege to load them, or at least CAP_SYS_ADMIN.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let (net_admin, sys_admin, bpf) = (1 << 12, 1 << 21, 1 << 39);
    if effective & sys_admin == 0 && effective & (net_admin | bpf) != (net_admin | bpf) {
        return Err(Error::Unavailable(
            "loading controllers needs root (CAP_BPF and CAP_NET_ADMIN)".into(),
        ));
    }
    Ok(())
}

impl Layout {
    pub(crate) fn read() -> Result<Self> {
        let missing = |what: &str| Error::Unavailable(format!("this kernel has no {what}"));
        if !Path::new(BTF).exists() {
            return Err(missing(&format!("type information ({BTF}; CONFIG_DEBUG_INFO_BTF)")));
        }
        let btf = Btf::from_path(BTF).map_err(Error::kernel(format!("read {BTF}")))?;
        let no_struct_ops = || missing("struct_ops for TCP (CONFIG_BPF_JIT, Linux 5.6)");
        let value = btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops");
        let value = value.ok_or_else(no_struct_ops)?;
        let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops").ok_or_else(no_struct_ops)?;
        let (mut callbacks, mut sample_argument) = (Vec::new(), 3);
        for member in ops.iter() {
            let Some(arguments) = arguments(&btf, member.ty) else { continue };
            callbacks.push(byte_offset(member.attr));
            if member.name.is_some_and(|name| name == "cong_control") {
                sample_argument = arguments as u64 - 1;
            }
        }
        // The state follows the count of users; both are in a struct of their own since Linux 6.9.
        Ok(Self {
            sample_argument,
            ops: offset(&value, "data").ok_or_else(no_struct_ops)?,
            name: offset(&ops, "name").ok_or_else(no_struct_ops)?,
            callbacks,
            state: 4,
            has_links: btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some(),
        })
    }
}

/// How many arguments a member takes that is a pointer to a function.
fn arguments(btf: &Btf<'_>, member: libbpf_rs::btf::TypeId) -> Option<usize> {
    let pointer = btf.type_by_id::<Ptr<'_>>(member)?;
    let function: BtfType<'_> = pointer.referenced_type();
    FuncProto::try_from(function).ok().map(|function| function.len())
}

fn offset(of: &Struct<'_>, name: &str) -> Option<usize> {
    let member = of.iter().find(|member| member.name.is_some_and(|known| known == name))?;
    Some(byte_offset(member.attr))
}

fn byte_offset(attribute: MemberAttr) -> usize {
    match attribute {
        MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. } => offset as usize / 8,
    }
}
