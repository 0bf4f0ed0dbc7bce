/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the queueing discipline reads from a TCP header (RFC 9293, 3.1; options RFC 7323, RFC 2018), from bytes as they are on the
 * wire. Plain C without kernel headers, so that tests run it natively. Whatever the bytes are, none beyond `bytes` is read.
 */
#ifndef PACELINE_MPC_TCP_H
#define PACELINE_MPC_TCP_H

#include "mpc_meter.h"

#define TCP_LEAST_HEADER 20u
#define TCP_MOST_HEADER 60u
#define TCP_FIN 0x01u
#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_ACK 0x10u

struct tcp_header {
	cc_u32 seq;
	cc_u32 ack;
	cc_u32 tsval;
	cc_u32 tsecr;
	/* The first block; equal where there is none. */
	cc_u32 sack_begin;
	cc_u32 sack_end;
	cc_u32 header_bytes;
	cc_u32 bits;
	cc_u32 has_timestamp;
};

static inline cc_u32 tcp_u32(const unsigned char *at)
{
	return (cc_u32)at[0] << 24 | (cc_u32)at[1] << 16 | (cc_u32)at[2] << 8 | at[3];
}

static inline void tcp_read_options(struct tcp_header *header, const unsigned char *at, cc_u32 bytes)
{
	while (bytes) {
		cc_u32 kind = at[0], length = 1;

		if (kind == 0)
			return;
		if (kind != 1) {
			if (bytes < 2 || at[1] < 2 || at[1] > bytes)
				return;
			length = at[1];
			if (kind == 8 && length == 10) {
				header->has_timestamp = 1;
				header->tsval = tcp_u32(at + 2);
				header->tsecr = tcp_u32(at + 6);
			} else if (kind == 5 && length >= 10) {
				header->sack_begin = tcp_u32(at + 2);
				header->sack_end = tcp_u32(at + 6);
			}
		}
		at += length;
		bytes -= length;
	}
}

/* The length of the header that begins with these 20 bytes, or 0 if it is none. */
static inline cc_u32 tcp_header_bytes(const unsigned char *at)
{
	cc_u32 bytes = (at[12] >> 4) * 4u;

	return bytes >= TCP_LEAST_HEADER ? bytes : 0;
}

/* Reads a header of `bytes` bytes; 0 if it is none. */
static inline int tcp_read(struct tcp_header *header, const unsigned char *at, cc_u32 bytes)
{
	if (bytes < TCP_LEAST_HEADER || !tcp_header_bytes(at) || tcp_header_bytes(at) > bytes)
		return 0;
	header->seq = tcp_u32(at + 4);
	header->ack = tcp_u32(at + 8);
	header->tsval = header->tsecr = header->sack_begin = header->sack_end = header->has_timestamp = 0;
	header->header_bytes = tcp_header_bytes(at);
	header->bits = at[13];
	tcp_read_options(header, at + TCP_LEAST_HEADER, header->header_bytes - TCP_LEAST_HEADER);
	return 1;
}

#endif
