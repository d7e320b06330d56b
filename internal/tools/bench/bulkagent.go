package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"gpg-bridge/internal/testkit/env"
)

// bulkBlock is what one write of bulk data has: D lines of the greatest length that libassuan
// sends, 1000 bytes and an LF.
var bulkBlock = bytes.Repeat([]byte("D "+strings.Repeat("x", 998)+"\n"), 64)

// sendBulk sends bulkBytes in D lines, but not the END or OK after them.
func sendBulk(w io.Writer) error {
	for sent := 0; sent < bulkBytes; sent += len(bulkBlock) {
		if _, err := w.Write(bulkBlock); err != nil {
			return err
		}
	}
	return nil
}

// A bulkAgent behaves as a restricted gpg-agent. It answers READKEY with bulkBytes, and
// inquires as many at PKDECRYPT.
type bulkAgent struct {
	socket   string
	listener net.Listener
	served   sync.WaitGroup
}

func newBulkAgent(l *lab) *bulkAgent {
	a := &bulkAgent{socket: filepath.Join(env.ShortDir(l.p), "S.bulk")}
	var err error
	a.listener, err = net.Listen("unix", a.socket)
	l.must(err)
	a.served.Go(func() {
		for {
			conn, err := a.listener.Accept()
			if err != nil {
				return
			}
			a.served.Go(func() { serveBulk(conn) })
		}
	})
	return a
}

func (a *bulkAgent) close() {
	_ = a.listener.Close()
	a.served.Wait()
}

// serveBulk serves one connection, until a lane closes it.
func serveBulk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_, err := io.WriteString(conn, "OK Pleased to meet you\n")
	in := bufio.NewReaderSize(conn, 64<<10)
	for inquired := false; err == nil; {
		var line []byte
		if line, err = in.ReadSlice('\n'); err != nil || line[0] == 'D' {
			continue
		}
		switch verb := string(bytes.TrimSpace(line)); {
		case verb == "READKEY":
			err = sendBulk(conn)
		case verb == "PKDECRYPT":
			inquired = true
			_, err = io.WriteString(conn, "INQUIRE CIPHERTEXT\n")
		case verb == "END":
			inquired = false
		}
		if err == nil && !inquired {
			_, err = io.WriteString(conn, "OK\n")
		}
		if string(line) == "BYE\n" {
			return
		}
	}
}
