package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The values of all names are compared with ssh's in TestTrafficIsMarkedAsBySSH.
func TestQoS(t *testing.T) {
	for value, want := range map[string]QoS{
		"":                    {NoQoS, NoQoS},
		"none":                {NoQoS, NoQoS},
		"af21 cs1":            {0x48, 0x20},
		"lowdelay throughput": {0x10, 0x08},
		"EF":                  {0xb8, 0xb8},
		"0x10 none":           {0x10, NoQoS},
		"0 255":               {0, 255},
		"256":                 {NoQoS, NoQoS},
		"af51 cs8":            {NoQoS, NoQoS},
	} {
		require.Equal(t, want, parseQoS(value), value)
	}
}
