//! The two ends agree on a measurement, make it, and hand the results over, in lines of text over TCP.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use paceline_net::{PS_PER_S, Picos, Trace};

use super::flow::{Endpoint, Flow};
use super::recording::{Quality, Recording};
use super::saturator::Saturator;
use super::wire::VERSION;
use super::{Plan, Recorded, RecorderError, Way, picos};

/// First word of a request.
const NAME: &str = "paceline-trace";
/// How long an end waits for a line or for the first datagram of the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a sender goes on after the end of its own measurement, for that of the other began later.
const OVERTIME: Picos = PS_PER_S;
/// No line is longer.
const MAX_LINE: u64 = 200;
/// No trace is, as text: 100 million lines.
const MAX_TRACE_BYTES: u64 = 1 << 30;

/// The end that waits for clients, and measures with one at a time.
pub struct Server {
    listener: TcpListener,
    endpoint: Endpoint,
}

impl Server {
    /// Listens at `address`, TCP and UDP.
    ///
    /// # Errors
    /// An address that cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, RecorderError> {
        let failed =
            |reason| RecorderError::Socket { what: format!("listen at {address}"), reason };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let endpoint = listener.local_addr().and_then(Endpoint::bind).map_err(failed)?;
        Ok(Self { listener, endpoint })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for a client and makes its measurement; the client, and how that went.
    ///
    /// # Errors
    /// A listener that fails, or `interrupted`, which is asked ten times a second.
    pub fn serve(
        &mut self,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(SocketAddr, Result<Plan, RecorderError>), RecorderError> {
        loop {
            match self.listener.accept() {
                Ok((stream, client)) => {
                    let outcome = self.measure(stream, client.ip(), interrupted);
                    return match outcome {
                        Err(RecorderError::Interrupted) => Err(RecorderError::Interrupted),
                        outcome => Ok((client, outcome)),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(reason) => {
                    let what = "accept a client".into();
                    return Err(RecorderError::Socket { what, reason });
                }
            }
            if interrupted() {
                return Err(RecorderError::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn measure(
        &mut self,
        stream: TcpStream,
        client: IpAddr,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Plan, RecorderError> {
        let mut control = Control::new(stream)?;
        let plan = match read_request(&control.line()?) {
            Ok(plan) => plan,
            Err(error) => {
                let _ = control.say(&format!("no {error}"));
                return Err(error);
            }
        };
        let token = token().map_err(Control::failed)?;
        control.say(&format!("go {token:016x}"))?;
        let until = self.endpoint.now() + picos(PATIENCE);
        let is_client = |from: SocketAddr| from.ip() == client;
        let peer = self.endpoint.greet(token, None, is_client, until, interrupted)?;
        let Some(peer) = peer else {
            return Err(RecorderError::Silent(self.address().map_or(0, |own| own.port())));
        };
        let sends = plan.way == Way::Downlink;
        let recording = make(&mut self.endpoint, (token, peer), &plan, sends, interrupted)?;
        if let Some(recording) = recording {
            match finish(recording, plan.way) {
                Ok(recorded) => control.send(&recorded)?,
                Err(error) => control.say(&format!("no {error}"))?,
            }
        }
        Ok(plan)
    }
}

/// Measures the link to the server at `server` by `plan`.
///
/// # Errors
/// A plan out of range, a server that cannot be reached or answers otherwise, a link over which nothing arrives,
/// `interrupted`, which is asked ten times a second.
pub fn record(
    server: SocketAddr,
    plan: &Plan,
    interrupted: &dyn Fn() -> bool,
) -> Result<Recorded, RecorderError> {
    plan.check()?;
    let failed = |reason| RecorderError::Socket { what: format!("reach {server}"), reason };
    let mut control = Control::new(TcpStream::connect_timeout(&server, PATIENCE).map_err(failed)?)?;
    control.say(&request(plan))?;
    let answer = control.line()?;
    let token = match answer.split_once(' ') {
        Some(("go", token)) => u64::from_str_radix(token, 16).ok(),
        Some(("no", why)) => return Err(RecorderError::Refused(format!("{server}: {why}"))),
        _ => None,
    };
    let token = token.ok_or(RecorderError::Garbled(answer))?;
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let any = any.parse().map_err(|_| RecorderError::Silent(server.port()))?;
    let mut endpoint = Endpoint::bind(any)
        .map_err(|reason| RecorderError::Socket { what: "open a socket".into(), reason })?;
    let until = endpoint.now() + picos(PATIENCE);
    let peer = endpoint.greet(token, Some(server), |from| from == server, until, interrupted)?;
    let peer = peer.ok_or(RecorderError::Silent(server.port()))?;
    let recording = make(&mut endpoint, (token, peer), plan, plan.way == Way::Uplink, interrupted)?;
    match recording {
        Some(recording) => finish(recording, plan.way),
        None => control.receive(plan),
    }
}

/// Makes a measurement from now on: this end sends, or else records.
fn make(
    endpoint: &mut Endpoint,
    (token, peer): (u64, SocketAddr),
    plan: &Plan,
    sends: bool,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Recording>, RecorderError> {
    let begin = endpoint.now() + picos(plan.warm_up);
    let span = [begin, begin + picos(plan.duration)];
    let band = [plan.least_wait, plan.most_wait].map(picos);
    let mut flow = Flow {
        token,
        peer,
        packet_bytes: plan.packet_bytes,
        sender: sends.then(|| Saturator::new(band)),
        recording: (!sends).then(|| Recording::new(span)),
        end: span[1] + OVERTIME,
    };
    flow.run(endpoint, interrupted)?;
    Ok(flow.recording)
}

fn finish(recording: Recording, way: Way) -> Result<Recorded, RecorderError> {
    let direction = way.name();
    let finished = recording.finish();
    let (trace, quality) =
        finished.map_err(|reason| RecorderError::Nothing { direction, reason })?;
    Ok(Recorded { trace, quality })
}

/// A number that nobody can guess.
fn token() -> io::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn request(plan: &Plan) -> String {
    let ms = |time: Duration| time.as_millis();
    format!(
        "{NAME} {VERSION} {} {} {} {} {} {}",
        plan.way.name(),
        ms(plan.duration),
        ms(plan.warm_up),
        plan.packet_bytes,
        ms(plan.least_wait),
        ms(plan.most_wait),
    )
}

/// The plan that a request asks for.
fn read_request(line: &str) -> Result<Plan, RecorderError> {
    let garbled = || RecorderError::Garbled(line.into());
    let words: Vec<&str> = line.split(' ').collect();
    let [NAME, version, way, rest @ ..] = &words[..] else { return Err(garbled()) };
    if *version != VERSION.to_string() {
        let text = format!("this end speaks version {VERSION}, the other {version}");
        return Err(RecorderError::Refused(text));
    }
    let ways = [Way::Uplink, Way::Downlink];
    let way = ways.into_iter().find(|known| known.name() == *way).ok_or_else(garbled)?;
    let numbers: Option<Vec<u64>> = rest.iter().map(|word| word.parse().ok()).collect();
    let Some(&[duration, warm_up, bytes, least, most]) = numbers.as_deref() else {
        return Err(garbled());
    };
    let plan = Plan {
        way,
        duration: Duration::from_millis(duration),
        warm_up: Duration::from_millis(warm_up),
        packet_bytes: bytes.try_into().unwrap_or(u16::MAX),
        least_wait: Duration::from_millis(least),
        most_wait: Duration::from_millis(most),
    };
    plan.check()?;
    Ok(plan)
}

/// The TCP connection.
struct Control {
    stream: BufReader<TcpStream>,
}

impl Control {
    fn new(stream: TcpStream) -> Result<Self, RecorderError> {
        let set = || {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(Plan::MOST_WAIT))
        };
        set().map_err(Self::failed)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn failed(reason: io::Error) -> RecorderError {
        let what = "talk to the other end".into();
        match reason.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => RecorderError::Socket {
                what,
                reason: io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
            },
            _ => RecorderError::Socket { what, reason },
        }
    }

    fn say(&mut self, line: &str) -> Result<(), RecorderError> {
        let line = format!("{line}\n");
        self.stream.get_mut().write_all(line.as_bytes()).map_err(Self::failed)
    }

    fn line(&mut self) -> Result<String, RecorderError> {
        let mut line = Vec::new();
        self.stream.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(Self::failed)?;
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
        Ok(text.escape_debug().to_string())
    }

    /// Sends a recording: a line with its length and quality, then the trace.
    fn send(&mut self, recorded: &Recorded) -> Result<(), RecorderError> {
        let mut text = Vec::new();
        recorded.trace.write(&mut text).map_err(Self::failed)?;
        let Quality { packets, lost, hardly_waited, mean_wait_us, max_wait_us } = recorded.quality;
        let len = text.len();
        self.say(&format!(
            "trace {len} {packets} {lost} {hardly_waited} {mean_wait_us} {max_wait_us}"
        ))?;
        self.stream.get_mut().write_all(&text).map_err(Self::failed)
    }

    /// Receives what [`Self::send`] sends.
    fn receive(&mut self, plan: &Plan) -> Result<Recorded, RecorderError> {
        // What waits in front of the link has to leave first, and the other end began later.
        let patience = PATIENCE + plan.most_wait * 2 + Duration::from_secs(20);
        self.stream.get_ref().set_read_timeout(Some(patience)).map_err(Self::failed)?;
        let line = self.line()?;
        if let Some(why) = line.strip_prefix("no ") {
            return Err(RecorderError::Refused(why.into()));
        }
        let garbled = || RecorderError::Garbled(line.clone());
        let numbers = line.strip_prefix("trace ").ok_or_else(garbled)?;
        let numbers: Option<Vec<u64>> = numbers.split(' ').map(|word| word.parse().ok()).collect();
        let Some(&[len, packets, lost, hardly_waited, mean_wait_us, max_wait_us]) =
            numbers.as_deref()
        else {
            return Err(garbled());
        };
        if len > MAX_TRACE_BYTES {
            return Err(garbled());
        }
        let mut text = Vec::new();
        self.stream.by_ref().take(len).read_to_end(&mut text).map_err(Self::failed)?;
        if text.len() as u64 != len {
            return Err(RecorderError::Garbled("the trace is cut short".into()));
        }
        let trace = Trace::parse(&text, "uplink");
        let trace = trace.map_err(|error| RecorderError::Garbled(error.to_string()))?;
        let quality = Quality { packets, lost, hardly_waited, mean_wait_us, max_wait_us };
        Ok(Recorded { trace, quality })
    }
}
