//! scratch
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use paceline_net::*;
use paceline_sim::*;
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let secs: f64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let pairs = n.min(10);
    let mut links = vec![bottleneck(1e9, 12.5, 2083), delay(0.0)];
    links[1].capacity = Capacity::Constant(1e9);
    links[1].delay_ps = 0;
    for _ in 0..pairs {
        for _ in 0..4 { links.push(LinkSpec{ capacity: Capacity::Constant(10e9), ..delay(3.125) }) }
    }
    links[0].delay_ps = 6_250_000_000; links[1].delay_ps = 6_250_000_000;
    let flows = (0..n).map(|i| { let b = (2 + (i % pairs) * 4) as u32;
        let mut f = tcp(registered(&std::env::args().nth(3).unwrap_or("cubic".into()), None, &[]));
        f.forward = vec![b, 0, b+1]; f.reverse = vec![b+2, 1, b+3];
        f.start_ps = i as u64 * 1_000_000_000; f
    }).collect();
    let mut p = plan(links, flows, secs, 1.0);
    p.sample_ps = 10*MS;
    let t = std::time::Instant::now();
    let o = run_checked(p);
    let s = t.elapsed().as_secs_f64();
    println!("N={n}: {:.2} M pkt/s, {:.2} M ev/s, ev/pkt {:.2}, util {:.4} drops {}", o.engine.packets as f64/s/1e6, o.engine.events as f64/s/1e6, o.engine.events as f64/o.engine.packets as f64, o.links[0].utilization.unwrap(), o.links[0].drops);
}
