// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The dumbbell of scenarios/dumbbell-n*.toml in htsim (github.com/Broadcom/csg-htsim), to compare speeds. benches/peers.py
// builds it against the folder that HTSIM names.
//
// N flows over P host pairs; three links each way, each a queue and a pipe; a drop-tail buffer of 1 BDP. htsim's TCP is NewReno
// without SACK, an ACK per packet; it repairs one hole per round trip, so slow start ends at 1.3 times the fair share of the BDP
// rather than in a flood of losses. Prints one JSON object; the CPU time is that of the event loop.
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/resource.h>
#include <vector>

static const int kPacketBytes = 1500;

static double CpuSeconds()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6;
}

// One direction of a link. Nothing is ever freed: the run ends with the process.
struct Link
{
    Queue* queue;
    Pipe* pipe;

    Link(EventList& events, double bps, double delayMs, mem_b buffer)
        : queue(new Queue((linkspeed_bps)bps, buffer, events, nullptr)), pipe(new Pipe((simtime_picosec)(delayMs * 1e9), events))
    {
    }
    void AppendTo(Route& route) const
    {
        route.push_back(queue);
        route.push_back(pipe);
    }
};

int main(int argc, char** argv)
{
    if (argc != 4)
    {
        std::fprintf(stderr, "usage: htsim-dumbbell FLOWS PAIRS SECONDS\n");
        return 2;
    }
    const int flows = std::atoi(argv[1]), pairs = std::atoi(argv[2]);
    const double duration = std::atof(argv[3]), rate = 1e9, rttMs = 25;
    const double bottleneckMs = rttMs / 4, accessMs = (rttMs / 2 - bottleneckMs) / 2, bdpBytes = rate * rttMs * 1e-3 / 8;
    const mem_b unlimited = (mem_b)1 << 40;

    EventList& events = EventList::getTheEventList();
    events.setEndtime((simtime_picosec)(duration * 1e12));
    Packet::set_packet_size(kPacketBytes);
    TcpRtxTimerScanner timers(timeFromMs(10), events);

    const Link there(events, rate, bottleneckMs, (mem_b)bdpBytes), back(events, rate, bottleneckMs, unlimited);
    std::vector<Link> up, down, returnUp, returnDown;
    for (int pair = 0; pair < pairs; ++pair)
        for (auto* links : {&up, &down, &returnUp, &returnDown}) links->emplace_back(events, 10 * rate, accessMs, unlimited);

    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> start(0, 0.1e12);
    std::vector<TcpSink*> sinks;
    for (int flow = 0; flow < flows; ++flow)
    {
        const int pair = flow % pairs;
        auto* source = new TcpSrc(nullptr, nullptr, events);
        auto* sink = new TcpSink();
        auto *forward = new Route(), *reverse = new Route();
        for (const Link& link : {up[pair], there, down[pair]}) link.AppendTo(*forward);
        for (const Link& link : {returnUp[pair], back, returnDown[pair]}) link.AppendTo(*reverse);
        forward->push_back(sink);
        reverse->push_back(source);
        source->set_ssthresh((uint64_t)(1.3 * bdpBytes / flows));
        timers.registerTcp(*source);
        source->connect(*forward, *reverse, *sink, (simtime_picosec)start(random));
        sinks.push_back(sink);
    }

    unsigned long handled = 0;
    const double before = CpuSeconds();
    while (EventList::doNextEvent()) ++handled;
    const double cpu = CpuSeconds() - before;
    unsigned long packets = 0;
    for (const TcpSink* sink : sinks) packets += sink->_cumulative_ack / kPacketBytes;
    std::printf("{\"packets\": %lu, \"events\": %lu, \"cpu_s\": %.6f}\n", packets, handled, cpu);
    return 0;
}
