package fakeagent

import (
	"errors"
	"io"
)

// A Duplex is a connection whose two directions can be closed separately. Its pipes work in
// synctest's time.
type Duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

// Close closes both halves.
func (d Duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

// Pair returns a connection's two ends.
func Pair() (client, server Duplex) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	return Duplex{toClient, fromClient}, Duplex{toServer, fromServer}
}
