//! No file makes the readers of traces and rates panic, and what they accept can be used.

mod drive;

use proptest::collection::vec;
use proptest::prelude::*;

const FILES: [&str; 4] = [
    "0\n0\n3\n3\n3\n17\n100\n",
    "1\n4294967295\n",
    "time_s,mbit_per_s\n0,10\n0.5,0\n# pause\n1.25,0.5\n2,96\n",
    "100.5,1e3\n100.6,0.001\n",
];

/// What numbers in such files consist of, and what they do not.
const WORDS: [&str; 16] = [
    "",
    "\n",
    "\r\n",
    "0",
    "9",
    "99999999",
    "4294967295",
    "4294967296",
    "-1",
    "1e",
    ".",
    ",",
    "#",
    " ",
    "nan",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        drive::any(&bytes);
    }

    #[test]
    fn any_lines_are_a_trace_or_an_error(words in vec(0..WORDS.len(), 0..30)) {
        drive::any(words.iter().map(|word| WORDS[*word]).collect::<String>().as_bytes());
    }

    #[test]
    fn a_damaged_file_is_a_trace_or_an_error(
        file in 0..FILES.len(),
        edits in vec((any::<prop::sample::Index>(), 0..WORDS.len()), 1..4),
    ) {
        let mut text = FILES[file].to_string();
        for (at, word) in edits {
            text.insert_str(at.index(text.len() + 1), WORDS[word]);
        }
        drive::any(text.as_bytes());
    }
}

#[test]
fn the_files_before_their_damage_are_sound() {
    FILES.iter().for_each(|text| drive::any(text.as_bytes()));
}
