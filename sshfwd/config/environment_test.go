package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironmentIsSendEnvThenSetEnv(t *testing.T) {
	c := &Config{
		SendEnv: []string{"LC_*", "A?"},
		SetEnv:  []string{"LC_X=set", "B=1=2", "EMPTY="},
	}
	require.Equal(t, []EnvVar{
		{Name: "LC_X", Value: "ours"}, {Name: "AB", Value: ""},
		{Name: "LC_X", Value: "set"}, {Name: "B", Value: "1=2"}, {Name: "EMPTY", Value: ""},
	}, c.Environment([]string{"LC_X=ours", "AB=", "ABC=1", "A=1", "lc_x=1", "LC"}))
}
