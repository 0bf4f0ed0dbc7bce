//! Where a record comes from: command line, host, commit, time. The only part of a record that two equal runs may differ in.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::checks::Check;

/// What the caller knows of this run beside its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The command as typed, program first.
    pub command_line: Vec<String>,
    /// When it began.
    pub started: SystemTime,
    /// How long it took, s.
    pub wall_s: f64,
    /// What it ran on.
    pub host: Host,
    /// Checks beside those of the result: whether the machine did what the run asked of it.
    pub checks: Vec<Check>,
}

/// The machine. What cannot be found out is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system (`linux`, `macos`).
    pub os: Option<String>,
    /// Kernel release (`6.12.0`).
    pub kernel: Option<String>,
    /// Instruction set (`x86_64`, `aarch64`).
    pub arch: Option<String>,
    /// Processor as it names itself.
    pub cpu_model: Option<String>,
    /// Processors this process may use.
    pub cores: Option<u64>,
}

impl Host {
    /// This machine: `/proc` where there is one.
    pub fn this_machine() -> Self {
        Self {
            os: Some(std::env::consts::OS.into()),
            kernel: read_line("/proc/sys/kernel/osrelease"),
            arch: Some(std::env::consts::ARCH.into()),
            cpu_model: std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|t| cpu_model(&t)),
            cores: std::thread::available_parallelism().ok().map(|n| n.get() as u64),
        }
    }
}

/// The commit the program was built from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GitState {
    /// 40 hex digits, or `unknown` for a build outside a checkout.
    pub commit: String,
    /// Whether the sources differed from that commit; null when unknown.
    pub dirty: Option<bool>,
}

impl GitState {
    /// Of this program, as `build.rs` found it.
    pub fn of_this_build() -> Self {
        let dirty = env!("PACELINE_GIT_DIRTY");
        Self { commit: env!("PACELINE_GIT_COMMIT").into(), dirty: dirty.parse().ok() }
    }
}

/// `time` in UTC as RFC 3339 writes it, to the millisecond: `2026-11-20T18:23:10.000Z`.
pub fn rfc3339_utc(time: SystemTime) -> String {
    let millis = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_millis() as i128,
        Err(before) => -(before.duration().as_millis() as i128),
    };
    let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = civil_from_days(days as i64);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, millisecond) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// Year, month and day of the proleptic Gregorian calendar, `days` after 1970-01-01. Counts in years that begin in March,
/// so that the leap day is the last one; an era is the calendar's period of 400 years, 146,097 days. The method is Howard
/// Hinnant's ("chrono-compatible low-level date algorithms").
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 31, 30, 31, 30, 31 days and again: 153 in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn read_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// The first `model name` of `/proc/cpuinfo`; not every architecture has one.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.trim().to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates() {
        let at = |s: u64| rfc3339_utc(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_000_000_000), "2001-09-09T01:46:40.000Z");
        // 2100 is no leap year: 28 February is followed by 1 March.
        assert_eq!(at(4_107_542_399), "2100-02-28T23:59:59.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        let before = UNIX_EPOCH - Duration::from_millis(1);
        assert_eq!(rfc3339_utc(before), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn cpu_models() {
        let x86 = "processor\t: 0\nmodel name\t: Some CPU @ 2.10GHz\nmodel name\t: other\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Some CPU @ 2.10GHz"));
        assert_eq!(cpu_model("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
        assert_eq!(cpu_model("model name"), None);
    }

    #[test]
    fn the_commit_is_a_hash_or_unknown() {
        let git = GitState::of_this_build();
        let hash = git.commit.len() == 40 && git.commit.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(hash || git.commit == "unknown", "{}", git.commit);
    }
}
