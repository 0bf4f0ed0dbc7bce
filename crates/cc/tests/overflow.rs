//! No operation of the C algorithms overflows on numbers that a host can give, and none divides by zero or shifts too far on
//! any numbers: clang checks each one while a small program drives flows to the corners.
//!
//! A host's numbers: rates from 1 kbit/s to 8 Tbit/s, RTTs from 1 us to 16 s, packets of 64 to 65,536 bytes, times and totals
//! up to 2^61, every parameter at the ends of its range and between.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline_cc::{Kind, registry};

/// What wraps on purpose, as clang's list of what not to check.
const WRAPS: &str = "fun:latte_since\nfun:mpc_chance\n";

/// Checked on numbers of a host: left shifts that lose bits too. On any numbers: what C leaves undefined.
const ENVELOPE: &str = "undefined,unsigned-integer-overflow,unsigned-shift-base";
const HOSTILE: &str = "undefined";

/// Says why a test cannot run here, past the test harness, which hides what passing tests print.
fn skip(reason: &str) {
    let line = format!("\nSKIPPED overflow of C algorithms: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The parameters of an algorithm as it sees them: their defaults and the ends of their ranges, as C arrays.
fn params(name: &str) -> String {
    let spec = registry::find(name).expect("every header of bpf/algorithms is registered");
    let mut text = String::new();
    for array in ["DEFAULTS", "MINS", "MAXES"] {
        write!(text, "static const cc_u64 PARAM_{array}[] = {{ ").unwrap();
        for row in spec.params {
            let value = match array {
                "DEFAULTS" => row.default,
                "MINS" => row.min,
                _ => row.max,
            };
            // As crates/cc/src/native.rs says it.
            let integer = match row.kind {
                Kind::Integer | Kind::Bool | Kind::Choice(_) => value,
                Kind::Duration => value * 1e9,
                Kind::Rate => value / 8.0,
                Kind::Number => value * 65536.0,
            };
            write!(text, "{}ull, ", integer.round() as u64).unwrap();
        }
        text.push_str("};\n");
    }
    writeln!(text, "enum {{ {name}_fields = {} }};", spec.fields.len()).unwrap();
    text
}

/// Compiles the driver of `name`; the reason if this clang cannot.
fn compile(name: &str, hostile: bool) -> Result<PathBuf, String> {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overflow/driver.c");
    let kind = if hostile { "hostile" } else { "envelope" };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("overflow-{name}-{kind}"));
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("params.h"), params(name)).unwrap();
    fs::write(out.join("wraps"), WRAPS).unwrap();
    let program = out.join("driver");
    let checks = if hostile { HOSTILE } else { ENVELOPE };
    let result = Command::new("clang")
        .args(["-O1", "-g", "-std=c11", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-DALGORITHM={name}"))
        .arg(format!("-DHEADER=\"algorithms/{name}.h\""))
        .arg(format!("-DHOSTILE={}", u8::from(hostile)))
        .arg(format!("-fsanitize={checks}"))
        .arg("-fno-sanitize-recover=all")
        .arg(format!("-fsanitize-ignorelist={}", out.join("wraps").display()))
        .arg("-I")
        .arg(&bpf)
        .arg("-I")
        .arg(&out)
        .arg(&driver)
        .arg("-o")
        .arg(&program)
        .output()
        .map_err(|_| "clang is not installed".to_owned())?;
    let errors = String::from_utf8_lossy(&result.stderr);
    // Older clangs lack a check, smaller installations the library that reports.
    if errors.contains("unsupported argument") || errors.contains("clang_rt") {
        return Err(format!("this clang cannot check: {errors}"));
    }
    assert!(result.status.success(), "{name}: {errors}");
    Ok(program)
}

fn drive(hostile: bool) {
    for name in ["latte", "mpc", "pid", "reno"] {
        let program = match compile(name, hostile) {
            Ok(program) => program,
            Err(reason) => return skip(&reason),
        };
        let result = Command::new(program).args(["1", "300"]).output().unwrap();
        let errors = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "{name}: {errors}");
    }
}

#[test]
fn nothing_overflows_within_the_envelope() {
    drive(false);
}

#[test]
fn nothing_is_undefined_beyond_it() {
    drive(true);
}

/// The functions that these products are made of, against 128 bits.
#[test]
fn arithmetic_agrees_with_128_bits() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overflow/arithmetic.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arithmetic");
    // The build script has found a C compiler too.
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
    compiler.args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-I"]).arg(&bpf).arg(&source);
    let result = compiler.arg("-o").arg(&program).arg("-lm").output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let result = Command::new(program).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}
