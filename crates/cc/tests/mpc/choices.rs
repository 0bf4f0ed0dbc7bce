//! Decisions that rounding may turn: which they were, and a script for taking them otherwise.

/// The close decisions of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    script: Vec<bool>,
    taken: Vec<bool>,
    turned: u32,
}

/// What was decided in an event.
pub struct Made {
    /// Close decisions, and those that went otherwise than they fell.
    pub close: u32,
    pub turned: u32,
    /// Scripts for what else the decisions without one might have been.
    pub others: Vec<Vec<bool>>,
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
        self.turned += u32::from(goes != falls);
        goes
    }

    /// Begins an event whose first close decisions go like this.
    pub fn begin(&mut self, script: Vec<bool>) {
        *self = Self { script, ..Self::default() };
    }

    /// Ends it.
    pub fn end(&mut self) -> Made {
        let Self { script, taken, turned } = std::mem::take(self);
        let other = |at: usize| {
            let mut script = taken[..=at].to_vec();
            script[at] = !script[at];
            script
        };
        let others = (script.len()..taken.len()).map(other).collect();
        Made { close: taken.len() as u32, turned, others }
    }
}
