package bridge

import (
	"context"
	"io"

	"gpg-bridge/remoteside"
)

// A Link is what a bridge needs of the SSH connection; see [Over].
type Link interface {
	remoteside.Host

	// Forward has the host listen on path, and calls serve for each connection
	// there, in a goroutine of its own, until the Forward is closed. ctx bounds
	// the request. The error is a *sshfwd.ForwardRefusedError where the host
	// refused.
	Forward(ctx context.Context, path string, serve func(context.Context, io.ReadWriteCloser)) (Forward, error)

	// DialUnix connects to the socket at path from the host's side. The error
	// is a *sshfwd.DialUnixError where the host refused; one that learns it
	// later has it as that of the first Read.
	DialUnix(ctx context.Context, path string) (io.ReadWriteCloser, error)
}

// A Forward is one socket on the host. Close ends it with its connections, and
// waits for the serve calls no longer than ctx.
type Forward interface {
	Close(ctx context.Context) error
}

// A Connection is a Link in its own words, as *sshfwd.Client and *mux.Link are:
// served connections are an S, dialed ones a D, forwards an F.
type Connection[S, D io.ReadWriteCloser, F Forward] interface {
	remoteside.Host
	Forward(ctx context.Context, path string, serve func(context.Context, S)) (F, error)
	DialUnix(ctx context.Context, path string) (D, error)
}

// Over makes a Link of a connection. What goes over it is not touched.
func Over[S, D io.ReadWriteCloser, F Forward](connection Connection[S, D, F]) Link {
	return link[S, D, F]{connection, connection}
}

type link[S, D io.ReadWriteCloser, F Forward] struct {
	remoteside.Host
	connection Connection[S, D, F]
}

func (l link[S, D, F]) Forward(ctx context.Context, path string, serve func(context.Context, io.ReadWriteCloser)) (Forward, error) {
	forward, err := l.connection.Forward(ctx, path, func(ctx context.Context, conn S) { serve(ctx, conn) })
	if err != nil {
		return nil, err // not a typed nil
	}
	return forward, nil
}

func (l link[S, D, F]) DialUnix(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	conn, err := l.connection.DialUnix(ctx, path)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
