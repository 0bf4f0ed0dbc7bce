// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The dumbbell of scenarios/dumbbell-n*.toml in ns-3, to compare speeds. benches/peers.py builds and runs it; the program it
// becomes is linked against ns-3 and so under ns-3's licence, GPL-2.0-only. It is part of nothing else here.
//
//   S_0 … S_{P-1} --access-- R1 ==bottleneck== R2 --access-- D_0 … D_{P-1}
//
// N bulk CUBIC flows take the P host pairs in turn. Three links each way; a drop-tail device queue of 1 BDP, no queueing
// discipline; SACK, time stamps, MSS 1448. A quarter of the RTT is the bottleneck's one-way delay, the rest is split over
// the two access links. Prints one JSON object; the CPU time is that of the event loop.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

// ns-3 before 3.39 hands callbacks over by value.
#ifdef NS3_CALLBACKS_BY_VALUE
#define CALLBACK(T) T
#else
#define CALLBACK(T) const T&
#endif

static double CpuSeconds()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6;
}

// Constant-time forwarding for the routers, 4 addresses per pair; ns-3's own static routing searches a list, which would be
// charged to ns-3 for no reason.
class PairRouting : public Ipv4RoutingProtocol
{
  public:
    // Routes to 10.x.x.x and 11.x.x.x.
    std::vector<Ptr<Ipv4Route>> left, right;

    Ptr<Ipv4Route> Find(Ipv4Address destination) const
    {
        const uint32_t a = destination.Get(), pair = (a & 0xffffff) >> 2, net = a >> 24;
        const auto& routes = net == 10 ? left : right;
        return (net == 10 || net == 11) && pair < routes.size() ? routes[pair] : nullptr;
    }
    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& h, Ptr<NetDevice>, Socket::SocketErrno&) override
    {
        return Find(h.GetDestination());
    }
    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& h, Ptr<const NetDevice>,
                    CALLBACK(UnicastForwardCallback) forward, CALLBACK(MulticastForwardCallback),
                    CALLBACK(LocalDeliverCallback), CALLBACK(ErrorCallback)) override
    {
        auto route = Find(h.GetDestination());
        if (!route) return false;
        forward(route, packet, h);
        return true;
    }
    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4>) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit = Time::S) const override {}
};

static uint64_t g_data = 0, g_acks = 0, g_drops = 0;
static void OnData(Ptr<const Packet>) { ++g_data; }
static void OnAck(Ptr<const Packet>) { ++g_acks; }
static void OnDrop(Ptr<const Packet>) { ++g_drops; }

// A link whose drops happen, and are counted, at the device queue.
static NetDeviceContainer Link(Ptr<Node> a, Ptr<Node> b, double bps, double delayMs, uint32_t queueA, uint32_t queueB)
{
    PointToPointHelper helper;
    helper.DisableFlowControl();
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate((uint64_t)bps)));
    helper.SetDeviceAttribute("Mtu", UintegerValue(1500));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds((int64_t)(delayMs * 1e6))));
    NetDeviceContainer devices = helper.Install(a, b);
    const uint32_t sizes[] = {queueA, queueB};
    for (int end : {0, 1})
        DynamicCast<PointToPointNetDevice>(devices.Get(end))->GetQueue()->SetMaxSize(
            QueueSize(QueueSizeUnit::PACKETS, sizes[end]));
    return devices;
}

static uint32_t SetAddress(Ptr<NetDevice> device, uint32_t address)
{
    Ptr<Ipv4> ip = device->GetNode()->GetObject<Ipv4>();
    const uint32_t i = ip->AddInterface(device);
    ip->AddAddress(i, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("/30")));
    ip->SetMetric(i, 1);
    ip->SetUp(i);
    return i;
}

static Ptr<Ipv4Route> Route(Ptr<NetDevice> out, uint32_t gateway, uint32_t self)
{
    Ptr<Ipv4Route> route = Create<Ipv4Route>();
    route->SetOutputDevice(out);
    route->SetGateway(Ipv4Address(gateway));
    route->SetSource(Ipv4Address(self));
    return route;
}

int main(int argc, char* argv[])
{
    uint32_t flows = 2, pairs = 0;
    double rate = 1e9, rttMs = 25, duration = 5, spread = 0.1;
    CommandLine arguments;
    arguments.AddValue("flows", "CUBIC flows", flows);
    arguments.AddValue("pairs", "host pairs (0: one per flow, at most 10)", pairs);
    arguments.AddValue("rate", "bottleneck, bit/s", rate);
    arguments.AddValue("rtt", "base RTT, ms", rttMs);
    arguments.AddValue("duration", "simulated time, s", duration);
    arguments.AddValue("spread", "flows begin uniformly within, s", spread);
    arguments.Parse(argc, argv);
    if (!pairs) pairs = std::min(flows, 10u);

    const double bdpBytes = rate * rttMs * 1e-3 / 8;
    const uint32_t buffer = std::max(2.0, std::round(bdpBytes / 1500));
    // Large enough never to limit: all of BDP and queue for one of two flows, four fair shares of it for one of many.
    const uint32_t socket = std::min(1e9, std::max(65536.0, std::min(2.0, 4.0 / flows) * (bdpBytes + buffer * 1500.0)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socket));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socket));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    Ptr<Node> r1 = CreateObject<Node>(), r2 = CreateObject<Node>();
    NodeContainer senders, receivers;
    senders.Create(pairs);
    receivers.Create(pairs);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(senders);
    stack.Install(receivers);
    stack.Install(r1);
    stack.Install(r2);
    Ptr<PairRouting> routing1 = CreateObject<PairRouting>(), routing2 = CreateObject<PairRouting>();
    r1->GetObject<Ipv4>()->SetRoutingProtocol(routing1);
    r2->GetObject<Ipv4>()->SetRoutingProtocol(routing2);

    const uint32_t left = 10u << 24, right = 11u << 24, middle = 12u << 24, unlimited = 10000000;
    const double bottleneckMs = rttMs / 4, accessMs = (rttMs / 2 - bottleneckMs) / 2;
    NetDeviceContainer bottleneck = Link(r1, r2, rate, bottleneckMs, buffer, unlimited);
    SetAddress(bottleneck.Get(0), middle + 1);
    SetAddress(bottleneck.Get(1), middle + 2);
    Ipv4StaticRoutingHelper hostRouting;
    for (uint32_t i = 0; i < pairs; ++i)
    {
        const uint32_t l = left + 4 * i, r = right + 4 * i;
        NetDeviceContainer dl = Link(senders.Get(i), r1, 10 * rate, accessMs, unlimited, unlimited);
        NetDeviceContainer dr = Link(r2, receivers.Get(i), 10 * rate, accessMs, unlimited, unlimited);
        const uint32_t il = SetAddress(dl.Get(0), l + 2);
        SetAddress(dl.Get(1), l + 1);
        SetAddress(dr.Get(0), r + 1);
        const uint32_t ir = SetAddress(dr.Get(1), r + 2);
        hostRouting.GetStaticRouting(senders.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(Ipv4Address(l + 1), il);
        hostRouting.GetStaticRouting(receivers.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(Ipv4Address(r + 1), ir);
        routing1->left.push_back(Route(dl.Get(1), l + 2, l + 1));
        routing1->right.push_back(Route(bottleneck.Get(0), middle + 2, middle + 1));
        routing2->right.push_back(Route(dr.Get(0), r + 2, r + 1));
        routing2->left.push_back(Route(bottleneck.Get(1), middle + 1, middle + 2));
    }
    bottleneck.Get(1)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&OnData));
    bottleneck.Get(0)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&OnAck));
    DynamicCast<PointToPointNetDevice>(bottleneck.Get(0))->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&OnDrop));

    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        const uint32_t i = flow % pairs;
        const uint16_t port = 1000 + flow / pairs;
        Ptr<PacketSink> sink = CreateObject<PacketSink>();
        sink->SetAttribute("Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), port)));
        sink->SetAttribute("Protocol", TypeIdValue(TcpSocketFactory::GetTypeId()));
        receivers.Get(i)->AddApplication(sink);
        sink->SetStartTime(Seconds(0));
        Ptr<BulkSendApplication> source = CreateObject<BulkSendApplication>();
        source->SetAttribute("Remote", AddressValue(InetSocketAddress(Ipv4Address(right + 4 * i + 2), port)));
        source->SetAttribute("SendSize", UintegerValue(1448));
        source->SetAttribute("Protocol", TypeIdValue(TcpSocketFactory::GetTypeId()));
        senders.Get(i)->AddApplication(source);
        source->SetStartTime(Seconds(random->GetValue(0, spread)));
    }
    Simulator::Stop(Seconds(duration));

    const double before = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - before;
    std::printf("{\"packets\": %lu, \"acks\": %lu, \"drops\": %lu, \"events\": %lu, \"cpu_s\": %.6f}\n", g_data, g_acks, g_drops,
                (unsigned long)Simulator::GetEventCount(), cpu);
    Simulator::Destroy();
    return 0;
}
