//! `docs/scenario.md` says what the scenario reader accepts, because it is written by it.
//!
//! After a change of the key tables: `PACELINE_BLESS=1 cargo test -p paceline-lab --test reference`.

use std::path::Path;

#[test]
fn the_scenario_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let page = paceline_lab::scenario::reference();
    if std::env::var_os("PACELINE_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let line = page.lines().zip(committed.lines()).position(|(a, b)| a != b);
    assert!(
        page == committed,
        "docs/scenario.md differs from the key tables (first at line {}); write it anew with PACELINE_BLESS=1",
        line.map_or_else(|| "the end".into(), |n| (n + 1).to_string())
    );
}
