package sshfwd

import (
	"context"

	"gpg-bridge/sshfwd/config"
)

const fdpassExists = false

func (*dialer) runProxyDialer(context.Context, string) (*route, error) {
	return nil, &config.UnsupportedError{Option: "ProxyUseFdpass", Value: "yes"}
}
