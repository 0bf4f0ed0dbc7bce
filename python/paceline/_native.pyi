"""The Rust extension: scenario text, names and Python classes in; JSON and exceptions out.

Everything here is re-exported, typed and shaped, by the modules of ``paceline``; import those instead.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict, final

from typing_extensions import disjoint_base

__all__ = [
    "Ack",
    "ControllerCore",
    "InputError",
    "Loss",
    "PacelineError",
    "PathInfo",
    "Resume",
    "RunError",
    "Sent",
    "Timeout",
    "Undo",
    "build_info",
    "check_scenario",
    "contest_receive",
    "contest_send",
    "controllers",
    "drive_controller",
    "export_qlog",
    "kernel_algorithms",
    "kernel_cap",
    "kernel_flows",
    "kernel_list",
    "kernel_load",
    "kernel_missing",
    "kernel_record",
    "kernel_replay",
    "kernel_unload",
    "run",
    "run_link",
    "scenario_schema",
    "trace_convert",
    "trace_info",
    "trace_record",
    "trace_serve",
    "trace_synth",
    "vm_kernel",
    "vm_missing",
]

class PacelineError(Exception):
    """Whatever Paceline raises on purpose. Catch this to catch both kinds."""

class InputError(PacelineError):
    """The input cannot be used: a scenario, trace, parameter or path. The message says where and what is allowed."""

class RunError(PacelineError):
    """The run failed although its input was valid."""

class _BuildInfo(TypedDict):
    version: str
    profile: str
    target: str
    controllers: int

def build_info() -> _BuildInfo:
    """Version, build profile and target of the extension module."""

def controllers() -> str:
    """Every built-in controller, as a JSON list in the registry's order.

    Each entry: ``name``, ``title``, ``source``, ``needs``, ``params`` (``name``, ``kind``, ``unit``, ``default``, ``min``,
    ``max``, ``choices``, ``allowed``, ``doc``), ``profiles`` (``name``, ``source``, ``values``), ``fields`` (``name``, ``unit``,
    ``doc``).
    Numbers are in the parameter's ``unit``; durations are held in seconds and rates in bit/s.
    """

def run(
    scenario_text: str,
    scenario_path: str | None,
    overrides: Sequence[str],
    controller: str | None,
    seed: int | None,
    out: str | None,
    command: Sequence[str],
    python_controllers: Mapping[str, type] | None,
    progress: Callable[[float], object] | None = None,
    world: str = "sim",
    realtime: bool = False,
    guest: str | None = None,
    events: str | None = None,
) -> str:
    """Runs a scenario and writes its record.

    Args:
        scenario_text: the scenario, TOML.
        scenario_path: where the text is from, for error messages and for paths in it (relative to its directory); None: no
            file, paths are relative to the working directory.
        overrides: ``key=value`` with dotted keys and TOML values, applied in order.
        controller: the controller of every flow; None: those the scenario names. A name of ``python_controllers`` wins over
            a built-in.
        seed: replaces the scenario's.
        out: directory of the record; None: no record is written.
        command: the command line, for the manifest.
        python_controllers: subclasses of ``paceline.Controller`` by the name that flows (or ``controller``) use.
        progress: called about ten times a second with the time of the run reached, s.
        world: ``sim``, ``live`` or ``vm``.
        realtime: in world ``live``, emulator and endpoints run before all programs without real-time priority.
        guest: for world ``vm``, the program that runs in the guest.
        events: file for what controllers in integer C hear and answer; None: nothing of it is kept.

    Returns:
        JSON ``{"record": str | null, "result": {…}}``, the result as ``paceline run --json`` prints it.

    Raises:
        InputError: the scenario, an override, a name or ``out`` cannot be used.
        RunError: the run failed, or a Python controller raised (the original is the cause).
        KeyboardInterrupt: Ctrl-C, in the main thread.
    """

def vm_missing() -> str | None:
    """What world ``vm`` lacks here, or None. The guest's kernel may be fetched for the answer."""

def vm_kernel() -> str | None:
    """The release of the kernel that guests boot here; None: it would be fetched first.

    Raises:
        RunError: the folder that ``PACELINE_VM_KERNEL`` names has none.
    """

def check_scenario(text: str, path: str | None, overrides: Sequence[str]) -> str:
    """The resolved scenario as JSON, defaults filled in, without running it."""

def scenario_schema() -> str:
    """The JSON Schema of scenario files."""

def trace_info(path: str) -> str:
    """Statistics of a trace file, or of the log of a link, as JSON."""

def trace_synth(preset: str, seed: int, duration_s: float, mean_bps: float | None, out: str) -> None:
    """Writes a synthetic trace to ``out``; equal arguments give equal bytes."""

def trace_convert(src: str, dst: str, from_format: str | None, to_format: str | None, bin_ms: float) -> str:
    """Converts a trace; a format of None is told by the suffix. ``bin_ms`` is the bin of formats that hold rates.

    Returns JSON ``{"from_mbps": float, "to_mbps": float}``: the mean rate before and after.
    """

def trace_record(
    host: str,
    port: int,
    uplink: bool,
    out: str,
    times_s: tuple[float, float, float, float],
    packet_bytes: int,
) -> str | None:
    """Measures the link to a server (``trace_serve``) into a file; to be called from the main thread.

    Args:
        host: name or address of the server.
        port: its TCP and UDP port.
        uplink: the way to the server, or else the way from it.
        out: file of the trace.
        times_s: length of the trace, time before it, least and longest wait of packets.
        packet_bytes: size of the packets, bytes of IP.

    Returns None after Ctrl-C, else JSON: the mean rate, packets, losses and waits.
    """

def trace_serve(host: str, port: int, told: Callable[[str], object]) -> None:
    """Lets clients measure the link to this machine until Ctrl-C; to be called from the main thread.

    ``told`` is called with a line of text when something happens.
    """

def export_qlog(record_dir: str, flow: str, out: str, draft: str) -> None:
    """Writes one flow of a record as qlog; ``draft`` is "current" or "02"."""

def kernel_algorithms() -> list[str]:
    """The names of the algorithms that can be loaded into the kernel."""

def kernel_cap(destination: str, port: int | None, bytes_per_s: int | None, name: str | None) -> None:
    """Caps flows to a destination; None removes the cap. Of the controller called ``name``, or of all.

    Raises:
        InputError: no address, or nothing is loaded.
    """

def kernel_flows() -> str:
    """The live flows of every loaded controller, as a JSON list."""

def kernel_list() -> str:
    """What is loaded, as a JSON list: `name`, `algorithm`, `registered`, `held`, `records`, `flows`, `caps`, `programs`."""

def kernel_load(controller: str, name: str | None, record: bool = False) -> str:
    """Loads a controller, written as `--controller` takes it, under a name for TCP_CONGESTION; JSON, as of `kernel_list`.

    With ``record`` what its flows hear and answer can be recorded.

    Raises:
        InputError: no such controller or parameter, or a name that is taken.
        RunError: this machine cannot, or the kernel refuses.
    """

def kernel_missing() -> str | None:
    """Why this build, machine or user cannot load controllers; None if it can."""

def kernel_record(name: str | None, out: str | PathLike[str], duration_s: float | None) -> str:
    """Records what controllers loaded to record do, all or the one called ``name``, for ``duration_s`` or until Ctrl-C.

    JSON: `records`, `bytes`, `lost`.

    Raises:
        InputError: nothing is loaded that records, it is recorded already, or the file cannot be written.
    """

def kernel_replay(log: str | PathLike[str], bpf: bool) -> str:
    """Replays a recording, with ``bpf`` through the BPF build too, where there can be one; JSON.

    `equal`, `bpf_skipped`, `lost_records`, `flows`: `flow`, `algorithm`, `local`, `remote`, `events`, `heard`, `ce_packets`,
    `answers`, `missing_records`, `records_after_gap`, `difference`: `event`, `index`, `time_s`, `byte`, `what`, `values`.

    Raises:
        InputError: the file cannot be read, or is no recording.
        RunError: the kernel refuses the programs.
    """

def kernel_unload(name: str) -> int:
    """Unloads a controller; how many flows go on with it."""

def run_link(
    options: Sequence[tuple[str, str]],
    seed: int,
    realtime: bool,
    outside: bool,
    access_delays_s: Sequence[float],
    logs: tuple[str | PathLike[str] | None, str | PathLike[str] | None],
    out: str | PathLike[str] | None,
    command: Sequence[str | bytes],
    typed: Sequence[str],
) -> str:
    """Runs a command behind an emulated link and waits for its end; to be called from the main thread.

    Args:
        options: flags of `paceline link` without their dashes, and values.
        seed: of every random draw.
        realtime: the threads that carry packets run before all programs without real-time priority.
        outside: the command reaches what this machine reaches, by address translation.
        access_delays_s: of every host on which the command runs, the delay between it and the link, one way; one at least.
        logs: where to write the logs of the uplink and of the downlink.
        out: directory of the record that is written.
        command: the program and its arguments.
        typed: the command line that the record shows.

    Returns JSON ``{"record", "statuses", "uplink", "downlink", "log_failure"}``: the directory of the record (or null), the exit
    status of the command on each host (128 and the signal that killed it), why a log is not complete (or null), and for each
    direction ``entered_packets``, ``entered_bytes``, ``left_packets``, ``left_bytes``, ``dropped_full``, ``dropped_managed``,
    ``dropped_random``, ``dropped_exhausted``, ``unwritable_packets`` and ``late_us`` (``mean``, ``p99``, ``max``: how long after
    their time packets were released, null before the first).
    """

def contest_send(host: str, port: int, controller: str | type, duration_s: float, seed: int) -> str:
    """Sends datagrams under ``controller`` to a receiver for ``duration_s``; compatible on the wire with the contest's programs.

    Returns JSON ``{"duration_s", "sent_packets", "acked_packets", "missing_packets", "timeouts", "rtt_ms"}``, the last one with
    ``min``, ``mean``, ``p50``, ``p95`` and ``max``, null without an ACK.

    Raises:
        InputError: an unknown controller or host, or a controller that needs what the endpoint lacks.
        RunError: no socket, or a Python controller raised.
        KeyboardInterrupt: Ctrl-C.
    """

def contest_receive(port: int, duration_s: float | None, ready: Callable[[int], object]) -> None:
    """Acknowledges what comes to a UDP port (0: a free one) until Ctrl-C, or for ``duration_s``. ``ready`` is told the port."""

def drive_controller(
    controller: str | type,
    events: Sequence[tuple[str, Mapping[str, Any]]],
    packet_bytes: int = 1500,
    initial_window_packets: int = 10,
    seed: int = 0,
) -> str:
    """Feeds ``events`` to a controller without a simulation; JSON list of what it decided after each."""

@final
class PathInfo:
    """The path a controller is created for."""

    @property
    def now_ns(self) -> int:
        """Time of creation, ns from the start of the run."""
    @property
    def packet_bytes(self) -> int:
        """Size of a full data packet on the wire, bytes."""
    @property
    def initial_window_packets(self) -> int:
        """Window the host starts with, packets."""
    @property
    def seed(self) -> int:
        """Seed for a controller that draws random numbers; differs per flow."""

@final
class Ack:
    """One acknowledgement that newly acknowledges data. Absent samples are None."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def now_s(self) -> float:
        """Now, s from the start of the run."""
    @property
    def acked_bytes(self) -> int:
        """Bytes newly acknowledged."""
    @property
    def acked_packets(self) -> int:
        """Packets newly acknowledged."""
    @property
    def ce_packets(self) -> int:
        """Of these, packets whose congestion-experienced mark was newly reported."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after this ACK."""
    @property
    def prior_in_flight_bytes(self) -> int:
        """Bytes in flight before this ACK."""
    @property
    def rtt_ns(self) -> int | None:
        """Round-trip time of the newest packet acknowledged, ns."""
    @property
    def rtt_ms(self) -> float | None:
        """Round-trip time of the newest packet acknowledged, ms."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed RTT (RFC 6298), ns."""
    @property
    def srtt_ms(self) -> float | None:
        """Smoothed RTT (RFC 6298), ms."""
    @property
    def min_rtt_ns(self) -> int | None:
        """Smallest RTT of the connection, ns."""
    @property
    def min_rtt_ms(self) -> float | None:
        """Smallest RTT of the connection, ms."""
    @property
    def ack_delay_ns(self) -> int | None:
        """Delay that the receiver reports to have added, ns."""
    @property
    def one_way_delay_ns(self) -> int | None:
        """One-way delay of the newest packet acknowledged, ns."""
    @property
    def one_way_delay_ms(self) -> float | None:
        """One-way delay of the newest packet acknowledged, ms."""
    @property
    def sent_ns(self) -> int:
        """When the newest packet acknowledged was sent, ns."""
    @property
    def delivery_rate_bps(self) -> float | None:
        """Delivery rate of the rate sample, bit/s."""
    @property
    def delivered_bytes(self) -> int:
        """Rate sample: bytes delivered over ``interval_ns``."""
    @property
    def interval_ns(self) -> int | None:
        """Rate sample: interval, ns."""
    @property
    def delivered_total_bytes(self) -> int:
        """Bytes delivered since the start of the connection, this ACK included."""
    @property
    def prior_delivered_total_bytes(self) -> int:
        """``delivered_total_bytes`` when the newest packet acknowledged was sent."""
    @property
    def tx_in_flight_bytes(self) -> int:
        """Bytes in flight when the newest packet acknowledged was sent."""
    @property
    def lost_since_sent_bytes(self) -> int:
        """Bytes declared lost between the sending of that packet and now, without those of this step's `Loss`."""
    @property
    def app_limited(self) -> bool:
        """The application, not the window, limited sending."""
    @property
    def cwnd_limited(self) -> bool:
        """The window was full at some point in the last round trip."""
    @property
    def retransmit(self) -> bool:
        """The newest packet acknowledged had been retransmitted."""
    @property
    def cumulative(self) -> bool:
        """The ACK moves the cumulative acknowledgement."""
    @property
    def in_recovery(self) -> bool:
        """The host is repairing losses."""

@final
class Loss:
    """Packets newly found lost."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def lost_bytes(self) -> int:
        """Bytes newly declared lost."""
    @property
    def lost_packets(self) -> int:
        """Packets newly declared lost."""
    @property
    def newest_lost_sent_ns(self) -> int:
        """When the newest of them was sent, ns."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight after the loss is accounted."""
    @property
    def prior_in_flight_bytes(self) -> int:
        """Bytes in flight before it."""
    @property
    def tx_in_flight_bytes(self) -> int:
        """Bytes in flight when the newest of them was sent, itself included."""
    @property
    def lost_since_sent_bytes(self) -> int:
        """Bytes declared lost between the sending of the newest of them and now, these included."""
    @property
    def app_limited(self) -> bool:
        """When the newest of them was sent, the application, not the window, limited sending."""
    @property
    def starts_episode(self) -> bool:
        """This loss opens a recovery episode: reduce the window once per episode, not once per loss."""

@final
class Timeout:
    """A retransmission timeout (TCP) or the silence timer of a datagram host."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight before the timeout."""
    @property
    def consecutive(self) -> int:
        """1 for the first expiry since an ACK, 2 for the next, …"""

@final
class Undo:
    """The episode that began at ``started_ns`` was no loss: packets had been reordered or delayed."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def started_ns(self) -> int:
        """When the episode began, ns."""

@final
class Sent:
    """A packet leaves the host."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def bytes(self) -> int:
        """Size of the packet, bytes."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight, this packet included."""

@final
class Resume:
    """First packet after the flow had nothing in flight."""

    @property
    def now_ns(self) -> int:
        """Now, ns from the start of the run."""
    @property
    def idle_ns(self) -> int:
        """How long nothing was in flight, ns."""

@disjoint_base
class ControllerCore:
    """The native half of ``paceline.Controller``: what the controller decides, checked as it is set."""

    def __new__(cls, path: PathInfo) -> ControllerCore: ...
    @property
    def path(self) -> PathInfo:
        """What the host told about the path."""
    @property
    def packet_bytes(self) -> int:
        """Size of a full data packet on the wire, bytes."""
    cwnd_bytes: float
    cwnd_packets: float
    pacing_bps: float | None
    send_quantum_bytes: int
    next_timer_ns: int | None
    timeout_ns: int | None
