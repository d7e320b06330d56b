package config

import (
	"strconv"
	"strings"
)

// A QoS is IPQoS of ssh_config(5): the values of the TOS field of IPv4, or the traffic class of
// IPv6, while a terminal is used, and otherwise; NoQoS leaves the system's.
type QoS struct{ Interactive, Bulk int }

// NoQoS is IPQoS none.
const NoQoS = -1

// parseQoS reads IPQoS as ssh -G prints it, one word or two.
func parseQoS(value string) QoS {
	first, second, two := strings.Cut(strings.ToLower(strings.TrimSpace(value)), " ")
	if !two {
		second = first
	}
	return QoS{qosValue(first), qosValue(strings.TrimSpace(second))}
}

// qosValue reads one word (parse_ipqos in OpenSSH's misc.c). RFC 2474 and 2597 have DSCPs, which
// are the upper six bits; RFC 1349 has the three that OpenSSH 10.1 no longer takes.
func qosValue(word string) int {
	switch word {
	case "ef":
		return 0xb8
	case "va":
		return 0xb0
	case "le":
		return 0x04
	case "lowdelay":
		return 0x10
	case "throughput":
		return 0x08
	case "reliability":
		return 0x04
	}
	if len(word) == 3 && word[:2] == "cs" && word[2] >= '0' && word[2] <= '7' {
		return int(word[2]-'0') << 5
	}
	if len(word) == 4 && word[:2] == "af" && word[2] >= '1' && word[2] <= '4' && word[3] >= '1' && word[3] <= '3' {
		return int(word[2]-'0')<<5 | int(word[3]-'0')<<3
	}
	if n, err := strconv.ParseUint(word, 0, 8); err == nil {
		return int(n)
	}
	return NoQoS
}
