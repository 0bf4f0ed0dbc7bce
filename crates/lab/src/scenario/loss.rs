//! Keys of the kinds of random loss.

use paceline_net::PS_PER_MS;

use super::keys::Absent::{Default, Required};
use super::keys::{DAY, Kind, PROBABILITY, Table, Variant, Variants, key};

pub(super) static LOSSES: Variants = Variants {
    name: "loss",
    list: &[
        Variant { name: "bernoulli", table: &BERNOULLI },
        Variant { name: "periodic", table: &PERIODIC },
        Variant { name: "gilbert-elliott", table: &GILBERT_ELLIOTT },
        Variant { name: "on-off", table: &ON_OFF },
    ],
    unavailable: &[],
    bare: false,
};
static BERNOULLI: Table = Table {
    name: "loss: bernoulli",
    doc: "Each packet on its own.",
    keys: &[key(
        "probability",
        Kind::Probability { max: 0.99 },
        Required,
        "Probability that a packet is lost.",
    )],
    exclusive: &[],
};
static PERIODIC: Table = Table {
    name: "loss: periodic",
    doc: "Every n-th packet: the loss that square-root laws are derived for.",
    keys: &[key(
        "every",
        Kind::Whole { min: 1, max: 1 << 40 },
        Required,
        "Which packet of each series is lost, n.",
    )],
    exclusive: &[],
};
static GILBERT_ELLIOTT: Table = Table {
    name: "loss: gilbert-elliott",
    doc: "Bursts: a good and a bad state, the change drawn before each packet.",
    keys: &[
        key("p", PROBABILITY, Required, "Probability of going from good to bad."),
        key("r", PROBABILITY, Required, "Probability of going from bad to good."),
        key("loss_bad", PROBABILITY, Default("100%"), "Loss probability in the bad state."),
        key("loss_good", PROBABILITY, Default("0%"), "Loss probability in the good state."),
    ],
    exclusive: &[],
};

/// Mean times of a link that is on and off by turns. Not less, or a long silence would hold too many of them.
const TURN: Kind = Kind::Time { min: PS_PER_MS, max: DAY };
static ON_OFF: Table = Table {
    name: "loss: on-off",
    doc: "Outages: the link is on and off by turns, on at first, and loses every packet while it is off.",
    keys: &[
        key("on", TURN, Required, "Mean of the exponential times on."),
        key("off", TURN, Required, "Mean of the exponential times off."),
    ],
    exclusive: &[],
};
