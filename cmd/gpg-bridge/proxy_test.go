package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProxyRefusesPorts(t *testing.T) {
	for _, args := range [][]string{{"dev", "0"}, {"dev", "65536"}, {"dev", "ssh"}, {"--", "dev", "-1"}, {"--via", "nc", "-J", "gate", "dev", "22"}} {
		code, stdout, stderr := runMain(t, "", append([]string{"proxy"}, args...)...)
		require.Equal(t, 2, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "see gpg-bridge proxy --help")
	}
}
