//! The C algorithms also compile for BPF: no floats, no 128-bit products, no signed division, little stack.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Calls every callback of algorithm `name` from one BPF program.
fn driver(name: &str) -> String {
    let fields = format!("{}_FIELDS", name.to_uppercase());
    let events = ["ack", "loss", "rto", "spurious_loss", "resume", "path_change"]
        .map(|event| format!("\t{name}_on_{event}(&x->state, &x->{event});\n"))
        .concat();
    format!(
        "#include \"algorithms/{name}.h\"\n\
         struct context {{\n\
         \tstruct {name} state;\n\tstruct {name}_params params;\n\tstruct cc_path path_change;\n\
         \tstruct cc_ack ack;\n\tstruct cc_loss loss;\n\tstruct cc_timeout rto;\n\
         \tstruct cc_undo spurious_loss;\n\tstruct cc_resume resume;\n\
         \tstruct cc_control control;\n\tcc_u64 out[{fields} + 1];\n}};\n\
         __attribute__((section(\"syscall\"), used)) int drive(struct context *x)\n{{\n\
         \t{name}_init(&x->state, &x->path_change, &x->params);\n{events}\
         \t{name}_on_timer(&x->state, x->ack.now_ns);\n\
         \t{name}_control(&x->state, &x->control);\n\t{name}_observe(&x->state, x->out);\n\
         \treturn 0;\n}}\n"
    )
}

/// Says why a test cannot run here, past the test harness, which hides what passing tests print.
fn skip(reason: &str) {
    let line = format!("\nSKIPPED C algorithms for BPF: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[test]
fn every_c_algorithm_compiles_for_bpf() {
    if Command::new("clang").arg("--version").output().is_err() {
        skip("clang is not installed");
        return;
    }
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut compiled = 0;
    for entry in fs::read_dir(bpf.join("algorithms")).unwrap() {
        let header = entry.unwrap().path();
        if header.is_dir() {
            continue;
        }
        let name = header.file_stem().unwrap().to_str().unwrap();
        let source = out.join(format!("{name}.bpf.c"));
        fs::write(&source, driver(name)).unwrap();
        let result = Command::new("clang")
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror"])
            .arg("-I")
            .arg(&bpf)
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(out.join(format!("{name}.bpf.o")))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&result.stderr);
        // A clang built without the BPF target says so; that is no fault of ours.
        if errors.contains("unknown target triple") || errors.contains("No available targets") {
            skip("this clang has no BPF target");
            return;
        }
        assert!(result.status.success(), "{name}: {errors}");
        compiled += 1;
    }
    assert!(compiled > 0);
}
