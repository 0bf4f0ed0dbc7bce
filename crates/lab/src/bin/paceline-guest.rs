//! The first process of the guest of world `vm`: see `paceline_lab::vm`.

fn main() {
    paceline_lab::vm::guest::main();
}
