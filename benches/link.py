"""Speed and exactness of `paceline link`: iperf3 through it beside iperf3 over a plain veth pair, and one-way delays.

Needs root, iperf3 and iproute2. Run on an otherwise idle machine: python benches/link.py
"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

SECONDS = "4"
PORT = 5399
#: Offered by UDP: 1 Gbit/s in packets of 1500 bytes.
UDP = ("-u", "-b", "1G", "-l", "1472", "--dont-fragment")
NAMESPACE = "paceline-bench"
HOST_ADDRESS = "198.51.100.1"
INSIDE_ADDRESS = "198.51.100.2"


def iperf(before: Sequence[str], address: str, *arguments: str, at: Sequence[str] = ()) -> str:
    """Throughput and loss of iperf3 from the namespace or link that the command `before` enters, to a server that `at` enters."""
    server = subprocess.Popen([*at, "iperf3", "-s", "-1", "-p", str(PORT)], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    client = ["iperf3", "-J", "-c", address, "-p", str(PORT), "-t", SECONDS, *arguments]
    done = subprocess.run([*before, *client], capture_output=True, text=True, check=False)
    server.wait(10)
    if done.returncode:
        return f"failed: {done.stderr.strip()}"
    end = json.loads(done.stdout)["end"]
    received = end.get("sum_received") or end["sum"]
    lost = f", {end['sum']['lost_percent']:.2f} % lost" if "-u" in arguments else ""
    return f"{received['bits_per_second'] / 1e9:.2f} Gbit/s{lost}\n    " + done.stderr.strip().replace("\n", "\n    ")


def veth() -> None:
    """A pair of devices, one end in a namespace."""
    for line in (
        f"ip netns add {NAMESPACE}",
        f"ip link add bench0 type veth peer name bench1 netns {NAMESPACE}",
        f"ip address add {HOST_ADDRESS}/30 dev bench0",
        "ip link set bench0 up",
        f"ip -n {NAMESPACE} address add {INSIDE_ADDRESS}/30 dev bench1",
        f"ip -n {NAMESPACE} link set bench1 up",
    ):
        subprocess.run(line.split(), check=True)


def one_way(gap_s: float, count: int, base: str | None) -> None:
    """Sends stamped packets to `base`, or to the address in the environment."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((base or os.environ["PACELINE_BASE"], PORT))
    due = time.monotonic()
    for _ in range(count):
        due += gap_s
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)
        sender.send(struct.pack("q", time.monotonic_ns()) + bytes(200))
    time.sleep(0.3)
    sender.send(b"end")


def delays(before: Sequence[str], gap_ms: float, count: int, base: str = "") -> str:
    """Mean and quantiles of the one-way delay, ms."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("", PORT))
    client = [*before, sys.executable, __file__, "one-way", str(gap_ms / 1e3), str(count), base]
    found = []
    with subprocess.Popen(client, stderr=subprocess.DEVNULL):
        while (packet := receiver.recv(2000)) != b"end":
            found.append((time.monotonic_ns() - struct.unpack("q", packet[:8])[0]) / 1e6)
    receiver.close()
    found.sort()
    mean, p50, p99 = sum(found) / len(found), found[len(found) // 2], found[int(0.99 * len(found))]
    return f"mean {mean:.3f} ms, p50 {p50:.3f}, p99 {p99:.3f}"


def main() -> None:
    """Everything, in less than a minute."""
    veth()
    inside = ["ip", "netns", "exec", NAMESPACE]
    # The first block of addresses: no other link may be running.
    base = "198.18.0.1"

    def link(*options: str) -> list[str]:
        return ["paceline", "link", "--summary", *options, "--"]

    ten = link("--uplink", "10 Gbit/s", "--downlink", "10 Gbit/s", "--delay", "5 ms", "--buffer", "unlimited")
    try:
        print("TCP, veth:", iperf(inside, HOST_ADDRESS))
        print("TCP, link without limits:", iperf(link(), base))
        print("TCP, veth, 8 flows:", iperf(inside, HOST_ADDRESS, "-P", "8"))
        print("TCP, link of 10 Gbit/s and 10 ms RTT, 8 flows:", iperf(ten, base, "-P", "8"))
        with tempfile.TemporaryDirectory() as folder:
            logs = ("--uplink-log", f"{folder}/up.log", "--downlink-log", f"{folder}/down.log")
            print("the same with logs:", iperf([*ten[:-1], *logs, "--"], base, "-P", "8"))
            print("the same with a record:", iperf([*ten[:-1], "--out", f"{folder}/record", "--"], base, "-P", "8"))
        print("TCP, link without limits, to outside (veth):", iperf(link("--outside"), INSIDE_ADDRESS, at=inside))
        print("UDP at 1 Gbit/s, veth:", iperf(inside, HOST_ADDRESS, *UDP))
        print("UDP at 1 Gbit/s, the same link:", iperf(ten, base, *UDP))
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)
    for gap_ms, count in ((10, 200), (1, 2000)):
        print(f"one way, every {gap_ms} ms, loopback:", delays([], gap_ms, count, "127.0.0.1"))
        print(f"one way, every {gap_ms} ms, link of 20 ms:", delays(link("--delay", "20 ms"), gap_ms, count))
        realtime = link("--delay", "20 ms", "--realtime")
        print(f"one way, every {gap_ms} ms, link of 20 ms, --realtime:", delays(realtime, gap_ms, count))


if __name__ == "__main__":
    if sys.argv[1:2] == ["one-way"]:
        one_way(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4] or None)
    else:
        main()
