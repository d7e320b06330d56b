package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"

	"gpg-bridge/sshfwd/config"
)

// A Target is an account on a host, reached in one way, with one agent behind it.
type Target struct {
	ID      string // for package share
	Name    string // as the user named it
	Address string // user@host:port, resolved
	Config  *config.Config
	Spec    Spec

	// Unproxied: ssh_config's ProxyCommand is gpg-bridge proxy, and Config has the proxy's own
	// way to the host in its place.
	Unproxied bool
}

// Resolve asks ssh what ssh_config makes of a Spec. options are those of [Spec.SSH], possibly
// with more of a session's. A ProxyCommand that is gpg-bridge proxy is taken out: a bridge that
// used it would start a bridge. Where the Spec says nothing of the agent and the host, the
// proxy's flags count, so that both come to the same bridge. Errors are a *config.Error or a
// *ProxyLineError.
func Resolve(ctx context.Context, spec Spec, options config.Options, home *Home) (*Target, error) {
	resolved, err := config.Resolve(ctx, options)
	if err != nil {
		return nil, err
	}
	line, err := inner(resolved)
	if err != nil {
		return nil, err
	}
	if line != nil {
		spec.adopt(line)
	}
	t := Of(resolved, spec, home.Name())
	t.Unproxied = line != nil
	return t, nil
}

// Of returns the target of a configuration, which it does not change. Whatever makes two
// bridges differ makes two targets; one host under two aliases is one target. home is the
// GnuPG home.
func Of(resolved *config.Config, spec Spec, home string) *Target {
	address := resolved.User + "@" + net.JoinHostPort(strings.ToLower(resolved.Hostname), strconv.Itoa(resolved.Port))
	sum := sha256.New()
	for _, part := range []string{
		address, resolved.HostKeyAlias, resolved.ProxyJump, resolved.ProxyCommandText(),
		spec.AgentSocket, strconv.FormatBool(spec.AllowUnrestricted), strconv.FormatBool(spec.NoCompat),
		home, spec.RemoteSocket, spec.Keys,
	} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return &Target{
		ID: hex.EncodeToString(sum.Sum(nil)[:IDDigits/2]), Name: resolved.Destination, Address: address,
		Config: resolved, Spec: spec,
	}
}

// IDDigits is the length of a target's ID, which is hexadecimal.
const IDDigits = 20
