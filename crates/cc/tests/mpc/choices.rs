//! Decisions that rounding may turn: which they were, and a script for taking them otherwise.

/// The close decisions of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    script: Vec<bool>,
    taken: Vec<bool>,
}

impl Choices {
    /// Whether a > b. Within `rounding` of each other it is a close decision, which goes as the script says, or as it falls.
    pub fn over(&mut self, a: f64, b: f64, rounding: f64) -> bool {
        let falls = a > b;
        if (a - b).abs() > rounding {
            return falls;
        }
        let goes = self.script.get(self.taken.len()).copied().unwrap_or(falls);
        self.taken.push(goes);
        goes
    }

    /// Begins an event whose first close decisions go like this.
    pub fn begin(&mut self, script: Vec<bool>) {
        self.script = script;
        self.taken.clear();
    }

    /// Ends it: what else the decisions that had no script might have been.
    pub fn end(&mut self) -> Vec<Vec<bool>> {
        let other = |at: usize| {
            let mut script = self.taken[..=at].to_vec();
            script[at] = !script[at];
            script
        };
        let others = (self.script.len()..self.taken.len()).map(other).collect();
        *self = Self::default();
        others
    }
}
