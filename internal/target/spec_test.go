package target

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/sshfwd/config"
)

func parse(t *testing.T, groups Flags, args []string) Spec {
	t.Helper()
	spec := NewSpec("")
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	spec.AddFlags(set, groups)
	require.NoError(t, set.Parse(args))
	require.Empty(t, set.Args())
	return spec
}

// set gives a field a value that it does not have without flags.
func set(t *testing.T, field reflect.Value, name string) {
	t.Helper()
	switch value := field.Addr().Interface().(type) {
	case *string:
		*value = "-a " + name + `=",'`
	case *bool:
		*value = !*value
	case *int:
		*value += 22
	case *[]string:
		*value = []string{"-" + name, "a, b=c", ""}
	case *time.Duration:
		*value += 90 * time.Second
	default:
		require.Fail(t, "a field of a new kind", name)
	}
}

// Every field comes back from the words that it makes, alone and with all others. So a process
// in the background, a service and a ProxyCommand get the bridge that the user asked for. The
// fields that a group lacks are named here.
func TestSpecIsWhatItsWordsSay(t *testing.T) {
	for name, test := range map[string]struct {
		groups Flags
		lacks  []string
	}{
		"a process in the background": {All, []string{"Host"}}, // which follows the flags
		"a ProxyCommand":              {OfAgent | OfHost | OfProxy, []string{"Port", "Identities", "Options"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, kind := NewSpec(""), reflect.TypeFor[Spec]()
			for i := range kind.NumField() {
				field := kind.Field(i).Name
				one := NewSpec("")
				set(t, reflect.ValueOf(&one).Elem().Field(i), field)
				require.NotEqual(t, NewSpec(""), one)
				args := one.Args(test.groups)
				if slices.Contains(test.lacks, field) {
					require.Empty(t, args, field)
					continue
				}
				require.NotEmpty(t, args, field)
				require.Equal(t, one, parse(t, test.groups, args), "%q", args)
				set(t, reflect.ValueOf(&all).Elem().Field(i), field)
			}
			require.Equal(t, all, parse(t, test.groups, all.Args(test.groups)))
		})
	}
	require.Empty(t, NewSpec("").Args(All))
}

// Each field makes another target, except those that say how its bridge is kept up.
func TestFieldsThatMakeTargetsDiffer(t *testing.T) {
	same := []string{"Takeover", "Linger"}
	way := []string{"Host", "User", "Port", "Identities", "ConfigFile", "Options", "JumpHosts", "Via"} // ssh_config's, see there
	resolved := &config.Config{Hostname: "dev", Port: 22, User: "me"}
	plain, kind := Of(resolved, NewSpec("dev"), "/home"), reflect.TypeFor[Spec]()
	for i := range kind.NumField() {
		name, spec := kind.Field(i).Name, NewSpec("dev")
		set(t, reflect.ValueOf(&spec).Elem().Field(i), name)
		require.Equal(t, slices.Contains(same, name) || slices.Contains(way, name), Of(resolved, spec, "/home").ID == plain.ID, name)
	}
	require.Len(t, plain.ID, IDDigits)
}

func TestAbsoluteSpecMeansTheSameElsewhere(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	spec := Spec{
		ConfigFile: "config", AgentSocket: "S.agent", Identities: []string{"id", "~/id"},
		Options: []string{"IdentityFile=id", "User=me"}, RemoteSocket: "relative",
	}
	before := spec.Identities
	require.Equal(t, Spec{
		ConfigFile: filepath.Join(here, "config"), AgentSocket: filepath.Join(here, "S.agent"),
		Identities:   []string{filepath.Join(here, "id"), "~/id"},
		Options:      []string{`IdentityFile="` + filepath.Join(here, "id") + `"`, "User=me"},
		RemoteSocket: "relative",
	}, spec.Absolute())
	require.Equal(t, []string{"id", "~/id"}, before)
}

func TestPortFlag(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "22": 22, "65535": 65535, "ssh": 22} {
		var number port
		require.NoError(t, number.Set(text), text)
		require.Equal(t, want, int(number))
	}
	for _, text := range []string{"", "0", "00", "-1", "65536", "99999999999", "1x", "no-such-service"} {
		require.Error(t, new(port).Set(text), text)
	}
}

func TestKeysFlag(t *testing.T) {
	for value, want := range map[string]*bridge.Local{
		"":      {},
		"none":  {NoKeys: true},
		"A":     {Keys: []string{"A"}},
		"A,B C": {Keys: []string{"A", "B", "C"}},
	} {
		local := Spec{Keys: value}.Local()
		require.Equal(t, want, &bridge.Local{Keys: local.Keys, NoKeys: local.NoKeys}, value)
	}
}
