# SPDX-License-Identifier: MIT OR GPL-2.0-only
# Client, router, server, a namespace each: c (c0) - (r0) r (r1) - (s0) s. The bottleneck is r1, the delay is on the way back.
# Without segmentation offload: a packet is a packet. The tc of this shell is the guest's (see guest).
for n in c r s; do ip netns add $n; ip -n $n link set lo up; done
ip link add c0 netns c type veth peer name r0 netns r
ip link add s0 netns s type veth peer name r1 netns r
ip -n c address add 10.0.0.1/24 dev c0; ip -n r address add 10.0.0.2/24 dev r0
ip -n s address add 10.0.1.1/24 dev s0; ip -n r address add 10.0.1.2/24 dev r1
ip -n c address add fd00::1/64 dev c0 nodad; ip -n r address add fd00::2/64 dev r0 nodad
ip -n s address add fd00:1::1/64 dev s0 nodad; ip -n r address add fd00:1::2/64 dev r1 nodad
for x in "c c0" "r r0" "r r1" "s s0"; do set -- $x; ip -n $1 link set $2 gso_max_segs 1 gso_max_size 1514; ip -n $1 link set $2 up; done
ip -n c route add default via 10.0.0.2; ip -n s route add default via 10.0.1.2
ip -n c route add default via fd00::2; ip -n s route add default via fd00:1::2
ip netns exec r sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
for n in c s; do
    ip netns exec $n sh -c 'echo "4096 131072 33554432" > /proc/sys/net/ipv4/tcp_rmem; echo "4096 131072 33554432" > /proc/sys/net/ipv4/tcp_wmem
        echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save'
done

bottleneck() { # rate_mbit rtt_ms buffer_packets
    tc -n r qdisc replace dev r1 root handle 1: tbf rate ${1}mbit burst 3028 limit $(($3 * 1514))
    tc -n s qdisc replace dev s0 root netem delay ${2}ms limit 100000
}

serve() { # ports
    for port in "$@"; do ip netns exec s iperf3 -s -1 -p $port >/dev/null 2>&1 & done
    sleep 0.3
}
