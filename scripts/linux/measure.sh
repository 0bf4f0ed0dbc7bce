#!/bin/sh
# What real Linux TCP does on the paths of crates/sim/tests/linux.csv. Run as root inside a machine that is nobody's; a guest whose time
# is counted in instructions (qemu -icount) gives the same packets however busy its host is. Needs iproute2, iperf3 and a
# kernel with tbf, netem and the controllers as modules. Writes to the file $OUT: a line "=== ..." per run with what tbf counted, then
# ten lines a second: end s, bytes, retransmissions, congestion window bytes, smoothed RTT us.
#
# Client - router - server in three namespaces. Bottleneck: tbf with a byte limit on the router; round-trip delay: netem on the
# server's way back; random loss: netem on the client. Segmentation offload off, so every packet is one packet.
: "${OUT:=/dev/stdout}"
for n in c r s; do ip netns add $n; ip -n $n link set lo up; done
ip link add c0 netns c type veth peer name r0 netns r
ip link add s0 netns s type veth peer name r1 netns r
ip -n c addr add 10.0.0.1/24 dev c0; ip -n r addr add 10.0.0.2/24 dev r0
ip -n s addr add 10.0.1.1/24 dev s0; ip -n r addr add 10.0.1.2/24 dev r1
for x in "c c0" "r r0" "r r1" "s s0"; do
  set -- $x
  ip -n $1 link set $2 gso_max_segs 1 gso_max_size 1514
  ip -n $1 link set $2 up
done
ip -n c route add default via 10.0.0.2; ip -n s route add default via 10.0.1.2
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
for n in c s; do
  ip netns exec $n sysctl -qw net.ipv4.tcp_rmem="4096 131072 33554432" net.ipv4.tcp_wmem="4096 131072 33554432" \
    net.ipv4.tcp_no_metrics_save=1
done

measure() { # controller rate_mbit rtt_ms buffer_packets seconds loss_percent
  tc -n r qdisc replace dev r1 root handle 1: tbf rate ${2}mbit burst 3028 limit $(( $4 * 1514 ))
  tc -n s qdisc replace dev s0 root netem delay ${3}ms limit 100000
  if [ "$6" = 0 ]; then lose="pfifo"; else lose="netem loss ${6}%"; fi
  tc -n c qdisc replace dev c0 root $lose limit 100000
  ip netns exec s iperf3 -s -1 > /dev/null 2>&1 &
  sleep 1
  ip netns exec c iperf3 -c 10.0.1.1 -C $1 -t $5 -i 0.1 -J > /tmp/report 2>&1
  wait
  {
    echo "=== cc=$1 rate=$2 rtt=$3 buf=$4 secs=$5 loss=$6 $(tc -n r -s qdisc show dev r1 | tr '\n' ' ')"
    # The socket of a report and its sum have fields of the same names.
    awk -F'[:,]' '/"sum_sent"/ { exit } /"sum":/ { skip = 1 } /"socket"/ { skip = 0 } skip { next }
      /"bytes"/ { bytes = $2 } /"retransmits"/ { again = $2 } /"snd_cwnd"/ { cwnd = $2 } /"rtt"/ { rtt = $2 }
      /"end"/ { if ($2 + 0 > 0) end = $2 }
      /"pmtu"/ { printf "%.1f %d %d %d %d\n", end, bytes, again, cwnd, rtt }' /tmp/report
  } >> "$OUT"
  tc -n r qdisc del dev r1 root
}

for controller in reno cubic bic highspeed htcp scalable westwood bbr illinois vegas veno yeah cdg; do
  measure $controller 10 100 41 30 0
  measure $controller 5 20 33 30 0
  measure $controller 20 40 67 30 0.1
  measure $controller 20 40 67 30 1
done
