#!/bin/bash
# What Linux's own queues do: the rows of crates/sim/tests/queues_linux.csv. Run as root in a machine that is nobody's, whose time is
# counted in instructions:
#
#   WITH="bash ip tc iperf3" scripts/linux/in-guest.sh scripts/linux/queues.sh [QUEUE…]
#
# Client - router - server in three namespaces, segmentation offload off. Bottleneck: 20 Mbit/s of tbf at the router, the queue under
# test its child; 40 ms of netem on the server's way back. Twenty times a second tc says what waits in the queue and what it has dropped
# and marked, and iperf3 once a second what the flows have sent: all numbers are of the time after the first quarter of a run.
# shellcheck disable=SC2086 # what tc is told is several words
seconds=40
mbit=20
for n in c r s; do ip netns add $n; ip -n $n link set lo up; done
ip link add c0 netns c type veth peer name r0 netns r
ip link add s0 netns s type veth peer name r1 netns r
ip -n c addr add 10.0.0.1/24 dev c0; ip -n r addr add 10.0.0.2/24 dev r0
ip -n s addr add 10.0.1.1/24 dev s0; ip -n r addr add 10.0.1.2/24 dev r1
for x in "c c0" "r r0" "r r1" "s s0"; do
  set -- $x "$@"
  ip -n $1 link set $2 gso_max_segs 1 gso_max_size 1514
  ip -n $1 link set $2 up
  shift 2
done
ip -n c route add default via 10.0.0.2; ip -n s route add default via 10.0.1.2
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
for n in c s; do
  ip netns exec $n sysctl -qw net.ipv4.tcp_rmem="4096 131072 33554432" net.ipv4.tcp_wmem="4096 131072 33554432" \
    net.ipv4.tcp_no_metrics_save=1
done
tc -n c qdisc replace dev c0 root pfifo limit 100000
tc -n s qdisc replace dev s0 root netem delay 40ms limit 100000

options() { # queue ecn
  case $1.$2 in
    red.0) echo red limit 600000 min 30280 max 90840 avpkt 1514 burst 33 bandwidth 20mbit probability 0.1 ;;
    red.1) echo red limit 600000 min 30280 max 90840 avpkt 1514 burst 33 bandwidth 20mbit probability 0.1 ecn harddrop ;;
    *.0) echo $1 limit 1000 noecn ;;
    *.1) echo $1 limit 1000 ecn ;;
  esac
}

# One tc answers all, and nothing is started to wait: that would take processor time from the flows.
mkfifo /tmp/silence
exec 3<>/tmp/silence
samples() { # end in us
  sleep $(( seconds / 4 ))
  while (( ${EPOCHREALTIME/./} < $1 )); do
    echo qdisc show dev r1
    read -rt 0.05 <&3
  done
}

measure() { # queue controller flows ecn; "udp" is 22 Mbit/s on the wire, whatever becomes of it
  for n in c s; do ip netns exec $n sysctl -qw net.ipv4.tcp_ecn=$4; done
  tc -n r qdisc replace dev r1 root handle 1: tbf rate ${mbit}mbit burst 3028 limit 2000000
  tc -n r qdisc replace dev r1 parent 1: handle 2: $(options $1 $4)
  ip netns exec s iperf3 -s -1 >/dev/null 2>&1 &
  sleep 1
  begin_us=${EPOCHREALTIME/./}
  samples $(( begin_us + seconds * 1000000 )) | tc -n r -s -batch - >/tmp/queue &
  how="-C $2 -P $3"
  [ $2 = udp ] && how="-u -l 1472 -b 21390K"
  ip netns exec c iperf3 -c 10.0.1.1 $how -t $seconds -i 1 -J >/tmp/report 2>&1
  wait
  # The queue: the lines after "qdisc ... 2:".
  awk -v mbit=$mbit '
    $1 == "qdisc" { mine = $3 == "2:" }
    !mine { next }
    $1 == "Sent" { drops = $7 + 0; if (count == 0) first_drops = drops }
    $1 == "backlog" { wait[count++] = $3 * 1514 * 8 / mbit / 1000; sum += wait[count - 1] }
    { for (i = 1; i < NF; i++) if ($i == "ecn_mark" || $i == "marked") { marks = $(i + 1); if (!marked++) first_marks = marks } }
    END {
      for (i = 1; i < count; i++) { # insertion sort
        value = wait[i]
        for (j = i; j > 0 && wait[j - 1] > value; j--) wait[j] = wait[j - 1]
        wait[j] = value
      }
      printf "%.3f,%.2f,%d,%d", sum / count, wait[int(0.95 * count)], drops - first_drops, marks - first_marks
    }' /tmp/queue >/tmp/waits
  # Sums over the flows, one per report.
  awk -F'[:,]' -v length_s=$seconds -v mbit=$mbit '
    /"sum":/ { sum = 1 } /"streams":/ { sum = 0 } /"sum_sent"/ { exit }
    !sum { next } /"start"/ { start = $2 } /"end"/ { end = $2 }
    /"bytes"/ && start >= length_s / 4 { bytes += $2; if (!since) since = start; until = end }
    END { printf "%.4f", bytes * 8 / (until - since) / mbit / 1000000 }' /tmp/report >/tmp/goodput
  [ $2 = udp ] && echo nan >/tmp/goodput
  echo "$1,$2,$3,$4,$(cat /tmp/goodput),$(cat /tmp/waits)"
  tc -n r qdisc del dev r1 root
}

echo "queue,controller,flows,ecn,utilisation,mean_wait_ms,p95_wait_ms,drops,marks"
for queue in ${*:-codel fq_codel pie red}; do
  measure $queue udp 1 0
  for controller in cubic reno; do
    for flows in 1 4; do
      for ecn in 0 1; do measure $queue $controller $flows $ecn; done
    done
  done
done
