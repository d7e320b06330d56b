package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"

	"gpg-bridge/internal/testenv"
)

// bulkBlock is D lines of the greatest length that libassuan sends: 1000 bytes
// and an LF, and as many as bulk goes by at a time.
var bulkBlock = bytes.Repeat([]byte("D "+strings.Repeat("x", 998)+"\n"), 64)

// sendBulk sends bulkBytes in D lines, all but the end of them.
func sendBulk(w io.Writer) error {
	for sent := 0; sent < bulkBytes; sent += len(bulkBlock) {
		if _, err := w.Write(bulkBlock); err != nil {
			return err
		}
	}
	return nil
}

// A bulkAgent stands for a restricted gpg-agent. READKEY answers with
// bulkBytes, PKDECRYPT asks for as many.
type bulkAgent struct {
	socket   string
	listener net.Listener
	served   sync.WaitGroup
}

func newBulkAgent(l *lab) *bulkAgent {
	a := &bulkAgent{socket: filepath.Join(testenv.ShortDir(l.p), "S.bulk")}
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

// serveBulk ends with the connection, whose other end is a lane's.
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
